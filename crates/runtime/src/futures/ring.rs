//! A thread's open records, which other threads may take.
//!
//! A slot holds the address of a record that nobody runs yet, or nothing. Whoever changes it to
//! nothing has the record: its owner, who takes it back, or a thief. Records lie on their owner's
//! stack, so nobody reads one before it has it.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | a slot | its thread: to a record; any thread: to nothing, by exchange | all |
//! | `height` | its thread | all, as a hint |
//! | `open`, `run`, `runs` | its thread | its thread |
//!
//! A slot's high bits name the run in which its record was pushed. A thread that waits for a record
//! takes others only from the run of that record, so everything that it runs meanwhile is a part of
//! what it waits for: see [`Ring::steal_within`].

use crate::ground::sync::{AtomicU32, AtomicUsize, Ordering, PlainCell};

use super::record::Record;

/// Slots of a ring: the records that one thread has open at a time. In models, few.
pub(super) const ROOM: usize = if cfg!(loom) { 2 } else { 64 };

/// Bits of an address, from the lowest. Linux gives programs no higher ones unless they ask.
const ADDRESS_BITS: u32 = 48;
/// Numbers of runs: the rest of a word. They come round again; see `steal_within`.
const RUNS: usize = 1 << (usize::BITS - ADDRESS_BITS);

/// The open records of one thread.
#[repr(align(128))]
pub(super) struct Ring {
    slots: [AtomicUsize; ROOM],
    /// 1 + the highest slot that was in use lately.
    height: AtomicU32,
    /// Bits of the slots whose records have not ended.
    open: PlainCell<u64>,
    /// The number of the run that the thread is in, and of the latest that it began.
    run: PlainCell<usize>,
    runs: PlainCell<usize>,
}

// SAFETY: the table above says which thread touches what.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) fn new() -> Ring {
        Ring {
            slots: std::array::from_fn(|_| AtomicUsize::new(0)),
            height: AtomicU32::new(0),
            open: PlainCell::new(0),
            run: PlainCell::new(0),
            runs: PlainCell::new(0),
        }
    }

    // ---- its thread ---------------------------------------------------------------------------

    /// Opens a record to all. None, if there is no room: then nobody sees it. Otherwise its slot.
    pub(super) fn push(&self, record: *mut Record) -> Option<usize> {
        let open = self.open.get();
        // Above all that are open: thieves take the oldest first.
        let slot = (u64::BITS - open.leading_zeros()) as usize;
        if slot >= ROOM {
            return None;
        }
        self.open.set(open | 1 << slot);
        if self.height.load(Ordering::Relaxed) != slot as u32 + 1 {
            self.height.store(slot as u32 + 1, Ordering::Relaxed);
        }
        let address = record.expose_provenance();
        debug_assert!(address >> ADDRESS_BITS == 0, "an address of {address:#x}");
        // Release pairs with the Acquire of the thief: it sees the record as it is now.
        self.slots[slot].store(address | self.run.get() << ADDRESS_BITS, Ordering::Release);
        Some(slot)
    }

    /// Takes a record back from its slot. False: another thread has it.
    pub(super) fn take_back(&self, slot: usize) -> bool {
        // Relaxed: the record is this thread's own, and whoever else has had it says so elsewhere.
        self.slots[slot].swap(0, Ordering::Relaxed) != 0
    }

    /// Takes the youngest of its own records above a slot.
    pub(super) fn take_above(&self, slot: usize) -> Option<*mut Record> {
        let above = !(u64::MAX >> (u64::BITS - 1 - slot as u32));
        let mut left = self.open.get() & above;
        while left != 0 {
            let next = (u64::BITS - 1 - left.leading_zeros()) as usize;
            left &= !(1 << next);
            let word = self.slots[next].swap(0, Ordering::Relaxed);
            if word != 0 {
                return Some(record_in(word));
            }
        }
        None
    }

    /// Number of its records that nobody has.
    pub(super) fn count(&self) -> usize {
        let slots = self.slots.iter();
        slots
            .filter(|slot| slot.load(Ordering::Relaxed) != 0)
            .count()
    }

    /// Takes the record with this number among them.
    pub(super) fn take_nth(&self, number: usize) -> Option<*mut Record> {
        let mut slots = self.slots.iter();
        let slot = slots
            .by_ref()
            .filter(|slot| slot.load(Ordering::Relaxed) != 0)
            .nth(number)?;
        let word = slot.swap(0, Ordering::Acquire);
        (word != 0).then(|| record_in(word))
    }

    /// Records that the record of a slot has ended.
    pub(super) fn close(&self, slot: usize) {
        self.open.set(self.open.get() & !(1 << slot));
    }

    /// Begins the run of a record: those pushed from here on carry its number.
    pub(super) fn begin_run(&self) -> Run {
        let outer = self.run.get();
        let number = (self.runs.get() + 1) % RUNS;
        self.runs.set(number);
        self.run.set(number);
        Run { outer, number }
    }

    /// Ends the latest run.
    pub(super) fn end_run(&self, run: &Run) {
        self.run.set(run.outer);
    }

    // ---- any thread ---------------------------------------------------------------------------

    /// Takes its oldest record.
    pub(super) fn steal(&self) -> Option<*mut Record> {
        self.steal_if(|_| true)
    }

    /// Takes its oldest record of that run. Numbers of runs come round after 65536; a thread that
    /// is held up for as long between its look and its exchange, and then finds the same record in
    /// the same slot, takes one that is no part of what it waits for. That costs it time: it
    /// returns to its own work later.
    pub(super) fn steal_within(&self, run: usize) -> Option<*mut Record> {
        self.steal_if(|word| word >> ADDRESS_BITS == run)
    }

    fn steal_if(&self, is_wanted: impl Fn(usize) -> bool) -> Option<*mut Record> {
        let height = (self.height.load(Ordering::Relaxed) as usize).min(ROOM);
        for slot in &self.slots[..height] {
            let word = slot.load(Ordering::Relaxed);
            if word == 0 || !is_wanted(word) {
                continue;
            }
            // Acquire pairs with the Release of `push`.
            let taken = slot.compare_exchange(word, 0, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return Some(record_in(word));
            }
        }
        None
    }

    /// Whether a thief might find something.
    pub(super) fn has_some(&self) -> bool {
        let height = (self.height.load(Ordering::Relaxed) as usize).min(ROOM);
        self.slots[..height]
            .iter()
            .any(|slot| slot.load(Ordering::Relaxed) != 0)
    }
}

/// The run of a record on some thread.
pub(super) struct Run {
    outer: usize,
    pub(super) number: usize,
}

fn record_in(word: usize) -> *mut Record {
    std::ptr::with_exposed_provenance_mut(word & ((1 << ADDRESS_BITS) - 1))
}
