//! Linux's text files, parsed. Pure: text in, data out, so that recorded files work too.

pub use crate::lists::parse_list;
use crate::system::System;

/// Bytes that programs can still take without harm to others, by `MemAvailable` of `/proc/meminfo`.
/// None where it cannot be read.
pub fn available_bytes(system: &dyn System) -> Option<u64> {
    let text = system.read("/proc/meminfo").ok()?;
    Some(meminfo_kib(&text, "MemAvailable:")? << 10)
}

/// Bytes that programs can still take on one node: free memory and the part of the page cache that
/// needs no writing. Memory bound to a node beyond this wakes the kernel's out-of-memory killer.
/// None where it cannot be read.
pub fn available_on_node(system: &dyn System, node: usize) -> Option<u64> {
    let path = format!("/sys/devices/system/node/node{node}/meminfo");
    let text = system.read(&path).ok()?;
    let cached = meminfo_kib(&text, "Inactive(file):").unwrap_or(0);
    Some((meminfo_kib(&text, "MemFree:")? + cached) << 10)
}

/// The number after a word, in both forms of the file: nodes put `Node 0` first.
fn meminfo_kib(text: &str, word: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    words.find(|found| *found == word)?;
    words.next()?.parse().ok()
}

/// A core's time from `/proc/stat`, in the kernel's ticks (usually 10 ms) since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// The core.
    pub core: usize,
    /// Programs, nice ones included.
    pub user: u64,
    /// The kernel, interrupts included.
    pub system: u64,
    /// Nothing to do, waiting for devices included.
    pub idle: u64,
    /// Ready to run, while the hypervisor ran another guest.
    pub steal: u64,
}

impl CpuTimes {
    /// The sum of all.
    pub fn total(&self) -> u64 {
        self.user + self.system + self.idle + self.steal
    }
}

/// Parses the lines of single cores in `/proc/stat`.
pub fn parse_stat(text: &str) -> Vec<CpuTimes> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split(' ');
            let core = words.next()?.parse().ok()?;
            let times: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
            // user nice system idle iowait irq softirq steal; old kernels stop earlier.
            let at = |index: usize| times.get(index).copied().unwrap_or(0);
            Some(CpuTimes {
                core,
                user: at(0) + at(1),
                system: at(2) + at(5) + at(6),
                idle: at(3) + at(4),
                steal: at(7),
            })
        })
        .collect()
}

/// A snapshot of `/proc/interrupts`, to be parsed when there is time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts(pub String);

impl Interrupts {
    /// The file now; empty where it may not be read.
    pub fn snapshot(system: &dyn System) -> Interrupts {
        Interrupts(system.read("/proc/interrupts").unwrap_or_default())
    }

    /// Interrupts of all kinds for each core, as (core, count). Empty when there is no header.
    pub fn by_core(&self) -> Vec<(usize, u64)> {
        let mut totals = self.cores();
        for (_, counts) in self.by_kind() {
            for (total, count) in totals.iter_mut().zip(counts) {
                total.1 += count;
            }
        }
        totals
    }

    /// The count of each line, as (name, count for each core of the header). Lines that are not
    /// counted by core, such as `ERR`, are left out.
    pub fn by_kind(&self) -> Vec<(&str, Vec<u64>)> {
        let cores = self.cores().len();
        self.0
            .lines()
            .skip(1)
            .filter_map(|line| {
                let (name, rest) = line.trim_start().split_once(':')?;
                let counts: Vec<u64> = rest
                    .split_whitespace()
                    .take(cores)
                    .map_while(|word| word.parse().ok())
                    .collect();
                (counts.len() == cores && cores > 0).then_some((name, counts))
            })
            .collect()
    }

    fn cores(&self) -> Vec<(usize, u64)> {
        let header = self.0.lines().next().unwrap_or_default();
        header
            .split_whitespace()
            .filter_map(|word| Some((word.strip_prefix("CPU")?.parse().ok()?, 0)))
            .collect()
    }
}
