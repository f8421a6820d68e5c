//! Faults planted in the runtime, to prove that a simulation finds such.
//!
//! They are there in builds with debug assertions only, and do nothing until HEARTH_CANARY names
//! one.

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Canary {
    /// A message over a link to a component whose worker sleeps wakes nobody.
    LostWakeUp,
    /// What is taken over a link from a component whose worker sleeps is left there once more.
    DoubleDelivery,
    /// A receiver with several peers serves whoever came last.
    Starvation,
}

/// Is this fault planted?
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
        _ => None,
    }
}

/// None is planted in a release.
#[cfg(any(not(debug_assertions), loom))]
#[inline]
pub(crate) fn sings(_: Canary) -> bool {
    false
}
