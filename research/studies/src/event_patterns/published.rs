//! What the source found. The files are in `research/studies/published/event-patterns`; they are facts of this
//! repository, so that a row that cannot be understood is left out and found by a test.

use super::verdict::Evidence;
use crate::judging::{Figure, Relation};

const FINDINGS: &str = include_str!("../../published/event-patterns/findings.csv");
const FIGURES: &str = include_str!("../../published/event-patterns/figures.csv");
/// The server's, as many as the clients had.
pub const CORES: usize = 16;

/// The lines below the head, cut at semicolons.
fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(';').collect())
}

/// Something that it says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// What is compared.
    pub name: &'static str,
    /// The value, or how the two stand to each other.
    pub figure: Figure,
    /// Where it says so.
    pub place: &'static str,
}

/// All that it says.
#[must_use]
pub fn findings() -> Vec<Finding> {
    let read = |row: Vec<&'static str>| {
        let [name, relation, value, place] = row[..] else {
            return None;
        };
        let figure = match (value.parse::<f64>(), Relation::named(relation)) {
            (Ok(value), _) => Figure::exact(value),
            (Err(_), relation) => Figure::in_words(relation?),
        };
        Some(Finding {
            name,
            figure,
            place,
        })
    };
    rows(FINDINGS).filter_map(read).collect()
}

/// Its figures: number, what it shows, what is left of it.
#[must_use]
pub fn figures() -> Vec<[&'static str; 3]> {
    rows(FIGURES)
        .filter_map(|row| row.try_into().ok())
        .collect()
}

/// Everything that it found, as evidence.
#[must_use]
pub fn evidence() -> Evidence {
    let mut evidence = Evidence::new(CORES);
    for finding in findings() {
        evidence.put(finding.name, finding.figure);
    }
    evidence
}
