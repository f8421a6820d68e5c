//! Breaches of the rules, with their numbers.

use thiserror::Error;

/// A rule that a mapping breaks. Times are in µs.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Violation {
    /// The mapping has another number of components.
    #[error("the mapping places {found} components, and the system has {wanted}")]
    Length {
        /// Places in the mapping.
        found: usize,
        /// Components in the system.
        wanted: usize,
    },
    /// The core or memory does not exist, or the two belong to different units.
    #[error("`{component}` is on a core and a memory that are not of one unit")]
    Seat {
        /// The component.
        component: String,
    },
    /// The component has no time for the kinds of core and memory.
    #[error("`{component}` has no time for core `{core}` with memory `{memory}`")]
    NoTime {
        /// The component.
        component: String,
        /// Kind of core.
        core: String,
        /// Kind of memory.
        memory: String,
    },
    /// The component must be on another unit.
    #[error("`{component}` must be on `{wanted}` and is on `{unit}`")]
    Pinned {
        /// The component.
        component: String,
        /// The right unit.
        wanted: String,
        /// Its unit.
        unit: String,
    },
    /// The point cannot be wired to the unit.
    #[error("`{component}` needs `{point}`, which cannot be wired to `{unit}`")]
    Point {
        /// The component.
        component: String,
        /// The point.
        point: String,
        /// The unit.
        unit: String,
    },
    /// A core's utilisation is above the bound.
    #[error("{core} is used to {used:.4} in mode `{mode}`, and the bound is {max}")]
    Utilisation {
        /// The core.
        core: String,
        /// The mode.
        mode: String,
        /// Sum of time by period.
        used: f64,
        /// The bound.
        max: f64,
    },
    /// A component can miss its deadline.
    #[error("`{component}` on {core} can miss its deadline of {deadline_us} µs in mode `{mode}`")]
    Late {
        /// The component.
        component: String,
        /// Its core.
        core: String,
        /// The mode.
        mode: String,
        /// The deadline.
        deadline_us: f64,
    },
    /// A component of ASIL D is on a core that cannot run in lock-step.
    #[error("`{component}` is ASIL D, and {core} cannot run in lock-step")]
    LockStep {
        /// The component.
        component: String,
        /// Its core.
        core: String,
    },
    /// A component is on the checker of a core in lock-step.
    #[error("`{component}` is on {core}, which checks another core in lock-step")]
    Checker {
        /// The component.
        component: String,
        /// Its core.
        core: String,
    },
    /// Levels on one core that are too far apart.
    #[error(
        "`{a}` ({a_level}) and `{b}` ({b_level}) share {core}, which the rule of mixing forbids"
    )]
    MixedCore {
        /// One component.
        a: String,
        /// Its level.
        a_level: &'static str,
        /// Another one.
        b: String,
        /// Its level.
        b_level: &'static str,
        /// The core.
        core: String,
    },
    /// Different levels on a unit without protection.
    #[error(
        "`{a}` ({a_level}) and `{b}` ({b_level}) share `{unit}`, which protects neither from the other"
    )]
    MixedUnit {
        /// One component.
        a: String,
        /// Its level.
        a_level: &'static str,
        /// Another one.
        b: String,
        /// Its level.
        b_level: &'static str,
        /// The unit.
        unit: String,
    },
    /// Components that must be apart are together.
    #[error("`{a}` and `{b}` must be apart and share {place}")]
    Together {
        /// One component.
        a: String,
        /// The other.
        b: String,
        /// The shared unit or core.
        place: String,
    },
    /// A memory holds more than its capacity.
    #[error("memory {memory} of `{unit}` holds {used} bytes, and its capacity is {max}")]
    Memory {
        /// Kind of memory.
        memory: String,
        /// Its unit.
        unit: String,
        /// Bytes of its components.
        used: u64,
        /// Its capacity, bytes.
        max: u64,
    },
    /// Two units that talk have no bus.
    #[error("`{from}` on `{from_unit}` sends to `{to}` on `{to_unit}`, and no bus joins the two")]
    NoBus {
        /// The sender.
        from: String,
        /// Its unit.
        from_unit: String,
        /// The receiver.
        to: String,
        /// Its unit.
        to_unit: String,
    },
    /// A bus carries more than it may.
    #[error("bus `{bus}` is used to {used:.4} in mode `{mode}`, and the bound is {max}")]
    Bus {
        /// The bus.
        bus: String,
        /// The mode.
        mode: String,
        /// Share of its bandwidth.
        used: f64,
        /// The bound.
        max: f64,
    },
    /// A message takes too long.
    #[error("the message from `{from}` to `{to}` takes {took_us} µs, and may take {max_us}")]
    Latency {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
        /// Its time on the way.
        took_us: f64,
        /// Its bound.
        max_us: f64,
    },
    /// A mode switch takes too long.
    #[error("the switch from `{from}` to `{to}` takes {took}, and may take {max_us} µs")]
    Switch {
        /// Mode before.
        from: String,
        /// Mode after.
        to: String,
        /// Its longest duration, or that there is none.
        took: String,
        /// Its bound.
        max_us: f64,
    },
    /// A plan of a mode switch that does not hold what it says.
    #[error("the plan of the switch from `{from}` to `{to}` is wrong: {reason}")]
    SwitchPlan {
        /// Mode before.
        from: String,
        /// Mode after.
        to: String,
        /// The mistake.
        reason: String,
    },
}
