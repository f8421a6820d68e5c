//! Collection: components that wait where nobody alive can ever wake them are stopped.
//!
//! [Collection](../../../../docs/internals/collection.md) has the rule and why no worker has to
//! stand still. References that lie in fields count as held by somebody alive: only ports and
//! connections are looked at.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use crate::abi::Component;
use crate::exchange::channel::inflate::inflate;
use crate::exchange::channel::{self, Channel, hub, queue};
use crate::exchange::{block, component};
use crate::ground::options;
use crate::ground::runtime::{self, Part};
use crate::hooks::simulation;
use crate::outside::idle;
use crate::seats::registry;
use crate::seats::seat::Seat;

/// Components read from the registry under one hold of its lock.
const AT_ONCE: usize = 256;
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
    /// It was found live.
    is_live: bool,
}

struct Port {
    channel: *mut Channel,
    /// Number of its component's entries in the queue.
    entries: u32,
}

impl Candidate {
    /// Looks at a component; takes over the reference to it. None if it is live.
    ///
    /// # Safety
    /// The caller's reference is counted.
    unsafe fn new(seat: *const Seat) -> Option<Candidate> {
        // SAFETY: alive by the reference, which the candidate keeps.
        unsafe {
            let mut candidate = Candidate {
                seat,
                ports: Vec::new(),
                round: 0,
                is_live: false,
            };
            let seat = &*seat;
            if registry::is_main(seat) || seat.identity().service || !candidate.is_left_alone() {
                return None;
            }
            inflate(seat.component());
            candidate.round = seat.state.open_round()?;
            candidate.ports = component::retain_ports(seat)?
                .into_iter()
                .map(|channel| Port {
                    channel,
                    entries: 0,
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
            (waits_here && candidate.ports_are_left_alone()).then_some(candidate)
        }
    }

    fn seat(&self) -> &Seat {
        // SAFETY: alive by the candidate's reference.
        unsafe { &*self.seat }
    }

    /// Whether nobody has a reference to it.
    fn is_left_alone(&self) -> bool {
        self.seat().references() == OF_A_SEAT
    }

    /// Whether nobody has a reference to one of its half-channels.
    fn ports_are_left_alone(&self) -> bool {
        // SAFETY: alive by the candidate's references.
        let is_alone =
            |port: &Port| unsafe { (*port.channel).references() == OF_A_PORT + port.entries };
        self.ports.iter().all(is_alone)
    }

    /// Whether it has slept since the first look.
    fn sleeps(&self) -> bool {
        self.seat().state.open_round() == Some(self.round)
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
struct Candidates(Vec<Candidate>);

impl Candidates {
    /// Looks at all components once.
    fn look() -> Candidates {
        let mut seats: Vec<*const Seat> = Vec::new();
        loop {
            // SAFETY: each has a reference of this thread's.
            let last = seats.last().map(|&seat| unsafe { &*seat });
            let some = registry::retain_some(last, AT_ONCE);
            if some.is_empty() {
                break;
            }
            seats.extend(some);
        }
        // SAFETY: as above; the reference goes with it.
        let found = seats
            .into_iter()
            .map(|seat| unsafe { Candidate::new(seat) });
        let mut found: Vec<Candidate> = found.flatten().collect();
        found.sort_by_key(|one| one.seat().id);
        found.dedup_by_key(|one| one.seat().id);
        Candidates(found)
    }

    /// Removes the live ones, and those that they can wake, by what is connected now.
    fn remove_live(&mut self) {
        let mut wakes: Vec<Vec<usize>> = self.0.iter().map(|_| Vec::new()).collect();
        let mut live = Vec::new();
        for index in 0..self.0.len() {
            let mut is_live = self.0[index].is_live;
            self.0[index].for_each_waker(|waker| {
                let waker = waker.and_then(|id| self.find(id));
                match waker {
                    Some(waker) => wakes[waker].push(index),
                    None => is_live = true,
                }
            });
            if is_live {
                live.push(index);
            }
            self.0[index].is_live = is_live;
        }
        while let Some(waker) = live.pop() {
            for index in std::mem::take(&mut wakes[waker]) {
                if !std::mem::replace(&mut self.0[index].is_live, true) {
                    live.push(index);
                }
            }
        }
        self.0.retain(|one| !one.is_live);
    }

    fn find(&self, id: u64) -> Option<usize> {
        self.0.binary_search_by_key(&id, |one| one.seat().id).ok()
    }

    fn mark_live_unless(&mut self, is_well: impl Fn(&Candidate) -> bool) {
        for one in &mut self.0 {
            one.is_live |= !is_well(one);
        }
        // Each look at the whole comes after all of the one before it.
        fence(Ordering::SeqCst);
    }
}

/// Stops all components that nobody alive can ever wake; returns their number. Takes time in
/// proportion to the components that wait.
pub(crate) fn collect() -> usize {
    let mut candidates = Candidates::look();
    fence(Ordering::SeqCst);
    candidates.remove_live();
    // The first look was at one after another, while others ran. From the end of it to the
    // beginning of the last they all slept. Nobody had a component then, so nobody gets a
    // half-channel from one; then nobody had a half-channel, so nobody connects one.
    candidates.mark_live_unless(|one| one.sleeps() && one.is_left_alone());
    candidates.mark_live_unless(Candidate::ports_are_left_alone);
    candidates.remove_live();
    candidates.mark_live_unless(Candidate::sleeps);
    candidates.remove_live();
    for one in &candidates.0 {
        component::stop(one.seat());
    }
    candidates.0.len()
}

/// Starts the thread that collects as often as `HEARTH_COLLECT` says, with the first carrier.
pub(crate) fn start() {
    static STARTED: Part<AtomicBool> = Part::new(AtomicBool::default);
    let Some(every) = options::get().collect_every else {
        return;
    };
    if simulation::is_on() || STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    // Without the thread nothing is collected unless the program asks for it.
    let _ = runtime::spawn("collector", 256 << 10, move || {
        while runtime::current().pause(every) {
            // Where all wait, it is a deadlock and reported as one.
            if idle::enter_beside_others() {
                collect();
                idle::leave();
            }
        }
    });
}

/// Stops all components that nobody alive can ever wake.
///
/// # Safety
/// As the header says: `self` runs this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hearth_collect(this: *mut Component) -> i32 {
    let work = || i32::try_from(collect()).unwrap_or(i32::MAX);
    // SAFETY: as the caller promises; compiled code holds no lock.
    unsafe { simulation::deed(this, "collects", std::ptr::null(), work) }
}
