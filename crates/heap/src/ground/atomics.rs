//! The standard atomics, or the model checker's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// Loads with sequential consistency, from a word whose writes are all exchanges of that order.
///
/// Loom treats such a load as an acquire load, which may return an older value; but it models
/// fences. So a fence precedes the load there: of two threads that each change one word and then
/// look at the other's, one sees the change.
#[inline]
pub(crate) fn look(word: &AtomicU64) -> u64 {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
    word.load(Ordering::SeqCst)
}

/// Atomics that only one thread at a time stores to.
pub(crate) trait Owned {
    type Value;

    /// Loads relaxed; only for the thread that stores.
    ///
    /// It tells loom that nobody else stores. Loom needs that: of several loads before a store it
    /// remembers only the last, and would not try the store before the loads of other threads if
    /// the owner's own load came between them.
    fn own(&self) -> Self::Value;
}

macro_rules! owned {
    ($($atomic:ty: $value:ty),*) => { $(
        impl Owned for $atomic {
            type Value = $value;

            #[inline(always)]
            fn own(&self) -> $value {
                #[cfg(not(loom))]
                return self.load(Ordering::Relaxed);
                // SAFETY: only the owner stores; loom reports any other store.
                #[cfg(loom)]
                return unsafe { self.unsync_load() };
            }
        }
    )* };
}
owned!(AtomicU8: u8, AtomicU32: u32, AtomicU64: u64);

/// Orders the owner's accesses towards the helper, which makes all threads pass a barrier, and
/// towards signal handlers on the same thread: so only the compiler has to be kept from reordering.
#[inline]
pub(crate) fn owner_fence() {
    #[cfg(not(loom))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    // Loom has no barrier across all threads.
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
