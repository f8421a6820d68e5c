//! The remains of a round: in the runtime, in memory, in the system's tables.

use hearth_runtime::census::{self, Census};

#[repr(C)]
struct Mallinfo2 {
    counts: [usize; 10],
}

unsafe extern "C" {
    fn mallinfo2() -> Mallinfo2;
}

/// Index of the bytes in use in the allocator's counts.
const IN_USE: usize = 7;
/// Index of the bytes in separately mapped blocks.
const MAPPED: usize = 4;

/// The remains between two rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) census: Census,
    pub(crate) descriptors: usize,
}

pub(crate) fn exact() -> Exact {
    Exact {
        census: census::take(),
        descriptors: entries("/proc/self/fd"),
    }
}

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

pub(crate) fn threads() -> usize {
    entries("/proc/self/task")
}

/// Returns the bytes in allocated blocks, and the resident bytes of memory.
pub(crate) fn bytes() -> (usize, usize) {
    // SAFETY: it only reads the allocator's counts.
    let info = unsafe { mallinfo2() };
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident: usize = pages
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    (info.counts[IN_USE] + info.counts[MAPPED], resident * 4096)
}

/// Detects growth from round to round. Of the rounds after the first quarter, the least of the last
/// half is compared with the most of the first: caches are bounded, and soon full, while leaks
/// grow.
pub(crate) struct Growth {
    name: &'static str,
    seen: Vec<usize>,
    slack: usize,
}

impl Growth {
    pub(crate) fn new(name: &'static str, slack: usize) -> Growth {
        Growth {
            name,
            seen: Vec::new(),
            slack,
        }
    }

    pub(crate) fn see(&mut self, value: usize) {
        self.seen.push(value);
    }

    /// Returns the most before and the least after.
    fn halves(&self) -> Option<(usize, usize)> {
        let settled = &self.seen[self.seen.len() / 4..];
        let (before, after) = settled.split_at(settled.len() / 2);
        Some((*before.iter().max()?, *after.iter().min()?))
    }

    pub(crate) fn check(&self) {
        if let Some((before, after)) = self.halves() {
            println!("soak:   {}: {before} at most, then {after}", self.name);
            assert!(
                after <= before + self.slack,
                "{} grow from {before} to {after} at least",
                self.name
            );
        }
    }
}
