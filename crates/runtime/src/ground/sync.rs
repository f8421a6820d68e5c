//! Atomics, locks and cells: the standard library's, or the model checker's under `--cfg loom`.
//!
//! The channel protocol takes everything shared between threads from here, so that one source both
//! runs and is checked.

/// The light half of an asymmetric barrier: a compiler fence. The heavy half is the kernel's
/// ([`hearth_sys::membarrier`]). The model checker and Miri lack such barriers; there both halves
/// are fences, which is the effect the kernel gives them on the threads that matter.
#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence as compiler_fence;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(loom)]
pub(crate) use loom::{hint::spin_loop, thread::yield_now};
#[cfg(not(any(loom, miri)))]
pub(crate) use std::sync::atomic::compiler_fence;
#[cfg(all(miri, not(loom)))]
pub(crate) use std::sync::atomic::fence as compiler_fence;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::{hint::spin_loop, thread::yield_now};

pub(crate) use std::sync::atomic::Ordering;

#[cfg(not(loom))]
pub(crate) use hearth_sys::{futex, membarrier};

/// The system's means of sleeping, as the model checker has them.
#[cfg(loom)]
pub(crate) mod futex {
    use super::{AtomicU32, yield_now};

    pub(crate) fn wait(_: &AtomicU32, _: u32) {
        yield_now();
    }

    pub(crate) fn wake_one(_: usize) {}
}

/// Barriers on all threads.
#[cfg(loom)]
pub(crate) mod membarrier {
    use super::{Ordering, fence};

    pub(crate) fn is_available() -> bool {
        true
    }

    /// The other threads' fence is in `compiler_fence`.
    pub(crate) fn everywhere() {
        fence(Ordering::SeqCst);
    }
}

/// A word at which one thread sleeps. In the model a sleeper is blocked until woken, and may wake
/// spuriously, as in a futex wait.
pub(crate) struct Word {
    value: AtomicU32,
    #[cfg(loom)]
    bell: loom::sync::Notify,
}

impl Word {
    pub(crate) fn new(value: u32) -> Word {
        Word {
            value: AtomicU32::new(value),
            #[cfg(loom)]
            bell: loom::sync::Notify::new(),
        }
    }

    /// Sleeps while the word has this value.
    pub(crate) fn sleep(&self, while_: u32) {
        // Acquire: makes the waker's writes visible.
        while self.value.load(Ordering::Acquire) == while_ {
            #[cfg(not(loom))]
            futex::wait(&self.value, while_);
            #[cfg(loom)]
            self.bell.wait();
        }
    }

    /// Stores another value and wakes the sleeper.
    ///
    /// # Safety
    /// The word is alive until the store. Models keep theirs until every thread has ended.
    pub(crate) unsafe fn wake(word: *const Word, value: u32) {
        // SAFETY: as the caller promises. A futex wake needs only the address of a word that may be
        // gone.
        unsafe {
            let address = (&raw const (*word).value).addr();
            (*word).value.store(value, Ordering::Release);
            #[cfg(not(loom))]
            futex::wake_one(address);
            #[cfg(loom)]
            {
                let _ = address;
                (*word).bell.notify();
            }
        }
    }

    /// Wakes the sleeper; the word already has another value.
    pub(crate) fn ring(&self) {
        #[cfg(not(loom))]
        futex::wake_one(std::ptr::from_ref(&self.value).addr());
        #[cfg(loom)]
        self.bell.notify();
    }
}

impl std::ops::Deref for Word {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.value
    }
}

use super::exits;

/// Locks a mutex, ignoring poison: the runtime aborts on a panic, so a poisoned lock is never seen.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// A cell with access by protocol, which the model checker verifies.
pub(crate) struct Guarded<T> {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<T>,
    #[cfg(not(loom))]
    cell: std::cell::UnsafeCell<T>,
}

// SAFETY: the cell is reached only through `with` and `with_mut`, whose callers promise that no
// other thread writes meanwhile: several may read at once, and writers take turns. So the contents
// must be `Send` and `Sync`. A type with contents that are not, such as raw pointers, must justify
// that itself.
unsafe impl<T: Send + Sync> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Guarded<T> {
        Guarded {
            #[cfg(loom)]
            cell: loom::cell::UnsafeCell::new(value),
            #[cfg(not(loom))]
            cell: std::cell::UnsafeCell::new(value),
        }
    }

    /// # Safety
    /// No other thread writes the cell meanwhile.
    pub(crate) unsafe fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        #[cfg(loom)]
        // SAFETY: as the caller promises.
        return self.cell.with(|value| look(unsafe { &*value }));
        #[cfg(not(loom))]
        // SAFETY: as the caller promises.
        return look(unsafe { &*self.cell.get() });
    }

    /// # Safety
    /// Nothing else touches the cell meanwhile, not even `change` itself.
    pub(crate) unsafe fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(loom)]
        // SAFETY: as the caller promises.
        return self.cell.with_mut(|value| change(unsafe { &mut *value }));
        #[cfg(not(loom))]
        // SAFETY: as the caller promises.
        return change(unsafe { &mut *self.cell.get() });
    }
}

/// A shared plain cell with access by protocol, which the model checker verifies.
#[cfg(not(loom))]
pub(crate) type Watched<T> = std::cell::Cell<T>;

#[cfg(loom)]
pub(crate) struct Watched<T>(loom::cell::UnsafeCell<T>);

#[cfg(loom)]
impl<T: Copy> Watched<T> {
    pub(crate) fn new(value: T) -> Watched<T> {
        Watched(loom::cell::UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> T {
        // SAFETY: the model fails if another thread writes meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    pub(crate) fn set(&self, value: T) {
        self.replace(value);
    }

    pub(crate) fn replace(&self, value: T) -> T {
        // SAFETY: the model fails if another thread reads or writes meanwhile.
        self.0
            .with_mut(|place| unsafe { std::mem::replace(&mut *place, value) })
    }
}

/// Allocates a box; ends the process if memory runs out.
pub(crate) fn boxed<T>(value: T) -> Box<T> {
    let layout = std::alloc::Layout::new::<T>();
    debug_assert!(layout.size() > 0);
    // SAFETY: the layout is not empty, and a block of it that holds a value makes a box.
    unsafe {
        let block = std::alloc::alloc(layout).cast::<T>();
        if block.is_null() {
            exits::out_of_memory("the program", layout.size());
        }
        block.write(value);
        Box::from_raw(block)
    }
}

/// A field that few components and half-channels need: allocated on first change, and reading as
/// the default until then.
pub(crate) struct Lazily<T>(Guarded<Option<Box<T>>>);

impl<T: Default> Lazily<T> {
    pub(crate) fn new() -> Lazily<T> {
        Lazily(Guarded::new(None))
    }

    /// # Safety
    /// No other thread writes it meanwhile.
    pub(crate) unsafe fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        // SAFETY: as the caller promises.
        unsafe {
            self.0.with(|value| match value {
                Some(value) => look(value),
                None => look(&T::default()),
            })
        }
    }

    /// # Safety
    /// Nothing else touches it meanwhile, not even `change` itself.
    pub(crate) unsafe fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: as the caller promises.
        unsafe {
            self.0
                .with_mut(|value| change(value.get_or_insert_with(|| boxed(T::default()))))
        }
    }

    /// Whether the field has been allocated.
    ///
    /// # Safety
    /// No other thread writes it meanwhile.
    pub(crate) unsafe fn is_made(&self) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.0.with(Option::is_some) }
    }
}

/// Locks the standard library's mutex, in the parts that the model checker does not see.
pub(crate) fn lock_std<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
