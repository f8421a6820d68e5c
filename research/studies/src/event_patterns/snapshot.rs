//! The counts that a server reports of itself at a moment. The figures of a run are differences of
//! two.

use hearth_net::{Counters, Operation, Server, Service};
use hearth_sys::clock::Stamps;
use hearth_sys::{Linux, System};
use serde::{Deserialize, Serialize};

/// Beginning of the names of its threads.
pub const THREADS_NAME: &str = "serve";

/// A server at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The time by the clock that operations are timed by.
    pub ticks: u64,
    /// The time by the system's clock.
    pub ns: u64,
    /// Bytes that came.
    pub read_bytes: u64,
    /// Calls that wait.
    pub waits: u64,
    /// Connections that they reported.
    pub events: u64,
    /// Calls that read.
    pub reads: u64,
    /// Calls that write.
    pub writes: u64,
    /// Connections that were armed again.
    pub rearmed: u64,
    /// Waits that another thread ended.
    pub rung: u64,
    /// Count and ticks of each operation, by the order of [`Operation::ALL`] and by thread.
    pub times: Vec<Vec<(u64, u64)>>,
    /// The threads, by number.
    pub threads: Vec<Used>,
}

/// A thread's usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Time on a core.
    pub on_core_ns: u64,
    /// Time in which it could have run and had no core.
    pub ready_ns: u64,
    /// Number of times that it went to sleep.
    pub slept: u64,
}

impl Snapshot {
    /// Takes one.
    pub fn of<S: Service>(server: &Server<S>) -> Snapshot {
        let Counters {
            read_bytes,
            waits,
            events,
            reads,
            writes,
            rearmed,
            rung,
            ..
        } = server.counters();
        let times = Operation::ALL.map(|operation| {
            let by_thread = server.times(operation);
            by_thread
                .iter()
                .map(|times| (times.count, times.ticks))
                .collect()
        });
        let moment = Stamps::here(&Linux).moment();
        Snapshot {
            ticks: moment.ticks,
            ns: moment.ns,
            read_bytes,
            waits,
            events,
            reads,
            writes,
            rearmed,
            rung,
            times: times.to_vec(),
            threads: used(&Linux),
        }
    }
}

/// Returns the usage of the process's serving threads; empty where the system does not report it.
fn used(system: &dyn System) -> Vec<Used> {
    let mut all = Vec::new();
    for id in system.list("/proc/self/task").unwrap_or_default() {
        let read = |file: &str| system.read(&format!("/proc/self/task/{id}/{file}"));
        let (Ok(name), Ok(times), Ok(status)) = (read("comm"), read("schedstat"), read("status"))
        else {
            continue;
        };
        let number = name.trim().strip_prefix(THREADS_NAME);
        let number = number.and_then(|rest| rest.strip_prefix('-')?.parse::<usize>().ok());
        let (Some(number), Some(used)) = (number, parse(&times, &status)) else {
            continue;
        };
        if all.len() <= number {
            all.resize(number + 1, Used::default());
        }
        all[number] = used;
    }
    all
}

fn parse(schedstat: &str, status: &str) -> Option<Used> {
    let mut words = schedstat.split_whitespace();
    let slept = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some(Used {
        on_core_ns: words.next()?.parse().ok()?,
        ready_ns: words.next()?.parse().ok()?,
        slept: slept.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_use_is_read() {
        let status =
            "Name:\tserve-0\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let used = parse("5000 700 9\n", status).unwrap();
        assert_eq!(
            (used.on_core_ns, used.ready_ns, used.slept),
            (5000, 700, 12)
        );
        assert_eq!(parse("", status), None);
    }
}
