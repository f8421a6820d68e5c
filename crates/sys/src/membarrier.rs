//! Asymmetric barriers: one thread makes all threads of the process pass a barrier.
//!
//! Two threads, one that acts often and one that rarely looks, usually both need a fence. With this
//! barrier the first needs none: its accesses are in order for every thread that has called
//! [`everywhere`] in between.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_atomics::{compiler_fence, fence};
use rustix::thread::MembarrierCommand;

fn membarrier(command: MembarrierCommand) -> bool {
    // Miri does not know the call; it counts as a kernel without it.
    !cfg!(miri) && rustix::thread::membarrier(command).is_ok()
}

/// True if this process can use such barriers. Linux has them since 4.14; a filter of system calls
/// may forbid them. Asked once; call it before the first barrier.
pub fn is_available() -> bool {
    // Miri and loom do not know the call. There the barrier is a fence, and users make the other
    // half one too.
    if cfg!(any(miri, loom)) {
        return true;
    }
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited))
}

/// Makes every running thread of this process pass a full barrier before this returns; threads that
/// do not run passed one when they stopped. Does nothing where barriers are not available.
///
/// Ends the process if the kernel refuses the call after it was available, as a filter of system
/// calls installed later does. The threads on the other side have left out their fences, relying on
/// this, and may be past the place where one was missing: no fence here makes up for that. To go on
/// would mean sleeping forever now and then, or two threads touching what only one may. A timeout
/// would mend only the first, and hide the second.
pub fn everywhere() {
    if cfg!(any(miri, loom)) {
        fence(Ordering::SeqCst);
        return;
    }
    // Tries again: the kernel refuses before the process has registered, which the question does.
    if !membarrier(MembarrierCommand::PrivateExpedited)
        && is_available()
        && !membarrier(MembarrierCommand::PrivateExpedited)
    {
        refused();
    }
}

/// True once [`light_fence`] may rely on the kernel's barrier. An atomic of the standard library in
/// models too, where both halves are fences anyway.
static RELIED_ON: AtomicBool = AtomicBool::new(false);

/// Registers the process for the barrier that [`heavy_fence`] uses. Before this, and where the
/// kernel has none, both halves are fences.
pub fn prepare_fences() {
    if is_available() {
        // Relaxed: a thread that reads the old value uses a whole fence, which pairs with either
        // form of the other half.
        RELIED_ON.store(true, Ordering::Relaxed);
    }
}

/// The frequent half of a store-load barrier. Free where [`heavy_fence`], its other half, has the
/// kernel order this thread's accesses.
#[inline]
pub fn light_fence() {
    if RELIED_ON.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The rare half of the barrier, for a thread about to sleep.
pub fn heavy_fence() {
    // A model needs one fence, below.
    #[cfg(not(loom))]
    if is_available() {
        everywhere();
    }
    fence(Ordering::SeqCst);
}

#[cold]
fn refused() -> ! {
    const TEXT: &str = "hearth: the system call membarrier is refused now and was allowed when the \
                        program began, most likely by a filter of system calls (seccomp) installed \
                        since; threads rely on it, and the process ends: allow membarrier in the \
                        filter, or install the filter before anything of hearth is used\n";
    // SAFETY: writes from a constant, and ends the process; neither returns into anything.
    unsafe {
        libc::write(libc::STDERR_FILENO, TEXT.as_ptr().cast(), TEXT.len());
        libc::abort()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// Two threads each write, then read what the other writes. With a barrier on one side and only
    /// the compiler's order on the other, at least one reads the other's write.
    #[test]
    fn one_side_pays_for_both() {
        if !is_available() {
            return;
        }
        let (x, y, turn) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut seen = Vec::new();
                for round in 1..=2000 {
                    while turn.load(Ordering::Acquire) != round {
                        std::hint::spin_loop();
                    }
                    x.store(round, Ordering::Relaxed);
                    compiler_fence(Ordering::SeqCst);
                    seen.push(y.load(Ordering::Relaxed) == round);
                    turn.store(0, Ordering::Release);
                }
                seen
            });
            let mut mine = Vec::new();
            for round in 1..=2000 {
                turn.store(round, Ordering::Release);
                y.store(round, Ordering::Relaxed);
                everywhere();
                mine.push(x.load(Ordering::Relaxed) == round);
                while turn.load(Ordering::Acquire) != 0 {
                    std::hint::spin_loop();
                }
            }
            let theirs = other.join().expect("it does not panic");
            assert!(
                mine.iter()
                    .zip(&theirs)
                    .all(|(mine, theirs)| *mine || *theirs)
            );
        });
    }
}
