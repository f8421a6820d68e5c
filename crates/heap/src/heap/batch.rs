//! The marks that a thread keeps back: blocks of one region of another heap, freed but not yet
//! marked.
//!
//! Sending costs an exchange, so blocks of one region that are freed in a row are sent together,
//! when the thread frees a block of another region, looks for memory, or waits. Until then the
//! region shows nothing of it. A heap that is [destroyed](crate::heap::destroy) must know of marks
//! still to come, or they would be set in memory that somebody else has by then. So batches are
//! visible to other threads:
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `region`, `marks` | the thread | the same; whoever destroys a heap |
//! | `of` | the thread; whoever destroys a heap, by an exchange that asks for a notice | the same |
//! | [`Awaited`] | whoever destroys a heap; threads that were asked, by exchange | the same |
//!
//! When a heap is destroyed, every free of its blocks has returned. So of each such batch the
//! destroyer sees the beginning, and one of two things. Either *the batch is gone*: then its marks
//! are set, and visible in the region, as a thread sets the marks and pushes the region before it
//! clears the batch, which releases both. Or *the batch is still there*: then the destroyer asks
//! for a notice, and the thread finds the request when it clears the batch, as both use an
//! exchange. Whether the marks are set by then, or taken back long ago, nobody can know; so the
//! blocks in question stay until the thread gives notice.

use crate::ground::geometry::RegionId;
use hearth_atomics::{AtomicU32, AtomicU64, Ordering, SingleWriter};

/// Blocks freed and not yet marked. Zero is empty.
pub(crate) struct Batch {
    /// The number of their heap, perhaps with [`ASKED`]; 0 if empty.
    of: AtomicU32,
    /// Their region; 0 if empty.
    region: AtomicU32,
    marks: AtomicU64,
}

/// The destroyer of the heap awaits a notice. Numbers of heaps are smaller.
const ASKED: u32 = 1 << 31;

/// The outcome of sending a batch.
pub(crate) struct Sent<T> {
    /// The result of the sending function.
    pub(crate) result: T,
    /// The destroyer awaits a notice: [`Awaited::sent`].
    pub(crate) is_awaited: bool,
}

impl Batch {
    #[cfg(loom)]
    pub(crate) fn new() -> Batch {
        Batch {
            of: AtomicU32::new(0),
            region: AtomicU32::new(0),
            marks: AtomicU64::new(0),
        }
    }

    /// The region, or none; for the thread.
    #[inline]
    pub(crate) fn region(&self) -> RegionId {
        RegionId(self.region.load_own())
    }

    /// The number of the heap; for the thread.
    #[cfg(not(loom))]
    pub(crate) fn of(&self) -> u32 {
        self.of.load(Ordering::Relaxed) & !ASKED
    }

    /// Begins a batch with a block of a region; for the thread, whose batch is empty.
    #[inline]
    pub(crate) fn begin(&self, of: u32, region: RegionId, block: u64) {
        // Release, with Acquire in `ask`: a thread that reads one of these two knows that the
        // previous batch is gone.
        self.region.store(region.0, Ordering::Release);
        self.marks.store(block, Ordering::Release);
        // Releases what was written to the block, and the two stores above.
        self.of.store(of, Ordering::Release);
    }

    /// Adds a block of the same region. False if the batch has it already. For the thread.
    #[inline]
    #[must_use = "a block that is freed twice must be reported"]
    pub(crate) fn add(&self, block: u64) -> bool {
        let marks = self.marks.load_own();
        self.marks.store(marks | block, Ordering::Release);
        marks & block == 0
    }

    /// Sends all marks by `send`, then clears the batch; for the thread.
    #[inline]
    pub(crate) fn send<T>(&self, send: impl FnOnce(u32, RegionId, u64) -> T) -> Sent<T> {
        let of = self.of.load(Ordering::Relaxed) & !ASKED;
        let result = send(of, self.region(), self.marks.load_own());
        // Releases the marks and the region's place in the queue. Either this or the exchange in
        // `ask` comes first.
        let is_awaited = self.of.swap(0, Ordering::AcqRel) & ASKED != 0;
        self.region.store(0, Ordering::Release);
        Sent { result, is_awaited }
    }

    /// Asks for a notice about a batch of a destroyed heap: returns its region and marks. None if
    /// the batch is of another heap, or gone.
    fn ask(&self, of: u32) -> Option<(RegionId, u64)> {
        if self.of.load(Ordering::Acquire) != of {
            return None;
        }
        let region = RegionId(self.region.load(Ordering::Acquire));
        let marks = self.marks.load(Ordering::Acquire);
        let asked = self
            .of
            .compare_exchange(of, of | ASKED, Ordering::AcqRel, Ordering::Acquire);
        asked.is_ok().then_some((region, marks))
    }
}

/// A destroyed heap's count of batches still to be sent, plus one; 0 if the heap awaits none, and
/// while it lives.
pub(crate) struct Awaited(AtomicU32);

impl Awaited {
    #[cfg(loom)]
    pub(crate) fn new() -> Awaited {
        Awaited(AtomicU32::new(0))
    }

    /// Asks for a notice about every thread's batch of this heap, and passes on the region and
    /// marks of each; for the destroyer.
    pub(crate) fn ask<'a>(
        &self,
        of: u32,
        batches: impl Iterator<Item = &'a Batch>,
        mut each: impl FnMut(RegionId, u64),
    ) {
        self.0.store(1, Ordering::Relaxed);
        let mut is_any = false;
        for batch in batches {
            // Counted before the request: the notice may come at once.
            self.0.fetch_add(1, Ordering::Relaxed);
            let asked = batch.ask(of);
            match asked {
                Some((region, marks)) => each(region, marks),
                None => self.sent(),
            }
            is_any |= asked.is_some();
        }
        if !is_any {
            self.end();
        }
    }

    /// Counts a notice; for the thread, which tends the heap afterwards if nobody else does.
    pub(crate) fn sent(&self) {
        // Releases that the batch is sent.
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether notices are still missing.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Acquire) > 1
    }

    /// Whether all notices have come and nobody has looked since. For any thread; the answer may be
    /// stale.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    /// Resets the count; for whoever has the heap, once all notices have come.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! A heap is destroyed while two threads send what they have freed of it before. Regions with
    //! nothing under way go to somebody else at once, who must never find a mark in them; the
    //! others go when their marks have come; and the heap ends once. The owner may take marks back
    //! before their batch is cleared.
    //!
    //! Planted faults that it found: a batch cleared before it is sent, or without release; and a
    //! heap that does not go through everything again after the last notice.
    //!
    //! It cannot see how regions are kept, nor the helper, which sends what the owner has recorded;
    //! nor more than two preemptions.

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::*;
    use crate::heap::custody::{Custody, Tended};
    use crate::heap::remote::{Links, Marked, Queue, collect, mark};

    const OWN: u32 = 5;
    const REGIONS: usize = 2;

    /// A heap of two regions, reduced to what matters here.
    struct Heap {
        custody: Custody,
        queue: Queue,
        awaited: Awaited,
        next: [AtomicU32; REGIONS],
        marks: [AtomicU64; REGIONS],
        batches: [Batch; 2],
        /// Blocks still to come home, by region; and whether somebody else has the region. Only the
        /// holder of the heap changes them, so not by exchanges.
        blocks: [AtomicU64; REGIONS],
        given: [AtomicUsize; REGIONS],
        ended: AtomicUsize,
    }

    impl Links for Heap {
        fn next(&self, region: RegionId) -> &AtomicU32 {
            &self.next[region.0 as usize - 1]
        }
    }

    impl Heap {
        fn new() -> Heap {
            let custody = Custody::new();
            custody.begin(true);
            Heap {
                custody,
                queue: Queue::new(),
                awaited: Awaited::new(),
                next: [AtomicU32::new(0), AtomicU32::new(0)],
                marks: [AtomicU64::new(0), AtomicU64::new(0)],
                batches: [Batch::new(), Batch::new()],
                blocks: [AtomicU64::new(0), AtomicU64::new(0)],
                given: [AtomicUsize::new(0), AtomicUsize::new(0)],
                ended: AtomicUsize::new(0),
            }
        }

        fn has_work(&self) -> bool {
            self.queue.has_some(self) || self.awaited.is_over()
        }

        /// Sends a batch, as a thread does before it waits.
        fn flush(&self, batch: &Batch) {
            let sent = batch.send(|of, region, marks| {
                assert_eq!(of, OWN);
                let at = region.0 as usize - 1;
                match mark(&self.marks[at], marks) {
                    Marked::First => {
                        self.queue.push(self, region);
                        true
                    }
                    Marked::Queued => false,
                    Marked::Twice => panic!("each block is freed once"),
                }
            });
            if sent.is_awaited {
                self.awaited.sent();
            }
            if sent.result || sent.is_awaited {
                self.custody.pushed(|| self.has_work(), || self.take_back());
            }
        }

        /// Takes marks back, as the owner does now and then, and first of all when the heap is
        /// destroyed.
        fn adopt(&self) {
            while let Some(region) = self.queue.pop(self) {
                collect(&self.marks[region.0 as usize - 1]);
            }
        }

        fn take_back(&self) -> Tended {
            loop {
                while let Some(region) = self.queue.pop(self) {
                    let at = region.0 as usize - 1;
                    let marks = collect(&self.marks[at]);
                    let blocks = self.blocks[at].load(Ordering::Relaxed);
                    assert_eq!(marks & !blocks, 0, "what comes home was awaited");
                    self.blocks[at].store(blocks & !marks, Ordering::Relaxed);
                    if blocks == marks {
                        self.give(at);
                    }
                }
                if self.awaited.is_waiting() {
                    return Tended::Lives;
                }
                if !self.awaited.is_over() {
                    break;
                }
                self.awaited.end();
                self.discard();
            }
            if self.has_all_given() {
                self.ended.fetch_add(1, Ordering::Relaxed);
                return Tended::Ended;
            }
            Tended::Lives
        }

        fn has_all_given(&self) -> bool {
            let mut given = self.given.iter();
            given.all(|given| given.load(Ordering::Relaxed) == 1)
        }

        /// Gives a region to somebody else.
        fn give(&self, at: usize) {
            assert_eq!(self.marks[at].load(Ordering::Relaxed), 0);
            assert_eq!(self.given[at].load(Ordering::Relaxed), 0);
            self.given[at].store(1, Ordering::Relaxed);
        }

        /// Discards the heap as [`crate::heap::destroy`] does.
        fn discard(&self) {
            self.adopt();
            let mut awaited = [0; REGIONS];
            self.awaited.ask(OWN, self.batches.iter(), |region, marks| {
                awaited[region.0 as usize - 1] |= marks;
            });
            for (at, awaited) in awaited.into_iter().enumerate() {
                if self.given[at].load(Ordering::Relaxed) == 1 {
                    continue;
                }
                let blocks = awaited | self.marks[at].load(Ordering::Acquire);
                self.blocks[at].store(blocks, Ordering::Relaxed);
                if blocks == 0 {
                    self.give(at);
                }
            }
        }

        fn destroy(&self) {
            self.discard();
            if self.take_back() == Tended::Lives {
                self.custody.leave(|| self.has_work(), || self.take_back());
            }
        }
    }

    /// Runs the model; `freed` has each thread's region and blocks.
    fn model(freed: [(u32, u64); 2]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(move || {
            let heap = Arc::new(Heap::new());
            let threads: std::vec::Vec<_> = (0..2)
                .map(|nth| {
                    let heap = heap.clone();
                    // Every free has returned before the heap is destroyed.
                    let (region, blocks) = freed[nth];
                    heap.batches[nth].begin(OWN, RegionId(region), blocks);
                    thread::spawn(move || heap.flush(&heap.batches[nth]))
                })
                .collect();
            heap.destroy();
            for thread in threads {
                thread.join().expect("it does not panic");
            }
            assert_eq!(heap.ended.load(Ordering::Relaxed), 1, "it ends, once");
            for marks in &heap.marks {
                assert_eq!(marks.load(Ordering::Relaxed), 0, "no mark comes later");
            }
        });
    }

    #[test]
    fn marks_of_two_regions_hold_them() {
        model([(1, 1), (2, 2)]);
    }

    #[test]
    fn marks_of_one_region_hold_it() {
        model([(1, 1), (1, 2)]);
    }

    /// A thread goes on to free blocks of other heaps while its first batch is asked for.
    #[test]
    fn a_later_batch_is_not_taken_for_an_earlier_one() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(4);
        builder.check(|| {
            let batch = Arc::new(Batch::new());
            let told = Arc::new(AtomicU64::new(0));
            batch.begin(OWN, RegionId(1), 3);
            let thread = {
                let (batch, told) = (batch.clone(), told.clone());
                thread::spawn(move || {
                    let first = batch.send(|_, _, marks| told.store(marks, Ordering::Relaxed));
                    batch.begin(OWN + 1, RegionId(2), 4);
                    assert!(batch.add(8));
                    let second = batch.send(|_, _, marks| assert_eq!(marks, 12));
                    assert!(!second.is_awaited);
                    batch.begin(OWN + 1, RegionId(3), 16);
                    first.is_awaited
                })
            };
            let asked = batch.ask(OWN);
            match asked {
                Some((region, marks)) => assert_eq!((region.0, marks), (1, 3)),
                None => assert_eq!(told.load(Ordering::Relaxed), 3, "it was sent before"),
            }
            let is_awaited = thread.join().expect("it does not panic");
            assert_eq!(is_awaited, asked.is_some());
        });
    }
}
