//! The guard: how finely work is divided, learnt from how long the pieces take.
//!
//! A piece must be worth what it costs to hand it to another core. That cost is measured while the
//! program runs ([`HANDOVER_NS`]), and a piece of [`piece_ns`] is sought for each *grain*: a
//! procedure that calls itself, a call, a loop. A procedure's calls at `cutoff` or deeper run in
//! order, by the ordinary copy, which knows nothing of all this. A cutoff of 0 closes the grain;
//! one in 64 of its calls is then measured (`hearth.h`), in case it has become longer.
//! Loops count rounds instead of depth.
//!
//! All words are hints, changed without order by several threads. A wrong one costs time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A grain, as `hearth_grain` in `hearth.h`.
#[repr(C)]
pub struct Grain {
    cutoff: AtomicU32,
    /// Measurements since the cutoff last changed.
    seen: AtomicU32,
    /// Mean nanoseconds of a piece; of a loop's 1024 rounds.
    mean: AtomicU64,
}

/// Deepest cutoff: a ring has room for three times as many records.
const CUTOFF_MAX: u32 = 20;
/// A piece is worth this many hand-overs.
const HANDOVERS: u64 = 16;
/// Bounds of the length of a piece, in nanoseconds. Below, reading the clock would be noticed;
/// above, the last piece would keep the others waiting.
const PIECE_NS_MIN: u64 = 10_000;
const PIECE_NS_MAX: u64 = 200_000;

/// Mean nanoseconds from a push to the beginning on another core that was looking out, measured.
/// Begins with the cost of two misses in a large machine.
static HANDOVER_NS: AtomicU64 = AtomicU64::new(1000);

/// The sought length of a piece.
pub(super) fn piece_ns() -> u64 {
    (HANDOVERS * HANDOVER_NS.load(Ordering::Relaxed)).clamp(PIECE_NS_MIN, PIECE_NS_MAX)
}

/// Learns from one hand-over.
pub(super) fn handed_over(ns: u64) {
    let old = HANDOVER_NS.load(Ordering::Relaxed);
    // A helper may have been on its way from sleep, or without its core.
    let (ns, weight) = if ns < old {
        (ns, 2)
    } else {
        (ns.min(4 * old), 16)
    };
    HANDOVER_NS.store(mean_with(old, ns, weight), Ordering::Relaxed);
}

/// The mean after another value, which counts for one in `weight`.
fn mean_with(old: u64, value: u64, weight: i64) -> u64 {
    (old as i64 + (value as i64 - old as i64) / weight).max(1) as u64
}

impl Grain {
    /// Learns that a piece in order took this long.
    pub(super) fn piece_took(&self, ns: u64) {
        let sought = piece_ns();
        let cutoff = self.cutoff.load(Ordering::Relaxed);
        let seen = self.seen.load(Ordering::Relaxed);
        let old = self.mean.load(Ordering::Relaxed);
        let mean = if seen == 0 {
            ns.max(1)
        } else {
            mean_with(old, ns, 4)
        };
        self.mean.store(mean, Ordering::Relaxed);
        self.seen.store(seen.saturating_add(1), Ordering::Relaxed);
        let new = if mean > 4 * sought {
            cutoff + (mean / sought).ilog2() - 1
        } else if mean < sought / 2 {
            // Half of the depth at once while the pieces are far too small, as in small problems.
            match mean < sought / 32 {
                true => cutoff / 2,
                false => cutoff.saturating_sub(1),
            }
        } else {
            cutoff
        };
        let new = new.min(CUTOFF_MAX);
        if new != cutoff {
            self.cutoff.store(new, Ordering::Relaxed);
            self.seen.store(0, Ordering::Relaxed);
        }
    }

    /// Learns how long a whole call took that may run beside others, and does not divide itself.
    pub(super) fn call_took(&self, ns: u64) {
        let seen = self.seen.load(Ordering::Relaxed);
        let old = self.mean.load(Ordering::Relaxed);
        let mean = if seen == 0 {
            ns.max(1)
        } else {
            mean_with(old, ns, 4)
        };
        self.mean.store(mean, Ordering::Relaxed);
        self.seen.store(seen.saturating_add(1), Ordering::Relaxed);
        let is_worth = mean >= piece_ns() / 2;
        if is_worth != self.is_open() {
            self.cutoff.store(u32::from(is_worth), Ordering::Relaxed);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.cutoff.load(Ordering::Relaxed) != 0
    }

    /// Expected nanoseconds of a call at this depth; None if nothing is known.
    pub(super) fn expected_ns(&self, depth: u32) -> Option<u64> {
        let mean = self.mean.load(Ordering::Relaxed);
        let levels = self.cutoff.load(Ordering::Relaxed).saturating_sub(depth);
        (mean != 0).then(|| mean.saturating_mul(1 << levels.min(20)))
    }

    /// Expected nanoseconds of a call that does not divide itself; None if nothing is known.
    pub(super) fn expected_of_call(&self) -> Option<u64> {
        let mean = self.mean.load(Ordering::Relaxed);
        (mean != 0).then_some(mean)
    }

    // ---- loops --------------------------------------------------------------------------------

    /// Rounds of a piece.
    pub(super) fn rounds_of_piece(&self, all: u64) -> u64 {
        match self.mean.load(Ordering::Relaxed) {
            // Nothing is known: so small that the first is no great loss.
            0 => (all / 64).max(1),
            mean => (piece_ns() * 1024 / mean).max(1),
        }
    }

    /// Expected nanoseconds of so many rounds; None if nothing is known.
    pub(super) fn expected_of_rounds(&self, rounds: u64) -> Option<u64> {
        let mean = self.mean.load(Ordering::Relaxed);
        (mean != 0).then(|| mean.saturating_mul(rounds) / 1024)
    }

    /// Learns how long some rounds took.
    pub(super) fn rounds_took(&self, rounds: u64, ns: u64) {
        if rounds == 0 {
            return;
        }
        let of_1024 = (ns.max(1).saturating_mul(1024) / rounds).max(1);
        let old = self.mean.load(Ordering::Relaxed);
        let mean = if old == 0 {
            of_1024
        } else {
            mean_with(old, of_1024, 4)
        };
        self.mean.store(mean, Ordering::Relaxed);
        // Fewer rounds than this are not worth it: the header compares.
        let least = (2 * piece_ns()).saturating_mul(1024) / mean;
        let least = u32::try_from(least).unwrap_or(u32::MAX).max(2);
        self.cutoff.store(least, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn grain(cutoff: u32) -> Grain {
        Grain {
            cutoff: AtomicU32::new(cutoff),
            seen: AtomicU32::new(0),
            mean: AtomicU64::new(0),
        }
    }

    #[test]
    fn small_problems_close_a_grain_and_large_ones_open_it() {
        let grain = grain(6);
        for _ in 0..20 {
            grain.piece_took(100);
        }
        assert!(!grain.is_open());
        grain.piece_took(100_000_000);
        assert!(grain.is_open());
    }

    #[test]
    fn a_grain_settles_where_pieces_have_their_length() {
        let grain = grain(6);
        let whole: u64 = 50_000_000;
        for _ in 0..200 {
            let cutoff = grain.cutoff.load(Ordering::Relaxed);
            grain.piece_took(whole >> cutoff);
        }
        let piece = whole >> grain.cutoff.load(Ordering::Relaxed);
        assert!(
            (piece_ns() / 2..=4 * piece_ns()).contains(&piece),
            "{piece}"
        );
    }

    #[test]
    fn loops_know_their_least_number_of_rounds() {
        let grain = grain(0);
        grain.rounds_took(1000, 1_000_000);
        let least = u64::from(grain.cutoff.load(Ordering::Relaxed));
        let expected = grain.expected_of_rounds(least).unwrap();
        assert!(
            (piece_ns()..=3 * piece_ns()).contains(&expected),
            "{expected}"
        );
    }
}
