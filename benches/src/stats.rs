//! Medians, spreads and the interval of a ratio.

use hearth_testing::random::Random;

/// What is told of a list of measurements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    pub median: f64,
    /// The quartiles.
    pub low: f64,
    pub high: f64,
}

/// None of no measurements.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Summary {
        median: quantile(&sorted, 0.5)?,
        low: quantile(&sorted, 0.25)?,
        high: quantile(&sorted, 0.75)?,
    })
}

/// Between the nearest two values in proportion.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = part * last as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    Some(below + (above - below) * place.fract())
}

/// The ratio of two medians and an interval that holds it in 95 of 100 cases, by drawing the
/// measurements anew a thousand times. The seed is fixed: the same measurements give the same
/// interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

const DRAWS: usize = 1000;
const SEED: u64 = 0x5eed;

/// `above` over `below`; None if either is empty.
pub fn ratio(above: &[f64], below: &[f64]) -> Option<Ratio> {
    let value = summary(above)?.median / summary(below)?.median;
    let mut random = Random::new(SEED);
    let mut ratios = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let mut draw = |values: &[f64]| -> Option<f64> {
            let drawn: Vec<f64> = values.iter().map(|_| *random.pick(values)).collect();
            Some(summary(&drawn)?.median)
        };
        ratios.push(draw(above)? / draw(below)?);
    }
    ratios.sort_by(f64::total_cmp);
    Some(Ratio {
        value,
        low: quantile(&ratios, 0.025)?,
        high: quantile(&ratios, 0.975)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_five() {
        let found = summary(&[5.0, 1.0, 3.0, 2.0, 4.0]).expect("five values");
        assert_eq!((found.low, found.median, found.high), (2.0, 3.0, 4.0));
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(summary(&[]), None);
        assert_eq!(ratio(&[], &[1.0]), None);
    }

    #[test]
    fn the_interval_holds_the_ratio() {
        let found = ratio(&[2.0, 2.1, 1.9, 2.0], &[1.0, 1.1, 0.9, 1.0]).expect("values");
        assert!((found.value - 2.0).abs() < 1e-9);
        assert!(found.low <= found.value && found.value <= found.high);
    }
}
