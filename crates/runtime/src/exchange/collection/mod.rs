//! Collection: components that wait where nobody alive can ever wake them are stopped.
//!
//! [Collection](../../../../docs/internals/collection.md) has the rule and why no worker has to
//! stand still. References that lie in fields count as held by somebody alive: only ports and
//! connections are looked at.

mod candidates;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod oracles;
mod search;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::Component;
use crate::ground::options;
use crate::ground::runtime::{self, Part};
use crate::hooks::{Canary, simulation, sings};
use crate::outside::idle;
use crate::seats::registry;
use crate::seats::seat::Seat;
use candidates::Candidates;

/// Components read from the registry under one hold of its lock.
const AT_ONCE: usize = 256;

/// A look at the whole after the first.
type Step = fn(&mut Candidates);

/// A collection's steps after the first look.
struct Plan {
    /// The first look sees no references.
    is_blind: bool,
    steps: &'static [Step],
}

/// The plan. The first look is at one after another, while others run. From the end of that to the
/// beginning of the last look they all slept. Nobody had a component then, so nobody gets a
/// half-channel from one; then nobody had a half-channel, so nobody connects one.
const PLAN: Plan = Plan {
    is_blind: false,
    steps: &[
        Candidates::look_at_components,
        Candidates::look_at_half_channels,
        Candidates::look_whether_they_sleep,
    ],
};

const fn planted(steps: &'static [Step]) -> Plan {
    Plan {
        is_blind: true,
        steps,
    }
}

/// Wrong plans, which simulations and models must find.
const PLANTED: [(Canary, Plan); 4] = [
    (
        Canary::ComponentsNotLookedAt,
        planted(&[
            Candidates::look_at_half_channels,
            Candidates::look_whether_they_sleep,
        ]),
    ),
    (
        Canary::HalfChannelsNotLookedAt,
        planted(&[
            Candidates::look_at_components,
            Candidates::look_whether_they_sleep,
        ]),
    ),
    (
        Canary::HalfChannelsFirst,
        planted(&[
            Candidates::look_at_half_channels,
            Candidates::look_at_components,
            Candidates::look_whether_they_sleep,
        ]),
    ),
    (
        Canary::NoLastLook,
        planted(&[
            Candidates::look_at_components,
            Candidates::look_at_half_channels,
        ]),
    ),
];

/// Stops all components that nobody alive can ever wake; returns their number. Takes time in
/// proportion to the components that wait.
pub(crate) fn collect() -> usize {
    let planted = PLANTED.iter().find(|(canary, _)| sings(*canary));
    // SAFETY: each comes with a reference.
    unsafe { collect_of(all(), planted.map_or(&PLAN, |(_, plan)| plan)) }
}

/// Running components, with a reference to each.
fn all() -> Vec<*const Seat> {
    let mut seats: Vec<*const Seat> = Vec::new();
    loop {
        // SAFETY: each has a reference of this thread's.
        let last = seats.last().map(|&seat| unsafe { &*seat });
        let some = registry::retain_some(last, AT_ONCE);
        if some.is_empty() {
            return seats;
        }
        seats.extend(some);
    }
}

/// Stops those of these components that nobody else can ever wake, by this plan.
///
/// # Safety
/// Each has a reference of the caller's, which goes with it.
unsafe fn collect_of(seats: Vec<*const Seat>, plan: &Plan) -> usize {
    // SAFETY: as the caller promises.
    let mut candidates = unsafe { Candidates::look(seats, plan.is_blind) };
    for step in plan.steps {
        simulation::meanwhile();
        step(&mut candidates);
    }
    simulation::meanwhile();
    candidates.stop()
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
