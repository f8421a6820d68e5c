//! The source's findings. The files are in `research/studies/published/transactions`; they are
//! facts of this repository, so that a row that cannot be understood is left out and found by a
//! test.

use crate::claims::{self, Finding, rows};
use crate::judging::Figure;

const FINDINGS: &str = include_str!("../../published/transactions/findings.csv");
const FIGURES: &str = include_str!("../../published/transactions/figures.csv");
/// Hardware threads of the source's machine.
pub const CORES: usize = 24;

/// All that it says.
#[must_use]
pub fn findings() -> Vec<Finding> {
    claims::findings(FINDINGS, Figure::exact)
}

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The figure in words.
    pub what: &'static str,
    /// Its value as it is printed.
    pub value: &'static str,
    /// The name of ours in [`super::figures`]; none if it is not measured here.
    pub ours: Option<&'static str>,
}

/// Its figures.
#[must_use]
pub fn figures() -> Vec<Published> {
    let row = |row: Vec<&'static str>| {
        let [what, value, ours] = row.try_into().ok()?;
        Some(Published {
            what,
            value,
            ours: Some(ours).filter(|name| !name.is_empty()),
        })
    };
    rows(FIGURES).filter_map(row).collect()
}
