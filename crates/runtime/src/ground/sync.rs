//! Atomics, locks and cells: the standard library's, or the model checker's under `--cfg loom`.
//!
//! The channel protocol takes everything it shares between threads from here, so that one source
//! is both run and checked.

/// Half of a barrier whose other half is the kernel's ([`hearth_sys::membarrier`]): order for the
/// compiler only. The model checker and Miri know no such barriers; there both halves are fences,
/// which is what the kernel makes of them for the threads that matter.
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

/// What the system gives threads to sleep at, as the model checker has it.
#[cfg(loom)]
pub(crate) mod futex {
    use super::{AtomicU32, yield_now};

    pub(crate) fn wait(_: &AtomicU32, _: u32) {
        yield_now();
    }

    pub(crate) fn wake_one(_: usize) {}
}

/// Barriers that all threads pass.
#[cfg(loom)]
pub(crate) mod membarrier {
    use super::{Ordering, fence};

    pub(crate) fn is_available() -> bool {
        true
    }

    /// The fence that the others do not have is in `compiler_fence`.
    pub(crate) fn everywhere() {
        fence(Ordering::SeqCst);
    }
}

/// A word at which one thread sleeps. To the model checker a sleeper is blocked until it is woken,
/// and may wake for no reason, as at a futex.
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

    /// Sleeps while the word is this.
    pub(crate) fn sleep(&self, while_: u32) {
        // Acquire: what the waker did is visible.
        while self.value.load(Ordering::Acquire) == while_ {
            #[cfg(not(loom))]
            futex::wait(&self.value, while_);
            #[cfg(loom)]
            self.bell.wait();
        }
    }

    /// Stores another value and wakes who sleeps.
    ///
    /// # Safety
    /// The word is there until it is stored. Models keep theirs until every thread has ended.
    pub(crate) unsafe fn wake(word: *const Word, value: u32) {
        // SAFETY: as the caller promises. The address of the word is of use when it may be gone.
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

    /// Wakes who sleeps; the word has another value already.
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

/// Locks, whatever happened to earlier holders: the runtime aborts on a panic, so a poisoned lock
/// is never seen.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// A cell whose users agree by protocol on who may touch it. The model checker watches them.
pub(crate) struct Guarded<T> {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<T>,
    #[cfg(not(loom))]
    cell: std::cell::UnsafeCell<T>,
}

// SAFETY: the cell is reached only through `with` and `with_mut`, whose callers promise that nobody
// writes meanwhile: several may look at once, and one after another may change it. So what is
// inside must bear both. Whoever puts in what does not, raw pointers say, answers for it in a type
// of its own.
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
    /// Nobody writes the cell meanwhile.
    pub(crate) unsafe fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        #[cfg(loom)]
        // SAFETY: as the caller promises.
        return self.cell.with(|value| look(unsafe { &*value }));
        #[cfg(not(loom))]
        // SAFETY: as the caller promises.
        return look(unsafe { &*self.cell.get() });
    }

    /// # Safety
    /// Nobody else touches the cell meanwhile, `change` itself included.
    pub(crate) unsafe fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(loom)]
        // SAFETY: as the caller promises.
        return self.cell.with_mut(|value| change(unsafe { &mut *value }));
        #[cfg(not(loom))]
        // SAFETY: as the caller promises.
        return change(unsafe { &mut *self.cell.get() });
    }
}

/// A plain cell of something shared, whose users agree by protocol on who may touch it. The model
/// checker watches them.
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
        // SAFETY: the model fails where somebody else writes meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    pub(crate) fn set(&self, value: T) {
        self.replace(value);
    }

    pub(crate) fn replace(&self, value: T) -> T {
        // SAFETY: the model fails where somebody else looks or writes meanwhile.
        self.0
            .with_mut(|place| unsafe { std::mem::replace(&mut *place, value) })
    }
}

/// A box; without memory for it, the process ends.
pub(crate) fn boxed<T>(value: T) -> Box<T> {
    let layout = std::alloc::Layout::new::<T>();
    debug_assert!(layout.size() > 0);
    // SAFETY: the layout is not empty; a block of it that holds a value makes a box.
    unsafe {
        let block = std::alloc::alloc(layout).cast::<T>();
        if block.is_null() {
            exits::out_of_memory("the program", layout.size());
        }
        block.write(value);
        Box::from_raw(block)
    }
}

/// What few components and half-channels ever need: made when it is first changed, and until then
/// as if it were the default.
pub(crate) struct Lazily<T>(Guarded<Option<Box<T>>>);

impl<T: Default> Lazily<T> {
    pub(crate) fn new() -> Lazily<T> {
        Lazily(Guarded::new(None))
    }

    /// # Safety
    /// Nobody writes it meanwhile.
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
    /// Nobody else touches it meanwhile, `change` itself included.
    pub(crate) unsafe fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: as the caller promises.
        unsafe {
            self.0
                .with_mut(|value| change(value.get_or_insert_with(|| boxed(T::default()))))
        }
    }

    /// Is there anything but the default?
    ///
    /// # Safety
    /// Nobody writes it meanwhile.
    pub(crate) unsafe fn is_made(&self) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.0.with(Option::is_some) }
    }
}

/// The same for the standard library's lock, in the parts that the model checker does not see.
pub(crate) fn lock_std<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
