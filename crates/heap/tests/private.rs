//! Private heaps: many at once beside an oracle, blocks freed by others, and heaps that end before
//! their blocks.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

use hearth_heap::{self as heap, PrivateHeap, Room, check_this_nursery, check_this_thread};
use hearth_testing::random::Random;

fn new() -> PrivateHeap {
    PrivateHeap::new().expect("there is memory")
}

fn fill(block: *mut u8, size: usize, mark: u8) {
    assert!(!block.is_null());
    // SAFETY: the block has just been allocated with this size.
    unsafe { block.write_bytes(mark, size) };
}

fn is_filled(block: usize, size: usize, mark: u8) -> bool {
    let block: *const u8 = std::ptr::with_exposed_provenance(block);
    // SAFETY: the block is alive and this long.
    size == 0 || unsafe { block.read() == mark && block.add(size - 1).read() == mark }
}

/// Blocks by address: their heap, their size, and their contents.
type Oracle = BTreeMap<usize, (usize, usize, u8)>;

fn insert(oracle: &mut Oracle, block: *mut u8, of: usize, size: usize, mark: u8) {
    fill(block, size, mark);
    let start = block.expose_provenance();
    let before = oracle.range(..=start).next_back();
    assert!(before.is_none_or(|(at, (_, length, _))| at + length.max(&1) <= start));
    let after = oracle.range(start..).next();
    assert!(after.is_none_or(|(at, _)| start + size.max(1) <= *at));
    oracle.insert(start, (of, size, mark));
}

fn size(random: &mut Random) -> usize {
    let bits = match random.below(100) {
        0..70 => random.below(9),
        70..92 => random.below(13),
        92..99 => random.below(17),
        _ => random.below(21),
    };
    random.below(2 << bits)
}

#[test]
fn many_heaps_do_not_disturb_each_other() {
    for seed in 0..4 {
        with_an_empty_nursery(move || one_life(seed));
    }
}

/// Heaps come and go, and blocks in them; any heap, or the thread's, frees any block; some heaps go
/// before their blocks.
fn one_life(seed: u64) {
    let mut random = Random::new(seed);
    let mut heaps: Vec<Option<PrivateHeap>> = Vec::new();
    let mut oracle = Oracle::new();
    for i in 0..40_000 {
        let place = random.below(40);
        match random.below(100) {
            _ if place >= heaps.len() => heaps.push(Some(new())),
            0 => {
                let leaves = heaps[place].take();
                if let Some(heap) = leaves.filter(|_| random.below(2) == 0) {
                    wind_up(heap, place, &mut oracle, &mut random);
                }
                // Its blocks are an orphan's.
                for (of, _, _) in oracle.values_mut().filter(|(of, _, _)| *of == place) {
                    *of = usize::MAX;
                }
            }
            1..3 => {
                heaps[place].get_or_insert_with(new);
            }
            3..58 if oracle.len() < 3000 => {
                let size = size(&mut random);
                if let Some(heap) = &heaps[place] {
                    insert(&mut oracle, heap.allocate(size), place, size, i as u8);
                }
            }
            _ => {
                let nth = random.below(oracle.len().max(1));
                let Some((&block, &(of, size, mark))) = oracle.iter().nth(nth) else {
                    continue;
                };
                oracle.remove(&block);
                assert!(is_filled(block, size, mark), "{block:#x} of {of}");
                let pointer: *mut u8 = std::ptr::with_exposed_provenance_mut(block);
                // SAFETY: alive, and not used any more.
                unsafe {
                    assert!(heap::usable_size(pointer) >= size);
                    match (
                        random.below(4),
                        heaps.get(of).and_then(Option::as_ref),
                        &heaps[place],
                    ) {
                        (0, _, Some(other)) => other.free(pointer),
                        (1, _, _) => heap::free(pointer),
                        (_, Some(own), _) => own.free(pointer),
                        _ => heap::free(pointer),
                    }
                }
            }
        }
        if i % 999 == 0 {
            walk(&heaps, &oracle);
        }
    }
    for (block, (of, size, mark)) in std::mem::take(&mut oracle) {
        assert!(is_filled(block, size, mark), "{block:#x} of {of}");
        // SAFETY: alive, and not used any more.
        unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
    }
    heaps.clear();
    heap::flush();
    assert_eq!(check_this_nursery(), 0, "all pages came back");
    check_this_thread();
}

/// Ends a heap as a component does, which frees what it has. Most often that is everything, and
/// sometimes others have a block.
fn wind_up(heap: PrivateHeap, place: usize, oracle: &mut Oracle, random: &mut Random) {
    heap.wind_up();
    let kept = [0, 0, 1, 30][random.below(4)];
    let mut left = oracle.values().filter(|(of, _, _)| *of == place).count();
    oracle.retain(|&block, &mut (of, size, mark)| {
        if of != place {
            return true;
        }
        left -= 1;
        if left < kept {
            return true;
        }
        assert!(is_filled(block, size, mark), "{block:#x} of {of}");
        // SAFETY: alive, and not used any more.
        unsafe { heap.free(std::ptr::with_exposed_provenance_mut(block)) };
        false
    });
}

/// Asserts that the walk over a heap finds every live block in use.
fn walk(heaps: &[Option<PrivateHeap>], oracle: &Oracle) {
    heap::flush();
    for (place, heap) in heaps.iter().enumerate() {
        let Some(heap) = heap else { continue };
        heap.settle();
        let census = heap.check();
        for (block, (_, size, _)) in oracle.iter().filter(|(_, (of, _, _))| *of == place) {
            let is_large = *size > 256 << 10;
            assert!(
                is_large || census.used.contains_key(block),
                "{block:#x} of {place}"
            );
        }
    }
    check_this_nursery();
}

/// Runs a test on a thread whose nursery has lent nothing. A thread takes over the heap of an ended
/// one of another test, perhaps with heaps that live on; so this starts threads until one has an
/// empty nursery.
fn with_an_empty_nursery(run: impl FnOnce() + Send + 'static) {
    let look = move || match check_this_nursery() {
        0 => run(),
        _ => with_an_empty_nursery(run),
    };
    thread::spawn(look).join().expect("it does not panic");
}

#[test]
fn a_heap_costs_a_page_and_gives_it_back() {
    with_an_empty_nursery(|| {
        let first = new();
        let figures = first.figures();
        assert_eq!(figures.owned, 4096);
        assert!(figures.used <= 2560, "{figures:?}");
        let before = check_this_nursery();
        let many: Vec<PrivateHeap> = (0..1000).map(|_| new()).collect();
        assert_eq!(check_this_nursery(), before + 1000);
        drop(many);
        assert_eq!(check_this_nursery(), before);
        drop(first);
        assert_eq!(check_this_nursery(), 0);
    });
}

#[test]
fn numbers_of_ended_heaps_are_used_again() {
    let mut numbers = std::collections::BTreeSet::new();
    for _ in 0..10_000 {
        numbers.insert(new().number());
    }
    // Other tests take numbers meanwhile.
    assert!(numbers.len() < 1000, "{}", numbers.len());
}

#[test]
fn an_orphan_ends_with_its_last_block() {
    with_an_empty_nursery(|| {
        let heap = new();
        let blocks: Vec<*mut u8> = (0..500).map(|i| heap.allocate(1 + i * 7)).collect();
        drop(heap);
        assert!(check_this_nursery() > 0);
        let blocks: Vec<usize> = blocks
            .iter()
            .map(|block| block.expose_provenance())
            .collect();
        let (there, here) = blocks.split_at(250);
        let there = there.to_vec();
        let other = thread::spawn(move || {
            for block in there {
                // SAFETY: alive, and not used any more.
                unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
            }
            heap::flush();
        });
        other.join().expect("it does not panic");
        assert!(check_this_nursery() > 0, "half of the blocks are alive");
        for block in here {
            // SAFETY: as above.
            unsafe { heap::free(std::ptr::with_exposed_provenance_mut(*block)) };
        }
        heap::flush();
        assert_eq!(check_this_nursery(), 0);
    });
}

#[test]
fn a_heap_goes_from_thread_to_thread() {
    let heap = new();
    let block = heap.allocate(100).expose_provenance();
    let heap = thread::spawn(move || {
        let blocks: Vec<*mut u8> = (0..10_000).map(|_| heap.allocate(100)).collect();
        for block in blocks {
            // SAFETY: alive, and not used any more.
            unsafe { heap.free(block) };
        }
        // SAFETY: as above.
        unsafe { heap.free(std::ptr::with_exposed_provenance_mut(block)) };
        heap
    })
    .join()
    .expect("it does not panic");
    let census = heap.check();
    assert!(census.used.is_empty(), "{census:?}");
}

/// Heaps made by one thread, filled by another, emptied by a third, and dropped by whoever is last.
#[test]
fn heaps_and_blocks_travel_among_threads() {
    const THREADS: usize = 3;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS)
        .map(|_| mpsc::channel::<(Option<PrivateHeap>, Vec<usize>)>())
        .unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(number, receiver)| {
            let senders = senders.clone();
            thread::spawn(move || {
                let mut random = Random::new(number as u64);
                for _ in 0..2000 {
                    let next = &senders[random.below(THREADS)];
                    let (heap, mut blocks) = receiver
                        .try_recv()
                        .unwrap_or_else(|_| (Some(new()), Vec::new()));
                    for _ in 0..random.below(40) {
                        match &heap {
                            Some(heap) if random.below(2) == 0 => {
                                let size = 1 + size(&mut random) % 5000;
                                let block = heap.allocate(size);
                                fill(block, size, 1);
                                blocks.push(block.expose_provenance());
                            }
                            _ if !blocks.is_empty() => {
                                let block = blocks.swap_remove(random.below(blocks.len()));
                                let block = std::ptr::with_exposed_provenance_mut(block);
                                let owner = heap.as_ref().filter(|_| random.below(2) == 0);
                                // SAFETY: alive, and not used any more.
                                unsafe {
                                    match owner {
                                        Some(heap) => heap.free(block),
                                        None => heap::free(block),
                                    }
                                }
                            }
                            _ => {}
                        }
                    }
                    let heap = heap.filter(|_| random.below(10) > 0);
                    if heap.is_some() || !blocks.is_empty() {
                        let _ = next.send((heap, blocks));
                    }
                }
                drop(senders);
                for (_, blocks) in receiver {
                    for block in blocks {
                        // SAFETY: alive, and not used any more.
                        unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
                    }
                }
                check_this_thread();
            })
        })
        .collect();
    drop(senders);
    for thread in threads {
        thread.join().expect("it does not panic");
    }
}

#[test]
fn what_is_freed_twice_is_told() {
    // See crates/malloc/tests for faults, which end the process. These are not faults.
    let heap = new();
    // SAFETY: null is nothing.
    unsafe { heap.free(std::ptr::null_mut()) };
    let block = heap.allocate(0);
    assert!(!block.is_null());
    // SAFETY: alive, and not used any more.
    unsafe { heap.free(block) };
    let zeroed = heap.allocate_zeroed(10_000);
    assert!(is_filled(zeroed.expose_provenance(), 10_000, 0));
    let large = heap.allocate_zeroed(1 << 20);
    assert!(is_filled(large.expose_provenance(), 1 << 20, 0));
    // SAFETY: as above.
    unsafe {
        heap.free(zeroed);
        heap.free(large);
    }
}

/// The size of a block after rounding: 1 to 16 granules of the lowest level with that many.
fn rounded(size: usize) -> usize {
    let mut granule = 16;
    while size > 16 * granule {
        granule *= 4;
    }
    size.next_multiple_of(granule)
}

/// Plays a component: blocks of a few sizes come and go in any order, up to the given room. Returns
/// whether the heap stayed as it was made.
fn keeps_to(room: Room, random: &mut Random) -> bool {
    let heap = PrivateHeap::with_room(None, room).expect("there is memory");
    let before = heap.figures().owned;
    let sizes: Vec<usize> = (0..1 + random.below(4))
        .map(|_| (16 + random.below(room.largest - 15)) >> random.below(5))
        .collect();
    let mut live: Vec<(*mut u8, usize)> = Vec::new();
    let mut bytes = 0;
    for _ in 0..1000 {
        let size = sizes[random.below(sizes.len())];
        if bytes + rounded(size) <= room.bytes && random.below(3) > 0 {
            live.push((heap.allocate(size), size));
            bytes += rounded(size);
        } else if !live.is_empty() {
            let (block, size) = live.swap_remove(random.below(live.len()));
            // SAFETY: alive, and not used any more.
            unsafe { heap.free(block) };
            bytes -= rounded(size);
        }
    }
    let _ = heap.check();
    let stayed = heap.figures().owned == before;
    for (block, _) in live {
        // SAFETY: as above.
        unsafe { heap.free(block) };
    }
    stayed
}

#[test]
fn a_heap_that_was_made_with_room_takes_no_more() {
    let mut random = Random::new(5);
    for bytes in [
        520, 1000, 2000, 3000, 5000, 8000, 12_000, 20_000, 43_000, 65_000,
    ] {
        for largest in [64, 300, 1000, 4000, 10_000, 60_000] {
            let room = Room { bytes, largest };
            for life in 0..if largest <= bytes { 20 } else { 0 } {
                assert!(keeps_to(room, &mut random), "{room:?}, life {life}");
            }
        }
    }
}

#[test]
fn room_is_made_if_it_is_worth_it() {
    let owned = |bytes, largest| {
        let heap = PrivateHeap::with_room(None, Room { bytes, largest }).expect("there is memory");
        heap.figures().owned
    };
    const PAGE: usize = 4096;
    // Nothing known; fits the first page; too much to be worth it.
    assert_eq!(owned(0, 0), PAGE);
    assert_eq!(owned(400, 100), PAGE);
    assert_eq!(owned(100_000, 100), PAGE);
    // A page more, four, a chunk, four chunks.
    assert_eq!(owned(1500, 300), 2 * PAGE);
    assert_eq!(owned(3000, 1000), 5 * PAGE);
    assert_eq!(owned(6000, 5000), PAGE + (64 << 10));
    assert_eq!(owned(64 << 10, 64 << 10), PAGE + (256 << 10));
}

#[test]
fn room_goes_back_with_the_heap() {
    with_an_empty_nursery(|| {
        for largest in [100, 1000, 10_000, 60_000] {
            let room = Room {
                bytes: largest,
                largest,
            };
            let heap = PrivateHeap::with_room(None, room).expect("there is memory");
            let block = heap.allocate(largest).expose_provenance();
            drop(heap);
            // SAFETY: alive, and not used any more; the heap is an orphan until then.
            unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
            heap::flush();
            assert_eq!(check_this_nursery(), 0, "{room:?}");
        }
    });
}
