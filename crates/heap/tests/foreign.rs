//! Blocks of a thread's or component's heap whose size other threads ask for, and which they grow
//! and free, while neighbours come and go: by vectors made in one thread and grown in another, and
//! by the heap's own interface.
//!
//! A timer interrupts one thread every few tens of microseconds: on few cores, only an interruption
//! brings another thread between a few instructions. `HEARTH_TEST_DEEP=1` takes five hundred times
//! as long, `HEARTH_TEST_SEED` replays each thread's choices.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hearth_heap::{self as heap, PrivateHeap};
use hearth_testing::random::Random;

#[global_allocator]
static GLOBAL: heap::Hearth = heap::Hearth;

/// One size of each level; neighbours have the same size, so that they are of one class.
const SIZES: [usize; 7] = [112, 800, 3000, 5120, 20_000, 70_000, 200_000];
/// Neighbours that come and go: more than fit the cache of their class.
const BESIDE: usize = 6;
/// Hand-overs of each size.
const ROUNDS: u64 = 100;

fn rounds() -> u64 {
    match std::env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 500 * ROUNDS,
        None => ROUNDS,
    }
}

fn seed() -> u64 {
    let given = std::env::var("HEARTH_TEST_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A timer that interrupts the thread that has started it, until it is dropped.
struct Interruptions(libc::timer_t);

// SAFETY: a handler of a signal that does nothing.
unsafe extern "C" fn nothing(_: libc::c_int) {}

impl Interruptions {
    fn start() -> Interruptions {
        const INTERVAL_NS: libc::c_long = 43_000;
        let interval = libc::timespec {
            tv_sec: 0,
            tv_nsec: INTERVAL_NS,
        };
        let often = libc::itimerspec {
            it_interval: interval,
            it_value: interval,
        };
        let mut timer = MaybeUninit::uninit();
        // SAFETY: all that is handed over lives as long as the calls, the event is zero but for
        // what is set, and the timer is made by the first call.
        unsafe {
            let handler: unsafe extern "C" fn(libc::c_int) = nothing;
            libc::signal(libc::SIGUSR1, handler as libc::sighandler_t);
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR1;
            event.sigev_notify_thread_id = libc::gettid();
            let made =
                libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr());
            assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
            let timer = timer.assume_init();
            let set = libc::timer_settime(timer, 0, &raw const often, ptr::null_mut());
            assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
            Interruptions(timer)
        }
    }
}

impl Drop for Interruptions {
    fn drop(&mut self) {
        // SAFETY: made by `start`, and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// The place where blocks change hands: the owner fills it, the other empties it.
struct BlockHandover<T>(Mutex<Option<T>>);

impl<T> BlockHandover<T> {
    fn put(&self, value: T) {
        let before = self.0.lock().expect("nobody panics").replace(value);
        assert!(before.is_none());
    }

    fn take(&self) -> Option<T> {
        self.0.lock().expect("nobody panics").take()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().expect("nobody panics").is_none()
    }
}

/// The owner makes values and, until the last is taken, lets neighbours come and go; the other
/// takes and grows them.
fn hand_over<T: Send>(
    mut make: impl FnMut(u64) -> T + Send,
    mut beside: impl FnMut(u64) + Send,
    mut grow: impl FnMut(T),
) {
    let between = BlockHandover(Mutex::new(None));
    let rounds = rounds();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                between.put(make(round));
                beside(round);
                while !between.is_empty() {
                    beside(round);
                }
                // While the other grows it.
                for _ in 0..4 {
                    beside(round);
                }
            }
            // The mutex orders all but this flag, on which nothing depends.
            is_over.store(true, Ordering::Relaxed);
        });
        let timer = Interruptions::start();
        while !is_over.load(Ordering::Relaxed) || !between.is_empty() {
            match between.take() {
                Some(value) => grow(value),
                None => thread::yield_now(),
            }
        }
        drop(timer);
    });
}

#[track_caller]
fn all_are(bytes: &[u8], mark: u8, whose: &str) {
    // One comparison of memory, fast even without optimization: each byte equals the one before.
    let is_so = bytes[0] == mark && bytes[1..] == bytes[..bytes.len() - 1];
    if !is_so {
        let wrong = bytes.iter().position(|byte| *byte != mark);
        panic!("{whose}: byte {wrong:?} of {} is not {mark}", bytes.len());
    }
}

#[test]
fn vectors_grow_in_other_threads() {
    for size in SIZES {
        let mut own = Random::new(seed() ^ size as u64);
        let mut theirs = Random::new(!seed() ^ size as u64);
        hand_over(
            |round| vec![round as u8; size],
            |round| {
                let count = 1 + own.below(BESIDE);
                let marks = || (0..count).map(|i| (round as u8) ^ 0x80 ^ i as u8);
                let beside: Vec<Vec<u8>> = marks().map(|mark| vec![mark; size]).collect();
                thread::yield_now();
                for (vector, mark) in beside.iter().zip(marks()).rev() {
                    all_are(vector, mark, "beside");
                }
            },
            |mut vector: Vec<u8>| {
                let mark = vector[0];
                all_are(&vector, mark, "taken");
                match theirs.below(4) {
                    0 => vector.truncate(size / 3),
                    1 => vector.resize(size + size / 2, mark),
                    _ => vector.resize(2 * size, mark),
                }
                vector.shrink_to_fit();
                all_are(&vector, mark, "grown");
            },
        );
    }
}

/// A block on its way.
struct Block {
    address: usize,
    usable: usize,
    mark: u8,
}

/// A component's heap, whose blocks others measure, grow and free by the functions for any block.
#[test]
fn blocks_of_components_grow_in_other_threads() {
    for size in SIZES {
        let private = PrivateHeap::new().expect("there is memory");
        let private = &Mutex::new(private);
        let mut own = Random::new(seed() ^ size as u64);
        let mut theirs = Random::new(!seed() ^ size as u64);
        let allocate = |mark: u8| {
            let heap = private.lock().expect("nobody panics");
            let block = heap.allocate(size);
            assert!(!block.is_null());
            // SAFETY: a live block of this size.
            let usable = unsafe {
                block.write_bytes(mark, size);
                heap::usable_size(block)
            };
            Block {
                address: block.expose_provenance(),
                usable,
                mark,
            }
        };
        let bytes = |block: &Block, length: usize| -> &[u8] {
            // SAFETY: a live block, and as long, which nobody writes to.
            unsafe {
                std::slice::from_raw_parts(ptr::with_exposed_provenance(block.address), length)
            }
        };
        hand_over(
            |round| allocate(round as u8),
            |round| {
                let count = 1 + own.below(BESIDE);
                let beside: Vec<Block> = (0..count)
                    .map(|i| allocate((round as u8) ^ 0x80 ^ i as u8))
                    .collect();
                thread::yield_now();
                for block in beside.iter().rev() {
                    all_are(bytes(block, size), block.mark, "beside");
                    let heap = private.lock().expect("nobody panics");
                    // SAFETY: the block is alive, and not used any more.
                    unsafe { heap.free(ptr::with_exposed_provenance_mut(block.address)) };
                }
            },
            |mut block: Block| {
                all_are(bytes(&block, size), block.mark, "taken");
                let pointer: *mut u8 = ptr::with_exposed_provenance_mut(block.address);
                for _ in 0..50 {
                    // SAFETY: a live block.
                    let usable = unsafe { heap::usable_size(pointer) };
                    assert_eq!(usable, block.usable, "of {size}");
                }
                let other = match theirs.below(3) {
                    0 => size / 3 + 1,
                    1 => 2 * size,
                    _ => size,
                };
                // SAFETY: the block is this thread's, and used no more but as what it has become.
                let grown = unsafe { heap::reallocate(pointer, other) };
                assert!(!grown.is_null());
                block.address = grown.expose_provenance();
                all_are(bytes(&block, size.min(other)), block.mark, "moved");
                // SAFETY: as long as was asked for.
                unsafe { grown.write_bytes(block.mark, other) };
                thread::yield_now();
                all_are(bytes(&block, other), block.mark, "grown");
                // SAFETY: alive, and not used any more.
                unsafe { heap::free(grown) };
            },
        );
    }
}
