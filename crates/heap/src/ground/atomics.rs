//! Atomics: the standard ones, or the model checker's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

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

/// Atomics that one thread at a time stores to.
pub(crate) trait Owned {
    type Value;

    /// A relaxed load by the thread that stores.
    ///
    /// The model checker gets to know that nobody else stores. It must: of several loads before a store it
    /// remembers the last one only, and would not try the store before the loads of others if the owner's own load
    /// came between them.
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
                // SAFETY: nobody else stores; the model checker tells if somebody does.
                #[cfg(loom)]
                return unsafe { self.unsync_load() };
            }
        }
    )* };
}
owned!(AtomicU8: u8, AtomicU32: u32, AtomicU64: u64);

/// Order for the owner of a heap, towards the helper, which has all threads pass a barrier: only the compiler
/// could change it. And towards handlers of signals, which run on the same thread.
#[inline]
pub(crate) fn owner_fence() {
    #[cfg(not(loom))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    // The model knows no barrier of all threads.
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
