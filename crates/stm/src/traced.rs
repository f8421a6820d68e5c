//! Algorithms with a tracer that a type chooses, whatever the build.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use hearth_atomics::AtomicU64;

use crate::algorithm::{Algorithm, Protocol, Savepoint};
use crate::attempt::Attempt;
use crate::fault::Planted;
use crate::halt::Halt;
use crate::raw::RawWord;
use crate::trace::Tracer;

/// The algorithm `A` with the tracer `T`, for instances that are traced beside others that are not.
///
/// A thread runs one traced transaction at a time, of whatever algorithm and tracer.
pub struct Traced<A, T> {
    algorithm: A,
    tracer: PhantomData<fn() -> T>,
}

impl<A: Algorithm, T: Tracer> Algorithm for Traced<A, T> {}

/// Logs of a thread with a tracer behind them. The logs come first, so both have one address: that
/// is the descriptor's, which the algorithm stores in locks.
#[derive(Default)]
#[repr(C)]
pub struct TracedLogs<L, T> {
    logs: L,
    tracer: T,
}

/// A thread's traced descriptors. A thread-local variable cannot be generic, so they have no type.
struct Homes {
    /// The one used last.
    last: Cell<Option<Box<dyn Any>>>,
    others: RefCell<Vec<Box<dyn Any>>>,
    is_taken: Cell<bool>,
}

thread_local! {
    static HOMES: Homes = const {
        Homes {
            last: Cell::new(None),
            others: RefCell::new(Vec::new()),
            is_taken: Cell::new(false),
        }
    };
}

impl Homes {
    #[inline]
    fn take<L: Default + 'static>(&self) -> Box<L> {
        assert!(
            !self.is_taken.replace(true),
            "a traced transaction runs on this thread already: pass its `Tx` on instead of \
             starting another"
        );
        match self.last.take().map(Box::<dyn Any>::downcast) {
            Some(Ok(logs)) => logs,
            Some(Err(other)) => self.exchange(Some(other)),
            None => self.exchange(None),
        }
    }

    #[cold]
    fn exchange<L: Default + 'static>(&self, other: Option<Box<dyn Any>>) -> Box<L> {
        let mut others = self.others.borrow_mut();
        others.extend(other);
        let place = others.iter().position(|it| it.is::<L>());
        let found = place.and_then(|place| others.swap_remove(place).downcast().ok());
        found.unwrap_or_default()
    }
}

impl<A: Algorithm, T: Tracer> Protocol for Traced<A, T> {
    type Logs = TracedLogs<A::Logs, T>;
    type Tracer = T;

    fn new(planted: Planted) -> Self {
        Traced {
            algorithm: A::new(planted),
            tracer: PhantomData,
        }
    }

    #[inline(always)]
    fn take_logs() -> Box<Self::Logs> {
        // While the thread ends, its descriptors may be gone.
        HOMES.try_with(Homes::take).unwrap_or_default()
    }

    #[inline(always)]
    fn put_logs(logs: Box<Self::Logs>) {
        // A thread that ends has no use for it.
        let _ = HOMES.try_with(|homes| {
            homes.last.set(Some(logs));
            homes.is_taken.set(false);
        });
    }

    #[inline(always)]
    fn tracer(logs: &mut Self::Logs) -> &mut T {
        &mut logs.tracer
    }

    #[inline(always)]
    fn attempt(logs: &mut Self::Logs) -> &mut Attempt {
        A::attempt(&mut logs.logs)
    }

    #[inline(always)]
    fn counter(&self) -> &AtomicU64 {
        self.algorithm.counter()
    }

    #[inline(always)]
    fn begin(&self, logs: &mut Self::Logs) -> u64 {
        self.algorithm.begin(&mut logs.logs)
    }

    #[inline(always)]
    unsafe fn read(&self, logs: &mut Self::Logs, raw: &RawWord) -> Result<u64, Halt> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.read(&mut logs.logs, raw) }
    }

    #[inline(always)]
    unsafe fn read_pair(
        &self,
        logs: &mut Self::Logs,
        raws: [&RawWord; 2],
    ) -> Result<[u64; 2], Halt> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.read_pair(&mut logs.logs, raws) }
    }

    #[inline(always)]
    unsafe fn read_slice(
        &self,
        logs: &mut Self::Logs,
        raws: &[RawWord],
        piece: impl FnMut(&[u64]),
    ) -> Result<(), Halt> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.read_slice(&mut logs.logs, raws, piece) }
    }

    #[inline(always)]
    unsafe fn write(&self, logs: &mut Self::Logs, raw: &RawWord, value: u64) -> Result<(), Halt> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.write(&mut logs.logs, raw, value) }
    }

    #[inline(always)]
    unsafe fn commit(&self, logs: &mut Self::Logs) -> Result<u64, Halt> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.commit(&mut logs.logs) }
    }

    unsafe fn roll_back(&self, logs: &mut Self::Logs) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.roll_back(&mut logs.logs) }
    }

    fn savepoint(logs: &mut Self::Logs) -> Savepoint {
        A::savepoint(&mut logs.logs)
    }

    unsafe fn roll_back_to(&self, logs: &mut Self::Logs, savepoint: &Savepoint) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.roll_back_to(&mut logs.logs, savepoint) }
    }

    fn forget(logs: &mut Self::Logs, savepoint: Savepoint) {
        A::forget(&mut logs.logs, savepoint);
    }

    fn raise(&self, flag: u64) {
        self.algorithm.raise(flag);
    }

    fn lower(&self, flag: u64) {
        self.algorithm.lower(flag);
    }

    unsafe fn is_current(&self, logs: &mut Self::Logs) -> bool {
        // SAFETY: the caller's promise is the same.
        unsafe { self.algorithm.is_current(&mut logs.logs) }
    }

    unsafe fn read_summary(logs: &Self::Logs) -> u64 {
        // SAFETY: the caller's promise is the same.
        unsafe { A::read_summary(&logs.logs) }
    }

    fn written_summary(logs: &Self::Logs) -> u64 {
        A::written_summary(&logs.logs)
    }
}
