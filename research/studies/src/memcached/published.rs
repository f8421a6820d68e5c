//! The source's statements on memcached. The files are in `research/studies/published/memcached`;
//! they are facts of this repository, so that a row that cannot be understood is left out and found
//! by a test.

use super::ratio::between;
use crate::claims::{self, Finding};

const FINDINGS: &str = include_str!("../../published/memcached/findings.csv");
const SETUP: &str = include_str!("../../published/memcached/setup.csv");

/// Cores of the source's machine.
pub const CORES: usize = 64;

/// All findings.
#[must_use]
pub fn findings() -> Vec<Finding> {
    claims::findings(FINDINGS, |value| between(value, value, value))
}

/// The source's gain at a share of reads, as a factor.
#[must_use]
pub fn gain(reads: u32) -> Option<f64> {
    let name = format!("gain {reads}");
    let found = findings().into_iter().find(|finding| finding.name == name);
    found?.figure.ratio.map(|(value, ..)| value)
}

/// The source's set-up: what, how much there, how much here.
#[must_use]
pub fn setup() -> Vec<[&'static str; 3]> {
    let rows = SETUP.lines().skip(1).map(|line| line.split(',').collect());
    rows.filter_map(|row: Vec<_>| row.try_into().ok()).collect()
}
