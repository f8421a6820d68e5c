//! A thread's part: its tape, and how deep its calls are nested.

use std::cell::{Cell, RefCell};
use std::ptr;

use hearth_watch::stream::{Journal, Law, TICKS, Tape};

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
    /// Address of the caller's frame, or 0.
    frame: usize,
}

/// The calling thread's state.
struct Here {
    tape: Tape,
    /// The monitor that it records for; 0 for none.
    monitor: Cell<u32>,
    journal: Cell<Option<&'static Journal>>,
    depth: Cell<u32>,
    /// The outermost call is left out, and all within it.
    leaves_out: Cell<bool>,
    /// Whether outermost calls are left out as blocks become few, and how many have begun.
    samples: Cell<bool>,
    roots: Cell<u64>,
    /// It is recording: a record by a signal handler that interrupts it is left alone.
    is_busy: Cell<bool>,
    /// Calls without a guard. Borrowed while one is noted and while the thread works for the
    /// monitor: calls within that work are not noted.
    open: RefCell<Vec<Open>>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            tape: Tape::new(),
            monitor: Cell::new(0),
            journal: Cell::new(None),
            depth: Cell::new(0),
            leaves_out: Cell::new(false),
            samples: Cell::new(false),
            roots: Cell::new(0),
            is_busy: Cell::new(false),
            open: RefCell::new(Vec::new()),
        }
    };
}

/// Notes the beginning of a call.
#[inline]
pub(crate) fn begins(state: u64) {
    // Nothing is recorded at the very end of a thread.
    let _ = HERE.try_with(|here| here.begins(state));
}

/// Notes the end of a call.
#[inline]
pub(crate) fn ends(state: u64) {
    let _ = HERE.try_with(|here| here.ends(state));
}

/// Notes the beginning of a call without a guard.
#[inline]
pub(crate) fn begins_unguarded(probe: &'static Probe, state: u64, frame: usize) {
    let _ = HERE.try_with(|here| here.begins_unguarded(probe, state, frame));
}

/// Notes the end of a call without a guard.
#[inline]
pub(crate) fn ends_unguarded(probe: &'static Probe, frame: usize) {
    let _ = HERE.try_with(|here| here.ends_unguarded(probe, frame));
}

/// Runs an action whose calls without a guard are not noted. None if it is already within one, or
/// at the very end of the thread.
pub(crate) fn try_quietly<R>(action: impl FnOnce() -> R) -> Option<R> {
    let run = |here: &Here| {
        let _quiet = here.open.try_borrow_mut().ok()?;
        Some(action())
    };
    HERE.try_with(run).ok().flatten()
}

/// Runs an action whose calls without a guard are not noted.
pub(crate) fn quietly<R>(action: impl FnOnce() -> R) -> R {
    let mut action = Some(action);
    let done = try_quietly(|| action.take().map(|action| action()));
    match (done.flatten(), action) {
        (Some(result), _) => result,
        (None, Some(action)) => action(),
        (None, None) => unreachable!("an action that ran has a result"),
    }
}

/// Hands over the calling thread's block.
pub(crate) fn close() {
    let _ = HERE.try_with(|here| here.tape.close());
}

impl Here {
    #[inline]
    fn begins(&self, state: u64) -> bool {
        if self.monitor.get() != monitor_of(state) && !self.join(monitor_of(state)) {
            return false;
        }
        let depth = self.depth.get();
        if self.samples.get() && self.is_left_out(depth) {
            self.tape.leave_out(1);
        } else {
            self.record(0, name_of(state), depth);
        }
        self.depth.set(depth + 1);
        true
    }

    #[inline]
    fn ends(&self, state: u64) {
        // The monitor may have ended, or another one begun.
        if self.monitor.get() != monitor_of(state) {
            return;
        }
        let depth = self.depth.get();
        self.depth.set(depth.saturating_sub(1));
        if self.leaves_out.get() {
            self.tape.leave_out(1);
        } else {
            self.record(ENDS, name_of(state), depth);
        }
    }

    #[inline]
    fn begins_unguarded(&self, probe: &'static Probe, state: u64, frame: usize) {
        let Ok(mut open) = self.open.try_borrow_mut() else {
            return;
        };
        while open.last().is_some_and(|last| last.is_over(frame)) {
            self.pop(&mut open);
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
    fn ends_unguarded(&self, probe: &'static Probe, frame: usize) {
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
            if self.tape.turn(journal, u64::from(depth)) {
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
            let roots = self.roots.get() + 1;
            self.roots.set(roots);
            let leaves_out = self
                .journal
                .get()
                .is_some_and(|journal| !roots.is_multiple_of(one_in(journal)));
            self.leaves_out.set(leaves_out);
        }
        self.leaves_out.get()
    }

    /// Begins to record for a monitor. False if it has ended.
    #[cold]
    #[inline(never)]
    fn join(&self, monitor: u32) -> bool {
        self.tape.close();
        self.journal.set(None);
        let Some(journal) = controller::journal_of(monitor) else {
            return false;
        };
        self.monitor.set(monitor);
        self.journal.set(Some(journal));
        self.depth.set(0);
        self.leaves_out.set(false);
        // Without a slot each record is counted where it finds none.
        let has_slot = self.tape.join(journal);
        self.samples.set(has_slot && journal.law() == Law::Sample);
        true
    }
}

impl Open {
    /// Whether the call has ended without a note, as seen from a call that begins.
    #[inline]
    fn is_over(&self, frame: usize) -> bool {
        self.was_left(frame) || self.probe.state() != self.state
    }

    /// Whether a jump has left the call: its frame lies below one that is in use, as stacks grow
    /// downwards.
    #[inline]
    fn was_left(&self, frame: usize) -> bool {
        frame > self.frame && frame - self.frame <= JUMP_MAX
    }
}

/// One of so many trees of calls is recorded: all while half of the blocks are free, and half as
/// many each time that the free ones become half as many.
fn one_in(journal: &Journal) -> u64 {
    let (blocks, free) = (journal.blocks() as u64, journal.blocks_free() as u64);
    (blocks / 2 / free.max(1)).max(1).next_power_of_two()
}
