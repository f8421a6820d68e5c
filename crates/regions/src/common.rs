//! State that all processors of some regions share: counts, thresholds, waits, failures.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::waits::Waits;

/// Locks, also if a thread panicked with the lock: nothing here is left half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A count whose growth asks for a collection.
pub(crate) struct Threshold {
    now: AtomicUsize,
    limit: AtomicUsize,
    least: usize,
}

/// The limit after a collection, by what was left: the collector's work stays proportional to what
/// is made, as each collection is paid for by as much growth as there was alive.
const GROWTH: usize = 2;

impl Threshold {
    pub(crate) fn new(least: usize) -> Threshold {
        Threshold {
            now: AtomicUsize::new(0),
            limit: AtomicUsize::new(least),
            least,
        }
    }

    /// Adds, and tells whether the limit is reached. Relaxed: these are counts, and order nothing.
    pub(crate) fn add(&self, more: usize) -> bool {
        let now = self.now.fetch_add(more, Ordering::Relaxed) + more;
        now >= self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn sub(&self, less: usize) {
        self.now.fetch_sub(less, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// Sets the limit by what is there now, after a collection.
    pub(crate) fn follow(&self) {
        let limit = self.now().saturating_mul(GROWTH).max(self.least);
        self.limit.store(limit, Ordering::Relaxed);
    }
}

/// A bell for one listener.
#[derive(Default)]
struct Bell {
    is_rung: AtomicBool,
    is_closed: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

/// State of all processors of some regions.
pub(crate) struct Common {
    pub(crate) processors: Threshold,
    pub(crate) bytes: Threshold,
    pub(crate) waits: Waits,
    /// Processors that have a logged call or apply one.
    active: AtomicUsize,
    resting: Mutex<Vec<Waker>>,
    bell: Bell,
    /// Messages of commands that panicked.
    failures: Mutex<Vec<String>>,
}

impl Common {
    pub(crate) fn new(processors: usize, bytes: usize) -> Common {
        Common {
            processors: Threshold::new(processors),
            bytes: Threshold::new(bytes),
            waits: Waits::default(),
            active: AtomicUsize::new(0),
            resting: Mutex::default(),
            bell: Bell::default(),
            failures: Mutex::default(),
        }
    }

    /// A processor has a first call to apply.
    pub(crate) fn begin_active(&self) {
        self.active.fetch_add(1, Ordering::SeqCst);
    }

    /// A processor has applied all.
    pub(crate) fn end_active(&self) {
        // SeqCst, with `poll_rest`: either this sees the waker there, or that sees the zero.
        if self.active.fetch_sub(1, Ordering::SeqCst) == 1 {
            let wakers = std::mem::take(&mut *lock(&self.resting));
            for waker in wakers {
                // A panic of another's waker is not the processor's.
                let _ = caught(|| waker.wake());
            }
        }
    }

    pub(crate) fn poll_rest(&self, context: &Context<'_>) -> Poll<()> {
        if self.active.load(Ordering::SeqCst) == 0 {
            return Poll::Ready(());
        }
        // Code of the program's: not under the lock.
        let waker = context.waker().clone();
        lock(&self.resting).push(waker);
        match self.active.load(Ordering::SeqCst) {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// Asks for a collection.
    pub(crate) fn ring(&self) {
        if !self.bell.is_rung.swap(true, Ordering::SeqCst) {
            self.wake_listener();
        }
    }

    /// Lets the listener end.
    pub(crate) fn close_bell(&self) {
        self.bell.is_closed.store(true, Ordering::SeqCst);
        self.wake_listener();
    }

    fn wake_listener(&self) {
        let waker = lock(&self.bell.listener).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for the bell: true if it rang, false if it is closed.
    pub(crate) fn poll_bell(&self, context: &Context<'_>) -> Poll<bool> {
        *lock(&self.bell.listener) = Some(context.waker().clone());
        if self.bell.is_closed.load(Ordering::SeqCst) {
            return Poll::Ready(false);
        }
        match self.bell.is_rung.swap(false, Ordering::SeqCst) {
            true => Poll::Ready(true),
            false => Poll::Pending,
        }
    }

    pub(crate) fn fail(&self, message: String) {
        lock(&self.failures).push(message);
    }

    pub(crate) fn take_failures(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.failures))
    }
}

thread_local! {
    /// The processor whose call this thread runs.
    static CURRENT: Cell<Option<u32>> = const { Cell::new(None) };
    /// The collector runs code of objects on this thread.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The processor whose call the calling thread runs.
pub(crate) fn current() -> Option<u32> {
    CURRENT.try_with(Cell::get).unwrap_or(None)
}

/// Runs code as part of a processor's call.
pub(crate) fn as_processor<R>(id: u32, run: impl FnOnce() -> R) -> R {
    struct Back(Option<u32>);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _back = Back(CURRENT.replace(Some(id)));
    run()
}

/// True in a finaliser that the collector runs, and while it traces.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.try_with(Cell::get).unwrap_or(false)
}

/// Runs code of objects for the collector: it may not call, create or collect. Gives a panic's
/// message.
pub(crate) fn quietly<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            IS_QUIET.set(self.0);
        }
    }
    let _back = Back(IS_QUIET.replace(true));
    caught(run)
}

/// Runs code of the program's; gives a panic's message.
pub(crate) fn caught<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(message)
}

fn message(panic: Box<dyn Any + Send>) -> String {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "without a message".to_owned(),
    };
    // The payload may panic when it is dropped, and so may the payload of that panic.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
    text
}
