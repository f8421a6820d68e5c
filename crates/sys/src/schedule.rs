//! Scheduling of the calling thread.

use crate::refused::{Reason, Refused};

/// A scheduling class of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The usual time sharing.
    Other,
    /// Time sharing, for work in the background.
    Batch,
    /// Only when nothing else is ready to run.
    Idle,
    /// Real time, first in first out, priority 1 to 99.
    Fifo(u8),
    /// Real time, round robin, priority 1 to 99.
    RoundRobin(u8),
    /// Real time by deadline.
    Deadline,
    /// A class this crate does not know, by its number.
    Unknown(i32),
}

/// The calling thread's class.
pub fn class() -> Class {
    // SAFETY: the call takes the calling thread and only reads.
    let policy = unsafe { libc::sched_getscheduler(0) };
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call writes the structure given.
    unsafe { libc::sched_getparam(0, &mut parameters) };
    let priority = parameters.sched_priority.clamp(0, 99) as u8;
    // The flag concerns children only.
    match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => Class::Other,
        libc::SCHED_BATCH => Class::Batch,
        libc::SCHED_IDLE => Class::Idle,
        libc::SCHED_FIFO => Class::Fifo(priority),
        libc::SCHED_RR => Class::RoundRobin(priority),
        libc::SCHED_DEADLINE => Class::Deadline,
        other => Class::Unknown(other),
    }
}

/// Sets the calling thread's class.
///
/// # Errors
/// Real time needs a right (`CAP_SYS_NICE` or an `rtprio` limit); deadlines need parameters that
/// this call does not have.
pub fn set_class(class: Class) -> Result<(), Refused> {
    let (policy, priority) = match class {
        Class::Other => (libc::SCHED_OTHER, 0),
        Class::Batch => (libc::SCHED_BATCH, 0),
        Class::Idle => (libc::SCHED_IDLE, 0),
        Class::Fifo(priority) => (libc::SCHED_FIFO, priority),
        Class::RoundRobin(priority) => (libc::SCHED_RR, priority),
        Class::Deadline | Class::Unknown(_) => {
            return Err(Refused::because(
                "change the scheduling class to",
                format!("{class:?}"),
                Reason::Invalid,
                "choose another class",
            ));
        }
    };
    let parameters = libc::sched_param {
        sched_priority: i32::from(priority),
    };
    // SAFETY: the structure is only read.
    match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(Refused::last(
            "change the scheduling class to",
            format!("{class:?}"),
            "run as root, or raise the limit `ulimit -r`",
        )),
    }
}

/// The calling thread's nice value, -20 (first) to 19 (last).
pub fn nice() -> i32 {
    // SAFETY: the call takes the calling thread and only reads. A value of -1 is not an error
    // here: reading one's own value never fails.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Sets the calling thread's nice value.
///
/// # Errors
/// Lowering it needs a right.
pub fn set_nice(value: i32) -> Result<(), Refused> {
    // SAFETY: the call takes numbers.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) } {
        0 => Ok(()),
        _ => Err(Refused::last(
            "set the nice value",
            value.to_string(),
            "run as root, or raise the limit `ulimit -e`",
        )),
    }
}

/// Yields the core to other threads.
pub fn give_way() {
    rustix::thread::sched_yield();
}

/// The shortest system call: enters the kernel and returns. The parent's number.
#[inline]
pub fn shortest_call() -> i64 {
    // SAFETY: the call takes nothing and never fails. The raw form, as a library might remember
    // the answer.
    unsafe { libc::syscall(libc::SYS_getppid) }
}

/// Sets the timer slack: how much later than asked the calling thread's timed waits may end. The
/// default is 50 µs, which lets the system end several at once.
pub fn set_lateness(ns: u32) {
    // SAFETY: this option takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(ns.max(1))) };
}
