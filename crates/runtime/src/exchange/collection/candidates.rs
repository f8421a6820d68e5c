//! Candidates for collection: components that wait, and the steps over all of them.

use std::collections::HashMap;
use std::time::Duration;

use super::search::Graph;
use crate::abi::{Component, Value};
use crate::exchange::carrier;
use crate::exchange::channel::visits::Visits;
use crate::exchange::channel::{self, Channel};
use crate::exchange::values::trace::{Found, Tracer};
use crate::exchange::{block, component};
use crate::ground::sync::{Ordering, fence};
use crate::hooks::simulation;
use crate::seats::offer::Sleep;
use crate::seats::registry::{self, Retained};
use crate::seats::seat::{Seat, Waiting, seat_of};

/// Components looked at together.
const AT_ONCE: usize = 256;
/// Entries of an index for each candidate, at most.
const INDEX_GROWTH: usize = 8;
/// Those who may wake a component that waits, for most: itself, and a peer.
const WAKERS: usize = 2;
/// Room that a list is given before the peers of a half-channel are added: most have fewer.
const ROOM_FOR_PEERS: usize = 64;
/// References to an idle component: that of its run, and the collector's.
const OF_A_SEAT: u32 = 2;
/// References to the half-channel of a port: its component's, and the collector's.
const OF_A_PORT: u32 = 2;
/// References to another half-channel: the collector's.
const OF_A_FREE_ONE: u32 = 1;

/// A component that waits, with a reference to it.
struct Candidate {
    seat: *const Seat,
    /// The component's number.
    id: u64,
    /// The wait in which its fields were read.
    sleep: Sleep,
    /// Its half-channels among all of [`Candidates::ports`], from this one on.
    first_port: u32,
    /// References to it, without that of its run and the collector's.
    references: i64,
    /// It was found live by itself.
    is_live: bool,
}

impl Candidate {
    fn seat(&self) -> &Seat {
        // SAFETY: alive by the candidate's reference.
        unsafe { &*self.seat }
    }
}

/// A half-channel, with a reference to it.
struct Half {
    channel: *mut Channel,
    /// References to it, without its component's and the collector's.
    references: i64,
}

impl Half {
    fn new(channel: *mut Channel) -> Half {
        Half {
            channel,
            references: 0,
        }
    }

    fn count_references(&mut self, own: u32) {
        // SAFETY: alive by the reference.
        let all = unsafe { (*self.channel).references() };
        self.references = i64::from(all) - i64::from(own);
    }
}

/// The target of a reference, by what stays the same when it is gone.
#[derive(Clone, Copy)]
enum Target {
    /// A component's number.
    Component(u64),
    /// A half-channel of a port: its component's number, and its own there.
    Port(u64, u16),
    /// The number of another half-channel among [`Candidates::free`].
    Free(u32),
}

/// Candidates in the order of their numbers, and who refers to whom.
#[derive(Default)]
pub(super) struct Candidates {
    all: Vec<Candidate>,
    ports: Vec<Half>,
    /// Half-channels that are no ports, to which candidates refer.
    free: Vec<Half>,
    free_at: HashMap<usize, u32>,
    /// References that candidates hold, by their indices; also by waiting at a half-channel.
    holds: Vec<(u32, Target)>,
    /// Half-channels at which candidates wait.
    waits: Vec<(u32, Target)>,
    /// Nodes of the graph that are connected to where a candidate waits; None is somebody outside.
    wakers: Vec<(Option<usize>, u32)>,
    index: Index,
    /// All that is known was taken into account.
    is_searched: bool,
    visits: Visits,
    tracer: Tracer,
}

/// The places of candidates by their numbers.
#[derive(Default)]
struct Index {
    first: u64,
    /// 1 + the place, of each number from the first on; empty if they lie far apart.
    places: Vec<u32>,
}

impl Index {
    fn of(all: &[Candidate]) -> Index {
        let (Some(first), Some(last)) = (all.first(), all.last()) else {
            return Index::default();
        };
        let span = (last.id - first.id) as usize + 1;
        if span / INDEX_GROWTH > all.len() {
            return Index::default();
        }
        let mut places = vec![0; span];
        for (place, one) in all.iter().enumerate() {
            places[(one.id - first.id) as usize] = narrow(place + 1);
        }
        Index {
            first: first.id,
            places,
        }
    }

    fn find(&self, id: u64, all: &[Candidate]) -> Option<usize> {
        if self.places.is_empty() {
            return all.binary_search_by_key(&id, |one| one.id).ok();
        }
        let behind = usize::try_from(id.checked_sub(self.first)?).ok()?;
        (*self.places.get(behind)? as usize).checked_sub(1)
    }
}

impl Candidates {
    /// The first step: looks at components one after another, while all run.
    ///
    /// # Safety
    /// Each has a reference of the caller's, which goes with it.
    pub(super) unsafe fn look(mut seats: Vec<Retained>) -> Candidates {
        seats.sort_by_key(|one| one.id);
        let mut candidates = Candidates::default();
        let at_once = match simulation::is_on() {
            true => 1,
            false => AT_ONCE,
        };
        for seats in seats.chunks(at_once) {
            simulation::meanwhile();
            // SAFETY: as the caller promises.
            unsafe { candidates.look_at_some(seats) };
        }
        after_all_of_it();
        candidates.index = Index::of(&candidates.all);
        candidates
    }

    /// # Safety
    /// As for [`Candidates::look`]; no component comes twice.
    unsafe fn look_at_some(&mut self, seats: &[Retained]) {
        // SAFETY: alive by the caller's references.
        let seats = seats.iter().map(|one| unsafe { &*one.seat });
        let asleep: Vec<_> = seats.map(|seat| (seat, self.fall_asleep(seat))).collect();
        self.visits.pause();
        simulation::meanwhile();
        // A component that waits and is not at work here has not only begun to wait: its code has
        // come to its end. It does not run again in the same sleep.
        let at_work = carrier::at_work();
        for (seat, sleep) in asleep {
            // SAFETY: as the caller promises.
            unsafe {
                let is_candidate = sleep.is_some_and(|sleep| self.read(seat, sleep, &at_work));
                if !is_candidate {
                    block::release(seat.component());
                }
            }
        }
    }

    /// The sleep of a component that may be garbage.
    fn fall_asleep(&mut self, seat: &Seat) -> Option<Sleep> {
        let component = seat.component();
        // SAFETY: alive by the caller's reference; types are static.
        let of = unsafe { &*(*component).r#type };
        if of.trace.is_none() || of.service || registry::is_main(seat) {
            return None;
        }
        self.visits.inflate(component);
        seat.state.sleep()
    }

    /// Reads what a sleeping component refers to, and makes it a candidate. False if it is awake,
    /// or waits for something else than others.
    ///
    /// # Safety
    /// The caller's reference to the component goes with it, if so. `at_work` was found since it
    /// fell asleep.
    unsafe fn read(&mut self, seat: &Seat, sleep: Sleep, at_work: &[*mut Component]) -> bool {
        let component = seat.component();
        let is_quiet = match carrier::home_of(component).is_null() {
            // A model's components have no code.
            true => cfg!(loom) || seat.parker.sleeps(),
            false => !at_work.contains(&component),
        };
        if !is_quiet {
            return false;
        }
        let Some(reading) = seat.state.read(sleep) else {
            return false;
        };
        let index = narrow(self.all.len());
        let (held, waited) = (self.holds.len(), self.waits.len());
        // SAFETY: it neither runs nor can be woken during the reading, so its fields and its offer
        // are this thread's, and what they refer to is alive.
        unsafe {
            let given = seat.offer.with(|offer| {
                for registration in &offer.registered {
                    let target = self.target(&*registration.channel.cast::<Channel>());
                    self.holds.push((index, target));
                    if sleep.is_open() {
                        self.waits.push((index, target));
                    }
                }
                let moves = sleep.is_open() && offer.waiting == Waiting::Send && offer.moves;
                moves.then_some((offer.payload, offer.value))
            });
            if let Some((of, Value { pointer })) = given
                && (*of).kind.is_reference()
            {
                self.tracer.add(&*of, pointer);
            }
            self.tracer.trace(component);
            let mut found = std::mem::take(&mut self.tracer);
            for one in found.take() {
                let target = match one {
                    Found::Component(one) => Target::Component(seat_of(one).id),
                    Found::HalfChannel(one) => self.target(&*one),
                };
                self.holds.push((index, target));
            }
            self.tracer = found;
        }
        drop(reading);
        let first_port = narrow(self.ports.len());
        let waits = !sleep.is_open() || self.waits.len() > waited;
        // SAFETY: alive by the caller's reference.
        let is_candidate = waits
            && unsafe {
                component::retain_ports(seat, |channel| self.ports.push(Half::new(channel)))
            };
        if !is_candidate {
            self.holds.truncate(held);
            self.waits.truncate(waited);
            return false;
        }
        self.all.push(Candidate {
            seat,
            id: seat.id,
            sleep,
            first_port,
            references: 0,
            is_live: false,
        });
        true
    }

    /// A half-channel as a target; one that is no port gets a reference.
    fn target(&mut self, channel: &Channel) -> Target {
        if let Some((owner, index)) = channel.port() {
            return Target::Port(owner, index);
        }
        let free = &mut self.free;
        let place = std::ptr::from_ref(channel);
        let index = self.free_at.entry(place.addr()).or_insert_with(|| {
            channel.retain();
            free.push(Half::new(place.cast_mut()));
            narrow(free.len() - 1)
        });
        Target::Free(*index)
    }

    /// The second: each still sleeps, and the references to it are counted.
    pub(super) fn look_at_components(&mut self) {
        for one in &mut self.all {
            one.is_live |= one.seat().state.sleep() != Some(one.sleep);
            one.references = i64::from(one.seat().references()) - i64::from(OF_A_SEAT);
        }
        after_all_of_it();
        self.is_searched = false;
    }

    /// The third: the references to half-channels are counted, and whom those are connected to at
    /// which somebody waits.
    pub(super) fn look_at_half_channels(&mut self) {
        for port in &mut self.ports {
            port.count_references(OF_A_PORT);
        }
        for half in &mut self.free {
            half.count_references(OF_A_FREE_ONE);
        }
        after_all_of_it();
        self.look_at_connections();
    }

    /// The third with a fault: as if nobody else had a half-channel.
    pub(super) fn overlook_half_channels(&mut self) {
        self.holds
            .retain(|(_, target)| matches!(target, Target::Component(_)));
        self.look_at_connections();
    }

    fn look_at_connections(&mut self) {
        let mut visits = std::mem::take(&mut self.visits);
        let mut wakers = Vec::with_capacity(WAKERS * self.waits.len());
        for &(index, target) in &self.waits {
            if wakers.capacity() - wakers.len() < ROOM_FOR_PEERS {
                // To copy a long list takes milliseconds, for which nobody is to be held up.
                visits.pause();
                wakers.reserve(wakers.len() + ROOM_FOR_PEERS);
            }
            if self.all[index as usize].is_live {
                continue;
            }
            let Some(channel) = self.channel(target) else {
                // Somebody else's port.
                wakers.push((None, index));
                continue;
            };
            wakers.push((self.node(target), index));
            // SAFETY: alive by the reference to it.
            visits.for_each_peer(unsafe { &*channel }, |peer| {
                let waker = match peer.port() {
                    Some((owner, _)) => self.find(owner),
                    None => {
                        let known = self.free_at.get(&std::ptr::from_ref(peer).addr());
                        known.map(|&free| self.all.len() + free as usize)
                    }
                };
                wakers.push((waker, index));
            });
        }
        visits.pause();
        self.visits = visits;
        self.wakers = wakers;
        after_all_of_it();
        self.find_live();
    }

    /// The fourth: each still sleeps.
    pub(super) fn look_whether_they_sleep(&mut self) {
        for one in self.all.iter_mut().filter(|one| !one.is_live) {
            one.is_live = one.seat().state.sleep() != Some(one.sleep);
            self.is_searched &= !one.is_live;
        }
        after_all_of_it();
        if !self.is_searched {
            self.find_live();
        }
    }

    /// The end of all steps: the garbage, with a reference to each.
    pub(super) fn into_garbage(mut self) -> Vec<*const Seat> {
        let mut garbage = Vec::new();
        for one in self.all.drain(..) {
            if one.is_live {
                // SAFETY: the candidate's reference, and no hub is locked.
                unsafe { block::release(one.seat().component()) };
            } else {
                garbage.push(one.seat);
            }
        }
        garbage
    }

    /// The longest time for which a worker could not use its half-channels.
    pub(super) fn longest_hold(&self) -> Duration {
        self.visits.longest()
    }

    /// Marks the live ones, and those that they can wake, by what is known so far.
    fn find_live(&mut self) {
        let mut graph = Graph::default();
        for one in &self.all {
            let node = graph.node();
            graph.counted(node, one.references);
            if one.is_live {
                graph.wakes_from_outside(node);
            }
        }
        let mut owner = 0;
        for (index, port) in self.ports.iter().enumerate() {
            while self.first_port(owner + 1) <= index {
                owner += 1;
            }
            graph.counted(owner, port.references);
        }
        for half in &self.free {
            let node = graph.node();
            graph.counted(node, half.references);
        }
        for &(holder, target) in &self.holds {
            if let Some(counted) = self.counted(target) {
                graph.reference(holder as usize, counted);
            }
        }
        for &(waker, woken) in &self.wakers {
            match waker {
                Some(waker) => graph.wakes(waker, woken as usize),
                None => graph.wakes_from_outside(woken as usize),
            }
        }
        for (one, is_live) in self.all.iter_mut().zip(graph.live()) {
            one.is_live = is_live;
        }
        self.is_searched = true;
    }

    /// The index of the first half-channel of a candidate, or the number of all.
    fn first_port(&self, index: usize) -> usize {
        let next = self.all.get(index);
        next.map_or(self.ports.len(), |one| one.first_port as usize)
    }

    /// The index of a port's half-channel, if its component is a candidate.
    fn port(&self, owner: u64, number: u16) -> Option<usize> {
        let owner = self.find(owner)?;
        Some(self.first_port(owner) + number as usize)
    }

    fn channel(&self, target: Target) -> Option<*mut Channel> {
        match target {
            Target::Component(_) => None,
            Target::Port(owner, number) => Some(self.ports[self.port(owner, number)?].channel),
            Target::Free(index) => Some(self.free[index as usize].channel),
        }
    }

    /// The node to which a target belongs, of the graph: candidates, then free half-channels.
    fn node(&self, target: Target) -> Option<usize> {
        match target {
            Target::Component(id) | Target::Port(id, _) => self.find(id),
            Target::Free(index) => Some(self.all.len() + index as usize),
        }
    }

    /// The number of a target among those with counted references, in the same order: candidates,
    /// ports, free half-channels.
    fn counted(&self, target: Target) -> Option<usize> {
        match target {
            Target::Component(id) => self.find(id),
            Target::Port(owner, number) => Some(self.all.len() + self.port(owner, number)?),
            Target::Free(index) => Some(self.all.len() + self.ports.len() + index as usize),
        }
    }

    fn find(&self, id: u64) -> Option<usize> {
        self.index.find(id, &self.all)
    }
}

impl Drop for Candidates {
    fn drop(&mut self) {
        // SAFETY: the references are the candidates', and no hub is locked.
        unsafe {
            for half in self.ports.iter().chain(&self.free) {
                channel::release(half.channel);
            }
            for one in &self.all {
                block::release(one.seat().component());
            }
        }
    }
}

fn narrow(number: usize) -> u32 {
    match u32::try_from(number) {
        Ok(narrow) => narrow,
        Err(_) => unreachable!("each candidate and each half-channel takes memory"),
    }
}

/// Orders a look at the whole before the next.
fn after_all_of_it() {
    fence(Ordering::SeqCst);
}
