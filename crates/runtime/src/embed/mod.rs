//! The runtime within a program written in Rust: the unsafe half of the crate `hearth`.
//!
//! Here a component is a future ([`life`]), polled from its `resume`. The component that first uses
//! a half-channel ([`Half`]) makes it, so that half-channels of one worker meet lightly there.
//! Operations are futures that call the runtime once and look at the component's results when it is
//! resumed. A value being sent is in the component meanwhile, and not in the future, so that
//! dropping or forgetting a future takes nothing away from others.
//!
//! The runtime then neither prints nor ends the process: the program asks for its reports
//! ([`rest`], [`Handle`], [`failures`]).

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::abi::Component;
use crate::exchange::carrier::see_to_outside;
use crate::exchange::{self, carrier, component, timers};
use crate::ground::options::{self, Carrying, RuntimeOptions, WORKERS_MAX};
use crate::ground::runtime::{Part, Runtime as Inner, current, enter};
use crate::ground::sync::lock_std as lock;
use crate::ground::{self, exits, output};
use crate::hooks::{self, After, Hooks};
use crate::outside::idle::Visit;
use crate::placer::{self, initial};
use crate::report;
use crate::seats::{exceptions, registry};

mod bell;
mod codec;
mod errands;
mod error;
mod foreign;
mod half;
mod life;
mod operation;
mod placement;
mod placing;
mod queue;
mod select;
mod site;
mod slot;
#[cfg(test)]
mod tests;

pub use crate::ground::options::Servers;
pub use codec::{Fields, Portable, Record};
pub use error::{
    ConnectError, Deadlock, EnvironmentError, InUse, JoinError, NoServices, NoSuchComponent,
    NoSuchPort, PlacementError, ReceiveError, SendError, StartError, TryReceiveError,
    UncaughtException,
};
pub use foreign::{Foreign, ForeignType, Port, Program, find};
pub use half::{Half, connect};
pub use life::{ComponentSettings, End, Handle, is_inside, spawn};
pub use operation::{Receive, Send};
pub use placement::Placement;
pub use placing::{
    ComponentPlacement, Move, MoveReason, PlacementChange, PlacementEvent, listen, missing,
    placements, set_core,
};
pub use select::{Arms, Either, Either3, Either4, Either5, Either6, Select, Slice};

/// The threads that run components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Workers that share the components, one a core if their number is not given.
    #[default]
    Workers,
    /// A kernel thread for each component, whose calls may block.
    Threads,
}

/// The settings of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// One a core if not given.
    pub workers: Option<usize>,
    pub carrier: Carrier,
    /// Decides choices among several partners.
    pub seed: Option<u64>,
    pub placement: Placement,
    pub servers: Servers,
    /// The CPUs on which components begin, by their names: `Worker` is the first of that name, as
    /// `Worker#1` is, and `Worker#3` the third. A later entry overrides an earlier one. With
    /// [`Placement::WithCreator`] components stay there.
    pub plan: Option<Vec<(String, u32)>>,
    /// The machine's profile as JSON, for [`Placement::Talk`].
    pub machine: Option<String>,
    /// Settings that only the environment has.
    base: RuntimeOptions,
}

impl Settings {
    /// The settings in the variables `HEARTH_*` of the environment.
    pub fn from_environment() -> Result<Settings, EnvironmentError> {
        let read = options::from_environment().map_err(|message| EnvironmentError { message })?;
        Ok(Settings {
            workers: read.workers,
            carrier: match read.carrying {
                Carrying::Workers => Carrier::Workers,
                Carrying::Threads => Carrier::Threads,
            },
            seed: read.seed,
            placement: placing::placement(read.policy),
            servers: read.servers,
            plan: read.plan.map(|plan| plan.entries()),
            machine: None,
            base: RuntimeOptions {
                heaps_move: read.heaps_move,
                slice: read.slice,
                patience: read.patience,
                machine_file: read.machine_file,
                tuning_file: read.tuning_file,
                place_log: read.place_log,
                ..options::DEFAULTS
            },
        })
    }
}

/// Starts a runtime within this program.
pub fn start(settings: &Settings) -> Result<Runtime, StartError> {
    if let Some(asked) = settings.workers
        && !(1..=WORKERS_MAX).contains(&asked)
    {
        let most = WORKERS_MAX;
        return Err(StartError::Workers { asked, most });
    }
    placing::check(settings)?;
    let options = RuntimeOptions {
        seed: settings.seed,
        policy: placing::policy(settings),
        plan: placing::plan(settings),
        machine: settings.machine.clone(),
        carrying: placing::carrying(settings),
        servers: settings.servers,
        workers: settings.workers,
        is_embedded: true,
        ..settings.base.clone()
    };
    let runtime = ground::runtime::Runtime::new(Some(options));
    let _inside = enter(&runtime);
    hooks::install(&HOOKS);
    placing::keep_names(settings);
    Ok(Runtime(Arc::new(Owner(runtime.clone()))))
}

/// A runtime of the program. Dropping the last handle asks its components to stop; when they have,
/// its threads end.
#[derive(Clone)]
pub struct Runtime(Arc<Owner>);

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    pub(crate) fn inner(&self) -> &Inner {
        &self.0.0
    }

    fn shared(&self) -> &Arc<Inner> {
        &self.0.0
    }
}

/// The handle that ends the runtime when it is dropped.
struct Owner(Arc<Inner>);

impl Drop for Owner {
    fn drop(&mut self) {
        let runtime = Arc::clone(&self.0);
        let is_own = std::ptr::eq(current(), &raw const *runtime);
        if !is_own {
            return end(&runtime);
        }
        // One of its own threads cannot wait for itself.
        let ending = std::thread::Builder::new().name("ending".to_owned());
        if let Err(error) = ending.spawn(move || end(&runtime)) {
            exits::unfit(&format!(
                "could not start the thread that ends a runtime ({error}); raise ulimit -u"
            ));
        }
    }
}

/// Stops all components and waits until they have ended, then ends the threads and waits for those.
fn end(runtime: &Inner) {
    let _inside = enter(runtime);
    runtime.begin_end();
    {
        let _visit = Visit::begin();
        registry::for_each(component::stop);
    }
    registry::wait_until_empty();
    timers::clear();
    runtime.end_threads(|| {
        carrier::wake_all();
        placer::notice();
    });
}

/// The end of all components, or a deadlock of the remaining ones.
type Rest = Result<(), Deadlock>;

struct Watcher {
    /// Taken with the verdict.
    waker: Option<Waker>,
    verdict: Option<Rest>,
}

static WATCHERS: Part<Mutex<Option<HashMap<u64, Watcher>>>> = Part::new(Mutex::default);

fn with_watchers<R>(action: impl FnOnce(&mut HashMap<u64, Watcher>) -> R) -> R {
    action(lock(&WATCHERS).get_or_insert_default())
}

/// Wakers to wake with a verdict.
#[must_use]
struct DeferredWakers(Vec<Waker>);

impl DeferredWakers {
    /// Wakes them, not during the decision: a woken thread may enter.
    fn tell(self) {
        if !self.0.is_empty() {
            crate::exchange::carrier::as_stranger(|| {
                for waker in self.0 {
                    life::call_outside(|| waker.wake());
                }
            });
        }
    }
}

/// Decides the verdict, as nothing runs.
fn judge(can_go_on: bool) -> DeferredWakers {
    let is_asked = with_watchers(|all| all.values().any(|watcher| watcher.verdict.is_none()));
    let verdict = match (is_asked, registry::users(), can_go_on) {
        (true, 0, _) => Ok(()),
        (true, _, false) => Err(Deadlock {
            report: report::of_all().trim_end().to_owned(),
        }),
        _ => return DeferredWakers(Vec::new()),
    };
    with_watchers(|all| {
        let open = all
            .values_mut()
            .filter(|watcher| watcher.verdict.is_none())
            .filter_map(|watcher| {
                watcher.verdict = Some(verdict.clone());
                watcher.waker.take()
            });
        DeferredWakers(open.collect())
    })
}

/// Waits until no component can do anything any more.
pub fn rest(runtime: &Runtime) -> Wait {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Wait {
        runtime: runtime.clone(),
        // A number needs no order.
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        is_registered: false,
    }
}

/// A future that waits for the end of all components.
pub struct Wait {
    runtime: Runtime,
    number: u64,
    is_registered: bool,
}

impl Future for Wait {
    type Output = Rest;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Rest> {
        let runtime = self.runtime.clone();
        let _inside = enter(runtime.inner());
        for _ in 0..2 {
            // User code clones and drops a waker: not under the lock.
            let waker = context.waker().clone();
            let (verdict, _former) = with_watchers(|all| {
                let watcher = all.entry(self.number).or_insert_with(|| Watcher {
                    waker: None,
                    verdict: None,
                });
                (watcher.verdict.clone(), watcher.waker.replace(waker))
            });
            if let Some(verdict) = verdict {
                return Poll::Ready(verdict);
            }
            if std::mem::replace(&mut self.is_registered, true) {
                break;
            }
            // If nothing runs now, no other thread would decide.
            drop(Visit::begin());
        }
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let _inside = enter(self.runtime.inner());
        with_watchers(|all| all.remove(&self.number));
    }
}

/// Begins a visit, which a thread of the embedding program holds while it touches this component:
/// no verdict about rest is reached meanwhile. The caller has it counted, which keeps its runtime.
pub(crate) fn visit(component: *mut Component) -> Visit {
    Visit::begin_in(carrier::runtime_of(component))
}

/// A callback for a compiled component's ending.
type Observer = Box<dyn FnOnce(Result<(), UncaughtException>) + std::marker::Send>;

#[derive(Default)]
struct Ends {
    observers: HashMap<u64, Observer>,
    /// Endings of components that are still ending.
    failed: HashMap<u64, String>,
    /// Messages of components without an observer.
    unobserved: Vec<String>,
}

static ENDS: Part<Mutex<Option<Ends>>> = Part::new(Mutex::default);

/// The functions that the exchange calls.
static HOOKS: Hooks = Hooks {
    choose: |request, of, identity| {
        placing::note_planned(of, identity);
        initial::choose(request, of, identity)
    },
    starts: placer::start,
    has_samples: placer::notice,
    moved: placing::note_move,
    ended: note_end,
    // SAFETY: its carrier still has the component.
    failed: |seat| note_failure(seat.id, unsafe { exceptions::uncaught_message(seat) }),
    all_stopped: || {},
    at_rest,
    serves: placer::tell_of_server,
    grown: || {},
    looks_around: || {},
    see_to_outside,
    fire_due: || timers::fire_due(timers::now()),
};

/// Nothing runs: wakes those that asked, unless something outside can change that.
fn at_rest(is_still: &dyn Fn() -> bool) -> After {
    output::flush();
    let can_go_on = exchange::can_go_on();
    if !is_still() {
        return None;
    }
    let verdict = judge(can_go_on);
    let is_any = !verdict.0.is_empty();
    is_any.then(|| -> Box<dyn FnOnce()> { Box::new(|| verdict.tell()) })
}

/// Records that an uncaught exception ends a component.
fn note_failure(id: u64, message: String) {
    let mut ends = lock(&ENDS);
    let ends = ends.get_or_insert_default();
    if ends.observers.contains_key(&id) {
        ends.failed.insert(id, message);
    } else {
        ends.unobserved.push(message);
    }
}

/// Records that a component ends.
fn note_end(id: u64) {
    placing::forget_moves(id);
    let (observer, failure) = {
        let mut ends = lock(&ENDS);
        let ends = ends.get_or_insert_default();
        (ends.observers.remove(&id), ends.failed.remove(&id))
    };
    if let Some(observer) = observer {
        life::call_outside(|| {
            observer(failure.map_or(Ok(()), |message| Err(UncaughtException { message })));
        });
    }
}

fn observe(id: u64, observer: Observer) {
    lock(&ENDS)
        .get_or_insert_default()
        .observers
        .insert(id, observer);
}

/// Takes the messages of compiled components that ended by an exception without an observer.
pub fn failures(runtime: &Runtime) -> Vec<String> {
    let _inside = enter(runtime.inner());
    std::mem::take(&mut lock(&ENDS).get_or_insert_default().unobserved)
}
