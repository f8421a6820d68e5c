//! Atomics: the standard ones, or the model checker's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A sequentially consistent load, of a word whose writes are all exchanges of that order.
///
/// For the model checker such a load only acquires, and may see what was there before; but it knows fences.
/// There one stands before the load, so of two who change one word and then look at the other's, one
/// sees the change.
#[inline]
pub(crate) fn look(word: &AtomicU64) -> u64 {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
    word.load(Ordering::SeqCst)
}
