//! The machine's nodes: the CPUs of each, the order in which other nodes help out, and how full
//! they are.
//!
//! All of it is read once from `/sys`, before there is a heap: into fixed buffers, as nothing can
//! be allocated yet. The order follows the distances in `HEARTH_NODE_DISTANCES`, measured by
//! `hearth probe`; without them the kernel's, which repeat the firmware's.
//!
//! Within this crate a node is its index among the nodes with memory; only this module knows the
//! system's numbers. A process with a memory policy of its own (`numactl`, `set_mempolicy`) is left
//! alone: all its memory counts as one node.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};

use crate::ground::directory::Directory;
use crate::ground::environment::{self, decimal};
use crate::ground::os;
use crate::store::pool::NODES_MAX;
use hearth_atomics::Ordering;

/// CPUs with a known node. Others count as the first node's.
const CPUS_MAX: usize = 4096;

/// The number of nodes; at least one once the process has begun. These tables describe the machine.
static COUNT: AtomicU32 = AtomicU32::new(1);
/// The system's number of each node.
static NUMBERS: [AtomicU16; NODES_MAX] = [const { AtomicU16::new(0) }; NODES_MAX];
static NODE_OF_CPU: [AtomicU8; CPUS_MAX] = [const { AtomicU8::new(0) }; CPUS_MAX];
/// For each node all nodes, nearest first, itself at the head.
static ORDER: [[AtomicU8; NODES_MAX]; NODES_MAX] =
    [const { [const { AtomicU8::new(0) }; NODES_MAX] }; NODES_MAX];

/// The variable with distances: rows separated by semicolons, numbers by commas, as many of each as
/// there are nodes with memory.
const DISTANCES: &[u8] = b"HEARTH_NODE_DISTANCES=";

/// The number of nodes.
pub(crate) fn count() -> usize {
    COUNT.load(Ordering::Relaxed) as usize
}

/// The node of a CPU.
pub(crate) fn of_cpu(cpu: u32) -> usize {
    if count() == 1 {
        return 0;
    }
    NODE_OF_CPU
        .get(cpu as usize)
        .map_or(0, |node| node.load(Ordering::Relaxed) as usize)
}

/// Describes the nodes for inspection.
pub(crate) fn describe(directory: &mut Directory) {
    directory.node_numbers = NUMBERS.as_ptr().addr() as u64;
    directory.node_numbers_stride = size_of::<AtomicU16>() as u64;
}

/// The system's number of a node.
pub(crate) fn number(node: usize) -> u32 {
    u32::from(NUMBERS[node].load(Ordering::Relaxed))
}

/// The nodes that supply memory for this one, in order.
pub(crate) fn order(node: usize) -> impl Iterator<Item = usize> {
    ORDER[node][..count()]
        .iter()
        .map(|other| other.load(Ordering::Relaxed) as usize)
}

/// Whether a node has free memory for this many bytes and keeps a reserve. True if it does not say.
pub(crate) fn has_room(node: usize, bytes: usize) -> bool {
    let mut buffer = [0; 4096];
    let Some(text) = read_of(number(node), b"meminfo", &mut buffer) else {
        return true;
    };
    let (Some(total), Some(free)) = (kib_of(text, b"MemTotal:"), kib_of(text, b"MemFree:")) else {
        return true;
    };
    // The kernel gives up inactive file pages for it.
    let cached = kib_of(text, b"Inactive(file):").unwrap_or(0);
    free + cached > (bytes >> 10) + total / KEPT
}

/// Whether the machine has this much memory available. True if it does not say.
pub(crate) fn machine_has(bytes: usize) -> bool {
    let mut buffer = [0; 4096];
    os::read_file(b"/proc/meminfo\0", &mut buffer)
        .and_then(|text| kib_of(text, b"MemAvailable:"))
        .is_none_or(|available| available > bytes >> 10)
}

/// The address space that the process uses already, in bytes; 0 if unknown.
pub(crate) fn mapped_bytes() -> usize {
    let mut buffer = [0; 256];
    os::read_file(b"/proc/self/statm\0", &mut buffer)
        .and_then(|text| text.split(|byte| *byte == b' ').next().and_then(decimal))
        .map_or(0, |pages| pages.saturating_mul(os::PAGE))
}

/// The reserve of a node, as a fraction of its memory: below it the kernel begins to look elsewhere
/// by itself.
const KEPT: usize = 32;

/// Treats all memory as one node from now on.
pub(crate) fn forget() {
    COUNT.store(1, Ordering::Relaxed);
    ORDER[0][0].store(0, Ordering::Relaxed);
}

/// Reads the machine's nodes.
pub(crate) fn read() {
    ORDER[0][0].store(0, Ordering::Relaxed);
    COUNT.store(1, Ordering::Relaxed);
    let mut buffer = [0; 512];
    let Some(online) = os::read_file(b"/sys/devices/system/node/has_memory\0", &mut buffer) else {
        return;
    };
    if !os::is_policy_default() {
        return;
    }
    let allowed = os::allowed_nodes();
    let mut nodes = 0;
    for_ranges(online, |number| {
        let is_allowed = allowed
            .get(number / 64)
            .is_none_or(|word| word >> (number % 64) & 1 == 1);
        if nodes < NODES_MAX && is_allowed {
            NUMBERS[nodes].store(number as u16, Ordering::Relaxed);
            nodes += 1;
        }
    });
    if nodes > 1 {
        read_several(nodes);
    }
}

/// A function of its own, as stack pages touched stay resident.
#[inline(never)]
fn read_several(nodes: usize) {
    COUNT.store(nodes as u32, Ordering::Relaxed);
    let mut distances = [[0u16; NODES_MAX]; NODES_MAX];
    for (node, row) in distances[..nodes].iter_mut().enumerate() {
        read_distances(node, nodes, row);
    }
    read_measured(nodes, &mut distances);
    for (node, row) in distances[..nodes].iter().enumerate() {
        rank(node, nodes, row);
    }
    read_cpus(nodes, &distances);
}

/// Reads the kernel's distances from a node.
fn read_distances(node: usize, nodes: usize, row: &mut [u16; NODES_MAX]) {
    let mut buffer = [0; 4096];
    let Some(text) = read_of(number(node), b"distance", &mut buffer) else {
        return;
    };
    // One for each online node, with memory or not.
    let mut online = [0; 4096];
    let Some(online) = os::read_file(b"/sys/devices/system/node/online\0", &mut online) else {
        return;
    };
    let mut values = text
        .split(|byte| !byte.is_ascii_digit())
        .filter_map(decimal);
    for_ranges(online, |number| {
        let value = values.next().unwrap_or(0);
        for (other, place) in row[..nodes].iter_mut().enumerate() {
            if NUMBERS[other].load(Ordering::Relaxed) as usize == number {
                *place = value as u16;
            }
        }
    });
}

/// Replaces all distances by measured ones, if those are complete.
fn read_measured(nodes: usize, distances: &mut [[u16; NODES_MAX]; NODES_MAX]) {
    let mut buffer = [0; 16_384];
    let Some(text) = environment::value(DISTANCES, &mut buffer) else {
        return;
    };
    let rows = || text.split(|byte| *byte == b';');
    let is_whole = rows().count() == nodes
        && rows().all(|row| {
            row.split(|byte| *byte == b',').count() == nodes
                && row
                    .split(|byte| *byte == b',')
                    .all(|number| decimal(number).is_some())
        });
    if !is_whole {
        os::say(&[
            b"hearth: HEARTH_NODE_DISTANCES must have a row for each node with memory, and in it a \
              number for each, such as 10,13;13,10; using the kernel's distances\n",
        ]);
        return;
    }
    for (row, places) in rows().zip(distances) {
        for (number, place) in row.split(|byte| *byte == b',').zip(places) {
            *place = decimal(number).unwrap_or(0).min(u16::MAX as usize) as u16;
        }
    }
}

/// Orders all nodes by distance from one: itself first, equals by number.
fn rank(node: usize, nodes: usize, row: &[u16; NODES_MAX]) {
    let key = |other: usize| (other != node, row[other], other);
    for other in 0..nodes {
        let before = (0..nodes).filter(|third| key(*third) < key(other)).count();
        ORDER[node][before].store(other as u8, Ordering::Relaxed);
    }
}

/// Reads the node of each CPU; for a node without memory, the nearest one with memory.
fn read_cpus(nodes: usize, distances: &[[u16; NODES_MAX]; NODES_MAX]) {
    let mut online = [0; 4096];
    let Some(online) = os::read_file(b"/sys/devices/system/node/online\0", &mut online) else {
        return;
    };
    for_ranges(online, |system| {
        let known = (0..nodes).find(|node| number(*node) as usize == system);
        let node = known.or_else(|| {
            // The kernel gives no distance from there to here; the reverse must do.
            (0..nodes).min_by_key(|node| distances[*node][*node])
        });
        let mut buffer = [0; 4096];
        let Some(cpus) = read_of(system as u32, b"cpulist", &mut buffer) else {
            return;
        };
        for_ranges(cpus, |cpu| {
            if let (Some(place), Some(node)) = (NODE_OF_CPU.get(cpu), node) {
                place.store(node as u8, Ordering::Relaxed);
            }
        });
    });
}

/// Reads a file of a node.
fn read_of<'a>(number: u32, name: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let (digits, first) = os::decimal(number as usize);
    let parts: [&[u8]; 4] = [
        b"/sys/devices/system/node/node",
        &digits[first..],
        b"/",
        name,
    ];
    let mut path = [0; 64];
    let text = parts.iter().copied().flatten();
    path.iter_mut()
        .zip(text)
        .for_each(|(place, byte)| *place = *byte);
    os::read_file(&path, buffer)
}

/// Calls `each` for every number of a list such as `0-3,8`.
fn for_ranges(text: &[u8], mut each: impl FnMut(usize)) {
    for range in text.split(|byte| *byte == b',' || *byte == b'\n') {
        let mut ends = range.split(|byte| *byte == b'-').map(decimal);
        if let Some(Some(first)) = ends.next() {
            let last = ends.next().flatten().unwrap_or(first);
            (first..=last.min(first + CPUS_MAX)).for_each(&mut each);
        }
    }
}

/// The KiB in a line such as `Node 0 MemFree:  1234 kB`.
fn kib_of(text: &[u8], name: &[u8]) -> Option<usize> {
    let at = text.windows(name.len()).position(|part| part == name)?;
    text[at + name.len()..]
        .split(|byte| *byte == b' ')
        .find_map(decimal)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn lists_are_read() {
        let list = |text: &[u8]| {
            let mut found = Vec::new();
            for_ranges(text, |number| found.push(number));
            found
        };
        assert_eq!(list(b"0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(list(b"0\n"), [0]);
        assert_eq!(list(b"\n"), []);
        assert_eq!(list(b"nonsense"), []);
    }

    #[test]
    fn memory_is_read() {
        let text = b"Node 0 MemTotal:       24567890 kB\nNode 0 MemFree:  1234 kB\n";
        assert_eq!(kib_of(text, b"MemTotal:"), Some(24_567_890));
        assert_eq!(kib_of(text, b"MemFree:"), Some(1234));
        assert_eq!(kib_of(text, b"Inactive(file):"), None);
    }

    #[test]
    fn nodes_are_ranked_by_distance() {
        // The second of nMART's four: 3 is nearer to 1 than 0 is, and 2 is last.
        let mut row = [0; NODES_MAX];
        row[..4].copy_from_slice(&[13, 10, 14, 12]);
        COUNT.store(4, Ordering::Relaxed);
        rank(1, 4, &row);
        assert_eq!(order(1).collect::<Vec<_>>(), [1, 3, 0, 2]);
        // Equals are ordered by number, but a node comes first in its own order.
        row[..4].copy_from_slice(&[20, 20, 10, 20]);
        rank(2, 4, &row);
        assert_eq!(order(2).collect::<Vec<_>>(), [2, 0, 1, 3]);
        COUNT.store(1, Ordering::Relaxed);
    }
}
