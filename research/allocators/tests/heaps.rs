//! The heaps with one structure: random operations against an oracle, and the number of steps they
//! take.

mod support;

use hearth_allocators::half_fit::{self, HalfFit};
use hearth_allocators::heap::{ALIGN, Heap, Pool};
use hearth_allocators::sequential::{BestFit, FirstFit};
use hearth_allocators::tlsf::Tlsf;
use support::{Memory, Oracle, Random};

const POOL: usize = 8 << 20;

/// Random requests and releases. After each some hundred, the heap is walked.
fn live<H: Heap>(mut heap: H, seed: u64) -> H {
    let mut random = Random::new(seed);
    let mut oracle = Oracle::default();
    let mut blocks: Vec<*mut u8> = Vec::new();
    for step in 0..12_000 {
        let grows = random.below(100) < if step / 1500 % 2 == 0 { 60 } else { 40 };
        if grows || blocks.is_empty() {
            let bytes = random.size(20_000);
            let align = 1 << random.below(12);
            let (block, align) = match random.below(10) {
                0 => (heap.allocate_aligned(align, bytes), align),
                _ => (heap.allocate(bytes), 1),
            };
            if block.is_null() {
                continue;
            }
            // SAFETY: the block was just handed out.
            let usable = unsafe { heap.usable(block) };
            assert!(usable >= bytes, "seed {seed}: {usable} for {bytes}");
            oracle.got(block, usable, align);
            blocks.push(block);
        } else {
            let block = blocks.swap_remove(random.below(blocks.len()));
            oracle.gave_back(block);
            // SAFETY: it was handed out, and is forgotten here.
            unsafe { heap.release(block) };
        }
        if step % 500 == 0 {
            heap.check()
                .unwrap_or_else(|fault| panic!("seed {seed}, step {step}: {fault}"));
        }
    }
    for block in blocks {
        oracle.gave_back(block);
        // SAFETY: as above.
        unsafe { heap.release(block) };
    }
    heap.check()
        .unwrap_or_else(|fault| panic!("seed {seed}, at the end: {fault}"));
    // All is one block again, but for headers at its ends.
    let whole = heap.bytes_held() / 2;
    assert!(
        !heap.allocate(whole).is_null(),
        "seed {seed}: {whole} in one piece"
    );
    heap
}

macro_rules! lives {
    ($name:ident, $heap:ident) => {
        #[test]
        fn $name() {
            for seed in 1..=4 {
                let mut memory = Memory::new(POOL);
                live($heap::<Pool>::new(memory.pool()), seed);
            }
        }
    };
}

lives!(best_fit_serves_any_sequence, BestFit);
lives!(first_fit_serves_any_sequence, FirstFit);
lives!(half_fit_serves_any_sequence, HalfFit);
lives!(tlsf_serves_any_sequence, Tlsf);

/// The most steps of one allocation and one release, with `count` free blocks that do not fit.
fn most_steps<H: Heap>(mut heap: H, count: usize) -> (u64, u64) {
    let blocks: Vec<_> = (0..2 * count).map(|_| heap.allocate(40)).collect();
    assert!(!blocks[blocks.len() - 1].is_null());
    for block in blocks.iter().step_by(2) {
        // SAFETY: it was handed out, and is not used.
        unsafe { heap.release(*block) };
    }
    let mut random = Random::new(5);
    let mut most = (0, 0);
    for _ in 0..200 {
        let before = heap.steps();
        let block = heap.allocate(100 + random.below(400));
        let between = heap.steps();
        // SAFETY: as above.
        unsafe { heap.release(block) };
        most.0 = most.0.max(between - before);
        most.1 = most.1.max(heap.steps() - between);
    }
    most
}

#[test]
fn the_bounded_heaps_take_the_same_steps_whatever_is_free() {
    for count in [10, 1_000, 20_000] {
        let mut memory = Memory::new(POOL);
        let half = most_steps(HalfFit::<Pool, true>::new(memory.pool()), count);
        let mut memory = Memory::new(POOL);
        let tlsf = most_steps(Tlsf::<Pool, true>::new(memory.pool()), count);
        assert!(half.0 <= 3 && half.1 <= 3, "{count}: {half:?}");
        assert!(tlsf.0 <= 8 && tlsf.1 <= 3, "{count}: {tlsf:?}");
    }
}

#[test]
fn the_sequential_ones_look_at_everything() {
    for count in [10, 1_000, 20_000] {
        let mut memory = Memory::new(POOL);
        let best = most_steps(BestFit::<Pool, true>::new(memory.pool()), count);
        let mut memory = Memory::new(POOL);
        let first = most_steps(FirstFit::<Pool, true>::new(memory.pool()), count);
        // The first request of a size walks the whole list.
        assert!(
            best.0 >= count as u64 && first.0 >= count as u64,
            "{best:?} {first:?}"
        );
        assert!(best.1 <= 3 && first.1 <= 3, "{best:?} {first:?}");
    }
}

/// A request that several chunks fit: each takes the one that its name says.
#[test]
fn each_takes_the_chunk_that_its_name_says() {
    /// Frees chunks of 400, 208 and 304 bytes in this order, and asks for 200.
    fn chosen<H: Heap>(mut heap: H) -> usize {
        let sizes = [400, 208, 304];
        let blocks = sizes.map(|bytes| (heap.allocate(bytes), heap.allocate(16)).0);
        for block in blocks {
            // SAFETY: it was handed out, and is not used.
            unsafe { heap.release(block) };
        }
        let block = heap.allocate(200);
        let within =
            |(at, bytes): (&*mut u8, usize)| (at.addr()..at.addr() + bytes).contains(&block.addr());
        let found = blocks.iter().zip(sizes).position(within);
        sizes[found.expect("one of them fits")]
    }
    let mut memory = Memory::new(1 << 16);
    assert_eq!(chosen(BestFit::<Pool>::new(memory.pool())), 208);
    let mut memory = Memory::new(1 << 16);
    // The first that was released is the first in the list.
    assert_eq!(chosen(FirstFit::<Pool>::new(memory.pool())), 400);
    let mut memory = Memory::new(1 << 16);
    // Requests of more than 128 bytes look in the list from 256 on: 208 bytes are not looked at.
    assert_eq!(chosen(HalfFit::<Pool>::new(memory.pool())), 304);
    let mut memory = Memory::new(1 << 16);
    assert_eq!(chosen(Tlsf::<Pool>::new(memory.pool())), 208);
}

/// The source's example: of 68 bytes TLSF makes 80.
#[test]
fn tlsf_wastes_twelve_bytes_of_sixty_eight() {
    let mut memory = Memory::new(1 << 16);
    let mut heap = Tlsf::<Pool>::new(memory.pool());
    let block = heap.allocate(68);
    // SAFETY: it was just handed out.
    assert_eq!(unsafe { heap.usable(block) }, 80);
    assert_eq!(80 % ALIGN, 0);
}

/// The source's front: a request is cut from the high end, and the front stays listed.
#[test]
fn requests_are_cut_from_the_high_end() {
    let mut memory = Memory::new(1 << 16);
    let mut heap = FirstFit::<Pool>::new(memory.pool());
    let large = heap.allocate(1_000);
    heap.allocate(16);
    // SAFETY: it was handed out, and is not used.
    unsafe { heap.release(large) };
    let cut = heap.allocate(100);
    assert_eq!(cut.addr(), large.addr() + 1008 - 112);
    heap.check().unwrap();
}

/// Robson's bound for blocks of powers of two is enough of a pool, whatever the order.
#[test]
fn half_fit_never_fails_within_its_bound() {
    const LIVE: usize = 32 << 10;
    const LARGEST: usize = 1 << 10;
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let mut memory = Memory::new(half_fit::bound(LIVE, LARGEST));
        let mut heap = HalfFit::<Pool>::new(memory.pool());
        let mut live = 0;
        let mut blocks = Vec::new();
        for _ in 0..5_000 {
            // With its overhead a block takes a power of two.
            let whole = 32usize << random.below(6);
            if live + whole <= LIVE && random.below(3) > 0 {
                let block = heap.allocate(whole - 16);
                assert!(
                    !block.is_null(),
                    "seed {seed}: {live} bytes live, {whole} more"
                );
                blocks.push((block, whole));
                live += whole;
            } else if !blocks.is_empty() {
                let (block, whole) = blocks.swap_remove(random.below(blocks.len()));
                // SAFETY: it was handed out, and is not used.
                unsafe { heap.release(block) };
                live -= whole;
            }
        }
    }
}
