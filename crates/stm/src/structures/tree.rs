//! A sorted map: a red-black tree in a slab.

use std::cmp::Ordering;
use std::marker::PhantomData;

use super::red_black::{Memory, RedBlack};
use super::slab::Slab;
use crate::algorithm::Algorithm;
use crate::halt::Halt;
use crate::tx::Tx;
use crate::word::Word;

// Words of a node.
const LINKS: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

/// A sorted map of words.
///
/// ```
/// use hearth_stm::{Stm, Tree};
///
/// let (stm, tree) = (Stm::new(), Tree::with_capacity(100));
/// for key in [3, -1, 2] {
///     stm.atomically(|tx| tree.insert(tx, key, key * 10));
/// }
/// let keys = stm.atomically(|tx| {
///     let mut keys = Vec::new();
///     tree.visit(tx, |key, _| keys.push(key))?;
///     Ok(keys)
/// });
/// assert_eq!(keys, [-1, 2, 3]);
/// ```
pub struct Tree<K, V> {
    slab: Slab,
    kind: PhantomData<fn() -> (K, V)>,
}

struct Nodes<'t, 'v, A: Algorithm> {
    tx: &'t mut Tx<'v, A>,
    slab: &'v Slab,
}

impl<A: Algorithm> Memory for Nodes<'_, '_, A> {
    type Halt = Halt;

    #[inline(always)]
    fn key_and_links(&mut self, node: u32) -> Result<(u64, u64), Halt> {
        let words = [KEY, LINKS].map(|word| self.slab.word(node, word));
        self.tx.read_pair(words[0], words[1])
    }

    #[inline(always)]
    fn links(&mut self, node: u32) -> Result<u64, Halt> {
        self.tx.read(self.slab.word(node, LINKS))
    }

    #[inline(always)]
    fn value(&mut self, node: u32) -> Result<u64, Halt> {
        self.tx.read(self.slab.word(node, VALUE))
    }

    #[inline]
    fn set_links(&mut self, node: u32, links: u64) -> Result<(), Halt> {
        self.tx.write(self.slab.word(node, LINKS), links)
    }

    #[inline]
    fn set_value(&mut self, node: u32, value: u64) -> Result<(), Halt> {
        self.tx.write(self.slab.word(node, VALUE), value)
    }

    #[inline]
    fn set_entry(&mut self, node: u32, key: u64, value: u64) -> Result<(), Halt> {
        self.tx.write(self.slab.word(node, KEY), key)?;
        self.tx.write(self.slab.word(node, VALUE), value)
    }

    fn allocate(&mut self) -> Result<u32, Halt> {
        self.slab.allocate(self.tx)
    }

    fn free(&mut self, node: u32) -> Result<(), Halt> {
        self.slab.free(self.tx, node)
    }
}

#[inline(always)]
fn order<K: Word + Ord>(key: K) -> impl Fn(u64) -> Ordering {
    move |other| key.cmp(&K::from_word(other))
}

impl<K: Word + Ord, V: Word> Tree<K, V> {
    /// An empty map with room for this many entries at first.
    pub fn with_capacity(capacity: usize) -> Tree<K, V> {
        Tree {
            slab: Slab::with_capacity(capacity),
            kind: PhantomData,
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The attempt met a conflict.
    #[inline]
    pub fn get<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, key: K) -> Result<Option<V>, Halt> {
        let value = RedBlack(&mut self.nodes(tx)).get(order(key))?;
        Ok(value.map(V::from_word))
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
        let mut nodes = self.nodes(tx);
        let old = RedBlack(&mut nodes).insert(order(key), key.into_word(), value.into_word())?;
        Ok(old.map(V::from_word))
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
        let value = RedBlack(&mut self.nodes(tx)).remove(order(key))?;
        Ok(value.map(V::from_word))
    }

    /// Visits all entries in the order of their keys.
    ///
    /// # Errors
    /// The attempt met a conflict; then it has visited some.
    pub fn visit<'v, A: Algorithm>(
        &'v self,
        tx: &mut Tx<'v, A>,
        mut entry: impl FnMut(K, V),
    ) -> Result<(), Halt> {
        RedBlack(&mut self.nodes(tx))
            .visit(|key, value| entry(K::from_word(key), V::from_word(value)))
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

    /// Panics if the tree breaks a rule of red-black trees.
    #[cfg(test)]
    pub(crate) fn check<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) {
        RedBlack(&mut self.nodes(tx)).check();
    }

    #[inline(always)]
    fn nodes<'t, 'v, A: Algorithm>(&'v self, tx: &'t mut Tx<'v, A>) -> Nodes<'t, 'v, A> {
        Nodes {
            tx,
            slab: &self.slab,
        }
    }
}
