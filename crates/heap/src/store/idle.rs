//! The account of idle memory: what heaps report, and how idle chunks go back to the system.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `grown` | heaps add; whoever gives back takes all | whoever gives back |
//! | `came` | whoever gives chunks to the pool adds; whoever gives back takes all | the same |
//! | `given`, `kept` | upkeep; whoever takes chunks | the same |
//! | `large` | whoever makes, resizes or frees a large block | upkeep; whoever takes chunks |

use core::sync::atomic::{AtomicU32, Ordering};

use crate::ground::geometry::CHUNK_BYTES;
use crate::ground::os;
use crate::store::lent::Lent;
use crate::store::pool::{Forgotten, POOLS};
use crate::store::space::SPACE;
use crate::store::stage::Stage;

/// Idle memory of less than this is left alone.
const WORTHWHILE_BYTES: usize = 1 << 20;
pub(crate) const WORTHWHILE: u32 = (WORTHWHILE_BYTES / CHUNK_BYTES) as u32;

/// Idle chunks kept without a helper: 4 MiB at first, and more if the process asks again for memory
/// that was given back. Up to 64 MiB, as the GNU library keeps, and half of what large blocks have:
/// where those come and go at random, the gaps between them are as large.
const KEPT_MIN: u32 = 64;
const KEPT_MAX: u32 = 1024;
const LARGE_PART: u32 = 2;

/// The account of the process. There is one, as idle chunks belong to no heap.
pub(crate) static IDLE: Idle = Idle::new();

pub(crate) struct Idle {
    pub(crate) stage: Stage,
    pub(crate) lent: Lent,
    /// Pages that heaps have begun to use.
    grown: AtomicU32,
    /// Chunks that have become idle since the last call.
    pub(crate) came: AtomicU32,
    /// Chunks that upkeep gave back and nobody has asked for again; and the idle chunks that it
    /// keeps, unless they are more than [`Idle::kept_max`].
    given: AtomicU32,
    kept: AtomicU32,
    /// Chunks of large blocks.
    large: AtomicU32,
}

impl Idle {
    const fn new() -> Idle {
        Idle {
            stage: Stage::new(),
            lent: Lent::new(),
            grown: AtomicU32::new(0),
            came: AtomicU32::new(0),
            given: AtomicU32::new(0),
            kept: AtomicU32::new(KEPT_MIN),
            large: AtomicU32::new(0),
        }
    }

    /// Lends a block of idle pages: its offset in the data and its length in bytes, multiples of a
    /// page. False if too much is lent already.
    pub(crate) fn lend(&self, offset: usize, bytes: usize) -> bool {
        self.lent.lend(offset, bytes)
    }

    /// Counts pages that heaps have begun to use.
    pub(crate) fn report_grown(&self, pages: u32) {
        self.grown.fetch_add(pages, Ordering::Relaxed);
        self.call();
    }

    /// Counts chunks that have become idle.
    pub(crate) fn report_idle(&self, chunks: u32) {
        let before = self.came.fetch_add(chunks, Ordering::Relaxed);
        if before + chunks > WORTHWHILE {
            self.call();
        }
    }

    /// Counts chunks that upkeep gave back.
    pub(crate) fn report_given(&self, chunks: u32) {
        let all = self.given.load(Ordering::Relaxed).saturating_add(chunks);
        self.given.store(all, Ordering::Relaxed);
    }

    /// Counts chunks taken without memory behind them: if upkeep has given some back, it gave too
    /// much.
    pub(crate) fn report_missed(&self, chunks: u32) {
        let given = self.given.load(Ordering::Relaxed);
        if given != 0 {
            // Both are estimates: a concurrent change may be lost.
            self.given
                .store(given.saturating_sub(chunks), Ordering::Relaxed);
            let kept = self.kept.load(Ordering::Relaxed) + chunks.min(given);
            self.kept
                .store(kept.min(self.kept_max()), Ordering::Relaxed);
        }
    }

    /// Counts chunks that a large block begins to have, or no longer has.
    pub(crate) fn report_large(&self, before: usize, now: usize) {
        let more = (now as u32).wrapping_sub(before as u32);
        self.large.fetch_add(more, Ordering::Relaxed);
    }

    /// The idle chunks that upkeep keeps.
    pub(crate) fn kept(&self) -> u32 {
        self.kept.load(Ordering::Relaxed).min(self.kept_max())
    }

    fn kept_max(&self) -> u32 {
        KEPT_MAX + self.large.load(Ordering::Relaxed) / LARGE_PART
    }

    /// Announces work.
    pub(crate) fn call(&self) {
        if self.stage.call() {
            os::wake(self.stage.word(), 1);
        }
    }

    /// Gives idle chunks back for pages that heaps have begun to use, up to `most`; returns how
    /// many.
    pub(crate) fn follow_growth(&self, most: u32) -> u32 {
        let pages = self.grown.swap(0, Ordering::Relaxed) as usize;
        let chunks = pages.div_ceil(CHUNK_BYTES >> 12) as u32;
        forget_idle(chunks.min(most), Forgotten::Data)
    }
}

/// Gives the memory behind about `chunks` idle chunks of all nodes back to the system; returns how
/// many.
pub(crate) fn forget_idle(chunks: u32, what: Forgotten) -> u32 {
    let mut done = 0;
    for node in 0..SPACE.nodes() {
        while done < chunks {
            match POOLS.forget_idle(&SPACE, node, chunks - done, what) {
                0 => break,
                more => done += more,
            }
        }
    }
    done
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn more_is_kept_where_what_was_given_is_missed() {
        let idle = Idle::new();
        assert_eq!(idle.kept(), KEPT_MIN);
        idle.report_missed(100);
        assert_eq!(idle.kept(), KEPT_MIN, "nothing was given");
        idle.report_given(10_000);
        idle.report_missed(100);
        assert_eq!(idle.kept(), KEPT_MIN + 100);
        idle.report_missed(5000);
        assert_eq!(idle.kept(), KEPT_MAX);
        idle.report_large(0, 1000);
        idle.report_missed(5000);
        assert_eq!(
            idle.kept(),
            KEPT_MAX + 500,
            "half of what large blocks have"
        );
        idle.report_large(1000, 400);
        assert_eq!(idle.kept(), KEPT_MAX + 200);
        idle.report_large(400, 0);
        assert_eq!(idle.kept(), KEPT_MAX);
    }
}
