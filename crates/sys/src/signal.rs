//! Signals, awaited in a thread of one's own.

use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

pub const INTERRUPT: i32 = libc::SIGINT;
pub const TERMINATE: i32 = libc::SIGTERM;
pub const PIPE: i32 = libc::SIGPIPE;
pub const USER_1: i32 = libc::SIGUSR1;
pub const HANG_UP: i32 = libc::SIGHUP;
pub const QUIT: i32 = libc::SIGQUIT;
pub const USER_2: i32 = libc::SIGUSR2;
pub const CHILD: i32 = libc::SIGCHLD;
/// The key at a terminal that suspends programs.
pub const SUSPEND: i32 = libc::SIGTSTP;
pub const STOP: i32 = libc::SIGSTOP;
pub const CONTINUE: i32 = libc::SIGCONT;

/// A signal that no other code uses, for a process to send to itself.
pub fn own() -> i32 {
    libc::SIGRTMAX() - 1
}

/// Sends a signal to this process. May be called in a signal handler.
pub fn send_self(signal: i32) {
    // SAFETY: neither call touches memory.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// A set of signals.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// A set of these signals.
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

    /// Blocks the signals for the calling thread and those it will start, so that `wait` gets them.
    pub fn block(&self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &self.0, std::ptr::null_mut()) };
    }

    /// Runs an action with all signals blocked, for threads that it starts: they leave all signals
    /// to the program's own.
    pub fn all_blocked<R>(action: impl FnOnce() -> R) -> R {
        // SAFETY: a set of signals is plain numbers, for which zero is good.
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: both sets are local variables.
        let failure = unsafe {
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before)
        };
        let result = action();
        if failure == 0 {
            // SAFETY: the set is the one from before.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
        }
        result
    }

    /// Unblocks the signals for the calling thread.
    pub fn unblock(&self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &self.0, std::ptr::null_mut()) };
    }

    /// Has a command begin with the signals unblocked; it would inherit them blocked.
    pub fn unblock_in(&self, command: &mut Command) {
        let set = self.0;
        // SAFETY: the closure runs in the child, possibly of many threads, before exec: it makes
        // one call that is allowed there, with a set that it owns.
        unsafe {
            command.pre_exec(move || {
                match libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) {
                    0 => Ok(()),
                    error => Err(io::Error::from_raw_os_error(error)),
                }
            });
        }
    }

    /// Waits for one of the signals, which must be blocked.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: the set is initialised, and `signal` is written only on success.
        match unsafe { libc::sigwait(&self.0, &mut signal) } {
            0 => Ok(signal),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// True if this process ignores the signal, as under `nohup` and in background jobs.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: with no new action, sigaction only fills `old`.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
}

/// Ignores a signal.
pub fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// The byte that stands for an arrival.
pub const NOTICE: u8 = 1;

/// Descriptor that the handler writes to; -1 before there is one.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// Turns each arrival of the signal, in any thread, into a byte, [`NOTICE`], to be read from the
/// returned socket. For one signal of a process, and once.
pub fn arrivals(signal: i32) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    // A handler must never block. The socket holds hundreds of arrivals; further ones are lost.
    writer.set_nonblocking(true)?;
    let writer = writer.into_raw_fd();
    // Release pairs with the handler's load, though the number needs no order.
    WRITER.store(writer, Ordering::Release);
    let handler: extern "C" fn(i32) = note;
    // SAFETY: the handler only does what a signal handler may: it reads an atomic and writes to a
    // socket. SA_RESTART keeps system calls of others from failing.
    let is_set = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, std::ptr::null_mut()) == 0
    };
    if is_set {
        Ok(reader)
    } else {
        Err(io::Error::last_os_error())
    }
}

extern "C" fn note(_signal: i32) {
    // SAFETY: errno is the interrupted code's: it is kept as it was. The descriptor is never
    // closed, and one byte is written.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(WRITER.load(Ordering::Acquire), [NOTICE].as_ptr().cast(), 1);
        *errno = before;
    }
}

impl Signals {
    /// Waits as `wait` does; also returns whether a process sent the signal. That signal went to
    /// this process only, while a key at a terminal reaches all processes started there.
    pub fn wait_and_tell(&self) -> io::Result<(i32, bool)> {
        // SAFETY: the set is initialised, and `told` is written on success.
        unsafe {
            let mut told: libc::siginfo_t = std::mem::zeroed();
            match libc::sigwaitinfo(&self.0, &mut told) {
                signal if signal > 0 => Ok((signal, told.si_code <= 0)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

impl Signals {
    /// Waits as [`Signals::wait_and_tell`] does, at most for the time given. None if no signal
    /// came.
    pub fn wait_for(&self, time: std::time::Duration) -> Option<(i32, bool)> {
        let time = libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: the set is initialised, the time is only read, and `told` is written on success.
        unsafe {
            let mut told: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(&self.0, &mut told, &time);
            (signal > 0).then_some((signal, told.si_code <= 0))
        }
    }
}

/// Lets `CHILD` tell of children that have ended, and not of those that were stopped or go on.
pub fn ignore_stopped_children() {
    // SAFETY: the structure is initialised, and the disposition is the default.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());
    }
}

/// Sends a signal to another process. False if there is no such process, or it may not be
/// signalled.
pub fn send(process: u32, signal: i32) -> bool {
    let Ok(process) = i32::try_from(process) else {
        return false;
    };
    // SAFETY: the call touches no memory.
    process > 0 && unsafe { libc::kill(process, signal) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn each_arrival_is_a_byte() {
        let mut socket = arrivals(libc::SIGUSR2).unwrap();
        for _ in 0..3 {
            // SAFETY: the signal has a handler.
            unsafe { libc::raise(libc::SIGUSR2) };
        }
        let mut bytes = [0; 3];
        socket.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [NOTICE; 3]);
    }
}
