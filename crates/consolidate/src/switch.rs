//! Mode switches: the components that stop, start and go on, their order, and the longest
//! duration on each core.
//!
//! On a request each core goes on until it is idle, as in Tindell and Alonso's protocol (1996):
//! then no work of the old mode is left that could delay the new one, so each mode's own test of
//! schedulability holds throughout. Under [`Protocol::Deferred`] components that stop are not
//! released after the request, which shortens the wait. Components of the new mode start when all
//! cores have been idle once and have told each other, so buses never carry both modes. See
//! `docs/internals/consolidate.md`.

use crate::mapping::Mapping;
use crate::model::{Protocol, System};

/// Payload of the signal that a core is ready, and of the one to start: a frame of CAN.
const SIGNAL_BYTES: u64 = 8;
/// Most moments of a request that are examined on a core; beyond, the wait is taken to be the
/// whole busy period, which is never too short.
const REQUESTS_MAX: u64 = 100_000;
/// Most rounds of an equation; one that needs more is called unbounded.
const ROUNDS_MAX: usize = 100_000;

/// A switch from one mode to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    /// Mode before.
    pub from: usize,
    /// Mode after.
    pub to: usize,
    /// Components that stop, in order: senders before their receivers.
    pub stops: Vec<usize>,
    /// Components that start, in order: receivers before their senders.
    pub starts: Vec<usize>,
    /// Components that go on as if nothing happened.
    pub goes_on: Vec<usize>,
    /// Cores on which a component stops or starts.
    pub cores: Vec<CoreSwitch>,
    /// Time to tell all cores, ns.
    pub signal_ns: u64,
    /// Longest time from the request until all have started, ns; none if a core may never be idle.
    pub total_ns: Option<u64>,
}

/// A core's part of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSwitch {
    /// The core.
    pub core: usize,
    /// Longest busy period in the old mode, ns; none if there is no bound.
    pub busy_ns: Option<u64>,
    /// Longest time from the request until the core is idle, ns; none if there is no bound.
    pub delay_ns: Option<u64>,
}

/// Plans of the switches between all pairs of modes.
#[must_use]
pub fn plans(system: &System, mapping: &Mapping) -> Vec<SwitchPlan> {
    let modes = 0..system.modes.len();
    let pairs = modes
        .clone()
        .flat_map(|from| modes.clone().map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| plan(system, mapping, from, to))
        .collect()
}

fn plan(system: &System, mapping: &Mapping, from: usize, to: usize) -> SwitchPlan {
    let of = |old: bool, new: bool| -> Vec<usize> {
        let all = system.components.iter().enumerate();
        all.filter(|(_, one)| (one.modes.has(from), one.modes.has(to)) == (old, new))
            .map(|(at, _)| at)
            .collect()
    };
    let stops = by_messages(system, &of(true, false));
    let mut starts = by_messages(system, &of(false, true));
    starts.reverse();
    let mut cores: Vec<usize> = (stops.iter().chain(&starts))
        .map(|at| mapping.0[*at].core)
        .collect();
    cores.sort_unstable();
    cores.dedup();
    let cores: Vec<CoreSwitch> = cores
        .into_iter()
        .map(|core| on_core(system, mapping, core, from, to))
        .collect();
    let mut delays = cores.iter().map(|core| core.delay_ns);
    let longest = delays.try_fold(0_u64, |longest, delay| Some(longest.max(delay?)));
    let signal_ns = match starts.is_empty() {
        true => 0,
        false => signal_ns(system, &cores),
    };
    SwitchPlan {
        from,
        to,
        stops,
        starts,
        goes_on: of(true, true),
        signal_ns,
        total_ns: longest.map(|longest| longest + signal_ns),
        cores,
    }
}

/// Time to collect the signals of all cores and to tell them to start: twice the slowest way
/// between two of them. Units without a bus between them are told by other means.
fn signal_ns(system: &System, cores: &[CoreSwitch]) -> u64 {
    let units = cores.iter().map(|core| system.cores[core.core].unit);
    let units: Vec<usize> = units.collect();
    let mut slowest = 0;
    for (nth, a) in units.iter().enumerate() {
        for b in &units[nth + 1..] {
            let way = match a == b {
                true => Some(system.units[*a].core_latency_ns),
                false => system
                    .bus(*a, *b)
                    .map(|bus| system.buses[bus].transport_ns(SIGNAL_BYTES)),
            };
            slowest = slowest.max(way.unwrap_or(0));
        }
    }
    2 * slowest
}

/// The longest way of a signal in any mapping, there and back, ns.
pub(crate) fn signal_ns_max(system: &System) -> u64 {
    let buses = system
        .buses
        .iter()
        .map(|bus| bus.transport_ns(SIGNAL_BYTES));
    let units = system.units.iter().map(|unit| unit.core_latency_ns);
    2 * buses.chain(units).max().unwrap_or(0)
}

/// Components so that senders come before receivers; circles in the order of the file.
fn by_messages(system: &System, components: &[usize]) -> Vec<usize> {
    let mut rest = components.to_vec();
    let mut order = Vec::new();
    while !rest.is_empty() {
        let waits = |at: &usize| {
            let mut messages = system.messages.iter();
            messages.any(|message| message.to == *at && rest.contains(&message.from))
        };
        let free = rest.iter().position(|at| !waits(at)).unwrap_or(0);
        order.push(rest.remove(free));
    }
    order
}

/// A component on a core, with its time there.
struct Task {
    time: u128,
    period: u128,
    stops: bool,
}

fn on_core(system: &System, mapping: &Mapping, core: usize, from: usize, to: usize) -> CoreSwitch {
    let old = mapping.on_core(core);
    let tasks: Vec<Task> = old
        .filter(|at| system.components[*at].modes.has(from))
        .map(|at| {
            let (one, seat) = (&system.components[at], mapping.0[at]);
            let time = system.time_ns(at, seat.core, seat.memory);
            Task {
                time: time.unwrap_or(u64::MAX).into(),
                period: one.period_ns.into(),
                stops: !one.modes.has(to),
            }
        })
        .collect();
    let busy = idle_at(&tasks, None);
    let delay = busy.map(|busy| match system.rules.protocol {
        Protocol::Idle => busy,
        Protocol::Deferred => deferred(&tasks, busy).unwrap_or(busy),
    });
    let short = |time: u128| u64::try_from(time).ok();
    CoreSwitch {
        core,
        busy_ns: busy.and_then(short),
        delay_ns: delay.and_then(short),
    }
}

/// The first moment after a common release at which all work is done; with a request, the first
/// after it, and components that stop are not released later than it. None if that is not found.
fn idle_at(tasks: &[Task], request: Option<u128>) -> Option<u128> {
    let used = tasks
        .iter()
        .map(|task| task.time as f64 / task.period as f64);
    if used.sum::<f64>() > 1.0 {
        return None;
    }
    // A release at the moment of the request counts, so the end is later.
    let from = request.map_or(0, |request| request + 1);
    let mut end = from.max(tasks.iter().map(|task| task.time).sum());
    for _ in 0..ROUNDS_MAX {
        let work = tasks.iter().map(|task| {
            let releases = end.div_ceil(task.period);
            let releases = match request.filter(|_| task.stops) {
                Some(request) => releases.min(request / task.period + 1),
                None => releases,
            };
            releases * task.time
        });
        let next = work.sum::<u128>();
        if next <= end {
            return Some(end);
        }
        end = next;
    }
    None
}

/// Longest wait over all moments of the request within a busy period. The work that is left grows
/// only when a component that stops is released, so these moments are enough.
fn deferred(tasks: &[Task], busy: u128) -> Option<u128> {
    let stopping = || tasks.iter().filter(|task| task.stops);
    let moments: u128 = stopping().map(|task| busy / task.period + 1).sum();
    if moments > REQUESTS_MAX.into() {
        return None;
    }
    let mut requests: Vec<u128> = vec![0];
    requests.extend(stopping().flat_map(|t| (0..=busy / t.period).map(|nth| nth * t.period)));
    requests.sort_unstable();
    requests.dedup();
    let mut waits = requests.into_iter().map(|request| {
        let end = idle_at(tasks, Some(request))?;
        Some(end - request)
    });
    waits.try_fold(0_u128, |longest, wait| Some(longest.max(wait?)))
}
