//! The command that says which CPUs can be had.

use clap::Args;

/// Say which CPUs a program can have now, and why it cannot have the others.
///
/// Looks at affinity, control groups, quotas and weights, and for a moment at the programs that use
/// CPUs and at what a hypervisor takes. Needs no special rights.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Examples:
  hearth cores
  make -j$(hearth cores --threads)      as many jobs as harm nobody
  hearth cores --limits --json          what is written down, at once",
    after_long_help = "\
Examples:
  hearth cores
  make -j$(hearth cores --threads)      as many jobs as harm nobody
  hearth cores --limits --json          what is written down, at once

With --json standard output is one object:
  online       the machine's CPUs that are online
  allowed      those on which a program started from here may run
  obtainable   CPU time, in CPUs, that a thread on each allowed CPU gets together if none ever waits
  idle         CPU time that nobody else wants
  threads      how many threads leave to others what they have without them; one at least
  measured     whether others were looked at
  missing      [{reason, cpus, text}] from the online CPUs to the obtainable ones; a reason is isolated,
               cpuset, affinity, hypervisor, quota, weight or others"
)]
pub(crate) struct CoresArguments {
    /// Look at what is written down only: nobody else is measured
    #[arg(long, conflicts_with = "milliseconds")]
    pub(crate) limits: bool,

    /// Look at others for N milliseconds
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) milliseconds: u64,

    /// Write only the number of threads that harm nobody
    #[arg(long, conflicts_with = "json")]
    pub(crate) threads: bool,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
