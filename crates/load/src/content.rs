//! The content of a value: every byte follows from the key, the version and the size, so a reply
//! can be checked without remembering what was sent.
//!
//! ```text
//! 0        8        16       24                      size
//! +--------+--------+--------+------------------------+
//! | key    | version| check  | bytes of a fixed pool, |
//! |        |        |        | from a place by check  |
//! +--------+--------+--------+------------------------+
//! check = mix(key, version, size)
//! ```
//!
//! Values smaller than the head are cut; they cannot be checked.

use thiserror::Error;

use crate::random::{Random, mix};

/// Size of the head; shorter values cannot be checked.
pub const HEAD: usize = 24;
/// Number of places in the pool where a value may start: a few kilobytes, which stay in the cache.
const PLACES: usize = 512;

/// The head of an undamaged value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the key it was written for.
    pub key: u64,
    /// Number of the write to that key.
    pub version: u64,
}

/// Reason why a value is not one that was ever written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Harm {
    /// Shorter than its head.
    #[error("too short to be one that was written")]
    Short,
    /// The head contradicts itself.
    #[error("its first 24 bytes contradict each other")]
    Head,
    /// The head is consistent, but the byte at this place is not what was written.
    #[error("byte {0} is not what was written")]
    Body(usize),
}

/// The pool that all values take their bytes from.
#[derive(Clone, Debug)]
pub struct Content {
    pool: Vec<u8>,
}

fn check(key: u64, version: u64, size: usize) -> u64 {
    mix(mix(key).wrapping_add(version) ^ (size as u64) << 32)
}

impl Content {
    /// A pool for values of up to `size_max` bytes.
    pub fn new(size_max: usize) -> Content {
        let mut random = Random::new(0x636f_6e74);
        let length = (size_max + PLACES * 8).next_multiple_of(8);
        let mut pool = Vec::with_capacity(length);
        while pool.len() < length {
            pool.extend_from_slice(&random.number().to_le_bytes());
        }
        Content { pool }
    }

    fn body(&self, check: u64, length: usize) -> &[u8] {
        let place = (check >> 32) as usize % PLACES * 8;
        &self.pool[place..place + length]
    }

    /// Appends the value of `size` bytes that the key has in this version.
    pub fn append(&self, key: u64, version: u64, size: usize, to: &mut Vec<u8>) {
        let check = check(key, version, size);
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&key.to_le_bytes());
        head[8..16].copy_from_slice(&version.to_le_bytes());
        head[16..].copy_from_slice(&check.to_le_bytes());
        to.extend_from_slice(&head[..size.min(HEAD)]);
        to.extend_from_slice(self.body(check, size.saturating_sub(HEAD)));
    }

    /// Checks every byte of a value and returns its key and version.
    ///
    /// # Errors
    /// The damage.
    pub fn examine(&self, value: &[u8]) -> Result<Head, Harm> {
        let Some((head, body)) = value.split_at_checked(HEAD) else {
            return Err(Harm::Short);
        };
        let number = |place: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[place..place + 8]);
            u64::from_le_bytes(bytes)
        };
        let (key, version) = (number(0), number(8));
        let check = check(key, version, value.len());
        if number(16) != check || body.len() + PLACES * 8 > self.pool.len() {
            return Err(Harm::Head);
        }
        let expected = self.body(check, body.len());
        if body != expected {
            let same = body.iter().zip(expected).take_while(|(a, b)| a == b);
            return Err(Harm::Body(HEAD + same.count()));
        }
        Ok(Head { key, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_and_size_is_noticed() {
        let content = Content::new(300);
        let mut value = Vec::new();
        content.append(7, 9, 300, &mut value);
        assert_eq!(value.len(), 300);
        let head = Head { key: 7, version: 9 };
        assert_eq!(content.examine(&value), Ok(head));
        for place in 0..value.len() {
            value[place] ^= 1;
            let harm = content.examine(&value).unwrap_err();
            let expected = if place < HEAD {
                Harm::Head
            } else {
                Harm::Body(place)
            };
            assert_eq!(harm, expected);
            value[place] ^= 1;
        }
        for size in 0..300 {
            assert!(content.examine(&value[..size]).is_err());
        }
    }

    #[test]
    fn a_mix_of_two_values_is_noticed() {
        let content = Content::new(1024);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        content.append(1, 1, 1024, &mut old);
        content.append(1, 2, 1024, &mut new);
        for cut in 1..1024 {
            let torn = [&new[..cut], &old[cut..]].concat();
            let is_torn = torn != old && torn != new;
            assert_eq!(content.examine(&torn).is_err(), is_torn, "cut at {cut}");
        }
    }

    #[test]
    fn small_values_are_cut_not_refused() {
        let content = Content::new(8);
        let mut value = Vec::new();
        content.append(1, 1, 8, &mut value);
        assert_eq!(value.len(), 8);
        assert_eq!(content.examine(&value), Err(Harm::Short));
    }
}
