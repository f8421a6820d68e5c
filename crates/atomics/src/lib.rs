//! Atomics and cells for concurrent code: the standard ones, or loom's under `--cfg loom`.
//!
//! A crate that takes all its shared state from here has one source that is both run and
//! model-checked. Mutexes, yielding and words to sleep on need the standard library or the kernel;
//! their half of this façade is `hearth_sys::{threading, futex::Word, membarrier}`.
//!
//! - [`Guarded`] is a cell whose users keep each other out by protocol; loom verifies that they do.
//! - [`PlainCell`] is the same for `Copy` values, with the interface of [`core::cell::Cell`].
//! - [`SingleWriter`] marks loads by the only thread that stores, which loom explores better.
//! - [`compiler_fence`] and [`load_seq_cst`] do in a model what the real ones do outside.
//!
//! No standard library, no allocation, no features: `libhearth_malloc.so` links this crate, and a
//! feature that another crate switches on must not bring the standard library into it.
//!
//! ```
//! use hearth_atomics::{AtomicU32, Guarded, Ordering};
//!
//! let (turn, value) = (AtomicU32::new(0), Guarded::new(1));
//! // SAFETY: no other thread knows the cell.
//! unsafe { value.with_mut(|value| *value += 1) };
//! turn.store(1, Ordering::Release);
//! ```

#![cfg_attr(not(loom), no_std)]

mod cell;

pub use cell::{Guarded, PlainCell};
pub use core::sync::atomic::Ordering;

#[cfg(not(loom))]
pub use core::{
    hint::spin_loop,
    sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    },
};
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};
/// Loom runs another thread only where this one yields.
#[cfg(loom)]
pub use loom::thread::yield_now as spin_loop;

/// The cheap half of an asymmetric barrier: order for the compiler only. The other half is a
/// barrier on all threads (`hearth_sys::membarrier`), or a signal handler on this one. Loom and
/// Miri know no such barrier; for them this is a fence, which is what the kernel makes of it for
/// the threads that matter.
#[cfg(not(any(loom, miri)))]
pub use core::sync::atomic::compiler_fence;
#[cfg(all(miri, not(loom)))]
pub use core::sync::atomic::fence as compiler_fence;
#[cfg(loom)]
pub use loom::sync::atomic::fence as compiler_fence;

/// Loads, sequentially consistent, a word that is only changed by sequentially consistent
/// exchanges.
///
/// Loom treats such a load as an acquire and may return an older value, but it honours fences. So
/// in a model a fence precedes the load: of two threads that each change one word and then load
/// the other's, at least one sees the other's change.
#[inline]
pub fn load_seq_cst(word: &AtomicU64) -> u64 {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
    word.load(Ordering::SeqCst)
}

/// An atomic that one thread at a time stores to.
pub trait SingleWriter {
    /// The type that the atomic holds.
    type Value;

    /// Loads, relaxed, in the thread that stores.
    ///
    /// Tells loom that no other thread stores. Of several loads before a store loom remembers only
    /// the last: if the writer's own load came after others' loads, loom would not try the store
    /// before those.
    fn load_own(&self) -> Self::Value;
}

macro_rules! single_writer {
    ($($atomic:ty: $value:ty),*) => { $(
        impl SingleWriter for $atomic {
            type Value = $value;

            #[inline(always)]
            fn load_own(&self) -> $value {
                #[cfg(not(loom))]
                return self.load(Ordering::Relaxed);
                // SAFETY: no other thread stores; the model fails if one does.
                #[cfg(loom)]
                return unsafe { self.unsync_load() };
            }
        }
    )* };
}
single_writer!(AtomicU8: u8, AtomicU32: u32, AtomicU64: u64);
