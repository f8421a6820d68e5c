//! The table of heaps, by number: the part of each heap that other threads use, whatever becomes of
//! the heap.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `heap` | whoever makes or ends the heap | any thread that has one of its blocks |
//! | `queue` | threads that free from elsewhere; the owner | the same |
//! | `custody` | the owner; threads that tend an orphan | threads that free from elsewhere |
//! | `awaited` | whoever destroys the heap; threads that it asked | the same |
//! | `family` | the owner; whoever adopts the heap | threads that free, with several nodes |
//! | `next` | whoever pushes the number on a stack | whoever pops it |

use crate::heap::state::Heap;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::ground::directory::Directory;
use crate::ground::os::{self, Access};
use crate::heap::batch::Awaited;
use crate::heap::custody::Custody;
use crate::heap::remote::{Links, Queue};
use crate::store::numbers::{Numbers, Places};

/// The most heaps at once.
const HEAPS_MAX: usize = 1 << 22;
const HEAPS_MAX_LIMITED: usize = 1 << 14;
/// Entries opened at once: 64 KiB.
const OPENED: u32 = 1024;
/// In real-time mode this many heaps begin without a system call.
const PREPARED: u32 = 16 * OPENED;
const _: () = assert!(
    HEAPS_MAX_LIMITED.is_multiple_of(OPENED as usize) && PREPARED as usize <= HEAPS_MAX_LIMITED
);

/// A heap's entry: a cache line of its own, as all threads that free its blocks write to it.
#[repr(C, align(64))]
pub(crate) struct Entry {
    heap: AtomicUsize,
    pub(crate) queue: Queue,
    pub(crate) custody: Custody,
    pub(crate) awaited: Awaited,
    /// The thread that the heap belongs to, by the number of its first heap; 0 if none.
    pub(crate) family: AtomicU32,
    next: AtomicU32,
}

impl Entry {
    /// The heap, whose memory stays as long as it has a block.
    pub(crate) fn heap(&self) -> *const Heap {
        // Acquires the finished heap.
        ptr::with_exposed_provenance(self.heap.load(Ordering::Acquire))
    }

    /// Whether the heap's holder has something to take back. For any thread; the answer may be
    /// stale.
    pub(crate) fn has_work(&self, links: &impl Links) -> bool {
        self.queue.has_some(links) || self.awaited.is_over()
    }

    pub(crate) fn set_heap(&self, address: usize) {
        self.heap.store(address, Ordering::Release);
    }
}

/// The entries, and the numbers in use. Number 0 is never used.
pub(crate) struct Table {
    entries: AtomicUsize,
    most: AtomicUsize,
    /// Opens entries as they are needed: a process that locks its memory locks them, too.
    numbers: Numbers,
}

impl Places for Table {
    fn link(&self, number: u32) -> &AtomicU32 {
        &self.entry(number).next
    }

    fn open(&self, first: u32, count: u32) -> bool {
        let start = self.entries.load(Ordering::Relaxed) + first as usize * size_of::<Entry>();
        // SAFETY: inside of what was reserved, as the capacity is a multiple of what is opened.
        unsafe { os::allow(start, count as usize * size_of::<Entry>(), Access::Write) }
    }

    fn most(&self) -> u32 {
        self.most.load(Ordering::Relaxed) as u32
    }
}

impl Table {
    pub(crate) const fn new() -> Table {
        Table {
            entries: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            numbers: Numbers::new(),
        }
    }

    /// Reserves the entries. False if there are no addresses; a later call may try again.
    pub(crate) fn make(&self) -> bool {
        if self.entries.load(Ordering::Relaxed) != 0 {
            return true;
        }
        let most = match os::addresses_max() {
            Some(_) => HEAPS_MAX_LIMITED,
            None => HEAPS_MAX,
        };
        let entries = os::reserve(most * size_of::<Entry>());
        self.entries.store(entries, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
        entries != 0
    }

    /// Describes the table for inspection.
    pub(crate) fn describe(&self, directory: &mut Directory) {
        *directory = Directory {
            entries: self.entries.load(Ordering::Relaxed) as u64,
            entries_stride: size_of::<Entry>() as u64,
            entries_next: ptr::from_ref(self.numbers.next()).addr() as u64,
            entries_most: self.most.load(Ordering::Relaxed) as u64,
            entry_heap_at: offset_of!(Entry, heap) as u64,
            entry_custody_at: offset_of!(Entry, custody) as u64,
            entry_family_at: offset_of!(Entry, family) as u64,
            ..*directory
        };
    }

    /// The entry of a number in use.
    #[inline]
    pub(crate) fn entry(&self, number: u32) -> &'static Entry {
        let address = self.entries.load(Ordering::Relaxed) + number as usize * size_of::<Entry>();
        // SAFETY: the table has a place for every number given out, zero at first, and lives
        // forever; all fields are atomic.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }

    /// Takes a number. None if all are in use, or there is no memory for its entry.
    pub(crate) fn number(&self) -> Option<u32> {
        self.numbers.take(self, OPENED)
    }

    /// Faults in the first entries, for real-time mode.
    pub(crate) fn prepare(&self) -> bool {
        let entries = self.entries.load(Ordering::Relaxed);
        // SAFETY: open, and of this table.
        self.numbers.open(self, PREPARED - 1, OPENED)
            && unsafe { os::populate(entries, PREPARED as usize * size_of::<Entry>()).0 }
    }

    /// Gives back the number of a heap that has ended.
    pub(crate) fn end(&self, number: u32) {
        let entry = self.entry(number);
        entry.set_heap(0);
        self.numbers.give(self, number);
    }
}

/// The table of the process. There is one, as tags and marks name heaps by number.
pub(crate) static TABLE: Table = Table::new();

/// The entry of a heap, by number.
#[inline]
pub(crate) fn entry(number: u32) -> &'static Entry {
    TABLE.entry(number)
}

/// The number of the newest thread heap; each knows the one before. None is ever removed.
static LATEST: AtomicU32 = AtomicU32::new(0);

/// Puts a new heap at the head of the list. Retries while others do the same.
pub(crate) fn enlist(heap: &Heap) {
    let mut latest = LATEST.load(Ordering::Relaxed);
    loop {
        heap.earlier.set(latest);
        // Releases the heap and its link.
        let told = LATEST.compare_exchange_weak(
            latest,
            heap.number.get(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        match told {
            Ok(_) => return,
            Err(now) => latest = now,
        }
    }
}

/// The heaps of all threads, parked ones included. The caller must know which parts of them it may
/// read.
pub(crate) fn thread_heaps() -> impl Iterator<Item = &'static Heap> {
    let heap_of = |number: u32| (number != 0).then(|| heap_of(number));
    let latest = heap_of(LATEST.load(Ordering::Acquire));
    core::iter::successors(latest, move |heap| heap_of(heap.earlier.get()))
}

/// A thread's heap, by number.
pub(crate) fn heap_of(number: u32) -> &'static Heap {
    // SAFETY: heaps of threads never end.
    unsafe { &*entry(number).heap() }
}
