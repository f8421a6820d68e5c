//! Idle memory goes back to the system: by a thread of its own where the process has threads, the *helper*,
//! and else by whoever has just taken a slow step, a little at a time.
//!
//! Heaps *lend* idle pages: they cut them off as ordinary blocks and write them into a [ring](crate::lent),
//! of which they are taken, their contents forgotten, and freed as any other thread would free them.
//! And it is looked after the chunks that no heap has: as many as heaps have begun to use elsewhere go back at
//! once, and the rest by halves.
//!
//! The helper also looks after heaps whose threads have been quiet for a moment: takes back what others have
//! freed of them, and lends itself their idle pages, [in the owner's place](crate::turn). And it looks ahead:
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
//! | `grown` | heaps add; who gives back takes all | who gives back |
//! | `idle` | who gives chunks to the pool adds; who gives back takes all | the same |
//! | `given`, `kept` | who does upkeep; who takes chunks | the same |
//! | `at_heaps` | the helper | who forks |
//! | `forks` | who forks | the helper |
//! | `threads` | threads that begin and end | the helper, who forks |
//! | `lingers` | the helper | threads that end |
//! | `thread`, `process` | the helper; who starts it | who waits for its end |
//! | `ahead` | the helper | the helper, and that of a child |

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::figures;
use crate::geometry::CHUNK_BYTES;
use crate::heap::Heap;
use crate::lent::Lent;
use crate::os::{self, AroundForks, CreateThread, Patience};
use crate::pool::{Forgotten, NODES_MAX};
use crate::process::{self, POOLS, SPACE, home};
use crate::stage::{ASLEEP, ENDING, Stage};
use crate::thread;
use crate::threads;

/// So many pieces are given back at once.
const TOGETHER: usize = 16;
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
/// Idle memory of less than this is left alone.
const WORTHWHILE_BYTES: usize = 1 << 20;
const WORTHWHILE: u32 = (WORTHWHILE_BYTES / CHUNK_BYTES) as u32;

/// Upkeep takes so many lent pieces at most: what one slow step lends.
const UPKEEP_PIECES: u32 = 64;
/// And as many idle chunks as came since the last one, and so many more.
const UPKEEP_CHUNKS: u32 = WORTHWHILE;
/// Idle chunks that stay without a helper: 4 MiB; and at most, where memory is asked for again that was given
/// back: 64 MiB, as the GNU library keeps.
const KEPT_MIN: u32 = 64;
const KEPT_MAX: u32 = 1024;

pub(crate) struct Helper {
    pub(crate) stage: Stage,
    lent: Lent,
    /// Pages that heaps have begun to use.
    grown: AtomicU32,
    /// Chunks that have become idle since the last call.
    idle: AtomicU32,
    /// Chunks that upkeep gave back and that were not asked for again; and those that stay idle.
    given: AtomicU32,
    kept: AtomicU32,
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

pub(crate) static HELPER: Helper = Helper {
    stage: Stage::new(),
    lent: Lent::new(),
    grown: AtomicU32::new(0),
    idle: AtomicU32::new(0),
    given: AtomicU32::new(0),
    kept: AtomicU32::new(KEPT_MIN),
    at_heaps: AtomicU32::new(0),
    forks: AtomicU32::new(0),
    threads: AtomicI32::new(0),
    lingers: AtomicU32::new(0),
    thread: AtomicI32::new(0),
    process: AtomicI32::new(0),
    ahead: [const { AtomicU32::new(0) }; NODES_MAX],
};

// ---- what heaps say --------------------------------------------------------------------------------

impl Helper {
    /// Lends a block of idle pages: its distance from the start of the data, and its length in bytes, multiples
    /// of a page. False if too much is lent already.
    pub(crate) fn lend(&self, offset: usize, bytes: usize) -> bool {
        self.lent.lend(offset, bytes)
    }

    /// Heaps have begun to use so many pages.
    pub(crate) fn grew(&self, pages: u32) {
        self.grown.fetch_add(pages, Ordering::Relaxed);
        self.call();
    }

    /// Chunks have become idle.
    pub(crate) fn idle(&self, chunks: u32) {
        let before = self.idle.fetch_add(chunks, Ordering::Relaxed);
        if before + chunks > WORTHWHILE {
            self.call();
        }
    }

    /// Chunks without memory behind them were taken. If upkeep has given some back, it gave too much.
    pub(crate) fn missed(&self, chunks: u32) {
        let given = self.given.load(Ordering::Relaxed);
        if given != 0 {
            // Both are estimates: what others change meanwhile may be lost.
            self.given
                .store(given.saturating_sub(chunks), Ordering::Relaxed);
            let kept = self.kept.load(Ordering::Relaxed) + chunks.min(given);
            self.kept.store(kept.min(KEPT_MAX), Ordering::Relaxed);
        }
    }

    /// There is something to do.
    pub(crate) fn call(&self) {
        if self.stage.call() {
            os::wake(self.stage.word());
        }
    }

    // ---- without a helper ------------------------------------------------------------------------

    /// Does some of what there is to do, if there is no helper. At the end of a slow step: `heap` is whole, and
    /// its owner calls.
    #[inline]
    pub(crate) fn keep_up_if_wanted(&self, heap: Option<&'static Heap>) {
        if self.stage.is_wanted() {
            self.keep_up(heap);
        }
    }

    #[cold]
    fn keep_up(&self, heap: Option<&'static Heap>) {
        if !self.stage.begin_upkeep() {
            return;
        }
        if let Some(heap) = heap
            && heap.turn.begin()
        {
            heap.tidy_a_little(home());
            heap.turn.end();
        }
        let mut done = self.forget_lent(UPKEEP_PIECES) + self.follow_growth(UPKEEP_CHUNKS);
        let came = self.idle.swap(0, Ordering::Relaxed);
        let idle = POOLS.idle_about();
        let beyond = idle.saturating_sub(self.kept.load(Ordering::Relaxed));
        if beyond > 0 {
            let chunks = beyond.min(came.saturating_add(UPKEEP_CHUNKS));
            let given = figures::forget_idle(chunks, Forgotten::WithMetadata);
            let all = self.given.load(Ordering::Relaxed).saturating_add(given);
            self.given.store(all, Ordering::Relaxed);
            done += given;
        }
        // Where the system refuses, the next call asks again.
        let more = done > 0 && (beyond > UPKEEP_CHUNKS || !self.lent.is_empty());
        self.stage.end_upkeep(more);
    }

    // ---- giving back -----------------------------------------------------------------------------

    /// Gives lent pieces back, so many at most, those that follow each other at once. How many there were.
    fn forget_lent(&self, most: u32) -> u32 {
        let (mut count, mut left) = (0, most);
        let mut take = || {
            left = left.checked_sub(1)?;
            self.lent.next()
        };
        let mut next = take();
        while let Some((start, bytes)) = next {
            let mut offsets = [start; TOGETHER];
            let (mut pieces, mut end) = (1, start + bytes);
            next = take();
            while let Some((offset, bytes)) = next
                && offset == end
                && pieces < TOGETHER
            {
                offsets[pieces] = offset;
                (pieces, end) = (pieces + 1, end + bytes);
                next = take();
            }
            figures::forget_lent(start, end - start, &offsets[..pieces]);
            count += pieces as u32;
        }
        count
    }

    /// Gives idle chunks back for those that heaps have begun to use, so many at most. How many.
    fn follow_growth(&self, most: u32) -> u32 {
        let pages = self.grown.swap(0, Ordering::Relaxed) as usize;
        let chunks = pages.div_ceil(CHUNK_BYTES >> 12) as u32;
        figures::forget_idle(chunks.min(most), Forgotten::Data)
    }

    // ---- the helper ------------------------------------------------------------------------------

    /// There is to be a helper.
    fn start(&self, create: CreateThread) {
        // In a child's handler of the fork, one that comes before `forked`, that would take the new helper for the
        // parent's.
        if self.forks.load(Ordering::SeqCst) != 0 {
            return;
        }
        let mut patience = Patience::new();
        while !self.stage.begin_thread() {
            // Upkeep is short; whatever else is the stage, no helper is to be started now.
            if !self.stage.is_at_upkeep() || patience.is_over() {
                return;
            }
            patience.wait();
        }
        self.process.store(os::this_process(), Ordering::Relaxed);
        self.thread.store(0, Ordering::Release);
        if !os::start_thread(create, run, &FORKS) {
            return self.stage.refused();
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
        if is_last && self.stage.is_asleep() && self.lingers.load(Ordering::SeqCst) == 0 {
            os::wake(self.stage.word());
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
        if !self.is_alone() || !self.is_here() || !self.stage.end() {
            return;
        }
        os::wake(self.stage.word());
        let mut ticks = 0;
        while self.stage.is_ending() {
            ticks += 1;
            // Not there yet for so long: never, as in a child with its parent's number, in a space of its own.
            if !self.is_here() || ticks > END_TICKS {
                return;
            }
            os::wait(self.stage.word(), ENDING, Some(TICK_NS));
        }
        os::await_thread_end(self.thread.load(Ordering::Acquire));
    }

    /// What keeps account of chunks that heaps will take gets its memory before.
    fn look_ahead(&self) {
        for (node, ahead) in self.ahead.iter().enumerate().take(SPACE.nodes()) {
            let done = ahead.load(Ordering::Relaxed) as usize;
            let now = figures::look_ahead(node, done);
            ahead.store(now as u32, Ordering::Relaxed);
        }
    }

    /// Sleeps for a tick or so; less if it is to end.
    fn sleep(&self, ns: i64) {
        // A word that is awake changes when the helper is to end.
        os::wait(self.stage.word(), self.stage.awake(), Some(ns));
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
            if self.stage.is_ending() {
                return self.finish();
            }
            alone = if self.is_alone() { alone + 1 } else { 0 };
            if alone > LINGER_TICKS && self.stage.end() {
                self.finish();
                // A thread that began meanwhile found a helper.
                if self.is_alone() || !self.stage.begin_thread() {
                    return;
                }
                self.stage.rise();
            }
            self.look_ahead();
            let mut done = self.guarded(|| self.forget_lent(u32::MAX)).unwrap_or(1)
                + self.follow_growth(u32::MAX);
            self.idle.store(0, Ordering::Relaxed);
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
        let _ = self.guarded(|| self.forget_lent(u32::MAX));
        self.stage.gone();
        os::wake_all(self.stage.word());
    }

    /// Looks after the heaps of quiet threads. How much there was to do; and are all of them quiet?
    fn tidy_up(&self, has_barriers: &mut bool) -> (u32, bool) {
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
        let visit = || heap.tidy(home());
        self.guarded(|| heap.turn.visit(times, barrier, visit))?
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
        self.stage.rest();
        if *has_barriers {
            // Whose turn comes after finds it asleep, and calls; one that came before is seen.
            *has_barriers = os::barrier_everywhere();
            if threads::all().any(|heap| heap.seen.get() != heap.turn.times()) {
                return self.stage.rise();
            }
        }
        self.sleep_until_called();
    }

    fn sleep_until_called(&self) {
        // What was lent just now would wait; a call that comes later finds it asleep.
        while self.stage.is_asleep() && self.lent.is_empty() {
            self.lingers
                .store(u32::from(self.is_alone()), Ordering::SeqCst);
            // The last thread that ends after this wakes it.
            if !self.is_alone() {
                os::wait(self.stage.word(), ASLEEP, None);
                continue;
            }
            let in_time = os::wait(self.stage.word(), ASLEEP, Some(LINGER_NS));
            self.lingers.store(0, Ordering::SeqCst);
            if !in_time && self.is_alone() && self.stage.end() {
                return;
            }
        }
        self.lingers.store(0, Ordering::SeqCst);
        self.stage.rise();
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
    HELPER.lent.forked();
    HELPER.stage.forked();
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
    if process::is_made() {
        HELPER.start(create);
    }
}

/// Starts the helper of a process that has threads for as long as it lives, and need not tell of each: as
/// [`start_helper`], with the C library's `pthread_create`. It may be called again.
pub fn keep_helper() {
    let first = HELPER
        .threads
        .compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
    if first.is_ok() || HELPER.stage.is_wanted() {
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
