//! A hash map.

use std::marker::PhantomData;

use super::slab::{NIL, Slab};
use crate::algorithm::Algorithm;
use crate::halt::Halt;
use crate::tx::Tx;
use crate::var::Var;
use crate::word::Word;

// Words of a node. The key and the link are read together.
const KEY: usize = 1;
const NEXT: usize = 2;
const VALUE: usize = 3;

/// A hash map of words. Keys are the same if their words are.
///
/// The number of buckets is fixed when the map is made; a map with many more entries stays correct
/// and becomes slower. A map that grew would conflict with every transaction that uses it.
///
/// ```
/// use hearth_stm::{Map, Stm};
///
/// let (stm, map) = (Stm::new(), Map::with_capacity(100));
/// stm.atomically(|tx| map.insert(tx, 7, true));
/// assert_eq!(stm.atomically(|tx| map.get(tx, 7)), Some(true));
/// ```
pub struct Map<K, V> {
    slab: Slab,
    /// The first node of each bucket.
    buckets: Box<[Var<u32>]>,
    kind: PhantomData<fn() -> (K, V)>,
}

impl<K: Word, V: Word> Map<K, V> {
    /// A map that is fast up to about this many entries.
    pub fn with_capacity(capacity: usize) -> Map<K, V> {
        let count = capacity.next_power_of_two().max(2);
        Map {
            slab: Slab::with_capacity(capacity),
            buckets: (0..count).map(|_| Var::new(NIL)).collect(),
            kind: PhantomData,
        }
    }

    fn bucket(&self, key: u64) -> &Var<u32> {
        // Fibonacci hashing; the high bits are the good ones.
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = hash ^ hash >> 32;
        let shift = 64 - self.buckets.len().ilog2();
        &self.buckets[(hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> shift) as usize]
    }

    /// The node with a key and the variable that points to it; without such a node NIL, and the
    /// last variable of the bucket.
    fn find<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        key: u64,
    ) -> Result<(u32, Option<&'v Var<u64>>), Halt> {
        let mut node = tx.read(self.bucket(key))?;
        let mut from = None;
        while node != NIL {
            let next = self.slab.word(node, NEXT);
            let (found, after) = tx.read_pair(self.slab.word(node, KEY), next)?;
            if found == key {
                break;
            }
            from = Some(next);
            node = after as u32;
        }
        Ok((node, from))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn get<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: K) -> Result<Option<V>, Halt> {
        let (node, _) = self.find(tx, key.into_word())?;
        if node == NIL {
            return Ok(None);
        }
        let value = tx.read(self.slab.word(node, VALUE))?;
        Ok(Some(V::from_word(value)))
    }

    /// Sets the value of a key, and gives its old one.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn insert<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        key: K,
        value: V,
    ) -> Result<Option<V>, Halt> {
        let (key, value) = (key.into_word(), value.into_word());
        let (node, _) = self.find(tx, key)?;
        if node != NIL {
            let place = self.slab.word(node, VALUE);
            let old = tx.read(place)?;
            tx.write(place, value)?;
            return Ok(Some(V::from_word(old)));
        }
        let node = self.slab.allocate(tx)?;
        let first = tx.read(self.bucket(key))?;
        tx.write(self.slab.word(node, KEY), key)?;
        tx.write(self.slab.word(node, NEXT), first.into())?;
        tx.write(self.slab.word(node, VALUE), value)?;
        tx.write(self.bucket(key), node)?;
        Ok(None)
    }

    /// Takes a key out, and gives its value.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn remove<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        key: K,
    ) -> Result<Option<V>, Halt> {
        let key = key.into_word();
        let (node, from) = self.find(tx, key)?;
        if node == NIL {
            return Ok(None);
        }
        let words = [NEXT, VALUE].map(|word| self.slab.word(node, word));
        let (next, value) = tx.read_pair(words[0], words[1])?;
        match from {
            Some(from) => tx.write(from, next)?,
            None => tx.write(self.bucket(key), next as u32)?,
        }
        self.slab.free(tx, node)?;
        Ok(Some(V::from_word(value)))
    }

    /// The number of entries. Conflicts with whoever adds or takes out one.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn len<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<u64, Halt> {
        self.slab.given(tx)
    }

    /// Whether the map has no entry. Conflicts with whoever adds or takes out one.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn is_empty<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<bool, Halt> {
        Ok(self.len(tx)? == 0)
    }
}
