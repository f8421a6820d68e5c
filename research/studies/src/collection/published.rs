//! The source's findings. The file is in `research/studies/published/collection`; it has facts of
//! this repository, so that a row that cannot be understood is left out and found by a test.

use super::verdict::between;
use crate::claims::{self, Finding};

const FINDINGS: &str = include_str!("../../published/collection/findings.csv");
/// Cores of the source's machine. It collected with one.
pub const CORES: usize = 4;

/// All that it says.
#[must_use]
pub fn findings() -> Vec<Finding> {
    claims::findings(FINDINGS, |value| between(value, value, value))
}
