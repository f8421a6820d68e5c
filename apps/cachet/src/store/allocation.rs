//! The allocation section: memory for new items, and who must go for it.
//!
//! Everything here is one critical section. It never waits for a connection, and it takes the lock of a part of the
//! store only to take one item out of it; so who holds such a lock must not enter it.
//!
//! Items come to the hot queue and leave it for the cold one, or, when they were fetched at least twice meanwhile,
//! for the warm one. What was fetched twice while cold becomes warm, too. Only cold items are evicted. So keys
//! that are asked for once, however many, push out each other and not what is used. An item moves when it is
//! the oldest of its queue and at no other time: to fetch it is to set a bit.
//!
//! Where nothing may be evicted items go nevertheless that are as good as gone, as far as they are found at the ends of
//! the queues.

use std::sync::Arc;

use super::counters::Counter;
use super::stripes::Stripes;
use crate::items::{Fresh, Making, Out, Pool, Segment, block_bytes, bytes_of};

/// There is no memory for an item, and nothing may be evicted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// What the section counts.
#[derive(Debug, Default)]
pub struct Moves {
    /// Items that had to go before their time.
    pub evictions: Counter,
    /// Of these, items that were never fetched.
    pub evicted_unfetched: Counter,
    /// Of these, items that were active.
    pub evicted_active: Counter,
    /// Items found at the end of a queue whose time had come, or that were told to be forgotten.
    pub reclaimed: Counter,
    /// Of these, items that were never fetched.
    pub expired_unfetched: Counter,
    /// From hot or warm to cold.
    pub to_cold: Counter,
    /// From hot or cold to warm.
    pub to_warm: Counter,
    /// Warm items that stay warm.
    pub within: Counter,
    /// How often there was no memory.
    pub refusals: Counter,
}

impl Moves {
    /// All from 0 on. For who is in the section, where they are counted.
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
        ];
        all.into_iter().for_each(Counter::reset);
    }
}

/// The data of the section.
#[derive(Debug)]
pub struct Allocation {
    pool: Pool,
    stripes: Arc<Stripes>,
    limit: usize,
    evicts: bool,
    /// How much of the limit hot and warm items may have, in percent.
    hot: usize,
    warm: usize,
    moves: Arc<Moves>,
}

/// What there is, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holdings {
    /// Items, by segment: hot, warm, cold.
    pub items: [usize; 3],
    /// What they need, in bytes.
    pub bytes: usize,
    /// What their blocks have, in bytes: what the limit is for.
    pub charged: usize,
    /// What the heap has for them, in bytes.
    pub owned: usize,
    /// What they may need, in bytes.
    pub limit: usize,
    /// How much of the limit hot and warm items may have, in percent.
    pub shares: [usize; 2],
    /// When the oldest item of each segment was last used.
    pub oldest: [Option<u32>; 3],
}

/// So many items change their queue in one allocation at most, and so many are let go beyond what it needs: this
/// bounds its time.
const SHIFTS: usize = 4;
const EXTRA: usize = 4;
/// So large a part of the limit may be free between items before items go for more of it.
const LOOSE: usize = 16;
/// So many active items are spared in a row; then one goes nevertheless.
const SPARED: usize = 32;
/// So many items at the end of a queue are skipped that are just being stored or freed.
const SKIPPED: usize = 64;
/// Where nothing may be evicted so many items at the end of each queue are looked at for one that is as good as gone.
/// memcached looks at five of a class; here are all classes in one queue.
const LOOKED_AT: usize = 16;
/// So many items go at most, one after the other, for a block that the system does not give. Items of about one size
/// need one or two to go.
const NEEDED: usize = 64;

impl Allocation {
    /// For items of so many bytes. None if there is no memory for a heap.
    #[must_use]
    pub fn new(stripes: Arc<Stripes>, limit: usize, evicts: bool) -> Option<Allocation> {
        let moves = Arc::new(Moves::default());
        Some(Allocation {
            pool: Pool::new()?,
            stripes,
            limit,
            evicts,
            hot: 20,
            warm: 40,
            moves,
        })
    }

    /// What is counted here.
    #[must_use]
    pub fn moves(&self) -> Arc<Moves> {
        Arc::clone(&self.moves)
    }

    /// Another limit, in bytes. What is above it goes little by little: with the next allocations, and by
    /// [`Allocation::shrink`].
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// From now on the system gives no more memory than items have already.
    #[cfg(test)]
    pub fn starve(&mut self) {
        self.pool.given_most = self.pool.charged();
    }

    /// All that is counted from 0 on.
    pub fn reset_moves(&mut self) {
        self.moves.reset();
    }

    /// Lets so many items go at most that are above the limit. Are there more?
    pub fn shrink(&mut self, now: u32, most: usize) -> bool {
        for _ in 0..most {
            if self.pool.charged() <= self.limit || !self.let_one_go(now) {
                return false;
            }
        }
        self.pool.charged() > self.limit
    }

    /// How much of the limit hot and warm items may have, in percent.
    pub fn set_shares(&mut self, hot: usize, warm: usize) {
        (self.hot, self.warm) = (hot, warm);
    }

    /// What there is.
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

    /// Frees what is in no chain any more.
    pub fn release(&mut self, out: impl Iterator<Item = Out>) {
        for out in out {
            self.pool.release(out);
        }
    }

    /// A new item, for which others may have to go.
    ///
    /// # Errors
    /// The memory is used up, and nothing may go, or all that there is is just being stored.
    pub fn allocate(&mut self, making: &Making<'_>) -> Result<Fresh, NoMemory> {
        let need = block_bytes(bytes_of(making.key.len(), making.value_bytes as usize));
        self.balance();
        // Where the limit was lowered there is more than it allows: then no more goes at once than is needed now.
        let least = self.pool.charged().saturating_sub(need);
        let mut extra = 0;
        loop {
            let charged = self.pool.charged();
            let is_needed = charged + need > self.limit && charged > least;
            // Beyond the limit items go one at a time, as memory between them becomes less, but not at once.
            let is_extra = self.evicts && extra < EXTRA && charged + need > self.room();
            if need <= self.limit && !is_needed && !is_extra {
                break;
            }
            extra += usize::from(!is_needed);
            let went = need <= self.limit && self.let_one_go(making.now);
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

    /// The system gives no more memory, though there might be: items have what there is, so they go for it.
    #[cold]
    fn make_slow(&mut self, making: &Making<'_>) -> Result<Fresh, NoMemory> {
        for _ in 0..NEEDED {
            if !self.let_one_go(making.now) {
                break;
            }
            if let Some(fresh) = self.pool.make(making) {
                return Ok(fresh);
            }
        }
        self.moves.refusals.bump();
        Err(NoMemory)
    }

    /// Lets one item go that may. False if none is found.
    fn let_one_go(&mut self, now: u32) -> bool {
        if self.evicts {
            self.evict(now)
        } else {
            self.reclaim(now)
        }
    }

    /// What items may need, now: what is free between them is memory, too, and so much as the heap has beyond a
    /// bound, items give up. They give up no more than that, as the heap keeps what it has: a heap a little beyond its
    /// bound would cost every item in the end. Half of the limit is theirs in any case.
    fn room(&self) -> usize {
        let bound = self.limit.saturating_add(self.limit / LOOSE);
        let beyond = self.pool.owned().saturating_sub(bound);
        self.limit - beyond.min(self.limit / 2)
    }

    /// Moves some items on from queues that have more than their share.
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

    /// Lets one item go. False if none can.
    fn evict(&mut self, now: u32) -> bool {
        let (mut spared, mut skipped) = (0, 0);
        while skipped < SKIPPED {
            let Some(tail) = self.pool.tail(Segment::Cold) else {
                // All is hot or warm: the oldest there become cold.
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
                // Just being stored, or taken out by somebody who has not told it yet.
                self.pool.shift(Segment::Cold, Segment::Cold);
                skipped += 1;
                continue;
            };
            self.count(gone.is_some(), tail.is_fetched, tail.is_active);
            self.pool.release(out);
            return true;
        }
        false
    }

    /// Lets one item go that is as good as gone, if there is one at the end of a queue. Those that are not go to the other
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
