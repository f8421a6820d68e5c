//! The runtime within a program written in Rust: the unsafe half of the crate `hearth`.
//!
//! Here a component is a future ([`life`]), polled from its `resume`. Half-channels ([`Half`]) come
//! into being in the component that first uses them, so that those of one worker meet there lightly.
//! Operations are futures that call the runtime once and look at the component's results when it is
//! resumed. What they send is in the component meanwhile, and not in the future, so that a future
//! that is dropped or forgotten takes nothing away from anybody.
//!
//! The runtime then neither prints nor ends the process: what it would say is given to whoever asks
//! ([`rest`], [`Handle`], [`failures`]).

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use crate::idle::Visit;
use crate::options::{self, Carrying, Options, WORKERS_MAX};
use crate::sync::lock_std as lock;
use crate::{registry, report};

mod bell;
pub(crate) mod calls;
mod codec;
mod errands;
mod error;
mod foreign;
mod half;
mod life;
mod operation;
mod placing;
mod queue;
mod select;
mod site;
mod slot;
#[cfg(test)]
mod tests;

pub use crate::options::Servers;
pub use codec::{Fields, Portable, Record};
pub use error::{
    ConnectError, Deadlock, EnvironmentError, InUse, JoinError, NoSuchComponent, NoSuchPort,
    PlacementError, ReceiveError, SendError, StartError, TryReceiveError, UncaughtException,
};
pub use foreign::{Foreign, ForeignType, Port, Program, find};
pub use half::{Half, connect};
pub use life::{ComponentSettings, End, Handle, is_inside, set_core, spawn};
pub use operation::{Receive, Send};
pub use placing::{
    ComponentPlacement, Move, MoveReason, Placement, PlacementChange, PlacementEvent, listen,
    missing, placements,
};
pub(crate) use placing::{note_move, note_planned};
pub use select::{Arms, Either, Either3, Either4, Either5, Either6, Select, Slice};

/// The threads that run components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Workers, one a core if their number is not given, which share the components.
    #[default]
    Workers,
    /// A kernel thread for each component, which may make calls that block.
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
    base: Options,
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
            base: Options {
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

static ON: AtomicBool = AtomicBool::new(false);

/// Is the runtime part of another program?
pub(crate) fn is_on() -> bool {
    // Relaxed: set before the first component is made.
    ON.load(Ordering::Relaxed)
}

/// Has the runtime be part of this program.
pub fn start(settings: &Settings) -> Result<(), StartError> {
    if let Some(asked) = settings.workers
        && !(1..=WORKERS_MAX).contains(&asked)
    {
        let most = WORKERS_MAX;
        return Err(StartError::Workers { asked, most });
    }
    placing::check(settings)?;
    let wanted = Options {
        seed: settings.seed,
        policy: placing::policy(settings),
        plan: placing::plan(settings),
        machine: settings.machine.clone(),
        carrying: placing::carrying(settings),
        servers: settings.servers,
        workers: settings.workers,
        ..settings.base.clone()
    };
    ON.store(true, Ordering::Relaxed);
    match *options::set_first(wanted.clone()) == wanted {
        true => {
            placing::keep_names(settings);
            Ok(())
        }
        false => Err(StartError::AlreadyStarted),
    }
}

/// The end of all components, or a deadlock of the remaining ones.
type Rest = Result<(), Deadlock>;

struct Watcher {
    /// Taken with the verdict.
    waker: Option<Waker>,
    verdict: Option<Rest>,
}

static WATCHERS: Mutex<Option<HashMap<u64, Watcher>>> = Mutex::new(None);

fn with_watchers<R>(action: impl FnOnce(&mut HashMap<u64, Watcher>) -> R) -> R {
    action(lock(&WATCHERS).get_or_insert_default())
}

/// Those to tell of a verdict.
#[must_use]
pub(crate) struct Verdict(Vec<Waker>);

impl Verdict {
    /// Not while it is decided: who is woken may enter.
    pub(crate) fn tell(self) {
        if !self.0.is_empty() {
            crate::carrier::as_stranger(|| {
                for waker in self.0 {
                    life::call_outside(|| waker.wake());
                }
            });
        }
    }
}

/// Nothing runs: what that means for those who want to know.
pub(crate) fn judge(can_go_on: bool) -> Verdict {
    let is_asked = with_watchers(|all| all.values().any(|watcher| watcher.verdict.is_none()));
    let verdict = match (is_asked, registry::users(), can_go_on) {
        (true, 0, _) => Ok(()),
        (true, _, false) => Err(Deadlock {
            report: report::of_all().trim_end().to_owned(),
        }),
        _ => return Verdict(Vec::new()),
    };
    with_watchers(|all| {
        let open = all
            .values_mut()
            .filter(|watcher| watcher.verdict.is_none())
            .filter_map(|watcher| {
                watcher.verdict = Some(verdict.clone());
                watcher.waker.take()
            });
        Verdict(open.collect())
    })
}

/// Waits until no component can do anything any more.
pub fn rest() -> Wait {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Wait {
        // A number needs no order.
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        is_registered: false,
    }
}

/// The future of the end of all components.
pub struct Wait {
    number: u64,
    is_registered: bool,
}

impl Future for Wait {
    type Output = Rest;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Rest> {
        for _ in 0..2 {
            // A waker is cloned and dropped by code of the program's: not under the lock.
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
            // If nothing runs now, nobody else would decide.
            drop(visit());
        }
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        with_watchers(|all| all.remove(&self.number));
    }
}

/// Held by a thread of the embedding program while it touches components: nothing is decided about
/// rest meanwhile.
pub(crate) fn visit() -> Visit {
    Visit::begin()
}

/// Who wants to know how a compiled component ends.
type Observer = Box<dyn FnOnce(Result<(), UncaughtException>) + std::marker::Send>;

#[derive(Default)]
struct Ends {
    observers: HashMap<u64, Observer>,
    /// How components ended that have not quite ended yet.
    failed: HashMap<u64, String>,
    /// Of those whom nobody observes.
    unobserved: Vec<String>,
}

static ENDS: Mutex<Option<Ends>> = Mutex::new(None);

/// An exception that nobody caught ends a component.
pub(crate) fn note_failure(id: u64, message: String) {
    let mut ends = lock(&ENDS);
    let ends = ends.get_or_insert_default();
    if ends.observers.contains_key(&id) {
        ends.failed.insert(id, message);
    } else {
        ends.unobserved.push(message);
    }
}

/// A component ends.
pub(crate) fn note_end(id: u64) {
    if !is_on() {
        return;
    }
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

/// Takes what has been said of compiled components that ended by an exception and whose end nobody
/// waits for.
pub fn failures() -> Vec<String> {
    std::mem::take(&mut lock(&ENDS).get_or_insert_default().unobserved)
}
