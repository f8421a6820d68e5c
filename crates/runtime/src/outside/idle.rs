//! Detects that nothing runs any more.
//!
//! `COUNT` counts the carriers that are not asleep, and threads that are about to wake one from
//! outside. Invariant: it is at least the number of threads that may still change anything. A waker
//! counts a sleeper in before the sleeper can run, and is itself counted; so once the count is
//! zero, it stays zero until something outside the program enters.

#[cfg(not(loom))]
use crate::ground::runtime::Part;
use crate::ground::runtime::{self, Inside, Runtime};
use crate::ground::sync::{AtomicUsize, Mutex, Ordering, lock};
use crate::hooks::{self, simulation};

/// The number running, and `VERDICT` while the runtime decides whether the program can continue.
struct Count {
    active: AtomicUsize,
    /// Held during that decision. Threads that enter from outside wait for the verdict.
    deciding: Mutex<()>,
}

const VERDICT: usize = 1 << (usize::BITS - 1);

#[cfg(not(loom))]
static COUNT: Part<Count> = Part::new(|| Count {
    active: AtomicUsize::new(0),
    deciding: Mutex::new(()),
});
#[cfg(loom)]
loom::lazy_static! {
    static ref COUNT: Count = Count {
        active: AtomicUsize::new(0),
        deciding: Mutex::new(()),
    };
}

/// The number running, roughly.
#[cfg(not(loom))]
pub(crate) fn running() -> usize {
    COUNT.active.load(Ordering::Relaxed) & !VERDICT
}

/// Counts one more running: woken or started by the caller, which is counted.
pub(crate) fn enter_woken() {
    COUNT.active.fetch_add(1, Ordering::SeqCst);
}

/// Counts one fewer running: the caller sleeps or ends.
pub(crate) fn leave() {
    if COUNT.active.fetch_sub(1, Ordering::SeqCst) & !VERDICT == 1 {
        decide();
    }
}

/// Counts one more running, uninvited: something outside has come.
pub(crate) fn enter() {
    if COUNT.active.fetch_add(1, Ordering::SeqCst) & VERDICT != 0 {
        drop(lock(&COUNT.deciding));
    }
}

/// Counts one more running, if any runs: unlike [`enter`], it keeps a program that is about to end
/// from nothing.
pub(crate) fn enter_beside_others() -> bool {
    let runs = |count: usize| (1..VERDICT).contains(&count).then_some(count + 1);
    let seen = COUNT
        .active
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, runs);
    seen.is_ok()
}

/// An outside thread's visit while it completes waits.
pub(crate) struct Visit {
    _inside: Inside,
}

impl Visit {
    /// Enters the current runtime.
    pub(crate) fn begin() -> Visit {
        Visit::begin_in(runtime::current())
    }

    /// Enters this runtime, to which the caller holds a handle meanwhile.
    pub(crate) fn begin_in(runtime: &Runtime) -> Visit {
        let inside = runtime::enter(runtime);
        if simulation::is_on() {
            simulation::enter(None);
        } else {
            enter();
        }
        Visit { _inside: inside }
    }

    /// Enters the current runtime; None if a simulation does not admit the caller in time.
    pub(crate) fn begin_within(patience: std::time::Duration) -> Option<Visit> {
        if !simulation::is_on() {
            return Some(Visit::begin());
        }
        let inside = runtime::enter(runtime::current());
        simulation::enter(Some(patience)).then_some(Visit { _inside: inside })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if simulation::is_on() {
            simulation::leave();
            return;
        }
        leave();
    }
}

/// Keeps visitors waiting while it lives.
struct Deciding;

impl Deciding {
    /// Begins to decide; None if something runs again.
    fn begin() -> Option<Deciding> {
        let begun = COUNT
            .active
            .compare_exchange(0, VERDICT, Ordering::SeqCst, Ordering::SeqCst);
        begun.ok().map(|_| Deciding)
    }

    /// Tells whether nobody has entered since. Those who did decide again when they leave.
    fn is_quiet(&self) -> bool {
        COUNT.active.load(Ordering::SeqCst) == VERDICT
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        COUNT.active.fetch_sub(VERDICT, Ordering::SeqCst);
    }
}

/// Nothing runs: asks the assembler of the runtime whether anything outside can change that.
#[cold]
fn decide() {
    let lock = lock(&COUNT.deciding);
    let Some(deciding) = Deciding::begin() else {
        return;
    };
    let after = (hooks::get().at_rest)(&|| deciding.is_quiet());
    drop(deciding);
    drop(lock);
    if let Some(after) = after {
        after();
    }
}
