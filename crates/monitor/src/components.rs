//! Calls of components, which go from thread to thread within their calls.
//!
//! A component keeps a [`Calls`] in its own memory. Whoever runs it passes that, so that its
//! records are numbered, and whole trees of its calls are left out or recorded, wherever it runs.

use crate::controller;
use crate::here;
use crate::probe::{OFF, Probe, monitor_of, name_of};

/// State of a component's calls. All zeros at first.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Calls {
    /// Number of open calls.
    pub(crate) depth: u32,
    /// Number of records that it emitted, modulo 2¹⁶.
    pub(crate) records: u16,
    /// Its records have said what it is.
    pub(crate) is_known: bool,
    /// The outermost call is left out, and all within it.
    pub(crate) leaves_out: bool,
}

/// A component as its first records name it.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// Name of its kind.
    pub kind: &'static str,
    /// Its number within its kind.
    pub nth: u32,
}

/// Notes the beginning of a call of a component, if the probe is on. True if it was noted: then its
/// end is to be noted, too.
///
/// Components are told apart by the low 28 bits of their numbers.
pub fn begin(
    probe: &'static Probe,
    component: u64,
    calls: &mut Calls,
    who: impl FnOnce() -> Who,
) -> bool {
    let state = probe.state_once_met();
    if state == OFF {
        return false;
    }
    let name = Some(name_of(state) as u32);
    here::component_begins(monitor_of(state), name, component as u32, calls, || {
        let who = who();
        Some((controller::number_of(who.kind)?, who.nth))
    })
}

/// Notes the end of a component's innermost call.
pub fn end(probe: &'static Probe, component: u64, calls: &mut Calls) {
    let (monitor, name) = match probe.state() {
        state if state > OFF => (monitor_of(state), Some(name_of(state) as u32)),
        // It was switched off meanwhile: the call ends without a name.
        _ => (controller::number(), None),
    };
    here::component_ends(monitor, name, component as u32, calls);
}
