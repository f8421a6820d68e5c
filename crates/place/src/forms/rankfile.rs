//! Open MPI's rankfile: a line for each process, with its host and its *slot*.

use std::collections::HashMap;
use std::fmt::Write;

use hearth_machine::topology::{Core, OsThread, Thread, Topology};

use super::cpus::Placed;
use super::error::BindError;
use super::text::escape;

/// Numbering of a rankfile's slots.
#[derive(Clone, Copy, Debug)]
pub enum SlotNumbering<'a> {
    /// Cores, in hwloc's order: Open MPI's default.
    Cores(&'a Topology),
    /// Hardware threads, in hwloc's order: with `--use-hwthread-cpus`.
    Threads(&'a Topology),
    /// Hardware threads by the system's numbers: Open MPI up to version 4 with
    /// `--mca rmaps_rank_file_physical 1`.
    System,
}

impl SlotNumbering<'_> {
    /// Options that make `mpirun` read the file so.
    #[must_use]
    pub const fn options(&self) -> &'static str {
        match self {
            Self::Cores(_) => "--rankfile",
            Self::Threads(_) => "--use-hwthread-cpus --rankfile",
            Self::System => "--mca rmaps_rank_file_physical 1 --rankfile",
        }
    }
}

/// Writes a rankfile for a program with a process for each component: process k is component k.
/// `host` is a name from the host file, or `+n0`, the first host of an existing allocation.
///
/// # Errors
/// If there are no components, if the file cannot hold the host's name, or if a component is on a
/// hardware thread that the machine lacks.
///
/// ```
/// use hearth_machine::{synthetic, topology::OsThread};
/// use hearth_place::forms::{Placed, SlotNumbering, rankfile};
///
/// // The system deals its numbers out: cores 0 and 2 are in the first package.
/// let machine = synthetic::parse("2 packages, 2 cores, numbering dealt")?;
/// let placed = ["maker", "taker"].iter().zip([0, 2]);
/// let placed: Vec<Placed> = placed.map(|(name, cpu)| Placed::new(*name, OsThread(cpu))).collect();
/// let text = rankfile(&placed, "localhost", SlotNumbering::Cores(&machine))?;
/// assert!(text.ends_with("# taker\nrank 1=localhost slot=1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rankfile(
    placed: &[Placed],
    host: &str,
    slots: SlotNumbering<'_>,
) -> Result<String, BindError> {
    if placed.is_empty() {
        return Err(BindError::Nothing);
    }
    let relative = host.strip_prefix('+').unwrap_or(host);
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b".-_:".contains(&b);
    if relative.is_empty() || !relative.bytes().all(is_plain) {
        return Err(BindError::Host {
            host: host.escape_debug().to_string(),
        });
    }
    let numbers = numbers(slots);
    let mut text = format!("# mpirun {} FILE PROGRAM\n", slots.options());
    for (rank, placed) in placed.iter().enumerate() {
        let slot = match &numbers {
            None => placed.cpu.0,
            Some(numbers) => {
                let known = numbers.get(&placed.cpu);
                *known.ok_or_else(|| BindError::NoSuchCpu {
                    component: placed.name.clone(),
                    cpu: placed.cpu,
                })?
            }
        };
        // On a line of its own: anything after a slot is read as part of it.
        _ = writeln!(text, "# {}", escape(&placed.name));
        _ = writeln!(text, "rank {rank}={host} slot={slot}");
    }
    Ok(text)
}

/// The slot of each hardware thread; none if it is the system's number.
fn numbers(slots: SlotNumbering<'_>) -> Option<HashMap<OsThread, u32>> {
    let (topology, by_core) = match slots {
        SlotNumbering::System => return None,
        SlotNumbering::Cores(topology) => (topology, true),
        SlotNumbering::Threads(topology) => (topology, false),
    };
    let mut numbers = HashMap::new();
    let mut last: Option<Core> = None;
    let mut next = 0;
    for thread in in_order(topology) {
        let parts = topology.thread(thread);
        // Threads of a core follow each other.
        if last.is_some_and(|last| !by_core || last != parts.core) {
            next += 1;
        }
        last = Some(parts.core);
        numbers.insert(parts.os, next);
    }
    Some(numbers)
}

/// The hardware threads in hwloc's order: of sibling parts, the one with the lowest system number
/// comes first. A thread's position is the list of lowest numbers of the parts that hold it, from
/// the outside; two threads differ where their parts diverge. Offline threads do not count, since
/// hwloc's tree has none.
fn in_order(topology: &Topology) -> Vec<Thread> {
    let mut sets: Vec<&[Thread]> = Vec::new();
    sets.extend(topology.packages().iter().map(|part| &part.threads[..]));
    sets.extend(topology.caches().iter().map(|part| &part.threads[..]));
    sets.extend(topology.cores().iter().map(|part| &part.threads[..]));
    let nodes = topology.nodes().iter().map(|part| &part.threads[..]);
    // A node that straddles other parts is not in the tree.
    let nested = |node: &&[Thread]| !node.is_empty() && sets.iter().all(|set| nests(set, node));
    let nodes: Vec<&[Thread]> = nodes.filter(nested).collect();
    sets.extend(nodes);
    // The larger ones are outside.
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let mut keys: Vec<Vec<OsThread>> = vec![Vec::new(); topology.threads().len()];
    for set in sets {
        let lowest = set.iter().map(|thread| topology.os_thread(*thread)).min();
        for thread in set {
            keys[thread.index()].extend(lowest);
        }
    }
    let mut threads: Vec<Thread> = topology.all_threads().collect();
    threads.sort_by_cached_key(|thread| {
        let mut key = keys[thread.index()].clone();
        key.push(topology.os_thread(*thread));
        key
    });
    threads
}

/// Whether two ascending sets are disjoint, or one contains the other.
fn nests(a: &[Thread], b: &[Thread]) -> bool {
    let common = a.iter().filter(|thread| b.binary_search(thread).is_ok());
    let common = common.count();
    common == 0 || common == a.len() || common == b.len()
}
