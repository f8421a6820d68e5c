//! Figures of a run: throughput by the clients, and the server's operations and their cost, for
//! each request.
//!
//! | name | what |
//! |---|---|
//! | `rate` | replies a second |
//! | `p50_us`, `p99_us` | from request to reply |
//! | `server_cores`, `client_cores` | how many cores each kept busy |
//! | `client_busy` | the share of the time that the busiest client thread was on its core |
//! | `others_cores` | how many of the cores in use others kept busy meanwhile, the hypervisor included |
//! | `server_ns` | time of the server on its cores, a request |
//! | `waits`, `events`, `reads`, `writes`, `rearmed`, `rung` | a request |
//! | `events_a_wait` | connections that a wait reported |
//! | `sleeps` | times that a thread went to sleep, a request |
//! | `obtain_ns` … `send_ns` | the mean time of each operation, time off the core included |
//! | `call_ns` | a wait without the time asleep; where one thread alone waits |
//! | `waiter_busy` | the share of the time that this thread was on a core or wanted one |

use std::collections::BTreeMap;

use cachet_load::Run;
use hearth_net::Operation;

use super::options::MESSAGE_BYTES;
use super::snapshot::{Snapshot, Used};

/// Resolution of the core times that Linux reports, ns.
const TICK_NS: f64 = 1e7;

/// Figures by name.
pub type Figures = BTreeMap<String, f64>;

/// A number that a snapshot has.
type Count = fn(&Snapshot) -> u64;

/// Differences of two snapshots.
struct Between<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    /// Time between the snapshots, ns.
    ns: f64,
    requests: f64,
}

impl Between<'_> {
    fn a_request(&self, count: Count) -> f64 {
        self.count(count) / self.requests
    }

    fn count(&self, count: Count) -> f64 {
        count(self.after).saturating_sub(count(self.before)) as f64
    }

    fn ns_per_tick(&self) -> f64 {
        let ticks = self.after.ticks.saturating_sub(self.before.ticks);
        self.ns / (ticks as f64).max(1.0)
    }

    /// Returns how often an operation was done and how long it took, by all threads or by one.
    fn times(&self, of: Operation, thread: Option<usize>) -> (f64, f64) {
        let sum = |snapshot: &Snapshot| {
            let by_thread = snapshot
                .times
                .get(of as usize)
                .map_or(&[][..], Vec::as_slice);
            let wanted = by_thread
                .iter()
                .enumerate()
                .filter(|(at, _)| thread.is_none_or(|thread| thread == *at));
            wanted.fold((0, 0), |sum, (_, one)| (sum.0 + one.0, sum.1 + one.1))
        };
        let (before, after) = (sum(self.before), sum(self.after));
        (
            after.0.saturating_sub(before.0) as f64,
            after.1.saturating_sub(before.1) as f64 * self.ns_per_tick(),
        )
    }

    /// Returns a thread's usage; `None` if the system does not report it.
    fn used(&self, thread: usize) -> Option<Used> {
        let (before, after) = (
            self.before.threads.get(thread)?,
            self.after.threads.get(thread)?,
        );
        Some(Used {
            on_core_ns: after.on_core_ns.saturating_sub(before.on_core_ns),
            ready_ns: after.ready_ns.saturating_sub(before.ready_ns),
            slept: after.slept.saturating_sub(before.slept),
        })
    }

    /// True if one thread does all the waiting, the first.
    fn one_waits(&self) -> bool {
        let all = self.times(Operation::Obtain, None).0;
        all > 0.0 && self.times(Operation::Obtain, Some(0)).0 == all
    }
}

/// A moment of a run: the server, and what else used its cores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// The server.
    pub server: Snapshot,
    /// Ticks in which the cores in use were not idle, of hundredths of a second.
    pub busy_ticks: u64,
    /// The clients' core time, in microseconds.
    pub clients_us: u64,
}

/// Cores that neither the server nor the clients kept busy, and that were busy.
fn others(before: &Moment, after: &Moment) -> f64 {
    let on_core = |moment: &Moment| {
        let threads = moment.server.threads.iter();
        threads.map(|used| used.on_core_ns).sum::<u64>()
    };
    let busy_ns = after.busy_ticks.saturating_sub(before.busy_ticks) as f64 * TICK_NS;
    let server_ns = on_core(after).saturating_sub(on_core(before)) as f64;
    let clients_ns = after.clients_us.saturating_sub(before.clients_us) as f64 * 1e3;
    let ns = after.server.ns.saturating_sub(before.server.ns) as f64;
    (busy_ns - server_ns - clients_ns).max(0.0) / ns
}

/// The figures of a run.
#[must_use]
pub fn figures(before: &Moment, after: &Moment, run: &Run) -> Figures {
    let mut found = of_server(&before.server, &after.server);
    // A server too busy to answer within the measured time reports on another interval.
    let bytes = after
        .server
        .read_bytes
        .saturating_sub(before.server.read_bytes);
    let seconds = after.server.ns.saturating_sub(before.server.ns) as f64 / 1e9;
    if (bytes / MESSAGE_BYTES as u64) as f64 <= 0.5 * run.rate() * seconds {
        found.clear();
    }
    let mut put = |name: &str, value: f64| {
        if value.is_finite() {
            found.insert(name.to_owned(), value);
        }
    };
    let latency = run.tally.latency();
    put("rate", run.rate());
    put("others_cores", others(before, after));
    put("p50_us", latency.percentile(50.0) as f64 / 1e3);
    put("p99_us", latency.percentile(99.0) as f64 / 1e3);
    put("client_cores", run.own_cores());
    put("client_busy", run.tally.busiest);
    if let (Some(cores), Some(ns)) = (run.server_cores(), run.server_ns_per_request()) {
        put("server_cores", cores);
        put("server_ns", ns);
    }
    found
}

/// Computes the figures that the server's snapshots give.
#[must_use]
pub fn of_server(before: &Snapshot, after: &Snapshot) -> Figures {
    let bytes = after.read_bytes.saturating_sub(before.read_bytes);
    let between = Between {
        before,
        after,
        ns: after.ns.saturating_sub(before.ns) as f64,
        requests: (bytes / MESSAGE_BYTES as u64) as f64,
    };
    let mut found = Figures::new();
    let mut put = |name: &str, value: f64| {
        if value.is_finite() {
            found.insert(name.to_owned(), value);
        }
    };
    let counts: [(&str, Count); 6] = [
        ("waits", |s| s.waits),
        ("events", |s| s.events),
        ("reads", |s| s.reads),
        ("writes", |s| s.writes),
        ("rearmed", |s| s.rearmed),
        ("rung", |s| s.rung),
    ];
    for (name, count) in counts {
        put(name, between.a_request(count));
    }
    put(
        "events_a_wait",
        between.count(|s| s.events) / between.count(|s| s.waits),
    );
    for operation in Operation::ALL {
        let (count, ns) = between.times(operation, None);
        if count > 0.0 {
            put(&format!("{}_ns", operation.name()), ns / count);
        }
    }
    let threads = 0..after.threads.len();
    let slept: u64 = threads
        .filter_map(|thread| between.used(thread))
        .map(|used| used.slept)
        .sum();
    put("sleeps", slept as f64 / between.requests);
    if let Some(used) = between.used(0)
        && between.one_waits()
    {
        let busy = (used.on_core_ns + used.ready_ns) as f64;
        let asleep = (between.ns - busy).max(0.0);
        let (count, ns) = between.times(Operation::Obtain, Some(0));
        put("call_ns", (ns - asleep).max(0.0) / count);
        put("waiter_busy", (busy / between.ns).min(1.0));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64, requests: u64, obtain: (u64, u64), on_core_ns: u64) -> Snapshot {
        let mut times = vec![vec![(0, 0); 2]; Operation::ALL.len()];
        times[Operation::Obtain as usize][0] = obtain;
        times[Operation::Send as usize][1] = (requests, requests * 3);
        let used = Used {
            on_core_ns,
            ready_ns: 0,
            slept: requests / 2,
        };
        Snapshot {
            ticks: ns * 2,
            ns,
            read_bytes: requests * MESSAGE_BYTES as u64,
            waits: obtain.0,
            events: requests,
            rearmed: requests,
            times,
            threads: vec![used, Used::default()],
            ..Snapshot::default()
        }
    }

    #[test]
    fn figures_are_those_between_two_moments() {
        // Half of the time asleep in the calls; ticks are half nanoseconds.
        let found = of_server(
            &at(0, 0, (0, 0), 0),
            &at(1_000_000, 1000, (100, 1_400_000), 500_000),
        );
        let of = |name: &str| found[name];
        assert_eq!(
            (of("waits"), of("rearmed"), of("events_a_wait")),
            (0.1, 1.0, 10.0)
        );
        assert_eq!((of("obtain_ns"), of("send_ns")), (7_000.0, 1.5));
        assert_eq!((of("call_ns"), of("waiter_busy")), (2_000.0, 0.5));
        assert_eq!(of("sleeps"), 0.5);
        assert!(!found.contains_key("enqueue_ns"));
        // Nothing happened, so that no figure is given.
        let none = of_server(&Snapshot::default(), &Snapshot::default());
        assert!(none.values().all(|value| value.is_finite()));
    }
}
