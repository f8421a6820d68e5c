//! From samples to a figure with an interval that covers.
//!
//! Three layers, each with its own variation: chunks of operations at one place, places within one
//! round (a cache line keeps its own latency for as long as it lives), rounds over the time of the
//! probe. The first two are folded into one value a round. The interval comes from the rounds, as
//! only they show what changes from time to time: with r rounds of continuous, independent values,
//! the k-th smallest and k-th largest enclose the median with probability 1 − 2·P(Bin(r, ½) < k),
//! whatever the distribution. No normality is assumed, and few rounds give wide intervals.
//!
//! Rounds that follow each other are not independent where the machine drifts: then r rounds say as
//! much as r·(1 − ρ)/(1 + ρ) independent ones would, ρ being the correlation of neighbours, and the
//! interval is widened by the square root of what that takes away.

use hearth_stats::{median_rank, quantile_of_sorted};

/// A figure that was measured. Units are those of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The estimate: a median.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Number of samples that the estimate rests on.
    pub samples: u32,
    /// Number of further samples that were discarded because of a disturbance.
    pub discarded: u32,
}

impl Measured {
    /// Half of the interval's width over the value; 0 for a value of 0.
    pub fn relative_error(&self) -> f64 {
        if self.value == 0.0 {
            return 0.0;
        }
        (self.high - self.low) / 2.0 / self.value.abs()
    }

    /// Does the interval contain a value?
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Measured {
        let (a, b) = (self.low * factor, self.high * factor);
        Measured {
            value: self.value * factor,
            low: a.min(b),
            high: a.max(b),
            ..self
        }
    }
}

/// Result of one round: the median over its places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The round's estimate, with an interval that knows nothing of other rounds.
    pub inner: Measured,
}

/// The median of values in any order; None of none. Values that are not numbers are left out.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile_of_sorted(&sorted(values), 0.5)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The median with a rank interval, for independent values; with fewer than 6 of them the interval
/// is Student's, of logarithms if all are positive, and at least from the least to the greatest.
/// One value shows no variation: its interval is assumed, by [`ALONE`]. None of none.
pub fn median_with_interval(values: &[f64], discarded: u32) -> Option<Measured> {
    let sorted = sorted(values);
    let value = quantile_of_sorted(&sorted, 0.5)?;
    let (least, greatest) = (sorted[0], sorted[sorted.len() - 1]);
    let (low, high) = match median_rank(sorted.len()) {
        Some(rank) => (sorted[rank - 1], sorted[sorted.len() - rank]),
        None if sorted.len() == 1 => apart(value, ALONE),
        None if least > 0.0 => {
            // Times differ by factors, and stay above zero.
            let logarithms: Vec<f64> = sorted.iter().map(|value| value.ln()).collect();
            let factor = student_reach(&logarithms).exp();
            ((value / factor).min(least), (value * factor).max(greatest))
        }
        None => {
            let reach = student_reach(&sorted);
            ((value - reach).min(least), (value + reach).max(greatest))
        }
    };
    Some(Measured {
        value,
        low,
        high,
        samples: sorted.len() as u32,
        discarded,
    })
}

/// A single value may be wrong by this factor: an assumption, as nothing is known of its like.
pub const ALONE: f64 = 2.0;

/// A single round may differ from others by this factor, beside what it knows of itself: an
/// assumption. Twenty quick probes of a busy virtual machine gave latencies between two cores
/// within 5 % of their median.
pub const ONE_ROUND: f64 = 1.1;

/// From a value over a factor to the value times it.
fn apart(value: f64, factor: f64) -> (f64, f64) {
    let (a, b) = (value / factor, value * factor);
    (a.min(b), a.max(b))
}

/// Student's 97.5 % quantiles for 1 to 4 degrees of freedom times the standard error of the mean.
fn student_reach(values: &[f64]) -> f64 {
    const T: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    let count = values.len();
    let Some(t) = count.checked_sub(2).and_then(|index| T.get(index)) else {
        return 0.0;
    };
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    t * (squares / ((count - 1) * count) as f64).sqrt()
}

/// The correlation of neighbours among values in the order of time, by ranks, so that single
/// outliers decide nothing; 0 if it is negative or there are fewer than [`median_rank`] needs.
/// The mean of this estimate for independent values is −1/n, which is added back.
pub fn drift(values: &[f64]) -> f64 {
    let count = values.len();
    if median_rank(count).is_none() {
        return 0.0;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let middle = (count - 1) as f64 / 2.0;
    let mut ranks = vec![0.0; count];
    for (rank, &index) in order.iter().enumerate() {
        ranks[index] = rank as f64 - middle;
    }
    let together: f64 = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let alone: f64 = ranks.iter().map(|rank| rank * rank).sum();
    (together / alone + 1.0 / count as f64).clamp(0.0, DRIFT_MAX)
}

/// Above this there is hardly more than one independent value left in some tens of rounds.
const DRIFT_MAX: f64 = 0.9;

/// The figure that several rounds give together: the median of their estimates. With one round
/// its own interval is all there is, widened by [`ONE_ROUND`]. None of none.
pub fn across_rounds(rounds: &[Round]) -> Option<Measured> {
    let values: Vec<f64> = rounds.iter().map(|round| round.inner.value).collect();
    let total = |count: fn(&Measured) -> u32| {
        rounds
            .iter()
            .fold(0u32, |sum, round| sum.saturating_add(count(&round.inner)))
    };
    let mut all = median_with_interval(&values, total(|inner| inner.discarded))?;
    if let [only] = rounds {
        all.low = apart(only.inner.low, ONE_ROUND).0;
        all.high = apart(only.inner.high, ONE_ROUND).1;
    }
    let correlation = drift(&values);
    let wider = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
    if all.low > 0.0 {
        // Times differ by factors, and stay above zero.
        all.low = all.value * (all.low / all.value).powf(wider);
        all.high = all.value * (all.high / all.value).powf(wider);
    } else {
        all.low = all.value - (all.value - all.low) * wider;
        all.high = all.value + (all.high - all.value) * wider;
    }
    all.samples = total(|inner| inner.samples);
    Some(all)
}
