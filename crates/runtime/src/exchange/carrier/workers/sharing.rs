//! `--place steal`: idle workers get components from busy ones; with `--place talk`, those not
//! placed by a plan.
//!
//! Half-channels are plain memory of their worker's thread, so an idle worker cannot just steal a
//! component: it would need leave for each, which delays the victim longer than giving does.
//! Instead a worker that has just run a component for long, and has several ready, looks for a
//! sleeper and gives it every second of the movable ones. The word `asleep` already marks sleepers;
//! a worker that falls asleep later is found after the next long run.
//!
//! Only components that compute are given: those with credit for long runs, and unmeasured ones if
//! the first runs of the last two of their kind were long. A component that is woken for a message
//! and soon waits again stays with its partners, where a message costs a hundredth of a move. One
//! that turns out to talk after the move comes back and stays. A component may also run for long
//! because it talks for long, with partners that all wait for it; so the measure is time per
//! component that the run made ready, counted from the end of the queue and the count of those
//! posted to others. One that has just computed goes itself, before its next run, if there is
//! nothing to give but somebody waited behind it. Some always stay: services and the main sequence;
//! components placed on a core; one in the middle of being detached.
//!
//! Short runs are timed eight at once, which costs next to nothing, and longer ones singly.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use hearth_sys::clock;

use super::resume::settle;
use super::{Worker, all};
use crate::abi::{Component, ComponentType};
use crate::ground::options::{self, Policy};
use crate::seats::registry;
use crate::seats::seat::{runs, seat_of};
use crate::seats::waiting;

/// A run is long from this many microseconds: about the cost of moving a component, its
/// half-channels shared from then on.
const LONG: u64 = 5;
// A component has credit: each run adds a quarter of its microseconds, and takes `TAKEN`. So a run
// of 8 µs a message is even: about what messages cost between workers that are awake, as they are
// if messages come this often.
/// Credit that each run takes.
const TAKEN: u64 = 2;
/// Microseconds of a run that count at most, so that one during which the system had the core is
/// one of many.
const COUNTED: u64 = 48;
/// Credit of a component that computes. Ten long runs give it, or seventeen with two short ones
/// between each, as where a component sends, asks and receives between its computations.
const COMPUTES: u64 = 100;
/// Most credit: 60 short runs use it up.
const MOST: u64 = 120;
/// Credit of a component whose first run was long.
const FIRST_CREDIT: u64 = 50;
const _: () = assert!(1 + MOST < runs::FIXED as u64);
/// Length from which a first run says something of others of its kind, in microseconds, and how
/// many such runs in a row suffice.
const FIRST: u64 = 300;
const KINDS: u32 = 2;
/// Mean length of runs from which timing each costs a hundredth at most.
const WORTH_LOOKING_NS: u64 = 1_500;
/// Runs timed at once while they are short; they are timed singly after a long one.
const WINDOW: u32 = 8;
/// Components of its queue that a worker searches for some to give, and workers it searches for a
/// sleeper.
const FAR: usize = 64;

/// A sharing worker's measurements; its own thread's.
pub(super) struct Sharing {
    is_on: Cell<bool>,
    /// The last reading of the clock, and the number of runs since.
    since: Cell<u64>,
    runs: Cell<u32>,
    /// Number of further runs to time singly.
    singly: Cell<u32>,
    /// The last component in the queue before the run; null if there was none.
    last_before: Cell<*mut Component>,
    /// Number of components posted to other workers. Approximate: a thread being detached may add
    /// one.
    posts: AtomicU64,
    /// The kind of the component whose first run was last found long, and the length of its series.
    kind: Cell<*const ComponentType>,
    of_kind: Cell<u32>,
    /// A component was detached, and those behind it may be given away.
    is_held_up: Cell<bool>,
    /// The next component that might be sent away stays.
    one_stays: Cell<bool>,
}

impl Sharing {
    pub(super) fn new() -> Sharing {
        Sharing {
            is_on: Cell::new(options::get().policy == Policy::Steal),
            since: Cell::new(0),
            runs: Cell::new(0),
            singly: Cell::new(0),
            last_before: Cell::new(ptr::null_mut()),
            posts: AtomicU64::new(0),
            kind: Cell::new(ptr::null()),
            of_kind: Cell::new(0),
            is_held_up: Cell::new(false),
            one_stays: Cell::new(false),
        }
    }

    /// Records that a component is detached: its run is long, and others of its kind are expected
    /// to compute, too.
    ///
    /// # Safety
    /// The component is alive, and the caller holds the worker.
    pub(super) unsafe fn detached(&self, component: *mut Component) {
        if options::get().policy == Policy::Steal {
            // SAFETY: as the caller promises.
            unsafe {
                self.note(component, FIRST);
                self.kind.set((*component).r#type);
            }
            self.of_kind.set(KINDS);
            self.is_held_up.set(true);
        }
    }

    /// Turns sharing on or off by the sampled mean run: timing each run costs as much as a message,
    /// and without components that compute there is nothing to share.
    pub(super) fn turn(&self, mean_ns: u64) {
        let is_on = mean_ns >= WORTH_LOOKING_NS;
        if self.is_on.replace(is_on) != is_on {
            self.begin();
        }
    }

    /// Times the next runs on their own.
    pub(super) fn begin(&self) {
        if self.is_on.get() {
            self.since.set(clock::steady_ns());
            self.runs.set(0);
            self.singly.set(WINDOW);
        }
    }
}

impl Worker {
    /// Notes the queue's end: a component is about to run, or to continue its run.
    pub(super) fn begin_run(&self) {
        if self.mine.sharing.is_on.get() {
            self.mine.sharing.last_before.set(self.last.get());
        }
    }

    /// Counts a component posted to any worker by the worker's component.
    pub(super) fn count_post(&self) {
        if self.mine.sharing.is_on.get() {
            let posts = &self.mine.sharing.posts;
            posts.store(posts.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The component behind `last` in the queue; for null, the first of all.
    ///
    /// # Safety
    /// `last` is in the queue or null.
    pub(super) unsafe fn behind(&self, last: *mut Component) -> *mut Component {
        match last.is_null() {
            true => self.first.get(),
            // SAFETY: in this queue, so parked and alive. No reference is made to it: other threads
            // may touch its atomic fields.
            false => unsafe { (*last).next },
        }
    }

    /// Number of components that the last run made ready, at most `many`.
    ///
    /// # Safety
    /// As for `share`.
    unsafe fn made_ready(&self, many: u64) -> u64 {
        let mut count = self.mine.sharing.posts.load(Ordering::Relaxed);
        // SAFETY: components queued when a run begins are still there when it ends, parked and
        // alive.
        unsafe {
            let mut next = self.behind(self.mine.sharing.last_before.get());
            while !next.is_null() && count < many {
                count += 1;
                next = (*next).next;
            }
        }
        count.min(many)
    }

    /// Measures a component's finished run, and may give some components away.
    ///
    /// # Safety
    /// It is alive, and its home's thread calls.
    pub(super) unsafe fn share(&'static self, ran: *mut Component) {
        if self.mine.sharing.is_on.get() {
            // SAFETY: as the caller promises.
            unsafe { self.measure(ran) };
        }
    }

    /// # Safety
    /// As for `share`.
    unsafe fn measure(&'static self, ran: *mut Component) {
        let sharing = &self.mine.sharing;
        let (runs, singly) = (sharing.runs.get() + 1, sharing.singly.get());
        if singly == 0 && runs < WINDOW {
            sharing.runs.set(runs);
            return;
        }
        let now = clock::steady_ns();
        let took = now.saturating_sub(sharing.since.replace(now)) / 1000;
        // SAFETY: as the caller promises.
        let took = took / (1 + unsafe { self.made_ready(took / LONG) });
        let is_long = took >= LONG;
        sharing.posts.store(0, Ordering::Relaxed);
        sharing.runs.set(0);
        sharing.singly.set(match is_long {
            true => WINDOW,
            false => singly.saturating_sub(1),
        });
        // Of several runs timed at once, any may have been long, or none.
        if singly > 0 {
            // SAFETY: as the caller promises.
            unsafe {
                if sharing.note(ran, took) {
                    self.call_home(ran);
                }
            }
            if is_long && !self.give_some() {
                // SAFETY: as the caller promises.
                unsafe { self.send_away(ran) };
            }
        }
    }

    /// Sends a component that talks back before its next run, if it was given away.
    ///
    /// # Safety
    /// As for `share`.
    unsafe fn call_home(&'static self, ran: *mut Component) {
        // A thread that inflates its wait reads the same part of its seat.
        let _hold = self.hold();
        // SAFETY: held; the rest as the caller promises.
        unsafe {
            let seat = seat_of(ran);
            if !seat.more.is_made() {
                return;
            }
            let origin = seat.more.with_mut(|more| std::mem::take(&mut more.origin));
            if origin != 0 {
                (*ran).destination = origin;
                // Not as if placed by name: the placer would leave it where it is for good.
                seat.runs.store(runs::PLANNED, Ordering::Relaxed);
            }
        }
    }

    /// Gives away components held up by one that was detached, when its worker has a runner again.
    pub(super) fn share_after_detaching(&'static self) {
        if self.mine.sharing.is_held_up.take() {
            self.give_some();
        }
    }

    /// Sends a component that computes to a sleeping worker before its next run, if others waited
    /// behind it. They may all talk to it, as to a dealer of work that waits for one while it could
    /// serve the others; so they stay, and it goes. Every second one does, and each is considered
    /// once: with as many on each side, none gains by going again.
    ///
    /// # Safety
    /// As for `share`.
    #[cold]
    unsafe fn send_away(&'static self, ran: *mut Component) {
        let has_delayed = !self.first.get().is_null() || !self.next.get().is_null();
        // SAFETY: as the caller promises.
        if !has_delayed || !unsafe { self.mine.sharing.may_go(ran) } {
            return;
        }
        let Some(sleeper) = self.find_sleeper() else {
            return;
        };
        // A thread that inflates its wait reads the same part of its seat.
        let _hold = self.hold();
        // SAFETY: held; the rest as the caller promises.
        unsafe {
            let seat = seat_of(ran);
            if seat.more.is_made() && seat.more.with_mut(|more| more.origin) != 0 {
                return;
            }
            let stays = self.mine.sharing.one_stays.get();
            self.mine.sharing.one_stays.set(!stays);
            self.send(ran, if stays { self } else { sleeper });
        }
    }

    /// Sets where a component goes before its next run, and where it came from.
    ///
    /// # Safety
    /// As for `share`; its waits are settled, or the caller holds the worker.
    unsafe fn send(&self, component: *mut Component, to: &Worker) {
        let origin = 1 + self.shared.index as u16;
        // SAFETY: as the caller promises.
        unsafe {
            seat_of(component)
                .more
                .with_mut(|more| more.origin = origin);
            (*component).destination = 1 + to.shared.index as u16;
        }
    }

    /// Gives every second of the movable components to a sleeping worker. False if there was none
    /// to give.
    #[cold]
    fn give_some(&'static self) -> bool {
        self.empty_inbox();
        let has_several = !self.first.get().is_null()
            && (!self.next.get().is_null() || !ptr::eq(self.first.get(), self.last.get()));
        if !has_several {
            return false;
        }
        let Some(sleeper) = self.find_sleeper() else {
            return false;
        };
        let mut given = self.take_some();
        let has_given = given.is_some();
        while let Some(component) = given {
            // SAFETY: taken from the queue, so ready, in no queue, and at home here.
            unsafe {
                let behind = (*component).next;
                given = (!behind.is_null()).then_some(behind);
                settle(component);
                self.send(component, sleeper);
                self.send_off(component);
            }
        }
        has_given
    }

    /// A worker that sleeps or has not started.
    fn find_sleeper(&self) -> Option<&'static Worker> {
        let workers = all();
        let others = workers.iter().cycle().skip(self.shared.index + 1);
        others
            .take((workers.len() - 1).min(FAR))
            .find(|worker| worker.is_asleep())
    }

    /// Takes every second movable component from the queue, linked by `next`. At least one stays.
    fn take_some(&self) -> Option<*mut Component> {
        let (mut taken, mut last_taken) = (ptr::null_mut(), ptr::null_mut::<Component>());
        let (mut before, mut component) = (ptr::null_mut::<Component>(), self.first.get());
        let mut one_stays = !self.next.get().is_null();
        for _ in 0..FAR {
            if component.is_null() {
                break;
            }
            // SAFETY: queued components are parked and alive, and their links are the queue's.
            unsafe {
                let behind = (*component).next;
                if one_stays && self.mine.sharing.may_go(component) {
                    match before.is_null() {
                        true => self.first.set(behind),
                        false => (*before).next = behind,
                    }
                    if behind.is_null() {
                        self.last.set(before);
                    }
                    (*component).next = ptr::null_mut();
                    match last_taken.is_null() {
                        true => taken = component,
                        false => (*last_taken).next = component,
                    }
                    last_taken = component;
                    one_stays = false;
                } else {
                    before = component;
                    one_stays = true;
                }
                component = behind;
            }
        }
        (!taken.is_null()).then_some(taken)
    }
}

impl Sharing {
    /// Records the length of a component's run. True if it has no credit any more: it talks.
    ///
    /// # Safety
    /// As for `share`.
    unsafe fn note(&self, ran: *mut Component, took: u64) -> bool {
        // SAFETY: as the caller promises.
        let (known, kind) = unsafe { (&seat_of(ran).runs, (*ran).r#type) };
        let credit = match known.load(Ordering::Relaxed) {
            runs::FIXED.. => return false,
            runs::UNKNOWN => match self.note_first(kind, took) {
                true => FIRST_CREDIT,
                false => 0,
            },
            known => u64::from(known) - 1,
        };
        let credit = (credit + took.min(COUNTED) / 4)
            .saturating_sub(TAKEN)
            .min(MOST);
        known.store(1 + credit as u8, Ordering::Relaxed);
        credit == 0
    }

    /// Records the length of the first run of a component of this kind. True if it was long.
    fn note_first(&self, kind: *const ComponentType, took: u64) -> bool {
        let is_long = took >= FIRST;
        if !is_long {
            if self.kind.get() == kind {
                self.of_kind.set(0);
            }
        } else if self.kind.replace(kind) == kind {
            self.of_kind.set(self.of_kind.get() + 1);
        } else {
            self.of_kind.set(1);
        }
        is_long
    }

    /// Whether a queued component may move to another worker.
    ///
    /// # Safety
    /// It is ready, and its home's thread calls.
    unsafe fn may_go(&self, component: *mut Component) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            let seat = seat_of(component);
            let computes = match seat.runs.load(Ordering::Relaxed) {
                runs::UNKNOWN => {
                    self.kind.get() == (*component).r#type && self.of_kind.get() >= KINDS
                }
                runs::FIXED.. => false,
                known => u64::from(known) > COMPUTES,
            };
            computes
                && (*component).waiting != waiting::RETURNS
                && (*component).destination == 0
                && !seat.identity().service
                && !registry::is_main(seat)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::carrier::workers::is_kept_placed;
    use crate::ground::choices::Choices;
    use crate::seats::seat::{Identity, Seat};

    /// A component's block of memory.
    #[repr(C)]
    struct Body {
        seat: Seat,
        component: Component,
    }

    /// A component that never runs, leaked.
    fn component() -> *mut Component {
        let identity = Identity {
            id: 1,
            number: 1,
            service: false,
        };
        let body = Box::into_raw(Box::new(Body {
            seat: Seat::new(identity, Choices::default(), 0),
            // SAFETY: zero is a valid value of each of its fields.
            component: unsafe { std::mem::zeroed() },
        }));
        let _ = body.expose_provenance();
        // SAFETY: just made.
        unsafe { &raw mut (*body).component }
    }

    #[test]
    fn who_comes_home_may_be_placed_anew_and_is_not_shared_again() {
        let worker: &'static Worker = Box::leak(Box::new(Worker::new(0, None, false)));
        let component = component();
        // SAFETY: the component and its seat are this test's.
        unsafe {
            let seat = seat_of(component);
            // It was measured to compute, and the third worker gave it away.
            seat.runs.store(COMPUTES as u8 + 1, Ordering::Relaxed);
            seat.more.with_mut(|more| more.origin = 3);
            worker.call_home(component);
            assert_eq!((*component).destination, 3);
            assert!(!is_kept_placed(seat), "a plan may move it");
            (*component).destination = 0;
            assert!(!worker.mine.sharing.may_go(component));
            // At home it is not called back again, however little it runs.
            assert!(!worker.mine.sharing.note(component, 0));
            worker.call_home(component);
            assert_eq!((*component).destination, 0);
        }
    }

    #[test]
    fn who_was_placed_by_name_stays_so() {
        let worker: &'static Worker = Box::leak(Box::new(Worker::new(0, None, false)));
        let component = component();
        // SAFETY: as above.
        unsafe {
            let seat = seat_of(component);
            seat.runs.store(runs::STAYS, Ordering::Relaxed);
            worker.call_home(component);
            assert_eq!((*component).destination, 0);
            assert!(is_kept_placed(seat) && !worker.mine.sharing.may_go(component));
        }
    }
}
