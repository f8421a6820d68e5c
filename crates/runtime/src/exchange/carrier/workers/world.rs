//! The workers of the model checker, and a model's operations on them: its threads are the runners.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};

use super::Worker;
use super::runner::{Runner, detach};
use crate::abi::{Component, Step};
use crate::exchange::channel::{Channel, hub};
use crate::ground::runtime::Runtime;
use crate::ground::sync::{Ordering, Word, lock_std as lock};
use crate::hooks::{self, Hooks};
use crate::outside::idle;

const WORKERS: usize = 3;
/// One for each worker, and one to replace a detached one.
const RUNNERS: usize = WORKERS + 1;
pub(crate) const SPARE_RUNNER: usize = WORKERS;

/// The state of one run of a model.
struct World {
    workers: Vec<Worker>,
    stand_ins: Vec<Worker>,
    runners: Vec<Runner>,
    /// Components that have not ended.
    unfinished: AtomicUsize,
    /// The half-channels that move with the moving component.
    movers: std::sync::Mutex<Vec<Mover>>,
}

struct Mover(*const Channel);
// SAFETY: half-channels are shared between threads by design.
unsafe impl Send for Mover {}

loom::lazy_static! {
    static ref WORLD: World = World::new();
}

impl World {
    fn new() -> World {
        static HOOKS: Hooks = Hooks {
            at_rest: |_| {
                judge();
                None
            },
            ..hooks::NOTHING
        };
        hooks::install(&HOOKS);
        let make = |is_stand_in| {
            (0..WORKERS)
                .map(|index| Worker::new(index, None, is_stand_in))
                .collect::<Vec<_>>()
        };
        let world = World {
            workers: make(false),
            stand_ins: make(true),
            runners: (0..RUNNERS).map(|_| Runner::new()).collect(),
            unfinished: AtomicUsize::new(0),
            movers: std::sync::Mutex::default(),
        };
        for worker in &world.workers {
            worker.gate.store(worker.mark(), Ordering::Relaxed);
        }
        world
    }
}

pub(super) fn all() -> &'static [Worker] {
    &WORLD.workers
}

pub(super) fn stand_in(worker: &Worker) -> &'static Worker {
    &WORLD.stand_ins[worker.shared.index]
}

pub(crate) fn worker(index: usize) -> &'static Worker {
    &all()[index]
}

/// Counts a component that has ended.
pub(super) fn ended(_: Step) {
    WORLD.unfinished.fetch_sub(1, Plain::Relaxed);
}

/// Moves the half-channels of the moving component, which has arrived.
pub(super) fn share_movers(home: &'static Worker) {
    let movers = std::mem::take(&mut *lock(&WORLD.movers));
    for channel in movers {
        // SAFETY: models keep their half-channels. The caller is about to make their owner ready.
        unsafe {
            (*channel.0).move_home(home);
            hub::make_shared(&*channel.0);
        }
    }
}

/// Queues a component that is ready, before the workers start.
///
/// # Safety
/// Its home is a worker.
pub(crate) unsafe fn enlist(component: *mut Component) {
    WORLD.unfinished.fetch_add(1, Plain::Relaxed);
    // SAFETY: as the caller promises.
    unsafe { (*super::home_of(component)).push_soon(component) };
}

/// Marks a half-channel as moving with the model's one moving component.
pub(crate) fn moves(channel: &Channel) {
    lock(&WORLD.movers).push(Mover(channel));
}

/// Gives a worker its first runner, of the same number.
pub(crate) fn start(index: usize) {
    idle::enter_woken();
    WORLD.runners[index].take_turn(worker(index));
}

/// Runs a runner, until nothing runs any more.
pub(crate) fn live(index: usize) {
    let runner: &'static Runner = &WORLD.runners[index];
    runner.become_current();
    runner.live();
}

/// Acts as the monitor: the spare runner gets the worker, if a component runs there. The caller is
/// not counted.
pub(crate) fn interfere(index: usize) -> bool {
    let worker = worker(index);
    // SAFETY: runners live as long as the run.
    let Some(runner) = (unsafe { worker.shared.runner.load(Ordering::Relaxed).as_ref() }) else {
        return false;
    };
    let rounds = runner.rounds.load(Ordering::Relaxed);
    !worker.running.load(Ordering::Relaxed).is_null()
        && detach(worker, runner, rounds, &WORLD.runners[SPARE_RUNNER])
}

/// Checks, when nothing runs, that all components have ended.
fn judge() {
    let left = WORLD.unfinished.load(Plain::Relaxed);
    assert_eq!(left, 0, "nothing runs, but components have not ended");
    Runtime::say_over();
    for worker in all() {
        // SAFETY: workers live as long as the run.
        unsafe { Word::wake(&raw const worker.shared.asleep, 0) };
    }
    for runner in &WORLD.runners {
        // SAFETY: as above.
        unsafe { Word::wake(&raw const runner.turn, 1) };
    }
}
