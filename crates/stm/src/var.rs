//! Variables: typed words that transactions read and write.

use std::marker::PhantomData;

use crate::raw::RawWord;
use crate::word::{Word, Words};

/// A variable that transactions share: a word of memory, and nothing beside it.
///
/// All transactions on a variable go through one [`Stm`](crate::Stm). Those of two instances are
/// not atomic to one another, though memory stays safe.
#[repr(transparent)]
pub struct Var<T> {
    raw: RawWord,
    kind: PhantomData<fn() -> T>,
}

#[cfg(not(loom))]
impl<T: Word> Var<T> {
    /// A variable with this value.
    pub fn new(value: T) -> Var<T> {
        Var {
            raw: RawWord::new(value.into_word()),
            kind: PhantomData,
        }
    }

    /// The value of a variable that nobody else knows.
    pub fn into_inner(self) -> T {
        T::from_word(self.raw.into_inner())
    }

    /// Changes a variable that nobody else knows, without a transaction.
    pub fn set_mut(&mut self, value: T) {
        *self.raw.get_mut() = value.into_word();
    }

    /// The value of a variable that nobody else knows, without a transaction.
    pub fn get_mut(&mut self) -> T {
        T::from_word(*self.raw.get_mut())
    }
}

#[cfg(loom)]
impl<T: Word> Var<T> {
    /// A variable whose stripe is the same in each run of a model.
    pub(crate) fn numbered(value: T, number: usize) -> Var<T> {
        Var {
            raw: RawWord::numbered(value.into_word(), number),
            kind: PhantomData,
        }
    }
}

impl<T> Var<T> {
    #[inline(always)]
    pub(crate) fn raw(&self) -> &RawWord {
        &self.raw
    }

    #[inline]
    pub(crate) fn raw_slice(vars: &[Var<T>]) -> &[RawWord] {
        // SAFETY: a variable is a transparent wrapper of its word, so slices of both look alike.
        unsafe { &*(std::ptr::from_ref(vars) as *const [RawWord]) }
    }
}

#[cfg(not(loom))]
impl<T: Word + Default> Default for Var<T> {
    fn default() -> Var<T> {
        Var::new(T::default())
    }
}

/// A variable of several words, which a transaction reads and writes as one.
pub struct Wide<T, const N: usize> {
    words: [Var<u64>; N],
    kind: PhantomData<fn() -> T>,
}

impl<T: Words<N>, const N: usize> Wide<T, N> {
    /// A variable with this value.
    #[cfg(not(loom))]
    pub fn new(value: T) -> Wide<T, N> {
        Wide {
            words: value.into_words().map(Var::new),
            kind: PhantomData,
        }
    }

    /// The value of a variable that nobody else knows.
    #[cfg(not(loom))]
    pub fn into_inner(self) -> T {
        T::from_words(self.words.map(Var::into_inner))
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> &[Var<u64>; N] {
        &self.words
    }
}
