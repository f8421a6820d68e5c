//! Slots for connections that several threads share, each with a key.
//!
//! | field | writer | reader |
//! |---|---|---|
//! | `state` | receiver of an event: adds [`BUSY`] and its flags; worker: takes them | the same |
//! | `connection` | the worker, and the thread that adopts | the same, under its lock |
//!
//! A slot has one worker at a time: the thread that sets [`BUSY`] in `state`, or that gets the key
//! from that thread. Both sides change the state by read-modify-write, release and acquire, so the
//! next worker sees what the last one did. An event for a connection closed meanwhile finds the
//! slot empty, or makes a new one look in vain.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::connection::{Connection, Flags};
use hearth_sys::threading::lock_std;

/// A thread works on the slot, or its key is queued.
const BUSY: u32 = 1 << 3;
/// Number of slots made at a time.
const CHUNK: usize = 256;

pub(super) struct ConnectionSlot<T> {
    state: AtomicU32,
    pub(super) connection: Mutex<Option<Connection<T>>>,
}

impl<T> ConnectionSlot<T> {
    /// Records an event. True if no thread works on the slot, and the caller must.
    pub(super) fn tell(&self, flags: Flags) -> bool {
        self.state.fetch_or(flags.bits() | BUSY, Ordering::AcqRel) & BUSY == 0
    }

    /// True if a thread works on it, or is about to.
    pub(super) fn is_busy(&self) -> bool {
        self.state.load(Ordering::Acquire) & BUSY != 0
    }

    /// Takes the events recorded since the last call. For the worker.
    pub(super) fn take_told(&self) -> Flags {
        Flags::from_bits(self.state.fetch_and(BUSY, Ordering::AcqRel))
    }

    /// Ends the work, for the worker. False, and no end, if an event was recorded meanwhile.
    pub(super) fn leave(&self) -> bool {
        self.state
            .compare_exchange(BUSY, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Ends the work and discards all recorded events.
    pub(super) fn reset(&self) {
        self.state.store(0, Ordering::Release);
    }
}

type Chunk<T> = Box<[ConnectionSlot<T>]>;

pub(super) struct ConnectionSlots<T> {
    chunks: Box<[OnceLock<Chunk<T>>]>,
    free: Mutex<Free>,
}

struct Free {
    keys: Vec<usize>,
    /// First key never taken.
    next: usize,
}

impl<T> ConnectionSlots<T> {
    pub(super) fn new(most: usize) -> ConnectionSlots<T> {
        ConnectionSlots {
            chunks: (0..most.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            free: Mutex::new(Free {
                keys: Vec::new(),
                next: 0,
            }),
        }
    }

    pub(super) fn get(&self, key: usize) -> &ConnectionSlot<T> {
        let chunk = self.chunks[key / CHUNK].get_or_init(|| {
            (0..CHUNK)
                .map(|_| ConnectionSlot {
                    state: AtomicU32::new(0),
                    connection: Mutex::new(None),
                })
                .collect()
        });
        &chunk[key % CHUNK]
    }

    /// Takes a free key. None if all are taken.
    pub(super) fn take(&self) -> Option<usize> {
        let mut free = lock_std(&self.free);
        free.keys.pop().or_else(|| {
            let key = free.next;
            (key < self.chunks.len() * CHUNK).then(|| free.next = key + 1)?;
            Some(key)
        })
    }

    pub(super) fn give_back(&self, key: usize) {
        lock_std(&self.free).keys.push(key);
    }

    /// All slots that may have a connection.
    pub(super) fn all(&self) -> impl Iterator<Item = &ConnectionSlot<T>> {
        let next = lock_std(&self.free).next;
        (0..next).map(|key| self.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_worker_who_hears_what_is_told_meanwhile() {
        let slots = ConnectionSlots::<()>::new(1);
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
        let slots = ConnectionSlots::<()>::new(CHUNK);
        let keys: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(keys.len(), CHUNK);
        slots.give_back(7);
        assert_eq!((slots.take(), slots.take()), (Some(7), None));
    }
}
