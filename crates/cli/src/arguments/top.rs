//! The command that looks at a running program.

use std::num::ParseIntError;
use std::path::PathBuf;

use clap::{Args, value_parser};

/// Show what a program's components do, each second: who runs, who waits, and where.
///
/// The program was started with `hearth run --watch`, --report or --trace, or with HEARTH_WATCH=FILE. It
/// does nothing for being looked at. q leaves; without a terminal it writes once.
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
               runs, moves, ports}; a port is {name, waits, waited_ns, connections}
  more         how many components have no figures of their own
  workers      {index, core, busy_ns, runs}"
)]
pub(crate) struct Top {
    /// The number of the process, or the file of a recording
    #[arg(value_name = "PID|FILE")]
    pub(crate) of: Whom,

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
pub(crate) enum Whom {
    Process(u32),
    File(PathBuf),
}

impl std::str::FromStr for Whom {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Whom, ParseIntError> {
        Ok(match text.parse() {
            Ok(number) => Whom::Process(number),
            Err(_) => Whom::File(text.into()),
        })
    }
}
