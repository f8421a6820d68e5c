//! The calling thread on a node, for the programs that it starts.

use hearth_sys::policy::{self, Policy};
use hearth_sys::{System, affinity, procfs};

use crate::StudyError;

/// The processors of each node. A kernel that does not say has one node, with all of them.
pub(super) fn owners(system: &dyn System, nodes: &[usize]) -> Vec<Vec<usize>> {
    let of = |node: &usize| {
        let text = system.read(&format!("/sys/devices/system/node/node{node}/cpulist"));
        match text {
            Ok(text) => procfs::parse_list(&text),
            Err(_) => system.allowed().unwrap_or_default(),
        }
    };
    nodes.iter().map(of).collect()
}

/// The calling thread on a node's processors, with memory of some nodes only, until it is dropped:
/// what it starts meanwhile inherits both.
pub(super) struct Placed {
    processors: Vec<usize>,
}

impl Placed {
    pub(super) fn on(
        system: &dyn System,
        node: usize,
        memory: &[usize],
    ) -> Result<Placed, StudyError> {
        let processors = system.allowed().map_err(StudyError::machine)?;
        let owners = owners(system, &[node]);
        let is_own = |processor: &usize| owners.iter().any(|own| own.contains(processor));
        let own: Vec<usize> = processors.iter().copied().filter(is_own).collect();
        affinity::allow_current(&own).map_err(StudyError::machine)?;
        let placed = Placed { processors };
        policy::set_thread(&Policy::Bind(memory.to_vec()))?;
        Ok(placed)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // Going back needs no right.
        let _ = policy::set_thread(&Policy::Default);
        let _ = affinity::allow_current(&self.processors);
    }
}
