//! The store: what keys have which values, for how long, in how much memory.

pub mod allocation;
pub mod clock;
pub mod counters;
mod crawl;
pub mod hash;
pub mod section;
mod slot;
pub mod stripes;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hearth_sys::clock::Clock as Ticks;

use crate::items::{Entry, Fresh, KEY_MAX, Making, Out, Place, block_bytes, bytes_of};
use allocation::{Allocation, Holdings, Moves};
use clock::Clock;
use counters::Counters;
use crawl::Crawl;
use hash::KeyHash;
use section::{Measured, Section};

pub use crawl::{Chores, Walk};
pub use section::Running;
use stripes::{Gone, Stripes};

pub use slot::{Condition, Mode, Slot, Stored};

/// What a store may be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What items may need, in bytes.
    pub memory: usize,
    /// Items go when memory is needed; else nothing more is stored.
    pub evicts: bool,
    /// The largest item, in bytes, as memcached counts them.
    pub item_max: usize,
    /// How many items there may be before a table grows: this power of two.
    pub hash_power: u32,
    /// How many locks there are: this power of two.
    pub lock_power: u32,
    /// How the allocation section runs.
    pub running: Running,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            memory: 64 << 20,
            evicts: true,
            item_max: 1 << 20,
            hash_power: 16,
            lock_power: 10,
            running: Running::default(),
        }
    }
}

/// Why there is no new item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It would be larger than items may be.
    TooLarge,
    /// There is no memory for it.
    NoMemory,
}

/// Why there is no store.
#[derive(Debug)]
pub enum NoStore {
    /// There is no memory for one.
    Memory,
    /// There is no thread for the proprietor of its allocation section.
    Proprietor(hearth_sync::NoProprietor),
}

impl std::fmt::Display for NoStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoStore::Memory => f.write_str("there is no memory for a store"),
            NoStore::Proprietor(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NoStore {}

/// The items and all that belongs to them.
#[derive(Debug)]
pub struct Store {
    settings: Settings,
    hash: KeyHash,
    clock: Clock,
    stripes: Arc<Stripes>,
    section: Section,
    moves: Arc<Moves>,
    crawl: Crawl,
    /// What blocks have whose values are under way, in bytes, and what they may have.
    awaited: Arc<AtomicUsize>,
    awaited_max: AtomicUsize,
}

/// A share of the memory for a value that is under way; given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What a thread needs to use the store.
#[derive(Debug, Default)]
pub struct Worker {
    /// What it counts.
    pub counters: Arc<Counters>,
    out: Vec<Out>,
    out_bytes: usize,
}

/// A worker keeps so much back at most before it frees it; else it does so when it allocates anyway.
const KEPT_ITEMS: usize = 32;
const KEPT_BYTES: usize = 64 << 10;

impl Worker {
    /// With counters that others read.
    #[must_use]
    pub fn new(counters: Arc<Counters>) -> Worker {
        Worker {
            counters,
            ..Worker::default()
        }
    }

    /// Keeps an item to be freed.
    pub fn keep(&mut self, out: Option<Out>) {
        if let Some(out) = out {
            self.out_bytes += out.bytes();
            self.out.push(out);
        }
    }
}

/// What memcached needs for an item beside key and value, by which it says what is too large: what is known of it, the
/// number of its value, the end of its key.
const MEMCACHED_OVERHEAD: usize = 48 + 8 + 1 + 2;
/// This part of the memory may be for values that are under way. Nothing evicts those, so whoever announces values and does not
/// send them would have all of it; the largest item that may be asked for (`-I`) has as much.
const AWAITED: usize = 2;

impl Store {
    /// A store.
    ///
    /// # Errors
    /// There is no memory for one, or no thread for the proprietor of its allocation section.
    pub fn new(settings: Settings, ticks: Ticks) -> Result<Store, NoStore> {
        let stripes = Arc::new(Stripes::new(
            1 << settings.lock_power,
            1 << settings.hash_power,
        ));
        let allocation = Allocation::new(Arc::clone(&stripes), settings.memory, settings.evicts)
            .ok_or(NoStore::Memory)?;
        Ok(Store {
            moves: allocation.moves(),
            section: Section::new(allocation, ticks, &settings.running)
                .map_err(NoStore::Proprietor)?,
            hash: KeyHash::new(),
            clock: Clock::new(),
            stripes,
            awaited: Arc::default(),
            awaited_max: AtomicUsize::new(settings.memory / AWAITED),
            settings,
            crawl: Crawl::default(),
        })
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What it was told.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the allocation section counts.
    #[must_use]
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// What there is. Enters the allocation section.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        self.section.enter(|allocation| allocation.holdings())
    }

    /// What was measured of the allocation section, and what the section itself has counted.
    #[must_use]
    pub fn measured(&self) -> (Measured, hearth_sync::Statistics) {
        self.section.measured()
    }

    /// How the allocation section runs, and why.
    #[must_use]
    pub fn explain(&self) -> String {
        self.section.explain()
    }

    /// From now on the system gives no more memory.
    #[cfg(test)]
    pub fn starve(&self) {
        self.section.enter(Allocation::starve);
    }

    /// Counts all from 0 on that is counted here and not by workers.
    pub fn reset_counted(&self) {
        self.section.enter(Allocation::reset_moves);
        self.crawl.reset();
    }

    /// Changes what items may need, in bytes.
    pub fn set_memory(&self, bytes: usize) {
        self.awaited_max.store(bytes / AWAITED, Ordering::Relaxed);
        self.section.enter(|allocation| allocation.set_limit(bytes));
    }

    /// Changes how much of it hot and warm items may have, in percent.
    pub fn set_shares(&self, hot: usize, warm: usize) {
        self.section
            .enter(|allocation| allocation.set_shares(hot, warm));
    }

    /// The hash of a key.
    #[inline]
    #[must_use]
    pub fn hash_of(&self, key: &[u8]) -> u64 {
        self.hash.of(key)
    }

    /// A new item for a key, which is to be filled and then stored or given up.
    ///
    /// # Errors
    /// It is too large, or there is no memory.
    pub fn make(
        &self,
        worker: &mut Worker,
        (key, hash): (&[u8], u64),
        value_bytes: usize,
    ) -> Result<Fresh, Refused> {
        debug_assert!(key.len() <= KEY_MAX);
        if key.len() + value_bytes + MEMCACHED_OVERHEAD > self.settings.item_max {
            worker.counters.store_too_large.bump();
            return Err(Refused::TooLarge);
        }
        let making = Making {
            key,
            hash,
            value_bytes: value_bytes as u32,
            now: self.clock.now(),
        };
        worker.out_bytes = 0;
        let out = &mut worker.out;
        let made = self.section.enter(|allocation| {
            allocation.release(out.drain(..));
            allocation.allocate(&making)
        });
        made.map_err(|_| {
            worker.counters.store_no_memory.bump();
            Refused::NoMemory
        })
    }

    /// A share for a new item whose value has not come yet; None if those before have theirs. One may always be under way.
    ///
    /// Relaxed: a number is compared and added to, and nothing else is read by it. By one exchange: a share that is refused
    /// must not stand in the sum for a moment, where it would have others refused that there is room for.
    #[must_use]
    pub fn share_for(&self, fresh: &Fresh) -> Option<Share> {
        let bytes = block_bytes(bytes_of(fresh.key().len(), fresh.value_bytes()));
        let most = self.awaited_max.load(Ordering::Relaxed);
        let is_room = |before: usize| before == 0 || before + bytes <= most;
        self.awaited
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
                is_room(before).then_some(before + bytes)
            })
            .ok()?;
        Some(Share {
            of: Arc::clone(&self.awaited),
            bytes,
        })
    }

    /// Frees what a worker has kept back, if it is much.
    pub fn settle(&self, worker: &mut Worker) {
        if worker.out.len() >= KEPT_ITEMS || worker.out_bytes >= KEPT_BYTES {
            self.free_kept(worker);
        }
    }

    /// Frees all that a worker has kept back.
    pub fn free_kept(&self, worker: &mut Worker) {
        worker.out_bytes = 0;
        let out = &mut worker.out;
        if !out.is_empty() {
            self.section
                .enter(|allocation| allocation.release(out.drain(..)));
        }
    }

    /// Looks for an item, and shows it if there is one. It stays locked meanwhile.
    #[inline]
    pub fn get<R>(
        &self,
        worker: &mut Worker,
        (key, hash): (&[u8], u64),
        show: impl FnOnce(Entry<'_>) -> R,
    ) -> Option<R> {
        let mut stripe = self.stripes.lock(hash);
        let now = self.clock.now();
        let entry = stripe.chains.find(hash, key)?;
        match stripe.numbers.is_gone(entry, now) {
            None => {
                let result = show(entry);
                entry.bump(now);
                Some(result)
            }
            Some(why) => {
                let out = stripe.chains.take(hash, key);
                drop(stripe);
                note_gone(worker, why);
                worker.keep(out);
                None
            }
        }
    }

    /// The place of a key, locked. Not to be held while anything is allocated.
    pub fn slot<'a>(&'a self, worker: &mut Worker, (key, hash): (&'a [u8], u64)) -> Slot<'a> {
        let mut stripe = self.stripes.lock(hash);
        let now = self.clock.now();
        if let Some(entry) = stripe.chains.find(hash, key)
            && let Some(why) = stripe.numbers.is_gone(entry, now)
        {
            note_gone(worker, why);
            worker.keep(stripe.chains.take(hash, key));
        }
        Slot {
            stripe,
            key,
            hash,
            now,
        }
    }

    /// The same, with what is there although its time has come.
    pub fn slot_as_it_is<'a>(&'a self, (key, hash): (&'a [u8], u64)) -> Slot<'a> {
        Slot {
            stripe: self.stripes.lock(hash),
            key,
            hash,
            now: self.clock.now(),
        }
    }

    /// Stores an item.
    pub fn store(
        &self,
        worker: &mut Worker,
        fresh: Fresh,
        mode: Mode,
        condition: Condition,
    ) -> Stored {
        worker.counters.cmd_set.bump();
        if matches!(mode, Mode::Append | Mode::Prepend) {
            return self.join(worker, fresh, mode == Mode::Append, condition.cas);
        }
        let mut key = [0; KEY_MAX];
        let key = copy_key(&fresh, &mut key);
        let (stored, out) = self
            .slot(worker, (key, fresh.hash()))
            .store(fresh, mode, condition);
        worker.keep(out);
        if condition.cas.is_some() {
            let counters = &worker.counters;
            match stored {
                Stored::Stored(_) => counters.cas_hits.bump(),
                Stored::Exists => counters.cas_badval.bump(),
                Stored::NotFound => counters.cas_misses.bump(),
                Stored::NotStored => {}
            }
        }
        worker
            .counters
            .total_items
            .add(u64::from(matches!(stored, Stored::Stored(_))));
        stored
    }

    /// Stores what there is and a new piece as one value.
    ///
    /// The new item is made while nothing is locked; if the value is another one by then, once more.
    fn join(&self, worker: &mut Worker, piece: Fresh, is_after: bool, cas: Option<u64>) -> Stored {
        let mut key = [0; KEY_MAX];
        let key = (copy_key(&piece, &mut key), piece.hash());
        let new = piece.bytes().len() - 2;
        let stored = loop {
            let found = {
                let slot = self.slot(worker, key);
                slot.find().map(|entry| (entry.cas(), entry.value_bytes()))
            };
            let Some((known, old)) = found else {
                break Stored::NotStored;
            };
            // Where pieces are joined 0 is no number.
            if cas.is_some_and(|wanted| wanted != known && wanted != 0) {
                break Stored::Exists;
            }
            let Ok(mut joined) = self.make(worker, key, old + new) else {
                break Stored::NotStored;
            };
            let mut slot = self.slot(worker, key);
            let is_same = match slot.find() {
                Some(entry) if entry.cas() == known => {
                    if is_after {
                        joined.push(entry.value());
                        joined.push(piece.bytes());
                    } else {
                        joined.push(&piece.bytes()[..new]);
                        joined.push(entry.value_and_end());
                    }
                    joined.set_client_flags(entry.client_flags());
                    joined.set_expires(entry.expires());
                    true
                }
                _ => false,
            };
            if is_same {
                let (cas, out) = slot.put(joined);
                drop(slot);
                worker.keep(out);
                worker.counters.total_items.bump();
                break Stored::Stored(cas);
            }
            drop(slot);
            worker.keep(Some(joined.give_up()));
        };
        worker.keep(Some(piece.give_up()));
        stored
    }

    /// What the tables need, in bytes.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        let parts = 0..self.stripes.count();
        parts
            .map(|part| self.stripes.lock_one(part).chains.bytes())
            .sum()
    }
}

impl Drop for Store {
    /// Frees the items, so that the heap can be given back.
    fn drop(&mut self) {
        let mut worker = Worker::default();
        for part in 0..self.stripes.count() {
            let mut place = Some(Place::default());
            while let Some(from) = place {
                let chains = &mut self.stripes.lock_one(part).chains;
                (_, place) = chains.take_some(from, KEPT_ITEMS, |_| true, &mut worker.out);
                self.free_kept(&mut worker);
            }
        }
    }
}

fn note_gone(worker: &Worker, why: Gone) {
    match why {
        Gone::Expired => worker.counters.get_expired.bump(),
        Gone::Forgotten => worker.counters.get_flushed.bump(),
    }
}

/// The key of an item that is about to be handed over.
fn copy_key<'a>(fresh: &Fresh, place: &'a mut [u8; KEY_MAX]) -> &'a [u8] {
    let key = fresh.key();
    place[..key.len()].copy_from_slice(key);
    &place[..key.len()]
}

/// All workers' counters.
#[derive(Debug, Default)]
pub struct AllCounters(Mutex<Vec<Arc<Counters>>>);

impl AllCounters {
    /// Counters for one more worker.
    #[must_use]
    pub fn one_more(&self) -> Arc<Counters> {
        let one = Arc::new(Counters::default());
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&one));
        one
    }

    /// What all have counted together.
    #[must_use]
    pub fn sum(&self) -> Counters {
        let sum = Counters::default();
        for one in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            sum.absorb(one);
        }
        sum
    }

    /// All from 0 on.
    pub fn reset(&self) {
        for one in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            one.reset();
        }
    }
}
