//! `hearth scenario`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::number;

/// Search for the scenario in which a set of tasks fails: arrivals, durations and ties that make
/// jobs late, tasks hungry, cores busy, queues overflow, or locks wait for each other.
///
/// The model says what can happen; the command finds the worst that it finds within its budget,
/// and says whether that is proved, found, or only searched. The same seed and number of runs give
/// the same answer. Ctrl-C ends the search and keeps the worst scenario so far.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Examples:
  hearth scenario car.toml                              the worst lateness, within 10 s
  hearth scenario car.toml --objective deadlock         a circle of locks, if there is one
  hearth scenario car.toml --search exact               with a proof, for small sets
  hearth scenario car.toml --seconds 60 --out worst     kept, with traces and a picture
  hearth scenario car.toml --replay worst/scenario.json the same run again
  hearth scenario car.amxmi --evaluations 5000 --seed 7

A deadline miss, an overflow or a deadlock ends with exit code 1.",
    after_long_help = "\
Examples:
  hearth scenario car.toml                              the worst lateness, within 10 s
  hearth scenario car.toml --objective deadlock         a circle of locks, if there is one
  hearth scenario car.toml --search exact               with a proof, for small sets
  hearth scenario car.toml --seconds 60 --out worst     kept, with traces and a picture
  hearth scenario car.toml --replay worst/scenario.json the same run again
  hearth scenario car.amxmi --evaluations 5000 --seed 7

A deadline miss, an overflow or a deadlock ends with exit code 1.

With --out FOLDER these files are written:
  scenario.json   the scenario, for --replay
  model.toml      the model that it belongs to
  trace.btf       the run in the Best Trace Format
  trace.json      the run for ui.perfetto.dev and chrome://tracing
  run.svg         the run as a picture
  rt-app.json     the scenario as a workload of rt-app
  harness.rs      the scenario as a Rust program: rustc -O harness.rs

With --json standard output is one object:
  objective    lateness, starvation, cpu-peak, overflow or deadlock
  verdict      proved, found or only searched
  score        nanoseconds; for overflow a thousand for each lost item, and the highest filling in
               thousandths; for deadlock null, or how near the run came
  bound        the most that any scenario can reach, if that is proved
  evaluations  number of runs; found_after: the run in which the worst was found
  scenario     as in scenario.json
  tasks        [{name, jobs, stuck, misses, response_ns, lateness_ns, starvation_ns}]
  queues       [{name, fill, pushed, lost}]
  deadlock     {at_ns, circle: [{task, waits_for, since_ns, holds}]}
  notes        sentences about what was not read or assumed"
)]
pub(crate) struct ScenarioArguments {
    /// A model (*.toml), a workload of rt-app (*.json) or a model of AMALTHEA (*.amxmi)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The harm to look for
    #[arg(
        long,
        value_enum,
        value_name = "OBJECTIVE",
        default_value = "lateness",
        conflicts_with = "replay"
    )]
    pub(crate) objective: Harm,

    /// The way to search
    #[arg(
        long,
        value_enum,
        value_name = "WAY",
        default_value = "genetic",
        conflicts_with = "replay"
    )]
    pub(crate) search: Way,

    /// End the search after N seconds; 10 by default, unless --evaluations is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "replay")]
    pub(crate) seconds: Option<u64>,

    /// End the search after N runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "replay")]
    pub(crate) evaluations: Option<u64>,

    /// Make the random choices repeatable
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number, conflicts_with = "replay")]
    pub(crate) seed: u64,

    /// Write the scenario, its run as traces and a picture, and programs with it, to FOLDER
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    /// Run the scenario in FILE instead of searching
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Harm that a search looks for.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// Jobs that end after their deadline
    Lateness,
    /// Tasks that have work and do not run
    Starvation,
    /// Core time within a window
    CpuPeak,
    /// Items that full queues lose
    Overflow,
    /// Jobs that wait for each other
    Deadlock,
}

/// Way to search.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Vary and combine bad scenarios
    Genetic,
    /// Choose each scenario anew, to compare with
    Random,
    /// Find the worst lateness of a small set, with a proof
    Exact,
}
