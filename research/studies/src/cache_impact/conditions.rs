//! The conditions under which a study runs: memory, priority, what the hypervisor takes, and what
//! is to be said of them.

use hearth_sys::{Refused, System, procfs, schedule};

use super::options::CacheImpactOptions;
use super::results::Results;
use super::snapshot::Snapshot;
use super::sweep::Unit;

/// A buffer takes at most one part in this many of the free memory.
const MEMORY_PART: u64 = 4;

/// The options without sizes that this machine has no memory for, and what to say about it.
pub(super) fn fitting(
    system: &dyn System,
    options: &CacheImpactOptions,
) -> (CacheImpactOptions, Option<String>) {
    let text = system.read("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let free_kib: Option<u64> = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    let most = free_kib.map_or(u64::MAX, |kib| (kib << 10) / MEMORY_PART);
    let wanted = options.bytes().last().copied().unwrap_or(0);
    if wanted <= most {
        return (options.clone(), None);
    }
    let fitting = CacheImpactOptions {
        bytes_max: most,
        ..options.clone()
    };
    let note = format!("sizes above {most} bytes are left out: there is too little free memory");
    (fitting, Some(note))
}

pub(super) fn notes(system: &dyn System, priority: &Priority, results: &mut Results) {
    if let Some(refused) = &priority.refused {
        results.note(format!("not run first of all, as published: {refused}"));
    }
    if results.options.quick {
        results
            .note("a quick run, with a sixth of the sizes and few repeats: a look, not a result");
    }
    if results.is_debug_build {
        results.note("built without optimisation: no figure here is to be kept");
    }
    if results.unit == Unit::Nanoseconds {
        results.note(
            "this machine has no constant time stamp counter: cycles are nanoseconds of the \
             system's clock",
        );
    }
    if let Some(hypervisor) = results.site.hypervisor.clone() {
        results.note(format!(
            "a virtual machine ({hypervisor}): its cores are threads of another system, which may \
             move and interrupt them unseen"
        ));
    }
    let counts = Snapshot::spare().counts();
    if counts.interrupts.is_none() {
        results.note("/proc/interrupts cannot be read: runs with interrupts count as clean");
    }
    if counts.faults_minor.is_none() {
        results.note("/proc/self/stat cannot be read: runs with faults count as clean");
    }
    if let Some(quota) = procfs::quota(system) {
        results.note(format!(
            "this process may use {quota:.1} cores' worth of time: runs may be held back"
        ));
    }
}

/// The calling thread's nice value, put back when this is dropped.
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

/// Time that the hypervisor takes.
pub(super) struct Steal<'a> {
    system: &'a dyn System,
    begin: (u64, u64),
}

impl<'a> Steal<'a> {
    pub(super) fn begin(system: &'a dyn System) -> Steal<'a> {
        Steal {
            system,
            begin: Self::now(system),
        }
    }

    /// Ticks stolen and ticks in all, over the cores.
    fn now(system: &dyn System) -> (u64, u64) {
        let text = system.read("/proc/stat").unwrap_or_default();
        let times = procfs::parse_stat(&text);
        let sum = |of: fn(&procfs::CpuTimes) -> u64| -> u64 { times.iter().map(of).sum() };
        (sum(|t| t.steal), sum(procfs::CpuTimes::total))
    }

    /// The share of this part of the study, joined with that of earlier ones by their lengths.
    pub(super) fn join(&self, earlier: Option<f64>, earlier_s: f64, seconds: f64) -> Option<f64> {
        let now = Self::now(self.system);
        let all = now.1.saturating_sub(self.begin.1);
        let here = (all > 0).then(|| now.0.saturating_sub(self.begin.0) as f64 / all as f64);
        match (earlier, here) {
            (Some(earlier), Some(here)) => {
                let weighted = earlier * earlier_s + here * seconds;
                Some(weighted / (earlier_s + seconds).max(1e-9))
            }
            (earlier, here) => here.or(earlier),
        }
    }
}
