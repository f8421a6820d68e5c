//! What the source says of memcached. The files are in `research/studies/published/memcached`; they are facts of this
//! repository, so that a row that cannot be understood is left out and found by a test.

use super::verdict::{Evidence, between};
use crate::judging::{Figure, Relation};

const FINDINGS: &str = include_str!("../../published/memcached/findings.csv");
const SETUP: &str = include_str!("../../published/memcached/setup.csv");

/// Cores of the source's machine.
pub const CORES: usize = 64;

/// A finding: what compares, how, and where the source says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// As [`Evidence`] names it.
    pub name: &'static str,
    /// A ratio, or `more`, `alike` or `less`.
    pub value: &'static str,
    /// Section, figure or table.
    pub place: &'static str,
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// All findings.
#[must_use]
pub fn findings() -> Vec<Finding> {
    let read = |row: Vec<&'static str>| match row[..] {
        [name, value, place] => Some(Finding { name, value, place }),
        _ => None,
    };
    rows(FINDINGS).filter_map(read).collect()
}

/// The source's gain at a share of reads, as a factor.
#[must_use]
pub fn gain(reads: u32) -> Option<f64> {
    let name = format!("gain {reads}");
    let found = findings().into_iter().find(|finding| finding.name == name);
    found?.value.parse().ok()
}

/// The source's set-up: what, how much there, how much here.
#[must_use]
pub fn setup() -> Vec<[&'static str; 3]> {
    rows(SETUP)
        .filter_map(|row| <[&'static str; 3]>::try_from(row).ok())
        .collect()
}

/// Everything that it found, as evidence.
#[must_use]
pub fn evidence() -> Evidence {
    let mut evidence = Evidence::new(CORES);
    for finding in findings() {
        let figure = match (finding.value.parse::<f64>(), Relation::named(finding.value)) {
            (Ok(value), _) => between(value, value, value),
            (Err(_), Some(relation)) => Figure::in_words(relation),
            (Err(_), None) => continue,
        };
        evidence.put(finding.name, figure);
    }
    evidence
}
