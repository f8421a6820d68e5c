//! The arguments of `hearth study`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hearth_studies::cache_impact::{Defect, Experiment};

/// Run the experiments of the publications behind Hearth again.
///
/// A study measures on this machine and puts the published figures beside its own. What the
/// machine cannot show is said.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth study list
  hearth study run cache-impact --quick")]
pub(crate) struct Study {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Action {
    /// Name the studies and their experiments
    List,
    Run(RunStudy),
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
  hearth study run cache-impact --defect cliff --out cliff")]
pub(crate) struct RunStudy {
    /// The study's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// A sixth of the sizes and fewer repeats: a look, not a result
    #[arg(long)]
    pub(crate) quick: bool,

    /// Timed runs for each size; 10 if not given, or 3 with --quick
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<u32>,

    /// How often each sweep over the sizes is made
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) sweeps: u32,

    /// Which sizes
    #[arg(long, value_enum, value_name = "SIZES", default_value = "dense")]
    pub(crate) sizes: Sizes,

    /// An experiment to run; may be repeated. All are run if none is given
    #[arg(long = "experiment", value_name = "ID", value_parser = experiment)]
    pub(crate) experiments: Vec<Experiment>,

    /// The folder for tables and page; the study's name if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Go on with what is in the folder
    #[arg(long)]
    pub(crate) resume: bool,

    /// Reproduce a defect of the source; may be repeated: index, pinning, cliff, unsigned
    #[arg(long = "defect", value_name = "NAME", value_parser = defect)]
    pub(crate) defects: Vec<Defect>,

    /// What a run waits for before its first stamp
    #[arg(long, value_enum, value_name = "EVENT", default_value = "tick")]
    pub(crate) start: Start,

    /// Let buffers begin 16 bytes behind a line's begin, as the C library's do
    #[arg(long)]
    pub(crate) unaligned: bool,

    /// The profile whose predictions stand beside the measurements; this machine's kept one if not
    /// given
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Sizes {
    /// The source's 235, 8 B to 128 MB
    Dense,
    /// Powers of two, 8 B to 128 MiB
    Powers,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Start {
    /// The clock's next value
    Tick,
    /// The next interrupt of the local timer
    Interrupt,
}

fn experiment(text: &str) -> Result<Experiment, String> {
    Experiment::parse(text).map_err(|error| error.to_string())
}

fn defect(text: &str) -> Result<Defect, String> {
    Defect::parse(text).map_err(|error| error.to_string())
}
