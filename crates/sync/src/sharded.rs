//! Several sections, one for each shard of the keys.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

use crate::{CallError, Mode, NoProprietor, Owned, Statistics};

/// Sharded data: a key chooses the shard, each a section of its own. By message, several
/// proprietors serve at once, each the only one of its shard.
///
/// ```
/// use std::collections::HashMap;
/// use hearth_sync::{Mode, Owned, Sharded};
///
/// let counts = Sharded::build(4, |_| Owned::builder().mode(Mode::Message), |_| HashMap::new())?;
/// counts.call_keyed("a", |counts| *counts.entry("a").or_insert(0) += 1);
/// assert_eq!(counts.call_keyed("a", |counts| counts["a"]), 1);
/// let all: usize = counts.shards().map(|shard| shard.call(|counts| counts.len())).sum();
/// assert_eq!(all, 1);
/// # Ok::<(), hearth_sync::NoProprietor>(())
/// ```
///
/// Shards are independent: one thread's requests to different shards have no order.
pub struct Sharded<T: Send + 'static> {
    shards: Box<[Owned<T>]>,
    hasher: RandomState,
}

impl<T: Send + 'static> Sharded<T> {
    /// Makes `count` shards, at least one, each from its own builder and data.
    ///
    /// # Errors
    /// The system has no thread for a proprietor.
    pub fn build(
        count: usize,
        builder: impl Fn(usize) -> crate::Builder<T>,
        mut data: impl FnMut(usize) -> T,
    ) -> Result<Sharded<T>, NoProprietor> {
        let shards = (0..count.max(1)).map(|index| builder(index).build(data(index)));
        Ok(Sharded {
            shards: shards.collect::<Result<_, _>>()?,
            hasher: RandomState::new(),
        })
    }

    /// The shard of a key.
    pub fn shard_of<Q: Hash + ?Sized>(&self, key: &Q) -> &Owned<T> {
        // The upper half of a product: every shard gets its share, whatever their number.
        let hash = self.hasher.hash_one(key);
        let index = (u128::from(hash) * self.shards.len() as u128) >> 64;
        &self.shards[index as usize]
    }

    /// Runs a closure on the shard of a key, and returns its result.
    ///
    /// # Panics
    /// As [`Owned::call`].
    pub fn call_keyed<R, F, Q>(&self, key: &Q, closure: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
        Q: Hash + ?Sized,
    {
        self.shard_of(key).call(closure)
    }

    /// Runs a closure on the shard of a key, and returns refusals.
    ///
    /// # Errors
    /// As [`Owned::checked_call`].
    ///
    /// # Panics
    /// With the closure's panic.
    pub fn checked_call_keyed<R, F, Q>(&self, key: &Q, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
        Q: Hash + ?Sized,
    {
        self.shard_of(key).checked_call(closure)
    }

    /// Runs a closure on the shard of a key without waiting for it.
    ///
    /// # Panics
    /// As [`Owned::post`].
    pub fn post_keyed<F, Q>(&self, key: &Q, closure: F)
    where
        F: FnOnce(&mut T) + Send + 'static,
        Q: Hash + ?Sized,
    {
        self.shard_of(key).post(closure);
    }

    /// All shards, in order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Owned<T>> {
        self.shards.iter()
    }

    /// Changes the way of calls in all shards.
    ///
    /// # Errors
    /// The system has no thread for a proprietor; shards before that one have changed.
    pub fn set_mode(&self, mode: Mode) -> Result<(), NoProprietor> {
        self.shards().try_for_each(|shard| shard.set_mode(mode))
    }

    /// Statistics of each shard.
    pub fn statistics(&self) -> Vec<Statistics> {
        self.shards().map(Owned::statistics).collect()
    }

    /// The shards themselves.
    pub fn into_shards(self) -> Vec<Owned<T>> {
        self.shards.into_vec()
    }
}

impl<T: Send + 'static> Clone for Sharded<T> {
    fn clone(&self) -> Sharded<T> {
        Sharded {
            shards: self.shards.clone(),
            hasher: self.hasher.clone(),
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Sharded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shards.iter()).finish()
    }
}
