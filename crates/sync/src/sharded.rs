//! Several sections, one for each part of the keys.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};

use crate::{CallError, Mode, NoProprietor, Owned, Statistics};

/// Data in parts, each a section of its own: a key says which. By message, several proprietors serve at once, each
/// the only one of its part.
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
/// Parts are independent: nothing is promised about the order of one thread's requests to different ones.
pub struct Sharded<T: Send + 'static, S = RandomState> {
    shards: Box<[Owned<T>]>,
    hasher: S,
}

impl<T: Send + 'static> Sharded<T> {
    /// So many parts, at least one: each built as `builder` says, of the data that `data` makes for it.
    ///
    /// # Errors
    /// The system has no thread for a proprietor.
    pub fn build(
        count: usize,
        builder: impl Fn(usize) -> crate::Builder<T>,
        data: impl FnMut(usize) -> T,
    ) -> Result<Sharded<T>, NoProprietor> {
        Sharded::build_with_hasher(count, builder, data, RandomState::new())
    }
}

impl<T: Send + 'static, S: BuildHasher> Sharded<T, S> {
    /// The same with a way to hash of the caller's.
    ///
    /// # Errors
    /// As [`build`](Sharded::build).
    pub fn build_with_hasher(
        count: usize,
        builder: impl Fn(usize) -> crate::Builder<T>,
        mut data: impl FnMut(usize) -> T,
        hasher: S,
    ) -> Result<Sharded<T, S>, NoProprietor> {
        let shards = (0..count.max(1)).map(|index| builder(index).build(data(index)));
        Ok(Sharded {
            shards: shards.collect::<Result<_, _>>()?,
            hasher,
        })
    }

    /// The part that a key is in.
    pub fn shard_of<Q: Hash + ?Sized>(&self, key: &Q) -> &Owned<T> {
        // The upper half of a product: every part gets its share, whatever their count.
        let hash = self.hasher.hash_one(key);
        let index = (u128::from(hash) * self.shards.len() as u128) >> 64;
        &self.shards[index as usize]
    }

    /// Runs a closure on the part that a key is in, and returns its result.
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

    /// The same, but refusals are returned.
    ///
    /// # Errors
    /// As [`Owned::try_call`].
    ///
    /// # Panics
    /// With what the closure panics with.
    pub fn try_call_keyed<R, F, Q>(&self, key: &Q, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
        Q: Hash + ?Sized,
    {
        self.shard_of(key).try_call(closure)
    }

    /// Has a closure run on the part that a key is in, and does not wait for it.
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
}

impl<T: Send + 'static, S> Sharded<T, S> {
    /// All parts, in their order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Owned<T>> {
        self.shards.iter()
    }

    /// Changes the way that calls take, in all parts.
    ///
    /// # Errors
    /// The system has no thread for a proprietor; parts before that one have changed.
    pub fn set_mode(&self, mode: Mode) -> Result<(), NoProprietor> {
        self.shards().try_for_each(|shard| shard.set_mode(mode))
    }

    /// What each part has done so far.
    pub fn statistics(&self) -> Vec<Statistics> {
        self.shards().map(Owned::statistics).collect()
    }

    /// The parts themselves.
    pub fn into_shards(self) -> Vec<Owned<T>> {
        self.shards.into_vec()
    }
}

impl<T: Send + 'static, S: Clone> Clone for Sharded<T, S> {
    fn clone(&self) -> Sharded<T, S> {
        Sharded {
            shards: self.shards.clone(),
            hasher: self.hasher.clone(),
        }
    }
}

impl<T: Send + 'static, S> fmt::Debug for Sharded<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shards.iter()).finish()
    }
}
