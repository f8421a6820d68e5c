//! The word that orders an instance's commits: LSA's clock, NOrec's sequence number.
//!
//! ```text
//!  63                                3     2         1        0
//! ┌───────────────────────────────────┬──────────┬────────┬────────┐
//! │ commits that wrote                │ SLEEPERS │ SERIAL │ LOCKED │
//! └───────────────────────────────────┴──────────┴────────┴────────┘
//! ```
//!
//! The flags travel in a word that each transaction loads at its start and each writer changes at
//! its commit. So nobody pays for a look at them, and no fence has to order it.

/// One commit.
pub(crate) const STEP: u64 = 8;
/// NOrec's lock: a commit is writing. Unused by LSA.
pub(crate) const LOCKED: u64 = 1;
/// Attempts may begin in the serialised transaction only.
pub(crate) const SERIAL: u64 = 2;
/// Somebody sleeps until a word has changed: a commit looks whether it has to wake them.
pub(crate) const SLEEPERS: u64 = 4;
/// All flags. LSA's stripe locks have a count in their place.
pub(crate) const FLAGS: u64 = STEP - 1;

/// A value alone on its cache lines: two, as the hardware fetches them in pairs.
#[repr(align(128))]
pub(crate) struct Line<T>(pub(crate) T);

/// One bit of 64 for a stripe or an address, to ask cheaply whether two sets may meet.
#[inline]
pub(crate) fn summary(of: usize) -> u64 {
    // Fibonacci hashing: the golden ratio times 2^64.
    1 << ((of as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}
