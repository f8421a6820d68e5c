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
    /// The node whose memory it has; nothing if not known.
    pub node: Option<OsNode>,
}

impl Placed {
    /// A component on a hardware thread, its node not known.
    pub fn new(name: impl Into<String>, cpu: OsThread) -> Self {
        Self {
            name: name.into(),
            cpu,
            node: None,
        }
    }

    /// The same with the memory of that node.
    #[must_use]
    pub const fn on_node(mut self, node: OsNode) -> Self {
        self.node = Some(node);
        self
    }
}

/// What a whole program uses: for cpusets, and to bind it as one.
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
    /// Ascending, each once; nothing if the node of a component is not known.
    nodes: Option<Vec<OsNode>>,
}

impl CpuSet {
    /// What the components use together.
    ///
    /// # Errors
    /// If there are none.
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

    /// The nodes, ascending; nothing if not all are known.
    #[must_use]
    pub fn nodes(&self) -> Option<&[OsNode]> {
        self.nodes.as_deref()
    }

    /// The hardware threads as the kernel, `taskset` and containers have them: `0-3,8`.
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

    /// The hardware threads as a mask of the kernel's: parts of 32 bits in hexadecimal digits,
    /// the highest first, as `smp_affinity` and `Cpus_allowed` have them.
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

    /// The files of a control group and what to write into them, a line each. Without nodes, if
    /// they are not known: the group keeps its parent's then.
    #[must_use]
    pub fn cpuset(&self) -> String {
        let mut lines = format!("cpuset.cpus={}\n", self.cpu_list());
        if let Some(nodes) = self.node_list() {
            lines += &format!("cpuset.mems={nodes}\n");
        }
        lines
    }
}

/// Numbers in their order, with runs of three and more that ascend by one put together: the first
/// of each run and how long it is.
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
