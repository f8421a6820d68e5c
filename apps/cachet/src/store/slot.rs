//! The slot of a key: its item is read, changed, replaced and removed under one lock.

use std::sync::MutexGuard;

use super::stripes::{Gone, Stripe};
use crate::items::{Entry, EntryMut, Fresh, Marks, Out};

/// The slot of one key, locked.
#[derive(Debug)]
pub struct KeySlot<'a> {
    pub(super) stripe: MutexGuard<'a, Stripe>,
    pub(super) key: &'a [u8],
    pub(super) hash: u64,
    pub(super) now: u32,
}

/// Condition on the present value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None.
    Set,
    /// There is none.
    Add,
    /// There is one.
    Replace,
    /// There is one, which the new piece follows.
    Append,
    /// There is one, which the new piece precedes.
    Prepend,
}

impl Mode {
    /// Name of the command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Set => "set",
            Mode::Add => "add",
            Mode::Replace => "replace",
            Mode::Append => "append",
            Mode::Prepend => "prepend",
        }
    }
}

/// Condition on the number of the present value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The number it must have.
    pub cas: Option<u64>,
    /// A lower number is accepted, but marks the item as stale.
    pub takes_stale: bool,
}

/// Result of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Stored under this number.
    Stored(u64),
    /// There is a value, or there is none.
    NotStored,
    /// The value is not the expected one.
    Exists,
    /// There is no value to compare with.
    NotFound,
}

impl KeySlot<'_> {
    /// The present second.
    #[must_use]
    pub fn now(&self) -> u32 {
        self.now
    }

    /// The stored item.
    #[must_use]
    pub fn find(&self) -> Option<Entry<'_>> {
        self.stripe.chains.find(self.hash, self.key)
    }

    /// The stored item, to be changed.
    #[must_use]
    pub fn find_mut(&mut self) -> Option<EntryMut<'_>> {
        self.stripe.chains.find_mut(self.hash, self.key)
    }

    /// Reason why the item here is dead, if it is.
    pub(super) fn why_gone(&self) -> Option<Gone> {
        self.stripe.numbers.is_gone(self.find()?, self.now)
    }

    /// The next number for a value.
    pub fn next_cas(&mut self) -> u64 {
        self.stripe.numbers.next_cas()
    }

    /// Removes the stored item.
    pub fn take(&mut self) -> Option<Out> {
        self.stripe.chains.take(self.hash, self.key)
    }

    /// Stores an item unconditionally. Returns its number, and the former item.
    pub fn put(&mut self, mut fresh: Fresh) -> (u64, Option<Out>) {
        let cas = self.stripe.numbers.next_cas();
        fresh.set_cas(cas);
        (cas, self.stripe.chains.put(fresh))
    }

    /// Stores an item under a condition. Returns the item no longer needed, which is the new one if
    /// it is not stored. Pieces to be joined are not stored here: see
    /// [`Store::store`](super::Store::store).
    pub fn store(
        &mut self,
        mut fresh: Fresh,
        mode: Mode,
        condition: Condition,
    ) -> (Stored, Option<Out>) {
        let now = self.now;
        let Some(known) = self.find() else {
            let verdict = match (condition.cas, mode) {
                (Some(_), Mode::Set | Mode::Replace) => Stored::NotFound,
                (_, Mode::Set | Mode::Add) => {
                    let (cas, out) = self.put(fresh);
                    return (Stored::Stored(cas), out);
                }
                _ => Stored::NotStored,
            };
            return (verdict, Some(fresh.give_up()));
        };
        match mode {
            Mode::Add => {
                known.renew(now);
                return (Stored::NotStored, Some(fresh.give_up()));
            }
            Mode::Append | Mode::Prepend => return (Stored::NotStored, Some(fresh.give_up())),
            Mode::Set | Mode::Replace => {}
        }
        let is_older = match condition.cas {
            Some(wanted) if wanted == known.cas() => false,
            Some(wanted) if condition.takes_stale && (1..known.cas()).contains(&wanted) => true,
            Some(_) => return (Stored::Exists, Some(fresh.give_up())),
            None => false,
        };
        if is_older {
            // It stays as stale as it is, for as long as it was to stay.
            let mut marks = fresh.marks().with(Marks::STALE);
            if known.marks().has(Marks::TOKEN_SENT) {
                marks = marks.with(Marks::TOKEN_SENT);
            }
            fresh.set_marks(marks);
            fresh.set_expires(known.expires());
        }
        let (cas, out) = self.put(fresh);
        (Stored::Stored(cas), out)
    }
}
