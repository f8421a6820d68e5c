//! The source's findings. The files are in `research/studies/published/event-patterns`; they are
//! facts of this repository, so that a row that cannot be understood is left out and found by a
//! test.

use crate::claims::{self, Finding, rows};
use crate::judging::Figure;

const FINDINGS: &str = include_str!("../../published/event-patterns/findings.csv");
const FIGURES: &str = include_str!("../../published/event-patterns/figures.csv");
/// The server's, as many as the clients had.
pub const CORES: usize = 16;

/// All that it says.
#[must_use]
pub fn findings() -> Vec<Finding> {
    claims::findings(FINDINGS, Figure::exact)
}

/// Its figures: number, content, and the part that remains.
#[must_use]
pub fn figures() -> Vec<[&'static str; 3]> {
    rows(FIGURES)
        .filter_map(|row| row.try_into().ok())
        .collect()
}
