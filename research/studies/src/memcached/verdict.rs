//! The figures from which the claims are judged.
//!
//! What the source saw on 64 cores and few do not show is no refutation: it *cannot be shown here*,
//! and the figures are told with what was measured of the cause.

use super::explain::explained;
use super::measured::Measured;
use super::published;
use super::results::Results;
use crate::claims::{Claims, Evidence, Size};
use crate::judging::{Figure, Relation};

/// The claim that is our own.
pub const AUTO: &str = "auto";
/// Ratios this near to 1 are alike. Gains of some percent are what this study is about.
pub const ALIKE: f64 = 0.05;

/// What the source claims, and what we add.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/memcached/claims.md"),
    size: Size::Difference(0.1),
};

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

/// Of the medians of runs, with the bootstrap interval of their ratio.
#[must_use]
pub fn of_runs(of: &[f64], to: &[f64]) -> Option<Figure> {
    let (value, low, high) = Figure::of_runs(of, to)?.ratio?;
    Some(between(value, low, high))
}

/// What the source published.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// What was measured.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.site.cores.len());
    Measured(results).put_all(&mut evidence);
    evidence.explain(explained(results));
    evidence
}
