//! A thread's part: its tape, and how deep its calls are nested.

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::ptr;

use hearth_sys::affinity;
use hearth_watch::stream::components::{self, Word};
use hearth_watch::stream::{Counter, Journal, Law, TICKS, Tape};

use crate::components::Calls;
use crate::controller;
use crate::probe::{Probe, monitor_of, name_of};

/// Type of a record at the end of a call; at the beginning it is 0.
const ENDS: u64 = 1 << 56;

/// Longest distance of a frame from one that a jump has left below it. Another stack lies farther
/// away, as a rule; calls there are not taken for left ones.
const JUMP_MAX: usize = 1 << 20;

/// A call without a guard that has not ended.
struct Open {
    probe: &'static Probe,
    /// The probe's state when the call began.
    state: u64,
    frame: Frame,
}

/// Place of a caller's frame on its stack. It tells which calls a jump has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    stack_pointer: usize,
    from: usize,
}

impl Frame {
    /// No place: nothing is known of jumps.
    pub const NONE: Frame = Frame {
        stack_pointer: 0,
        from: 0,
    };

    /// The stack pointer's value in the caller, and the address to which the caller returns. Stacks
    /// grow downwards: an open call with a lower one, by no more than a mebibyte, was left by a
    /// jump, and so was one at the same place that returns elsewhere.
    #[inline]
    #[must_use]
    pub fn at(stack_pointer: usize, from: usize) -> Frame {
        Frame {
            stack_pointer,
            from,
        }
    }
}

/// The calling thread's state. It has no destructor of its own, so the first access allocates
/// nothing: an allocator may be what is watched. [`Leaves`] ends it.
struct Here {
    tape: ManuallyDrop<Tape>,
    /// The monitor that it records for; 0 for none.
    monitor: Cell<u32>,
    journal: Cell<Option<&'static Journal>>,
    depth: Cell<u32>,
    /// The outermost call is left out, and all within it.
    leaves_out: Cell<bool>,
    /// Calls are recorded, all of them: neither sampled nor only counted.
    is_usual: Cell<bool>,
    /// Counts calls, for a monitor that keeps tallies instead of records.
    counter: Counter,
    /// Whether it does, and whether outermost calls are left out as blocks become few; and how many
    /// have begun.
    counts: Cell<bool>,
    samples: Cell<bool>,
    roots: Cell<u64>,
    /// It is recording: a record by a signal handler that interrupts it is left alone.
    is_busy: Cell<bool>,
    /// Calls without a guard. Borrowed while one is noted and while the thread works for the
    /// monitor: calls within that work are not noted.
    open: RefCell<ManuallyDrop<Vec<Open>>>,
    /// The thread is at its very end.
    is_over: Cell<bool>,
}

/// Ends the calling thread's part.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        HERE.with(Here::leave);
    }
}

thread_local! {
    static HERE: Here = const {
        Here {
            tape: ManuallyDrop::new(Tape::new()),
            monitor: Cell::new(0),
            journal: Cell::new(None),
            depth: Cell::new(0),
            leaves_out: Cell::new(false),
            is_usual: Cell::new(false),
            counter: Counter::new(),
            counts: Cell::new(false),
            samples: Cell::new(false),
            roots: Cell::new(0),
            is_busy: Cell::new(false),
            open: RefCell::new(ManuallyDrop::new(Vec::new())),
            is_over: Cell::new(false),
        }
    };
    static LEAVES: Leaves = const { Leaves };
}

const _: () = assert!(!mem::needs_drop::<Here>(), "a destructor");

/// Notes the beginning of a call.
#[inline]
pub(crate) fn begins(state: u64) {
    HERE.with(|here| here.begins(state));
}

/// Notes the end of a call.
#[inline]
pub(crate) fn ends(state: u64) {
    HERE.with(|here| here.ends(state));
}

/// Notes the beginning of a call without a guard.
#[inline]
pub(crate) fn begins_unguarded(probe: &'static Probe, state: u64, frame: Frame) {
    HERE.with(|here| here.begins_unguarded(probe, state, frame));
}

/// Notes the end of a call without a guard.
#[inline]
pub(crate) fn ends_unguarded(probe: &'static Probe, frame: Frame) {
    HERE.with(|here| here.ends_unguarded(probe, frame));
}

/// Notes the beginning of a component's call. `kind` gives the numbers of its kind's name and of
/// the component within its kind. False if the monitor has ended.
#[inline]
pub(crate) fn component_begins(
    monitor: u32,
    name: Option<u32>,
    component: u32,
    calls: &mut Calls,
    kind: impl FnOnce() -> Option<(u32, u32)>,
) -> bool {
    HERE.with(|here| {
        if here.monitor.get() != monitor && !here.join(monitor) {
            return false;
        }
        if !calls.is_known {
            here.introduce(component, calls, kind());
        }
        if here.samples.get() && calls.depth == 0 {
            calls.leaves_out = here.leaves_out_tree();
        }
        here.record_of(components::BEGINS, name, component, calls);
        calls.depth += 1;
        true
    })
}

/// Notes the end of a component's innermost call.
#[inline]
pub(crate) fn component_ends(monitor: u32, name: Option<u32>, component: u32, calls: &mut Calls) {
    HERE.with(|here| {
        calls.depth = calls.depth.saturating_sub(1);
        if here.monitor.get() == monitor || here.join(monitor) {
            here.record_of(components::ENDS, name, component, calls);
        }
    });
}

/// Runs an action whose calls without a guard are not noted. None if it is within one already.
pub(crate) fn try_quietly<R>(action: impl FnOnce() -> R) -> Option<R> {
    HERE.with(|here| {
        let _quiet = here.open.try_borrow_mut().ok()?;
        Some(action())
    })
}

/// Runs an action whose calls without a guard are not noted.
pub(crate) fn quietly<R>(action: impl FnOnce() -> R) -> R {
    HERE.with(|here| {
        let _quiet = here.open.try_borrow_mut();
        action()
    })
}

/// Forgets all calls of the calling thread, in the child of a fork.
pub(crate) fn forget() {
    HERE.with(|here| {
        here.tape.forget();
        here.counter.forget();
        here.journal.set(None);
        here.monitor.set(0);
        here.is_busy.set(false);
        if let Ok(mut open) = here.open.try_borrow_mut() {
            open.clear();
        }
    });
}

/// Hands over the calling thread's block.
pub(crate) fn close() {
    HERE.with(|here| {
        here.tape.close();
        here.counter.leave();
    });
}

impl Here {
    #[inline]
    fn begins(&self, state: u64) -> bool {
        if self.monitor.get() != monitor_of(state) && !self.join(monitor_of(state)) {
            return false;
        }
        let depth = self.depth.get();
        if self.is_usual.get() {
            self.record(0, name_of(state), depth);
        } else {
            self.begins_unusually(name_of(state), depth);
        }
        self.depth.set(depth + 1);
        true
    }

    #[inline]
    fn begins_unusually(&self, name: u64, depth: u32) {
        if self.counts.get() {
            if let Some(journal) = self.journal.get() {
                self.counter.begin(name, journal.now());
            }
        } else if self.samples.get() && self.is_left_out(depth) {
            self.tape.leave_out(1);
        } else {
            self.record(0, name, depth);
        }
    }

    #[inline]
    fn ends_unusually(&self, name: u64, depth: u32) {
        if self.counts.get() {
            if let Some(journal) = self.journal.get() {
                self.counter.end(name, journal.now());
            }
        } else if self.leaves_out.get() {
            self.tape.leave_out(1);
        } else {
            self.record(ENDS, name, depth);
        }
    }

    #[inline]
    fn ends(&self, state: u64) {
        // The monitor may have ended, or another one begun.
        if self.monitor.get() != monitor_of(state) {
            return;
        }
        let depth = self.depth.get();
        self.depth.set(depth.saturating_sub(1));
        if self.is_usual.get() {
            self.record(ENDS, name_of(state), depth);
        } else {
            self.ends_unusually(name_of(state), depth);
        }
    }

    #[inline]
    fn begins_unguarded(&self, probe: &'static Probe, state: u64, frame: Frame) {
        let Ok(mut open) = self.open.try_borrow_mut() else {
            return;
        };
        let mut has_jumped = false;
        while let Some(last) = open.last() {
            let was_left = last.was_left(frame);
            if !was_left && last.probe.state() == last.state {
                break;
            }
            has_jumped |= was_left;
            self.pop(&mut open);
        }
        if has_jumped {
            self.pop_again(&mut open, probe, frame);
        }
        if self.begins(state) {
            open.push(Open {
                probe,
                state,
                frame,
            });
        }
    }

    #[inline]
    fn ends_unguarded(&self, probe: &'static Probe, frame: Frame) {
        let Ok(mut open) = self.open.try_borrow_mut() else {
            return;
        };
        while open.last().is_some_and(|last| last.was_left(frame)) {
            self.pop(&mut open);
        }
        // The innermost one, as a rule; a call that began while its probe was off is not there.
        let is_this = |open: &Open| ptr::eq(open.probe, probe);
        if let Some(at) = open.iter().rposition(is_this) {
            while open.len() > at {
                self.pop(&mut open);
            }
        }
    }

    /// Ends a call of the same function from the same place as the one that begins, after a jump:
    /// without one, the function would be inlined into itself.
    #[cold]
    #[inline(never)]
    fn pop_again(&self, open: &mut Vec<Open>, probe: &Probe, frame: Frame) {
        let same = open.iter().rev().take_while(|open| open.frame == frame);
        let first = open.len() - same.count();
        let again = open[first..]
            .iter()
            .position(|open| ptr::eq(open.probe, probe));
        while again.is_some_and(|again| open.len() > first + again) {
            self.pop(open);
        }
    }

    /// Notes the end of the innermost call without a guard.
    #[inline]
    fn pop(&self, open: &mut Vec<Open>) {
        if let Some(last) = open.pop() {
            self.ends(last.state);
        }
    }

    #[inline]
    fn record(&self, kind: u64, name: u64, depth: u32) {
        let Some(journal) = self.journal.get() else {
            return;
        };
        let first = kind | journal.now();
        if self.tape.has_left_out() || !self.tape.write(first, name) {
            self.record_slow(journal, first, name, depth);
        }
    }

    /// A record of a component, which is counted there whether it is left out or not.
    #[inline]
    fn record_of(&self, kind: u8, name: Option<u32>, component: u32, calls: &mut Calls) {
        let word = Word {
            name,
            number: calls.records,
            component,
        };
        calls.records = calls.records.wrapping_add(1);
        if calls.leaves_out {
            self.tape.leave_out(1);
        } else {
            self.record(components::first(kind, calls.depth, 0), word.pack(), 0);
        }
    }

    /// A component's first records: its kind, and its number within it.
    #[cold]
    #[inline(never)]
    fn introduce(&self, component: u32, calls: &mut Calls, kind: Option<(u32, u32)>) {
        calls.is_known = true;
        let (kind, nth) = kind.unzip();
        self.record_of(components::KIND, kind, component, calls);
        let word = Word::nth(component, nth.unwrap_or_default());
        self.record(components::first(components::NTH, 0, 0), word, 0);
    }

    #[cold]
    #[inline(never)]
    fn record_slow(&self, journal: &'static Journal, first: u64, name: u64, depth: u32) {
        if self.is_busy.replace(true) {
            self.tape.leave_out(1);
            return;
        }
        if self.tape.has_left_out() {
            self.tape.write_gap(first & TICKS);
        }
        if !self.tape.write(first, name) {
            if self.tape.turn(journal, depth) {
                self.tape.write(first, name);
            }
            controller::store_now(journal);
        }
        self.is_busy.set(false);
    }

    /// Whether the call that begins is left out: whole trees are, more of them the fewer blocks are
    /// free.
    fn is_left_out(&self, depth: u32) -> bool {
        if depth == 0 {
            self.leaves_out.set(self.leaves_out_tree());
        }
        self.leaves_out.get()
    }

    /// Whether the outermost call that begins is left out.
    fn leaves_out_tree(&self) -> bool {
        let roots = self.roots.get() + 1;
        self.roots.set(roots);
        let journal = self.journal.get();
        journal.is_some_and(|journal| !roots.is_multiple_of(one_in(journal)))
    }

    /// Ends the thread's part; what it records from here on is not noted.
    fn leave(&self) {
        self.is_over.set(true);
        self.monitor.set(0);
        if let Ok(mut open) = self.open.try_borrow_mut() {
            self.tape.close();
            self.counter.leave();
            drop(mem::take(&mut **open));
        }
    }

    /// Begins to record for a monitor. False if it has ended.
    #[cold]
    #[inline(never)]
    fn join(&self, monitor: u32) -> bool {
        // C programs run much in their first thread's last moments: destructors, handlers.
        if self.is_over.get() && affinity::thread_id() != std::process::id() {
            return false;
        }
        self.tape.close();
        self.counter.leave();
        self.journal.set(None);
        let Some(journal) = controller::journal_of(monitor) else {
            return false;
        };
        let _ = LEAVES.try_with(|_| ());
        self.monitor.set(monitor);
        self.journal.set(Some(journal));
        self.depth.set(0);
        self.leaves_out.set(false);
        // Without a slot each record is counted where it finds none.
        let counts = journal.has_tallies();
        let has_slot = match counts {
            true => self.counter.join(journal),
            false => self.tape.join(journal),
        };
        let samples = has_slot && !counts && journal.law() == Law::Sample;
        self.samples.set(samples);
        self.counts.set(counts);
        self.is_usual.set(!samples && !counts);
        true
    }
}

impl Open {
    /// Whether a jump has left the call, as seen from a frame that is in use.
    #[inline]
    fn was_left(&self, frame: Frame) -> bool {
        let up = frame.stack_pointer.wrapping_sub(self.frame.stack_pointer);
        match up {
            0 => frame.from != self.frame.from,
            up => up <= JUMP_MAX,
        }
    }
}

/// One of so many trees of calls is recorded: all while half of the blocks are free, and half as
/// many each time that the free ones become half as many.
fn one_in(journal: &Journal) -> u64 {
    let (blocks, free) = (journal.blocks() as u64, journal.blocks_free() as u64);
    (blocks / 2 / free.max(1)).max(1).next_power_of_two()
}
