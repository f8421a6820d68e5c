//! A barrier on all threads of the process at once, paid for by the one that asks.
//!
//! A thread that does something all the time and one that rarely wants to know of it usually both
//! need a fence. With this, the first needs none: its accesses are in order for whoever has called
//! [`everywhere`] between.

use std::sync::OnceLock;

const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

fn membarrier(command: libc::c_int) -> bool {
    // Miri does not know the call: as a kernel without it.
    if cfg!(miri) {
        return false;
    }
    // SAFETY: the call takes numbers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Can this process have such barriers? Linux has them since 4.14, and a filter of system calls may
/// forbid them. Asked once; call it before the first barrier.
pub fn is_available() -> bool {
    // Miri has no such call. There the barrier is a fence, and users make the other half one too.
    if cfg!(miri) {
        return true;
    }
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED))
}

/// All threads of this process that run now pass a full barrier before this returns; those that do
/// not run passed one when they stopped. Nothing where it is not available.
///
/// Ends the process if it is refused after it was available, as by a filter of system calls that was
/// installed since. The threads on the other side have left their fences out, relying on this, and
/// may be past the place where one was missing: no fence here makes up for that, and to go on would
/// be to sleep for ever now and then, or to touch together what one has to touch alone. To sleep
/// with a limit of time would mend the first only, and hide it.
pub fn everywhere() {
    if cfg!(miri) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        return;
    }
    // Once more, as it is refused before the process has registered, which the question does.
    if !membarrier(PRIVATE_EXPEDITED) && is_available() && !membarrier(PRIVATE_EXPEDITED) {
        refused();
    }
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
    use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

    /// Each of two threads writes, then reads what the other writes. With a barrier on one side and
    /// only the compiler's order on the other, never do both read nothing.
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
