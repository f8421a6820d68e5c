//! A keyed hash, fast for short keys.
//!
//! The hash's key is random in each process, so a client that does not know it cannot choose keys
//! that fall into one chain. It multiplies 64 by 64 bits and folds the result, which is a few
//! cycles for 16 bytes, and is not a cryptographic promise: a client that can time single requests
//! to the nanosecond might learn something. SipHash would promise more and costs about five times
//! as much.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A hash function of its own.
#[derive(Clone, Copy, Debug)]
pub struct KeyHash([u64; 4]);

impl Default for KeyHash {
    fn default() -> KeyHash {
        KeyHash::new()
    }
}

impl KeyHash {
    /// A hash function with this process's random key.
    #[must_use]
    pub fn new() -> KeyHash {
        let random = |i: u64| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(i);
            // Odd, so that a multiplication by it loses nothing.
            hasher.finish() | 1
        };
        KeyHash([random(0), random(1), random(2), random(3)])
    }

    /// The hash of a key.
    #[inline]
    #[must_use]
    pub fn of(&self, key: &[u8]) -> u64 {
        let [a, b, c, d] = self.0;
        let mut state = fold(key.len() as u64 ^ a, b);
        let mut rest = key;
        while let Some((first, more)) = rest.split_first_chunk::<16>() {
            state = fold(half(first, 0) ^ state ^ c, half(first, 8) ^ d);
            rest = more;
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        state = fold(half(&last, 0) ^ state ^ d, half(&last, 8) ^ b);
        fold(state ^ a, c)
    }
}

#[inline]
fn half(bytes: &[u8; 16], at: usize) -> u64 {
    let mut half = [0; 8];
    half.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(half)
}

#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::KeyHash;

    #[test]
    fn keys_that_differ_in_one_bit_differ_in_half_of_the_bits() {
        let hash = KeyHash::new();
        let (mut differing, mut pairs) = (0, 0);
        for length in 1..=64_usize {
            let key: Vec<u8> = (0..length).map(|i| (i * 37 + length) as u8).collect();
            for bit in 0..length * 8 {
                let mut other = key.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                differing += (hash.of(&key) ^ hash.of(&other)).count_ones();
                pairs += 1;
            }
        }
        let mean = f64::from(differing) / f64::from(pairs);
        assert!((31.0..33.0).contains(&mean), "{mean} bits of 64 differ");
    }

    #[test]
    fn numbered_keys_fill_parts_evenly() {
        let hash = KeyHash::new();
        let mut high = [0; 256];
        let mut low = [0; 256];
        for i in 0..256_000 {
            let value = hash.of(format!("key:{i}").as_bytes());
            high[(value >> 56) as usize] += 1;
            low[(value & 255) as usize] += 1;
        }
        for count in high.into_iter().chain(low) {
            assert!((800..1200).contains(&count), "{count} of 1,000 expected");
        }
    }
}
