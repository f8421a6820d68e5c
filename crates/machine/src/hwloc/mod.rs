//! The XML of hwloc 2, which `lstopo`, `hwloc-bind`, Open MPI and others exchange.
//!
//! [`export()`] writes a form that hwloc 2.0 and later read: packages, caches, cores, hardware
//! threads and nodes; groups where a node equals no other object; matrices as user distances;
//! memory figures as memory attributes. [`import()`] reads that and the files of hwloc itself. An
//! export leaves out whatever hwloc cannot express: caches above level 5, instruction caches above
//! level 3, whether a node's memory is unknown, matrices of one object.
//!
//! ```
//! use hearth_machine::hwloc::{Extras, export, import};
//!
//! let machine = hearth_machine::synthetic::parse("2 packages, 2 cores, memory 4G")?;
//! let text = export(&machine, &Extras::default())?;
//! assert_eq!(import(&text)?.topology, machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bitmap;
mod export;
mod import;
mod measured;

use thiserror::Error;

use crate::topology::{OsNode, OsThread, TopologyError};

pub use export::export;
pub use import::import;

/// Data that accompanies a topology: [`Extras::of`] a profile, or put together by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Figures for each pair of threads or nodes.
    pub matrices: Vec<Matrix>,
    /// Figures for memory.
    pub memory: Vec<MemoryFigure>,
    /// Names and values about the whole machine, such as the kernel's release.
    pub about: Vec<(String, String)>,
}

/// A figure for each pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Its name, unique among the matrices of a topology. hwloc has whole numbers without units, so
    /// Hearth's names end in the unit.
    pub name: String,
    /// Rows and columns.
    pub of: MatrixOf,
    /// Meaning of the figures.
    pub meaning: Meaning,
    /// `rows[i][j]` is from the i-th to the j-th.
    pub rows: Vec<Vec<u64>>,
}

/// The rows and columns of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatrixOf {
    /// Hardware threads.
    Threads(Vec<OsThread>),
    /// Nodes.
    Nodes(Vec<OsNode>),
}

/// Meaning of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Lower is nearer.
    Latency,
    /// Higher is nearer.
    Bandwidth,
}

/// Access of some threads to a node's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFigure {
    /// The node with the memory.
    pub node: OsNode,
    /// The threads that use it, ascending: for hwloc they are a set.
    pub from: Vec<OsThread>,
    /// Latency in nanoseconds or bandwidth in MiB/s, hwloc's units.
    pub meaning: Meaning,
    /// The figure.
    pub value: u64,
}

/// A topology from hwloc.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The machine. Threads that hwloc's file knows but that have no object are offline.
    pub topology: crate::topology::Topology,
    /// Matrices, memory figures and information. The firmware's distances are in the topology
    /// instead.
    pub extras: Extras,
    /// Contents of the file that could not be used.
    pub notes: Vec<String>,
}

impl Matrix {
    /// Measured latencies in nanoseconds, kept to the picosecond; the name ends in `_ps`.
    ///
    /// # Errors
    /// A figure that is negative or not a number.
    pub fn latencies_ns(name: &str, of: MatrixOf, rows: &[Vec<f64>]) -> Result<Matrix, HwlocError> {
        let name = format!("{name}_ps");
        let cell = |ns: &f64| {
            let is_time = ns.is_finite() && *ns >= 0.0;
            is_time.then(|| (ns * 1000.0).round() as u64)
        };
        let rows = rows.iter().map(|row| row.iter().map(cell).collect());
        let rows: Option<Vec<Vec<u64>>> = rows.collect();
        match rows {
            Some(rows) => Ok(Matrix {
                name,
                of,
                meaning: Meaning::Latency,
                rows,
            }),
            None => Err(HwlocError::BadMatrix(name)),
        }
    }
}

/// Reason why XML cannot be written or read.
#[derive(Debug, Error)]
pub enum HwlocError {
    /// A matrix is not square, holds something that is not a number, or names parts that do not
    /// exist.
    #[error("the matrix `{0}` must be square, of numbers from 0, for parts that exist")]
    BadMatrix(String),
    /// A memory figure names parts that do not exist.
    #[error("a memory figure of {0} names a node or thread that does not exist")]
    BadMemoryFigure(OsNode),
    /// The text is not XML.
    #[error("not XML: {0}; write it again with lstopo")]
    Xml(String),
    /// The text is XML of another kind or version.
    #[error(
        "{0} is not what hwloc 2 writes; use `lstopo --of xml`, with hwloc 3 `lstopo --of xml --export-xml-flags v2`"
    )]
    NotHwloc(String),
    /// An attribute is missing or cannot be read.
    #[error("{element} has no readable `{attribute}`; write the file again with lstopo")]
    Attribute {
        /// The object or element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// The described machine contradicts itself.
    #[error("the described machine cannot exist: {0}")]
    Topology(#[source] TopologyError),
}
