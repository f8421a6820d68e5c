//! The ways a program ends. Each flushes its output first.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use hearth_sys::descriptor::{self, STDERR};

use super::output;
use super::sync::lock_std as lock;

/// All components have stopped.
pub(crate) const DONE: i32 = 0;
/// An uncaught exception, or a deadlock.
pub(crate) const FAILED: i32 = 1;
/// A bad option.
pub(crate) const USAGE: i32 = 2;
/// The environment is unfit: no memory, no threads, a full disk.
pub(crate) const UNFIT: i32 = 3;
/// Our own bug.
pub(crate) const BUG: i32 = 4;
/// The reader of the output has closed it: the status that the signal would give.
pub(crate) const PIPE_CLOSED: i32 = 128 + 13;

/// Process-wide, as the end of the process is.
static AT_EXIT: Mutex<Vec<fn(i32)>> = Mutex::new(Vec::new());
/// The first thread that leaves.
static LEAVING: OnceLock<ThreadId> = OnceLock::new();
/// Time that actions may take when another thread ends the process, too: a writer of calls has
/// megabytes to store.
const LEAVING_MAX: Duration = Duration::from_secs(5);
static UNCAUGHT: AtomicBool = AtomicBool::new(false);
/// Nonzero: the exit code of an end that a signal has begun.
static ENDING: AtomicI32 = AtomicI32::new(0);

/// Records that an exception ended a component.
pub(crate) fn note_uncaught() {
    UNCAUGHT.store(true, Ordering::Relaxed);
}

/// Fixes the exit code from now on, regardless of the components.
pub(crate) fn begin(code: i32) {
    ENDING.store(code, Ordering::SeqCst);
}

/// Whether a signal has begun the end.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst) != 0
}

/// The exit code when all components have stopped and nothing else decides it.
pub(crate) fn code_of_end() -> i32 {
    match ENDING.load(Ordering::SeqCst) {
        0 if UNCAUGHT.load(Ordering::Relaxed) => FAILED,
        0 => DONE,
        code => code,
    }
}

/// Registers an action for the end of the process. It gets the exit code; the last one registered
/// runs first.
pub(crate) fn at_exit(action: fn(i32)) {
    lock(&AT_EXIT).push(action);
}

/// Ends the process.
pub(crate) fn end(code: i32) -> ! {
    output::flush();
    leave(code)
}

#[expect(clippy::disallowed_methods, reason = "the one way out of the process")]
pub(crate) fn leave(code: i32) -> ! {
    // The first thread that leaves runs the actions; another one must not cut them off.
    let here = thread::current().id();
    if *LEAVING.get_or_init(|| here) != here {
        thread::sleep(LEAVING_MAX);
    }
    // Taken out before the calls: an action may end the process itself.
    let mut actions = std::mem::take(&mut *lock(&AT_EXIT));
    while let Some(action) = actions.pop() {
        action(code);
    }
    std::process::exit(code)
}

/// Ends the process because the environment does not give what the program needs.
#[cold]
pub(crate) fn unfit(message: &str) -> ! {
    output::flush();
    // Not `complain`: the output itself may be unfit.
    let _ = descriptor::write_all(STDERR, format!("hearth: {message}\n").as_bytes());
    leave(UNFIT)
}

/// Ends the process for lack of memory.
#[cold]
pub(crate) fn out_of_memory(who: &str, size: usize) -> ! {
    let size = if size == usize::MAX {
        "more memory than there can be".to_owned()
    } else {
        format!("{size} bytes")
    };
    unfit(&format!(
        "out of memory: {who} asked for {size}; use smaller arrays or fewer components, or raise \
         the limit (ulimit -v)"
    ))
}

/// Most references to a half-channel or component; one more ends the program. An overflowing count
/// would free the object under its users, and forgotten references take no memory but their count.
/// Every thread may add one at the same moment, hence the room above.
pub(crate) const REFERENCES_MAX: u32 = u32::MAX / 2;

/// Ends the process because a half-channel or component has more references than the count allows.
#[cold]
pub(crate) fn too_many_references(to: &str) -> ! {
    unfit(&format!(
        "{to} cannot have more than {} references; keep fewer of them, and drop those that are not needed",
        REFERENCES_MAX,
    ))
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::UNFIT;

    /// Runs `action` in a process of its own, which runs the test of this name again: it must end
    /// as unfit and print `why`.
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
