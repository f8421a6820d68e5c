//! Workers: one kernel thread a core, which resumes the components of its own queue.
//!
//! A ready component is in the queue of its `home`. The worker's own thread puts it there at once;
//! other threads post it to the worker's inbox, emptied between two components. An idle worker
//! polls its inbox for a while, since waking a thread costs far more than a look, then sleeps.
//!
//! The half-channels of a worker's components are its own as long as they are connected among
//! themselves. Its thread touches them between `busy := 1` and `busy := 0`, having seen that the
//! gate is open: two plain stores and a load. Another thread that must touch them takes the lock
//! `leave`, closes the gate, makes all threads pass a barrier, and waits until the worker is not
//! busy. One of the two always sees the other. On systems without such barriers the gate stays
//! closed, and every thread takes the lock.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `next`, `first`, `last`, `ticks`, `streak`, `patience` | its thread | its thread |
//! | `busy` | its thread | its thread, those who wait for leave |
//! | `gate` | holders of `leave` | its thread, holders of `leave` |
//! | `running` | its thread; to null only while busy | its thread, the monitor |
//! | `inbox` | posters; its thread, by exchange | both |
//! | `asleep` | its thread: 0 → 1 or 2 → 0; a poster: 1 or 2 → 0 | both |

mod home;
mod leave;
mod migrating_servers;
mod moves;
mod origin;
mod polling;
mod recorded_runs;
mod resume;
mod runner;
mod sharing;
mod simulated;
mod threads;
mod watching;
#[cfg(loom)]
pub(crate) mod world;

use std::cell::Cell as Plain;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hearth_sys::{Linux, affinity, control_groups};

use crate::abi::Component;
use crate::exchange::line::Watch;
use crate::ground::runtime::{self, Part, Runtime};
use home::set_home;
pub(crate) use home::{core_of, home_of, mark_of, of_mark, worker_of};
pub(crate) use leave::{Entered, Hold, Linked, Operation, hold_both, parks, rejoin};
pub(crate) use migrating_servers::{
    come_from_now, come_to_caller, destination_to, settle_coming, stay,
};
use moves::Orders;
pub(crate) use moves::{Order, order, pin_again, stations};
pub(crate) use origin::{is_kept_placed, keep_named, keep_placed, keep_planned};
use polling::AT_ITS_WORD;
pub(crate) use polling::offer as see_to_outside;
use recorded_runs::Watched;
use runner::{Runner, current_worker};
pub(crate) use runner::{as_stranger, component_on, running};
use sharing::Sharing;
pub(crate) use simulated::{Stage, with_open_gate};
pub(crate) use threads::{at_work, wake_all};
#[cfg(loom)]
use world::{all, stand_in};

use crate::exchange::carrier::traffic::{Interest, Sampler};
use crate::exchange::values::heap;
use crate::ground::options::{Policy, Servers};
use crate::ground::sync::{
    AtomicPtr, AtomicU32, AtomicUsize, Guarded, Mutex, Ordering, PlainCell as Cell, Word, fence,
    membarrier,
};
use crate::ground::without::Mechanism;
use crate::ground::{exits, options};
use crate::hooks::simulation;
use crate::outside::idle;
use crate::recording;
use crate::seats::seat::Seat;

/// Runs in a row for components that the running one made ready, ahead of the queue; then the
/// others have their turn.
const STREAK: u32 = 16;
/// Components between two checks of timers and descriptors if no thread waits for them; a multiple
/// of [`LOOK_EVERY`].
const OUTSIDE_EVERY: u32 = 32;
/// Components between two checks of the watch list.
const LOOK_EVERY: u32 = 8;
/// Ends of links that a worker watches; further ones set their TELL bit. In models, few.
const WATCHES: usize = if cfg!(loom) { 1 } else { 16 };
/// Least patience, reached when looking was in vain again and again.
const LEAST_PATIENCE: Duration = Duration::from_micros(1);

/// A worker: resumes components, one a core. Its first fields are laid out as in `hearth.h`.
#[repr(C, align(128))]
pub struct Worker {
    /// Its mark; 0 while another thread has its half-channels.
    gate: AtomicUsize,
    /// Nonzero while its thread touches its half-channels.
    busy: AtomicU32,
    /// Number of select arms served here, the clock of their turns. Its thread's, while busy.
    ticks: Plain<u32>,
    /// The component whose code its thread runs; null while it cannot be detached.
    running: AtomicPtr<Component>,
    /// The next to run: a partner of the running one.
    next: Cell<*mut Component>,
    /// The other ready components, in turn.
    first: Cell<*mut Component>,
    last: Cell<*mut Component>,
    /// A seed chooses among arms.
    seeded: bool,
    mine: Mine,
    shared: Shared,
}

/// Further fields that only the worker's own thread touches.
struct Mine {
    streak: Plain<u32>,
    /// Number of components picked.
    picks: Plain<u32>,
    patience: Plain<Duration>,
    sharing: Sharing,
    /// Servers may migrate to their callers.
    serves: bool,
    watched: Watched,
    sampler: Sampler,
    /// Ends of links with blocked components; touched with leave only.
    watches: Guarded<Vec<Watch>>,
    /// Number of these ends.
    watching: AtomicU32,
}

/// Fields that other threads touch too.
#[repr(align(128))]
struct Shared {
    /// Components made ready by other threads, the latest first, linked by `next`.
    inbox: AtomicPtr<Component>,
    asleep: Word,
    started: AtomicBool,
    /// Held by the thread that has this worker's half-channels.
    leave: Mutex<()>,
    /// The thread that resumes its components.
    runner: AtomicPtr<Runner>,
    /// Number of runners detached that have not noticed; changed with leave.
    detached: AtomicU32,
    /// Pending moves of components, for its thread to carry out.
    orders: Orders,
    /// The home of a detached component.
    is_stand_in: bool,
    index: usize,
    core: Option<usize>,
    /// The runtime it belongs to.
    runtime: *const Runtime,
}

// As `hearth.h` has it; a test of the header holds it to the same numbers.
#[cfg(not(loom))]
const _: () = assert!(
    std::mem::offset_of!(Worker, gate) == 0
        && std::mem::offset_of!(Worker, busy) == 8
        && std::mem::offset_of!(Worker, ticks) == 12
        && std::mem::offset_of!(Worker, running) == 16
        && std::mem::offset_of!(Worker, next) == 24
        && std::mem::offset_of!(Worker, first) == 32
        && std::mem::offset_of!(Worker, last) == 40
        && std::mem::offset_of!(Worker, seeded) == 48
);

// SAFETY: the table above says which thread touches what.
unsafe impl Sync for Worker {}
// SAFETY: as above.
unsafe impl Send for Worker {}

#[cfg(not(loom))]
static WORKERS: Part<OnceLock<Vec<Worker>>> = Part::new(OnceLock::new);
#[cfg(not(loom))]
static STAND_INS: Part<OnceLock<Vec<Worker>>> = Part::new(OnceLock::new);

/// The purpose for which runs are sampled.
fn interest() -> Interest {
    match options::get().policy {
        _ if options::get().watches_traffic() => Interest::Traffic,
        Policy::Steal => Interest::Runs,
        _ => Interest::None,
    }
}

/// The cores that this process could use at the start.
pub(crate) fn cores() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(affinity::allowed)
}

/// The stand-in for a worker.
#[cfg(not(loom))]
fn stand_in(worker: &Worker) -> &'static Worker {
    let stand_ins = STAND_INS.get_or_init(|| {
        let numbers = 0..all().len();
        numbers
            .map(|index| Worker::new(index, None, true))
            .collect()
    });
    &stand_ins[worker.shared.index]
}

/// All workers; in a small program most have not started yet.
#[cfg(not(loom))]
fn all() -> &'static [Worker] {
    WORKERS.get_or_init(|| {
        if simulation::is_on() {
            return simulated::make_all();
        }
        let cores = cores();
        let count = worker_count(options::get().workers, cores.len());
        // More workers than cores share them as the system sees fit.
        let is_pinned = count <= cores.len();
        let core_of = |index: usize| is_pinned.then(|| cores[index]);
        let workers: Vec<Worker> = (0..count)
            .map(|index| Worker::new(index, core_of(index), false))
            .collect();
        if membarrier::is_available() && !Mechanism::Barrier.is_off() {
            for worker in &workers {
                worker.gate.store(worker.mark(), Ordering::Relaxed);
            }
        }
        workers
    })
}

/// Posts a component that can continue to its home.
///
/// # Safety
/// As for [`ready`]; it is not taken as a partner that runs next.
pub(crate) unsafe fn post(component: *mut Component) {
    // SAFETY: as the caller promises.
    unsafe { (*home_of(component)).post(component) };
}

/// The worker whose components the calling thread runs.
pub(crate) fn own_worker() -> Option<&'static Worker> {
    // SAFETY: workers live as long as their runtime.
    unsafe { current_worker().as_ref() }
}

/// Queues a component of the calling worker that can continue.
///
/// # Safety
/// It waits for nothing, is in no queue, and its home is the calling thread's worker, which has
/// entered: otherwise the thread may have been detached.
pub(crate) unsafe fn ready_here(component: *mut Component) {
    // SAFETY: as the caller promises.
    let home = unsafe { (*component).home.cast::<Worker>() };
    debug_assert!(
        ptr::eq(home, current_worker()),
        "the queue is another thread's"
    );
    // SAFETY: as the caller promises; workers live as long as their runtime.
    unsafe { (*home).push_soon(component) };
}

/// Queues it like [`ready_here`], but behind all others.
///
/// # Safety
/// As for [`ready_here`].
pub(crate) unsafe fn ready_here_last(component: *mut Component) {
    // SAFETY: as the caller promises; workers live as long as their runtime.
    unsafe { (*(*component).home.cast::<Worker>()).push(component) };
}

/// Number of workers on `cores` cores, if `asked` were requested.
pub(crate) fn worker_count(asked: Option<usize>, cores: usize) -> usize {
    asked.unwrap_or_else(|| sensible_count(cores))
}

/// The number of a component's worker, and that worker's core if pinned.
pub(super) fn worker_and_core(component: *mut Component) -> Option<(usize, Option<usize>)> {
    // SAFETY: workers live as long as their runtime.
    let worker = unsafe { worker_of(home_of(component)).as_ref() }?;
    Some((worker.shared.index, worker.shared.core))
}

/// One a core, but no more than a control group lets run at the same time.
fn sensible_count(cores: usize) -> usize {
    match control_groups::quota(&Linux) {
        Some(quota) => cores.min(quota.ceil() as usize).max(1),
        None => cores,
    }
}

/// The worker for a core; without one, the calling worker, or the first.
pub(super) fn for_core(core: Option<usize>) -> *const Worker {
    let workers = all();
    let Some(core) = core else {
        // It may be another runtime's, if a component of that makes this one.
        let current = own_worker().filter(|own| ptr::eq(own.runtime(), runtime::current()));
        return current.unwrap_or(&workers[0]);
    };
    workers
        .iter()
        .find(|worker| worker.shared.core == Some(core))
        .unwrap_or(&workers[core % workers.len()])
}

/// Makes a component that can continue ready at its home.
///
/// # Safety
/// It waits for nothing, is in no queue, and has a home; the caller is counted as running, or
/// starts the program.
pub(super) unsafe fn ready(component: *mut Component) {
    // SAFETY: as the caller promises; workers live as long as their runtime.
    unsafe {
        let home = (*component).home.cast::<Worker>();
        if !ptr::eq(home, current_worker()) || !(*home).push_if_own(component) {
            (*home).post(component);
        }
    }
}

/// Records that a server has migrated to a worker. Its wait is not settled yet.
fn note_coming(seat: &Seat, from: *const Worker, to: &Worker) {
    // SAFETY: workers live as long as their runtime.
    if let (Some(recorder), Some(from)) = (recording::recorder(), unsafe { from.as_ref() }) {
        recorder.moved(seat.id, from.shared.index as u16, to.shared.index as u16);
    }
}

/// Moves the component to that core's worker, from its next wait on.
///
/// # Safety
/// The component runs the calling code.
pub(super) unsafe fn move_to(seat: &Seat, core: usize) {
    // SAFETY: workers live as long as their runtime.
    let index = unsafe { (*for_core(Some(core))).shared.index };
    // SAFETY: the component's own field.
    unsafe { (*seat.component()).destination = 1 + index as u16 };
}

impl Worker {
    fn new(index: usize, core: Option<usize>, is_stand_in: bool) -> Worker {
        Worker {
            gate: AtomicUsize::new(0),
            busy: AtomicU32::new(0),
            ticks: Plain::new(0),
            running: AtomicPtr::new(ptr::null_mut()),
            next: Cell::new(ptr::null_mut()),
            first: Cell::new(ptr::null_mut()),
            last: Cell::new(ptr::null_mut()),
            seeded: options::get().seed.is_some(),
            mine: Mine {
                streak: Plain::new(0),
                picks: Plain::new(0),
                patience: Plain::new(options::get().patience),
                sharing: Sharing::new(),
                serves: cfg!(loom) || options::get().servers != Servers::Asynchronous,
                watched: Watched::new(),
                sampler: Sampler::new(interest(), index as u64),
                watches: Guarded::new(Vec::with_capacity(WATCHES)),
                watching: AtomicU32::new(0),
            },
            shared: Shared {
                inbox: AtomicPtr::new(ptr::null_mut()),
                asleep: Word::new(0),
                // A model's threads exist from the start.
                started: AtomicBool::new(is_stand_in || cfg!(loom)),
                leave: Mutex::new(()),
                runner: AtomicPtr::new(ptr::null_mut()),
                detached: AtomicU32::new(0),
                orders: Orders::new(),
                is_stand_in,
                index,
                core,
                runtime: runtime::current(),
            },
        }
    }

    /// The runtime it belongs to.
    pub(crate) fn runtime(&self) -> &'static Runtime {
        // SAFETY: a runtime's workers live as long as it does.
        unsafe { &*self.shared.runtime }
    }

    /// Whether components other than the running one are ready.
    #[cfg(not(loom))]
    fn somebody_waits(&self) -> bool {
        // Only a guess: the queue is its runner's, which may be changing it.
        // SAFETY: alive; read as if by another thread.
        let queued = unsafe {
            !self.next.as_ptr().read_volatile().is_null()
                || !self.first.as_ptr().read_volatile().is_null()
        };
        queued
            || !self.shared.inbox.load(Ordering::Relaxed).is_null()
            || self.mine.watching.load(Ordering::Relaxed) > 0
    }

    fn is_asleep(&self) -> bool {
        !self.shared.started.load(Ordering::Relaxed)
            || self.shared.asleep.load(Ordering::Relaxed) != 0
    }

    /// The core that it is bound to.
    fn core(&self) -> Option<usize> {
        self.shared.core
    }

    /// Pins the calling thread to the worker's core.
    fn pin_current(&self) {
        if let Some(core) = self.core() {
            moves::keep_current(core);
        }
    }

    // ---- its own thread -----------------------------------------------------------------------

    /// Puts the component next if that place is free, otherwise last.
    fn push_soon(&self, component: *mut Component) {
        if self.next.get().is_null() {
            self.next.set(component);
        } else {
            self.push(component);
        }
    }

    fn push(&self, component: *mut Component) {
        // SAFETY: a component in no queue; its link belongs to the queue it enters.
        unsafe { (*component).next = ptr::null_mut() };
        let last = self.last.replace(component);
        if last.is_null() {
            self.first.set(component);
        } else {
            // SAFETY: in this queue, so parked and alive.
            unsafe { (*last).next = component };
        }
    }

    fn pop(&self) -> Option<*mut Component> {
        let first = self.first.get();
        if first.is_null() {
            return None;
        }
        // SAFETY: in this queue, so parked and alive.
        let second = unsafe { (*first).next };
        self.first.set(second);
        if second.is_null() {
            self.last.set(ptr::null_mut());
        }
        Some(first)
    }

    /// Picks the component to run now.
    fn pick(&'static self, runner: &Runner) -> Option<*mut Component> {
        let mine = &self.mine;
        let picks = mine.picks.get().wrapping_add(1);
        mine.picks.set(picks);
        if picks.is_multiple_of(LOOK_EVERY) {
            self.look_around(runner, picks);
        }
        // Every time, since the next run may be long.
        self.empty_inbox();
        let next = self.partner();
        if !next.is_null() && (mine.streak.get() < STREAK || self.first.get().is_null()) {
            self.next.set(ptr::null_mut());
            mine.streak.set(mine.streak.get() + 1);
            return Some(next);
        }
        mine.streak.set(0);
        self.pop()
    }

    /// Checks the sources outside its queue, except the inbox. Kept out of line of the common path.
    #[inline(never)]
    fn look_around(&'static self, runner: &Runner, picks: u32) {
        self.look_through(false);
        self.follow_orders();
        if picks.is_multiple_of(OUTSIDE_EVERY) {
            self.look_outside(runner);
        }
    }

    /// Queues the posted components, in the order of posting. False if there were none.
    #[inline]
    fn empty_inbox(&self) -> bool {
        let has_come = !self.shared.inbox.load(Ordering::Relaxed).is_null();
        if has_come {
            self.take_posted();
        }
        has_come
    }

    #[inline(never)]
    fn take_posted(&self) {
        // Acquire pairs with the Release in `post`: the posters' results are visible.
        let mut posted = self.shared.inbox.swap(ptr::null_mut(), Ordering::Acquire);
        let mut in_order = ptr::null_mut();
        while !posted.is_null() {
            // SAFETY: posted, so parked and alive; the link is the inbox's until here.
            unsafe {
                let before = (*posted).next;
                (*posted).next = in_order;
                in_order = posted;
                posted = before;
            }
        }
        while !in_order.is_null() {
            // SAFETY: as above.
            let behind = unsafe { (*in_order).next };
            self.push(in_order);
            in_order = behind;
        }
    }

    /// Rests while nothing is ready, until something is in the inbox.
    fn rest(&'static self) {
        // Not a pick: samples stand for picks.
        self.mine.picks.set(self.mine.picks.get().wrapping_sub(1));
        self.mine.sampler.rest();
        if self.empty_inbox() || self.look_out() {
            return;
        }
        #[cfg(loom)]
        let looks = !crate::ground::planted_faults::faults::sleeps_blindly();
        #[cfg(not(loom))]
        let looks = true;
        if looks && self.look_through(true) {
            return;
        }
        heap::flush();
        self.mine.sampler.publish();
        self.follow_orders();
        let start = Instant::now();
        if !self.waits_for_outside() {
            if !self.falls_asleep(AT_ITS_WORD) {
                return;
            }
            self.shared.asleep.sleep(AT_ITS_WORD);
        }
        if start.elapsed() < 2 * options::get().patience {
            // A little more patience would have sufficed.
            self.mine.patience.set(options::get().patience);
        }
    }

    /// Marks its thread as asleep, and how, and stops counting it. False if there is something to
    /// do after all.
    fn falls_asleep(&self, how: u32) -> bool {
        let asleep = &self.shared.asleep;
        asleep.store(how, Ordering::Relaxed);
        // With the fences in `post` and `polling`: either this thread sees the posted component, or
        // sees that no thread waits for the outside; or the other thread sees that it sleeps.
        fence(Ordering::SeqCst);
        let has_come = !self.shared.inbox.load(Ordering::Relaxed).is_null();
        if has_come || self.runtime().is_over() || how == AT_ITS_WORD && polling::is_open() {
            if asleep.swap(0, Ordering::Relaxed) == 0 {
                // The poster counted this thread in, which had not left yet.
                idle::leave();
            }
            return false;
        }
        idle::leave();
        true
    }

    /// Polls the inbox for as long as a wake-up would take. True if something came.
    fn look_out(&'static self) -> bool {
        // A model has no patience.
        if cfg!(loom) || all().len() == 1 || Mechanism::Spin.is_off() {
            return false;
        }
        let patience = self.mine.patience.get();
        let start = Instant::now();
        loop {
            for _ in 0..16 {
                if self.empty_inbox() || self.look_through(false) {
                    self.mine.patience.set(options::get().patience);
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() >= patience {
                self.mine.patience.set((patience / 2).max(LEAST_PATIENCE));
                return false;
            }
        }
    }

    // ---- any thread ---------------------------------------------------------------------------

    /// Puts a component into the inbox and wakes the worker if it sleeps.
    ///
    /// # Safety
    /// As for [`ready`].
    unsafe fn post(&'static self, component: *mut Component) {
        if let Some(own) = own_worker() {
            own.count_post();
        }
        if recording::is_on() {
            // SAFETY: as the caller promises, it is in no queue.
            unsafe { recording::ready(component) };
        }
        let inbox = &self.shared.inbox;
        let mut last = inbox.load(Ordering::Relaxed);
        loop {
            // SAFETY: in no queue, so the link is the caller's.
            unsafe { (*component).next = last };
            // Release: the component's results go with it.
            match inbox.compare_exchange_weak(last, component, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => last = now,
            }
        }
        if !self.shared.started.load(Ordering::Relaxed)
            && !self.shared.started.swap(true, Ordering::Relaxed)
        {
            self.start();
            return;
        }
        fence(Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Counted in before it can run: the count must not reach zero in between.
        idle::enter_woken();
        let was = self.shared.asleep.swap(0, Ordering::Release);
        if was != 0 {
            polling::rouse(self, was);
            threads::notice();
        } else {
            // Another thread woke it. The caller is counted, so this is not the last one.
            idle::leave();
        }
    }

    fn start(&'static self) {
        if let Err(error) = threads::start(self) {
            exits::unfit(&format!(
                "could not start the thread of worker {} ({error}); use fewer workers (--workers), \
                 or raise the limit (ulimit -u)",
                self.shared.index,
            ));
        }
    }
}
