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

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::batch::Awaited;
use crate::directory::Directory;
use crate::heap::Heap;
use crate::orphan::Custody;
use crate::os::{self, Access};
use crate::remote::{Links, Queue};

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
/// So often a number is tried for on a stack.
const TRIES: usize = 8;

/// What lies here of one heap: a line of its own, as all who free its blocks write to it.
#[repr(C, align(64))]
pub(crate) struct Entry {
    heap: AtomicUsize,
    pub(crate) queue: Queue,
    pub(crate) custody: Custody,
    pub(crate) awaited: Awaited,
    /// Which thread's it is: heaps with one number have one owner. 0 is nobody's.
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
    next: AtomicU32,
    /// Entries that may be written to: made so as they are needed, as a process that locks its memory locks
    /// them too.
    open: AtomicU32,
    /// Numbers of heaps that have ended.
    ended: Stack,
}

impl Table {
    pub(crate) const fn new() -> Table {
        Table {
            entries: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            next: AtomicU32::new(1),
            open: AtomicU32::new(0),
            ended: Stack::new(),
        }
    }

    /// Reserves the entries. False if there are no addresses.
    pub(crate) fn make(&self) -> bool {
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
            entries_next: ptr::from_ref(&self.next).addr() as u64,
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

    /// A number that no heap has. None if all are in use.
    pub(crate) fn number(&self) -> Option<u32> {
        if let Some(number) = self.ended.pop(self) {
            return Some(number);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number as usize >= self.most.load(Ordering::Relaxed) || !self.open(number) {
            self.next.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(number)
    }

    /// Sees to it that the entry of a number may be written to. Two threads may open the same ones.
    fn open(&self, number: u32) -> bool {
        let open = self.open.load(Ordering::Acquire);
        if number < open {
            return true;
        }
        let start = self.entries.load(Ordering::Relaxed) + open as usize * size_of::<Entry>();
        let more = (number + 1 - open).next_multiple_of(OPENED);
        // SAFETY: inside of what was reserved, as the most is a multiple of it.
        let done = unsafe { os::allow(start, more as usize * size_of::<Entry>(), Access::Write) };
        if done {
            self.open.fetch_max(open + more, Ordering::Release);
        }
        done
    }

    /// Brings memory behind the first entries, for real-time mode.
    pub(crate) fn prepare(&self) -> bool {
        let entries = self.entries.load(Ordering::Relaxed);
        // SAFETY: open, and of this table.
        self.open(PREPARED - 1)
            && unsafe { os::populate(entries, PREPARED as usize * size_of::<Entry>()).0 }
    }

    /// The heap of a number has ended.
    pub(crate) fn end(&self, number: u32) {
        let entry = self.entry(number);
        entry.set_heap(0);
        self.ended.push(self, number);
    }
}

/// Numbers that somebody may take, the last one first.
pub(crate) struct Stack {
    /// The number on top, and a count of changes above it, which keeps a number that was taken and put
    /// back meanwhile apart.
    top: AtomicU64,
}

impl Stack {
    pub(crate) const fn new() -> Stack {
        Stack {
            top: AtomicU64::new(0),
        }
    }

    /// Puts a number on. It is tried again while others do the same, so that none is lost.
    pub(crate) fn push(&self, table: &Table, number: u32) {
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            table
                .entry(number)
                .next
                .store(top as u32, Ordering::Relaxed);
            let changed = ((top >> 32) + 1) << 32 | u64::from(number);
            // Releases what was done with the heap.
            match self
                .top
                .compare_exchange_weak(top, changed, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes a number. None if there is none, or others were always first.
    pub(crate) fn pop(&self, table: &Table) -> Option<u32> {
        for _ in 0..TRIES {
            let top = self.top.load(Ordering::Acquire);
            let number = top as u32;
            if number == 0 {
                return None;
            }
            let next = table.entry(number).next.load(Ordering::Relaxed);
            let changed = ((top >> 32) + 1) << 32 | u64::from(next);
            // Acquires what was done with the heap.
            if self
                .top
                .compare_exchange(top, changed, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Some(number);
            }
        }
        None
    }
}
