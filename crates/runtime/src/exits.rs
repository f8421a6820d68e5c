//! The ways a program ends. Every one flushes its output first.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use hearth_sys::descriptor::{self, STDERR};

use crate::output;

/// All components have stopped.
pub(crate) const DONE: i32 = 0;
/// An exception nobody caught, or a deadlock.
pub(crate) const FAILED: i32 = 1;
/// A bad option.
pub(crate) const USAGE: i32 = 2;
/// The environment is unfit: no memory, no threads, a full disk.
pub(crate) const UNFIT: i32 = 3;
/// Our own bug.
pub(crate) const BUG: i32 = 4;
/// Nobody reads the output any more: what the signal would give.
pub(crate) const PIPE_CLOSED: i32 = 128 + 13;

static UNCAUGHT: AtomicBool = AtomicBool::new(false);
/// Not 0: the code of an end that has begun, by a signal.
static ENDING: AtomicI32 = AtomicI32::new(0);

/// Remembers that an exception ended a component.
pub(crate) fn note_uncaught() {
    UNCAUGHT.store(true, Ordering::Relaxed);
}

/// From now on the program ends with this code, whatever its components do.
pub(crate) fn begin(code: i32) {
    ENDING.store(code, Ordering::SeqCst);
}

/// Has a signal begun the end?
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst) != 0
}

/// All components have stopped.
pub(crate) fn all_stopped() {
    #[cfg(not(loom))]
    if crate::embed::is_on() {
        return;
    }
    #[cfg(not(loom))]
    if crate::remote::owes_answers() {
        // Proxies of this very thread's worker may owe them.
        let ending = std::thread::Builder::new().name("ending".to_owned());
        if ending.spawn(settle_and_end).is_ok() {
            return;
        }
    }
    settle_and_end()
}

fn settle_and_end() {
    #[cfg(not(loom))]
    crate::remote::settle();
    let ending = ENDING.load(Ordering::SeqCst);
    let code = match ending {
        0 if UNCAUGHT.load(Ordering::Relaxed) => FAILED,
        0 => DONE,
        code => code,
    };
    end(code)
}

/// Ends the process.
pub(crate) fn end(code: i32) -> ! {
    output::flush();
    leave(code)
}

#[expect(clippy::disallowed_methods, reason = "the one way out of the process")]
pub(crate) fn leave(code: i32) -> ! {
    crate::simulator::at_exit(code);
    #[cfg(not(loom))]
    crate::heap::log::end();
    crate::watching::end(code);
    std::process::exit(code)
}

/// Ends it because the environment does not give what the program needs.
#[cold]
pub(crate) fn unfit(message: &str) -> ! {
    output::flush();
    // Not `complain`: the output may be what is unfit.
    let _ = descriptor::write_all(STDERR, format!("hearth: {message}\n").as_bytes());
    leave(UNFIT)
}

/// Ends it because somebody has made more references to a half-channel or component than are counted.
#[cold]
pub(crate) fn too_many_references(to: &str) -> ! {
    unfit(&format!(
        "{to} cannot have more than {} references; keep fewer of them, and drop those that are not needed",
        crate::channel::REFERENCES_MAX,
    ))
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::UNFIT;

    /// Does something in a process of its own, the test of this name once more: it ends as unfit, and says
    /// why.
    pub(crate) fn assert_unfit(test: &str, why: &str, action: impl FnOnce()) {
        const INSIDE: &str = "HEARTH_TEST_INSIDE";
        if std::env::var_os(INSIDE).is_some() {
            return action();
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(UNFIT), "{told}");
        assert!(told.contains(why), "{told}");
    }
}
