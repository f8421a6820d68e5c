//! nMART: the conformance tests of its specification. Mapping in `mapping.rs`.

mod support;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use hearth_allocators::nmart::block::{ARENA_OVERHEAD, PAGE, block_of};
use hearth_allocators::nmart::tcb::Tcb;
use hearth_allocators::nmart::{DIRECT_FROM, HOLD_MAX, Nmart, Pages, RETAIN_MAX};
use support::{Oracle, Random};

/// Pages from Rust's allocator, on a node that a test chooses; tracks the mappings.
struct Imagined {
    node: AtomicUsize,
    mapped: Mutex<HashMap<usize, usize>>,
    most: usize,
}

impl Imagined {
    fn new() -> Imagined {
        Imagined::with_most(usize::MAX)
    }

    /// Refuses what goes beyond.
    fn with_most(most: usize) -> Imagined {
        Imagined {
            node: AtomicUsize::new(0),
            mapped: Mutex::new(HashMap::new()),
            most,
        }
    }

    fn bytes(&self) -> usize {
        self.mapped.lock().unwrap().values().sum()
    }
}

impl Drop for Imagined {
    fn drop(&mut self) {
        for (start, bytes) in self.mapped.get_mut().unwrap().drain() {
            let layout = Layout::from_size_align(bytes, PAGE).unwrap();
            // SAFETY: it was taken with this layout, and the allocator over it is gone.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(start), layout) };
        }
    }
}

// SAFETY: as Rust's allocator promises.
unsafe impl Pages for Imagined {
    fn map(&self, bytes: usize) -> *mut u8 {
        if self.bytes() + bytes > self.most {
            return std::ptr::null_mut();
        }
        // SAFETY: not of no bytes.
        let start = unsafe { alloc_zeroed(Layout::from_size_align(bytes, PAGE).unwrap()) };
        let address = start.expose_provenance();
        self.mapped.lock().unwrap().insert(address, bytes);
        start
    }

    unsafe fn unmap(&self, start: *mut u8, bytes: usize) {
        let known = self.mapped.lock().unwrap().remove(&start.addr());
        assert_eq!(known, Some(bytes), "{start:p} is unmapped as it was mapped");
        // SAFETY: it was taken with this layout.
        unsafe { dealloc(start, Layout::from_size_align(bytes, PAGE).unwrap()) };
    }

    fn node(&self) -> usize {
        self.node.load(Ordering::Relaxed)
    }
}

type Counted = Nmart<Imagined, true>;

fn allocator() -> Counted {
    Nmart::new(Imagined::new())
}

#[track_caller]
fn check(tcb: *mut Tcb, seed: u64) {
    // SAFETY: the test's thread owns the heap.
    unsafe { (*tcb).check() }.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
}

fn steps(tcb: *mut Tcb) -> u64 {
    // SAFETY: the test's thread owns the heap.
    unsafe { (*tcb).steps }
}

#[test]
fn any_sequence_is_served_and_the_lists_stay_whole() {
    for seed in 1..=4 {
        let nmart = allocator();
        let tcb = nmart.attach();
        let mut random = Random::new(seed);
        let mut oracle = Oracle::default();
        let mut blocks: Vec<*mut u8> = Vec::new();
        for step in 0..12_000 {
            let grows = random.below(100) < if step / 1500 % 2 == 0 { 60 } else { 40 };
            // SAFETY: the heap is this thread's, and each block is used until it is freed.
            unsafe {
                if grows || blocks.is_empty() {
                    let bytes = random.size(40_000);
                    let align = 1 << random.below(13);
                    let (block, align) = match random.below(10) {
                        0 => (nmart.allocate_aligned(tcb, align, bytes), align),
                        _ => (nmart.allocate(tcb, bytes), 1),
                    };
                    let usable = Counted::usable(block);
                    assert!(usable >= bytes, "seed {seed}: {usable} for {bytes}");
                    oracle.got(block, usable, align);
                    blocks.push(block);
                } else {
                    let at = random.below(blocks.len());
                    if random.below(4) == 0 {
                        let bytes = Counted::usable(blocks[at]) + random.below(200);
                        if nmart.resize(tcb, blocks[at], bytes) {
                            oracle.resized(blocks[at], blocks[at], Counted::usable(blocks[at]));
                        }
                    } else {
                        let block = blocks.swap_remove(at);
                        oracle.gave_back(block);
                        nmart.free(tcb, block);
                    }
                }
            }
            if step % 100 == 0 {
                check(tcb, seed);
            }
        }
        for block in blocks {
            oracle.gave_back(block);
            // SAFETY: as above.
            unsafe { nmart.free(tcb, block) };
        }
        check(tcb, seed);
        // SAFETY: as above; the heap is not used again.
        unsafe { nmart.detach(tcb) };
        // What was parked has no arena left, and is adopted.
        let adopted = nmart.attach();
        assert_eq!(adopted, tcb);
        // SAFETY: the heap is this thread's again.
        assert!(unsafe { (*adopted).arenas.is_null() });
    }
}

/// The most steps of one operation, in heaps of ever more blocks.
#[test]
fn steps_do_not_depend_on_the_heap() {
    let mut worst = Vec::new();
    for count in [100, 1_000, 20_000] {
        let nmart = allocator();
        let tcb = nmart.attach();
        let mut random = Random::new(7);
        let mut blocks: Vec<*mut u8> = Vec::new();
        let mut most = [0; 2];
        for _ in 0..3 * count {
            let before = steps(tcb);
            // SAFETY: the heap is this thread's.
            unsafe {
                if blocks.len() < count && random.below(3) > 0 {
                    blocks.push(nmart.allocate(tcb, random.size(30_000)));
                    most[0] = most[0].max(steps(tcb) - before);
                } else if !blocks.is_empty() {
                    nmart.free(tcb, blocks.swap_remove(random.below(blocks.len())));
                    most[1] = most[1].max(steps(tcb) - before);
                }
            }
        }
        worst.push(most);
    }
    // Search, list, extract, cut, merge with one, list; and merge with two, take out or list.
    assert!(
        worst.iter().all(|most| most[0] <= 6 && most[1] <= 4),
        "{worst:?}"
    );
}

/// The design's one loop: the owner takes back at once all that others freed.
#[test]
fn draining_takes_steps_in_proportion_to_what_others_freed() {
    let nmart = allocator();
    let mut each = Vec::new();
    for count in [10, 100, 1_000, 10_000] {
        let (owner, other) = (nmart.attach(), nmart.attach());
        // SAFETY: both heaps are this thread's.
        unsafe {
            let blocks: Vec<_> = (0..count).map(|_| nmart.allocate(owner, 40)).collect();
            // Every second one, so that nothing merges.
            for block in blocks.iter().step_by(2) {
                nmart.free(other, *block);
            }
            check(owner, 0);
            let before = steps(owner);
            assert!(!nmart.allocate(owner, 5_000).is_null());
            each.push((steps(owner) - before) as f64 / (count / 2) as f64);
            check(owner, 0);
        }
    }
    assert!(
        each[2..].iter().all(|steps| (2.0..=4.0).contains(steps)),
        "{each:?}"
    );
}

#[test]
fn a_block_that_comes_home_is_handed_out_first() {
    let nmart = allocator();
    let (owner, other) = (nmart.attach(), nmart.attach());
    // SAFETY: both heaps are this thread's.
    unsafe {
        let blocks: Vec<_> = (0..5).map(|_| nmart.allocate(owner, 200)).collect();
        nmart.free(other, blocks[1]);
        nmart.free(other, blocks[3]);
        // The last that was pushed is the first to come.
        assert_eq!(nmart.allocate(owner, 150), blocks[3]);
        // The other one was listed, and is found.
        assert_eq!(nmart.allocate(owner, 200), blocks[1]);
        check(owner, 0);
    }
}

/// On its way home a block is in use: its neighbours are not merged with it before.
#[test]
fn a_block_on_its_way_home_is_not_merged_away() {
    let nmart = allocator();
    let (owner, other) = (nmart.attach(), nmart.attach());
    // SAFETY: both heaps are this thread's.
    unsafe {
        let blocks: Vec<_> = (0..3).map(|_| nmart.allocate(owner, 100)).collect();
        nmart.free(other, blocks[1]);
        assert!((*owner).has_remote());
        // Frees the first; the drain before it brings the second home, and both become one.
        nmart.free(owner, blocks[0]);
        assert!(!(*owner).has_remote());
        check(owner, 0);
        assert_eq!(nmart.allocate(owner, 220), blocks[0]);
    }
}

/// One thread allocates and another frees: as much memory as is under way, and no more.
#[test]
fn producer_and_consumer_do_not_grow() {
    const BLOCKS: usize = 40_000;
    const UNDER_WAY: usize = 100;
    let nmart = allocator();
    let (give, take) = sync_channel::<(usize, u8)>(UNDER_WAY);
    thread::scope(|scope| {
        scope.spawn(|| {
            let tcb = nmart.attach();
            let mut random = Random::new(3);
            for number in 0..BLOCKS {
                let bytes = 1 + random.below(1_000);
                // SAFETY: the heap is this thread's; the block is as long.
                unsafe {
                    let block = nmart.allocate(tcb, bytes);
                    block.write_bytes(number as u8, bytes);
                    give.send((block.expose_provenance(), number as u8))
                        .unwrap();
                }
            }
            drop(give);
            check(tcb, 3);
        });
        let tcb = nmart.attach();
        while let Ok((block, stamp)) = take.recv() {
            let block: *mut u8 = std::ptr::with_exposed_provenance_mut(block);
            // SAFETY: the block was handed over.
            unsafe {
                assert_eq!(block.read(), stamp);
                nmart.free(tcb, block);
            }
        }
        check(tcb, 3);
    });
    // Blocks of a kilobyte, twice what may be under way, and two heaps' records.
    let most = 2 * (UNDER_WAY + 2) * 1100 + 64 * PAGE;
    assert!(nmart.bytes_held() < most, "{} bytes", nmart.bytes_held());
}

/// Threads that free each other's blocks while owners merge, end, and are followed by others.
#[test]
fn threads_free_each_others_blocks() {
    const THREADS: usize = 4;
    let nmart = allocator();
    let shelf: Vec<Mutex<Vec<(usize, usize, u8)>>> =
        (0..THREADS).map(|_| Mutex::default()).collect();
    for round in 0..3 {
        thread::scope(|scope| {
            for me in 0..THREADS {
                let (nmart, shelf) = (&nmart, &shelf);
                scope.spawn(move || {
                    let tcb = nmart.attach();
                    let mut random = Random::new((round * THREADS + me) as u64 + 1);
                    for step in 0..6_000 {
                        let place = &shelf[random.below(THREADS)];
                        let taken = {
                            let mut there = place.lock().unwrap();
                            if there.len() > 200 || random.below(2) == 0 {
                                there.pop()
                            } else {
                                None
                            }
                        };
                        // SAFETY: a block taken from a shelf is this thread's to free.
                        unsafe {
                            if let Some((block, bytes, stamp)) = taken {
                                let block: *mut u8 = std::ptr::with_exposed_provenance_mut(block);
                                for at in 0..bytes {
                                    assert_eq!(block.add(at).read(), stamp);
                                }
                                nmart.free(tcb, block);
                            } else {
                                let (bytes, stamp) = (random.size(3_000), step as u8);
                                let block = nmart.allocate(tcb, bytes);
                                block.write_bytes(stamp, bytes);
                                place.lock().unwrap().push((
                                    block.expose_provenance(),
                                    bytes,
                                    stamp,
                                ));
                            }
                        }
                        if step % 500 == 0 {
                            check(tcb, round as u64);
                        }
                    }
                    // Others hold blocks of this heap still.
                    // SAFETY: the thread ends.
                    unsafe { nmart.detach(tcb) };
                });
            }
        });
    }
    // As many heaps as threads at a time, however many threads there were.
    let mut heaps = Vec::new();
    for _ in 0..THREADS {
        heaps.push(nmart.attach());
    }
    heaps.sort();
    heaps.dedup();
    assert_eq!(heaps.len(), THREADS);
    for place in &shelf {
        for (block, ..) in place.lock().unwrap().drain(..) {
            // SAFETY: nobody else has it.
            unsafe { nmart.free(heaps[0], std::ptr::with_exposed_provenance_mut(block)) };
        }
    }
    for &tcb in &heaps {
        // A request brings home what is on its way.
        // SAFETY: the heaps are this thread's.
        unsafe { nmart.free(tcb, nmart.allocate(tcb, 1)) };
        check(tcb, 0);
    }
}

/// An arena that is emptied stays up to the threshold, then goes to the pool of the node that it
/// was made on, and from there to the next thread that asks there, made new.
#[test]
fn arenas_go_to_the_node_that_they_came_from() {
    let nmart = allocator();
    let go_to = |node| nmart.pages().node.store(node, Ordering::Relaxed);
    go_to(2);
    let first = nmart.attach();
    // SAFETY: the heap is this thread's.
    let blocks: Vec<_> = (0..40)
        .map(|_| unsafe { nmart.allocate(first, 64 << 10) })
        .collect();
    go_to(5);
    for &block in &blocks {
        // SAFETY: the heap is this thread's.
        unsafe { nmart.free(first, block) };
    }
    check(first, 0);
    // SAFETY: the heap is this thread's.
    assert!(unsafe { (*first).arena_bytes } <= RETAIN_MAX + (64 << 10) + 2 * PAGE);
    let pooled = nmart.pool(2).len();
    assert!(pooled > 10 && nmart.pool(5).is_empty(), "{pooled}");
    // On node 5 nothing is taken from node 2's pool.
    let held = nmart.bytes_held();
    let second = nmart.attach();
    // SAFETY: the heap is this thread's.
    let block = unsafe { nmart.allocate(second, 60 << 10) };
    assert!(nmart.bytes_held() > held);
    assert_eq!(nmart.pool(2).len(), pooled);
    // On node 2 it is, and the arena is the new heap's.
    go_to(2);
    let held = nmart.bytes_held();
    // SAFETY: the heap is this thread's, and the header is the block's.
    unsafe {
        let recycled = nmart.allocate(second, 60 << 10);
        assert_eq!((*block_of(recycled)).owner, second);
        assert_eq!(nmart.bytes_held(), held);
        assert_eq!(nmart.pool(2).len(), pooled - 1);
        check(second, 0);
        nmart.free(second, recycled);
        nmart.free(second, block);
    }
    check(second, 0);
}

/// A pool gives an arena that is large enough, whatever else it holds.
#[test]
fn a_pool_gives_no_arena_that_is_too_small() {
    let nmart = allocator();
    let tcb = nmart.attach();
    // SAFETY: the heap is this thread's.
    unsafe {
        let large: Vec<_> = (0..8).map(|_| nmart.allocate(tcb, 500 << 10)).collect();
        let small: Vec<_> = (0..8).map(|_| nmart.allocate(tcb, 5 << 10)).collect();
        for block in large.into_iter().chain(small) {
            nmart.free(tcb, block);
        }
        assert!(nmart.pool(0).len() >= 2);
        for bytes in [6 << 10, 7 << 10, 300 << 10, 510 << 10, 1000 << 10] {
            let block = nmart.allocate(tcb, bytes);
            assert!(Counted::usable(block) >= bytes);
            block.write_bytes(1, bytes);
        }
    }
    check(tcb, 0);
}

#[test]
fn large_requests_are_mappings_of_their_own() {
    let nmart = allocator();
    let tcb = nmart.attach();
    let held = nmart.bytes_held();
    // SAFETY: the heap is this thread's.
    unsafe {
        for (align, bytes) in [
            (1, DIRECT_FROM + 1),
            (1, 5 << 20),
            (1 << 16, 3 << 20),
            (64, 3 << 20),
        ] {
            let block = nmart.allocate_aligned(tcb, align, bytes);
            assert!(block.addr().is_multiple_of(align) && Counted::usable(block) >= bytes);
            block.write_bytes(1, bytes);
            assert!(nmart.bytes_held() > held + bytes);
            nmart.free(tcb, block);
            assert_eq!(nmart.bytes_held(), held);
        }
        // Just below, it is an arena; that large, it goes back to the system when it is empty.
        let block = nmart.allocate(tcb, HOLD_MAX - ARENA_OVERHEAD - 64);
        let other = nmart.allocate(tcb, DIRECT_FROM);
        assert!(nmart.bytes_held() >= held + HOLD_MAX);
        nmart.free(tcb, block);
        nmart.free(tcb, other);
        assert_eq!(nmart.bytes_held(), held);
    }
    check(tcb, 0);
}

#[test]
fn without_memory_there_is_no_block_and_nothing_is_lost() {
    let nmart: Counted = Nmart::new(Imagined::with_most(40 * PAGE));
    let tcb = nmart.attach();
    // SAFETY: the heap is this thread's.
    unsafe {
        assert!(nmart.allocate(tcb, 100 << 20).is_null());
        assert!(nmart.allocate(tcb, usize::MAX).is_null());
        assert!(nmart.allocate_aligned(tcb, 1 << 40, 1).is_null());
        let mut blocks = Vec::new();
        loop {
            let block = nmart.allocate(tcb, 3_000);
            if block.is_null() {
                break;
            }
            blocks.push(block);
        }
        assert!(blocks.len() > 20, "{}", blocks.len());
        let freed = blocks.pop().unwrap();
        nmart.free(tcb, freed);
        assert_eq!(nmart.allocate(tcb, 3_000), freed);
    }
    check(tcb, 0);
}
