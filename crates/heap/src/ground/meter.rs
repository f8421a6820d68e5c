//! Counters for the bounds in `docs/internals/heap.md`, under the feature `meter`; no code without
//! it.

#[cfg(feature = "meter")]
mod counting {
    use core::sync::atomic::{AtomicU64, Ordering};

    static STEPS: AtomicU64 = AtomicU64::new(0);
    static TOUCHES: AtomicU64 = AtomicU64::new(0);

    /// Counts one turn of a loop.
    pub(crate) fn step() {
        STEPS.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one look at a region's words.
    pub(crate) fn touch() {
        TOUCHES.fetch_add(1, Ordering::Relaxed);
    }

    /// Steps and touches since the last call, summed over all threads.
    pub fn reading() -> (u64, u64) {
        let (steps, touches) = (&STEPS, &TOUCHES);
        (
            steps.swap(0, Ordering::Relaxed),
            touches.swap(0, Ordering::Relaxed),
        )
    }
}

#[cfg(feature = "meter")]
pub use counting::reading;
#[cfg(feature = "meter")]
pub(crate) use counting::{step, touch};

#[cfg(not(feature = "meter"))]
#[inline(always)]
pub(crate) fn step() {}
#[cfg(not(feature = "meter"))]
#[inline(always)]
pub(crate) fn touch() {}
