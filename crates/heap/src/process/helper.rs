//! Idle memory goes back to the system: by a thread of its own where the process has threads, the *helper*,
//! and else by whoever has just taken a slow step, a little at a time.
//!
//! Heaps *lend* idle pages: they cut them off as ordinary blocks and write them into a [ring](crate::store::lent),
//! of which they are taken, their contents forgotten, and freed as any other thread would free them.
//! And it is looked after the chunks that no heap has: as many as heaps have begun to use elsewhere go back at
//! once, and the rest by halves.
//!
//! The helper also looks after heaps whose threads have been quiet for a moment: takes back what others have
//! freed of them, and lends itself their idle pages, [in the owner's place](crate::heap::handshake). And it looks ahead:
//! what keeps account of chunks that heaps will take gets its memory from it, so that no first touch of it
//! is in an allocation.
//!
//! *When there is a helper.* No allocation and no free starts it: they are called under locks of the C library,
//! which the start of a thread takes, and in processes of one thread, which the kernel treats otherwise than
//! those of several. [`start_helper`] does, called where the process starts a thread of its own. It ends
//! a second after the last of these has ended; or at once, when the process is about to fork or asks by
//! [`be_single`]. Real-time processes have none.
//!
//! *Without it* a thread that has found something to do does some *upkeep* when its slow step is over and the
//! heap is whole: so many pieces, and so many chunks as have become idle since. What is idle stays up to
//! [`KEPT_MIN`] chunks, and more if the process has asked again for memory that it had given back.
//!
//! | field | who writes | who reads |
//! |---|---|---|
//! | `at_heaps` | the helper | who forks |
//! | `forks` | who forks | the helper |
//! | `threads` | threads that begin and end | the helper, who forks |
//! | `lingers` | the helper | threads that end |
//! | `thread`, `process` | the helper; who starts it | who waits for its end |
//! | `ahead` | the helper | the helper, and that of a child |

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::ground::os::{self, AroundForks, CreateThread, Patience};
use crate::heap::state::Heap;
use crate::heap::table::thread_heaps;
use crate::heap::thread;
use crate::heap::upkeep;
use crate::process::start::is_made;
use crate::store::idle::{self, IDLE, WORTHWHILE};
use crate::store::pool::{Forgotten, NODES_MAX, POOLS};
use crate::store::space::SPACE;
use crate::store::stage::{ASLEEP, ENDING};

/// While there is something to do, the helper looks so often.
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
/// The helper ends when the process has had no thread of its own for so long.
const LINGER_NS: i64 = 1_000_000_000;
const LINGER_TICKS: u32 = (LINGER_NS / TICK_NS) as u32;
/// Its end is waited for so long: 10 s.
const END_TICKS: u32 = 5000;

struct Helper {
    /// It is in the middle of heaps of others.
    at_heaps: AtomicU32,
    /// Forks that are under way.
    forks: AtomicU32,
    /// The threads of the process's own, as far as they are told.
    threads: AtomicI32,
    /// It waits for the process to begin another thread.
    lingers: AtomicU32,
    /// The system's numbers of its thread, 0 before that begins, and of the process.
    thread: AtomicI32,
    process: AtomicI32,
    /// Arenas of each node whose chunks have been looked ahead for.
    ahead: [AtomicU32; NODES_MAX],
}

static HELPER: Helper = Helper {
    at_heaps: AtomicU32::new(0),
    forks: AtomicU32::new(0),
    threads: AtomicI32::new(0),
    lingers: AtomicU32::new(0),
    thread: AtomicI32::new(0),
    process: AtomicI32::new(0),
    ahead: [const { AtomicU32::new(0) }; NODES_MAX],
};

impl Helper {
    /// There is to be a helper.
    fn start(&self, create: CreateThread) {
        // In a child's handler of the fork, one that comes before `forked`, that would take the new helper for the
        // parent's.
        if self.forks.load(Ordering::SeqCst) != 0 {
            return;
        }
        let mut patience = Patience::new();
        while !IDLE.stage.begin_thread() {
            // Upkeep is short; whatever else is the stage, no helper is to be started now.
            if !IDLE.stage.is_at_upkeep() || patience.is_over() {
                return;
            }
            patience.wait();
        }
        self.process.store(os::this_process(), Ordering::Relaxed);
        self.thread.store(0, Ordering::Release);
        if !os::start_thread(create, run, &FORKS) {
            return IDLE.stage.refused();
        }
        // Some 50 µs, once. The kernel places a thread that begins on a core where nobody is: beside a helper that
        // is still at its beginning two threads of the program had one of two cores for 3 ms.
        let mut patience = Patience::new();
        while self.thread.load(Ordering::Relaxed) == 0 && !patience.is_over() {
            patience.wait();
        }
    }

    /// The process has one thread of its own less.
    fn ended(&self) {
        // Those of a parent that forked are not counted in its child.
        let counted = self
            .threads
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |threads| {
                (threads > 0).then(|| threads - 1)
            });
        let is_last = counted == Ok(1);
        if is_last && IDLE.stage.is_asleep() && self.lingers.load(Ordering::SeqCst) == 0 {
            os::wake(IDLE.stage.word());
        }
    }

    fn is_alone(&self) -> bool {
        self.threads.load(Ordering::SeqCst) == 0
    }

    /// Is the helper's thread one of this process's, or about to be? A child that was made without handlers of
    /// forks, by `clone` or `_Fork`, has its parent's words and no helper; one of `vfork` has the words together
    /// with its parent.
    fn is_here(&self) -> bool {
        let thread = self.thread.load(Ordering::Acquire);
        self.process.load(Ordering::Relaxed) == os::this_process()
            && (thread == 0 || os::has_thread(thread))
    }

    /// The helper ends now, if the process has no other thread.
    fn end_if_alone(&self) {
        if !self.is_alone() || !self.is_here() || !IDLE.stage.end() {
            return;
        }
        os::wake(IDLE.stage.word());
        let mut ticks = 0;
        while IDLE.stage.is_ending() {
            ticks += 1;
            // Not there yet for so long: never, as in a child with its parent's number, in a space of its own.
            if !self.is_here() || ticks > END_TICKS {
                return;
            }
            os::wait(IDLE.stage.word(), ENDING, Some(TICK_NS));
        }
        os::await_thread_end(self.thread.load(Ordering::Acquire));
    }

    /// What keeps account of chunks that heaps will take gets its memory before.
    fn look_ahead(&self) {
        for (node, ahead) in self.ahead.iter().enumerate().take(SPACE.nodes()) {
            let done = ahead.load(Ordering::Relaxed) as usize;
            let now = POOLS.look_ahead(&SPACE, node, done);
            ahead.store(now as u32, Ordering::Relaxed);
        }
    }

    /// Sleeps for a tick or so; less if it is to end.
    fn sleep(&self, ns: i64) {
        // A word that is awake changes when the helper is to end.
        os::wait(IDLE.stage.word(), IDLE.stage.awake(), Some(ns));
    }

    fn run(&self) {
        // It has no heap: what the C library frees at its end, behind all destructors, would get it one that nobody
        // is told of.
        thread::set_heap(thread::ENDED);
        self.thread.store(os::this_thread(), Ordering::Release);
        let mut has_barriers = os::has_barriers();
        let (mut ticks, mut resting, mut alone) = (0u32, 0u32, 0u32);
        self.sleep_until_called();
        loop {
            if IDLE.stage.is_ending() {
                return self.finish();
            }
            alone = if self.is_alone() { alone + 1 } else { 0 };
            if alone > LINGER_TICKS && IDLE.stage.end() {
                self.finish();
                // A thread that began meanwhile found a helper.
                if self.is_alone() || !IDLE.stage.begin_thread() {
                    return;
                }
                IDLE.stage.rise();
            }
            self.look_ahead();
            let mut done = self.guarded(|| upkeep::forget_lent(u32::MAX)).unwrap_or(1)
                + IDLE.follow_growth(u32::MAX);
            IDLE.came.store(0, Ordering::Relaxed);
            ticks = ticks.wrapping_add(1);
            if ticks.is_multiple_of(DECAY_TICKS) {
                let idle = POOLS.idle(&SPACE);
                if idle > WORTHWHILE {
                    done += idle::forget_idle(idle.div_ceil(2), Forgotten::WithMetadata);
                }
            }
            // Not before it was looked: who has been at work since the last look found the helper awake.
            let mut are_quiet = !has_barriers;
            if has_barriers && (ticks.is_multiple_of(QUIET_TICKS) || resting > REST_TICKS) {
                let (tidied, quiet) = self.tidy_up(&mut has_barriers);
                done += tidied;
                are_quiet = quiet;
            }
            resting = if done > 0 { 0 } else { resting + 1 };
            if done > BUSY {
                // A program whose sizes shift may use as much again before the next tick.
                self.sleep(BUSY_TICK_NS);
            } else if resting <= REST_TICKS {
                self.sleep(TICK_NS);
            } else if are_quiet {
                self.rest(&mut has_barriers);
                resting = 0;
            } else {
                // There is nothing to do until somebody is quiet.
                self.sleep(TICK_NS * i64::from(QUIET_TICKS));
                alone = alone.saturating_add(if alone > 0 { QUIET_TICKS } else { 0 });
            }
        }
    }

    /// The helper ends: nothing is half done.
    fn finish(&self) {
        let _ = self.guarded(|| upkeep::forget_lent(u32::MAX));
        IDLE.stage.gone();
        os::wake_all(IDLE.stage.word());
    }

    /// Looks after the heaps of quiet threads. How much there was to do; and are all of them quiet?
    fn tidy_up(&self, has_barriers: &mut bool) -> (u32, bool) {
        let (mut done, mut are_quiet) = (0, true);
        for heap in thread_heaps() {
            let times = heap.handshake.times();
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
                if !*has_barriers || heap.is_tidy.get() && !queue.has_some(&SPACE) {
                    break;
                }
                let Some(tidied) = self.tidy(heap, times, has_barriers) else {
                    are_quiet = false;
                    break;
                };
                heap.is_tidy.set(tidied == 0);
                done += tidied as u32;
            }
        }
        (done, are_quiet)
    }

    /// Tidies a heap up. None if its owner comes, somebody forks, or there is no barrier.
    fn tidy(&self, heap: &'static Heap, times: u32, has_barriers: &mut bool) -> Option<usize> {
        let barrier = || {
            *has_barriers = os::barrier_everywhere();
            *has_barriers
        };
        let visit = || heap.tidy();
        self.guarded(|| heap.handshake.visit(times, barrier, visit))?
    }

    /// Does something with heaps of others, unless somebody forks: a child has no helper that would end it.
    fn guarded<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.at_heaps.store(1, Ordering::SeqCst);
        let done = (self.forks.load(Ordering::SeqCst) == 0).then(work);
        self.at_heaps.store(0, Ordering::SeqCst);
        done
    }

    /// Goes to sleep, unless somebody has been at work since it looked; until it is called, or the process has had
    /// no thread for so long that it ends.
    fn rest(&self, has_barriers: &mut bool) {
        IDLE.stage.rest();
        if *has_barriers {
            // Whose turn comes after finds it asleep, and calls; one that came before is seen.
            *has_barriers = os::barrier_everywhere();
            if thread_heaps().any(|heap| heap.seen.get() != heap.handshake.times()) {
                return IDLE.stage.rise();
            }
        }
        self.sleep_until_called();
    }

    fn sleep_until_called(&self) {
        // What was lent just now would wait; a call that comes later finds it asleep.
        while IDLE.stage.is_asleep() && IDLE.lent.is_empty() {
            self.lingers
                .store(u32::from(self.is_alone()), Ordering::SeqCst);
            // The last thread that ends after this wakes it.
            if !self.is_alone() {
                os::wait(IDLE.stage.word(), ASLEEP, None);
                continue;
            }
            let in_time = os::wait(IDLE.stage.word(), ASLEEP, Some(LINGER_NS));
            self.lingers.store(0, Ordering::SeqCst);
            if !in_time && self.is_alone() && IDLE.stage.end() {
                return;
            }
        }
        self.lingers.store(0, Ordering::SeqCst);
        IDLE.stage.rise();
    }
}

extern "C" fn run(_: *mut libc::c_void) -> *mut libc::c_void {
    HELPER.run();
    core::ptr::null_mut()
}

// ---- around forks ----------------------------------------------------------------------------------

const FORKS: AroundForks = AroundForks {
    before: before_fork,
    parent: after_fork,
    child: forked,
};

/// Waits until no heap is in the helper's hands. A process without other threads has no helper when it forks:
/// who counts threads then finds one.
extern "C" fn before_fork() {
    HELPER.forks.fetch_add(1, Ordering::SeqCst);
    HELPER.end_if_alone();
    let mut patience = Patience::new();
    while HELPER.at_heaps.load(Ordering::SeqCst) != 0 && HELPER.is_here() {
        patience.wait();
    }
}

extern "C" fn after_fork() {
    HELPER.forks.fetch_sub(1, Ordering::SeqCst);
}

/// In a child of a fork there is neither a helper nor another thread.
extern "C" fn forked() {
    HELPER.forks.store(0, Ordering::SeqCst);
    HELPER.at_heaps.store(0, Ordering::SeqCst);
    HELPER.threads.store(0, Ordering::SeqCst);
    HELPER.thread.store(0, Ordering::Relaxed);
    IDLE.lent.forked();
    IDLE.stage.forked();
}

// ---- for programs ----------------------------------------------------------------------------------

/// From now on a child of a fork knows that it has no other thread. [`start_helper`] does the same; earlier is better,
/// before others have asked for theirs: handlers of children are called in that order, and may start threads.
pub fn watch_forks() {
    os::around_forks(&FORKS);
}

/// The process begins a thread of its own: called before it is there.
pub fn thread_begins() {
    HELPER.threads.fetch_add(1, Ordering::SeqCst);
}

/// Starts the helper if there is none, by `create`, which is the C library's `pthread_create`. For processes
/// that have threads of their own, as [`thread_begins`] has told; it may be called for each of them. To be
/// called where a thread may be created: not from anything that allocates or frees, as the C library does both
/// under its locks. Where the system refuses a thread, idle memory goes back without.
///
/// # Safety
/// `create` does what `pthread_create` does.
pub unsafe fn start_helper(create: CreateThread) {
    if is_made() {
        HELPER.start(create);
    }
}

/// Starts the helper of a process that has threads for as long as it lives, and need not tell of each: as
/// [`start_helper`], with the C library's `pthread_create`. It may be called again.
pub fn keep_helper() {
    let first = HELPER
        .threads
        .compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
    if first.is_ok() || IDLE.stage.is_wanted() {
        // SAFETY: the C library's.
        unsafe { start_helper(os::pthread_create) };
    }
}

/// A thread of the process that [was told](thread_begins) ends, or did not come to be. A second after the last
/// one the helper ends, too.
pub fn thread_ended() {
    HELPER.ended();
}

/// The process has no thread but those of its own when this returns, as the helper has ended if there was
/// no other: for what the system refuses to processes of several threads.
pub fn be_single() {
    HELPER.end_if_alone();
}
