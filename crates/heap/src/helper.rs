//! A thread that does what is slow: it gives idle memory back to the system, so that no allocation has
//! to.
//!
//! Heaps *lend* it idle pages: they cut them off as ordinary blocks and write them into a ring, of which the
//! helper takes them, forgets their contents, and frees them as any other thread would. And it looks
//! after the chunks that no heap has: as many as heaps have begun to use elsewhere at once, and the rest
//! by halves.
//!
//! And it looks after heaps whose threads have been quiet for a moment: takes back what others have freed of
//! them, and lends itself their idle pages, [in the owner's place](crate::turn).
//!
//! And it looks ahead: what keeps account of chunks that heaps will take gets its memory from it, so that
//! no first touch of it is in an allocation.
//!
//! It is started when there is something to do for the first time that is worth a thread, and sleeps
//! for good when there is nothing. A child of a fork starts its own. Real-time processes have none.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `ring` | heaps, into a place they have claimed; the helper, zero | the helper |
//! | `claimed` | heaps | heaps, the helper |
//! | `taken` | the helper | heaps |
//! | `grown` | heaps add; the helper takes all | the helper |
//! | `idle` | who gives chunks back | the same |
//! | `state` | who starts it; the helper when it sleeps; who wakes it | all |
//! | `at_heaps` | the helper | who forks |
//! | `forks` | who forks | the helper |
//! | `ahead` | the helper | the helper, and that of a child |

use crate::figures;
use crate::geometry::CHUNK_BYTES;
use crate::heap::Heap;
use crate::os::{self, AroundForks};
use crate::pool::{Forgotten, NODES_MAX};
use crate::process::{SPACE, home};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::threads;

/// Pieces that can be lent at once: what a process with sizes that shift lends in some ticks.
const RING: usize = 8192;
/// So many pieces are given back at once.
const TOGETHER: usize = 16;
/// So often a place in the ring is tried for.
const TRIES: usize = 4;
/// While there is something to do, it looks so often.
const TICK_NS: i64 = 2_000_000;
/// After so much to do it comes back sooner: without, five of eight runs of `./x bench heap --only frag` went
/// beyond 2.2 times what was live on a busy machine, and two with it.
const BUSY: u32 = 64;
const BUSY_TICK_NS: i64 = TICK_NS / 8;
/// Half of the idle chunks are given back so often: every 0.2 s.
const DECAY_TICKS: u32 = 100;
/// It sleeps when there was nothing to do for so long.
const REST_TICKS: u32 = 2 * DECAY_TICKS;
/// So often quiet heaps are looked for: every 50 ms. Quiet is who has done nothing between two looks.
const QUIET_TICKS: u32 = 25;
/// So many times in a row a heap is tidied up before the next one's turn.
const TIDY_TIMES: usize = 8;
/// Idle memory of less than this is left alone.
const WORTHWHILE_BYTES: usize = 1 << 20;
const WORTHWHILE: u32 = (WORTHWHILE_BYTES / CHUNK_BYTES) as u32;

// What the helper is at.
const NONE: u32 = 0;
const STARTING: u32 = 1;
const AWAKE: u32 = 2;
const ASLEEP: u32 = 3;
/// There is none and there will not be: it was refused, or is not wanted.
const NEVER: u32 = 4;
/// There is none, and there is something to do.
const WANTED: u32 = 5;

pub(crate) struct Helper {
    ring: [AtomicU64; RING],
    claimed: AtomicU32,
    taken: AtomicU32,
    /// Pages that heaps have begun to use.
    grown: AtomicU32,
    /// Chunks that have become idle since the last call.
    idle: AtomicU32,
    state: AtomicU32,
    /// It is in the middle of heaps of others.
    at_heaps: AtomicU32,
    /// Forks that are under way.
    forks: AtomicU32,
    /// Arenas of each node whose chunks have been looked ahead for.
    ahead: [AtomicU32; NODES_MAX],
}

pub(crate) static HELPER: Helper = Helper {
    ring: [const { AtomicU64::new(0) }; RING],
    claimed: AtomicU32::new(0),
    taken: AtomicU32::new(0),
    grown: AtomicU32::new(0),
    idle: AtomicU32::new(0),
    state: AtomicU32::new(NONE),
    at_heaps: AtomicU32::new(0),
    forks: AtomicU32::new(0),
    ahead: [const { AtomicU32::new(0) }; NODES_MAX],
};

impl Helper {
    /// Lends it a block of idle pages: its distance from the start of the data, and its length in
    /// bytes, multiples of a page. False if it has no time.
    pub(crate) fn lend(&self, offset: usize, bytes: usize) -> bool {
        for _ in 0..TRIES {
            let place = self.claimed.load(Ordering::Relaxed);
            // Acquires that the place is empty.
            let used = place.wrapping_sub(self.taken.load(Ordering::Acquire));
            if used as usize >= RING {
                return false;
            }
            let next = place.wrapping_add(1);
            let claimed =
                self.claimed
                    .compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
            if claimed.is_ok() {
                // The offset is a multiple of a page, whose bits hold the number of pages.
                let piece = offset as u64 | (bytes >> 12) as u64;
                // Releases what the owner did with the block.
                self.ring[place as usize % RING].store(piece, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Heaps have begun to use so many pages. Starts or wakes the helper if need be.
    pub(crate) fn grew(&self, pages: u32) {
        self.grown.fetch_add(pages, Ordering::Relaxed);
        self.call();
    }

    /// Chunks have become idle. Starts or wakes the helper when they are many.
    pub(crate) fn idle(&self, chunks: u32) {
        let before = self.idle.fetch_add(chunks, Ordering::Relaxed);
        if before + chunks > WORTHWHILE {
            self.idle.store(0, Ordering::Relaxed);
            self.call();
        }
    }

    /// There is something to do.
    pub(crate) fn call(&self) {
        match self.state.load(Ordering::Relaxed) {
            NONE => self.want(),
            ASLEEP => self.wake(),
            _ => {}
        }
    }

    /// Starts it if it is wanted. To start a thread allocates, so this is called when a heap is whole:
    /// not in the middle of what has found something to do.
    #[inline]
    pub(crate) fn start_if_wanted(&self) {
        if self.state.load(Ordering::Relaxed) == WANTED {
            self.start();
        }
    }

    #[cold]
    fn want(&self) {
        // It may be wanted, or there, meanwhile.
        let _ = self
            .state
            .compare_exchange(NONE, WANTED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// May there be one?
    pub(crate) fn is_allowed(&self) -> bool {
        self.state.load(Ordering::Relaxed) != NEVER
    }

    /// There shall be none.
    pub(crate) fn forbid(&self) {
        self.state.store(NEVER, Ordering::Relaxed);
    }

    #[cold]
    fn start(&self) {
        let claimed =
            self.state
                .compare_exchange(WANTED, STARTING, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_err() {
            return;
        }
        let started = os::start_thread(run, &FORKS);
        let now = if started { AWAKE } else { NEVER };
        // The thread may be asleep already.
        let _ = self
            .state
            .compare_exchange(STARTING, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    #[cold]
    fn wake(&self) {
        let woken =
            self.state
                .compare_exchange(ASLEEP, AWAKE, Ordering::Relaxed, Ordering::Relaxed);
        if woken.is_ok() {
            os::wake(self.state.as_ptr());
        }
    }

    /// The next lent piece: where it starts, and its bytes.
    fn next_lent(&self) -> Option<(usize, usize)> {
        let place = self.taken.load(Ordering::Relaxed);
        let piece = self.ring[place as usize % RING].swap(0, Ordering::Acquire) as usize;
        if piece == 0 {
            return None;
        }
        // The place may be claimed again.
        self.taken.store(place.wrapping_add(1), Ordering::Release);
        Some((piece & !0xfff, (piece & 0xfff) << 12))
    }

    /// Gives all lent pieces back, those that follow each other at once. How many there were.
    fn forget_lent(&self) -> u32 {
        let mut count = 0;
        let mut next = self.next_lent();
        while let Some((start, bytes)) = next {
            let mut offsets = [start; TOGETHER];
            let (mut pieces, mut end) = (1, start + bytes);
            next = self.next_lent();
            while let Some((offset, bytes)) = next
                && offset == end
                && pieces < TOGETHER
            {
                offsets[pieces] = offset;
                (pieces, end) = (pieces + 1, end + bytes);
                next = self.next_lent();
            }
            figures::forget_lent(start, end - start, &offsets[..pieces]);
            count += pieces as u32;
        }
        count
    }

    /// Gives idle chunks back for those that heaps have begun to use. How many.
    fn follow_growth(&self) -> u32 {
        let pages = self.grown.swap(0, Ordering::Relaxed) as usize;
        let chunks = pages.div_ceil(CHUNK_BYTES >> 12) as u32;
        figures::forget_idle(chunks, Forgotten::Data)
    }

    /// What keeps account of chunks that heaps will take gets its memory before.
    fn look_ahead(&self) {
        for (node, ahead) in self.ahead.iter().enumerate().take(SPACE.nodes()) {
            let done = ahead.load(Ordering::Relaxed) as usize;
            let now = figures::look_ahead(node, done);
            ahead.store(now as u32, Ordering::Relaxed);
        }
    }

    fn run(&self) -> ! {
        let has_barriers = os::has_barriers();
        let (mut ticks, mut resting) = (0u32, 0u32);
        loop {
            self.look_ahead();
            let mut done = self.forget_lent() + self.follow_growth();
            ticks = ticks.wrapping_add(1);
            if ticks.is_multiple_of(DECAY_TICKS) {
                let idle = figures::idle_chunks();
                if idle > WORTHWHILE {
                    done += figures::forget_idle(idle.div_ceil(2), Forgotten::WithMetadata);
                }
            }
            // Not before it was looked: who has been at work since the last look found the helper awake.
            let mut are_quiet = !has_barriers;
            if has_barriers && (ticks.is_multiple_of(QUIET_TICKS) || resting > REST_TICKS) {
                let (tidied, quiet) = self.tidy_up();
                done += tidied;
                are_quiet = quiet;
            }
            resting = if done > 0 { 0 } else { resting + 1 };
            if done > BUSY {
                // A program whose sizes shift may use as much again before the next tick.
                os::sleep_ns(BUSY_TICK_NS);
            } else if resting <= REST_TICKS {
                os::sleep_ns(TICK_NS);
            } else if are_quiet {
                self.rest(has_barriers);
                resting = 0;
            } else {
                // There is nothing to do until somebody is quiet.
                os::sleep_ns(TICK_NS * i64::from(QUIET_TICKS));
            }
        }
    }

    /// Looks after the heaps of quiet threads. How much there was to do; and are all of them quiet?
    fn tidy_up(&self) -> (u32, bool) {
        let (mut done, mut are_quiet) = (0, true);
        for heap in threads::all() {
            let times = heap.turn.times();
            if heap.seen.replace(times) != times {
                heap.is_tidy.set(false);
                heap.looked.set(0);
                are_quiet = false;
                continue;
            }
            if times & 1 != 0 {
                // In the middle of a turn for so long; or for ever, in the child of a fork that its thread is
                // not in.
                continue;
            }
            let queue = &heap.entry().queue;
            for _ in 0..TIDY_TIMES {
                if heap.is_tidy.get() && !queue.has_some(&SPACE) {
                    break;
                }
                let Some(tidied) = self.tidy(heap, times) else {
                    are_quiet = false;
                    break;
                };
                heap.is_tidy.set(tidied == 0);
                done += tidied as u32;
            }
        }
        (done, are_quiet)
    }

    /// Tidies a heap up. None if its owner comes, or somebody forks: a child has no helper that would end
    /// it.
    fn tidy(&self, heap: &'static Heap, times: u32) -> Option<usize> {
        self.at_heaps.store(1, Ordering::SeqCst);
        let tidied = if self.forks.load(Ordering::SeqCst) == 0 {
            let visit = || heap.tidy(home());
            heap.turn.visit(times, os::barrier_everywhere, visit)
        } else {
            None
        };
        self.at_heaps.store(0, Ordering::SeqCst);
        tidied
    }

    /// Sleeps until it is called, unless somebody has been at work since it looked.
    fn rest(&self, has_barriers: bool) {
        let _ = self
            .state
            .compare_exchange(AWAKE, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
        if has_barriers {
            // Whose turn comes after finds it asleep, and calls; one that came before is seen.
            os::barrier_everywhere();
            if threads::all().any(|heap| heap.seen.get() != heap.turn.times()) {
                let _ = self.state.compare_exchange(
                    ASLEEP,
                    AWAKE,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                return;
            }
        }
        // What was lent just now would wait; a call that comes later finds it asleep.
        while self.state.load(Ordering::Relaxed) == ASLEEP
            && self.claimed.load(Ordering::Relaxed) == self.taken.load(Ordering::Relaxed)
        {
            os::wait(self.state.as_ptr(), ASLEEP);
        }
        let _ = self
            .state
            .compare_exchange(ASLEEP, AWAKE, Ordering::Relaxed, Ordering::Relaxed);
    }
}

extern "C" fn run(_: *mut libc::c_void) -> *mut libc::c_void {
    HELPER.run()
}

const FORKS: AroundForks = AroundForks {
    before: before_fork,
    parent: after_fork,
    child: forked,
};

/// Waits until no heap is in the helper's hands.
extern "C" fn before_fork() {
    HELPER.forks.fetch_add(1, Ordering::SeqCst);
    while HELPER.at_heaps.load(Ordering::SeqCst) != 0 {
        os::pause();
    }
}

extern "C" fn after_fork() {
    HELPER.forks.fetch_sub(1, Ordering::SeqCst);
}

/// In a child of a fork there is no helper.
extern "C" fn forked() {
    HELPER.forks.store(0, Ordering::SeqCst);
    if HELPER.state.load(Ordering::Relaxed) != NEVER {
        HELPER.state.store(NONE, Ordering::Relaxed);
    }
}
