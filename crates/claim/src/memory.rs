//! Memory of a program, brought along when its claim leaves a node.
//!
//! New pages lie on the node of the thread that touches them first, so they need nothing. Pages on
//! nodes of which the claim has no core any more are moved to its nodes, by the kernel
//! (`migrate_pages`), while the program runs. That may take long, so a thread of its own does it:
//! nobody who waits for the cores waits for memory.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use hearth_sys::procfs::parse_list;
use hearth_sys::signal::Signals;
use hearth_sys::{Linux, System, policy};

use crate::threads::processes;

/// CPUs of a claim before and after it has changed.
type Change = (Vec<usize>, Vec<usize>);

/// A thread that moves a program's memory. On a machine of one node there is no such thread, and
/// nothing to do.
#[derive(Debug)]
pub struct MemoryMover {
    changes: Option<Sender<Change>>,
}

impl MemoryMover {
    /// Begins for a process and its descendants. If there is no room for a thread, memory stays
    /// where it is.
    #[must_use]
    pub fn of(process: u32) -> MemoryMover {
        MemoryMover::for_all(move || processes(process))
    }

    /// The same for the calling process alone: programs that it started may have claims of their
    /// own.
    #[must_use]
    pub fn of_this_process() -> MemoryMover {
        MemoryMover::for_all(|| vec![std::process::id()])
    }

    fn for_all(processes: impl Fn() -> Vec<u32> + Send + 'static) -> MemoryMover {
        let nodes = Nodes::of(&Linux);
        let changes = (nodes.cpus.len() > 1).then(|| {
            let (changes, orders) = mpsc::channel();
            let mover = thread::Builder::new().name("hearth-memory".to_owned());
            let work = move || obey(&orders, &nodes, &processes);
            // The program's signals are for its own threads.
            let made = Signals::all_blocked(|| mover.spawn(work));
            made.ok().map(|_| changes)
        });
        MemoryMover {
            changes: changes.flatten(),
        }
    }

    /// Has memory follow from a claim's former CPUs to its present ones.
    pub fn follow(&self, from: &[usize], to: &[usize]) {
        if let Some(changes) = &self.changes {
            // The thread ends with its orders.
            let _ = changes.send((from.to_vec(), to.to_vec()));
        }
    }
}

fn obey(orders: &Receiver<Change>, nodes: &Nodes, processes: &dyn Fn() -> Vec<u32>) {
    // A claim that loses its last core says nothing of where its memory should be.
    let mut left: Vec<usize> = Vec::new();
    while let Ok((from, to)) = orders.recv() {
        left.extend(from);
        let (nodes_left, to) = nodes.way(&left, &to);
        if to.is_empty() {
            continue;
        }
        left.clear();
        if nodes_left.is_empty() {
            continue;
        }
        for process in processes() {
            // Pages that cannot be moved are only farther away.
            let _ = policy::migrate(process, &nodes_left, &to);
        }
    }
}

/// The machine's nodes: number, CPUs, and whether they have memory.
#[derive(Clone, Debug, Default)]
struct Nodes {
    cpus: Vec<(usize, Vec<usize>)>,
    with_memory: Vec<usize>,
}

impl Nodes {
    fn of(system: &dyn System) -> Nodes {
        let folder = "/sys/devices/system/node";
        let names = system.list(folder).unwrap_or_default();
        let numbers = names
            .iter()
            .filter_map(|name| name.strip_prefix("node")?.parse::<usize>().ok());
        let cpus = numbers.filter_map(|number| {
            let list = system.read(&format!("{folder}/node{number}/cpulist"));
            Some((number, parse_list(&list.ok()?)))
        });
        Nodes {
            cpus: cpus.collect(),
            with_memory: system.memory_nodes().unwrap_or_default(),
        }
    }

    /// Nodes with memory that a claim leaves, and those where it has cores afterwards.
    fn way(&self, from: &[usize], to: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let with = |cpus: &[usize]| -> Vec<usize> {
            let has_one =
                |(_, own): &&(usize, Vec<usize>)| own.iter().any(|one| cpus.contains(one));
            let found = self.cpus.iter().filter(has_one).map(|(number, _)| *number);
            found
                .filter(|node| self.with_memory.contains(node))
                .collect()
        };
        let to = with(to);
        let left = with(from).into_iter().filter(|node| !to.contains(node));
        (left.collect(), to)
    }
}

#[cfg(test)]
mod tests {
    use hearth_sys::Fake;

    use super::*;

    #[test]
    fn memory_leaves_the_nodes_that_a_claim_leaves() {
        let system = Fake::with_cores(&[0, 1, 2, 3, 4, 5])
            .file("/sys/devices/system/node/node0/cpulist", "0-1\n")
            .file("/sys/devices/system/node/node1/cpulist", "2-3\n")
            .file("/sys/devices/system/node/node2/cpulist", "4-5\n")
            .file("/sys/devices/system/node/has_memory", "0-1\n")
            .with_nodes(&[0, 1]);
        let nodes = Nodes::of(&system);
        assert_eq!(nodes.way(&[0, 1, 2], &[2]), (vec![0], vec![1]));
        assert_eq!(nodes.way(&[0], &[3]), (vec![0], vec![1]));
        assert_eq!(nodes.way(&[0], &[0, 2]), (vec![], vec![0, 1]), "it grew");
        assert_eq!(nodes.way(&[0], &[4]), (vec![0], vec![]), "no memory there");
        assert_eq!(nodes.way(&[], &[0]), (vec![], vec![0]), "it began");
    }
}
