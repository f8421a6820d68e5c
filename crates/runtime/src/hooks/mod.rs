//! Calls from the exchange to the rooms above it.
//!
//! Those rooms depend on the exchange, so it cannot name them. The rim fills in this table when it
//! assembles the runtime, before the first component is made. Until then, as in tests of single
//! parts, the table does nothing.

mod canaries;
pub(crate) mod simulation;

use std::sync::OnceLock;

use crate::abi::ComponentType;
use crate::ground::options::Servers;
use crate::ground::runtime::Part;
use crate::seats::seat::{Identity, Seat};

pub(crate) use canaries::{Canary, sings};

/// The core chosen for a new component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) core: usize,
    pub(crate) by: By,
}

/// The origin of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The program, by number.
    Name,
    /// A policy, or a plan that is binding.
    Policy,
    /// A plan that the runtime may depart from.
    Plan,
}

/// An action to take after the caller has released its locks.
pub(crate) type After = Option<Box<dyn FnOnce()>>;

/// The table. Each entry says who calls it, and when.
pub(crate) struct Hooks {
    /// Chooses a new component's core, if any, from the number that its creator asked for (-1:
    /// none), its type and its name.
    pub(crate) choose: fn(i32, *const ComponentType, &Identity) -> Option<Choice>,
    /// Called before the first thread that carries components starts. The calling thread is not
    /// pinned.
    pub(crate) starts: fn(),
    /// Called after a carrier has published samples of the traffic.
    pub(crate) has_samples: fn(),
    /// Called after the component of this number has moved to another worker or core.
    pub(crate) moved: fn(u64),
    /// Called after the component of this number has ended.
    pub(crate) ended: fn(u64),
    /// Called after an uncaught exception has ended a component; its carrier still owns it.
    pub(crate) failed: fn(&Seat),
    /// Called after the last component that keeps the program alive has ended.
    pub(crate) all_stopped: fn(),
    /// Called when nothing runs. The argument tells whether that still holds; an implementation
    /// that does not return may ignore it.
    pub(crate) at_rest: fn(&dyn Fn() -> bool) -> After,
    /// Called when a server's calling mode changes, with the reason.
    pub(crate) serves: fn(&Seat, Servers, String),
    /// Called when there are many more running components than before, by one that starts another.
    pub(crate) grown: fn(),
    /// Called every few milliseconds while a worker is awake.
    pub(crate) looks_around: fn(),
    /// Called when there is something outside to wait for.
    pub(crate) see_to_outside: fn(),
    /// Called when timers are due.
    pub(crate) fire_due: fn(),
}

/// A table of hooks that do nothing.
pub(crate) const NOTHING: Hooks = Hooks {
    choose: |_, _, _| None,
    starts: || {},
    has_samples: || {},
    moved: |_| {},
    ended: |_| {},
    failed: |_| {},
    all_stopped: || {},
    at_rest: |_| None,
    serves: |_, _, _| {},
    grown: || {},
    looks_around: || {},
    see_to_outside: || {},
    fire_due: || {},
};

static HOOKS: Part<OnceLock<&'static Hooks>> = Part::new(OnceLock::new);

/// Fills in the table, unless it is filled in already.
pub(crate) fn install(hooks: &'static Hooks) {
    let _ = HOOKS.set(hooks);
}

/// The table.
pub(crate) fn get() -> &'static Hooks {
    HOOKS.get().copied().unwrap_or(&NOTHING)
}
