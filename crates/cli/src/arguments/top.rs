//! The command that looks at a running program.

use std::num::ParseIntError;
use std::path::PathBuf;

use clap::{Args, value_parser};

/// Show each second what a program's components do: which run, which wait, and where.
///
/// The program was started with `hearth run --watch`, --report or --trace, or with
/// HEARTH_WATCH=FILE. It is not involved. Press q to leave; without a terminal it writes once.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Examples:
  hearth run server.isf --watch &
  hearth top $!                    each second, until q is pressed
  hearth top 1234 --once
  hearth top run.watch --json      what HEARTH_WATCH=run.watch has written, also afterwards",
    after_long_help = "\
Examples:
  hearth run server.isf --watch &
  hearth top $!                    each second, until q is pressed
  hearth top 1234 --once
  hearth top run.watch --json      what HEARTH_WATCH=run.watch has written, also afterwards

With --json standard output is one object:
  process      the number of the process
  ns           since its recording began
  ended        its exit code; null if it runs, or was ended from outside
  components   in creation order: {id, name, service, state, worker, running_ns, ready_ns, waiting_ns,
               runs, moves, mostly, heap_bytes, heap_bytes_most, ports}; mostly is the worker, or core of
               its own thread, where it ran most; a port is {name, sends, waits, waited_ns, connections,
               selected, value_bytes, sized, sized_bytes}: about so many waits of selects ended there, and
               values take value_bytes, or differ, and of so many that were seen so many bytes
  more         how many components have no figures of their own
  workers      {index, core, busy_ns, runs, moves}
  heap_shared_bytes  of the one heap of all components, if they share one, at the end
  collected    what became of components that nobody could wake: {collections, components, ns,
               held_ns_most}; the last is the most for which one collection held up a worker
  moves        the latest: {ns, what, id, from, to}: a component between workers, or its thread, or that of
               a worker, between cores
  moves_before how many there were before these
  placer       what --place talk decided: {ns, text}"
)]
pub(crate) struct Top {
    /// The number of the process, or the file of a recording
    #[arg(value_name = "PID|FILE")]
    pub(crate) of: Target,

    /// Write once and end
    #[arg(long)]
    pub(crate) once: bool,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// End after N readings
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

/// A process or a file.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Process(u32),
    File(PathBuf),
}

impl std::str::FromStr for Target {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Target, ParseIntError> {
        Ok(match text.parse() {
            Ok(number) => Target::Process(number),
            Err(_) => Target::File(text.into()),
        })
    }
}
