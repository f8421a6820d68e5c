//! Heaps destroyed as a whole, blocks and all: nothing stays, and late marks hit nobody.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hearth_heap::{self as heap, PrivateHeap, check_this_nursery, check_this_thread, totals};
use hearth_testing::random::Random;

/// Runs one test at a time, as they look at totals of the process.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new() -> PrivateHeap {
    PrivateHeap::new().expect("there is memory")
}

/// Mixed sizes. Heaps mostly in use, or below 1 MiB, lend nothing; the helper would hold a few
/// pieces for some ticks more.
fn size(random: &mut Random, bits_max: usize) -> usize {
    let bits = match random.below(100) {
        0..80 => random.below(10),
        _ => random.below(bits_max),
    };
    1 + random.below(2 << bits)
}

fn block(heap: &PrivateHeap, size: usize, mark: u8) -> usize {
    let block = heap.allocate(size);
    assert!(!block.is_null());
    // SAFETY: just allocated with this size.
    unsafe { block.write_bytes(mark, size) };
    block.expose_provenance()
}

fn free(block: usize) {
    // SAFETY: in all tests each block is freed once, and not used after.
    unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
}

/// Waits a moment for a condition.
fn comes_true(is_so: impl Fn() -> bool) -> bool {
    let patience = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        if Instant::now() > patience {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

fn destroy(heap: PrivateHeap) {
    // SAFETY: in all tests nobody uses a block of a heap after this.
    unsafe { heap.destroy() };
}

#[test]
fn ten_thousand_heaps_leave_nothing() {
    let _alone = alone();
    let mut random = Random::new(7);
    let mut most = 0;
    for nth in 0..10_000 {
        let own = new();
        // Some have a page, some take chunks of all levels, and some have full caches.
        let (blocks, owned_max) = [
            (5, usize::MAX),
            (50, usize::MAX),
            (500, 256 << 10),
            (2000, 512 << 10),
        ][random.below(4)];
        let mut live = Vec::new();
        if blocks == 50 {
            live.push(block(&own, 200 << 10, 0));
        }
        for i in 0..blocks {
            // One block of 200 KiB takes a MiB at once.
            if blocks != 50 && own.figures().owned >= owned_max {
                break;
            }
            live.push(block(&own, size(&mut random, 12), i as u8));
            if random.below(3) == 0 {
                let block = live.swap_remove(random.below(live.len()));
                // SAFETY: as in `free`.
                unsafe { own.free(std::ptr::with_exposed_provenance_mut(block)) };
            }
        }
        if nth % 100 == 0 {
            let census = own.check();
            assert!(live.iter().all(|block| census.used.contains_key(block)));
        }
        destroy(own);
        if nth % 500 == 0 {
            assert_eq!(check_this_nursery(), 0, "all pieces came back");
            check_this_thread();
        }
        match nth {
            0..1000 => most = most.max(totals().held),
            // The helper may hold idle pages of some chunks until it is scheduled.
            _ => assert!(
                comes_true(|| totals().held <= most + (1 << 20)),
                "{nth}: {:?}",
                totals()
            ),
        }
    }
}

/// More threads than cores free some blocks of each heap, and send the marks at any time: while it
/// is destroyed, or when its memory is another's, whose blocks must stay as they are.
#[test]
fn marks_that_come_late_hit_nobody() {
    const THREADS: usize = 6;
    let _alone = alone();
    let (mut requests, mut threads) = (Vec::new(), Vec::new());
    let (done, is_done) = mpsc::channel();
    for seed in 0..THREADS {
        let (request, receiver) = mpsc::channel::<Vec<usize>>();
        let done = done.clone();
        requests.push(request);
        threads.push(thread::spawn(move || {
            let mut random = Random::new(seed as u64);
            for blocks in receiver {
                blocks.into_iter().for_each(free);
                done.send(()).expect("the other end is there");
                // Otherwise it is sent with the next blocks.
                if random.below(2) == 0 {
                    (0..random.below(2000)).for_each(|_| std::hint::spin_loop());
                    heap::flush();
                }
            }
            check_this_thread();
        }));
    }
    let mut random = Random::new(99);
    let other = new();
    let mut kept: Vec<(usize, usize, u8)> = Vec::new();
    let mut held = 0;
    for round in 0..2000usize {
        let own = new();
        let count = [10, 100, 1500][random.below(3)];
        let mut freed = vec![Vec::new(); THREADS];
        let mut asked = 0;
        for i in 0..count {
            let block = block(&own, size(&mut random, 12), i as u8);
            if random.below(3) == 0 {
                freed[random.below(THREADS)].push(block);
            }
        }
        if round % 50 == 0 {
            own.settle();
            let _ = own.check();
        }
        for (request, blocks) in requests.iter().zip(freed) {
            if !blocks.is_empty() {
                asked += 1;
                request.send(blocks).expect("the thread is there");
            }
        }
        // Every free has returned before the heap is destroyed.
        (0..asked).for_each(|_| is_done.recv().expect("the threads are there"));
        destroy(own);
        // Its memory is another's now.
        for _ in 0..count / 2 {
            let size = size(&mut random, 12);
            kept.push((block(&other, size, round as u8), size, round as u8));
        }
        while kept.len() > 2000 {
            let (block, size, mark) = kept.swap_remove(random.below(kept.len()));
            let pointer: *mut u8 = std::ptr::with_exposed_provenance_mut(block);
            // SAFETY: alive, and so long; then freed once.
            unsafe {
                let bytes = std::slice::from_raw_parts(pointer, size);
                assert!(bytes.iter().all(|byte| *byte == mark), "{block:#x}");
                other.free(pointer);
            }
        }
        if round % 50 == 0 {
            other.settle();
            let census = other.check();
            assert!(kept.iter().all(|(at, _, _)| census.used.contains_key(at)));
            check_this_thread();
        }
        match round {
            0..200 => held = held.max(totals().held),
            _ => assert!(
                comes_true(|| totals().held <= 2 * held + (4 << 20)),
                "{round}: {:?}",
                totals()
            ),
        }
    }
    drop(requests);
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    destroy(other);
    heap::settle_this_thread();
    assert_eq!(check_this_nursery(), 0, "all pieces came back");
}

/// Marks that are kept back, as of the second block of a region that is freed in a row, keep their
/// chunk or piece and the heap itself, and no more.
#[test]
fn what_is_awaited_stays_and_nothing_else() {
    let _alone = alone();
    for (count, size, region) in [
        (20, 100, 1 << 10),
        (40_000, 100, 1 << 10),
        (500, 3000, 16 << 10),
        (300, 40_000, 256 << 10),
    ] {
        let (told, is_told) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        let own = new();
        let pieces = check_this_nursery() - 1;
        let before = totals().held;
        let blocks: Vec<usize> = (0..count).map(|_| block(&own, size, 1)).collect();
        let one = blocks[count - 1];
        let is_near = |block: &&usize| **block != one && **block / region == one / region;
        let next = *blocks.iter().find(is_near).expect("a region has several");
        let other = thread::spawn(move || {
            free(one);
            free(next);
            told.send(()).expect("the other end is there");
            let _ = goes.recv();
            heap::flush();
        });
        is_told.recv().expect("the thread is there");
        destroy(own);
        // A thread's heap, the chunk of the mark or the sixteen around it, and the nursery's.
        let most = before + (1 << 20) + (1 << 16) + (1 << 16);
        assert!(
            totals().held <= most,
            "{before} {:?} {count} {size}",
            totals()
        );
        let kept = check_this_nursery() - pieces;
        let is_kept_back = size <= 4096;
        assert!(kept <= 2, "{kept} {size}");
        assert_eq!(kept > 0, is_kept_back, "{size}");
        drop(go);
        other.join().expect("it does not panic");
        assert_eq!(check_this_nursery(), pieces, "{count} blocks of {size}");
    }
}

/// Waits without sleeping.
fn wait(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        thread::yield_now();
    }
}

/// The helper has idle pages of a destroyed heap, and gives their memory back later: it must not
/// hit what lies there by then.
#[test]
fn what_the_helper_has_is_awaited() {
    let _alone = alone();
    let mut lent = 0;
    // On a busy machine it may come late, again and again.
    for round in 0..400 {
        if round >= 40 && lent > 0 {
            break;
        }
        let own = new();
        // Chunks full of pages, of which one in 16 stays; then other sizes, which do not fit the
        // holes.
        let blocks: Vec<usize> = (0..2000).map(|_| block(&own, 4096, 1)).collect();
        for (nth, block) in blocks.iter().enumerate() {
            if nth % 16 != 0 {
                // SAFETY: as in `free`.
                unsafe { own.free(std::ptr::with_exposed_provenance_mut(*block)) };
            }
        }
        let larger: Vec<usize> = (0..30).map(|_| block(&own, 150_000, 2)).collect();
        // At a different point of the helper's work each time.
        wait(Duration::from_micros(250 * (round % 20)));
        let _ = own.check();
        // A heap that lends a page no longer counts it as touched; the helper may be done with it
        // by now.
        let filled = blocks.len() * 4096 + larger.len() * 150_000;
        lent += filled.saturating_sub(own.figures().touched);
        destroy(own);
        let next = new();
        let mark = 3 + (round % 40) as u8;
        let again: Vec<usize> = (0..2000).map(|_| block(&next, 4096, mark)).collect();
        if round % 4 == 0 {
            // Longer than the helper's tick.
            wait(Duration::from_millis(10));
        }
        for block in again {
            let page: *const u8 = std::ptr::with_exposed_provenance(block);
            // SAFETY: alive, and so long.
            let bytes = unsafe { std::slice::from_raw_parts(page, 4096) };
            assert!(bytes.iter().all(|byte| *byte == mark), "{block:#x}");
        }
        next.settle();
        let _ = next.check();
        destroy(next);
        check_this_thread();
    }
    assert!(lent > 0, "the helper had something");
}

#[test]
fn large_blocks_outlive_a_heap_that_is_destroyed() {
    let _alone = alone();
    let own = new();
    let large = block(&own, 300 << 10, 9);
    let medium = block(&own, 256 << 10, 8);
    assert_ne!(large, medium);
    destroy(own);
    let page: *const u8 = std::ptr::with_exposed_provenance(large);
    // SAFETY: alive: blocks of this size belong to no heap.
    unsafe {
        assert_eq!((page.read(), page.add((300 << 10) - 1).read()), (9, 9));
    }
    free(large);
    assert_eq!(check_this_nursery(), 0);
}
