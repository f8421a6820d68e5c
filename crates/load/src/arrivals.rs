//! Due times of an open loop's requests.

use crate::plan::Gaps;
use crate::random::Random;

/// A stream of due times that does not depend on what happens.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    start_ns: u64,
    /// Time from the start to the next due time. Nanoseconds are exact for more than a hundred
    /// days.
    offset_ns: f64,
    mean_ns: f64,
    gaps: Gaps,
}

impl Arrivals {
    /// `rate` due times a second from `start_ns`. With constant gaps the first comes after `phase`,
    /// a share of a gap from 0 to 1.
    pub(crate) fn new(
        rate: f64,
        gaps: Gaps,
        start_ns: u64,
        phase: f64,
        random: &mut Random,
    ) -> Arrivals {
        let mean_ns = 1e9 / rate;
        Arrivals {
            start_ns,
            offset_ns: match gaps {
                Gaps::Constant => phase * mean_ns,
                Gaps::Poisson => random.exponential(mean_ns),
            },
            mean_ns,
            gaps,
        }
    }

    /// The next due time.
    pub(crate) fn due_ns(&self) -> u64 {
        self.start_ns + self.offset_ns as u64
    }

    /// Moves on to the next due time.
    pub(crate) fn advance(&mut self, random: &mut Random) {
        self.offset_ns += match self.gaps {
            Gaps::Constant => self.mean_ns,
            Gaps::Poisson => random.exponential(self.mean_ns),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_at_the_rate_asked() {
        for gaps in [Gaps::Constant, Gaps::Poisson] {
            let mut random = Random::new(5);
            let mut arrivals = Arrivals::new(1e6, gaps, 1_000, 0.5, &mut random);
            let mut last = 0;
            for _ in 0..100_000 {
                assert!(arrivals.due_ns() >= last);
                last = arrivals.due_ns();
                arrivals.advance(&mut random);
            }
            let expected = 100_000_000u64;
            assert!(last.abs_diff(expected) < expected / 50, "{gaps:?}: {last}");
        }
    }
}
