//! Checks the runtime's promises during a simulation: each value is delivered once, each component
//! is woken, and no waiting peer is passed over.

use std::collections::HashMap;

use super::trace::What;
use crate::abi::{Component, DEFAULT, Site};
use crate::exchange::channel::inflate::inflate;
use crate::exchange::channel::{Channel, Direction, hub, link};
use crate::seats::offer::Stage;
use crate::seats::registry;
use crate::seats::seat::{Seat, seat_of};
use crate::seats::waiting;

/// Half-channels with more peers are not watched for starvation: each message would take as long.
const PEERS_WATCHED: usize = 64;

/// Most times that others may be served before a waiting peer. By the protocol it is `peers - 1`. A
/// group that changes its grade may restart the turn, after which its present peers make at most
/// as many turns as there are grades; the rest leaves room for connections that come and go.
fn patience(peers: usize) -> u32 {
    4 * peers as u32 + 16
}

/// An operation under way.
pub(super) struct Open {
    pub(super) what: What,
    pub(super) site: Site,
    channel: *const Channel,
    /// Times that its value was taken.
    taken: u32,
    /// Values that arrived for it.
    came: u32,
}

/// The simulator's record of a component.
pub(super) struct Record {
    /// True if it was set aside after a finished operation or pass.
    pub(super) is_paused: bool,
    /// Passes left to it.
    pub(super) passes: u64,
    pub(super) open: Option<Open>,
    /// It has called an operation visible to the simulator.
    is_seen: bool,
}

impl Record {
    pub(super) fn new(passes: u64) -> Record {
        Record {
            is_paused: false,
            passes,
            open: None,
            is_seen: false,
        }
    }
}

/// The senders that wait at an `out` half-channel.
#[derive(Default)]
struct Waiters {
    senders: Vec<*mut Component>,
    /// Keyed by `in` half-channel: events there since a sender waits here.
    passed_over: Vec<Turns>,
}

/// Events at an `in` half-channel while a sender waited at one of its peers.
struct Turns {
    into: *const Channel,
    /// Times that others were served.
    others: u32,
    /// Most peers it had.
    peers: usize,
}

/// A fault of the runtime, in words.
#[must_use]
pub(super) struct Fault {
    pub(super) kind: &'static str,
    pub(super) story: String,
}

#[derive(Default)]
pub(super) struct Checks {
    records: HashMap<*mut Component, Record>,
    /// Keyed by `out` half-channel.
    waiting: HashMap<*const Channel, Waiters>,
    /// The half-channel of the last sender served.
    served: Option<*const Channel>,
    fault: Option<Fault>,
}

// SAFETY: only the simulator's thread follows the pointers, while nothing else runs.
unsafe impl Send for Checks {}

fn name(component: *mut Component) -> String {
    // SAFETY: components that take part in a message are alive.
    registry::name_of(unsafe { seat_of(component) })
}

/// Tells whether it still waits for a receiver. A component that was only stopped has not run
/// since.
///
/// # Safety
/// The component is alive.
unsafe fn still_sends(component: *mut Component) -> bool {
    // SAFETY: as the caller promises; nothing else runs.
    unsafe {
        match (*component).waiting {
            waiting::SENDS..=waiting::SENDS_MOVING => true,
            waiting::LINKED => !link::is_over(&*(*component).waits_at.cast::<Channel>()),
            waiting::OFFERS => seat_of(component).state.stage() == Stage::Open,
            _ => false,
        }
    }
}

impl Checks {
    pub(super) fn made(&mut self, component: *mut Component, passes: u64) {
        self.records.insert(component, Record::new(passes));
    }

    pub(super) fn record(&mut self, component: *mut Component) -> &mut Record {
        self.records
            .entry(component)
            .or_insert_with(|| Record::new(u64::MAX))
    }

    pub(super) fn ended(&mut self, component: *mut Component) {
        self.forget_waiting(component);
        self.records.remove(&component);
    }

    /// Returns the first fault found.
    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    fn blame(&mut self, kind: &'static str, story: String) {
        self.fault.get_or_insert(Fault { kind, story });
    }

    // ---- messages -----------------------------------------------------------------------------

    pub(super) fn begins(
        &mut self,
        component: *mut Component,
        what: What,
        channel: *const Channel,
        site: Site,
    ) {
        self.served = None;
        let record = self.record(component);
        record.is_seen = true;
        record.open = Some(Open {
            what,
            site,
            channel,
            taken: 0,
            came: 0,
        });
    }

    /// Records that it waits from here on.
    pub(super) fn waits(&mut self, component: *mut Component) {
        let Some(open) = &self.record(component).open else {
            return;
        };
        let (what, channel, taken) = (open.what, open.channel, open.taken);
        if what == What::Send && taken == 0 {
            self.waiting
                .entry(channel)
                .or_default()
                .senders
                .push(component);
        }
    }

    /// Records that a value passes from one component to another.
    pub(super) fn passed(&mut self, from: *mut Component, to: *mut Component) {
        if let Some(record) = self.records.get_mut(&from).filter(|record| record.is_seen) {
            let sends = record.open.as_mut().filter(|open| open.what == What::Send);
            let is_first = match sends {
                Some(open) => {
                    open.taken += 1;
                    self.served = Some(open.channel);
                    open.taken == 1
                }
                None => false,
            };
            self.forget_waiting(from);
            if !is_first {
                let story = format!(
                    "{} got a value of {} for the second time",
                    name(to),
                    name(from)
                );
                self.blame("double delivery", story);
            }
        }
        self.ticked(to);
    }

    /// Records that a value comes to a component.
    pub(super) fn ticked(&mut self, to: *mut Component) {
        let Some(record) = self.records.get_mut(&to).filter(|record| record.is_seen) else {
            return;
        };
        let receives = record.open.as_mut().filter(|open| open.what != What::Send);
        let is_first = receives.is_some_and(|open| {
            open.came += 1;
            open.came == 1
        });
        if !is_first {
            let story = format!("a value came to {}, which did not ask for it", name(to));
            self.blame("double delivery", story);
        }
    }

    /// Records that an operation has ended, well or not.
    pub(super) fn ends(&mut self, component: *mut Component, is_done: bool) -> Option<Open> {
        self.forget_waiting(component);
        let open = self.record(component).open.take()?;
        // SAFETY: the component is the simulator's now.
        let by_default = open.what == What::Select && unsafe { (*component).arm } == DEFAULT;
        let complaint = match open.what {
            _ if !is_done => None,
            What::Send if open.taken == 0 => Some("nobody got the value that it sent"),
            What::Send => None,
            _ if by_default => None,
            _ if open.came == 0 => Some("it goes on after a receive, and no value came"),
            _ => None,
        };
        if let Some(complaint) = complaint {
            let story = format!("{}: {complaint}", name(component));
            self.blame("lost message", story);
        }
        Some(open)
    }

    // ---- turns --------------------------------------------------------------------------------

    fn forget_waiting(&mut self, component: *mut Component) {
        let Some(open) = self
            .records
            .get(&component)
            .and_then(|record| record.open.as_ref())
        else {
            return;
        };
        let channel = open.channel;
        if let Some(waiters) = self.waiting.get_mut(&channel) {
            waiters.senders.retain(|&other| other != component);
            if waiters.senders.is_empty() {
                self.waiting.remove(&channel);
            }
        }
    }

    /// Records that a running component has taken a value at `into`.
    ///
    /// # Safety
    /// The half-channel is alive, and nothing else runs.
    pub(super) unsafe fn took(&mut self, into: &Channel) {
        let Some(served) = self.served.take() else {
            return;
        };
        // SAFETY: as the caller promises.
        let peers = unsafe { into.peer_count() };
        if !(2..=PEERS_WATCHED).contains(&peers) {
            return;
        }
        for index in 0..peers {
            // SAFETY: as above.
            let out = unsafe { into.peer(index) }.as_ptr().cast_const();
            let Some(waiters) = self.waiting.get_mut(&out) else {
                continue;
            };
            // SAFETY: waiting components are alive.
            let waits = waiters
                .senders
                .iter()
                .any(|&one| unsafe { still_sends(one) });
            let known = waiters
                .passed_over
                .iter()
                .position(|turns| std::ptr::eq(turns.into, into));
            let place = known.unwrap_or_else(|| {
                waiters.passed_over.push(Turns {
                    into,
                    others: 0,
                    peers,
                });
                waiters.passed_over.len() - 1
            });
            let turns = &mut waiters.passed_over[place];
            if std::ptr::eq(out, served) || !waits {
                turns.others = 0;
                turns.peers = peers;
                continue;
            }
            turns.others += 1;
            turns.peers = turns.peers.max(peers);
            if turns.others > patience(turns.peers) {
                let story = format!(
                    "{} waits as one of {} peers, and the others were served {} times meanwhile",
                    name(waiters.senders[0]),
                    turns.peers,
                    turns.others,
                );
                self.blame("starvation", story);
                return;
            }
        }
    }
}

// ---- wake-ups ---------------------------------------------------------------------------------

/// Finds a component that was not woken though its wait is over. Nothing is ready anywhere, and
/// nothing runs.
pub(super) fn unwoken() -> Option<Fault> {
    // SAFETY: nothing runs, as said above.
    first_fault(|seat| unsafe { is_unwoken(seat) })
}

/// Finds a sender and a receiver that wait for each other. Nothing runs, and nothing will: light
/// waits are offers afterwards.
pub(super) fn unmatched() -> Option<Fault> {
    // SAFETY: nothing runs, as said above.
    first_fault(|seat| unsafe { is_unmatched(seat) })
}

fn first_fault(story: impl Fn(&Seat) -> Option<String>) -> Option<Fault> {
    let mut seats = Vec::new();
    registry::for_each(|seat| seats.push(std::ptr::from_ref(seat)));
    // SAFETY: nothing runs, so no component ends meanwhile.
    let story = seats.iter().find_map(|&seat| story(unsafe { &*seat }))?;
    Some(Fault {
        kind: "lost wake-up",
        story,
    })
}

/// # Safety
/// Nothing runs.
unsafe fn is_unwoken(seat: &Seat) -> Option<String> {
    let component = seat.component();
    // SAFETY: as the caller promises.
    let is_over = unsafe {
        match (*component).waiting {
            waiting::LINKED => link::is_over(&*(*component).waits_at.cast::<Channel>()),
            waiting::OFFERS => !matches!(
                seat.state.stage(),
                Stage::Open | Stage::Held | Stage::Outside
            ),
            waiting::NOTHING | waiting::SELECTED => true,
            _ => false,
        }
    };
    is_over.then(|| {
        format!(
            "{} can go on, and nobody has woken it",
            registry::name_of(seat)
        )
    })
}

/// Describes a component's wait from its offer; light waits are offers afterwards.
///
/// # Safety
/// Nothing runs.
unsafe fn is_unmatched(seat: &Seat) -> Option<String> {
    inflate(seat.component());
    if seat.state.stage() != Stage::Open {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe {
        seat.offer.with(|offer| {
            offer.registered.iter().find_map(|registration| {
                let channel = &*registration.channel.cast::<Channel>();
                if channel.direction != Direction::In {
                    return None;
                }
                let peers = {
                    let _guard = hub::lock_of(channel);
                    channel.peers()
                };
                let sends = |peer: &Channel| {
                    let _guard = hub::lock_of(peer);
                    peer.inner.with(|inner| {
                        let open = |seat: &Seat| seat.state.stage() == Stage::Open;
                        let sender = inner.queue.iter().find(|waiter| open(&*waiter.seat));
                        sender.map(|waiter| registry::name_of(&*waiter.seat))
                    })
                };
                let sender = peers.iter().find_map(|peer| sends(peer.as_ref()))?;
                Some(format!(
                    "{sender} waits to send and {} to receive, and they are connected",
                    registry::name_of(seat)
                ))
            })
        })
    }
}
