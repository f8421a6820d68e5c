//! Random numbers with a seed.

/// Xorshift of 64 bits.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed. Neighbouring seeds have unlike sequences.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.bits();
        }
        random
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below a bound.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of a product: no division.
        (((self.bits() >> 32) as u128 * bound as u128) >> 32) as usize
    }

    /// Whether something happens that does so in this many cases of 100.
    #[inline]
    pub fn happens(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Puts items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
