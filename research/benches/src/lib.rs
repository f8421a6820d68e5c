//! Compares Hearth with its peers.
//!
//! Every benchmark states its question, its notes on fairness and the answer its programs must
//! give. The peers run in one session, in turn, pinned to the same cores, after a warm-up that
//! does not count. Reports give the median, the spread and the ratio with its interval.
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod earlier;
pub mod embedded;
pub mod grades;
pub mod heap;
pub mod measure;
pub mod peers;
pub mod placements;
pub mod repeatability;
pub mod rewrite;
pub mod runtime;
pub mod savina;
pub mod stm;
