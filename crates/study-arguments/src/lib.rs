//! The arguments of `hearth study`, defined once for two programs: `hearth`, whose help,
//! completions and manual pages show them, and `hearth-study`, which it hands the words over to.
//!
//! The crate must never know what a study does: the names of studies are words here.
//!
//! ```
//! use clap::{Args, Command, FromArgMatches};
//! use hearth_study_arguments::{Action, Study};
//!
//! let words = ["study", "run", "memcached", "--quick"];
//! let matches = Study::augment_args(Command::new("study")).get_matches_from(words);
//! let study = Study::from_arg_matches(&matches)?;
//! assert!(matches!(study.action, Action::Run(run) if run.name == "memcached" && run.quick));
//! # Ok::<(), clap::Error>(())
//! ```
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Run the experiments of the publications behind Hearth again.
///
/// A study measures on this machine and puts the published figures beside its own. What the
/// machine cannot show is said.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth study list
  hearth study run cache-impact --quick
  hearth study run nmart --quick
  hearth study run insense-multicore --quick
  hearth study run memcached --quick
  hearth study run event-patterns --quick
  hearth study run message-passing --quick
  hearth study run monitoring --quick
  hearth study run transactions --quick
  hearth study run oversubscription --quick
  hearth study run coscheduling --quick
  hearth study run collection --quick")]
pub struct Study {
    #[command(subcommand)]
    pub action: Action,
}

#[derive(Subcommand, Debug)]
pub enum Action {
    /// Name the studies and their experiments
    List,
    Run(Box<RunStudy>),
    Tool(StudyTool),
}

/// A tool of a study by itself: of nmart but for `events`, `monitored`, `transactions`,
/// `oversubscribed`, `coscheduled` and `equations`.
///
/// Programs run with the C library's allocator if none is named, but for `characterise`, which
/// takes First-fit as the source does.
#[derive(Args, Debug)]
pub struct StudyTool {
    #[command(subcommand)]
    pub tool: Tool,
}

#[derive(Subcommand, Debug)]
pub enum Tool {
    /// Count what a program asks for: calls, bytes, the largest and the mean
    Count(OfProgram),
    /// Sizes, times between requests and holding times of a program, with histograms
    Characterise(OfProgram),
    /// Look at a program's memory while it runs: seven fields with tabs, and the peaks at the end
    Monitor {
        /// Microseconds between two looks; the source's text says 100, its listing 100000
        #[arg(long, value_name = "N", default_value_t = 100)]
        interval: u64,
        #[command(flatten)]
        program: OfProgram,
    },
    /// Copy memory of each node with each processor: lines of epoch, processor, seconds
    Latency {
        /// Each processor touches a buffer first, instead of binding memory to nodes
        #[arg(long)]
        first_touch: bool,
        /// The buffer in megabytes
        #[arg(long, value_name = "N", default_value_t = 256)]
        megabytes: u32,
        /// Copies for each processor
        #[arg(long, value_name = "N", default_value_t = 100)]
        repeats: u32,
    },
    /// Make the kernel's table from the files of the latency tool, one a memory node
    Distances {
        /// Which processors each node has: 0-3/4-7
        #[arg(long, value_name = "LISTS")]
        nodes: String,
        /// Cut distances off, instead of rounding them
        #[arg(long)]
        truncate: bool,
        /// Files of lines of epoch, processor, seconds
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// The order in which Linux takes memory from nodes, by a table of distances
    Zones {
        /// Rows by asking node: '10 20/20 10'
        #[arg(value_name = "TABLE")]
        table: String,
    },
    /// Requests of a synthetic model: bytes, begin, end
    Requests {
        /// mean or cdf
        #[arg(value_name = "MODEL", value_parser = ["mean", "cdf"])]
        model: String,
        /// Take holding times for microseconds, as they are
        #[arg(long)]
        corrected: bool,
        /// How many
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        count: usize,
        /// The seed of random choices
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Evaluate the equations of cache-impact's source: a line of CSV for each size and type
    Equations {
        /// As they are printed, errors included
        #[arg(long)]
        printed: bool,
        /// How control passes from sender to receiver
        #[arg(long, value_enum, value_name = "CARRIER", default_value = "threads")]
        carrier: Carrier,
        /// The machine's profile; `-` reads it from standard input
        #[arg(value_name = "PROFILE")]
        profile: PathBuf,
        /// Sizes in bytes
        #[arg(value_name = "BYTES", required = true)]
        sizes: Vec<u64>,
    },
    Events(EventServer),
    Monitored(MonitoredProgram),
    Transactions(TransactionsRun),
    Oversubscribed(OversubscribedProgram),
    Coscheduled(CoscheduledProgram),
}

/// Way in which control passes from sender to receiver.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A kernel thread each; the receiver sleeps
    Threads,
    /// A thread each; the receiver spins
    Spin,
    /// Workers
    Worker,
}

/// The server of event-patterns: echoes messages of 64 bytes
///
/// It listens at a port of 127.0.0.1 that it names. A line of input asks for what it has counted;
/// it stops at the end of its input.
#[derive(Args, Debug)]
pub struct EventServer {
    /// half-async, leader or sharded
    #[arg(value_name = "PATTERN")]
    pub pattern: String,

    /// select, level, edge or io_uring
    #[arg(value_name = "MECHANISM")]
    pub mechanism: String,

    /// How many threads wait and work
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub threads: usize,

    /// Microseconds of work for each request
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub work: u32,

    /// The cores of its threads; any if not given
    #[arg(long, value_name = "N,N...", value_delimiter = ',')]
    pub cores: Vec<usize>,

    /// Take the time of each operation
    #[arg(long)]
    pub timed: bool,
}

/// The program of monitoring: calls a method again and again, and prints what a call takes
///
/// The method waits until its time is over, below itself to a depth. The second half of the calls
/// counts. Records go to the file, which is read, counted and deleted.
#[derive(Args, Debug)]
pub struct MonitoredProgram {
    /// plain (no probe), off, nowhere (records are dropped) or file
    #[arg(value_name = "WAY", value_parser = ["plain", "off", "nowhere", "file"])]
    pub way: String,

    /// The thread that fills a block writes it, instead of a thread for writing
    #[arg(long)]
    pub synchronous: bool,

    /// Law for records that come too fast: block, drop-newest, drop-oldest or sample
    #[arg(long, value_name = "LAW", default_value = "block")]
    pub law: String,

    /// How many calls
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub calls: u32,

    /// Calls before these, which take no time of their own
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub warm_up: u32,

    /// Nanoseconds that the method takes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub method: u32,

    /// Calls within a call, itself included
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub depth: u32,

    /// Bytes of blocks between program and writer
    #[arg(long, value_name = "N", default_value_t = 16 << 20)]
    pub buffer: u64,

    /// The core of the thread that calls; any if not given
    #[arg(long, value_name = "N")]
    pub application_core: Option<usize>,

    /// The core of the thread that writes; any if not given
    #[arg(long, value_name = "N")]
    pub writer_core: Option<usize>,

    /// The file for records
    #[arg(long, value_name = "FILE", default_value = "monitored.calls")]
    pub file: PathBuf,
}

/// One run of a program of transactions, for the study of that name: figures as JSON
#[derive(Args, Debug)]
pub struct TransactionsRun {
    /// The way to trace: untraced, hearth-full, full-lz4-3ct, …
    #[arg(value_name = "TRACING")]
    pub tracing: String,

    /// bank, or the name of a kernel
    #[arg(value_name = "PROGRAM")]
    pub program: String,

    /// How many threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub threads: usize,

    /// The seed of the input
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// How long the bank runs
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub milliseconds: u32,

    /// Give kernels their inputs for tests
    #[arg(long)]
    pub small: bool,

    /// Folder for the trace's files; bytes are counted and thrown away if not given
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// A program of oversubscription: multiplies matrices again and again, and prints when as JSON
///
/// It says `ready` and begins with a line of input.
#[derive(Args, Debug)]
pub struct OversubscribedProgram {
    /// static, stealing, or the name of a policy that chooses the threads: all, loadavg,
    /// loadavg-settled, hill, measured, calibrated, calibrated-or-measured
    #[arg(value_name = "WAY")]
    pub way: String,

    /// How many threads, unless a policy chooses
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,

    /// How many threads others run, for loadavg-settled
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub foreign: usize,

    /// Rows and columns of a matrix
    #[arg(long, value_name = "N", default_value_t = 384)]
    pub rows: usize,

    /// How long it runs; 0 for until its input ends
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub milliseconds: u32,
}

/// A program of coscheduling: threads that spin at a barrier, or of which half compute
///
/// It says `ready`, begins with a line of input, and prints what it did as JSON. As a gang it
/// prints the CPU time of the gang's process in a second line.
#[derive(Args, Debug)]
pub struct CoscheduledProgram {
    /// free (without a gang), stop, gate or freezer
    #[arg(
        value_name = "WAY",
        value_parser = ["free", "stop", "gate", "freezer"],
        default_value = "free"
    )]
    pub way: String,

    /// barrier, half (the same threads compute) or moving (the work goes from thread to thread)
    #[arg(
        long,
        value_name = "WORK",
        value_parser = ["barrier", "half", "moving"],
        default_value = "barrier"
    )]
    pub work: String,

    /// How many threads, and cores of its gang
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub threads: usize,

    /// Keep cores that the gang does not use
    #[arg(long)]
    pub isolate: bool,

    /// How long it runs
    #[arg(long, value_name = "N", default_value_t = 1500)]
    pub milliseconds: u32,

    /// Let members go when standard input ends: what a gang starts for the case that it is killed
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub keeper: Option<PathBuf>,
}

/// A program to be looked at.
#[derive(Args, Debug)]
pub struct OfProgram {
    /// Allocator of the program
    #[arg(long, value_name = "NAME")]
    pub allocator: Option<String>,

    /// The folder of the allocators as published and of the meter; where Cargo builds them if not
    /// given
    #[arg(long, value_name = "DIR")]
    pub objects: Option<PathBuf>,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, last = true)]
    pub program: Vec<String>,
}

/// Run a study, and write tables and a page into a folder.
///
/// Ctrl-C ends it; what is measured by then is kept, and --resume goes on from there.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth study run cache-impact --quick            a look, in some minutes
  hearth study run cache-impact --out results
  hearth study run cache-impact --out results --resume
  hearth study run cache-impact --experiment 2 --experiment 3 --sizes powers
  hearth study run cache-impact --defect cliff --out cliff
  hearth study run nmart --quick --experiment times
  hearth study run nmart --allocator nmart --allocator tlsf --workload gawk3
  hearth study run insense-multicore --quick       a look, in about a minute
  hearth study run insense-multicore --experiment list --repeats 20
  hearth study run memcached --quick               a look, in about a minute
  hearth study run memcached --experiment optimisations --threads 2
  hearth study run event-patterns --quick          a look, in some minutes
  hearth study run event-patterns --experiment threads --milliseconds 10000
  hearth study run message-passing --quick         a look, in about a minute
  hearth study run message-passing --threads 4,8 --seconds 30 --repeats 20
  hearth study run monitoring --quick              a look, in some minutes
  hearth study run monitoring --experiment parts --milliseconds 10000
  hearth study run transactions --quick            a look, in about a minute
  hearth study run transactions --experiment bank --milliseconds 2000
  hearth study run oversubscription --quick        a look, in some seconds
  hearth study run oversubscription --experiment policies --repeats 20
  hearth study run coscheduling --quick            a look, in some seconds
  hearth study run coscheduling --experiment half --milliseconds 5000
  hearth study run collection --quick              a look, in half a minute
  hearth study run collection --experiment links --repeats 10")]
pub struct RunStudy {
    /// The study's name
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Fewer and smaller loads, fewer repeats: a look, not a result
    #[arg(long)]
    pub quick: bool,

    /// Runs of each kind. If not given: 10 for each size in cache-impact, or 3 with --quick; in
    /// nmart as many as suit the experiment; in memcached and event-patterns 5, or 2 with --quick;
    /// in monitoring, oversubscription and coscheduling 10, or 2 with --quick; in transactions 30,
    /// or 3 with --quick; in collection 50, or 5 with --quick; in the others 7, or 3 with --quick
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,

    /// An experiment to run; may be repeated. All are run if none is given
    #[arg(long = "experiment", value_name = "ID")]
    pub experiments: Vec<String>,

    /// The folder for tables and page; the study's name if not given
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Go on with what is in the folder
    #[arg(long)]
    pub resume: bool,

    /// Seed of random placements and shuffles; 1 if not given
    #[arg(
        long,
        value_name = "N",
        help_heading = "insense-multicore, message-passing"
    )]
    pub seed: Option<u64>,

    /// How long each run is measured; 0.5 if not given, or 0.1 with --quick
    #[arg(long, value_name = "S", help_heading = "message-passing")]
    pub seconds: Option<f64>,

    /// Threads, in memcached the server's; may be repeated. As many as the machine carries if none
    /// is given
    #[arg(
        long = "threads",
        value_name = "N",
        value_delimiter = ',',
        help_heading = "memcached, message-passing"
    )]
    pub threads: Vec<u32>,

    /// The program cachet; beside this command or among programs if not given
    #[arg(long, value_name = "FILE", help_heading = "memcached")]
    pub cachet: Option<PathBuf>,

    /// How long each run counts. If not given: 2000 in event-patterns, or 200 with --quick; 1000 in
    /// monitoring, or 50; 500 in transactions, for runs of the bank, or 20; 1000 in
    /// oversubscription, or 60; 1500 in coscheduling, or 200
    #[arg(
        long,
        value_name = "N",
        help_heading = "event-patterns, monitoring, transactions, oversubscription, coscheduling"
    )]
    pub milliseconds: Option<u32>,

    /// How often each sweep over the sizes is made; once if not given
    #[arg(long, value_name = "N", help_heading = "cache-impact")]
    pub sweeps: Option<u32>,

    /// Which sizes; dense if not given
    #[arg(long, value_enum, value_name = "SIZES", help_heading = "cache-impact")]
    pub sizes: Option<Sizes>,

    /// Reproduce a defect of the source; may be repeated. In cache-impact index, pinning, cliff,
    /// unsigned; in message-passing power-of-two-mask, cursor-kept, counter-kept, head-unmodified
    #[arg(
        long = "defect",
        value_name = "NAME",
        help_heading = "cache-impact, message-passing"
    )]
    pub defects: Vec<String>,

    /// Event to wait for before the first stamp of a run; the tick if not given
    #[arg(long, value_enum, value_name = "EVENT", help_heading = "cache-impact")]
    pub start: Option<Start>,

    /// Let buffers begin 16 bytes behind a line's begin, as the C library's do
    #[arg(long, help_heading = "cache-impact")]
    pub unaligned: bool,

    /// The profile whose predictions stand beside the measurements; this machine's kept one if not
    /// given
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "cache-impact, message-passing"
    )]
    pub profile: Option<PathBuf>,

    /// An allocator to run with; may be repeated. All that are there if none is given
    #[arg(long = "allocator", value_name = "NAME", help_heading = "nmart")]
    pub allocators: Vec<String>,

    /// A workload to run; may be repeated. All are run if none is given
    #[arg(long = "workload", value_name = "NAME", help_heading = "nmart")]
    pub workloads: Vec<String>,

    /// The folder of the allocators as published; where Cargo builds them if not given
    #[arg(long, value_name = "DIR", help_heading = "nmart")]
    pub objects: Option<PathBuf>,
}

impl RunStudy {
    /// An option that was given and that only another study has, as it is typed.
    pub fn foreign(&self, study: &str) -> Option<&'static str> {
        const IMPACT: &[&str] = &["cache-impact"];
        const NMART: &[&str] = &["nmart"];
        const TIMED: &[&str] = &[
            "event-patterns",
            "monitoring",
            "transactions",
            "oversubscription",
            "coscheduling",
        ];
        const MEMCACHED: &[&str] = &["memcached"];
        const THREADED: &[&str] = &["memcached", "message-passing"];
        const PASSING: &[&str] = &["message-passing"];
        const MEASURED: &[&str] = &["cache-impact", "message-passing"];
        const SEEDED: &[&str] = &["insense-multicore", "message-passing"];
        let options = [
            (IMPACT, self.sweeps.is_some(), "--sweeps"),
            (IMPACT, self.sizes.is_some(), "--sizes"),
            (MEASURED, !self.defects.is_empty(), "--defect"),
            (IMPACT, self.start.is_some(), "--start"),
            (IMPACT, self.unaligned, "--unaligned"),
            (MEASURED, self.profile.is_some(), "--profile"),
            (NMART, !self.allocators.is_empty(), "--allocator"),
            (NMART, !self.workloads.is_empty(), "--workload"),
            (NMART, self.objects.is_some(), "--objects"),
            (SEEDED, self.seed.is_some(), "--seed"),
            (PASSING, self.seconds.is_some(), "--seconds"),
            (THREADED, !self.threads.is_empty(), "--threads"),
            (MEMCACHED, self.cachet.is_some(), "--cachet"),
            (TIMED, self.milliseconds.is_some(), "--milliseconds"),
        ];
        let mut foreign = options
            .into_iter()
            .filter(|(of, is_given, _)| *is_given && !of.contains(&study));
        foreign.next().map(|(_, _, option)| option)
    }
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Sizes {
    /// The source's 235, 8 B to 128 MB
    Dense,
    /// Powers of two, 8 B to 128 MiB
    Powers,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Start {
    /// The clock's next value
    Tick,
    /// The next interrupt of the local timer
    Interrupt,
}
