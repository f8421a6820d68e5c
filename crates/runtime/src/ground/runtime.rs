//! A runtime: a value that everything of one belongs to.
//!
//! Several may be in one process. Each room keeps its part of a runtime in a [`Part`], which is
//! declared once, like a static, and is there once in each runtime. Code reaches the runtime that
//! it belongs to by [`current`]: each of a runtime's own threads belongs to it from its first
//! instruction, and a thread from outside while it is inside ([`enter`]), which it gets to by what
//! it has in its hands: a handle, or a component (component → home → worker → runtime).
//!
//! A thread that belongs to none belongs to the *process's own*: that of a compiled program, whose
//! devices, signals and other nodes are the process's as well.
//!
//! A runtime ends in two steps. [`Runtime::end_threads`] has its threads end and waits for them.
//! Its memory is freed when nobody has a handle any more: wakers and half-channels may outlive its
//! threads.

use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::options::Options;
use super::sync::lock_std as lock;

/// How many parts there may be. There are as many as `Part::new` stands in the code.
const PARTS_MAX: usize = 64;

/// What there is once in each runtime.
pub(crate) struct Runtime {
    pub(super) options: OnceLock<Options>,
    parts: [OnceLock<Erased>; PARTS_MAX],
    /// Whatever is made is stopped.
    is_stopping: AtomicBool,
    is_over: AtomicBool,
    /// How many threads it has.
    threads: Mutex<usize>,
    /// One has ended, or the runtime is over.
    changed: Condvar,
}

#[cfg(loom)]
loom::lazy_static! {
    /// Is the run of a model over? Several models run at the same time, in one process.
    static ref OVER: AtomicBool = AtomicBool::new(false);
}

impl Runtime {
    /// One with these options; the process's own gets them later.
    pub(crate) fn new(options: Option<Options>) -> Arc<Runtime> {
        Arc::new(Runtime {
            options: options.map_or_else(OnceLock::new, OnceLock::from),
            parts: [const { OnceLock::new() }; PARTS_MAX],
            is_stopping: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            threads: Mutex::new(0),
            changed: Condvar::new(),
        })
    }

    /// Components that start from here on are stopped at once.
    pub(crate) fn begin_end(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Is a component that starts to be stopped at once?
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Are its threads to end? Whoever is about to sleep looks after it has said so and passed a
    /// fence, as `end_threads` passes one before it wakes sleepers.
    pub(crate) fn is_over(&self) -> bool {
        #[cfg(loom)]
        return OVER.load(Ordering::Relaxed);
        #[cfg(not(loom))]
        self.is_over.load(Ordering::Relaxed)
    }

    /// Has all threads end, which `wake` wakes, and waits until they have. None of its components
    /// runs.
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

    /// A model's run is over.
    #[cfg(loom)]
    pub(crate) fn say_over() {
        OVER.store(true, Ordering::Relaxed);
    }

    /// Sleeps for a while. False if the runtime is over: sooner then.
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
            // SAFETY: from the box below.
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
        // SAFETY: made for this value, and called once.
        unsafe { (self.drop)(self.value) };
    }
}

/// Something of a room that is there once in each runtime, made when it is first used. It is as its
/// value in the [`current`] one.
pub(crate) struct Part<T: 'static> {
    /// 1 + its place; 0 until it is first used.
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

    /// The value in a runtime.
    pub(crate) fn of<'a>(&self, runtime: &'a Runtime) -> &'a T {
        let place = match self.place.load(Ordering::Relaxed) {
            0 => self.get_place(),
            place => place,
        };
        let part = runtime.parts[place - 1].get_or_init(|| Erased::new((self.make)()));
        // SAFETY: the place is this part's, so what is there is of its type.
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
    /// The runtime that the calling thread belongs to; null: the process's own.
    static CURRENT: Cell<*const Runtime> = const { Cell::new(ptr::null()) };
}

/// The runtime that the calling thread belongs to.
///
/// The reference lives as long as the thread belongs to it, which is longer than any caller in this
/// crate keeps it: whoever lets a thread in has a handle.
#[inline]
pub(crate) fn current() -> &'static Runtime {
    // SAFETY: set while whoever set it has a handle.
    unsafe { CURRENT.get().as_ref() }.unwrap_or_else(|| process())
}

/// A handle on it.
pub(crate) fn handle() -> Arc<Runtime> {
    let current = ptr::from_ref(current());
    // SAFETY: all runtimes are in an `Arc`, and this one has a handle.
    unsafe {
        Arc::increment_strong_count(current);
        Arc::from_raw(current)
    }
}

/// The process's own.
#[cold]
fn process() -> &'static Runtime {
    static PROCESS: OnceLock<Arc<Runtime>> = OnceLock::new();
    PROCESS.get_or_init(|| Runtime::new(None))
}

/// While this is kept, the thread belongs to a runtime.
pub(crate) struct Inside(*const Runtime);

/// The calling thread belongs to a runtime from here on, of which the caller has a handle for as
/// long.
pub(crate) fn enter(runtime: &Runtime) -> Inside {
    Inside(CURRENT.replace(runtime))
}

impl Drop for Inside {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

// ---- threads ------------------------------------------------------------------------------------

/// Starts a thread of the current runtime, with a stack of so many bytes.
pub(crate) fn spawn(
    name: &str,
    stack_bytes: usize,
    life: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    /// Counted, until the thread's last instruction of ours.
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
