//! Atomics, cells and words to sleep on: the standard ones, or the model checker's under `--cfg loom`.

#[cfg(not(loom))]
pub(crate) use std::hint::spin_loop;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex as StdMutex, MutexGuard as StdMutexGuard};
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex as StdMutex, MutexGuard as StdMutexGuard};
/// The model checker runs another thread only where this one yields.
#[cfg(loom)]
pub(crate) use loom::thread::{yield_now, yield_now as spin_loop};

pub(crate) use std::sync::atomic::Ordering;

/// True once the kernel's barrier on all threads may be relied upon. Of the standard library in models,
/// too, where both halves are fences anyway.
static LIGHT: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Asks for the kernel's barriers, once a process; without them both halves are fences.
pub(crate) fn prepare_fences() {
    if hearth_sys::membarrier::is_available() {
        // Relaxed: who reads the old value uses a whole fence, which is right with either other half.
        LIGHT.store(true, Ordering::Relaxed);
    }
}

/// The half of a store-load barrier that is passed often: it costs nothing where [`heavy_fence`], its other
/// half, can have the kernel order this thread's accesses.
#[inline]
pub(crate) fn light_fence() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
    #[cfg(not(loom))]
    if LIGHT.load(Ordering::Relaxed) {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The half that is passed by who is about to sleep.
pub(crate) fn heavy_fence() {
    #[cfg(not(loom))]
    if hearth_sys::membarrier::is_available() {
        hearth_sys::membarrier::everywhere();
    }
    fence(Ordering::SeqCst);
}

/// A word that threads change, and sleep on while it does not change.
pub(crate) struct Word {
    value: AtomicU32,
    #[cfg(loom)]
    gate: loom::sync::Mutex<()>,
    #[cfg(loom)]
    bell: loom::sync::Condvar,
}

impl Word {
    pub(crate) fn new(value: u32) -> Word {
        Word {
            value: AtomicU32::new(value),
            #[cfg(loom)]
            gate: loom::sync::Mutex::new(()),
            #[cfg(loom)]
            bell: loom::sync::Condvar::new(),
        }
    }

    /// Sleeps while the word holds `expected`, or shorter.
    pub(crate) fn wait(&self, expected: u32) {
        #[cfg(not(loom))]
        hearth_sys::futex::wait(&self.value, expected);
        #[cfg(loom)]
        {
            // As the kernel does it: looking and falling asleep are one step for those who wake.
            let gate = self.gate.lock().unwrap();
            if self.value.load(Ordering::SeqCst) == expected {
                drop(self.bell.wait(gate).unwrap());
            }
        }
    }

    /// Wakes one of those who sleep on a word, which may be gone already: then nobody, or somebody for
    /// no reason.
    ///
    /// # Safety
    /// Under the model checker the word is there; models see to it that none goes before the end.
    pub(crate) unsafe fn wake_one(word: *const Word) {
        #[cfg(not(loom))]
        // The value is the only field of a word.
        hearth_sys::futex::wake_one_at(word.cast::<AtomicU32>());
        #[cfg(loom)]
        {
            // SAFETY: as the caller promises.
            let word = unsafe { &*word };
            drop(word.gate.lock().unwrap());
            word.bell.notify_one();
        }
    }

    /// Wakes all who sleep on the word.
    pub(crate) fn wake_all(&self) {
        #[cfg(not(loom))]
        hearth_sys::futex::wake_all(&self.value);
        #[cfg(loom)]
        {
            drop(self.gate.lock().unwrap());
            self.bell.notify_all();
        }
    }
}

impl std::ops::Deref for Word {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.value
    }
}

/// A cell whose users agree by protocol on who may touch it. The model checker watches them.
pub(crate) struct Guarded<T> {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<T>,
    #[cfg(not(loom))]
    cell: std::cell::UnsafeCell<T>,
}

// SAFETY: the cell is reached only through `with_mut`, whose callers promise exclusion; what is inside
// then moves between threads, so it must be able to.
unsafe impl<T: Send> Sync for Guarded<T> {}

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
    /// Nobody else touches the cell meanwhile, `change` itself included.
    #[inline]
    pub(crate) unsafe fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(loom)]
        // SAFETY: as the caller promises.
        return self.cell.with_mut(|value| change(unsafe { &mut *value }));
        #[cfg(not(loom))]
        // SAFETY: as the caller promises.
        return change(unsafe { &mut *self.cell.get() });
    }

    #[cfg(not(loom))]
    pub(crate) fn into_inner(self) -> T {
        self.cell.into_inner()
    }
}
