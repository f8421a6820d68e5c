//! The ways a program ends. Every one flushes its output first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use hearth_sys::descriptor::{self, STDERR};

use super::output;
use super::sync::lock_std as lock;

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

/// How the process ends is the process's.
static AT_EXIT: Mutex<Vec<fn(i32)>> = Mutex::new(Vec::new());
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

/// The code of an end for which there is no other reason than that all components have stopped.
pub(crate) fn code_of_end() -> i32 {
    match ENDING.load(Ordering::SeqCst) {
        0 if UNCAUGHT.load(Ordering::Relaxed) => FAILED,
        0 => DONE,
        code => code,
    }
}

/// Has something done right before the process ends: with its code, the last one asked for first.
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
    // Taken before it is called: what is done may end the process itself.
    let mut actions = std::mem::take(&mut *lock(&AT_EXIT));
    while let Some(action) = actions.pop() {
        action(code);
    }
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

/// Ends it for want of memory.
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

/// With more references to a half-channel or component than these the program ends. A count that
/// runs over would have the thing freed under those who refer to it, and a reference can be
/// forgotten: its count is all that it takes. As many threads as there are may add one at the same
/// moment, so there is room above.
pub(crate) const REFERENCES_MAX: u32 = u32::MAX / 2;

/// Ends it because somebody has made more references to a half-channel or component than are
/// counted.
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

    /// Does something in a process of its own, the test of this name once more: it ends as unfit,
    /// and says why.
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
