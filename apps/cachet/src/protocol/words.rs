//! Words, numbers and base64, with the habits of the C functions that clients rely on.

use crate::items::{Entry, Marks};

/// Largest number of words of a line.
pub(super) const WORDS_MAX: usize = 24;

/// The words of a line.
#[derive(Debug)]
pub(super) struct Words<'a> {
    words: [&'a [u8]; WORDS_MAX],
    count: usize,
}

impl<'a> Words<'a> {
    /// Splits a line at spaces. Other white space is part of words, and a zero byte ends the line.
    #[inline]
    #[must_use]
    pub(super) fn of(line: &'a [u8]) -> Words<'a> {
        let mut found = Words {
            words: [&[]; WORDS_MAX],
            count: 0,
        };
        for word in split(line) {
            if found.count == WORDS_MAX {
                break;
            }
            found.words[found.count] = word;
            found.count += 1;
        }
        found
    }

    /// Number of words, up to the largest.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// One word; empty if there are fewer.
    #[must_use]
    pub(super) fn get(&self, at: usize) -> &'a [u8] {
        self.words.get(at).copied().unwrap_or_default()
    }

    /// The words from one on.
    #[must_use]
    pub(super) fn from(&self, at: usize) -> &[&'a [u8]] {
        self.words[..self.count].get(at..).unwrap_or_default()
    }

    /// The last word, of those up to the largest number; empty if there are none.
    #[must_use]
    pub(super) fn last(&self) -> &'a [u8] {
        self.get(self.count.wrapping_sub(1))
    }

    /// True if the last word is `noreply`.
    #[must_use]
    pub(super) fn end_in_noreply(&self) -> bool {
        self.count > 0 && self.words[self.count - 1] == b"noreply"
    }
}

/// The words of a line, one after the other.
#[inline]
pub(super) fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = memchr::memchr(0, line).unwrap_or(line.len());
    line[..end]
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Splits a number into its sign and its digits, which end the text or are followed by white space
/// and then anything.
fn digits(text: &[u8]) -> Option<(bool, &[u8])> {
    let start = text.iter().position(|&byte| !is_space(byte))?;
    let text = &text[start..];
    let (is_negative, text) = match text[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let is_whole = end > 0
        && text
            .get(end)
            .is_none_or(|&byte| is_space(byte) || byte == 0);
    is_whole.then_some((is_negative, &text[..end]))
}

fn magnitude(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, digit| {
        sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// Parses a number of 64 bits without a sign.
#[must_use]
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    let (is_negative, digits) = digits(text)?;
    let size = magnitude(digits)?;
    let value = if is_negative {
        size.wrapping_neg()
    } else {
        size
    };
    // A minus is accepted if the result looks positive.
    (!is_negative || value >> 63 == 0).then_some(value)
}

/// Parses a number without a sign, to its low 32 bits.
#[must_use]
pub(super) fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned(text).map(|value| value as u32)
}

/// Parses a number with a sign, to its low 32 bits.
#[must_use]
pub(super) fn signed_32(text: &[u8]) -> Option<i32> {
    let (is_negative, digits) = digits(text)?;
    let size = magnitude(digits)?;
    let value = if is_negative {
        0_i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    };
    value.map(|value| value as i32)
}

/// Writes a number.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// Decodes base64 as memcached does: bytes that are not its digits are skipped, padding may stand
/// anywhere in its four, and whatever follows the first padded four is ignored.
#[must_use]
pub(super) fn from_base64<'a>(text: &[u8], place: &'a mut [u8]) -> Option<&'a [u8]> {
    let digits = || {
        text.iter().filter_map(|&byte| match byte {
            b'=' => Some((0, 1)),
            _ => sextet(byte).map(|value| (value, 0)),
        })
    };
    let mut left = digits().count();
    if left == 0 || !left.is_multiple_of(4) {
        return None;
    }
    let (mut digits, mut count) = (digits(), 0);
    while left > 0 {
        let four = digits.by_ref().take(4);
        let (bits, padding) = four.fold((0, 0), |(bits, padding), (value, is_padding)| {
            (bits << 6 | value, padding + is_padding)
        });
        if padding > 2 {
            return None;
        }
        for i in 0..3 - padding {
            *place.get_mut(count)? = (bits >> (16 - 8 * i)) as u8;
            count += 1;
        }
        if padding > 0 {
            break;
        }
        left -= 4;
    }
    Some(&place[..count])
}

/// Writes bytes in base64.
pub(super) fn to_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    for three in bytes.chunks(3) {
        let mut bits = 0;
        for i in 0..3 {
            bits = bits << 8 | u32::from(three.get(i).copied().unwrap_or(0));
        }
        for i in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { digit } else { b'=' });
        }
    }
}

/// True if an item's key must be written in base64: it was given so, or no text command could name
/// it. The latter matters when the mark is lost, as when a number grows longer or an item is
/// vivified. memcached then writes the key as it is, so a key with a line end lets its client forge
/// the answer that another reads next.
pub(super) fn has_binary_key(entry: Entry<'_>) -> bool {
    entry.marks().has(Marks::BINARY_KEY) || memchr::memchr3(b' ', b'\n', 0, entry.key()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        assert_eq!(unsigned(b"12"), Some(12));
        assert_eq!(unsigned(b" 12"), Some(12));
        assert_eq!(unsigned(b"12\tx"), Some(12));
        assert_eq!(unsigned(b"12x"), None);
        assert_eq!(unsigned(b""), None);
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(unsigned(b"+5"), Some(5));
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), None);
        assert_eq!(unsigned_32(b"4294967296"), Some(0));
        assert_eq!(signed_32(b"-1"), Some(-1));
        assert_eq!(signed_32(b"2147483648"), Some(i32::MIN));
        assert_eq!(signed_32(b"4294967297"), Some(1));
        assert_eq!(signed_32(b"99999999999999999999"), None);
    }

    #[test]
    fn base64_goes_there_and_back() {
        let mut place = [0; 250];
        for length in 1..100 {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 91 + length) as u8).collect();
            let mut text = Vec::new();
            to_base64(&mut text, &bytes);
            assert_eq!(from_base64(&text, &mut place), Some(&bytes[..]));
        }
        assert_eq!(from_base64(b"YQ==", &mut place), Some(&b"a"[..]));
        assert_eq!(from_base64(b"YR==", &mut place), Some(&b"a"[..]));
        assert_eq!(from_base64(b"YQE=YQE=", &mut place), Some(&b"a\x01"[..]));
        assert_eq!(from_base64(b"-Y\tQ==!", &mut place), Some(&b"a"[..]));
        assert_eq!(from_base64(b"YQ=I", &mut place), Some(&b"a\0"[..]));
        for wrong in [&b""[..], b"YQ", b"====", b"!!!!", b"Y==="] {
            assert_eq!(from_base64(wrong, &mut place), None);
        }
    }

    #[test]
    fn words_stand_between_spaces() {
        let words = Words::of(b"  set  a\tb 1 noreply ");
        assert_eq!(words.from(0), [&b"set"[..], b"a\tb", b"1", b"noreply"]);
        assert!(words.end_in_noreply());
        assert_eq!(Words::of(b"get a\0b").from(0), [&b"get"[..], b"a"]);
        assert_eq!(Words::of(&b"x ".repeat(99)).len(), WORDS_MAX);
        assert_eq!(Words::of(b" ").len(), 0);
    }
}
