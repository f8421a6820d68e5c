//! The helper: a thread that gives idle memory back and tends quiet heaps, where the process has
//! threads. Without it threads do some [`upkeep`] after their own slow steps.
//!
//! Heaps *lend* idle pages: they cut them off as ordinary blocks and write them into a
//! [ring](crate::store::lent). The helper takes them out, gives their memory back, and frees them
//! as any other thread would. It also gives idle chunks back: as many as heaps have begun to use
//! elsewhere at once, and the rest by halves.
//!
//! It tends heaps whose threads have been quiet for a moment, [in the owner's
//! place](crate::heap::handshake): takes back remote frees, and lends itself their idle pages. And
//! it looks ahead: it faults in the metadata of chunks that heaps will take, so that no allocation
//! has to.
//!
//! *When there is a helper.* No allocation and no free starts it: the C library makes them under
//! locks that the start of a thread takes, and processes of one thread make them, which the kernel
//! treats differently. [`start_helper`] does, when the process starts a thread of its own. The
//! helper ends a second after the last such thread; or at once, when the process is about to fork
//! or calls [`be_single`]. Real-time processes have none.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `at_heaps` | the helper | a thread that forks |
//! | `forks` | a thread that forks | the helper |
//! | `threads` | threads that begin and end | the helper; a thread that forks |
//! | `lingers` | the helper | threads that end |
//! | `thread`, `process` | the helper; its starter | threads that wait for its end |
//! | `ahead` | the helper | the helper, and that of a child |

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::ground::os::{self, AroundForks, CreateThread, Patience};
use crate::heap::state::Heap;
use crate::heap::table::thread_heaps;
use crate::heap::{thread, upkeep};
use crate::process::start::is_ready;
use crate::store::idle::{self, IDLE, WORTHWHILE};
use crate::store::pool::{Forgotten, NODES_MAX, POOLS};
use crate::store::space::SPACE;
use crate::store::stage::{ASLEEP, ENDING};

/// Time between two rounds while there is work.
const TICK_NS: i64 = 2_000_000;
/// Work in one round after which the next comes sooner: without, five of eight runs of `./x bench
/// heap --only frag` went beyond 2.2 times what was live on a busy machine, and two with it.
const BUSY: u32 = 64;
const BUSY_TICK_NS: i64 = TICK_NS / 8;
/// Time between halvings of the idle chunks: 0.2 s.
const DECAY_TICKS: u32 = 100;
/// Rounds without work before it sleeps.
const REST_TICKS: u32 = 2 * DECAY_TICKS;
/// Rounds between searches for quiet heaps: 50 ms. A heap is quiet if it has had no turn between
/// two searches.
const QUIET_TICKS: u32 = 25;
/// Times in a row that one heap is tidied.
const TIDY_TIMES: usize = 8;
/// Time without threads of the process's own after which the helper ends.
const LINGER_NS: i64 = 1_000_000_000;
const LINGER_TICKS: u32 = (LINGER_NS / TICK_NS) as u32;
/// Ticks that a caller waits for its end: 10 s.
const END_TICKS: u32 = 5000;

struct Helper {
    /// Whether it is in the middle of other threads' heaps.
    at_heaps: AtomicU32,
    /// Forks under way.
    forks: AtomicU32,
    /// The process's own threads, as far as announced.
    threads: AtomicI32,
    /// Whether it waits for the process to begin another thread.
    lingers: AtomicU32,
    /// The kernel's ids of its thread, 0 before that begins, and of the process.
    thread: AtomicI32,
    process: AtomicI32,
    /// Arenas of each node whose metadata has been faulted in.
    ahead: [AtomicU32; NODES_MAX],
}

/// The helper of the process: fork handlers and exported functions have no other way to it.
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
    /// Starts the helper, unless there is one.
    fn start(&self, create: CreateThread) {
        // In a child's fork handler that runs before `forked`: that would take the new helper for
        // the parent's.
        if self.forks.load(Ordering::SeqCst) != 0 {
            return;
        }
        let mut patience = Patience::new();
        while !IDLE.stage.begin_thread() {
            // Upkeep is short; in any other state no helper may start now.
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
        // Some 50 µs, once. The kernel places a new thread on an idle core: beside a helper that is
        // still starting, two threads of the program shared one of two cores for 3 ms.
        let mut patience = Patience::new();
        while self.thread.load(Ordering::Relaxed) == 0 && !patience.is_over() {
            patience.wait();
        }
    }

    /// Counts the end of a thread of the process.
    fn ended(&self) {
        // A child does not count its parent's threads.
        let counted = self
            .threads
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |threads| {
                (threads > 0).then(|| threads - 1)
            });
        let is_last = counted == Ok(1);
        if is_last && IDLE.stage.is_asleep() && self.lingers.load(Ordering::SeqCst) == 0 {
            os::wake(IDLE.stage.word(), 1);
        }
    }

    fn is_alone(&self) -> bool {
        self.threads.load(Ordering::SeqCst) == 0
    }

    /// Whether the helper's thread is one of this process's, or about to be. A child made without
    /// fork handlers, by `clone` or `_Fork`, has its parent's memory and no helper; one of `vfork`
    /// shares the memory with its parent.
    fn is_here(&self) -> bool {
        let thread = self.thread.load(Ordering::Acquire);
        self.process.load(Ordering::Relaxed) == os::this_process()
            && (thread == 0 || os::has_thread(thread))
    }

    /// Ends the helper now, if the process has no other thread.
    fn end_if_alone(&self) {
        if !self.is_alone() || !self.is_here() || !IDLE.stage.end() {
            return;
        }
        os::wake(IDLE.stage.word(), 1);
        let mut ticks = 0;
        while IDLE.stage.is_ending() {
            ticks += 1;
            // Absent for so long means never: in a child with its parent's id, in a PID namespace
            // of its own.
            if !self.is_here() || ticks > END_TICKS {
                return;
            }
            os::wait(IDLE.stage.word(), ENDING, Some(TICK_NS));
        }
        os::await_thread_end(self.thread.load(Ordering::Acquire));
    }

    /// Faults in the metadata of chunks that heaps will take.
    fn look_ahead(&self) {
        for (node, ahead) in self.ahead.iter().enumerate().take(SPACE.nodes()) {
            let done = ahead.load(Ordering::Relaxed) as usize;
            let now = POOLS.look_ahead(&SPACE, node, done);
            ahead.store(now as u32, Ordering::Relaxed);
        }
    }

    /// Sleeps for a while, or until it is asked to end.
    fn sleep(&self, ns: i64) {
        // The word changes when the helper is asked to end.
        os::wait(IDLE.stage.word(), IDLE.stage.awake(), Some(ns));
    }

    fn run(&self) {
        // The helper has no heap: the C library frees at the thread's end, behind all destructors,
        // and a heap made for that would never be handed on.
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
            // Only after a search: a thread at work since the last one found the helper awake.
            let mut are_quiet = !has_barriers;
            if has_barriers && (ticks.is_multiple_of(QUIET_TICKS) || resting > REST_TICKS) {
                let (tidied, quiet) = self.tidy_up(&mut has_barriers);
                done += tidied;
                are_quiet = quiet;
            }
            resting = if done > 0 { 0 } else { resting + 1 };
            if done > BUSY {
                // A program with shifting sizes may use as much again before the next tick.
                self.sleep(BUSY_TICK_NS);
            } else if resting <= REST_TICKS {
                self.sleep(TICK_NS);
            } else if are_quiet {
                self.rest(&mut has_barriers);
                resting = 0;
            } else {
                // Nothing to do until somebody is quiet.
                self.sleep(TICK_NS * i64::from(QUIET_TICKS));
                alone = alone.saturating_add(if alone > 0 { QUIET_TICKS } else { 0 });
            }
        }
    }

    /// Ends the helper's work, with nothing half done.
    fn finish(&self) {
        let _ = self.guarded(|| upkeep::forget_lent(u32::MAX));
        IDLE.stage.gone();
        os::wake(IDLE.stage.word(), i32::MAX as u32);
    }

    /// Tidies the heaps of quiet threads. Returns the work done, and whether all heaps are quiet.
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
                // A long turn; or an endless one, in the child of a fork that its thread is not in.
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

    /// Tidies one heap. None if its owner comes, a thread forks, or there is no barrier.
    fn tidy(&self, heap: &'static Heap, times: u32, has_barriers: &mut bool) -> Option<usize> {
        let barrier = || {
            *has_barriers = os::barrier_everywhere();
            *has_barriers
        };
        let visit = || heap.tidy();
        self.guarded(|| heap.handshake.visit(times, barrier, visit))?
    }

    /// Works on other threads' heaps, unless a thread forks: a child has no helper that would
    /// finish.
    fn guarded<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.at_heaps.store(1, Ordering::SeqCst);
        let done = (self.forks.load(Ordering::SeqCst) == 0).then(work);
        self.at_heaps.store(0, Ordering::SeqCst);
        done
    }

    /// Sleeps until it is called, unless a thread has been at work since the last search; or ends
    /// when the process has had no thread for long enough.
    fn rest(&self, has_barriers: &mut bool) {
        IDLE.stage.rest();
        if *has_barriers {
            // An owner whose turn comes later finds it asleep, and calls; an earlier turn is seen.
            *has_barriers = os::barrier_everywhere();
            if thread_heaps().any(|heap| heap.seen.get() != heap.handshake.times()) {
                return IDLE.stage.rise();
            }
        }
        self.sleep_until_called();
    }

    fn sleep_until_called(&self) {
        // Pieces lent just now would wait; a later call finds it asleep.
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

// ---- around forks ----------------------------------------------------------------------------

const FORKS: AroundForks = AroundForks {
    before: before_fork,
    parent: after_fork,
    child: forked,
};

/// Waits until the helper has left other threads' heaps. A process without other threads has no
/// helper when it forks, so that a program that counts threads finds one.
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

/// Resets the state in a child of a fork, which has neither a helper nor another thread.
extern "C" fn forked() {
    HELPER.forks.store(0, Ordering::SeqCst);
    HELPER.at_heaps.store(0, Ordering::SeqCst);
    HELPER.threads.store(0, Ordering::SeqCst);
    HELPER.thread.store(0, Ordering::Relaxed);
    IDLE.lent.forked();
    IDLE.stage.forked();
}

// ---- for programs ----------------------------------------------------------------------------

/// Registers the fork handlers now. [`start_helper`] does so, too; earlier is better, before others
/// register theirs: handlers of children run in that order, and may start threads.
pub fn watch_forks() {
    os::around_forks(&FORKS);
}

/// Announces a thread of the process's own; called before it starts.
pub fn thread_begins() {
    HELPER.threads.fetch_add(1, Ordering::SeqCst);
}

/// Starts the helper if there is none, by `create`, which is the C library's `pthread_create`. For
/// processes with threads of their own, announced by [`thread_begins`]; each of them may call it.
/// Call it where a thread may be created: not from code that allocates or frees, as the C library
/// does both under its locks. If the system refuses a thread, idle memory goes back by upkeep.
///
/// # Safety
/// `create` does what `pthread_create` of this process's C library does: it runs the function with
/// its argument on a new thread, once, or returns an error and does not run it.
pub unsafe fn start_helper(create: CreateThread) {
    if is_ready() {
        HELPER.start(create);
    }
}

/// Starts the helper of a process that has threads for as long as it lives, and need not announce
/// each: as [`start_helper`], with the C library's `pthread_create`. It may be called again.
pub fn keep_helper() {
    let first = HELPER
        .threads
        .compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
    if first.is_ok() || IDLE.stage.is_wanted() {
        // SAFETY: the C library's.
        unsafe { start_helper(os::pthread_create) };
    }
}

/// Announces the end of a thread that [was announced](thread_begins), or that it did not come to
/// be. A second after the last one the helper ends, too.
pub fn thread_ended() {
    HELPER.ended();
}

/// Ends the helper if the process has no other thread, so that only the process's own threads are
/// left: for calls that the system refuses to processes of several threads.
pub fn be_single() {
    HELPER.end_if_alone();
}
