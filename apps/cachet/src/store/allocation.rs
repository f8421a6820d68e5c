//! The allocation section: memory for new items, and eviction.
//!
//! Everything here is one critical section. It never waits for a connection, and takes the lock of
//! a stripe only to remove one item; so a thread that holds such a lock must not enter it.
//!
//! Items come to the hot queue and leave it for the cold one, or, if they were fetched at least
//! twice meanwhile, for the warm one. An item fetched twice while cold becomes warm, too. Only cold
//! items are evicted. So keys that are read once, however many, push out each other and not the
//! items in use. An item moves only when it is the oldest of its queue: a fetch just sets a bit.
//!
//! With eviction off, dead items (expired or flushed) at the ends of the queues are still
//! reclaimed.

use std::sync::Arc;

use super::counters::Counter;
use super::stripes::Stripes;
use super::watch::{self, Topics, Watch};
use crate::items::{Fresh, Making, Out, Pool, Segment, Tail, block_bytes, bytes_of};

/// There is no memory for an item, and nothing may be evicted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// Counters of the section.
#[derive(Debug, Default)]
pub struct Moves {
    /// Evicted items.
    pub evictions: Counter,
    /// Evicted items never fetched.
    pub evicted_unfetched: Counter,
    /// Evicted active items.
    pub evicted_active: Counter,
    /// Dead items found at the end of a queue: expired or flushed.
    pub reclaimed: Counter,
    /// Dead items never fetched.
    pub expired_unfetched: Counter,
    /// Moves from hot or warm to cold.
    pub to_cold: Counter,
    /// Moves from hot or cold to warm.
    pub to_warm: Counter,
    /// Warm items that stayed warm.
    pub within: Counter,
    /// Allocations refused.
    pub refusals: Counter,
    /// Evicted items that would have expired.
    pub evicted_nonzero: Counter,
    /// Seconds for which the last evicted item had not been used.
    pub evicted_time: Counter,
    /// Items at the end of a queue that could not go, as they were being stored or removed.
    pub skipped: Counter,
    /// Items that an allocation had to remove.
    pub direct: Counter,
    /// Blocks that the system did not give.
    pub not_given: Counter,
}

impl Moves {
    /// Resets the counters. For the thread in the section, where they are counted.
    fn reset(&self) {
        let all = [
            &self.evictions,
            &self.evicted_unfetched,
            &self.evicted_active,
            &self.reclaimed,
            &self.expired_unfetched,
            &self.to_cold,
            &self.to_warm,
            &self.within,
            &self.refusals,
            &self.evicted_nonzero,
            &self.evicted_time,
            &self.skipped,
            &self.direct,
            &self.not_given,
        ];
        all.into_iter().for_each(Counter::reset);
    }
}

/// Data of the section.
#[derive(Debug)]
pub struct Allocation {
    pool: Pool,
    stripes: Arc<Stripes>,
    limit: usize,
    evicts: bool,
    /// Shares of hot and warm items in the limit, in percent.
    hot: usize,
    warm: usize,
    moves: Arc<Moves>,
    watch: Arc<Watch>,
}

/// Contents, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holdings {
    /// Items, by segment: hot, warm, cold.
    pub items: [usize; 3],
    /// Size of the items in bytes.
    pub bytes: usize,
    /// Size of their blocks in bytes, to which the limit applies.
    pub charged: usize,
    /// Size of the heap in bytes.
    pub owned: usize,
    /// Limit in bytes.
    pub limit: usize,
    /// Shares of hot and warm items in the limit, in percent.
    pub shares: [usize; 2],
    /// Last use of the oldest item of each segment.
    pub oldest: [Option<u32>; 3],
}

/// Most items that change their queue in one allocation, and most that go beyond its need: this
/// bounds its time.
const SHIFTS: usize = 4;
const EXTRA: usize = 4;
/// Divisor of the limit that may be free between items before more items go.
const LOOSE: usize = 16;
/// Most active items spared in a row.
const SPARED: usize = 32;
/// Most items skipped at the end of a queue because they are being stored or freed.
const SKIPPED: usize = 64;
/// Items looked at, at the end of each queue, for a dead one where nothing may be evicted.
/// memcached looks at five of a class; here all classes are in one queue.
const LOOKED_AT: usize = 16;
/// Most items evicted for a block that the system does not give. Items of about one size need one
/// or two to go.
const NEEDED: usize = 64;

impl Allocation {
    /// An empty section with this limit, at which it evicts or not. None if there is no memory for
    /// a heap.
    #[must_use]
    pub fn new(
        stripes: Arc<Stripes>,
        (limit, evicts): (usize, bool),
        watch: Arc<Watch>,
    ) -> Option<Allocation> {
        let moves = Arc::new(Moves::default());
        Some(Allocation {
            pool: Pool::new()?,
            stripes,
            limit,
            evicts,
            hot: 20,
            warm: 40,
            moves,
            watch,
        })
    }

    /// Its counters.
    #[must_use]
    pub fn moves(&self) -> Arc<Moves> {
        Arc::clone(&self.moves)
    }

    /// Sets the limit in bytes. Items above it go little by little: with the next allocations, and
    /// by [`Allocation::shrink`].
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// From now on the system gives no more memory than items already have.
    #[cfg(test)]
    pub fn starve(&mut self) {
        self.pool.given_most = self.pool.charged();
    }

    /// Resets the counters.
    pub fn reset_moves(&mut self) {
        self.moves.reset();
    }

    /// Evicts at most `most` items above the limit. True if there are more.
    pub fn shrink(&mut self, now: u32, most: usize) -> bool {
        for _ in 0..most {
            if self.pool.charged() <= self.limit || !self.let_one_go(now) {
                return false;
            }
        }
        self.pool.charged() > self.limit
    }

    /// Sets the shares of hot and warm items in the limit, in percent.
    pub fn set_shares(&mut self, hot: usize, warm: usize) {
        (self.hot, self.warm) = (hot, warm);
    }

    /// Contents.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        let segments = [Segment::Hot, Segment::Warm, Segment::Cold];
        Holdings {
            items: segments.map(|segment| self.pool.items_in(segment)),
            bytes: self.pool.bytes(),
            charged: self.pool.charged(),
            owned: self.pool.owned(),
            limit: self.limit,
            shares: [self.hot, self.warm],
            oldest: segments.map(|segment| self.pool.tail(segment).map(|tail| tail.used)),
        }
    }

    /// Frees items that are in no chain any more.
    pub fn release(&mut self, out: impl Iterator<Item = Out>) {
        for out in out {
            self.pool.release(out);
        }
    }

    /// Makes an item, evicting others if necessary.
    ///
    /// # Errors
    /// The memory is used up, and nothing may be evicted, or all items are being stored.
    pub fn allocate(&mut self, making: &Making<'_>) -> Result<Fresh, NoMemory> {
        let need = block_bytes(bytes_of(making.key.len(), making.value_bytes as usize));
        self.balance();
        // After the limit was lowered, no more goes at once than is needed now.
        let least = self.pool.charged().saturating_sub(need);
        let mut extra = 0;
        loop {
            let charged = self.pool.charged();
            let is_needed = charged + need > self.limit && charged > least;
            // Beyond the limit items go one at a time, as free memory between them shrinks only
            // with time.
            let is_extra = self.evicts && extra < EXTRA && charged + need > self.room();
            if need <= self.limit && !is_needed && !is_extra {
                break;
            }
            extra += usize::from(!is_needed);
            let went = need <= self.limit && self.let_one_go(making.now);
            self.moves.direct.add(u64::from(went));
            if !went && (is_needed || need > self.limit) {
                self.moves.refusals.bump();
                return Err(NoMemory);
            }
            if !went {
                break;
            }
        }
        match self.pool.make(making) {
            Some(fresh) => Ok(fresh),
            None => self.make_slow(making),
        }
    }

    /// Evicts because the system gives no more memory, though the limit would allow it.
    #[cold]
    fn make_slow(&mut self, making: &Making<'_>) -> Result<Fresh, NoMemory> {
        for _ in 0..NEEDED {
            self.moves.not_given.bump();
            if !self.let_one_go(making.now) {
                break;
            }
            self.moves.direct.bump();
            if let Some(fresh) = self.pool.make(making) {
                return Ok(fresh);
            }
        }
        self.moves.refusals.bump();
        Err(NoMemory)
    }

    /// Evicts or reclaims one item. False if none is found.
    fn let_one_go(&mut self, now: u32) -> bool {
        if self.evicts {
            self.evict(now)
        } else {
            self.reclaim(now)
        }
    }

    /// Present limit of the items: free memory between them counts, too, and items give up as much
    /// as the heap has beyond a bound. They give up no more than that, as the heap keeps what it
    /// has: a heap a little beyond its bound would cost every item in the end. Half of the limit is
    /// theirs in any case.
    fn room(&self) -> usize {
        let bound = self.limit.saturating_add(self.limit / LOOSE);
        let beyond = self.pool.owned().saturating_sub(bound);
        self.limit - beyond.min(self.limit / 2)
    }

    /// Moves some items on from queues that exceed their share.
    fn balance(&mut self) {
        for _ in 0..SHIFTS {
            let has_more =
                |segment, percent| self.pool.bytes_in(segment) > self.limit / 100 * percent;
            let from = if has_more(Segment::Hot, self.hot) {
                Segment::Hot
            } else if has_more(Segment::Warm, self.warm) {
                Segment::Warm
            } else {
                return;
            };
            let Some(tail) = self.pool.tail(from) else {
                return;
            };
            match (tail.is_active, from) {
                (true, Segment::Warm) => self.moves.within.bump(),
                (true, _) => self.moves.to_warm.bump(),
                (false, _) => self.moves.to_cold.bump(),
            }
            let to = if tail.is_active {
                Segment::Warm
            } else {
                Segment::Cold
            };
            self.pool.shift(from, to);
        }
    }

    /// Evicts one item. False if none can go.
    fn evict(&mut self, now: u32) -> bool {
        let (mut spared, mut skipped) = (0, 0);
        while skipped < SKIPPED {
            let Some(tail) = self.pool.tail(Segment::Cold) else {
                // All items are hot or warm: the oldest there become cold.
                if self.pool.shift(Segment::Hot, Segment::Cold)
                    || self.pool.shift(Segment::Warm, Segment::Cold)
                {
                    skipped += 1;
                    continue;
                }
                return false;
            };
            let is_over = tail.expires != 0 && tail.expires <= now;
            if tail.is_active && !is_over && spared < SPARED {
                self.pool.shift(Segment::Cold, Segment::Warm);
                self.moves.to_warm.bump();
                spared += 1;
                continue;
            }
            let Some((out, gone)) = self.stripes.take_one(tail.hash, tail.id, now) else {
                // It is being stored, or was removed by a thread that has not said so yet.
                self.pool.shift(Segment::Cold, Segment::Cold);
                self.moves.skipped.bump();
                skipped += 1;
                continue;
            };
            self.count(gone.is_some(), tail.is_fetched, tail.is_active);
            if gone.is_none() {
                let is_nonzero = u64::from(tail.expires != 0);
                self.moves.evicted_nonzero.add(is_nonzero);
                let silent = u64::from(now.saturating_sub(tail.used));
                self.moves.evicted_time.set(silent);
            }
            if gone.is_none() && self.watch.wants(Topics::EVICTIONS) {
                self.tell(&out, &tail, now);
            }
            self.pool.release(out);
            return true;
        }
        false
    }

    /// Tells watchers of an eviction.
    #[cold]
    fn tell(&self, out: &Out, tail: &Tail, now: u32) {
        self.watch.tell(Topics::EVICTIONS, |line| {
            line.extend_from_slice(b"eviction key=");
            watch::write_key(line, out.key());
            let ttl = match tail.expires {
                0 => -1,
                at => i64::from(at) - i64::from(now),
            };
            let facts = format!(
                " fetch={} ttl={ttl} la={} clsid=1 size={}",
                if tail.is_fetched { "yes" } else { "no" },
                now.saturating_sub(tail.used),
                out.bytes(),
            );
            line.extend_from_slice(facts.as_bytes());
        });
    }

    /// Reclaims one dead item at the end of a queue, if there is one. Living ones move to the other
    /// end, where they do no harm as none of them is evicted; so all have their turn in the end.
    fn reclaim(&mut self, now: u32) -> bool {
        for segment in [Segment::Cold, Segment::Hot, Segment::Warm] {
            for _ in 0..LOOKED_AT.min(self.pool.items_in(segment)) {
                let Some(tail) = self.pool.tail(segment) else {
                    break;
                };
                if let Some(out) = self.stripes.take_gone(tail.hash, tail.id, now) {
                    self.count(true, tail.is_fetched, tail.is_active);
                    self.pool.release(out);
                    return true;
                }
                self.pool.shift(segment, segment);
            }
        }
        false
    }

    fn count(&self, is_gone: bool, is_fetched: bool, is_active: bool) {
        if is_gone {
            self.moves.reclaimed.bump();
            self.moves.expired_unfetched.add(u64::from(!is_fetched));
            return;
        }
        self.moves.evictions.bump();
        self.moves.evicted_unfetched.add(u64::from(!is_fetched));
        self.moves.evicted_active.add(u64::from(is_active));
    }
}
