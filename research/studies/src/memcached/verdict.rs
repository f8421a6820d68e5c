//! The figures from which the claims are judged.
//!
//! An effect that the source saw on 64 cores and that few cores do not show is not refuted: it
//! *cannot be shown here*, and the figures are given with the measurements of the cause.

use super::explain::explained;
use super::measured::Measured;
use super::published;
use super::results::Results;
use crate::claims::{Claims, Evidence, Size};

/// The claim that is our own.
pub const AUTO: &str = "auto";
/// The source's claims, and those that we add.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/memcached/claims.md"),
    size: Size::Difference(0.1),
};

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// The measured evidence.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.site.cores.len());
    Measured(results).put_all(&mut evidence);
    evidence.explain(explained(results));
    evidence
}
