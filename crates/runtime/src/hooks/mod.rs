//! Calls from the exchange to the rooms above it.
//!
//! Those rooms depend on the exchange, so it cannot name them. The rim fills in this table when it
//! assembles the runtime, before the first component is made. Where nobody has, as in tests of
//! single parts, the table does nothing.

mod canaries;
pub(crate) mod simulation;

use std::sync::OnceLock;

use crate::abi::ComponentType;
use crate::ground::options::Servers;
use crate::ground::runtime::Part;
use crate::seats::seat::{Identity, Seat};

pub(crate) use canaries::{Canary, sings};

/// A core for a new component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) core: usize,
    pub(crate) by: By,
}

/// What chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The program, by number.
    Name,
    /// A policy, or a plan that is followed.
    Policy,
    /// A plan that may be left.
    Plan,
}

/// Something to do once the caller has let go of its locks.
pub(crate) type After = Option<Box<dyn FnOnce()>>;

/// The table. Each entry says who calls it, and when.
pub(crate) struct Hooks {
    /// Chooses a new component's core, if any: by the number that its maker asked for (-1: none),
    /// its type and its name.
    pub(crate) choose: fn(i32, *const ComponentType, &Identity) -> Option<Choice>,
    /// The first thread that carries components is about to start. The calling thread is not
    /// pinned.
    pub(crate) starts: fn(),
    /// A carrier has published samples of the traffic.
    pub(crate) has_samples: fn(),
    /// The component of this number has moved to another worker or core.
    pub(crate) moved: fn(u64),
    /// The component of this number has ended.
    pub(crate) ended: fn(u64),
    /// An exception nobody caught has ended a component, which its carrier still has.
    pub(crate) failed: fn(&Seat),
    /// The last component that keeps the program alive has ended.
    pub(crate) all_stopped: fn(),
    /// Nothing runs. The argument tells whether that is so still; it no longer matters to who does
    /// not return.
    pub(crate) at_rest: fn(&dyn Fn() -> bool) -> After,
    /// A server is called in another way from now on, for this reason.
    pub(crate) serves: fn(&Seat, Servers, String),
    /// Outside there is something to wait for.
    pub(crate) see_to_outside: fn(),
    /// Timers are due.
    pub(crate) fire_due: fn(),
}

/// Does nothing.
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
    see_to_outside: || {},
    fire_due: || {},
};

static HOOKS: Part<OnceLock<&'static Hooks>> = Part::new(OnceLock::new);

/// Fills the table in, if nobody has.
pub(crate) fn install(hooks: &'static Hooks) {
    let _ = HOOKS.set(hooks);
}

/// The table.
pub(crate) fn get() -> &'static Hooks {
    HOOKS.get().copied().unwrap_or(&NOTHING)
}
