//! Agreement of predictions with measurements.

use crate::median;

/// The median of `|predicted − measured| / measured`, percent. Pairs are `(predicted, measured)`;
/// those measured as zero do not count. `None` when none is left.
#[must_use]
pub fn median_absolute_percentage_error(pairs: &[(f64, f64)]) -> Option<f64> {
    let errors: Vec<f64> = pairs
        .iter()
        .filter(|(_, measured)| *measured != 0.0)
        .map(|(predicted, measured)| 100.0 * ((predicted - measured) / measured).abs())
        .collect();
    median(&errors)
}

/// Kendall's rank correlation τ-b, −1 to 1; ties count for neither side. `None` when either side is
/// constant or there are fewer than two pairs.
#[must_use]
pub fn kendall(pairs: &[(f64, f64)]) -> Option<f64> {
    let (mut score, mut first, mut second) = (0_i64, 0_i64, 0_i64);
    for (at, a) in pairs.iter().enumerate() {
        for b in &pairs[at + 1..] {
            let x = sign(a.0 - b.0);
            let y = sign(a.1 - b.1);
            score += x * y;
            first += x * x;
            second += y * y;
        }
    }
    let scale = (first as f64).sqrt() * (second as f64).sqrt();
    (scale > 0.0).then(|| score as f64 / scale)
}

/// Spearman's rank correlation, −1 to 1; tied values share their mean rank. `None` as for
/// [`kendall`].
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let x = ranks(pairs.iter().map(|pair| pair.0));
    let y = ranks(pairs.iter().map(|pair| pair.1));
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let (mut cross, mut first, mut second) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(&y) {
        cross += (a - middle) * (b - middle);
        first += (a - middle).powi(2);
        second += (b - middle).powi(2);
    }
    let scale = first.sqrt() * second.sqrt();
    (scale > 0.0).then(|| cross / scale)
}

fn sign(difference: f64) -> i64 {
    i64::from(difference > 0.0) - i64::from(difference < 0.0)
}

fn ranks(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let numbers: Vec<f64> = numbers.collect();
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut start = 0;
    while start < order.len() {
        let value = numbers[order[start]];
        let tied = order[start..]
            .iter()
            .take_while(|&&at| numbers[at] == value)
            .count()
            .max(1);
        for &at in &order[start..start + tied] {
            ranks[at] = start as f64 + (tied as f64 - 1.0) / 2.0;
        }
        start += tied;
    }
    ranks
}
