//! The command line, defined once: help, completions, man pages and the reference page all come
//! from here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use hearth_driver::run_plan::{POLICIES, PlaceOption};
use hearth_lang::compile::{CompileOptions, Prelude};
use hearth_machine::topology::Bytes;
use hearth_study_arguments::Study;

pub(crate) mod claim;
pub(crate) mod consolidate;
pub(crate) mod cores;
pub(crate) mod futures;
pub(crate) mod gang;
pub(crate) mod heap;
pub(crate) mod locality;
pub(crate) mod machine;
pub(crate) mod place;
pub(crate) mod rewrite;
pub(crate) mod scenario;
pub(crate) mod top;
pub(crate) mod watch;

use claim::{ClaimArguments, ClaimsArguments, StewardArguments};
use consolidate::ConsolidateArguments;
use cores::CoresArguments;
use futures::FuturesArguments;
use gang::{GangArguments, GangsArguments};
use heap::Heap;
use locality::Locality;
use machine::{Advise, Machine, Predict, Probe};
use place::PlaceArguments;
use rewrite::RewriteArguments;
use scenario::ScenarioArguments;
use top::Top;
use watch::Watch;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// `hearth help place` as `hearth place --help`, which many expect from other commands.
pub(crate) fn as_options(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// A number such as a seed.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "must be a whole number from 0 to 18446744073709551615".to_owned())
}

/// Compile and run Insense programs, and know the machine they run on.
///
/// Insense programs are made of components that share nothing and talk over typed channels.
#[derive(Parser, Debug)]
#[command(
    name = "hearth",
    version,
    styles = STYLES,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  hearth new play               create a small project
  hearth run play/main.isf      compile and run a program
  hearth check *.isf            report every mistake, compile nothing
  hearth explain E0301          explain a mistake at length
  hearth probe                  measure this machine
  hearth predict 4K             the cost of passing 4 KiB between two threads
  hearth place play/main.isf    where components run, and why

Exit codes:
  0  done
  1  a negative answer: the program has errors or has failed
  2  a mistake in the command line or in an input file
  3  something is missing on this machine
  4  a mistake of Hearth's own"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(Box<Run>),
    Build(Build),
    Check(Check),
    Futures(FuturesArguments),
    Fmt(Fmt),
    New(New),
    Explain(Explain),
    Probe(Probe),
    Predict(Predict),
    Advise(Advise),
    Place(PlaceArguments),
    Scenario(ScenarioArguments),
    Consolidate(ConsolidateArguments),
    Machine(Machine),
    Cores(CoresArguments),
    Claim(ClaimArguments),
    Claims(ClaimsArguments),
    #[command(hide = true)]
    ClaimSteward(StewardArguments),
    Gang(GangArguments),
    Gangs(GangsArguments),
    Locality(Locality),
    Heap(Heap),
    Top(Top),
    Watch(Watch),
    Rewrite(RewriteArguments),
    Study(Study),
    Completions(Completions),
    Man(Man),
}

/// Options of compiling a program.
#[derive(Args, Debug)]
pub(crate) struct Compilation {
    /// The generation of the standard environment to compile against
    #[arg(
        long,
        value_enum,
        value_name = "GENERATION",
        default_value = "auto",
        ignore_case = true
    )]
    pub(crate) prelude: Generation,
}

/// Behaviour of the original, at run time only.
#[derive(Args, Debug)]
pub(crate) struct Compatibility {
    /// Behave as an older implementation did, deviations and all
    #[arg(long, value_enum, value_name = "IMPLEMENTATION")]
    pub(crate) compat: Option<Implementation>,
}

impl Compilation {
    pub(crate) fn options(&self, compatibility: Option<&Compatibility>) -> CompileOptions {
        CompileOptions {
            prelude: self.prelude.into(),
            compat_original: compatibility.is_some_and(|chosen| chosen.compat.is_some()),
            hosted: false,
            futures: false,
        }
    }
}

/// Parts of a component that run at the same time.
#[derive(Args, Debug)]
pub(crate) struct Beside {
    /// Let calls and loops run beside each other where `hearth futures` finds that they may, as if
    /// the word `beside` stood there
    #[arg(long)]
    pub(crate) futures: bool,
}

/// Probes that the compiler puts into a program.
#[derive(Args, Debug)]
pub(crate) struct Probes {
    /// Put probes around the calls whose names match PATTERN, as 'Server.*' or '*.send'; may be
    /// repeated
    #[arg(long = "probes", value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Generation {
    /// The newest under which the program has no errors
    Auto,
    /// The oldest, with raw radio channels
    #[value(name = "G0")]
    G0,
    /// With standardOut, scheduler and leds
    #[value(name = "G1")]
    G1,
    /// With the older storage and streams
    #[value(name = "G2")]
    G2,
    /// The current one
    #[value(name = "G3")]
    G3,
}

impl From<Generation> for Prelude {
    fn from(generation: Generation) -> Self {
        match generation {
            Generation::Auto => Prelude::Auto,
            Generation::G0 => Prelude::G0,
            Generation::G1 => Prelude::G1,
            Generation::G2 => Prelude::G2,
            Generation::G3 => Prelude::G3,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Implementation {
    /// The first compiler and its Unix runtime
    Original,
}

/// Compile a program if necessary, and run it.
///
/// An unchanged program is not compiled again: its executable is kept in $XDG_CACHE_HOME/hearth or
/// ~/.cache/hearth. Signals and the exit code are the program's own.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth run hello.isf
  hearth run server.isf --passes 100 --seed 7
  hearth run weather.isf --device temp=readings.txt
  hearth run server.isf --report report.html --trace server.pftrace
  hearth run server.isf --calls server.calls --probes 'Server.*'
  hearth run server.isf --simulate 42
  hearth run server.isf --simulate 1..1000 --schedule bad.schedule
  hearth run echo.isf -- one two < lines.txt
  cat hello.isf | hearth run -

Environment:
  CC          the C compiler, with options if need be; otherwise cc
  HEARTH_LIB  the directory of libhearth_runtime.a, if it is not beside the command
  HEARTH_PROFILE_CHECK=off
              with --place talk, do not check whether the profile is still this machine's
  HEARTH_…    variables that stand for options; built programs read them, too")]
pub(crate) struct Run {
    /// The program; `-` reads it from standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) compilation: Compilation,

    #[command(flatten)]
    pub(crate) compatibility: Compatibility,

    #[command(flatten)]
    pub(crate) beside: Beside,

    /// Stop each component after exactly N passes of its behaviour (HEARTH_PASSES)
    #[arg(long, value_name = "N", value_parser = passes)]
    pub(crate) passes: Option<u64>,

    /// Make the free choices of the runtime repeatable (HEARTH_SEED)
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) seed: Option<u64>,

    /// Place components by a policy (HEARTH_PLACE): os, spread, single, random, steal, talk, or
    /// the file of a plan that `hearth place --plan` wrote
    ///
    /// os: threads wherever the operating system puts them; components on their creator's worker;
    /// the default.
    /// spread: round robin over the cores, in creation order.
    /// single: all on the first core.
    /// random: anywhere.
    /// steal: on their creator's worker; idle workers take components that compute from busy
    /// ones.
    /// talk: near their peers, as the program's text and this machine's profile suggest, and then
    /// as their messages show.
    #[arg(long, value_name = "POLICY", value_parser = place_option, verbatim_doc_comment)]
    pub(crate) place: Option<PlaceOption>,

    /// With --place talk or --servers auto, write to FILE each change while the program runs, with
    /// its reason (HEARTH_PLACE_LOG)
    #[arg(long, value_name = "FILE")]
    pub(crate) place_log: Option<PathBuf>,

    /// How components are run (HEARTH_CARRIER)
    #[arg(long, value_enum, value_name = "CARRIER")]
    pub(crate) carrier: Option<Carrier>,

    /// Choose how servers are called: components that several others send to (HEARTH_SERVERS)
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) servers: Option<Servers>,

    /// Choose where components allocate (HEARTH_HEAPS)
    #[arg(long, value_enum, value_name = "HEAPS")]
    pub(crate) heaps: Option<Heaps>,

    /// Move up to SIZE of a component's heap with it when it moves to a core of another node;
    /// nothing by default (HEARTH_HEAPS_MOVE)
    #[arg(long, value_name = "SIZE", value_parser = machine::size)]
    pub(crate) heaps_move: Option<Bytes>,

    /// Write every allocation to FILE, one line of JSON each (HEARTH_HEAP_LOG)
    #[arg(long, value_name = "FILE")]
    pub(crate) heap_log: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) probes: Probes,

    /// Record calls to FILE, for `hearth watch`: all, or those of --probes (HEARTH_MONITOR)
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    pub(crate) calls: Option<PathBuf>,

    /// The number of workers; one per core by default (HEARTH_WORKERS)
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) workers: Option<u16>,

    /// Run on one thread by the schedule of a seed: SEED, or FROM..TO until one fails, or the FILE
    /// of a schedule (HEARTH_SIMULATE, HEARTH_SCHEDULE)
    #[arg(long, value_name = "SEED", value_parser = simulation, conflicts_with = "carrier")]
    pub(crate) simulate: Option<Simulation>,

    /// End a simulation after N steps (HEARTH_STEPS)
    #[arg(long, value_name = "N", requires = "simulate", value_parser = number)]
    pub(crate) steps: Option<u64>,

    /// Write the simplest schedule that fails as the seed does to FILE
    #[arg(long, value_name = "FILE", requires = "simulate")]
    pub(crate) schedule: Option<PathBuf>,

    /// The script with a simulated device's values; may be repeated (HEARTH_DEVICE_NAME)
    #[arg(long = "device", value_name = "NAME=SCRIPT", value_parser = device)]
    pub(crate) devices: Vec<Device>,

    /// This program's address, for radio and remote channels (HEARTH_NODE)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) node: Option<u16>,

    /// The directory in which connected programs find each other (HEARTH_NETWORK)
    #[arg(long, value_name = "DIR")]
    pub(crate) network: Option<PathBuf>,

    /// Write a page about each component and channel when the program has ended
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    pub(crate) report: Option<PathBuf>,

    /// Write a trace for ui.perfetto.dev when the program has ended
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    pub(crate) trace: Option<PathBuf>,

    /// Let `hearth top` watch the program; implied by --report and --trace (HEARTH_WATCH)
    #[arg(long, conflicts_with = "simulate")]
    pub(crate) watch: bool,

    /// Keep SIZE bytes of the latest events; 64M by default (HEARTH_WATCH_WINDOW)
    #[arg(long, value_name = "SIZE", value_parser = machine::size)]
    pub(crate) watch_window: Option<Bytes>,

    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

fn place_option(text: &str) -> Result<PlaceOption, String> {
    if text == "talk" {
        return Ok(PlaceOption::Talk);
    }
    if let Some(policy) = POLICIES.into_iter().find(|policy| *policy == text) {
        return Ok(PlaceOption::Policy(policy));
    }
    let path = PathBuf::from(text);
    if path.exists() || text.ends_with(".json") {
        return Ok(PlaceOption::Plan(path));
    }
    Err(format!(
        "must be {}, talk, or the file of a plan",
        POLICIES.join(", ")
    ))
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Carrier {
    /// One thread per core, each with its own queue of components; the default
    Workers,
    /// A kernel thread for each component
    Threads,
}

impl From<Carrier> for hearth_machine::profile::Carrier {
    fn from(carrier: Carrier) -> Self {
        match carrier {
            Carrier::Workers => Self::Worker,
            Carrier::Threads => Self::Threads,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    /// On their own worker, which requests reach as messages; the default
    Asynchronous,
    /// On the worker of each caller, as under a lock: servers and their data move to their callers
    Synchronous,
    /// In whichever way serves more calls, which is tried from time to time
    Auto,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Heaps {
    /// In a heap of the component's own, near the core that it runs on; the default
    Private,
    /// In one heap for all components, under a lock: for comparison
    Shared,
    /// In the system's allocator: for comparison, and for tools that watch it
    System,
}

/// The schedules that a simulation follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Simulation {
    Seed(u64),
    Range { first: u64, last: u64 },
    Schedule(PathBuf),
}

fn simulation(text: &str) -> Result<Simulation, String> {
    if let Ok(seed) = text.parse() {
        return Ok(Simulation::Seed(seed));
    }
    if let Some((first, last)) = text.split_once("..")
        && let (Ok(first), Ok(last)) = (first.parse(), last.parse())
    {
        return match first <= last {
            true => Ok(Simulation::Range { first, last }),
            false => Err("the first seed must not be greater than the last".into()),
        };
    }
    let path = PathBuf::from(text);
    match path.is_file() {
        true => Ok(Simulation::Schedule(path)),
        false => Err("must be a seed, a range such as 1..1000 or the file of a schedule".into()),
    }
}

fn passes(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(passes) => Ok(passes),
        Err(_) => Err("must be a number of passes".into()),
    }
}

/// A device and its script. Which devices there are is the runtime's to know: it checks the
/// variables, of built programs too.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) variable: String,
    pub(crate) script: String,
}

fn device(text: &str) -> Result<Device, String> {
    let (name, script) = text.split_once('=').ok_or("must be NAME=SCRIPT")?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("{name:?} cannot be the name of a device"));
    }
    Ok(Device {
        variable: format!("HEARTH_DEVICE_{}", name.to_ascii_uppercase()),
        script: script.to_owned(),
    })
}

/// Compile a program into an executable.
///
/// The executable runs without Hearth.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth build sieve.isf                    writes ./sieve
  hearth build sieve.isf -o bin/sieve
  hearth build sieve.isf --emit c           shows the C
  hearth build sieve.isf --emit c -o sieve.c")]
pub(crate) struct Build {
    /// The program; `-` reads it from standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The file to write; by default the name of the program without its ending
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Keep debugging information; debuggers show the lines of the program
    #[arg(long)]
    pub(crate) debug: bool,

    /// The kind of output; C goes to standard output unless OUT is given
    #[arg(long, value_enum, value_name = "KIND", default_value = "executable")]
    pub(crate) emit: Emit,

    #[command(flatten)]
    pub(crate) probes: Probes,

    #[command(flatten)]
    pub(crate) compilation: Compilation,

    #[command(flatten)]
    pub(crate) compatibility: Compatibility,

    #[command(flatten)]
    pub(crate) beside: Beside,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emit {
    Executable,
    /// The generated C11
    C,
}

/// Report the mistakes in programs, compiling nothing.
///
/// Ends with exit code 1 if there are errors, not for warnings alone.
#[derive(Args, Debug)]
#[command(
    after_help = "\
Examples:
  hearth check hello.isf
  hearth check src/*.isf
  hearth check --json - < hello.isf      for editors
  hearth check --sizes hello.isf         the size of each component",
    after_long_help = "\
Examples:
  hearth check hello.isf
  hearth check src/*.isf
  hearth check --json - < hello.isf      for editors
  hearth check --sizes hello.isf         the size of each component

With --json each line of standard output is one object:
  file       the name of the program as given; `<stdin>` for standard input
  severity   \"error\" or \"warning\"
  code       such as \"E0301\"; `hearth explain` explains it
  title      the mistake, in one line
  label      the text at the place; may be empty
  span       the place: {file, start, end}
  secondary  other relevant places: a list of {label, span}
  notes      a list of explaining sentences
  help       the remedy, or null
The start and the end of a span are {line, column, offset}. Lines and columns count from 1, columns
in characters; offsets count bytes from 0. The end is after the last character. The file of a span
is that of the program, or `prelude/….isf` for a place in the standard environment."
)]
pub(crate) struct Check {
    /// The programs; `-` reads one from standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Write one JSON object a line to standard output instead
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the size of each component, member by member, and how large its heap can get
    #[arg(long, conflicts_with = "json")]
    pub(crate) sizes: bool,

    #[command(flatten)]
    pub(crate) compilation: Compilation,
}

/// Put programs into the standard layout.
///
/// Comments and meaning stay. A program with syntax errors is left as it is.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth fmt hello.isf             rewrites the file
  hearth fmt --check *.isf         names the files that would change
  hearth fmt - < hello.isf         from standard input to standard output")]
pub(crate) struct Fmt {
    /// The programs; `-` formats standard input to standard output
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Change nothing; end with exit code 1 if a file is not in the standard layout
    #[arg(long)]
    pub(crate) check: bool,
}

/// Create a small project that runs at once.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  hearth new play
  hearth run play/main.isf")]
pub(crate) struct New {
    /// The directory to create; it may exist if it is empty
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Explain a code such as E0301.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth explain            lists all codes
  hearth explain E0301")]
pub(crate) struct Explain {
    /// The code in a message; without it all codes are listed
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// Write completions for a shell to standard output.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth completions bash > ~/.local/share/bash-completion/completions/hearth
  hearth completions zsh  > ~/.zfunc/_hearth
  hearth completions fish > ~/.config/fish/completions/hearth.fish")]
pub(crate) struct Completions {
    /// The shell to complete for
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth man | man -l -            shows the main page
  hearth man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The directory for one page a command; without it the main page goes to standard output
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn seeds_are_one_or_many() {
        assert_eq!(simulation("7"), Ok(Simulation::Seed(7)));
        let range = Simulation::Range { first: 1, last: 9 };
        assert_eq!(simulation("1..9"), Ok(range));
        assert!(simulation("9..1").unwrap_err().contains("greater"));
        assert!(simulation("some").unwrap_err().contains("range"));
    }

    #[test]
    fn devices_become_variables() {
        let given = device("TiltX=a=b").unwrap();
        assert_eq!(given.variable, "HEARTH_DEVICE_TILTX");
        assert_eq!(given.script, "a=b");
        assert!(device("temp").is_err());
        assert!(device("=x").is_err());
    }
}
