//! The account of idle memory: what heaps report, and chunks that go back to the system.

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

/// Idle chunks that stay without a helper: 4 MiB; and at most, where memory is asked for again that was given
/// back: 64 MiB, as the GNU library keeps.
const KEPT_MIN: u32 = 64;
const KEPT_MAX: u32 = 1024;

/// One account, as idle chunks are nobody's.
pub(crate) static IDLE: Idle = Idle {
    stage: Stage::new(),
    lent: Lent::new(),
    grown: AtomicU32::new(0),
    came: AtomicU32::new(0),
    given: AtomicU32::new(0),
    kept: AtomicU32::new(KEPT_MIN),
};

pub(crate) struct Idle {
    pub(crate) stage: Stage,
    pub(crate) lent: Lent,
    /// Pages that heaps have begun to use.
    grown: AtomicU32,
    /// Chunks that have become idle since the last call.
    pub(crate) came: AtomicU32,
    /// Chunks that upkeep gave back and that were not asked for again; and those that stay idle.
    pub(crate) given: AtomicU32,
    pub(crate) kept: AtomicU32,
}

impl Idle {
    /// Lends a block of idle pages: its distance from the start of the data, and its length in bytes, multiples
    /// of a page. False if too much is lent already.
    pub(crate) fn lend(&self, offset: usize, bytes: usize) -> bool {
        self.lent.lend(offset, bytes)
    }

    /// Heaps have begun to use so many pages.
    pub(crate) fn grew(&self, pages: u32) {
        self.grown.fetch_add(pages, Ordering::Relaxed);
        self.call();
    }

    /// Chunks have become idle.
    pub(crate) fn idle(&self, chunks: u32) {
        let before = self.came.fetch_add(chunks, Ordering::Relaxed);
        if before + chunks > WORTHWHILE {
            self.call();
        }
    }

    /// Chunks without memory behind them were taken. If upkeep has given some back, it gave too much.
    pub(crate) fn missed(&self, chunks: u32) {
        let given = self.given.load(Ordering::Relaxed);
        if given != 0 {
            // Both are estimates: what others change meanwhile may be lost.
            self.given
                .store(given.saturating_sub(chunks), Ordering::Relaxed);
            let kept = self.kept.load(Ordering::Relaxed) + chunks.min(given);
            self.kept.store(kept.min(KEPT_MAX), Ordering::Relaxed);
        }
    }

    /// There is something to do.
    pub(crate) fn call(&self) {
        if self.stage.call() {
            os::wake(self.stage.word());
        }
    }

    /// Gives idle chunks back for those that heaps have begun to use, so many at most. How many.
    pub(crate) fn follow_growth(&self, most: u32) -> u32 {
        let pages = self.grown.swap(0, Ordering::Relaxed) as usize;
        let chunks = pages.div_ceil(CHUNK_BYTES >> 12) as u32;
        forget_idle(chunks.min(most), Forgotten::Data)
    }
}

/// Gives memory behind idle chunks back to the system: about as many as said, of all nodes. How
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
