//! Connections that several threads share, each in a slot with a key.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `state` | who hears of an event: adds [`BUSY`] and what the event says; who works: takes it | the same |
//! | `connection` | who works, who adopts | the same, under its lock |
//!
//! A slot has one worker at a time: who changes `state` from one without [`BUSY`] to one with it, or has the event from
//! who did. Both sides change it by read-modify-write, released and acquired, so the next worker sees what the last one did.
//! An event for a connection that went meanwhile finds the slot empty, or makes a new one look in vain.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::connection::{Connection, Flags};
use crate::server::locked;

/// Somebody works on the slot, or its key is queued.
const BUSY: u32 = 1 << 3;
/// Slots are made so many at a time.
const CHUNK: usize = 256;

pub(super) struct Slot<T> {
    state: AtomicU32,
    pub(super) connection: Mutex<Option<Connection<T>>>,
}

impl<T> Slot<T> {
    /// An event: true if nobody works on the slot, and the caller has to see to it.
    pub(super) fn tell(&self, flags: Flags) -> bool {
        self.state.fetch_or(flags.bits() | BUSY, Ordering::AcqRel) & BUSY == 0
    }

    /// Somebody works on it, or is about to.
    pub(super) fn is_busy(&self) -> bool {
        self.state.load(Ordering::Acquire) & BUSY != 0
    }

    /// What was told since it was asked last. For who works on it.
    pub(super) fn take_told(&self) -> Flags {
        Flags::from_bits(self.state.fetch_and(BUSY, Ordering::AcqRel))
    }

    /// The work is done. For who works on it; false if something was told meanwhile: then it is not.
    pub(super) fn leave(&self) -> bool {
        self.state
            .compare_exchange(BUSY, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The work is done, whatever was told.
    pub(super) fn reset(&self) {
        self.state.store(0, Ordering::Release);
    }
}

type Chunk<T> = Box<[Slot<T>]>;

pub(super) struct Slots<T> {
    chunks: Box<[OnceLock<Chunk<T>>]>,
    free: Mutex<Free>,
}

struct Free {
    keys: Vec<usize>,
    /// No key from here on was ever taken.
    next: usize,
}

impl<T> Slots<T> {
    pub(super) fn new(most: usize) -> Slots<T> {
        Slots {
            chunks: (0..most.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            free: Mutex::new(Free {
                keys: Vec::new(),
                next: 0,
            }),
        }
    }

    pub(super) fn get(&self, key: usize) -> &Slot<T> {
        let chunk = self.chunks[key / CHUNK].get_or_init(|| {
            (0..CHUNK)
                .map(|_| Slot {
                    state: AtomicU32::new(0),
                    connection: Mutex::new(None),
                })
                .collect()
        });
        &chunk[key % CHUNK]
    }

    /// A key that nobody has; nothing if all are taken.
    pub(super) fn take(&self) -> Option<usize> {
        let mut free = locked(&self.free);
        free.keys.pop().or_else(|| {
            let key = free.next;
            (key < self.chunks.len() * CHUNK).then(|| free.next = key + 1)?;
            Some(key)
        })
    }

    pub(super) fn give_back(&self, key: usize) {
        locked(&self.free).keys.push(key);
    }

    /// Every slot that may have a connection.
    pub(super) fn all(&self) -> impl Iterator<Item = &Slot<T>> {
        let next = locked(&self.free).next;
        (0..next).map(|key| self.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_worker_who_hears_what_is_told_meanwhile() {
        let slots = Slots::<()>::new(1);
        let slot = slots.get(slots.take().unwrap());
        assert!(slot.tell(Flags::READ));
        assert!(!slot.tell(Flags::READ));
        assert_eq!(slot.take_told(), Flags::READ);
        let ended = Flags {
            is_ended: true,
            ..Flags::default()
        };
        assert!(!slot.tell(ended));
        assert!(!slot.leave());
        assert_eq!(slot.take_told(), ended);
        assert!(slot.leave());
        assert!(slot.tell(ended));
    }

    #[test]
    fn keys_are_taken_again_and_run_out() {
        let slots = Slots::<()>::new(CHUNK);
        let keys: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(keys.len(), CHUNK);
        slots.give_back(7);
        assert_eq!((slots.take(), slots.take()), (Some(7), None));
    }
}
