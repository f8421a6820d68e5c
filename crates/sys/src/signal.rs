//! Waiting for signals in a thread of one's own.

use std::io;

pub const INTERRUPT: i32 = libc::SIGINT;
pub const TERMINATE: i32 = libc::SIGTERM;
pub const PIPE: i32 = libc::SIGPIPE;

/// A set of signals.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// The set of the signals named.
    pub fn of(signals: &[i32]) -> Signals {
        // SAFETY: sigemptyset initialises the set; sigaddset takes any number.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for &signal in signals {
                libc::sigaddset(&mut set, signal);
            }
            Signals(set)
        }
    }

    /// Holds them back from the calling thread and those it will start, so that `wait` gets them.
    pub fn block(&self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &self.0, std::ptr::null_mut()) };
    }

    /// Lets them through to the calling thread.
    pub fn unblock(&self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, std::ptr::null_mut()) };
    }

    /// Sleeps until one of them, blocked before, arrives.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: the set is initialised, and `signal` is written only on success.
        match unsafe { libc::sigwait(&self.0, &mut signal) } {
            0 => Ok(signal),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Does this process ignore the signal, as `nohup` and background jobs do?
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action, sigaction only fills `old`.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
}

/// Ignores a signal from now on.
pub fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
