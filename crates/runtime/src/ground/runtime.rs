//! One runtime, and the parts of it that the rooms keep.
//!
//! A process may hold several. Each room keeps its share of a runtime in a [`Part`], declared once
//! like a static and present once in each runtime. Code finds its runtime with [`current`]: a
//! runtime's own threads belong to it from their first instruction, and a thread from outside
//! belongs to it while inside ([`enter`]). Such a thread finds the runtime through a handle or a
//! component (component → home → worker → runtime).
//!
//! A thread that belongs to no other runtime belongs to the *process's own*, the runtime of a
//! compiled program, whose devices, signals and remote nodes are process-wide as well.
//!
//! A runtime ends in two steps. [`Runtime::end_threads`] ends its threads and waits for them. The
//! last handle frees its memory: wakers and half-channels may outlive its threads.

use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::options::RuntimeOptions;
use super::sync::lock_std as lock;

/// Most parts. The code has one for each `Part::new`.
const PARTS_MAX: usize = 64;

/// One runtime.
pub(crate) struct Runtime {
    pub(super) options: OnceLock<RuntimeOptions>,
    /// It is the process's own, which is never freed.
    is_permanent: bool,
    parts: [OnceLock<Erased>; PARTS_MAX],
    /// New components are stopped at once.
    is_stopping: AtomicBool,
    is_over: AtomicBool,
    /// Number of its threads.
    threads: Mutex<usize>,
    /// Signalled when a thread has ended or the runtime is over.
    changed: Condvar,
}

#[cfg(loom)]
loom::lazy_static! {
    /// Whether the run of a model is over. Several models run at the same time in one process.
    static ref OVER: AtomicBool = AtomicBool::new(false);
}

impl Runtime {
    /// Makes a runtime with these options; without any, the process's own, which gets them later.
    pub(crate) fn new(options: Option<RuntimeOptions>) -> Arc<Runtime> {
        Arc::new(Runtime {
            is_permanent: options.is_none(),
            options: options.map_or_else(OnceLock::new, OnceLock::from),
            parts: [const { OnceLock::new() }; PARTS_MAX],
            is_stopping: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            threads: Mutex::new(0),
            changed: Condvar::new(),
        })
    }

    /// Adds a handle, for [`release`](Runtime::release) to drop. The process's own needs none.
    pub(crate) fn retain(&self) {
        if !self.is_permanent {
            // SAFETY: every runtime is in an `Arc`, and this one has a handle.
            unsafe { Arc::increment_strong_count(self) };
        }
    }

    /// Drops a handle that [`retain`](Runtime::retain) added; the last one frees the runtime. Takes
    /// a pointer, as no reference may outlast that.
    ///
    /// # Safety
    /// There is such a handle, and the caller uses the runtime no more.
    pub(crate) unsafe fn release(runtime: *const Runtime) {
        // SAFETY: alive by that handle; every runtime is in an `Arc`.
        unsafe {
            if !(*runtime).is_permanent {
                Arc::decrement_strong_count(runtime);
            }
        }
    }

    /// Stops every component that starts from here on at once.
    pub(crate) fn begin_end(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Whether components that start are stopped at once.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Whether its threads must end. A thread about to sleep checks this after it has announced its
    /// sleep and passed a fence; `end_threads` passes the matching fence before it wakes sleepers.
    pub(crate) fn is_over(&self) -> bool {
        #[cfg(loom)]
        return OVER.load(Ordering::Relaxed);
        #[cfg(not(loom))]
        self.is_over.load(Ordering::Relaxed)
    }

    /// Ends all threads, which `wake` wakes, and waits until they have ended. None of its
    /// components may be running.
    pub(crate) fn end_threads(&self, wake: impl FnOnce()) {
        self.is_over.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        wake();
        let mut threads = lock(&self.threads);
        self.changed.notify_all();
        while *threads > 0 {
            threads = self
                .changed
                .wait(threads)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends a model's run.
    #[cfg(loom)]
    pub(crate) fn say_over() {
        OVER.store(true, Ordering::Relaxed);
    }

    /// Sleeps for `duration`. Returns false, early, if the runtime is over.
    pub(crate) fn pause(&self, duration: Duration) -> bool {
        let end = Instant::now() + duration;
        let mut threads = lock(&self.threads);
        while !self.is_over() {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return true;
            };
            threads = self
                .changed
                .wait_timeout(threads, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        false
    }
}

// ---- parts --------------------------------------------------------------------------------------

/// A part in its box.
struct Erased {
    value: *mut (),
    drop: unsafe fn(*mut ()),
}

// SAFETY: parts are `Send` and `Sync`, as `Part` asks.
unsafe impl Send for Erased {}
// SAFETY: as above.
unsafe impl Sync for Erased {}

impl Erased {
    fn new<T: Send + Sync>(value: T) -> Erased {
        unsafe fn drop_box<T>(value: *mut ()) {
            // SAFETY: the pointer comes from the box below.
            drop(unsafe { Box::from_raw(value.cast::<T>()) });
        }
        Erased {
            value: Box::into_raw(Box::new(value)).cast(),
            drop: drop_box::<T>,
        }
    }
}

impl Drop for Erased {
    fn drop(&mut self) {
        // SAFETY: `drop` was made for this value, and is called once.
        unsafe { (self.drop)(self.value) };
    }
}

/// A room's share of a runtime, made on first use. Dereferences to the value in the [`current`]
/// runtime.
pub(crate) struct Part<T: 'static> {
    /// 1 + its place; 0 until first used.
    place: AtomicUsize,
    make: fn() -> T,
}

impl<T: Send + Sync> Part<T> {
    pub(crate) const fn new(make: fn() -> T) -> Part<T> {
        Part {
            place: AtomicUsize::new(0),
            make,
        }
    }

    /// The value in `runtime`.
    pub(crate) fn of<'a>(&self, runtime: &'a Runtime) -> &'a T {
        let place = match self.place.load(Ordering::Relaxed) {
            0 => self.get_place(),
            place => place,
        };
        let part = runtime.parts[place - 1].get_or_init(|| Erased::new((self.make)()));
        // SAFETY: the place is this part's, so the value there has its type.
        unsafe { &*part.value.cast::<T>() }
    }

    #[cold]
    fn get_place(&self) -> usize {
        static TAKEN: Mutex<usize> = Mutex::new(0);
        let mut taken = lock(&TAKEN);
        if self.place.load(Ordering::Relaxed) == 0 {
            *taken += 1;
            assert!(*taken <= PARTS_MAX, "more parts than PARTS_MAX");
            self.place.store(*taken, Ordering::Relaxed);
        }
        self.place.load(Ordering::Relaxed)
    }
}

impl<T: Send + Sync> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.of(current())
    }
}

// ---- which one ----------------------------------------------------------------------------------

thread_local! {
    /// The runtime of the calling thread; null: the process's own.
    static CURRENT: Cell<*const Runtime> = const { Cell::new(ptr::null()) };
}

/// The runtime of the calling thread.
///
/// The reference is valid while the thread belongs to the runtime, which is longer than any caller
/// in this crate keeps it: the code that lets a thread in holds a handle.
#[inline]
pub(crate) fn current() -> &'static Runtime {
    // SAFETY: set only while the setter holds a handle.
    unsafe { CURRENT.get().as_ref() }.unwrap_or_else(|| process())
}

/// A handle on the current runtime.
pub(crate) fn handle() -> Arc<Runtime> {
    let current = ptr::from_ref(current());
    // SAFETY: every runtime is in an `Arc`, and this one has a handle.
    unsafe {
        Arc::increment_strong_count(current);
        Arc::from_raw(current)
    }
}

/// The process's own runtime.
#[cold]
fn process() -> &'static Runtime {
    static PROCESS: OnceLock<Arc<Runtime>> = OnceLock::new();
    PROCESS.get_or_init(|| Runtime::new(None))
}

/// Keeps the thread in a runtime until dropped.
pub(crate) struct Inside(*const Runtime);

/// Enters a runtime with the calling thread. The caller holds a handle on it meanwhile.
pub(crate) fn enter(runtime: &Runtime) -> Inside {
    Inside(CURRENT.replace(runtime))
}

impl Drop for Inside {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

// ---- threads ------------------------------------------------------------------------------------

/// Starts a thread of the current runtime with a stack of `stack_bytes`.
pub(crate) fn spawn(
    name: &str,
    stack_bytes: usize,
    life: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    /// Keeps the thread counted until its last instruction of ours.
    struct Counted(Arc<Runtime>);

    impl Drop for Counted {
        fn drop(&mut self) {
            *lock(&self.0.threads) -= 1;
            self.0.changed.notify_all();
        }
    }

    let runtime = handle();
    *lock(&runtime.threads) += 1;
    let counted = Counted(runtime);
    let builder = Builder::new().stack_size(stack_bytes);
    let builder = match name {
        "" => builder,
        name => builder.name(name.to_owned()),
    };
    let life = move || {
        let counted = counted;
        let _inside = enter(&counted.0);
        life();
    };
    builder.spawn(life).map(drop)
}
