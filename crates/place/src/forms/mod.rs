//! Graphs and placements in other tools' formats.
//!
//! | form | for | |
//! |---|---|---|
//! | dense communication matrix | TreeMatch, `TopoMatch` | [`write_matrix`], [`read_matrix`] |
//! | `.graph` | METIS and others | [`write_metis`], [`read_metis`] |
//! | rankfile | Open MPI | [`rankfile()`] |
//! | command lines | `taskset`, `numactl` | [`taskset`], [`numactl`] and those for each component |
//! | variables | OpenMP runtimes | [`openmp()`], [`openmp_program`], [`gomp`] |
//! | lists, masks and names of cpusets | the kernel, containers | [`CpuSet`] |
//!
//! Writers of placements take a list of [`Placed`] and return a text for others to run: nothing is
//! run here.

mod cpus;
mod error;
mod matrix;
mod measure;
mod metis;
mod openmp;
mod rankfile;
mod shell;
mod text;

pub use cpus::{CpuSet, Placed};
pub use error::{BindError, Fault, ReadError, WriteError};
pub use matrix::{MATRIX_COMPONENTS_MAX, Ways, read_matrix, read_names, write_matrix, write_names};
pub use measure::{Measure, Read, Reading};
pub use metis::{Vertices, read_metis, write_metis};
pub use openmp::{VARIABLE_BYTES_MAX, Variables, gomp, openmp, openmp_program};
pub use rankfile::{SlotNumbering, rankfile};
pub use shell::{
    MemoryPolicy, numactl, numactl_each, quote, taskset, taskset_each, taskset_threads,
};
