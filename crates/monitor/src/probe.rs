//! Probes: the places of a program that can be watched.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::controller;
use crate::here;

/// States of a probe below its number: not passed yet, off, on.
pub(crate) const UNKNOWN: u64 = 0;
pub(crate) const OFF: u64 = 1;

/// A place of the program, with a name, that can be switched on and off while the program runs.
///
/// It begins with a word of 64 bits that is [`Probe::OFF`] while the probe is off.
#[repr(C)]
pub struct Probe {
    /// [`UNKNOWN`], [`OFF`], or on: the monitor's number above 32 bits, and one more than the
    /// name's number shifted by one.
    state: AtomicU64,
    name: &'static str,
}

/// All probes that were passed. They are statics, and so is their list.
static PROBES: Mutex<Vec<&'static Probe>> = Mutex::new(Vec::new());

pub(crate) fn probes() -> MutexGuard<'static, Vec<&'static Probe>> {
    PROBES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Probe {
    /// First word of a probe that is off, for code in other languages.
    pub const OFF: u64 = OFF;

    /// A probe, to be kept in a static; see [`call!`](crate::call).
    #[must_use]
    pub const fn new(name: &'static str) -> Probe {
        Probe {
            state: AtomicU64::new(UNKNOWN),
            name,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Begins a call, which ends when the result is dropped.
    #[inline(always)]
    pub fn call(&'static self) -> Call {
        let state = self.state.load(Ordering::Relaxed);
        if state == OFF {
            return Call::NONE;
        }
        self.begin(state)
    }

    /// Runs an action as a call. While the probe is off this costs less than
    /// [`call`](Probe::call), since nothing need be remembered; the action's code is there twice.
    #[inline(always)]
    pub fn around<R>(&'static self, action: impl FnOnce() -> R) -> R {
        let state = self.state.load(Ordering::Relaxed);
        if state == OFF {
            return action();
        }
        let _call = self.begin(state);
        action()
    }

    #[inline]
    fn begin(&'static self, mut state: u64) -> Call {
        if state == UNKNOWN {
            state = self.meet();
            if state == OFF {
                return Call::NONE;
            }
        }
        here::begins(state);
        Call {
            state,
            stays: PhantomData,
        }
    }

    /// The state; a probe that is passed for the first time is switched by the monitor's rules.
    #[inline]
    pub(crate) fn state_once_met(&'static self) -> u64 {
        match self.state() {
            UNKNOWN => self.meet(),
            state => state,
        }
    }

    /// Enters a probe that is passed for the first time into the list, and returns its state.
    #[cold]
    #[inline(never)]
    pub(crate) fn meet(&'static self) -> u64 {
        let mut probes = probes();
        if self.state.load(Ordering::Relaxed) == UNKNOWN {
            probes.push(self);
            // One store, unknown to on or off: another thread that passes it now must not take it
            // for off.
            controller::switch(self);
        }
        self.state.load(Ordering::Relaxed)
    }

    pub(crate) fn set_off(&self) {
        self.state.store(OFF, Ordering::Relaxed);
    }

    pub(crate) fn set_on(&self, monitor: u32, name: u32) {
        let state = u64::from(monitor) << 32 | u64::from(name) << 1 | 1;
        debug_assert!(state > OFF, "monitors are numbered from 1");
        self.state.store(state, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.state() > OFF
    }

    #[inline]
    pub(crate) fn state(&self) -> u64 {
        self.state.load(Ordering::Relaxed)
    }
}

/// A call that a probe has noted. Its end is noted when it is dropped, in the same thread.
#[must_use = "the call ends when this is dropped"]
pub struct Call {
    state: u64,
    /// It stays with its thread.
    stays: PhantomData<*const ()>,
}

impl Call {
    const NONE: Call = Call {
        state: OFF,
        stays: PhantomData,
    };
}

impl Drop for Call {
    #[inline(always)]
    fn drop(&mut self) {
        if self.state != OFF {
            here::ends(self.state);
        }
    }
}

/// The monitor of a probe's state.
pub(crate) fn monitor_of(state: u64) -> u32 {
    (state >> 32) as u32
}

/// The name of a probe's state.
pub(crate) fn name_of(state: u64) -> u64 {
    state as u32 as u64 >> 1
}

/// Notes the rest of the enclosing block as a call, if the probe of this name is on.
///
/// ```
/// fn handle(request: u32) -> u32 {
///     hearth_monitor::call!("Server.handle");
///     request + 1
/// }
/// # assert_eq!(handle(1), 2);
/// ```
#[macro_export]
macro_rules! call {
    ($name:expr) => {
        let _call = {
            static PROBE: $crate::Probe = $crate::Probe::new($name);
            PROBE.call()
        };
    };
}
