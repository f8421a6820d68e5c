//! A placement as a list, and the hardware threads and nodes that it uses.

use hearth_machine::topology::{OsNode, OsThread, format_list};

use super::error::BindError;

/// A component and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its name.
    pub name: String,
    /// The hardware thread that runs it.
    pub cpu: OsThread,
    /// The node of its memory, if known.
    pub node: Option<OsNode>,
}

impl Placed {
    /// A component on a hardware thread; its node is not known.
    pub fn new(name: impl Into<String>, cpu: OsThread) -> Self {
        Self {
            name: name.into(),
            cpu,
            node: None,
        }
    }

    /// The same with memory on that node.
    #[must_use]
    pub const fn on_node(mut self, node: OsNode) -> Self {
        self.node = Some(node);
        self
    }
}

/// Hardware threads and nodes of a whole program: for cpusets, and to bind it as one.
///
/// ```
/// use hearth_machine::topology::{OsNode, OsThread};
/// use hearth_place::forms::{CpuSet, Placed};
///
/// let placed = [8, 0, 1, 0].map(|cpu| Placed::new("c", OsThread(cpu)).on_node(OsNode(cpu / 8)));
/// let set = CpuSet::of(&placed)?;
/// assert_eq!(set.cpu_list(), "0-1,8");
/// assert_eq!(set.node_list().unwrap(), "0-1");
/// assert_eq!(set.cpu_mask(), "00000103");
/// assert_eq!(set.cpuset(), "cpuset.cpus=0-1,8\ncpuset.mems=0-1\n");
/// # Ok::<(), hearth_place::forms::BindError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet {
    /// Ascending, each once; at least one.
    cpus: Vec<OsThread>,
    /// Ascending, each once; none if the node of a component is not known.
    nodes: Option<Vec<OsNode>>,
}

impl CpuSet {
    /// The set that the components use together.
    ///
    /// # Errors
    /// If there are no components.
    pub fn of(placed: &[Placed]) -> Result<Self, BindError> {
        if placed.is_empty() {
            return Err(BindError::Nothing);
        }
        let mut cpus: Vec<OsThread> = placed.iter().map(|placed| placed.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let nodes: Option<Vec<OsNode>> = placed.iter().map(|placed| placed.node).collect();
        let nodes = nodes.map(|mut nodes| {
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        });
        Ok(Self { cpus, nodes })
    }

    /// The hardware threads, ascending.
    #[must_use]
    pub fn cpus(&self) -> &[OsThread] {
        &self.cpus
    }

    /// The nodes, ascending; none unless all are known.
    #[must_use]
    pub fn nodes(&self) -> Option<&[OsNode]> {
        self.nodes.as_deref()
    }

    /// The hardware threads as the kernel, `taskset` and containers write them: `0-3,8`.
    #[must_use]
    pub fn cpu_list(&self) -> String {
        format_list(self.cpus.iter().map(|cpu| cpu.0))
    }

    /// The nodes as a list, if they are known.
    #[must_use]
    pub fn node_list(&self) -> Option<String> {
        let nodes = self.nodes.as_ref()?;
        Some(format_list(nodes.iter().map(|node| node.0)))
    }

    /// The hardware threads as a mask in the kernel's form: parts of 32 bits in hexadecimal digits,
    /// the highest first, as in `smp_affinity` and `Cpus_allowed`.
    #[must_use]
    pub fn cpu_mask(&self) -> String {
        let highest = self.cpus.last().map_or(0, |cpu| cpu.0 / 32);
        let mut parts = Vec::new();
        let mut rest = self.cpus.as_slice();
        for part in (0..=highest).rev() {
            let first = rest.partition_point(|cpu| cpu.0 / 32 < part);
            let bits = rest[first..]
                .iter()
                .fold(0u32, |bits, cpu| bits | 1 << (cpu.0 % 32));
            parts.push(format!("{bits:08x}"));
            rest = &rest[..first];
        }
        parts.join(",")
    }

    /// The files of a control group and their contents, one a line. Without known nodes, the line
    /// for them is left out and the group keeps its parent's.
    #[must_use]
    pub fn cpuset(&self) -> String {
        let mut lines = format!("cpuset.cpus={}\n", self.cpu_list());
        if let Some(nodes) = self.node_list() {
            lines += &format!("cpuset.mems={nodes}\n");
        }
        lines
    }
}

/// Runs of numbers in their order: three or more that ascend by one become one run. Yields the
/// first number of each run and its length.
pub(super) fn runs(cpus: impl Iterator<Item = OsThread>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((first, length)) if first.checked_add(*length) == Some(cpu.0) => *length += 1,
            _ => runs.push((cpu.0, 1)),
        }
    }
    let parts = runs.into_iter().flat_map(|(first, length)| match length {
        2 => vec![(first, 1), (first + 1, 1)],
        _ => vec![(first, length)],
    });
    parts.collect()
}
