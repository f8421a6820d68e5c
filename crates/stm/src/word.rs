//! Values that fit one word, and values of several words.

use std::num::{NonZeroU32, NonZeroU64};

/// A value that a [`Var`](crate::Var) holds as the 64 bits of one word.
///
/// Small structures implement it with two shifts. `from_word` is given nothing but results of
/// `into_word`, and zero for nodes of a structure that nobody has filled.
///
/// ```
/// use hearth_stm::Word;
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct Point {
///     x: i32,
///     y: i32,
/// }
///
/// impl Word for Point {
///     fn into_word(self) -> u64 {
///         (self.x as u32, self.y as u32).into_word()
///     }
///
///     fn from_word(word: u64) -> Point {
///         let (x, y) = <(u32, u32)>::from_word(word);
///         Point { x: x as i32, y: y as i32 }
///     }
/// }
/// assert_eq!(Point::from_word(Point { x: -1, y: 2 }.into_word()), Point { x: -1, y: 2 });
/// ```
pub trait Word: Copy + Send + 'static {
    /// The value as bits.
    fn into_word(self) -> u64;

    /// The value of these bits.
    fn from_word(word: u64) -> Self;
}

macro_rules! integers {
    ($($kind:ty),*) => { $(
        impl Word for $kind {
            #[inline(always)]
            fn into_word(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn from_word(word: u64) -> $kind {
                word as $kind
            }
        }
    )* };
}
integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl Word for () {
    #[inline(always)]
    fn into_word(self) -> u64 {
        0
    }

    #[inline(always)]
    fn from_word(_: u64) {}
}

impl Word for bool {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.into()
    }

    #[inline(always)]
    fn from_word(word: u64) -> bool {
        word != 0
    }
}

impl Word for f64 {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.to_bits()
    }

    #[inline(always)]
    fn from_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

impl Word for f32 {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.to_bits().into()
    }

    #[inline(always)]
    fn from_word(word: u64) -> f32 {
        f32::from_bits(word as u32)
    }
}

impl Word for (u32, u32) {
    #[inline(always)]
    fn into_word(self) -> u64 {
        u64::from(self.0) | u64::from(self.1) << 32
    }

    #[inline(always)]
    fn from_word(word: u64) -> (u32, u32) {
        (word as u32, (word >> 32) as u32)
    }
}

impl Word for [u8; 8] {
    #[inline(always)]
    fn into_word(self) -> u64 {
        u64::from_le_bytes(self)
    }

    #[inline(always)]
    fn from_word(word: u64) -> [u8; 8] {
        word.to_le_bytes()
    }
}

/// Zero stands for `None`.
impl Word for Option<u32> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.map_or(0, |value| u64::from(value) + 1)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Option<u32> {
        word.checked_sub(1).map(|value| value as u32)
    }
}

/// Zero stands for `None`.
impl Word for Option<NonZeroU32> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.map_or(0, |value| value.get().into())
    }

    #[inline(always)]
    fn from_word(word: u64) -> Option<NonZeroU32> {
        NonZeroU32::new(word as u32)
    }
}

/// Zero stands for `None`.
impl Word for Option<NonZeroU64> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.map_or(0, NonZeroU64::get)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Option<NonZeroU64> {
        NonZeroU64::new(word)
    }
}

/// A value of several words, for a [`Wide`](crate::Wide).
pub trait Words<const N: usize>: Copy + Send + 'static {
    /// The value as words.
    fn into_words(self) -> [u64; N];

    /// The value of these words.
    fn from_words(words: [u64; N]) -> Self;
}

impl<T: Word, const N: usize> Words<N> for [T; N] {
    #[inline]
    fn into_words(self) -> [u64; N] {
        self.map(T::into_word)
    }

    #[inline]
    fn from_words(words: [u64; N]) -> [T; N] {
        words.map(T::from_word)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn same<T: Word + PartialEq + std::fmt::Debug>(values: &[T]) {
        for value in values {
            assert_eq!(T::from_word(value.into_word()), *value);
        }
    }

    #[test]
    fn values_survive_as_words() {
        same(&[i64::MIN, -1, 0, 1, i64::MAX]);
        same(&[i8::MIN, -1, 0, i8::MAX]);
        same(&[i32::MIN, -1, 0, i32::MAX]);
        same(&[u32::MAX, 0]);
        same(&[f64::MIN, -0.5, 0.0, f64::INFINITY]);
        same(&[f32::MIN, -0.5, 0.0, f32::INFINITY]);
        same(&[true, false]);
        same(&[(1, u32::MAX), (u32::MAX, 0)]);
        same(&[*b"mnemonic", [255; 8]]);
        same(&[None, Some(0), Some(u32::MAX)]);
        same(&[None, NonZeroU32::new(7)]);
        same(&[None, NonZeroU64::new(u64::MAX)]);
    }
}
