//! The command about reuse distances.

use std::path::PathBuf;

use clap::Args;

use super::machine::Basis;

/// Show how far apart the uses of data in a trace are, and what caches make of them.
///
/// Shows reuse distances, what the machine's caches would miss, and what the trace's components do
/// to each other: data displacement and data invalidation. A trace is one of valgrind's lackey, or
/// lines of our own form: `r ADDRESS [BYTES]`, `w ADDRESS [BYTES]`, `t THREAD`, `c COMPONENT`.
///
/// With `--throughput`, runs with several numbers of threads are judged for internal thrashing:
/// throughput that falls as threads are added.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth locality walk.trace
  hearth locality walk.trace --machine '1 package, 4 cores' --svg misses.svg
  valgrind --tool=lackey --trace-mem=yes --log-file=ls.trace ls
  hearth locality - --sample 100000 < ls.trace
  hearth locality --throughput runs.csv")]
pub(crate) struct Locality {
    /// The trace; `-` reads it from standard input
    #[arg(value_name = "TRACE", required_unless_present = "throughput")]
    pub(crate) trace: Option<PathBuf>,

    /// Runs, one a line: threads, throughput; two runs at least with each number of threads; `-`
    /// reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "line", "sample", "svg", "profile", "machine"])]
    pub(crate) throughput: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) basis: Basis,

    /// The bytes of a line of cache; otherwise as the machine has it, or 64
    #[arg(long, value_name = "BYTES", value_parser = line_bytes)]
    pub(crate) line: Option<u64>,

    /// Follow at most N lines, so that memory is bounded; figures get intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..))]
    pub(crate) sample: Option<u32>,

    /// Draw the miss ratio over the size of a cache
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Show it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn line_bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse().ok();
    bytes
        .filter(|bytes: &u64| bytes.is_power_of_two() && *bytes <= 65_536)
        .ok_or_else(|| "a power of two is wanted, from 1 to 65536".to_owned())
}
