//! Goals of Hearth's allocator: the table of section 4 of the anchors, and the figures
//! where it says more. Ticks and nanoseconds were set on another machine, so a goal that names a
//! peer is also reached by beating that peer by the stated factor in the same session.

use super::allocators::{FAST_PEERS, HEARTH, HEARTH_REAL_TIME, SYSTEM};
use super::session::{LEAST, MEMORY, SPEED};
use super::table::{Better, Table};
use super::workloads::{Group, HAND_OVER};

/// A figure to reach.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Goal {
    pub group: Group,
    pub row: &'static str,
    /// The allocator that is to reach it.
    pub who: &'static str,
    /// The bound: at most, or at least where more is better; None if only a peer decides.
    pub bound: Option<f64>,
    /// Or this factor times the best of these.
    pub beside: Option<(f64, &'static [&'static str])>,
    /// Or twice what this row shows, in which nothing is called: the machine's own disturbance.
    pub control: Option<&'static str>,
}

/// Factor on the control row up to which a figure still counts as nothing: a round in which
/// something is called lasts longer, and more interrupts meet it.
const CONTROL_TIMES: f64 = 2.0;

/// Outcome of a goal.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    pub goal: Goal,
    pub better: Better,
    pub unit: &'static str,
    /// None if the allocator that is to reach it was not measured.
    pub value: Option<f64>,
    /// The peer it is compared with, and its value.
    pub best: Option<(String, f64)>,
    /// None if nothing was measured to judge by.
    pub is_reached: Option<bool>,
}

const fn wanted(group: Group, row: &'static str, bound: f64) -> Goal {
    Goal {
        group,
        row,
        who: HEARTH,
        bound: Some(bound),
        beside: None,
        control: None,
    }
}

/// A goal after a burst of so many operations that interrupts meet every round.
const fn wanted_beyond(row: &'static str, control: &'static str) -> Goal {
    Goal {
        control: Some(control),
        ..wanted(Group::Burst, row, MOST_AFTER_BURST)
    }
}

/// A goal in real-time mode.
const fn real_time(group: Group, row: &'static str, bound: f64) -> Goal {
    Goal {
        who: HEARTH_REAL_TIME,
        ..wanted(group, row, bound)
    }
}

const fn or_beside(
    group: Group,
    row: &'static str,
    bound: f64,
    times: f64,
    peers: &'static [&'static str],
) -> Goal {
    Goal {
        beside: Some((times, peers)),
        ..wanted(group, row, bound)
    }
}

const MOST_AFTER_BURST: f64 = 1500.0;
const TCMALLOC: &[&str] = &["gperftools"];
const MIMALLOC_2: &[&str] = &["mimalloc-2"];

pub const GOALS: [Goal; 47] = [
    // Bounds. Up to 10,000 blocks an interrupt rarely meets a round, so single processes decide.
    // Above, several meet each: the floor, which misses work at other times in every process, and
    // the excess of a round over an empty one decide together.
    wanted(Group::Burst, "1000 one worst raw", MOST_AFTER_BURST),
    wanted(Group::Burst, "1000 many worst raw", MOST_AFTER_BURST),
    wanted(Group::Burst, "10000 one worst raw", MOST_AFTER_BURST),
    wanted(Group::Burst, "10000 many worst raw", MOST_AFTER_BURST),
    wanted(Group::Burst, "100000 one worst", MOST_AFTER_BURST),
    wanted_beyond("100000 one worst by round", "100000 null worst by round"),
    wanted(Group::Burst, "100000 many worst", MOST_AFTER_BURST),
    wanted_beyond("100000 many worst by round", "100000 null worst by round"),
    wanted(Group::Burst, "1000000 one worst", MOST_AFTER_BURST),
    wanted_beyond("1000000 one worst by round", "1000000 null worst by round"),
    wanted(Group::Burst, "1000000 many worst", MOST_AFTER_BURST),
    wanted_beyond("1000000 many worst by round", "1000000 null worst by round"),
    wanted(Group::Burst, "10000 many owner-mean", 65.0),
    wanted(Group::Latency, "rt-1 malloc max", 140.0),
    wanted(Group::Latency, "mix-1 malloc p99.9", 230.0),
    wanted(Group::Latency, "mix-1 malloc max", 430.0),
    wanted(Group::Latency, "mix-1 free max", 800.0),
    wanted(Group::Latency, "mix-2 malloc p99.9", 260.0),
    wanted(Group::Latency, "mix-2 malloc max", 750.0),
    wanted(Group::Latency, "mix-2 free max", 1400.0),
    real_time(Group::Latency, "mix-1 malloc cold max", 1700.0),
    real_time(Group::Latency, "mix-1 touch p99.99", 4600.0),
    real_time(Group::Latency, "mix-1 touch max", 9700.0),
    real_time(Group::Latency, "big-1 malloc p99.9", 1400.0),
    real_time(Group::Latency, "big-1 malloc max", 2200.0),
    or_beside(
        Group::Latency,
        "rt-2 remote free mean",
        85.0,
        0.3,
        &["mimalloc-3"],
    ),
    wanted(Group::Latency, "rt-2 remote free p99.9", 900.0),
    // Fragmentation.
    wanted(Group::Fragment, "worst", 2.2),
    wanted(Group::Fragment, "phase-0", 1.17),
    or_beside(Group::Fragment, "seconds", 0.9, 0.95, &["mimalloc-3"]),
    wanted(Group::Fragment, "later-mb", 30.0),
    // Throughput.
    or_beside(Group::Fast, "pair-16", 3.3, 1.05, TCMALLOC),
    or_beside(Group::Fast, "pair-64", 3.3, 1.05, TCMALLOC),
    or_beside(Group::Fast, "pair-256", 3.3, 1.05, TCMALLOC),
    or_beside(Group::Fast, "pair-1000", 3.3, 1.05, TCMALLOC),
    or_beside(Group::Fast, "pair-4000", 5.0, 0.8, &["mimalloc-3"]),
    or_beside(Group::Fast, "pair-20000", 5.0, 0.8, &["mimalloc-3"]),
    or_beside(Group::Fast, "batch-lifo", 5.5, 0.8, MIMALLOC_2),
    or_beside(Group::Fast, "batch-fifo", 5.5, 0.8, MIMALLOC_2),
    or_beside(Group::Fast, "batch-random", 5.5, 0.8, MIMALLOC_2),
    wanted(Group::Suite, SPEED, 1.5),
    Goal {
        bound: None,
        ..or_beside(Group::Suite, SPEED, 0.0, 0.98, FAST_PEERS)
    },
    wanted(Group::Suite, LEAST, 0.9),
    or_beside(Group::Suite, HAND_OVER, 85.0, 1.05, &["snmalloc"]),
    // Memory, threads and forks.
    wanted(Group::Suite, MEMORY, 1.07),
    or_beside(Group::Threads, "a thread", 43.0, 1.0, &["rpmalloc"]),
    wanted(Group::Threads, "growth", 1.0),
];

/// No child may hang; it has no peer, and no figure but this.
pub const NO_HANGS: Goal = wanted(Group::Forks, "hangs", 0.0);

/// Judges all goals whose row was measured.
pub fn judge(table: &Table) -> Vec<Judged> {
    GOALS
        .iter()
        .chain([&NO_HANGS])
        .filter_map(|goal| judged(table, goal))
        .collect()
}

fn judged(table: &Table, goal: &Goal) -> Option<Judged> {
    let row = table.row(goal.group, goal.row)?;
    let value = table.median(row, goal.who);
    let best = goal
        .beside
        .and_then(|(_, peers)| table.best(row, Some(peers)))
        .map(|(name, value)| (name.to_owned(), value));
    let is_within = |value: f64, bound: f64| match row.better {
        Better::Less => value <= bound,
        Better::More => value >= bound,
    };
    let is_reached = value.and_then(|value| {
        let control = goal.control.and_then(|name| {
            let row = table.row(goal.group, name)?;
            table.median(row, SYSTEM)
        });
        let bound = goal
            .bound
            .map(|bound| bound.max(control.map_or(bound, |control| CONTROL_TIMES * control)));
        let absolutely = bound.map(|bound| is_within(value, bound));
        let beside = goal
            .beside
            .zip(best.as_ref())
            .map(|((times, _), (_, best))| is_within(value, times * best));
        match (absolutely, beside) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            // A missing peer might have shown that the goal is reached.
            (_, None) if goal.beside.is_some() => None,
            (None, None) => None,
            _ => Some(false),
        }
    });
    Some(Judged {
        goal: *goal,
        better: row.better,
        unit: row.unit,
        value,
        best,
        is_reached,
    })
}

impl Judged {
    /// The goal in words.
    pub fn wanted(&self) -> String {
        let edge = match self.better {
            Better::Less => "at most",
            Better::More => "at least",
        };
        let bound = self.goal.bound.map(|bound| format!("{bound}"));
        let beside = self.goal.beside.map(|(times, peers)| match peers {
            [one] => format!("{times} of {one}'s"),
            [SYSTEM, ..] | [] => format!("{times} of {SYSTEM}'s"),
            _ => format!("{times} of the best of {}", peers.join(", ")),
        });
        let control = self
            .goal
            .control
            .map(|name| format!("{CONTROL_TIMES} of {name}"));
        let parts: Vec<String> = [bound, beside, control].into_iter().flatten().collect();
        format!("{edge} {}", parts.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Cell, Row};
    use super::*;

    fn table(values: &[(&str, f64)]) -> Table {
        let mut table = Table::new(values.iter().map(|(name, _)| (*name).to_owned()).collect());
        table.rows.push(Row {
            group: Group::Fast,
            name: "pair-16".to_owned(),
            unit: "ns",
            better: Better::Less,
            cells: values
                .iter()
                .map(|(_, value)| Cell::Values(vec![*value]))
                .collect(),
        });
        table
    }

    fn reached(values: &[(&str, f64)]) -> Option<bool> {
        let judged = judge(&table(values));
        assert_eq!(judged.len(), 1);
        assert_eq!(judged[0].wanted(), "at most 3.3 or 1.05 of gperftools's");
        judged[0].is_reached
    }

    #[test]
    fn either_half_is_enough() {
        assert_eq!(reached(&[("Hearth", 3.2)]), Some(true));
        assert_eq!(reached(&[("Hearth", 6.2), ("gperftools", 6.0)]), Some(true));
        assert_eq!(
            reached(&[("Hearth", 6.4), ("gperftools", 6.0)]),
            Some(false)
        );
        assert_eq!(reached(&[("Hearth", 6.4)]), None);
        assert_eq!(reached(&[("gperftools", 6.0)]), None);
    }
}
