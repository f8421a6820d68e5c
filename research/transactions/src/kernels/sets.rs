//! Sets of integers: a sorted list, a skip list, a red-black tree, a hash table.
//!
//! The four structures of TinySTM's own benchmarks with their defaults: 256 entries at first, keys
//! from twice as many, and updates in a fifth of the transactions.

use std::sync::atomic::{AtomicI64, Ordering};

use hearth_stm::{Algorithm, Halt, Map, Slab, Stm, Tree, Tx};

use super::{Kernel, Random, Size};

const ENTRIES: usize = 256;
const KEYS: usize = 2 * ENTRIES;
const UPDATE_PERCENT: usize = 20;

/// A set that transactions share.
pub(super) trait Set: Default + Send + Sync {
    fn has<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt>;

    /// Adds a key; false if it is there. A new entry may use the random number.
    fn add<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        key: u64,
        random: u64,
    ) -> Result<bool, Halt>;

    /// Takes a key out; false if it is not there.
    fn take<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt>;
}

// Words of a list's node. The words of node 0 serve as the list's head.
const KEY: usize = 1;
const NEXT: usize = 2;

/// A sorted list.
pub(super) struct List(Slab);

impl Default for List {
    fn default() -> List {
        List(Slab::with_capacity(KEYS))
    }
}

impl List {
    /// The last node before a key, and the node behind it with its key.
    fn find<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        key: u64,
    ) -> Result<(u32, u32, u64), Halt> {
        let (mut before, mut at) = (0, tx.read(self.0.word(0, NEXT))? as u32);
        while at != 0 {
            let (found, next) = tx.read_pair(self.0.word(at, KEY), self.0.word(at, NEXT))?;
            if found >= key {
                return Ok((before, at, found));
            }
            (before, at) = (at, next as u32);
        }
        Ok((before, 0, u64::MAX))
    }
}

impl Set for List {
    fn has<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        Ok(self.find(tx, key)?.2 == key)
    }

    fn add<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64, _: u64) -> Result<bool, Halt> {
        let (before, at, found) = self.find(tx, key)?;
        if found == key {
            return Ok(false);
        }
        let node = self.0.allocate(tx)?;
        tx.write(self.0.word(node, KEY), key)?;
        tx.write(self.0.word(node, NEXT), at.into())?;
        tx.write(self.0.word(before, NEXT), node.into())?;
        Ok(true)
    }

    fn take<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        let (before, at, found) = self.find(tx, key)?;
        if found != key {
            return Ok(false);
        }
        let next = tx.read(self.0.word(at, NEXT))?;
        tx.write(self.0.word(before, NEXT), next)?;
        self.0.free(tx, at)?;
        Ok(true)
    }
}

/// Levels of a skip list; a node is in each with a quarter of the chance of the one below, so they
/// are enough for some thousand entries.
const LEVELS: usize = 6;

/// A skip list: nodes in a slab, two links in each word but that of the key.
pub(super) struct SkipList(Slab);

impl Default for SkipList {
    fn default() -> SkipList {
        let slab = Slab::with_capacity(KEYS);
        SkipList(slab)
    }
}

impl SkipList {
    /// The word with a level's link, and its shift.
    fn place(level: usize) -> (usize, usize) {
        ([2, 3, 0][level / 2], level % 2 * 32)
    }

    fn link<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        node: u32,
        level: usize,
    ) -> Result<u32, Halt> {
        let (word, shift) = SkipList::place(level);
        Ok((tx.read(self.0.word(node, word))? >> shift) as u32)
    }

    fn set_link<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        node: u32,
        level: usize,
        to: u32,
    ) -> Result<(), Halt> {
        let (word, shift) = SkipList::place(level);
        let place = self.0.word(node, word);
        let other = tx.read(place)? & (u64::from(u32::MAX) << (32 - shift));
        tx.write(place, other | u64::from(to) << shift)
    }

    /// For each level the last node before a key; and the node with the key, or 0.
    fn find<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        key: u64,
    ) -> Result<([u32; LEVELS], u32), Halt> {
        let (mut before, mut at, mut found) = ([0; LEVELS], 0, 0);
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.link(tx, at, level)?;
                let next_key = match next {
                    0 => u64::MAX,
                    _ => tx.read(self.0.word(next, KEY))?,
                };
                if next_key >= key {
                    found = if next_key == key { next } else { 0 };
                    break;
                }
                at = next;
            }
            before[level] = at;
        }
        Ok((before, found))
    }
}

impl Set for SkipList {
    fn has<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        Ok(self.find(tx, key)?.1 != 0)
    }

    fn add<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        key: u64,
        random: u64,
    ) -> Result<bool, Halt> {
        let (before, found) = self.find(tx, key)?;
        if found != 0 {
            return Ok(false);
        }
        let node = self.0.allocate(tx)?;
        // A freed node has old links; two random bits decide on each level.
        for word in [0, 2, 3] {
            tx.write(self.0.word(node, word), 0)?;
        }
        tx.write(self.0.word(node, KEY), key)?;
        let levels = (random.trailing_zeros() as usize / 2 + 1).min(LEVELS);
        for (level, &before) in before[..levels].iter().enumerate() {
            let next = self.link(tx, before, level)?;
            self.set_link(tx, node, level, next)?;
            self.set_link(tx, before, level, node)?;
        }
        Ok(true)
    }

    fn take<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        let (before, found) = self.find(tx, key)?;
        if found == 0 {
            return Ok(false);
        }
        for (level, before) in before.into_iter().enumerate() {
            if self.link(tx, before, level)? == found {
                let next = self.link(tx, found, level)?;
                self.set_link(tx, before, level, next)?;
            }
        }
        self.0.free(tx, found)?;
        Ok(true)
    }
}

/// A red-black tree.
pub(super) struct RedBlackTree(Tree<u64, ()>);

impl Default for RedBlackTree {
    fn default() -> RedBlackTree {
        RedBlackTree(Tree::with_capacity(KEYS))
    }
}

impl Set for RedBlackTree {
    fn has<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        Ok(self.0.get(tx, key)?.is_some())
    }

    fn add<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64, _: u64) -> Result<bool, Halt> {
        Ok(self.0.insert(tx, key, ())?.is_none())
    }

    fn take<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        Ok(self.0.remove(tx, key)?.is_some())
    }
}

/// A hash table.
pub(super) struct HashTable(Map<u64, ()>);

impl Default for HashTable {
    fn default() -> HashTable {
        HashTable(Map::with_capacity(KEYS))
    }
}

impl Set for HashTable {
    fn has<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        Ok(self.0.get(tx, key)?.is_some())
    }

    fn add<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64, _: u64) -> Result<bool, Halt> {
        Ok(self.0.insert(tx, key, ())?.is_none())
    }

    fn take<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: u64) -> Result<bool, Halt> {
        Ok(self.0.remove(tx, key)?.is_some())
    }
}

/// Look-ups and updates of a set.
pub(super) struct Sets<A: Algorithm, S> {
    stm: Stm<A>,
    set: S,
    each: usize,
    seed: u64,
    /// How often each key was added less how often it was taken.
    there: Vec<AtomicI64>,
}

impl<A: Algorithm, S: Set> Sets<A, S> {
    pub(super) fn new(stm: Stm<A>, size: Size, seed: u64) -> Sets<A, S> {
        let sets = Sets {
            stm,
            set: S::default(),
            each: match size {
                Size::Small => 2000,
                Size::Published => 50_000,
            },
            seed,
            there: (0..KEYS).map(|_| AtomicI64::new(0)).collect(),
        };
        let mut random = Random::new(seed);
        let mut keys: Vec<usize> = (0..KEYS).collect();
        random.shuffle(&mut keys);
        for &key in &keys[..ENTRIES] {
            sets.add(key, &mut random);
        }
        sets
    }

    fn add(&self, key: usize, random: &mut Random) {
        let number = random.bits();
        let is_new = self
            .stm
            .atomically(|tx| self.set.add(tx, key as u64, number));
        self.there[key].fetch_add(is_new.into(), Ordering::Relaxed);
    }
}

impl<A: Algorithm, S: Set> Kernel for Sets<A, S> {
    fn work(&self, thread: usize) {
        let mut random = Random::new(self.seed * 1000 + thread as u64);
        for _ in 0..self.each {
            let key = random.below(KEYS);
            if !random.happens(UPDATE_PERCENT) {
                self.stm.atomically(|tx| self.set.has(tx, key as u64));
            } else if random.happens(50) {
                self.add(key, &mut random);
            } else {
                let was_there = self.stm.atomically(|tx| self.set.take(tx, key as u64));
                self.there[key].fetch_sub(was_there.into(), Ordering::Relaxed);
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        for (key, there) in self.there.iter().enumerate() {
            let is_there = self.stm.atomically(|tx| self.set.has(tx, key as u64));
            let count = there.load(Ordering::Relaxed);
            if count != i64::from(is_there) {
                return Err(format!("key {key} was added {count} times more than taken"));
            }
        }
        Ok(())
    }
}
