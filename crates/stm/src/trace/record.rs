//! Records of transactions, of two words.
//!
//! ```text
//! first word              │ second word                                  │ in traces
//! 0 start    │ ticks      │ counter                                      │ all
//! 1 commit   │ ticks      │ counter                                      │ all
//! 2 abort    │ ticks      │ reason:4 │ sign of the owner:16 │ site / 8:44│ all
//! 3 origin   │ ticks      │ number of the origin's name                  │ all
//! 8 read     │ address    │ number of words read in a row                │ full
//! 9 write    │ address    │ value                                        │ full
//!   8 bits     56 bits      64 bits
//! ```
//!
//! An origin follows the start whose transaction it is of, with that one's ticks, and holds for all
//! further ones of its thread. It is left out while it stays the same.
//!
//! A thread's *sign* is a number of 16 bits made from its descriptor's address, so that 64 bits
//! hold an abort. The note of each of the thread's chunks has it, too. Two of eight threads have
//! the same one in a run of 2300.

use super::{Aborted, Reason};

/// Types of records.
pub mod kind {
    use hearth_watch::stream::PLACED;

    /// An attempt begins.
    pub const START: u8 = 0;
    /// An attempt has taken effect.
    pub const COMMIT: u8 = 1;
    /// An attempt has ended without effect.
    pub const ABORT: u8 = 2;
    /// The place in the program where the open attempt's transaction began.
    pub const ORIGIN: u8 = 3;
    /// Words were read.
    pub const READ: u8 = PLACED;
    /// A word was written.
    pub const WRITE: u8 = PLACED + 1;
}

const SITE_BITS: u32 = 44;
const SIGN_BITS: u32 = 16;

/// The sign of the thread with a descriptor; zero stands for none.
#[must_use]
pub fn sign_of(descriptor: usize) -> u16 {
    if descriptor == 0 {
        return 0;
    }
    // Multiplication spreads the bits that differ over the highest ones, as in Fibonacci hashing.
    let spread = (descriptor as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread >> (64 - SIGN_BITS)) as u16).max(1)
}

const REASONS: [Reason; 7] = [
    Reason::ReadLocked,
    Reason::WriteLocked,
    Reason::Changed,
    Reason::CommitChanged,
    Reason::Retry,
    Reason::User,
    Reason::Panic,
];

/// The second word of an abort's record.
#[must_use]
pub fn pack_abort(aborted: Aborted) -> u64 {
    let site = aborted.site as u64 >> 3 & ((1 << SITE_BITS) - 1);
    let sign = u64::from(sign_of(aborted.owner));
    (aborted.reason as u64) << (SITE_BITS + SIGN_BITS) | sign << SITE_BITS | site
}

/// The reason, the site and the owner's sign of an abort's second word. None if there is no such
/// reason.
#[must_use]
pub fn unpack_abort(word: u64) -> Option<(Reason, u64, u16)> {
    let reason = *REASONS.get((word >> (SITE_BITS + SIGN_BITS)) as usize)?;
    let site = (word & ((1 << SITE_BITS) - 1)) << 3;
    Some((reason, site, (word >> SITE_BITS) as u16))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn aborts_come_back() {
        for (nth, reason) in REASONS.into_iter().enumerate() {
            assert_eq!(reason as usize, nth);
            let (site, owner) = (0x7fff_ffff_fff8, 0x7f00_1234_5680);
            let aborted = Aborted {
                reason,
                site,
                owner,
            };
            let unpacked = unpack_abort(pack_abort(aborted));
            assert_eq!(unpacked, Some((reason, site as u64, sign_of(owner))));
        }
        assert_eq!(unpack_abort(u64::MAX), None);
        assert_eq!(sign_of(0), 0);
    }
}
