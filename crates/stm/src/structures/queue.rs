//! A queue, first in, first out.

use std::marker::PhantomData;

use super::slab::{NIL, Slab};
use crate::algorithm::Algorithm;
use crate::halt::Halt;
use crate::tx::Tx;
use crate::var::Var;
use crate::word::Word;

/// The value of a node.
const VALUE: usize = 1;
/// The node behind it.
const NEXT: usize = 2;

#[repr(align(128))]
struct End(Var<u32>);

/// A queue without a bound.
///
/// The node at the head is empty, its value has been taken. So whoever adds and whoever takes write
/// different words, unless the queue was empty.
///
/// ```
/// use hearth_stm::{Queue, Stm};
///
/// let (stm, queue) = (Stm::new(), Queue::new());
/// stm.atomically(|tx| {
///     queue.push(tx, 1.5)?;
///     queue.push(tx, 2.5)
/// });
/// assert_eq!(stm.atomically(|tx| queue.pop(tx)), Some(1.5));
/// ```
pub struct Queue<T> {
    slab: Slab,
    head: End,
    tail: End,
    kind: PhantomData<fn() -> T>,
}

impl<T: Word> Queue<T> {
    /// An empty queue.
    pub fn new() -> Queue<T> {
        Queue {
            slab: Slab::with_capacity(64),
            // The slab's own node serves as the first empty one.
            head: End(Var::new(NIL)),
            tail: End(Var::new(NIL)),
            kind: PhantomData,
        }
    }

    /// Adds a value at the end.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn push<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>, value: T) -> Result<(), Halt> {
        let node = self.slab.allocate(tx)?;
        tx.write(self.slab.word(node, VALUE), value.into_word())?;
        tx.write(self.slab.word(node, NEXT), NIL.into())?;
        let last = tx.read(&self.tail.0)?;
        tx.write(self.slab.word(last, NEXT), node.into())?;
        tx.write(&self.tail.0, node)
    }

    /// Takes the value that has been there longest.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn pop<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<Option<T>, Halt> {
        let empty = tx.read(&self.head.0)?;
        let first = tx.read(self.slab.word(empty, NEXT))? as u32;
        if first == NIL {
            return Ok(None);
        }
        let value = tx.read(self.slab.word(first, VALUE))?;
        tx.write(&self.head.0, first)?;
        if empty != NIL {
            self.slab.free(tx, empty)?;
        }
        Ok(Some(T::from_word(value)))
    }

    /// Takes the value that has been there longest, or retries until there is one.
    ///
    /// # Errors
    /// The attempt met a conflict, or waits.
    pub fn pop_or_retry<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<T, Halt> {
        match self.pop(tx)? {
            Some(value) => Ok(value),
            None => tx.retry(),
        }
    }

    /// Whether the queue has no value.
    ///
    /// # Errors
    /// The attempt met a conflict.
    pub fn is_empty<'v, A: Algorithm>(&'v self, tx: &mut Tx<'v, A>) -> Result<bool, Halt> {
        let empty = tx.read(&self.head.0)?;
        Ok(tx.read(self.slab.word(empty, NEXT))? as u32 == NIL)
    }
}

impl<T: Word> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue::new()
    }
}
