//! Reproducible random numbers.

/// A generator of 64-bit numbers (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", 2014): one addition and a mix a number, good enough for load, not for
/// secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every bit of a number over all of the result.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(mix(seed.wrapping_add(STEP)))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// At least 0 and below `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// At least 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Above 0 and at most 1, as logarithms need.
    pub fn unit_above_zero(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Draws the time to the next of events that come at random, `mean` apart in the long run.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit_above_zero().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly_and_repeat_with_the_seed() {
        let (mut a, mut b) = (Random::new(1), Random::new(1));
        let mut counts = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            let number = a.below(10);
            assert_eq!(number, b.below(10));
            counts[number as usize] += 1;
            let gap = a.exponential(5.0);
            assert!(gap >= 0.0 && b.exponential(5.0) == gap);
            sum += gap;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)));
        assert!((sum / 100_000.0 - 5.0).abs() < 0.1);
    }
}
