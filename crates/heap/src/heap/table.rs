//! All heaps of a process by their numbers: what others must be able to reach of a heap, whatever becomes
//! of it.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `heap` | who makes the heap or ends it | everyone who has one of its blocks |
//! | `queue` | who frees from elsewhere; the owner | the same |
//! | `custody` | the owner; who looks after an orphan | who frees from elsewhere |
//! | `awaited` | who destroys the heap; who is asked to | the same |
//! | `family` | the owner; who adopts the heap | who frees, on machines of several nodes |
//! | `next` | who puts the number on a stack | who takes it from there |

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

/// As many heaps as there can be at once; and where the addresses are limited.
const HEAPS_MAX: usize = 1 << 22;
const HEAPS_MAX_LIMITED: usize = 1 << 14;
/// Entries are opened so many at a time: 64 KiB.
const OPENED: u32 = 1024;
/// In real-time mode so many heaps begin without a call to the kernel.
const PREPARED: u32 = 16 * OPENED;
const _: () = assert!(
    HEAPS_MAX_LIMITED.is_multiple_of(OPENED as usize) && PREPARED as usize <= HEAPS_MAX_LIMITED
);

/// What lies here of one heap: a line of its own, as all who free its blocks write to it.
#[repr(C, align(64))]
pub(crate) struct Entry {
    heap: AtomicUsize,
    pub(crate) queue: Queue,
    pub(crate) custody: Custody,
    pub(crate) awaited: Awaited,
    /// Which thread's it is: the number of its first heap. 0 is nobody's.
    pub(crate) family: AtomicU32,
    next: AtomicU32,
}

impl Entry {
    /// Where the heap is. Its memory stays as long as it has a block.
    pub(crate) fn heap(&self) -> *const Heap {
        // Acquires that it is made.
        ptr::with_exposed_provenance(self.heap.load(Ordering::Acquire))
    }

    /// Is there something to be done for the heap by who has it? Anyone may ask, and it may be late.
    pub(crate) fn has_something(&self, links: &impl Links) -> bool {
        self.queue.has_some(links) || self.awaited.is_over()
    }

    pub(crate) fn set_heap(&self, address: usize) {
        self.heap.store(address, Ordering::Release);
    }
}

/// The entries, and which numbers are in use. Number 0 is nobody's.
pub(crate) struct Table {
    entries: AtomicUsize,
    most: AtomicUsize,
    /// Entries are opened as they are needed, as a process that locks its memory locks them too.
    numbers: Numbers,
}

impl Places for Table {
    fn link(&self, number: u32) -> &AtomicU32 {
        &self.entry(number).next
    }

    fn open(&self, first: u32, count: u32) -> bool {
        let start = self.entries.load(Ordering::Relaxed) + first as usize * size_of::<Entry>();
        // SAFETY: inside of what was reserved, as the most is a multiple of what is opened.
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

    /// Reserves the entries. False if there are no addresses; it may be asked for again.
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

    /// For who looks from outside.
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

    /// The entry of a number that was given out.
    #[inline]
    pub(crate) fn entry(&self, number: u32) -> &'static Entry {
        let address = self.entries.load(Ordering::Relaxed) + number as usize * size_of::<Entry>();
        // SAFETY: the table has a place for every number that was given out, zero at first, and lives
        // forever; all fields are atomic.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }

    /// A number that no heap has. None if all are in use, or there is no memory for its entry.
    pub(crate) fn number(&self) -> Option<u32> {
        self.numbers.take(self, OPENED)
    }

    /// Brings memory behind the first entries, for real-time mode.
    pub(crate) fn prepare(&self) -> bool {
        let entries = self.entries.load(Ordering::Relaxed);
        // SAFETY: open, and of this table.
        self.numbers.open(self, PREPARED - 1, OPENED)
            && unsafe { os::populate(entries, PREPARED as usize * size_of::<Entry>()).0 }
    }

    /// The heap of a number has ended.
    pub(crate) fn end(&self, number: u32) {
        let entry = self.entry(number);
        entry.set_heap(0);
        self.numbers.give(self, number);
    }
}

/// The table of the process: any mark must find its heap by number.
pub(crate) static TABLE: Table = Table::new();

/// What others must know of the heap of a number.
#[inline]
pub(crate) fn entry(number: u32) -> &'static Entry {
    TABLE.entry(number)
}

/// The heap of a thread that was made last, by number; each knows the one before. None ever leaves.
static LATEST: AtomicU32 = AtomicU32::new(0);

/// Puts a new heap before all others. It is tried again while others do the same.
pub(crate) fn enlist(heap: &Heap) {
    let mut latest = LATEST.load(Ordering::Relaxed);
    loop {
        heap.earlier.set(latest);
        // Releases the heap, and what leads to the one before.
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

/// The heaps of all threads, parked ones too: what others may look at of them is for the caller to know.
pub(crate) fn thread_heaps() -> impl Iterator<Item = &'static Heap> {
    let heap_of = |number: u32| (number != 0).then(|| heap_of(number));
    let latest = heap_of(LATEST.load(Ordering::Acquire));
    core::iter::successors(latest, move |heap| heap_of(heap.earlier.get()))
}

/// The heap of a thread, by its number.
pub(crate) fn heap_of(number: u32) -> &'static Heap {
    // SAFETY: heaps of threads never end.
    unsafe { &*entry(number).heap() }
}
