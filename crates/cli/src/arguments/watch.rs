//! The command that reads recorded calls, and switches probes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::top::Target;

/// Show the calls or transactions that were recorded, or switch a running program's probes.
///
/// A program has probes if it uses the crate hearth-monitor; see the book's page on monitoring. It
/// has transactions if it uses hearth-stm with a session of traces. The file may be read while the
/// program runs, and after it was killed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth watch server.calls                        what was called, for how long, what is missing
  hearth watch server.calls --page calls.html      the same as a page, with the longest call drawn
  hearth watch server.calls --as folded > stacks   for flame graphs
  hearth watch server.calls --as perfetto --to server.pftrace
  hearth watch server.calls --as otlp --to http://localhost:4318
  hearth watch bank.stm                            who committed, who killed whom, what was wasted
  hearth watch bank.stm --as perfetto --to bank.pftrace
  hearth watch 1234 --on 'Server.*' --off '*.get'  switch probes of process 1234")]
pub(crate) struct Watch {
    /// The file of recorded calls or transactions, or the number of a process
    #[arg(value_name = "FILE|PID")]
    pub(crate) of: Target,

    /// Switch on the probes whose names match; * and ? stand for anything
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["form", "page", "json", "long"])]
    pub(crate) on: Vec<String>,

    /// Switch off the probes whose names match, after those of --on
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["form", "page", "json", "long"])]
    pub(crate) off: Vec<String>,

    /// Write another tool's form
    #[arg(long = "as", value_enum, value_name = "FORM", conflicts_with_all = ["page", "json", "long"])]
    pub(crate) form: Option<Form>,

    /// Destination of the form: a file, standard output if not given; for kieker and ctf a folder;
    /// for otlp the address of a collector
    #[arg(long, value_name = "WHERE", requires = "form")]
    pub(crate) to: Option<PathBuf>,

    /// Write a page for a browser
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) page: Option<PathBuf>,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// Show all rows
    #[arg(long)]
    pub(crate) long: bool,
}

/// A form of recorded calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Folded stacks, for flame graphs
    Folded,
    /// Comma-separated values, a line a call
    Csv,
    /// A folder with Kieker's text log
    Kieker,
    /// A trace for Perfetto
    Perfetto,
    /// A folder with a CTF trace, for babeltrace2 and Trace Compass
    Ctf,
    /// Spans and figures to a collector of OpenTelemetry, by OTLP over HTTP
    Otlp,
    /// The longest call as a sequence diagram for Mermaid
    Sequence,
    /// Calls between owners as a flow chart for Mermaid
    Graph,
}
