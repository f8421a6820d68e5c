//! What the source claims, judged by rules.
//!
//! The same rules judge what is measured here and what the source published. Everything compared is a ratio: *alike* is
//! within [`ALIKE`], *more* an interval above 1; a gain's size is met within [`SIZE`]. What the source saw
//! on 64 cores and fewer than [`MANY`] do not show is no refutation: it *cannot be shown here*, and the figures are
//! told with what was measured of the cause.

use std::collections::BTreeMap;

pub use super::claims::AUTO;
use super::claims::{CLAIMS, Claim};
use super::explain::explained;
use super::measured::Measured;
use super::published;
use super::results::Results;
use crate::judging::{Answer, Figure, Relation, Verdict};

/// Ratios this near to 1 are alike. Gains of some percent are what this study is about.
pub const ALIKE: f64 = 0.05;
/// A gain this near to the published one has its size.
pub const SIZE: f64 = 0.1;
/// Fewer cores than this do not contend for a section as the source's did.
pub const MANY: usize = 8;

/// What claims are judged from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    figures: BTreeMap<String, Figure>,
    cores: usize,
    /// Sentences for each claim that say why it came out so.
    explained: BTreeMap<&'static str, Vec<String>>,
}

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

impl Evidence {
    /// Nothing yet, of a machine of so many cores.
    #[must_use]
    pub fn new(cores: usize) -> Evidence {
        Evidence {
            cores,
            ..Evidence::default()
        }
    }

    /// What the source published.
    #[must_use]
    pub fn published() -> Evidence {
        published::evidence()
    }

    /// What was measured.
    #[must_use]
    pub fn measured(results: &Results) -> Evidence {
        let mut evidence = Evidence::new(results.cores.len());
        Measured(results).put_all(&mut evidence);
        evidence.explained = explained(results);
        evidence
    }

    /// Notes a figure.
    pub fn put(&mut self, name: &str, figure: Figure) {
        self.figures.insert(name.to_owned(), figure);
    }

    /// Notes a figure that may be missing.
    pub(super) fn put_some(&mut self, name: &str, figure: Option<Figure>) {
        if let Some(figure) = figure {
            self.put(name, figure);
        }
    }

    /// A figure.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)
    }

    /// All claims.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        CLAIMS.iter().map(|claim| self.judge(claim)).collect()
    }

    fn judge(&self, claim: &Claim) -> Verdict {
        let found: Vec<(&str, &Figure, Relation)> = claim
            .terms
            .iter()
            .filter_map(|(name, wanted)| Some((*name, self.figures.get(*name)?, *wanted)))
            .collect();
        let told: Vec<String> = found
            .iter()
            .map(|(name, figure, _)| format!("{name} {}", figure.words()))
            .collect();
        let mut because = told.join(", ");
        let held = found
            .iter()
            .filter(|(_, figure, wanted)| figure.relation == *wanted);
        let is_unclear = found
            .iter()
            .any(|(_, figure, _)| figure.relation == Relation::Unclear);
        let answer = if found.len() < claim.terms.len() {
            because = "not measured".into();
            Answer::CannotTell
        } else if held.count() == claim.terms.len() {
            match (claim.size, found[0].1.ratio) {
                (Some(size), Some((value, ..))) if (value - size).abs() > SIZE => {
                    because += &format!(", where the source has {size}");
                    Answer::InPart
                }
                _ => Answer::Yes,
            }
        } else if claim.needs_cores && self.cores < MANY {
            because += &format!(
                "; {} cores contend too little for one section, and servers share them with their clients",
                self.cores
            );
            Answer::CannotTell
        } else if is_unclear {
            because += "; the runs differ by more than that";
            Answer::CannotTell
        } else if found
            .iter()
            .any(|(_, figure, wanted)| figure.relation == *wanted)
        {
            Answer::InPart
        } else {
            Answer::No
        };
        Verdict {
            id: claim.id,
            claim: claim.claim,
            published: Some(claim.published),
            answer,
            because,
            explained: self.explained.get(claim.id).cloned().unwrap_or_default(),
        }
    }
}
