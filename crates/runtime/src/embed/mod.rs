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
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use crate::exchange::carrier::see_to_outside;
use crate::exchange::{self, timers};
use crate::ground::options::{self, Options, WORKERS_MAX};
use crate::ground::output;
use crate::ground::sync::lock_std as lock;
use crate::hooks::{self, After, Hooks};
use crate::outside::idle::Visit;
use crate::placer::{self, initial};
use crate::report;
use crate::seats::{exceptions, registry};

mod bell;
mod codec;
mod errands;
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

pub use crate::ground::options::Servers;
pub use codec::{Fields, Portable, Record};
pub use foreign::{Foreign, ForeignType, Port, PortRefused, Program, find};
pub use half::{ConnectRefused, Half, connect};
pub use life::{End, Handle, Plan, is_inside, set_core, spawn};
pub use operation::{Receive, ReceiveRefused, Send, SendRefused};
pub use placing::{
    Event, Happened, Move, PlaceRefused, Placement, Places, Station, Why, listen, missing, stations,
};
pub use select::{Arms, Of2, Of3, Of4, Of5, Of6, Select, Slice};

/// What carries components, how many of it, and where it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// One a core if not given.
    pub workers: Option<usize>,
    /// A kernel thread for each component instead of workers.
    pub threads: bool,
    /// What choices among several partners follow from.
    pub seed: Option<u64>,
    pub placement: Placement,
    pub servers: Servers,
    /// Where components begin that it names; with [`Placement::Os`] they stay there.
    pub plan: Option<Places>,
    /// The machine's profile as JSON, for [`Placement::Talk`].
    pub machine: Option<String>,
}

/// Why the runtime did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartRefused {
    /// It runs already, with other settings.
    Differs,
    /// So many workers there cannot be.
    Workers { asked: usize, most: usize },
    /// Components cannot be placed so.
    Place(PlaceRefused),
}

/// Has the runtime be part of this program.
pub fn start(settings: &Settings) -> Result<(), StartRefused> {
    if let Some(asked) = settings.workers
        && !(1..=WORKERS_MAX).contains(&asked)
    {
        let most = WORKERS_MAX;
        return Err(StartRefused::Workers { asked, most });
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
        is_embedded: true,
        ..options::DEFAULTS
    };
    hooks::install(&HOOKS);
    match *options::set_first(wanted.clone()) == wanted {
        true => {
            placing::keep_names(settings);
            Ok(())
        }
        false => Err(StartRefused::Differs),
    }
}

/// What became of all components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They have ended.
    Ended,
    /// Those that are left are blocked, and nothing outside can wake one. The report says who waits
    /// where, and for whom.
    Deadlock(String),
}

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
struct Verdict(Vec<Waker>);

impl Verdict {
    /// Not while it is decided: who is woken may enter.
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

/// Nothing runs: what that means for those who want to know.
fn judge(can_go_on: bool) -> Verdict {
    let is_asked = with_watchers(|all| all.values().any(|watcher| watcher.verdict.is_none()));
    let verdict = match (is_asked, registry::users(), can_go_on) {
        (true, 0, _) => Rest::Ended,
        (true, _, false) => Rest::Deadlock(report::of_all().trim_end().to_owned()),
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
pub fn rest() -> AtRest {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    AtRest {
        // A number needs no order.
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        is_registered: false,
    }
}

/// The future of [`rest`].
pub struct AtRest {
    number: u64,
    is_registered: bool,
}

impl Future for AtRest {
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

impl Drop for AtRest {
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
type Observer = Box<dyn FnOnce(Result<(), String>) + std::marker::Send>;

#[derive(Default)]
struct Ends {
    observers: HashMap<u64, Observer>,
    /// How components ended that have not quite ended yet.
    failed: HashMap<u64, String>,
    /// Of those whom nobody observes.
    unobserved: Vec<String>,
}

static ENDS: Mutex<Option<Ends>> = Mutex::new(None);

/// What the exchange calls.
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
    see_to_outside,
    fire_due: || timers::fire_due(timers::now()),
};

/// Nothing runs: tells who asked, unless something outside can change that.
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

/// An exception that nobody caught ends a component.
fn note_failure(id: u64, message: String) {
    let mut ends = lock(&ENDS);
    let ends = ends.get_or_insert_default();
    if ends.observers.contains_key(&id) {
        ends.failed.insert(id, message);
    } else {
        ends.unobserved.push(message);
    }
}

/// A component ends.
fn note_end(id: u64) {
    placing::forget_moves(id);
    let (observer, failure) = {
        let mut ends = lock(&ENDS);
        let ends = ends.get_or_insert_default();
        (ends.observers.remove(&id), ends.failed.remove(&id))
    };
    if let Some(observer) = observer {
        life::call_outside(|| observer(failure.map_or(Ok(()), Err)));
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
