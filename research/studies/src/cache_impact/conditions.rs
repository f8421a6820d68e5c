//! The conditions under which a study runs: memory, priority, and what is to be said of them.

use hearth_sys::{Refused, System, schedule};

use super::snapshot::Snapshot;
use super::sweep::Unit;
use crate::results::About;

/// A buffer takes at most one part in this many of the free memory.
const MEMORY_PART: u64 = 4;

/// The largest buffer that this machine has memory for, in bytes.
pub(super) fn fitting(system: &dyn System) -> u64 {
    let text = system.read("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let free_kib: Option<u64> = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    free_kib.map_or(u64::MAX, |kib| (kib << 10) / MEMORY_PART)
}

/// Notes on the conditions that are this study's own.
pub(super) fn notes(priority: &Priority, unit: Unit, about: &mut About) {
    if let Some(refused) = &priority.refused {
        about.note(format!("not run first of all, as published: {refused}"));
    }
    if unit == Unit::Nanoseconds {
        about.note(
            "this machine has no constant time stamp counter: cycles are nanoseconds of the system's clock",
        );
    }
    let counts = Snapshot::spare().counts();
    if counts.interrupts.is_none() {
        about.note("/proc/interrupts cannot be read: runs with interrupts count as clean");
    }
    if counts.faults_minor.is_none() {
        about.note("/proc/self/stat cannot be read: runs with faults count as clean");
    }
}

/// The calling thread's nice value, put back when this is dropped.
#[derive(Debug)]
pub(super) struct Priority {
    before: i32,
    /// The nice value in force now.
    pub(super) now: i32,
    refused: Option<Refused>,
}

impl Priority {
    /// Sets the published nice value, the highest priority.
    pub(super) fn highest() -> Priority {
        const PUBLISHED: i32 = -20;
        let before = schedule::nice();
        let refused = schedule::set_nice(PUBLISHED).err();
        Priority {
            before,
            now: schedule::nice(),
            refused,
        }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        // Going back needs no right.
        let _ = schedule::set_nice(self.before);
    }
}
