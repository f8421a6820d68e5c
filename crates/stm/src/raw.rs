//! Shared words as the algorithms see them, and pointers to them in logs.

use hearth_atomics::{AtomicU64, Ordering};

/// A shared word.
///
/// Its loads acquire and its stores release: a thread that loads what a transaction wrote also
/// sees that the transaction holds the word's stripe lock, or the sequence lock, or has released
/// it later. Both algorithms look at their lock after loading a word. On x86 and Arm's v8.3 that
/// costs nothing or next to nothing, and it needs no fence.
pub struct RawWord {
    value: AtomicU64,
    /// The place of the word in its model. Addresses differ from run to run, and so would the
    /// stripes.
    #[cfg(loom)]
    number: usize,
}

impl RawWord {
    #[cfg(not(loom))]
    pub(crate) const fn new(value: u64) -> RawWord {
        RawWord {
            value: AtomicU64::new(value),
        }
    }

    #[cfg(loom)]
    pub(crate) fn numbered(value: u64, number: usize) -> RawWord {
        RawWord {
            value: AtomicU64::new(value),
            number,
        }
    }

    /// The address; in a model a made-up one.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        #[cfg(not(loom))]
        return std::ptr::from_ref(self).addr();
        #[cfg(loom)]
        return self.number * size_of::<u64>();
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    /// Loads in the thread that holds the word's lock.
    #[inline(always)]
    pub(crate) fn load_own(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn store(&self, value: u64) {
        self.value.store(value, Ordering::Release);
    }

    #[cfg(not(loom))]
    pub(crate) fn into_inner(self) -> u64 {
        self.value.into_inner()
    }

    #[cfg(not(loom))]
    pub(crate) fn get_mut(&mut self) -> &mut u64 {
        self.value.get_mut()
    }
}

/// A pointer to a shared word, in a log that outlives the transaction.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Target(*const RawWord);

impl Target {
    #[inline(always)]
    pub(crate) fn of(raw: &RawWord) -> Target {
        Target(std::ptr::from_ref(raw))
    }

    /// The first word of a slice, for [`Target::get_at`]: a pointer that is good for all of it, as
    /// one made from a reference to the first word would not be.
    #[inline(always)]
    pub(crate) fn first_of(raws: &[RawWord]) -> Target {
        Target(raws.as_ptr())
    }

    /// The word.
    ///
    /// # Safety
    /// The transaction that logged the word has not ended: a [`Tx<'v, _>`](crate::Tx) takes only
    /// references that live for `'v`, which outlives the transaction.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(self) -> &'a RawWord {
        // SAFETY: the pointer comes from a reference that the caller says is still good.
        unsafe { &*self.0 }
    }

    /// The word `offset` places further in the slice that this word is in.
    ///
    /// # Safety
    /// As for [`Target::get`]. Beyond 0, the target is of [`Target::first_of`], and the slice
    /// reaches that far.
    #[inline(always)]
    pub(crate) unsafe fn get_at<'a>(self, offset: usize) -> &'a RawWord {
        // SAFETY: the caller says that the slice has this word, and is still good; the pointer is
        // good for all of the slice.
        unsafe { &*self.0.add(offset) }
    }
}
