//! The command that reads recorded calls, and switches probes.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum, value_parser};

use super::top::Target;

/// Show the calls or transactions that were recorded, or switch a running program's probes.
///
/// A program in Rust has probes if it uses the crate hearth-monitor, one in Insense if it was run
/// with --calls or built with --probes, one in C or C++ if it was compiled with
/// -finstrument-functions and has libhearth_monitor; see the book's page on monitoring. A program
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
  hearth watch 1234 --as otlp --to http://localhost:4318 --follow
  hearth watch bank.stm                            who committed, who killed whom, what was wasted
  hearth watch bank.stm --as perfetto --to bank.pftrace
  hearth watch 1234 --on 'Server.*' --off '*.get'  switch probes of process 1234
  hearth watch --listen localhost:4000             receive from HEARTH_MONITOR=tcp://localhost:4000")]
pub(crate) struct Watch {
    /// The file of recorded calls or transactions, or the number of a process
    #[arg(value_name = "FILE|PID", required_unless_present = "listen")]
    pub(crate) of: Option<Target>,

    #[command(flatten)]
    pub(crate) switches: Switches,

    /// Receive from programs that record to tcp://HOST:PORT, each into a file
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["of", "on", "off", "form", "page", "json", "long"])]
    pub(crate) listen: Option<String>,

    /// The file to receive into, PROGRAM-PID.calls if not given; %p stands for the number of the
    /// process
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) into: Option<PathBuf>,

    /// End when N programs have ended
    #[arg(long, value_name = "N", requires = "listen", value_parser = value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    /// Write another tool's form
    #[arg(long = "as", value_enum, value_name = "FORM", conflicts_with_all = ["page", "json", "long"])]
    pub(crate) form: Option<Form>,

    /// Destination of the form: a file, standard output if not given; for kieker and ctf a folder;
    /// for otlp the address of a collector
    #[arg(long, value_name = "WHERE", requires = "form")]
    pub(crate) to: Option<PathBuf>,

    /// Send calls as they end, until the program has ended; with --as otlp
    #[arg(long, requires = "to")]
    pub(crate) follow: bool,

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

/// Rules for probes, in the order in which the command line has them: `+` or `-`, and a pattern.
#[derive(Debug)]
pub(crate) struct Switches(pub(crate) Vec<String>);

#[derive(Args, Debug)]
struct Patterns {
    /// Switch on the probes whose names match; * and ? stand for anything
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["form", "page", "json", "long"])]
    on: Vec<String>,

    /// Switch off the probes whose names match; --on and --off hold in the order given
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["form", "page", "json", "long"])]
    off: Vec<String>,
}

impl FromArgMatches for Switches {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Switches, clap::Error> {
        let patterns = Patterns::from_arg_matches(matches)?;
        let of = |option: &str, sign: char, patterns: Vec<String>| {
            let places = matches.indices_of(option).into_iter().flatten();
            let rules = patterns
                .into_iter()
                .map(move |pattern| format!("{sign}{pattern}"));
            places.zip(rules).collect::<Vec<(usize, String)>>()
        };
        let mut rules = of("on", '+', patterns.on);
        rules.extend(of("off", '-', patterns.off));
        rules.sort();
        Ok(Switches(rules.into_iter().map(|(_, rule)| rule).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Switches::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Switches {
    fn augment_args(command: Command) -> Command {
        Patterns::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Patterns::augment_args_for_update(command)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_keep_their_order() {
        let command = Switches::augment_args(Command::new("x").arg(clap::arg!(--form)));
        let command = command.args([clap::arg!(--page), clap::arg!(--json), clap::arg!(--long)]);
        let words = "x --on a --off b --on=c --on d --off e --off a";
        let matches = command.get_matches_from(words.split(' '));
        let switches = Switches::from_arg_matches(&matches).expect("it is right");
        assert_eq!(switches.0, ["+a", "-b", "+c", "+d", "-e", "-a"]);
    }
}
