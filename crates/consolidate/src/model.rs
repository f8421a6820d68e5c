//! The system: components with their modes and times, messages, points, units and buses.
//!
//! Everything is resolved: names are numbers into the lists of [`System`], times are whole
//! nanoseconds. [`crate::file`], [`crate::amalthea`] and [`crate::generate`] make systems: numbers
//! are within the lists, times and bandwidths above 0, at least one mode, component and unit exist,
//! and each unit has a core and a memory.

use std::fmt;

/// Most modes of a system: a set of them is one word.
pub const MODES_MAX: usize = 64;

/// A set of modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModeSet(pub u64);

impl ModeSet {
    /// The first `count` modes.
    #[must_use]
    pub const fn all(count: usize) -> Self {
        if count >= MODES_MAX {
            return Self(u64::MAX);
        }
        Self((1 << count) - 1)
    }

    /// This set with one more mode.
    #[must_use]
    pub const fn with(self, mode: usize) -> Self {
        Self(self.0 | 1 << mode)
    }

    /// Whether a mode is in the set.
    #[must_use]
    pub const fn has(self, mode: usize) -> bool {
        self.0 >> mode & 1 == 1
    }

    /// Modes in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The modes in the set, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MODES_MAX).filter(move |mode| self.has(*mode))
    }
}

/// A state of the vehicle, such as driving or charging. One holds at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Its name.
    pub name: String,
    /// Share of time in this mode; the shares of all modes add up to 1.
    pub share: f64,
}

/// Safety integrity level of ISO 26262, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asil {
    /// Quality management: no safety requirement.
    #[default]
    Qm,
    /// The lowest level.
    A,
    /// The second.
    B,
    /// The third.
    C,
    /// The highest level; runs on lock-step cores only.
    D,
}

impl Asil {
    /// All levels, lowest first.
    pub const ALL: [Asil; 5] = [Asil::Qm, Asil::A, Asil::B, Asil::C, Asil::D];

    /// Steps above QM: 0 to 4.
    #[must_use]
    pub const fn steps(self) -> usize {
        self as usize
    }

    /// Name as in a file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Asil::Qm => "QM",
            Asil::A => "A",
            Asil::B => "B",
            Asil::C => "C",
            Asil::D => "D",
        }
    }
}

impl fmt::Display for Asil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asil::Qm => f.write_str("QM"),
            other => write!(f, "ASIL {}", other.name()),
        }
    }
}

/// Worst-case execution time on some cores with some memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// Kind of core; none means any.
    pub core: Option<String>,
    /// Kind of memory; none means any.
    pub memory: Option<String>,
    /// The time, ns.
    pub ns: u64,
}

/// A software component: one periodic activity, as far as scheduling goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Modes in which it is active.
    pub modes: ModeSet,
    /// Time between releases, ns.
    pub period_ns: u64,
    /// Time from release to completion that is allowed, ns; at most the period.
    pub deadline_ns: u64,
    /// Times by core and memory; the most specific that fits holds, the core before the memory.
    pub times: Vec<Time>,
    /// Its safety level.
    pub asil: Asil,
    /// Memory for code and data, bytes.
    pub bytes: u64,
    /// Circuit points that it needs wired to its unit.
    pub points: Vec<usize>,
    /// Unit that it must be on.
    pub on: Option<usize>,
    /// Unit that it is on today: a number into [`System::before`].
    pub before: Option<usize>,
}

/// A message from one component to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Sender.
    pub from: usize,
    /// Receiver.
    pub to: usize,
    /// Payload, bytes.
    pub bytes: u64,
    /// Time between two messages, ns.
    pub period_ns: u64,
    /// Longest time on the way that is allowed, ns.
    pub latency_ns: Option<u64>,
}

/// A connector, sensor or actuator at some place of the vehicle.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// Place in the vehicle, metres.
    pub at: Option<(f64, f64)>,
    /// Cables that run to it.
    pub cables: f64,
}

/// Ability of a core to run in lock-step with a checker core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStep {
    /// None.
    No,
    /// The core has a checker of its own that does nothing else.
    Always,
    /// With another core, by its number in [`System::cores`], which then runs nothing itself.
    With(usize),
}

/// A core of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// Its unit.
    pub unit: usize,
    /// Number within the unit, from 0.
    pub nth: usize,
    /// Kind, which times refer to.
    pub kind: String,
    /// Whether it can run in lock-step.
    pub lockstep: LockStep,
    /// The core whose checker this one may become.
    pub checks: Option<usize>,
    /// Power above idle while it computes, watts.
    pub busy_w: f64,
}

/// A memory of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its unit.
    pub unit: usize,
    /// Kind, which times refer to.
    pub kind: String,
    /// Capacity, bytes.
    pub bytes: u64,
}

/// An electronic control unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// Place in the vehicle, metres.
    pub at: Option<(f64, f64)>,
    /// Cost, in any currency.
    pub cost: f64,
    /// Power in each mode while a component of it is active, watts.
    pub power_w: Vec<f64>,
    /// Power while none is, watts.
    pub sleep_w: f64,
    /// Points that can be wired to it; none means all.
    pub points: Option<Vec<usize>>,
    /// Whether memory and time protection keep components of different levels apart.
    pub is_protected: bool,
    /// Time of a message between two of its cores, ns.
    pub core_latency_ns: u64,
    /// Cables that it needs itself, such as power and network, metres.
    pub cable_m: f64,
    /// Its cores, numbers into [`System::cores`].
    pub cores: Vec<usize>,
    /// Its memories, numbers into [`System::memories`].
    pub memories: Vec<usize>,
}

/// A bus between units.
#[derive(Clone, Debug, PartialEq)]
pub struct Bus {
    /// Its name.
    pub name: String,
    /// Bandwidth, bits a second.
    pub bits_per_s: f64,
    /// Longest wait for the bus and way through it, without the message's own bits, ns.
    pub latency_ns: u64,
    /// Bytes of a frame around the payload.
    pub overhead_bytes: u64,
    /// Largest share of the bandwidth that messages may take in a mode.
    pub load_max: f64,
    /// Units on it.
    pub units: Vec<usize>,
}

impl Bus {
    /// Longest time of a message on this bus, ns, rounded up.
    #[must_use]
    pub fn transport_ns(&self, bytes: u64) -> u64 {
        let bits = (bytes + self.overhead_bytes) as f64 * 8.0;
        self.latency_ns
            .saturating_add((bits * 1e9 / self.bits_per_s).ceil() as u64)
    }

    /// Share of the bandwidth that a message takes.
    #[must_use]
    pub fn share(&self, message: &Message) -> f64 {
        let bits = (message.bytes + self.overhead_bytes) as f64 * 8.0;
        bits * 1e9 / message.period_ns as f64 / self.bits_per_s
    }
}

/// Extent of a separation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// On different units.
    Unit,
    /// On different cores.
    Core,
}

/// Components that must not share a unit or core, such as two channels of a redundant function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The components, each from each.
    pub components: Vec<usize>,
    /// The extent.
    pub by: By,
}

/// Test that the components of a core must pass in each mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The sum of time by period is at most this.
    Utilisation(f64),
    /// Exact response times under fixed priorities, shorter deadlines first; with deadlines equal
    /// to periods that is the rate-monotonic order.
    Response,
}

/// Safety levels that may share a core of a protected unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// All.
    Any,
    /// Levels that differ by one step at most.
    Adjacent,
    /// One only.
    Same,
}

impl Mixing {
    /// Largest allowed difference of two levels on a core, in steps.
    #[must_use]
    pub const fn steps_max(self) -> usize {
        match self {
            Mixing::Any => 4,
            Mixing::Adjacent => 1,
            Mixing::Same => 0,
        }
    }
}

/// Protocol by which a core changes from one mode to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Everything goes on until the core is idle.
    Idle,
    /// Components that stop are not released any more; the others go on until the core is idle.
    Deferred,
}

/// Rules of the system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The schedulability test.
    pub bound: Bound,
    /// Levels on a core.
    pub mixing: Mixing,
    /// The protocol of mode switches.
    pub protocol: Protocol,
}

/// An allowed duration of a mode switch. Switches without one have no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Mode before.
    pub from: usize,
    /// Mode after.
    pub to: usize,
    /// Longest duration on each core, ns.
    pub within_ns: u64,
}

/// A unit of today's vehicle, to compare with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Before {
    /// Its name.
    pub name: String,
    /// Place in the vehicle, metres.
    pub at: Option<(f64, f64)>,
    /// Cost.
    pub cost: f64,
    /// Power in each mode while a component of it is active, watts.
    pub power_w: Vec<f64>,
    /// Power while none is, watts.
    pub sleep_w: f64,
    /// Cables that it needs itself, metres.
    pub cable_m: f64,
    /// Number of its cores.
    pub cores: usize,
}

/// All that a consolidation starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Its name.
    pub name: String,
    /// The modes.
    pub modes: Vec<Mode>,
    /// The components.
    pub components: Vec<Component>,
    /// The messages.
    pub messages: Vec<Message>,
    /// The circuit points.
    pub points: Vec<Point>,
    /// The units that may be used.
    pub units: Vec<Unit>,
    /// The cores of all units.
    pub cores: Vec<Core>,
    /// The memories of all units.
    pub memories: Vec<Memory>,
    /// The buses.
    pub buses: Vec<Bus>,
    /// Separations.
    pub apart: Vec<Apart>,
    /// Bounded mode switches.
    pub switches: Vec<Switch>,
    /// The units of today.
    pub before: Vec<Before>,
    /// The rules.
    pub rules: Rules,
}

impl System {
    /// Worst-case time of a component on a core with its code and data in a memory, ns; none if it
    /// has no time for them.
    #[must_use]
    pub fn time_ns(&self, component: usize, core: usize, memory: usize) -> Option<u64> {
        let (core, memory) = (&self.cores[core].kind, &self.memories[memory].kind);
        let fits = |time: &&Time| {
            time.core.as_ref().is_none_or(|kind| kind == core)
                && time.memory.as_ref().is_none_or(|kind| kind == memory)
        };
        let times = self.components[component].times.iter().filter(fits);
        times
            .max_by_key(|time| 2 * u8::from(time.core.is_some()) + u8::from(time.memory.is_some()))
            .map(|time| time.ns)
    }

    /// The bus of messages between two units: of all that both are on the one with the shortest
    /// latency, the first if several have it.
    #[must_use]
    pub fn bus(&self, from: usize, to: usize) -> Option<usize> {
        let buses = self.buses.iter().enumerate();
        buses
            .filter(|(_, bus)| bus.units.contains(&from) && bus.units.contains(&to))
            .min_by_key(|(_, bus)| bus.latency_ns)
            .map(|(at, _)| at)
    }

    /// Modes in which a message is sent: those in which both ends are active.
    #[must_use]
    pub fn modes_of(&self, message: &Message) -> ModeSet {
        let end = |at: usize| self.components[at].modes;
        end(message.from).and(end(message.to))
    }

    /// Share of time spent in a set of modes.
    #[must_use]
    pub fn time_share(&self, set: ModeSet) -> f64 {
        let modes = self.modes.iter().enumerate();
        let inside = modes.filter(|(at, _)| set.has(*at));
        inside.map(|(_, mode)| mode.share).sum()
    }

    /// Cable from a place to a point, metres: along the axes, as harnesses run. None if either has
    /// no place.
    #[must_use]
    pub fn cable_m(&self, from: Option<(f64, f64)>, point: usize) -> Option<f64> {
        let ((x, y), (to_x, to_y)) = (from?, self.points[point].at?);
        Some(((x - to_x).abs() + (y - to_y).abs()) * self.points[point].cables)
    }
}
