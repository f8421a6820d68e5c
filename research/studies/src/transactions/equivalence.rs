//! Test that two figures are the same up to a bound: two one-sided tests (TOST).
//!
//! That a difference is not significant shows nothing; few and noisy runs never differ
//! significantly. So the question is turned round. The runs of a contender are paired with those of
//! the untraced program of the same turn; the deviations `(X - untraced) / untraced` have a mean,
//! and if its interval of 90 % lies within the bound on both sides, two one-sided tests at 5 % each
//! reject that the deviation is as large as the bound.

use crate::judging::{Figure, Relation};

/// Mean deviation of pairs of runs, with its interval of 90 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// The mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The standard normal distribution is below this in 95 of 100 cases.
const NORMAL: f64 = 1.644_853_6;

/// Student's distribution is below this in 95 of 100 cases: the series of Cornish and Fisher around
/// the normal one, within 1 % from three degrees of freedom on.
fn student(freedom: f64) -> f64 {
    let z = NORMAL;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

impl Deviation {
    /// The deviation of runs from those of the same turns; `None` of fewer than three pairs.
    #[must_use]
    pub fn of(runs: &[f64], from: &[f64]) -> Option<Deviation> {
        let pairs = runs.iter().zip(from).filter(|(_, from)| **from > 0.0);
        let deviations: Vec<f64> = pairs.map(|(run, from)| run / from - 1.0).collect();
        let number = deviations.len() as f64;
        if deviations.len() < 3 {
            return None;
        }
        let mean = deviations.iter().sum::<f64>() / number;
        let squares: f64 = deviations.iter().map(|it| (it - mean).powi(2)).sum();
        let error = (squares / (number - 1.0) / number).sqrt();
        let half = student(number - 1.0) * error;
        Some(Deviation {
            mean,
            low: mean - half,
            high: mean + half,
        })
    }

    /// True if the two are shown to be the same up to a bound.
    #[must_use]
    pub fn is_within(&self, bound: f64) -> bool {
        self.low > -bound && self.high < bound
    }

    /// The size of the deviation in units of a bound: less if it is shown to be within, more if it
    /// is shown to be outside.
    #[must_use]
    pub fn against(&self, bound: f64) -> Figure {
        let (least, most) = match self.low <= 0.0 && self.high >= 0.0 {
            true => (0.0, self.low.abs().max(self.high.abs())),
            false => (
                self.low.abs().min(self.high.abs()),
                self.low.abs().max(self.high.abs()),
            ),
        };
        let relation = match () {
            () if most < bound => Relation::Less,
            () if least > bound => Relation::More,
            () => Relation::Unclear,
        };
        let of = |value: f64| value / bound;
        Figure {
            relation,
            ratio: Some((of(self.mean.abs()), of(least), of(most))),
        }
    }

    /// Puts it in words, in percent.
    #[must_use]
    pub fn words(&self) -> String {
        let percent = |value: f64| format!("{:+.1}", 100.0 * value);
        format!(
            "{} % ({} to {})",
            percent(self.mean),
            percent(self.low),
            percent(self.high)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_factors_are_those_of_the_tables() {
        for (freedom, factor) in [(3.0, 2.353), (9.0, 1.833), (29.0, 1.699)] {
            let found = student(freedom);
            assert!((found - factor).abs() < 0.01 * factor, "{freedom}: {found}");
        }
    }
}
