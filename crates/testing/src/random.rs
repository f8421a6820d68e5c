//! Seeded choices. The same seed gives the same choices on every machine.

/// A source of choices with the few shapes the generators need.
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// An independent source, so that two consumers do not disturb each other.
    pub fn fork(&mut self) -> Self {
        Random(self.0.fork())
    }

    pub fn seed(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// From 0 to `limit - 1`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { self.0.usize(..limit) }
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.i64(low..=high)
    }

    pub fn bits(&mut self) -> u32 {
        self.0.u32(..)
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.0.usize(..choices.len())]
    }

    /// An index, with probabilities proportional to the weights.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let total: u32 = weights.iter().sum();
        let mut rest = self.0.u32(..total.max(1));
        for (index, &weight) in weights.iter().enumerate() {
            if rest < weight {
                return index;
            }
            rest -= weight;
        }
        0
    }
}
