//! Deferred blocks: handed out again as they are, and coalesced when others need the room.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hearth_heap::{self as heap, check_this_thread, totals};
use hearth_testing::random::Random;

/// Runs one test at a time, as they look at totals of the process.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn block(size: usize) -> usize {
    let block = heap::allocate(size);
    assert!(!block.is_null());
    // SAFETY: just allocated with this size.
    unsafe { block.write_bytes(1, size) };
    block.expose_provenance()
}

fn free(block: usize) {
    // SAFETY: in all tests each block is freed once, and not used after.
    unsafe { heap::free(std::ptr::with_exposed_provenance_mut(block)) };
}

const SMALL: usize = 64;
const BYTES: usize = 20 << 20;

/// One block of each KiB stays, so all the others are deferred. Then larger blocks come, as many
/// bytes as were freed: they must find most of that room.
#[test]
fn what_is_loose_is_used_before_there_is_more() {
    let _alone = alone();
    let blocks: Vec<usize> = (0..BYTES / SMALL).map(|_| block(SMALL)).collect();
    let before = totals().held;
    // By address: the first blocks of an earlier thread's heap begin in the middle of a KiB.
    let (kept, freed): (Vec<usize>, Vec<usize>) =
        blocks.iter().partition(|block| **block % 1024 == 0);
    for block in &freed {
        free(*block);
    }
    let census = check_this_thread();
    let in_use = blocks
        .iter()
        .filter(|block| census.used.contains_key(block));
    assert_eq!(in_use.count(), kept.len());
    // Four of them fit where fifteen were.
    let wanted = BYTES * 8 / 10;
    let larger: Vec<usize> = (0..wanted / 200).map(|_| block(200)).collect();
    check_this_thread();
    let more = totals().held.saturating_sub(before);
    assert!(more < BYTES / 8, "{more} bytes more");
    larger.into_iter().for_each(free);
}

/// Blocks that come again are all different, in any order, and the heap keeps its invariants.
#[test]
fn loose_blocks_are_given_out_once() {
    let _alone = alone();
    let mut random = Random::new(3);
    let mut live: Vec<usize> = Vec::new();
    for round in 0..40 {
        let size = [16, 48, 64, 200, 500, 1000, 3000][round % 7];
        for _ in 0..3000 {
            live.push(block(size));
        }
        let mut sorted = live.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), live.len(), "no block is given out twice");
        while live.len() > 2000 {
            free(live.swap_remove(random.below(live.len())));
        }
        check_this_thread();
    }
    live.into_iter().for_each(free);
    check_this_thread();
}
