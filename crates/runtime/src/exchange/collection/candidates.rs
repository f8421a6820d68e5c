//! Candidates for collection: components that wait, and the steps over all of them.

use crate::ground::sync::{Ordering, fence};

use super::search::Graph;
use crate::exchange::channel::inflate::inflate;
use crate::exchange::channel::{self, Channel, hub, queue};
use crate::exchange::{block, component};
use crate::hooks::simulation;
use crate::seats::registry;
use crate::seats::seat::Seat;

/// References to an idle component: that of its run, and the collector's.
const OF_A_SEAT: u32 = 2;
/// References to the half-channel of a port: its component's, and the collector's. Each entry in
/// its queue adds one.
const OF_A_PORT: u32 = 2;

/// A component that waits at its own ports only, with a reference to it and to each of these.
struct Candidate {
    seat: *const Seat,
    ports: Vec<Port>,
    /// The number of the operation that it waits in.
    round: u64,
    /// References to it that others have.
    references: i64,
    /// It was found live.
    is_live: bool,
}

struct Port {
    channel: *mut Channel,
    /// Number of its component's entries in the queue.
    entries: u32,
    /// References to it that others have.
    references: i64,
}

impl Port {
    fn count_references(&mut self) {
        // SAFETY: alive by the candidate's reference.
        let all = unsafe { (*self.channel).references() };
        self.references = i64::from(all) - i64::from(OF_A_PORT + self.entries);
    }
}

impl Candidate {
    /// Looks at a component; takes over the reference to it. None if it is live. `is_blind`: it
    /// sees no references.
    ///
    /// # Safety
    /// The caller's reference is counted.
    unsafe fn new(seat: *const Seat, is_blind: bool) -> Option<Candidate> {
        // SAFETY: alive by the reference, which the candidate keeps.
        unsafe {
            let mut candidate = Candidate {
                seat,
                ports: Vec::new(),
                round: 0,
                references: 0,
                is_live: false,
            };
            let seat = &*seat;
            if registry::is_main(seat) || seat.identity().service {
                return None;
            }
            if !is_blind {
                candidate.count_references();
            }
            if candidate.references != 0 {
                return None;
            }
            inflate(seat.component());
            candidate.round = seat.state.open_round()?;
            candidate.ports = component::retain_ports(seat)?
                .into_iter()
                .map(|channel| Port {
                    channel,
                    entries: 0,
                    references: 0,
                })
                .collect();
            let (mut here, mut all) = (0, 0);
            for port in &mut candidate.ports {
                let _guard = hub::lock_of(&*port.channel);
                let (entries, arms) = queue::entries_of(&*port.channel, seat);
                port.entries = entries;
                here += entries;
                all = all.max(u32::from(arms));
            }
            // A select may wait elsewhere, too, or be about to: it opens its offer first.
            let waits_here = here > 0 && here == all;
            if !is_blind {
                candidate.count_references_to_ports();
            }
            let is_left_alone = candidate.ports.iter().all(|port| port.references == 0);
            (waits_here && is_left_alone).then_some(candidate)
        }
    }

    fn seat(&self) -> &Seat {
        // SAFETY: alive by the candidate's reference.
        unsafe { &*self.seat }
    }

    fn count_references(&mut self) {
        self.references = i64::from(self.seat().references()) - i64::from(OF_A_SEAT);
    }

    fn count_references_to_ports(&mut self) {
        self.ports.iter_mut().for_each(Port::count_references);
    }

    /// Marks it as live unless it has slept since the first look.
    fn must_sleep(&mut self) {
        self.is_live |= self.seat().state.open_round() != Some(self.round);
    }

    /// Calls `tell` with the number of each component that is connected to where it waits; None is
    /// a half-channel that is no port.
    fn for_each_waker(&self, mut tell: impl FnMut(Option<u64>)) {
        for port in self.ports.iter().filter(|port| port.entries > 0) {
            // SAFETY: alive by the candidate's references, and locked: peers are alive.
            unsafe {
                let _guard = hub::lock_of(&*port.channel);
                for peer in (*port.channel).peers() {
                    tell(peer.as_ref().owner().map(|owner| owner.id));
                }
            }
        }
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        // SAFETY: the candidate's references, and no hub is locked.
        unsafe {
            for port in &self.ports {
                channel::release(port.channel);
            }
            block::release(self.seat().component());
        }
    }
}

/// Candidates in the order of their numbers.
pub(super) struct Candidates(Vec<Candidate>);

impl Candidates {
    /// The first step: looks at components one after another, while all run. The references that
    /// it sees only spare the other steps work; so faults planted in those show sooner if it is
    /// blind.
    ///
    /// # Safety
    /// Each has a reference of the caller's, which goes with it.
    pub(super) unsafe fn look(seats: Vec<*const Seat>, is_blind: bool) -> Candidates {
        let look = |seat| {
            simulation::meanwhile();
            // SAFETY: as the caller promises.
            unsafe { Candidate::new(seat, is_blind) }
        };
        let mut found: Vec<Candidate> = seats.into_iter().filter_map(look).collect();
        found.sort_by_key(|one| one.seat().id);
        found.dedup_by_key(|one| one.seat().id);
        after_all_of_it();
        let mut candidates = Candidates(found);
        candidates.remove_live();
        candidates
    }

    /// The second: each still sleeps, and the references to it are counted.
    pub(super) fn look_at_components(&mut self) {
        for one in &mut self.0 {
            one.must_sleep();
            one.count_references();
        }
        after_all_of_it();
    }

    /// The third: the references to their half-channels are counted, and whom these are connected
    /// to.
    pub(super) fn look_at_half_channels(&mut self) {
        self.0
            .iter_mut()
            .for_each(Candidate::count_references_to_ports);
        after_all_of_it();
        self.remove_live();
    }

    /// The fourth: each still sleeps.
    pub(super) fn look_whether_they_sleep(&mut self) {
        self.0.iter_mut().for_each(Candidate::must_sleep);
        after_all_of_it();
        self.remove_live();
    }

    /// The end of those that are left; returns their number.
    pub(super) fn stop(self) -> usize {
        for one in &self.0 {
            component::stop(one.seat());
        }
        self.0.len()
    }

    /// Removes the live ones, and those that they can wake: by the references counted last, and by
    /// what is connected now.
    fn remove_live(&mut self) {
        let mut graph = Graph::default();
        for one in &self.0 {
            let node = graph.node();
            graph.counted(node, one.references);
            for port in &one.ports {
                graph.counted(node, port.references);
            }
            if one.is_live {
                graph.wakes_from_outside(node);
            }
        }
        for (node, one) in self.0.iter().enumerate() {
            one.for_each_waker(|waker| match waker.and_then(|id| self.find(id)) {
                Some(waker) => graph.wakes(waker, node),
                None => graph.wakes_from_outside(node),
            });
        }
        let mut live = graph.live().into_iter();
        self.0.retain(|_| live.next() == Some(false));
    }

    fn find(&self, id: u64) -> Option<usize> {
        self.0.binary_search_by_key(&id, |one| one.seat().id).ok()
    }
}

/// Orders a look at the whole before the next.
fn after_all_of_it() {
    fence(Ordering::SeqCst);
}
