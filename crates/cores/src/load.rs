//! Threads that use CPUs, or would if they could.

use std::collections::HashMap;

use hearth_sys::System;
use hearth_sys::procfs::parse_list;

use hearth_sys::control_groups::{IDLE_WEIGHT, USUAL_WEIGHT};

/// Share of a CPU below which a thread does not count.
const DEMAND_MIN: f64 = 0.01;
/// Weight of a thread with a real-time policy, which others have to make way for.
const REAL_TIME: f64 = 1e9;

/// A thread's times since it began, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    ran: u64,
    /// It was ready, and others ran.
    waited: u64,
}

/// Number of a process, and of one of its threads.
pub(crate) type ThreadId = (u32, u32);

/// The times of all threads that the process can see.
pub(crate) fn times(system: &dyn System) -> HashMap<ThreadId, Times> {
    let mut times = HashMap::new();
    for process in numbers(system, "/proc") {
        for thread in numbers(system, &format!("/proc/{process}/task")) {
            let text = system.read(&format!("/proc/{process}/task/{thread}/schedstat"));
            let Ok(text) = text else { continue };
            let mut fields = text
                .split_whitespace()
                .map_while(|field| field.parse().ok());
            if let (Some(ran), Some(waited)) = (fields.next(), fields.next()) {
                times.insert((process, thread), Times { ran, waited });
            }
        }
    }
    times
}

fn numbers(system: &dyn System, folder: &str) -> Vec<u32> {
    let names = system.list(folder).unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// A thread of another program that uses CPU time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Busy {
    /// The process.
    pub(crate) process: u32,
    /// Its name.
    pub(crate) name: String,
    /// Share of a CPU that it used.
    pub(crate) used: f64,
    /// The same with the time in which it was ready and others ran, at most 1.
    pub(crate) demand: f64,
    /// Its weight beside other threads; 1024 is usual.
    pub(crate) weight: f64,
    /// The CPUs that it may use.
    pub(crate) cpus: Vec<usize>,
    /// The content of its file `cgroup`.
    pub(crate) cgroup: String,
    /// Its session's group and the niceness of that, where sessions have groups.
    pub(crate) session: Option<Session>,
}

/// Group of a session of processes (autogroup).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) weight: f64,
}

/// Threads that were busy between two readings, but those of one process.
pub(crate) fn busy(
    system: &dyn System,
    (before, after): (&HashMap<ThreadId, Times>, &HashMap<ThreadId, Times>),
    ns: f64,
    own: u32,
) -> Vec<Busy> {
    let mut found: Vec<Busy> = after
        .iter()
        .filter(|((process, _), _)| *process != own)
        .filter_map(|(id, now)| {
            // A thread that has begun since has all its times in between.
            let then = before.get(id).copied().unwrap_or_default();
            let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / ns;
            let used = share(now.ran, then.ran).min(1.0);
            let demand = (used + share(now.waited, then.waited)).min(1.0);
            (demand >= DEMAND_MIN).then(|| described(system, *id, used, demand))?
        })
        .collect();
    found.sort_by(|a, b| {
        b.demand
            .total_cmp(&a.demand)
            .then(a.process.cmp(&b.process))
    });
    found
}

/// CPU time of a process between two readings, ns.
pub(crate) fn used(
    before: &HashMap<ThreadId, Times>,
    after: &HashMap<ThreadId, Times>,
    process: u32,
) -> f64 {
    let own = after.iter().filter(|((one, _), _)| *one == process);
    let ran = own.map(|(id, now)| {
        let then = before.get(id).copied().unwrap_or_default();
        now.ran.saturating_sub(then.ran) as f64
    });
    ran.sum()
}

/// Facts about a thread; none if it has ended.
fn described(
    system: &dyn System,
    (process, thread): ThreadId,
    used: f64,
    demand: f64,
) -> Option<Busy> {
    let file = |name: &str| system.read(&format!("/proc/{process}/task/{thread}/{name}"));
    let stat = Stat::of(&file("stat").ok()?)?;
    let status = file("status").unwrap_or_default();
    let cpus = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Some(Busy {
        process,
        name: stat.name,
        used,
        demand,
        weight: stat.weight,
        cpus: parse_list(cpus.unwrap_or_default()),
        cgroup: file("cgroup").unwrap_or_default(),
        session: session(system, process),
    })
}

/// The group of a process's session, where the kernel makes such.
pub(crate) fn session(system: &dyn System, process: u32) -> Option<Session> {
    let enabled = system
        .read("/proc/sys/kernel/sched_autogroup_enabled")
        .ok()?;
    if enabled.trim() != "1" {
        return None;
    }
    // `/autogroup-12 nice 0`
    let text = system.read(&format!("/proc/{process}/autogroup")).ok()?;
    let (name, nice) = text.trim().split_once(" nice ")?;
    Some(Session {
        name: name.to_owned(),
        weight: weight_of(nice.parse().ok()?),
    })
}

/// A thread's name and weight.
pub(crate) struct Stat {
    name: String,
    pub(crate) weight: f64,
}

impl Stat {
    /// Reads a thread's file `stat`.
    pub(crate) fn of(text: &str) -> Option<Stat> {
        // The name is in brackets, and may contain some.
        let (begin, rest) = text.rsplit_once(')')?;
        let (_, name) = begin.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The state is the third field of the file, and the first here.
        let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
        let weight = match number(41) {
            // SCHED_FIFO, SCHED_RR, SCHED_DEADLINE.
            Some(1 | 2 | 6) => REAL_TIME,
            // SCHED_IDLE.
            Some(5) => IDLE_WEIGHT,
            _ => weight_of(number(19).unwrap_or(0)),
        };
        Some(Stat {
            name: name.to_owned(),
            weight,
        })
    }
}

/// Weight of a niceness: a step is a quarter more or a fifth less.
fn weight_of(nice: i64) -> f64 {
    USUAL_WEIGHT * 1.25_f64.powi(-(nice.clamp(-20, 19) as i32))
}

#[cfg(test)]
mod tests {
    use hearth_sys::Fake;

    use super::*;

    /// A program `worker (x)` with one thread, which has these times.
    fn with(system: Fake, process: u32, times: &str, stat: &str) -> Fake {
        let folder = format!("/proc/{process}/task/{process}");
        system
            .file(format!("{folder}/schedstat"), times)
            .file(format!("{folder}/stat"), stat)
            .file(
                format!("{folder}/status"),
                "Name:\tx\nCpus_allowed_list:\t0-1,3\n",
            )
            .file(format!("{folder}/cgroup"), "1:cpu:/a\n")
    }

    fn stat(nice: i32, policy: u32) -> String {
        let before = "0 ".repeat(15);
        let between = "0 ".repeat(21);
        format!("7 (worker (x)) R {before}{nice} {between}{policy} 0 0")
    }

    #[test]
    fn threads_want_what_they_used_and_waited_for() {
        let begin = Fake::with_cores(&[0, 1]);
        let begin = with(begin, 7, "1000 500 3", &stat(0, 0));
        let begin = with(begin, 8, "1000 500 3", &stat(0, 0));
        let before = times(&begin);
        let end = Fake::with_cores(&[0, 1])
            .file("/proc/sys/kernel/sched_autogroup_enabled", "1\n")
            .file("/proc/7/autogroup", "/autogroup-12 nice 5\n");
        let end = with(end, 7, "1400 1000 4", &stat(10, 0));
        let end = with(end, 8, "1001 500 4", &stat(0, 0));
        let end = with(end, 9, "600 100 1", &stat(0, 1));
        let found = busy(&end, (&before, &times(&end)), 1000.0, 8);
        let facts: Vec<_> = found
            .iter()
            .map(|one| (one.process, one.used, one.demand))
            .collect();
        assert_eq!(facts, [(7, 0.4, 0.9), (9, 0.6, 0.7)]);
        assert_eq!(found[0].name, "worker (x)");
        assert_eq!(found[0].cpus, [0, 1, 3]);
        assert!((found[0].weight - 110.0).abs() < 1.0, "{}", found[0].weight);
        assert_eq!(found[1].weight, REAL_TIME);
        let session = found[0].session.as_ref().expect("it has one");
        assert_eq!(session.name, "/autogroup-12");
        assert!((session.weight - 335.0).abs() < 1.0, "{}", session.weight);
    }

    #[test]
    fn an_own_process_does_not_count() {
        let system = with(Fake::with_cores(&[0]), 7, "1000 0 3", &stat(0, 5));
        let now = times(&system);
        assert_eq!(busy(&system, (&HashMap::new(), &now), 1000.0, 7), []);
        let found = busy(&system, (&HashMap::new(), &now), 1000.0, 1);
        assert_eq!(found[0].weight, IDLE_WEIGHT);
        assert_eq!(found[0].session, None);
    }
}
