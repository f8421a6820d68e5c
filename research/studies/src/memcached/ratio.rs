//! Ratios as this study judges them: a difference of some percent counts as more.

use crate::judging::{Figure, Relation};

/// Ratios this near to 1 are alike. This study is about gains of some percent.
pub const ALIKE: f64 = 0.05;

/// A ratio with its interval.
#[must_use]
pub fn between(value: f64, low: f64, high: f64) -> Figure {
    let is_near = (1.0 - ALIKE..=1.0 + ALIKE).contains(&value);
    let relation = if is_near && low <= 1.0 + ALIKE && high >= 1.0 - ALIKE {
        Relation::Alike
    } else if low > 1.0 {
        Relation::More
    } else if high < 1.0 {
        Relation::Less
    } else {
        Relation::Unclear
    };
    Figure {
        relation,
        ratio: Some((value, low, high)),
    }
}

/// Compares the medians of runs, with the bootstrap interval of their ratio.
#[must_use]
pub fn of_runs(of: &[f64], to: &[f64]) -> Option<Figure> {
    let (value, low, high) = Figure::of_runs(of, to)?.ratio?;
    Some(between(value, low, high))
}
