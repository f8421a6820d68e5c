//! The model checker has its own schedules: nothing is simulated, and nothing planted.

use crate::abi::{Arm, Component, ComponentType, Site, Step};
use crate::channel::Channel;
use crate::seat::Identity;

pub(crate) fn is_on() -> bool {
    false
}

#[derive(Clone, Copy)]
pub(crate) enum Canary {
    LostWakeUp,
    DoubleDelivery,
    Starvation,
}

pub(crate) fn sings(_: Canary) -> bool {
    false
}

pub(crate) enum At<'a> {
    Send(&'a Channel),
    Receive(&'a Channel),
    Acknowledge(&'a Channel),
    Select(&'a [Arm]),
}

pub(crate) unsafe fn operate(
    _: *mut Component,
    _: At<'_>,
    _: *const Site,
    work: impl FnOnce() -> Step,
) -> Step {
    work()
}

pub(crate) unsafe fn deed<R>(
    _: *mut Component,
    _: &'static str,
    _: *const Site,
    work: impl FnOnce() -> R,
) -> R {
    work()
}

pub(crate) fn place(_: i32, _: *const ComponentType, _: &Identity) -> Option<usize> {
    None
}

pub(crate) unsafe fn made(_: *mut Component, _: u64) {}

pub(crate) unsafe fn ends_pass(_: *mut Component) {}

pub(crate) unsafe fn pauses_between_passes(_: *mut Component) -> bool {
    false
}

pub(crate) fn passed(_: *mut Component, _: *mut Component) {}

pub(crate) fn ticked(_: *mut Component) {}

pub(crate) fn note_failure(_: impl FnOnce() -> String) {}

pub(crate) fn at_exit(_: i32) {}

pub(crate) mod door {
    pub(crate) fn enter(_: Option<std::time::Duration>) -> bool {
        true
    }

    pub(crate) fn leave() {}
}

pub(crate) mod clock {
    pub(crate) fn now() -> std::time::Instant {
        std::time::Instant::now()
    }
}
