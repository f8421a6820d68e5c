//! The marks that a thread keeps back: blocks of one region of another's heap that it has freed and not told
//! yet.
//!
//! Telling costs an exchange, so blocks of one region that are freed in a row are told together, when the
//! thread frees one of another region, looks for memory, or waits. Until then nothing of it is in
//! the region. A heap that is [destroyed](crate::heap::destroy) must know that a mark is still to come, or the mark
//! would be set in what somebody else has by then. So what is kept back can be seen from outside:
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `region`, `marks` | the thread | the same; who destroys a heap |
//! | `of` | the thread; who destroys a heap, by an exchange that asks to be told | the same |
//! | [`Awaited`] | who destroys a heap; threads that were asked, by exchange | the same |
//!
//! Who destroys a heap knows that every free of its blocks has returned. So of each such batch it sees the
//! beginning, and one of two things. Either *it is gone*: then its marks were set before, and are seen
//! in the region; for they are set, and the region is pushed, before the batch is forgotten, which releases
//! it. Or *it is still there*: then it is asked for, and the thread finds that when it forgets the batch, as
//! both is done by an exchange. Whether the marks are set by then, or taken back long ago, nobody can
//! know; so what was asked for stays until the thread says that it is done.

use crate::ground::atomics::{AtomicU32, AtomicU64, Ordering, Owned};
use crate::ground::geometry::RegionId;

/// Blocks that were freed and not told yet. Empty if it is zero.
pub(crate) struct Batch {
    /// The number of the heap, and perhaps [`ASKED`]; 0 if there is nothing.
    of: AtomicU32,
    /// The region; 0 if there is nothing.
    region: AtomicU32,
    marks: AtomicU64,
}

/// Who destroys the heap waits for the batch. Numbers of heaps are smaller.
const ASKED: u32 = 1 << 31;

/// What came of telling.
pub(crate) struct Sent<T> {
    /// What was told.
    pub(crate) result: T,
    /// Somebody waits to hear that it is done: [`Awaited::told`].
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

    /// The region, or none. For the thread.
    #[inline]
    pub(crate) fn region(&self) -> RegionId {
        RegionId(self.region.own())
    }

    /// The number of its heap. For the thread.
    #[cfg(not(loom))]
    pub(crate) fn of(&self) -> u32 {
        self.of.load(Ordering::Relaxed) & !ASKED
    }

    /// Begins with a block of a region; the batch is empty. For the thread.
    #[inline]
    pub(crate) fn begin(&self, of: u32, region: RegionId, block: u64) {
        // Release, with Acquire in `ask`: who reads one of these two knows that the batch of before is gone.
        self.region.store(region.0, Ordering::Release);
        self.marks.store(block, Ordering::Release);
        // Releases what was written to the block, and the two above.
        self.of.store(of, Ordering::Release);
    }

    /// One more block of that region. False if it is in the batch already. For the thread.
    #[inline]
    #[must_use = "a block that is freed twice must be told"]
    pub(crate) fn add(&self, block: u64) -> bool {
        let marks = self.marks.own();
        self.marks.store(marks | block, Ordering::Release);
        marks & block == 0
    }

    /// Has all of it told, by `tell`, and forgets it then. For the thread.
    #[inline]
    pub(crate) fn send<T>(&self, tell: impl FnOnce(u32, RegionId, u64) -> T) -> Sent<T> {
        let of = self.of.load(Ordering::Relaxed) & !ASKED;
        let result = tell(of, self.region(), self.marks.own());
        // Releases the marks, and the place in the queue. One of this and the exchange in `ask` is first.
        let is_awaited = self.of.swap(0, Ordering::AcqRel) & ASKED != 0;
        self.region.store(0, Ordering::Release);
        Sent { result, is_awaited }
    }

    /// Asks for what is there of a heap whose blocks are all freed, or will never be: the region and its marks.
    /// None if there is nothing, or no longer.
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

/// How many batches of a destroyed heap are not told: none, and so at all other times, if it is zero; else one
/// more than there are.
pub(crate) struct Awaited(AtomicU32);

impl Awaited {
    #[cfg(loom)]
    pub(crate) fn new() -> Awaited {
        Awaited(AtomicU32::new(0))
    }

    /// Looks through the batches of all threads, and asks for those of a heap: each with its region and marks.
    /// For who destroys it.
    pub(crate) fn ask<'a>(
        &self,
        of: u32,
        batches: impl Iterator<Item = &'a Batch>,
        mut each: impl FnMut(RegionId, u64),
    ) {
        self.0.store(1, Ordering::Relaxed);
        let mut is_any = false;
        for batch in batches {
            // Before it is asked for: it may be told at once.
            self.0.fetch_add(1, Ordering::Relaxed);
            let asked = batch.ask(of);
            match asked {
                Some((region, marks)) => each(region, marks),
                None => self.told(),
            }
            is_any |= asked.is_some();
        }
        if !is_any {
            self.end();
        }
    }

    /// One of them is told. For the thread, who looks after the heap then, if nobody else does.
    pub(crate) fn told(&self) {
        // Releases that it is.
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// Are there any that are not told?
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Acquire) > 1
    }

    /// Are all of them told, and nobody has looked since? Anyone may ask, and it may be late.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    /// Somebody looks. For who has the heap, when it is over.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! A heap is destroyed while two threads tell what they have freed of it before. Regions of which nothing is
    //! under way go to somebody else at once, who must never find a mark in them; the others when their marks
    //! have come; and the heap ends, once. Marks may be taken back of a batch that is not forgotten yet.
    //!
    //! Faults that were planted by hand, and found: a batch that is forgotten before it is told, or without
    //! release; and a heap for which all is not done once more when the batches that it asked for are told.
    //!
    //! What it cannot see: how what stays is made, and the helper, which tells of what the owner has noted
    //! itself; more than two changes of threads that need not be.

    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::*;
    use crate::heap::custody::{Attended, Custody};
    use crate::heap::remote::{Links, Marked, Queue, collect, mark};

    const OWN: u32 = 5;
    const REGIONS: usize = 2;

    /// A heap of two regions, as far as it matters here.
    struct Heap {
        custody: Custody,
        queue: Queue,
        awaited: Awaited,
        next: [AtomicU32; REGIONS],
        marks: [AtomicU64; REGIONS],
        batches: [Batch; 2],
        /// Blocks that are to come home, by region; and whether somebody else has the region. Changed by who
        /// has the heap, so not by exchanges.
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

        fn has_something(&self) -> bool {
            self.queue.has_some(self) || self.awaited.is_over()
        }

        /// What a thread does when it waits.
        fn flush(&self, batch: &Batch) {
            let told = batch.send(|of, region, marks| {
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
            if told.is_awaited {
                self.awaited.told();
            }
            if told.result || told.is_awaited {
                self.custody
                    .pushed(|| self.has_something(), || self.take_home());
            }
        }

        /// What the owner does now and then, and before all else when the heap is destroyed.
        fn adopt(&self) {
            while let Some(region) = self.queue.pop(self) {
                collect(&self.marks[region.0 as usize - 1]);
            }
        }

        fn take_home(&self) -> Attended {
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
                    return Attended::Lives;
                }
                if !self.awaited.is_over() {
                    break;
                }
                self.awaited.end();
                self.discard();
            }
            if self.has_all_given() {
                self.ended.fetch_add(1, Ordering::Relaxed);
                return Attended::Ended;
            }
            Attended::Lives
        }

        fn has_all_given(&self) -> bool {
            let mut given = self.given.iter();
            given.all(|given| given.load(Ordering::Relaxed) == 1)
        }

        /// The region is somebody else's from here on.
        fn give(&self, at: usize) {
            assert_eq!(self.marks[at].load(Ordering::Relaxed), 0);
            assert_eq!(self.given[at].load(Ordering::Relaxed), 0);
            self.given[at].store(1, Ordering::Relaxed);
        }

        /// As [`crate::heap::destroy`] does.
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
            if self.take_home() == Attended::Lives {
                self.custody
                    .leave(|| self.has_something(), || self.take_home());
            }
        }
    }

    /// Of each thread the region and the blocks that it has freed there.
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

    /// A thread goes on to free blocks of others while its first batch is looked for.
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
                None => assert_eq!(told.load(Ordering::Relaxed), 3, "it was told before"),
            }
            let is_awaited = thread.join().expect("it does not panic");
            assert_eq!(is_awaited, asked.is_some());
        });
    }
}
