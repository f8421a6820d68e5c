//! Atomics, locks, cells and words to sleep on: the real ones, or loom's under `--cfg loom`.
//!
//! The crate takes everything that threads share from here, so that one source is both run and
//! model-checked. The façade itself is [`hearth_atomics`] and, where it needs the kernel,
//! [`hearth_sys`].

use super::exits;

pub(crate) use hearth_atomics::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Guarded,
    Ordering, PlainCell, compiler_fence, fence, spin_loop,
};
pub(crate) use hearth_sys::membarrier;
pub(crate) use hearth_sys::threading::{Mutex, MutexGuard, lock, lock_std, yield_now};

/// A word at which one thread sleeps.
#[repr(transparent)]
pub(crate) struct Word(hearth_sys::futex::Word);

impl Word {
    pub(crate) fn new(value: u32) -> Word {
        Word(hearth_sys::futex::Word::new(value))
    }

    /// Sleeps while the word has this value.
    pub(crate) fn sleep(&self, while_: u32) {
        self.sleep_unless(while_, || false);
    }

    /// Sleeps while the word has this value, unless `is_over`: then whoever makes that true wakes
    /// the sleeper.
    pub(crate) fn sleep_unless(&self, while_: u32, is_over: impl Fn() -> bool) {
        // Acquire: makes the waker's writes visible.
        while self.load(Ordering::Acquire) == while_ && !is_over() {
            self.0.wait(while_);
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
            let inner = &raw const (*word).0;
            (*inner).store(value, Ordering::Release);
            hearth_sys::futex::Word::wake_one(inner);
        }
    }

    /// Wakes the sleeper of a word that already has another value and may be gone.
    ///
    /// # Safety
    /// Models keep their words until every thread has ended.
    pub(crate) unsafe fn wake_gone(word: *const Word) {
        // SAFETY: as the caller promises; the word is its only field, and its address is all that
        // is used.
        unsafe { hearth_sys::futex::Word::wake_one(word.cast()) };
    }

    /// Wakes the sleeper; the word already has another value.
    pub(crate) fn ring(&self) {
        self.0.wake_all();
    }
}

impl std::ops::Deref for Word {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.0
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

impl<T: Default + Sync> Lazily<T> {
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
