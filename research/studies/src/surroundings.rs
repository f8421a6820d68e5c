//! The cores of the machine that a study runs on, and what else that does meanwhile, in sentences
//! without a full stop.

use hearth_machine::capture::Capture;
use hearth_sys::{System, control_groups, policy, procfs};

use crate::StudyError;
use crate::files::Files;
use crate::results::Machine;

/// A machine with more load than this was not idle.
const IDLE: f64 = 0.5;
/// A smaller share of stolen time, in percent, is not worth saying.
const STOLEN: f64 = 0.1;

/// The machine at hand.
pub(crate) fn machine(system: &dyn System) -> Result<Machine, StudyError> {
    let unknown = |why: String| StudyError::Machine { why };
    let capture = Capture::gather(&mut Files(system));
    let reading = capture.read().map_err(|error| unknown(error.to_string()))?;
    let allowed = system
        .allowed()
        .map_err(|error| unknown(error.to_string()))?;
    Ok(Machine {
        processor: reading
            .environment
            .processor
            .unwrap_or_else(|| "unknown".into()),
        kernel: reading.environment.kernel.unwrap_or_default(),
        hypervisor: reading.environment.hypervisor,
        threads: allowed.len(),
        // A kernel without nodes has one.
        nodes: policy::nodes_allowed().unwrap_or_else(|_| vec![0]),
    })
}

/// One hardware thread of each core that may be used.
pub(crate) fn cores(system: &dyn System) -> Result<Vec<usize>, StudyError> {
    let unknown = |error: &dyn ToString| StudyError::Machine {
        why: error.to_string(),
    };
    let allowed = system.allowed().map_err(|error| unknown(&error))?;
    let capture = Capture::gather(&mut Files(system));
    let reading = capture.read().map_err(|error| unknown(&error))?;
    let topology = &reading.topology;
    let is_first = |core: &usize| {
        let of = topology
            .threads()
            .iter()
            .find(|thread| thread.os.0 as usize == *core);
        of.is_none_or(|thread| thread.smt == 0)
    };
    let cores: Vec<usize> = allowed.iter().copied().filter(is_first).collect();
    Ok(if cores.is_empty() { allowed } else { cores })
}

/// Collects notes to make before a run.
pub(crate) fn notes(
    system: &dyn System,
    machine: &Machine,
    is_quick: bool,
    is_debug_build: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if is_quick {
        notes.push("a quick run, with small loads and few runs: a look, not a result".to_owned());
    }
    if is_debug_build {
        notes.push("built without optimisation: no figure here is to be kept".to_owned());
    }
    if let Some(hypervisor) = &machine.hypervisor {
        notes.push(format!(
            "a virtual machine ({hypervisor}): its cores are threads of another system, which may move and \
             interrupt them unseen"
        ));
    }
    if let Some(quota) = control_groups::quota(system) {
        notes.push(format!(
            "this process may use {quota:.1} cores' worth of time"
        ));
    }
    if let Ok(load) = system.read("/proc/loadavg")
        && let Some(load) = load
            .split(' ')
            .next()
            .and_then(|load| load.parse::<f64>().ok())
        && load >= IDLE
    {
        notes.push(format!(
            "the machine was not idle as it began: a load of {load:.1}"
        ));
    }
    notes
}

/// The hypervisor's and all ticks of the cores, at some time.
pub(crate) struct Stolen {
    stolen: u64,
    all: u64,
}

impl Stolen {
    /// Until now.
    pub(crate) fn now(system: &dyn System) -> Stolen {
        let text = system.read("/proc/stat").unwrap_or_default();
        let times = procfs::parse_stat(&text);
        let sum = |of: fn(&procfs::CpuTimes) -> u64| times.iter().map(of).sum();
        Stolen {
            stolen: sum(|times| times.steal),
            all: sum(procfs::CpuTimes::total),
        }
    }

    /// Notes the time stolen since then, if it is worth saying.
    pub(crate) fn note(&self, system: &dyn System) -> Option<String> {
        let now = Stolen::now(system);
        let all = now.all.saturating_sub(self.all).max(1) as f64;
        let share = 100.0 * now.stolen.saturating_sub(self.stolen) as f64 / all;
        (share >= STOLEN).then(|| format!("the hypervisor took {share:.1} % of the machine's time"))
    }
}
