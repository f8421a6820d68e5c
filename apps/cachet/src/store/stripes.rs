//! The items as they are found: parts by hash, each with a lock and a hash table of its own.
//!
//! A part grows alone, under its own lock: that holds up who wants this part for as long as it takes to move its
//! some hundred items, and nobody else. So no table is ever moved as a whole, and there is nothing to be taken
//! along step by step.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::items::{Chains, Entry, ItemId, Out, Place};

/// A part of the items.
#[derive(Debug)]
pub struct Stripe {
    /// The items.
    pub chains: Chains,
    /// The numbers of their values.
    pub numbers: Numbers,
}

/// What numbers were given to values.
#[derive(Debug)]
pub struct Numbers {
    /// The last one given.
    last: u64,
    /// Items with this one and those before were told to be forgotten.
    forgotten: u64,
    /// As many as there are parts, so that no two items have the same.
    step: u64,
}

impl Numbers {
    /// The next number, larger than those before and no other part's.
    pub fn next_cas(&mut self) -> u64 {
        self.last += self.step;
        self.last
    }

    /// Is an item as good as gone?
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

/// Why an item is as good as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Its time has come.
    Expired,
    /// All were told to be forgotten.
    Forgotten,
}

impl Stripe {
    /// All items that are here now are as good as gone.
    pub fn forget(&mut self) {
        // With a number of its own, as memcached has it.
        self.numbers.forgotten = self.numbers.next_cas();
    }

    /// Lets items go that are as good as gone, from a place on, and looks at so many or a few more. How many it looked at,
    /// and where to go on; None at the end.
    pub fn sweep(
        &mut self,
        from: Place,
        most: usize,
        now: u32,
        out: &mut Vec<Out>,
    ) -> (usize, Option<Place>) {
        let numbers = &self.numbers;
        let is_over = |entry: Entry<'_>| numbers.is_gone(entry, now).is_some();
        self.chains.take_some(from, most, is_over, out)
    }
}

/// Apart from each other, so that no two locks share a cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Apart(Mutex<Stripe>);

/// All parts.
#[derive(Debug)]
pub struct Stripes {
    all: Box<[Apart]>,
    /// The high bits of a hash choose the part; the low ones the chain in it.
    shift: u32,
}

impl Stripes {
    /// So many parts, a power of two, for so many items at first.
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

    /// The part of a hash, locked.
    #[inline]
    pub fn lock(&self, hash: u64) -> MutexGuard<'_, Stripe> {
        // A shift by 64 is none.
        let part = hash.checked_shr(self.shift).unwrap_or(0);
        self.lock_one(part as usize)
    }

    /// A part by its number, locked.
    pub fn lock_one(&self, part: usize) -> MutexGuard<'_, Stripe> {
        // Who panics with a part locked leaves it in order: all changes are made in one step.
        self.all[part]
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// How many parts there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Lets one item go, if it is there; and tells whether it was as good as gone.
    pub fn take_one(&self, hash: u64, id: ItemId, now: u32) -> Option<(Out, Option<Gone>)> {
        let mut stripe = self.lock(hash);
        let out = stripe.chains.take_one(hash, id)?;
        let why = stripe.numbers.why_gone(out.expires(), out.cas(), now);
        Some((out, why))
    }

    /// The same, if it is as good as gone.
    pub fn take_gone(&self, hash: u64, id: ItemId, now: u32) -> Option<Out> {
        let mut stripe = self.lock(hash);
        stripe
            .numbers
            .is_gone(stripe.chains.find_one(hash, id)?, now)?;
        stripe.chains.take_one(hash, id)
    }
}
