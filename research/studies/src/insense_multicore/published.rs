//! The source's findings. The files are in `research/studies/published/insense-multicore`; they are
//! facts of this repository, so that a row that cannot be understood is left out and found by a
//! test.

use crate::claims::{self, Claims, Evidence};
use crate::judging::Figure;

const FINDINGS: &str = include_str!("../../published/insense-multicore/findings.csv");
const CACHEGRIND: &str = include_str!("../../published/insense-multicore/cachegrind.csv");

/// The lines below the head, cut at commas.
fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// A row of the source's table of cache misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Misses {
    /// `os`, `single` or `spread`.
    pub placement: &'static str,
    /// `shared` or `private`.
    pub heaps: &'static str,
    /// First level, data, reads.
    pub d1_read: f64,
    /// Writes.
    pub d1_write: f64,
    /// Last level, data.
    pub ll_data: f64,
    /// First level, instructions.
    pub i1: f64,
}

impl Misses {
    /// First level, data.
    #[must_use]
    pub fn d1(&self) -> f64 {
        self.d1_read + self.d1_write
    }
}

/// The table of cache misses.
#[must_use]
pub fn misses() -> Vec<Misses> {
    let read = |row: Vec<&'static str>| {
        let count = |at: usize| row.get(at)?.parse().ok();
        Some(Misses {
            placement: row.first()?,
            heaps: row.get(1)?,
            d1_read: count(2)?,
            d1_write: count(3)?,
            ll_data: count(4)?,
            i1: count(5)?,
        })
    };
    rows(CACHEGRIND).filter_map(read).collect()
}

/// Everything that it found, as evidence for its claims.
#[must_use]
pub fn evidence(claims: &'static Claims) -> Evidence {
    let mut evidence = Evidence::new(claims, super::layouts::CORES);
    evidence = evidence.with(claims::findings(FINDINGS, Figure::exact));
    let table = misses();
    for private in table.iter().filter(|row| row.heaps == "private") {
        let shared = table
            .iter()
            .find(|row| row.heaps == "shared" && row.placement == private.placement);
        if let Some(shared) = shared {
            let name = format!("misses private/shared {}", private.placement);
            evidence.put(&name, Figure::exact(private.d1() / shared.d1()));
        }
    }
    evidence
}
