//! Quiet threads: their idle memory goes back without them, and what is in use stays intact.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hearth_heap::{self as heap, check_this_thread};
use hearth_testing::random::Random;

fn allocate(size: usize, mark: u8) -> usize {
    let block = heap::allocate(size);
    assert!(!block.is_null());
    // SAFETY: the block has just been allocated with this size.
    unsafe { block.write_bytes(mark, size) };
    block.expose_provenance()
}

fn free(block: usize, size: usize, mark: u8) {
    let block: *mut u8 = std::ptr::with_exposed_provenance_mut(block);
    // SAFETY: the block is alive and this long, and freed once.
    unsafe {
        assert!(block.read() == mark && block.add(size - 1).read() == mark);
        heap::free(block);
    }
}

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = pages.split(' ').nth(1).and_then(|text| text.parse().ok());
    pages.unwrap_or(0usize) * 4096
}

/// Far longer than it takes: the helper searches every 50 ms.
#[track_caller]
fn within_a_minute(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        let is_in_time = start.elapsed() < Duration::from_secs(60);
        assert!(is_in_time, "{:?}, {} resident", heap::totals(), resident());
        thread::sleep(Duration::from_millis(5));
    }
}

const BYTES: usize = 48 << 20;
const SIZE: usize = 64;

/// One after the other, as they look at figures of the process.
#[test]
fn what_is_not_in_use_goes_back_without_its_thread() {
    heap::keep_helper();
    what_others_have_freed();
    idle_pages();
    nothing_happens_to_what_is_in_use();
}

fn what_others_have_freed() {
    let before = heap::totals().held;
    let (give, take) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let owner = thread::spawn(move || {
        for _ in 0..BYTES / SIZE {
            give.send(allocate(SIZE, 1)).expect("somebody waits");
        }
        drop(give);
        let _ = ended.recv();
        check_this_thread();
    });
    let blocks: Vec<usize> = take.iter().collect();
    assert!(heap::totals().held >= before + BYTES);
    for block in blocks {
        free(block, SIZE, 1);
    }
    heap::flush();
    within_a_minute(|| heap::totals().held < before + BYTES / 8);
    drop(end);
    owner.join().expect("it does not panic");
}

/// Uses 64 bytes of each 4 KiB: pages of whole chunks go back only if they are free. Of
/// every fourth page a block stays.
fn idle_pages() {
    let (tell, told) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let owner = thread::spawn(move || {
        let blocks: Vec<usize> = (0..BYTES / SIZE).map(|_| allocate(SIZE, 2)).collect();
        let full = resident();
        let (mut kept, mut page) = (Vec::new(), 0);
        for block in blocks {
            if block >> 14 != page {
                page = block >> 14;
                kept.push(block);
            } else {
                free(block, SIZE, 2);
            }
        }
        tell.send(full).expect("somebody waits");
        let _ = ended.recv();
        check_this_thread();
        for block in kept {
            free(block, SIZE, 2);
        }
        check_this_thread();
    });
    let full = told.recv().expect("it tells");
    within_a_minute(|| resident() < full - BYTES / 2);
    drop(end);
    owner.join().expect("it does not panic");
}

/// More threads than cores, each at work and then quiet for about as long as the helper waits; they
/// also free each other's blocks, and fork in between.
fn nothing_happens_to_what_is_in_use() {
    let until = Instant::now() + Duration::from_secs(3);
    thread::scope(|scope| {
        for lane in 0..6 {
            scope.spawn(move || live(lane, until));
        }
    });
}

fn live(lane: u64, until: Instant) {
    let mut random = Random::new(lane);
    let mut blocks: Vec<(usize, usize, u8)> = Vec::new();
    while Instant::now() < until {
        // Grows to some MiB, and shrinks to little.
        for _ in 0..20_000 {
            let bits = random.below(8);
            let (size, mark) = (1 + random.below(32 << bits), random.below(256) as u8);
            blocks.push((allocate(size, mark), size, mark));
        }
        let theirs = blocks.split_off(blocks.len() / 2);
        thread::spawn(move || {
            for (block, size, mark) in theirs {
                free(block, size, mark);
            }
        })
        .join()
        .expect("it does not panic");
        while blocks.len() > 50 {
            let (block, size, mark) = blocks.swap_remove(random.below(blocks.len()));
            free(block, size, mark);
        }
        // Its slow steps come at any time while the helper is there.
        let quiet = Duration::from_micros(random.below(130_000) as u64);
        let rest = Instant::now() + quiet;
        while Instant::now() < rest {
            thread::sleep(Duration::from_micros(500));
            if random.below(100) == 0 {
                let size = 1 + random.below(300_000);
                free(allocate(size, 7), size, 7);
            }
        }
        check_this_thread();
        in_a_child(|| {
            let blocks: Vec<usize> = (0..5000).map(|i| allocate(1 + i % 700, 3)).collect();
            for (i, block) in blocks.into_iter().enumerate() {
                free(block, 1 + i % 700, 3);
            }
            check_this_thread();
        });
    }
    for (block, size, mark) in blocks {
        free(block, size, mark);
    }
    check_this_thread();
}

/// Runs in a process with this thread alone, and its heap as it is now.
fn in_a_child(work: impl FnOnce()) {
    // SAFETY: the child does its work, and ends without anything of the test's.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            libc::_exit(i32::from(done.is_err()));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0, "the child ended well");
    }
}
