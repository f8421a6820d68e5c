//! Medians, quartiles and intervals, for everything that measures.
//!
//! - [`median`] and [`quantile`] of values in any order, [`Summary`] of a list of them.
//! - [`ratio`]: the ratio of two medians with its 95 % bootstrap interval. Wherever Hearth writes
//!   `[a, b]` behind a ratio, it is this interval; quartiles are called quartiles.
//! - [`median_rank`]: which of the ordered values enclose the median, whatever the distribution.
//! - [`clusters`]: whether a figure has one level or goes to and fro between several.
//! - [`agreement`]: how well predictions agree with measurements.
//!
//! Everything here is a function of its arguments. The crate must never know what was measured.
//!
//! ```
//! let ratio = hearth_stats::ratio(&[2.0, 2.1, 1.9], &[1.0, 1.1, 0.9]).expect("there are values");
//! assert!(ratio.low <= 2.0 && 2.0 <= ratio.high);
//! ```
#![forbid(unsafe_code)]

pub mod agreement;
pub mod clusters;

/// The share of cases in which intervals hold the true value.
pub const COVERAGE: f64 = 0.95;

/// The middle of values, or the mean of the two middle ones. `None` for none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which a `share` (0 to 1) of the values lies, linear between neighbours. `None`
/// for none.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values.to_vec()), share)
}

/// [`quantile`] of values in ascending order.
#[must_use]
pub fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    // Equal neighbours may be infinite.
    Some(if below == above {
        below
    } else {
        below + (above - below) * at.fract()
    })
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Summary of a list of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; 0 for one value.
    pub deviation: f64,
    /// The smallest value.
    pub least: f64,
    /// The lower quartile.
    pub lower: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub upper: f64,
    /// The largest value.
    pub most: f64,
}

impl Summary {
    /// Summarises values in any order; `None` for none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Summary> {
        let sorted = sorted(values.to_vec());
        let at = |share| quantile_of_sorted(&sorted, share);
        let count = sorted.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Summary {
            mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
            least: at(0.0)?,
            lower: at(0.25)?,
            median: at(0.5)?,
            upper: at(0.75)?,
            most: at(1.0)?,
        })
    }
}

/// A ratio of two medians, and the interval that holds it in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of the medians.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The bootstrap draws the measurements anew so many times.
const DRAWS: usize = 1000;
/// The same measurements give the same interval.
const SEED: u64 = 0x5eed;

/// The ratio of the median of `above` to that of `below`, with its bootstrap interval. `None` if
/// either is empty, or if the interval has no end because medians of `below` are zero.
#[must_use]
pub fn ratio(above: &[f64], below: &[f64]) -> Option<Ratio> {
    interval(&[above, below], |sides| {
        Some(median(&sides[0])? / median(&sides[1])?)
    })
}

/// The ratio of two ratios of medians, with its bootstrap interval: of the first side to the second
/// over that of the third to the fourth.
#[must_use]
pub fn ratio_of_ratios(sides: [&[f64]; 4]) -> Option<Ratio> {
    interval(&sides, |drawn| {
        let median = |side: usize| median(&drawn[side]);
        Some(median(0)? / median(1)? / (median(2)? / median(3)?))
    })
}

/// A figure computed from several lists of measurements, with its bootstrap interval: each list is
/// drawn anew, and the figure computed of what was drawn. `None` if a list is empty, the
/// figure is none or an end of the interval is infinite.
pub fn interval(lists: &[&[f64]], figure: impl Fn(&[Vec<f64>]) -> Option<f64>) -> Option<Ratio> {
    if lists.iter().any(|list| list.is_empty()) {
        return None;
    }
    let mut drawn: Vec<Vec<f64>> = lists.iter().map(|list| list.to_vec()).collect();
    let value = figure(&drawn)?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut values = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        for (list, drawn) in lists.iter().zip(&mut drawn) {
            drawn.fill_with(|| list[random.usize(..list.len())]);
        }
        values.push(figure(&drawn)?);
    }
    let values = sorted(values);
    let tail = (1.0 - COVERAGE) / 2.0;
    let (low, high) = (
        quantile_of_sorted(&values, tail)?,
        quantile_of_sorted(&values, 1.0 - tail)?,
    );
    [value, low, high]
        .iter()
        .all(|number| number.is_finite())
        .then_some(Ratio { value, low, high })
}

/// The largest k, counted from 1, whose k-th smallest and k-th largest of `count` values enclose
/// the median with at least [`COVERAGE`]; `None` if even the extremes do not (fewer than 6 values).
#[must_use]
pub fn median_rank(count: usize) -> Option<usize> {
    // Beyond this the binomial is a normal distribution to three digits.
    const EXACT: usize = 200;
    let tail = (1.0 - COVERAGE) / 2.0;
    if count > EXACT {
        let half_width = 1.96 * (count as f64).sqrt() / 2.0;
        return Some(((count as f64 / 2.0 - half_width).floor() as usize).max(1));
    }
    // P(Bin(count, ½) ≤ k − 1) must not exceed the tail.
    let mut term = 0.5f64.powi(count as i32);
    let mut sum = term;
    let mut rank = None;
    for k in 1..=count / 2 {
        if sum > tail {
            break;
        }
        rank = Some(k);
        term *= (count - k + 1) as f64 / k as f64;
        sum += term;
    }
    rank
}
