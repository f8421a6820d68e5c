//! Links: a cache line between two half-channels of two workers, connected only to each other.
//!
//! The line has the values, and a word for waits and for handed-over values. Either side changes
//! the word by exchange, in a section of its own worker ([`Linked`]), without locks. A value for a
//! waiting receiver is *given*, and its sender continues. Otherwise the sender waits with its value
//! in the line, *full*, until the receiver has *taken* it.
//!
//! ```text
//!   sender                                  receiver
//!   WAITS?  value in `given`,               FULL?  value out of `full`,
//!           WAITS → GIVEN, continues               FULL → TAKEN, continues
//!   else    value in `full`, FULL, blocked  else   WAITS, blocked
//!   polls for TAKEN                         polls for GIVEN
//! ```
//!
//! A bit stays in the word after its side has seen it: clearing it at once would fetch the line for
//! writing, only to have it fetched back. The side's next wait clears it. A side's own slot, which
//! belongs to its worker, says whether it waits.
//!
//! Before it parks, a side looks at the word for a short while. A receiver in a stream looks for
//! FULL before it writes WAITS: `docs/internals/workers.md` says what that saves.
//!
//! A blocked side is in its worker's *watch list*, which the worker checks now and then, and
//! continuously while it is idle. Before the worker sleeps, and when the list is full, it sets the
//! side's TELL bit instead; the other side then posts the component to its worker when it gives or
//! takes. So the word is all that a message's path checks.
//!
//! Every other case (a stop, a disconnect, a select, a third party) first *unlinks*: with both
//! workers' leave, waits become offers, values handed over are delivered, and the two half-channels
//! get a hub. Lines are never freed before the end of their runtime, only reused, so that a stale
//! one can be read: see [`unlink`].

use std::ptr::{self, NonNull};

use super::{Channel, Direction, hub, light, transfer};
use crate::abi::{Component, FOUND_FULL, Site, Step, Value};
use crate::exchange::carrier::{self, Linked, Worker};
use crate::exchange::line::{
    FULL, GIVEN, Line, TAKEN, TELL_RECEIVER, TELL_SENDER, WAITS, Watch, of_mark,
};
use crate::ground::sync::{Ordering, spin_loop};
use crate::ground::without::Mechanism;
use crate::hooks::{Canary, sings};
use crate::seats::waiting;

/// In the slot of an end: its component waits.
const OCCUPIED: usize = light::HEAVY;

// ---- making and ending ------------------------------------------------------------------------

/// Whether these two can be linked: each is the other's only peer, with another worker, and nothing
/// is pending.
///
/// # Safety
/// The caller has locked their hub.
unsafe fn are_fit(channel: &Channel, peer: &Channel) -> bool {
    let (mine, theirs) = (channel.home(), peer.home());
    // SAFETY: as the caller promises.
    let are_quiet = unsafe {
        [channel, peer]
            .iter()
            .all(|end| end.slot.get() == 0 && end.inner.with(|inner| inner.watch.is_none()))
    };
    let stay = !channel.is_of_one_that_comes() && !peer.is_of_one_that_comes();
    !mine.is_null()
        && !theirs.is_null()
        && mine != theirs
        && ptr::eq(peer.sole.get(), channel)
        && are_quiet
        && stay
        && !Mechanism::Link.is_off()
}

/// Links a half-channel with its only peer, if possible. The hub's guard must be dropped next.
///
/// # Safety
/// The caller has locked the half-channel's hub.
pub(super) unsafe fn try_link(channel: &Channel, guard: &mut hub::HubGuard) -> bool {
    // SAFETY: as the caller promises; peers are alive.
    unsafe {
        let Some(peer) = channel.sole.get().as_ref() else {
            return false;
        };
        if !are_fit(channel, peer) {
            return false;
        }
        let (out, into) = match channel.direction {
            Direction::Out => (channel, peer),
            Direction::In => (peer, channel),
        };
        let marks = (
            carrier::mark_of(out.home()).unwrap_or(0),
            carrier::mark_of(into.home()).unwrap_or(0),
        );
        let line = Line::new();
        line.word.store(0, Ordering::Relaxed);
        line.ends.out.set(out.opaque());
        line.ends.into.set(into.opaque());
        line.ends.out_worker.store(marks.0, Ordering::Relaxed);
        line.ends.into_worker.store(marks.1, Ordering::Relaxed);
        for end in [out, into] {
            hub::leave(guard, end);
        }
        // One after the other: see `unlink`.
        hub::move_to(out, line.mark());
        hub::move_to(into, line.mark());
        true
    }
}

fn workers(line: &Line) -> (Option<&'static Worker>, Option<&'static Worker>) {
    (
        carrier::of_mark(line.ends.out_worker.load(Ordering::Relaxed)),
        carrier::of_mark(line.ends.into_worker.load(Ordering::Relaxed)),
    )
}

/// Makes a half-channel linked by this line shared, unless it has been unlinked.
pub(crate) fn unlink(channel: &Channel, line: &'static Line) {
    let (Some(a), Some(b)) = workers(line) else {
        // Another thread has just ended it; the caller looks again.
        spin_loop();
        return;
    };
    // The line may have come to serve another link between the two loads, and half of this pair be
    // of that. The leave of one worker is never taken twice.
    if ptr::eq(a, b) {
        return;
    }
    let _holds = carrier::hold_both(a, b);
    let is_current = channel.is_at(line.mark())
        && matches!(workers(line), (Some(c), Some(d)) if ptr::eq(a, c) && ptr::eq(b, d));
    if !is_current {
        // The line has come to serve others meanwhile; the caller looks again.
        return;
    }
    // SAFETY: it serves this half-channel, so its ends stay as long as we hold both workers' leave.
    let (out, into) = unsafe {
        let of = |end: *const crate::abi::Channel| &*end.cast::<Channel>();
        (of(line.ends.out.get()), of(line.ends.into.get()))
    };
    if !out.is_at(line.mark()) || !into.is_at(line.mark()) {
        // The linking thread has moved one, and is about to move the other.
        spin_loop();
        return;
    }
    // SAFETY: we hold both workers' leave, so no other thread touches the line, its half-channels,
    // or the components that wait here.
    unsafe {
        let word = line.word.swap(0, Ordering::Acquire);
        #[cfg(loom)]
        let word = crate::ground::planted_faults::faults::forget_given(word, GIVEN);
        // A waiting component is in its slot. The word is checked as well only because a model
        // plants a fault.
        if into.slot.replace(0) != 0 && word & (GIVEN | WAITS) != 0 {
            let receiver = line.receiver.get();
            a_or_b(receiver, a, b).forget(line, false);
            if word & GIVEN != 0 {
                (*receiver).received = line.given.get();
                (*receiver).arm = 0;
                waiting::served_at_link(receiver);
                if word & TELL_RECEIVER == 0 {
                    carrier::post(receiver);
                }
            } else {
                (*receiver).waiting = waiting::RECEIVES;
                light::inflate(receiver);
            }
        }
        if out.slot.replace(0) != 0 && word & (TAKEN | FULL) != 0 {
            let sender = line.sender.get();
            a_or_b(sender, a, b).forget(line, true);
            if word & TAKEN != 0 {
                waiting::served_at_link(sender);
                if word & TELL_SENDER == 0 {
                    carrier::post(sender);
                }
            } else {
                (*sender).received = line.full.get();
                (*sender).waiting = line.manner.get();
                light::inflate(sender);
            }
        }
        hub::found(&[NonNull::from(out), NonNull::from(into)]);
    }
    line.ends.out_worker.store(0, Ordering::Relaxed);
    line.ends.into_worker.store(0, Ordering::Relaxed);
    line.put_by();
}

fn a_or_b(component: *mut Component, a: &'static Worker, b: &'static Worker) -> &'static Worker {
    // SAFETY: the component is alive, and both its possible homes are held.
    if ptr::eq(unsafe { (*component).home.cast::<Worker>() }, a) {
        a
    } else {
        b
    }
}

// ---- sending and receiving --------------------------------------------------------------------

/// Parks the running component at its end of a link.
///
/// # Safety
/// It runs the calling code, which returns Blocked to its carrier.
unsafe fn park(component: *mut Component, channel: &Channel, site: *const Site) {
    // SAFETY: the component's own fields.
    unsafe {
        channel.slot.set(OCCUPIED);
        (*component).waits_at = channel.opaque().cast_mut();
        (*component).waits_in = site;
        (*component).waiting = waiting::LINKED;
        (*component).outcome = Step::Done as u8;
        carrier::parks(component);
    }
}

/// Changes the word by `next`, which may be called again with a changed word.
fn change(line: &Line, next: impl Fn(usize) -> Option<usize>) -> Result<usize, usize> {
    // Acquire and Release: the values travel with the word, both ways.
    line.word
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
}

/// Whether the other side must be told: its worker does not watch, according to the word before the
/// change.
fn is_to_tell(before: Result<usize, usize>, tell: usize) -> bool {
    #[cfg(loom)]
    if crate::ground::planted_faults::faults::tells_nobody() {
        return false;
    }
    before.is_ok_and(|word| word & tell != 0)
}

/// Sends over a link. None if that takes the general protocol.
///
/// # Safety
/// As for `rendezvous::send`.
pub(super) unsafe fn send(
    component: *mut Component,
    channel: &Channel,
    value: Value,
    moves: bool,
    site: *const Site,
) -> Option<Step> {
    // SAFETY: linked, so this end is the caller's; the rest as the caller promises.
    unsafe {
        let (linked, line) = Linked::new(component, channel)?;
        if channel.slot.get() != 0 {
            return None;
        }
        (*component).history &= !FOUND_FULL;
        line.fetch();
        loop {
            let seen = line.word.load(Ordering::Acquire);
            if seen & WAITS != 0 {
                // Only this side ends a wait, so the receiver stays: parked, or looking.
                let receiver = line.receiver.get();
                let payload = &*channel.payload();
                line.given
                    .set(transfer::pass(component, receiver, payload, value, moves));
                let before = change(line, |word| Some(word & !WAITS | GIVEN));
                drop(linked);
                let forgets = sings(Canary::LostWakeUp);
                if is_to_tell(before, TELL_RECEIVER) && !forgets {
                    carrier::post(receiver);
                }
                return Some(Step::Done);
            }
            line.full.set(value);
            line.manner.set(light::manner(&*channel.payload(), moves));
            line.sender.set(component);
            let watches = linked.can_watch();
            let tell = if watches { 0 } else { TELL_SENDER };
            let next = |word: usize| {
                let kept = word & !(TAKEN | TELL_SENDER);
                (word & WAITS == 0).then_some(kept | FULL | tell)
            };
            if change(line, next).is_ok() {
                if watches && linked.begin_look() && line.comes_to(TAKEN) {
                    return Some(Step::Done);
                }
                if watches {
                    linked.watch(line, true);
                }
                park(component, channel, site);
                return Some(Step::Blocked);
            }
        }
    }
}

/// Receives over a link. None if that takes the general protocol.
///
/// # Safety
/// As for `rendezvous::receive`.
pub(super) unsafe fn receive(
    component: *mut Component,
    channel: &Channel,
    site: *const Site,
) -> Option<Step> {
    // SAFETY: as in `send`.
    unsafe {
        let (linked, line) = Linked::new(component, channel)?;
        if channel.slot.get() != 0 {
            return None;
        }
        let streams = (*component).history & FOUND_FULL != 0;
        if !(streams && linked.begin_look() && line.comes_to(FULL)) {
            line.fetch();
        }
        loop {
            let seen = line.word.load(Ordering::Acquire);
            if seen & FULL != 0 {
                // Only this side ends the wait, so the sender stays: parked, or looking.
                let sender = line.sender.get();
                let moves = line.manner.get() == waiting::SENDS_MOVING;
                let payload = &*channel.payload();
                (*component).received =
                    transfer::pass(sender, component, payload, line.full.get(), moves);
                (*component).arm = 0;
                (*component).history |= FOUND_FULL;
                if seen & TELL_SENDER != 0 && sings(Canary::DoubleDelivery) {
                    return Some(Step::Done);
                }
                let before = change(line, |word| Some(word & !FULL | TAKEN));
                drop(linked);
                if is_to_tell(before, TELL_SENDER) {
                    carrier::post(sender);
                }
                return Some(Step::Done);
            }
            (*component).history &= !FOUND_FULL;
            line.receiver.set(component);
            let watches = linked.can_watch();
            let tell = if watches { 0 } else { TELL_RECEIVER };
            let next = |word: usize| {
                let kept = word & !(GIVEN | TELL_RECEIVER);
                (word & FULL == 0).then_some(kept | WAITS | tell)
            };
            if change(line, next).is_ok() {
                if watches && linked.begin_look() && line.comes_to(GIVEN) {
                    (*component).received = line.given.get();
                    (*component).arm = 0;
                    return Some(Step::Done);
                }
                if watches {
                    linked.watch(line, false);
                }
                park(component, channel, site);
                return Some(Step::Blocked);
            }
        }
    }
}

// ---- the end of a wait ------------------------------------------------------------------------

/// The component of a watched end, if its wait is over.
///
/// # Safety
/// The caller has its worker's leave.
pub(crate) unsafe fn look(watch: &Watch) -> Option<*mut Component> {
    // SAFETY: as the caller promises.
    watch.is_over().then(|| unsafe { deliver(watch) })
}

/// Makes the other side tell from now on; returns the component if its wait is over already.
///
/// # Safety
/// As for `look`.
pub(crate) unsafe fn have_told(watch: &Watch) -> Option<*mut Component> {
    // SAFETY: as the caller promises.
    watch.asks_to_be_told().then(|| unsafe { deliver(watch) })
}

/// # Safety
/// As for `look`; the wait is over.
unsafe fn deliver(watch: &Watch) -> *mut Component {
    // SAFETY: as the caller promises, the component is parked and the caller's.
    unsafe {
        let component = watch.take();
        (*component).waiting = waiting::NOTHING;
        (*(*component).waits_at.cast::<Channel>()).slot.set(0);
        component
    }
}

/// Whether the wait of a component blocked at a link is over. For the simulator's checks, while
/// nothing else runs.
pub(crate) fn is_over(channel: &Channel) -> bool {
    of_mark(channel.where_it_is())
        .is_some_and(|line| Watch::new(line, channel.direction == Direction::Out).is_over())
}

/// Takes a posted component's result from its link, before it is resumed.
///
/// # Safety
/// The component is ready, and the caller runs its worker.
pub(crate) unsafe fn settle(component: *mut Component) {
    // SAFETY: as the caller promises; workers live as long as their runtime.
    unsafe {
        let home: &'static Worker = &*(*component).home.cast::<Worker>();
        let _hold = home.hold();
        if (*component).waiting != waiting::LINKED {
            // Unlinked meanwhile, and so delivered.
            return;
        }
        let channel = &*(*component).waits_at.cast::<Channel>();
        let Some(line) = of_mark(channel.where_it_is()) else {
            unreachable!("who waits at a link is delivered as it ends");
        };
        deliver(&Watch::new(line, channel.direction == Direction::Out));
    }
}
