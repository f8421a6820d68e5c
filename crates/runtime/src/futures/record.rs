//! A record: one call that another thread may run, and how the two threads meet at its end.
//!
//! ```text
//! owner                                     thief
//! state := RUNS; push                ─────▶ takes it from the ring
//! …                                         runner := its ring
//! take back? no: it has been taken          runs the call
//! state: RUNS → SLEEPS, sleeps              keeps its exception
//! sees ENDED                         ◀───── state := ENDED, the last it touches; was SLEEPS? wakes
//! ```

use std::cell::UnsafeCell;
use std::ptr;

use crate::abi::Component;
use crate::ground::sync::{AtomicPtr, AtomicUsize, Ordering, Word};
use crate::seats::exceptions::Kept;

use super::grain::Grain;
use super::ring::{Ring, Run};

/// Nobody runs it, or somebody does.
const RUNS: u32 = 0;
/// Its owner sleeps until it has ended.
const SLEEPS: u32 = 1;
/// It has ended.
const ENDED: u32 = 2;

/// A call that may run beside what follows it. Begins as in `hearth.h`, where the generated code
/// has its arguments behind it.
#[repr(C)]
pub struct Record {
    /// Runs the call with this base, at this depth.
    pub(super) run: unsafe extern "C" fn(*mut Record, *mut Component, u32),
    pub(super) grain: *mut Grain,
    /// Calls beside around it, itself included.
    pub(super) depth: u32,
    /// 1 + its slot in its owner's ring; 0 before it is begun and after it was waited for.
    pub(super) slot: u32,
    /// The grain is the call's own: its length is measured, whoever runs it.
    pub(super) is_measured: bool,
    state: Word,
    /// The ring of the thread that runs it, and the number of the run there.
    runner: AtomicPtr<Ring>,
    number: AtomicUsize,
    /// Nanoseconds at which it was pushed, if that is to be measured; else 0.
    pub(super) pushed_ns: u64,
    /// The exception that it ended with: the runner's, and the owner's from ENDED on.
    kept: UnsafeCell<Option<Kept>>,
}

#[cfg(not(loom))]
const _: () = assert!(
    size_of::<Record>() <= super::RECORD_BYTES
        && std::mem::offset_of!(Record, run) == 0
        && std::mem::offset_of!(Record, grain) == 8
        && std::mem::offset_of!(Record, depth) == 16
        && std::mem::offset_of!(Record, slot) == 20
);

impl Record {
    /// A record that has not been begun.
    pub(super) fn new(
        run: unsafe extern "C" fn(*mut Record, *mut Component, u32),
        grain: *mut Grain,
        depth: u32,
        is_measured: bool,
    ) -> Record {
        Record {
            run,
            grain,
            depth,
            slot: 0,
            is_measured,
            state: Word::new(RUNS),
            runner: AtomicPtr::new(ptr::null_mut()),
            number: AtomicUsize::new(0),
            pushed_ns: 0,
            kept: UnsafeCell::new(None),
        }
    }

    /// Whether it has ended; then the runner's writes are visible.
    pub(super) fn has_ended(&self) -> bool {
        self.state.load(Ordering::Acquire) == ENDED
    }

    /// Takes another record from the run of this one, if it is being run.
    pub(super) fn steal_a_part(&self) -> Option<*mut Record> {
        // Acquire: the number, too.
        let runner = self.runner.load(Ordering::Acquire);
        // SAFETY: rings are never freed.
        let runner = unsafe { runner.as_ref() }?;
        runner.steal_within(self.number.load(Ordering::Relaxed))
    }

    /// Sleeps until it has ended.
    pub(super) fn sleep(&self) {
        let begun = self
            .state
            .compare_exchange(RUNS, SLEEPS, Ordering::Relaxed, Ordering::Acquire);
        if begun.is_ok() {
            self.state.sleep(SLEEPS);
        }
    }

    /// The exception that it ended with.
    ///
    /// # Safety
    /// It has ended, and the caller is its owner.
    pub(super) unsafe fn take_kept(&self) -> Option<Kept> {
        // SAFETY: the runner has left it.
        unsafe { (*self.kept.get()).take() }
    }

    /// Says who runs it from here on.
    pub(super) fn begins_at(&self, ring: &Ring, run: &Run) {
        self.number.store(run.number, Ordering::Relaxed);
        self.runner
            .store(ptr::from_ref(ring).cast_mut(), Ordering::Release);
    }

    /// Ends it, with this exception.
    ///
    /// # Safety
    /// The caller has taken it from its ring, has run it, and touches it no more.
    pub(super) unsafe fn end(record: *const Record, kept: Option<Kept>) {
        // SAFETY: it is alive until the exchange below; after that only the address of its word is
        // used, as a key.
        unsafe {
            *(*record).kept.get() = kept;
            let state = &raw const (*record).state;
            // Release: what the call did. Relaxed would do for the rest.
            if (*state).swap(ENDED, Ordering::AcqRel) == SLEEPS {
                Word::wake_gone(state);
            }
        }
    }
}
