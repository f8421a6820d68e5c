//! The commands about gangs: coscheduled sets.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

/// Run a command whose threads and processes run at the same time or not at all.
///
/// Gangs that do not fit side by side on the machine take turns. A gang's members are the command
/// and all processes it starts. Its exit code and signals are passed on.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth gang --cores 2 -- ./solver                      2 cores in each of its turns
  hearth gang --name vms --cores 4 -- ./start-machines
  hearth gang --within vms --cores 2 -- ./machine        inside the turns and cores of vms
  hearth gangs                                           whose turn it is, and how well it works

Environment:
  HEARTH_GANGS   the folder of the registry; otherwise the user's own in /dev/shm

The command finds its gang in HEARTH_GANG.")]
pub(crate) struct GangArguments {
    /// Name the gang, so that others can be inside of it; otherwise the command's name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Number of cores
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub(crate) cores: u32,

    /// Let other gangs run on cores that this one does not use in its turns; the default
    #[arg(long, conflicts_with = "isolate")]
    pub(crate) fill: bool,

    /// Let no other gang run on cores that this one does not use in its turns
    #[arg(long)]
    pub(crate) isolate: bool,

    /// Have turns and cores inside those of the gang NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) within: Option<String>,

    /// Length of a turn in milliseconds; of all gangs' the shortest counts
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) slice: u32,

    /// The way in which members are held
    #[arg(long, value_enum, value_name = "BACK_END", default_value = "auto")]
    pub(crate) back_end: GangBackEnd,

    /// Let the kernel do it: by hearth-gang-kernel, a scheduler for sched_ext
    #[arg(long, conflicts_with_all = ["slice", "back_end"])]
    pub(crate) kernel: bool,

    /// Let members go when standard input ends: what a gang starts for the case that it is killed
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(crate) keeper: Option<PathBuf>,

    /// The command and its arguments
    #[arg(
        last = true,
        required_unless_present = "keeper",
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GangBackEnd {
    /// Signals, or the freezer where these cannot be sent
    Auto,
    /// Members wait at a gate where they come by: for programs that pass gates
    Gate,
    /// A control group of the second version is frozen
    Freezer,
    /// Processes are sent SIGSTOP and SIGCONT
    Stop,
}

/// Show the gangs, whose turn it is, and how well it works.
#[derive(Args, Debug)]
#[command(after_help = "\
In the table, the demand is the number of cores that a gang used lately; together is the part of its
time during which all its members that wanted ran, or all its cores did, at least; lost is the part
of its core time that went to others; and switch is the time within which 99 % of the switches to it
were signalled.

With --json standard output is one object:
  folder     the registry; null if nobody has made one
  conductor  the process that divides the time; null if there is none
  idle       the part of the core time for which no gang was found that fits
  gangs      [{process, name, cores, fills, within, back_end, slice_ms, is_on, demand, turns, on_s,
             run_s, waited_s, together, lost, switch_us}]
  back_ends  [{name, works, obstacle}]")]
pub(crate) struct GangsArguments {
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// Show which back ends work here, and why not
    #[arg(long, conflicts_with = "json")]
    pub(crate) back_ends: bool,
}
