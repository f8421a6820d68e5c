//! The source's findings. The file is in `research/studies/published/coscheduling`; it has facts of
//! this repository, so that a row that cannot be understood is left out and found by a test.

use crate::claims::{self, Finding};
use crate::judging::Figure;

const FINDINGS: &str = include_str!("../../published/coscheduling/findings.csv");
/// Cores of the source's machine.
pub const CORES: usize = 4;

/// All that it says.
#[must_use]
pub fn findings() -> Vec<Finding> {
    claims::findings(FINDINGS, Figure::exact)
}
