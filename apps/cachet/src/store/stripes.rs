//! Stripes: the items by hash, in parts with a lock and a hash table each.
//!
//! A stripe grows alone, under its own lock: that delays only its own users, for as long as it
//! takes to move some hundred items. So no table is ever moved as a whole, and nothing has to be
//! moved step by step.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::items::{Chains, Entry, ItemId, Out, WalkPosition};

/// A stripe of the items.
#[derive(Debug)]
pub struct Stripe {
    /// The items.
    pub chains: Chains,
    /// Numbers of their values.
    pub numbers: Numbers,
}

/// The numbers given to values.
#[derive(Debug)]
pub struct Numbers {
    /// Last number given.
    last: u64,
    /// Items with this number and lower ones are flushed.
    forgotten: u64,
    /// Number of stripes, so that no two items have the same number.
    step: u64,
}

impl Numbers {
    /// The next number, larger than those before and no other stripe's.
    pub fn next_cas(&mut self) -> u64 {
        self.last += self.step;
        self.last
    }

    /// Continues after this number.
    #[cfg(test)]
    pub fn count_from(&mut self, last: u64) {
        self.last = last;
    }

    /// True if an item is dead.
    #[inline]
    #[must_use]
    pub fn is_gone(&self, entry: Entry<'_>, now: u32) -> Option<Gone> {
        self.why_gone(entry.expires(), entry.cas(), now)
    }

    #[inline]
    fn why_gone(&self, expires: u32, cas: u64, now: u32) -> Option<Gone> {
        if expires != 0 && expires <= now {
            return Some(Gone::Expired);
        }
        (cas <= self.forgotten).then_some(Gone::Forgotten)
    }
}

/// Reason why an item is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It has expired.
    Expired,
    /// It was flushed.
    Forgotten,
}

impl Stripe {
    /// Flushes all items that are here now.
    pub fn forget(&mut self) {
        // Takes a number of its own, as memcached does.
        self.numbers.forgotten = self.numbers.next_cas();
    }

    /// Removes dead items, from a place on, among about `most` items. Returns the number looked at,
    /// and the place to continue at; None at the end.
    pub fn sweep(
        &mut self,
        from: WalkPosition,
        most: usize,
        now: u32,
        out: &mut Vec<Out>,
    ) -> (usize, Option<WalkPosition>) {
        let numbers = &self.numbers;
        let is_over = |entry: Entry<'_>| numbers.is_gone(entry, now).is_some();
        self.chains.take_some(from, most, is_over, out)
    }
}

/// Aligned so that no two locks share a cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Apart(Mutex<Stripe>);

/// All stripes.
#[derive(Debug)]
pub struct Stripes {
    all: Box<[Apart]>,
    /// The high bits of a hash choose the stripe; the low ones the chain in it.
    shift: u32,
}

impl Stripes {
    /// Makes `count` stripes, a power of two, for an initial number of items.
    #[must_use]
    pub fn new(count: usize, items: usize) -> Stripes {
        assert!(count.is_power_of_two(), "{count} parts");
        let all = (0..count).map(|i| {
            let numbers = Numbers {
                last: i as u64,
                forgotten: 0,
                step: count as u64,
            };
            Apart(Mutex::new(Stripe {
                chains: Chains::new(items / count),
                numbers,
            }))
        });
        let all = all.collect();
        Stripes {
            all,
            shift: 64 - count.trailing_zeros(),
        }
    }

    /// Locks the stripe of a hash.
    #[inline]
    pub fn lock(&self, hash: u64) -> MutexGuard<'_, Stripe> {
        // A shift by 64 gives none.
        let part = hash.checked_shr(self.shift).unwrap_or(0);
        self.lock_one(part as usize)
    }

    /// Locks a stripe by its number.
    pub fn lock_one(&self, part: usize) -> MutexGuard<'_, Stripe> {
        // A panic leaves the stripe in order: all changes are made in one step.
        self.all[part]
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of stripes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Removes one item, if it is there. Returns also whether it was dead.
    pub fn take_one(&self, hash: u64, id: ItemId, now: u32) -> Option<(Out, Option<Gone>)> {
        let mut stripe = self.lock(hash);
        let out = stripe.chains.take_one(hash, id)?;
        let why = stripe.numbers.why_gone(out.expires(), out.cas(), now);
        Some((out, why))
    }

    /// Removes one item, if it is there and dead.
    pub fn take_gone(&self, hash: u64, id: ItemId, now: u32) -> Option<Out> {
        let mut stripe = self.lock(hash);
        stripe
            .numbers
            .is_gone(stripe.chains.find_one(hash, id)?, now)?;
        stripe.chains.take_one(hash, id)
    }
}
