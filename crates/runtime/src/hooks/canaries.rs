//! Faults planted in the runtime, to prove that a simulation finds their kind.
//!
//! Only builds with debug assertions contain them, and HEARTH_CANARY selects one.

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Canary {
    /// A message over a link to a component on a sleeping worker wakes nobody.
    LostWakeUp,
    /// A value taken over a link from a component on a sleeping worker stays there and is delivered
    /// twice.
    DoubleDelivery,
    /// A receiver with several peers always serves the latest.
    Starvation,
    /// A collection looks at references to components only once.
    ComponentsNotLookedAt,
    /// A collection looks at half-channels only once.
    HalfChannelsNotLookedAt,
    /// A collection looks at half-channels before it looks at components.
    HalfChannelsFirst,
    /// A collection does not look in the end whether its candidates still sleep.
    NoLastLook,
}

/// Whether this fault is active in the running simulation.
#[cfg(all(debug_assertions, not(loom)))]
#[inline]
pub(crate) fn sings(canary: Canary) -> bool {
    use std::sync::OnceLock;
    static NAMED: OnceLock<Option<Canary>> = OnceLock::new();
    super::simulation::is_on() && *NAMED.get_or_init(named) == Some(canary)
}

#[cfg(all(debug_assertions, not(loom)))]
fn named() -> Option<Canary> {
    match std::env::var("HEARTH_CANARY").ok()?.as_str() {
        "lost-wake-up" => Some(Canary::LostWakeUp),
        "double-delivery" => Some(Canary::DoubleDelivery),
        "starvation" => Some(Canary::Starvation),
        "components-not-looked-at" => Some(Canary::ComponentsNotLookedAt),
        "half-channels-not-looked-at" => Some(Canary::HalfChannelsNotLookedAt),
        "half-channels-first" => Some(Canary::HalfChannelsFirst),
        "no-last-look" => Some(Canary::NoLastLook),
        _ => None,
    }
}

/// Releases have no faults.
#[cfg(any(not(debug_assertions), loom))]
#[inline]
pub(crate) fn sings(_: Canary) -> bool {
    false
}
