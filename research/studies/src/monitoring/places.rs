//! The source's rows, and the cores that this machine has for them.

use hearth_machine::topology::{Thread, Topology};
use serde::{Deserialize, Serialize};

/// A row of the source's table: how the writer writes, and where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Row {
    /// Synchronous; one thread of one core.
    S1,
    /// Synchronous; both threads of one core.
    S2,
    /// Asynchronous, on the application's own thread of its core.
    A1,
    /// Asynchronous, on the other thread of the core.
    A2,
    /// Asynchronous, on another core under a cache that both share.
    A3,
    /// Asynchronous, on a core of another package.
    A4,
    /// Asynchronous, wherever the system lets it run.
    A5,
}

impl Row {
    /// All, in the source's order.
    pub const ALL: [Row; 7] = [
        Row::S1,
        Row::S2,
        Row::A1,
        Row::A2,
        Row::A3,
        Row::A4,
        Row::A5,
    ];

    /// The source's name.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Row::S1 => "S1",
            Row::S2 => "S2",
            Row::A1 => "A1",
            Row::A2 => "A2",
            Row::A3 => "A3",
            Row::A4 => "A4",
            Row::A5 => "A5",
        }
    }

    /// Its meaning, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Row::S1 => "synchronous, one core",
            Row::S2 => "synchronous, both threads of a core",
            Row::A1 => "asynchronous, the writer on the same core",
            Row::A2 => "asynchronous, on the core's second thread",
            Row::A3 => "asynchronous, on a neighbour under the same cache",
            Row::A4 => "asynchronous, on another package",
            Row::A5 => "asynchronous, all cores",
        }
    }

    /// Whether the thread that fills a block writes it.
    #[must_use]
    pub const fn is_synchronous(self) -> bool {
        matches!(self, Row::S1 | Row::S2)
    }

    /// The part of a machine that it needs, for machines that lack it.
    #[must_use]
    pub const fn need(self) -> &'static str {
        match self {
            Row::S2 | Row::A2 => "a core of two threads",
            Row::A3 => "two cores under one cache",
            Row::A4 => "two packages",
            Row::S1 | Row::A1 => "a core",
            Row::A5 => "two cores",
        }
    }
}

/// Cores of a row, by the system's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The row.
    pub row: Row,
    /// Cores that the process may use.
    pub allowed: Vec<usize>,
    /// The application's thread, if it stays on one.
    pub application: Option<usize>,
    /// The writer's, if it stays on one.
    pub writer: Option<usize>,
}

/// The rows that a machine has places for, in the source's order. What the system says of threads
/// and caches is taken as it is.
#[must_use]
pub fn places(topology: &Topology, allowed: &[usize]) -> Vec<Place> {
    let number = |thread: Thread| topology.os_thread(thread).0 as usize;
    let threads: Vec<Thread> = topology.all_threads().collect();
    let mine: Vec<Thread> = threads
        .into_iter()
        .filter(|&thread| allowed.contains(&number(thread)))
        .collect();
    // The application stays on the thread that has most kinds of neighbours; the first of those.
    let neighbours = |&of: &Thread| -> [Option<Thread>; 3] {
        [sibling, neighbour, far].map(|is| {
            let mut others = mine.iter().copied().filter(|&other| other != of);
            others.find(|&other| is(topology, of, other))
        })
    };
    let best = mine
        .iter()
        .rev()
        .max_by_key(|thread| neighbours(thread).iter().flatten().count());
    let Some(&application) = best else {
        return Vec::new();
    };
    let [sibling, neighbour, far] = neighbours(&application).map(|found| found.map(number));
    let application = number(application);
    let pinned = |row, writer: usize| {
        let mut allowed = vec![application, writer];
        allowed.dedup();
        Place {
            row,
            allowed,
            application: Some(application),
            writer: Some(writer),
        }
    };
    let of = |row| match row {
        Row::S1 | Row::A1 => Some(pinned(row, application)),
        Row::S2 | Row::A2 => sibling.map(|writer| pinned(row, writer)),
        Row::A3 => neighbour.map(|writer| pinned(row, writer)),
        Row::A4 => far.map(|writer| pinned(row, writer)),
        Row::A5 => (mine.len() > 1).then(|| Place {
            row,
            allowed: mine.iter().copied().map(number).collect(),
            application: None,
            writer: None,
        }),
    };
    Row::ALL.into_iter().filter_map(of).collect()
}

/// Two threads of a core.
fn sibling(topology: &Topology, of: Thread, other: Thread) -> bool {
    topology.thread(of).core == topology.thread(other).core
}

/// Two cores of a package under one cache.
fn neighbour(topology: &Topology, of: Thread, other: Thread) -> bool {
    let mut caches = topology.data_caches(of);
    !sibling(topology, of, other)
        && !far(topology, of, other)
        && caches.any(|cache| cache.threads.contains(&other))
}

fn far(topology: &Topology, of: Thread, other: Thread) -> bool {
    topology.thread(of).package != topology.thread(other).package
}
