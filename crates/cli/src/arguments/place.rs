//! `hearth place`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::machine::{Basis, Cpus, cpus};

/// Find the best places for a program's components, and explain them.
///
/// The compiler finds the program's components and connections in its text, and estimates how often
/// they send and how much they compute; the model of this machine's profile says what each
/// placement would cost. `hearth run --place talk` starts with the same plan and adapts it to what
/// it observes.
///
/// Other programs can be placed, too: from a graph in Hearth's JSON, or from a communication matrix
/// as TreeMatch reads it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth place server.isf                      the places, and their cost
  hearth place server.isf --why                with reasons and other placements
  hearth place server.isf --svg place.svg      as a picture
  hearth place server.isf --plan plan.json     kept, for hearth run --place plan.json
  hearth place server.isf --machine '2 packages, 8 cores' --why
  hearth place server.isf --machine box.xml    a machine as hwloc's lstopo writes it
  hearth place traffic.mat --export numactl    commands for a program that is not Hearth's
  hearth place server.isf --export matrix      the messages between components, for TreeMatch

Environment:
  HEARTH_PROFILE_CHECK=off   do not check whether the kept profile is still this machine's")]
pub(crate) struct PlaceArguments {
    /// A program (*.isf; `-` reads it from standard input), a graph (*.json) or a matrix (*.mat)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Explain each place, and show what other placements would cost
    #[arg(long)]
    pub(crate) why: bool,

    /// The policy that decides
    #[arg(long, value_enum, value_name = "POLICY", default_value = "talk")]
    pub(crate) policy: Decides,

    /// How components are run
    #[arg(long, value_enum, value_name = "CARRIER", default_value = "workers")]
    pub(crate) carrier: super::Carrier,

    /// Place on these CPUs only, as in 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) cpus: Option<Cpus>,

    #[command(flatten)]
    pub(crate) basis: Basis,

    /// Write the plan to FILE, for `hearth run --place FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// Draw components on the machine, and the messages between them, to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the plan for another tool and nothing else
    #[arg(long, value_enum, value_name = "FORM", conflicts_with_all = ["why", "json"])]
    pub(crate) export: Option<Form>,

    /// Write the graph that was placed to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Option<PathBuf>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// The seed of random choices
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = super::number
    )]
    pub(crate) seed: u64,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decides {
    /// At the lowest cost
    Talk,
    /// In turn, in creation order
    Spread,
    /// All on the first CPU
    Single,
    /// By chance
    Random,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A line for each component: type, number, CPU, as HEARTH_PLAN takes them
    Hearth,
    /// A command that keeps a program on the CPUs that the plan uses
    Taskset,
    /// The same with its memory on their nodes
    Numactl,
    /// Variables for OpenMP programs: a place for each component
    Omp,
    /// A rankfile for Open MPI
    Rankfile,
    /// The CPUs as a list, as in 0-3,8
    CpuList,
    /// The messages between any two components, as a matrix that TreeMatch reads
    Matrix,
    /// The graph as METIS reads it
    Metis,
}
