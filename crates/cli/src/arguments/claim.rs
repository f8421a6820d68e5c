//! The commands about claims on cores.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Run a command on cores that no other claim has.
///
/// The command becomes this process: its exit code and signals are its own. It has its cores until
/// it ends, however it ends. With LEAST..MOST it gets more while others leave them free, and gives
/// them back to those who would have fewer than their least; its threads and those of programs that
/// it starts are moved. Programs that size themselves by the CPUs they may use, or by
/// OMP_NUM_THREADS, RAYON_NUM_THREADS or HEARTH_WORKERS, start as many threads as there are CPUs at
/// first.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth claim --cores 4 -- make -j4
  hearth claim --cores 2..8 --scatter -- ./simulate
  hearth claim --cores 1..8 --jobserver -- make      as many jobs as it has cores; no -j
  hearth claim --cores 2..8 --preload -- ./solver    with OpenMP: teams of as many threads
  hearth claim --cores 1..4 --wait 60 -- ./backup    waits for a core for a minute
  hearth claims                                      who has what

Environment:
  HEARTH_CLAIMS   the folder of the registry; otherwise /run/hearth/claims, if an administrator has
                  made it for all users, or the user's own in /dev/shm")]
pub(crate) struct ClaimArguments {
    #[command(flatten)]
    pub(crate) wish: Wish,

    /// Wait up to SECONDS for the least number of cores; otherwise give up at once
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) wait: u64,

    /// Serve job tokens to make, cargo and ninja: as many jobs as cores. FORM is pipe, for make of
    /// all versions and cargo, or fifo, for ninja 1.13 and make 4.4
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true,
          default_missing_value = "pipe")]
    pub(crate) jobserver: Option<JobserverForm>,

    /// Preload libhearth_claim.so: the command counts its own CPUs as the machine's, and teams of
    /// OpenMP grow and shrink with the claim
    #[arg(long)]
    pub(crate) preload: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// How clients reach job tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobserverForm {
    /// Inherited descriptors
    Pipe,
    /// A named pipe
    Fifo,
}

/// Look after the claim of a process that knows nothing of claims. `hearth claim` starts it.
#[derive(Args, Debug)]
pub(crate) struct StewardArguments {
    /// The process that has the claim
    #[arg(long)]
    pub(crate) process: u32,

    #[command(flatten)]
    pub(crate) wish: Wish,

    /// Descriptors of the pipe with job tokens: READ,WRITE
    #[arg(long, value_parser = descriptors)]
    pub(crate) pipe: Option<(i32, i32)>,

    /// Named pipe with job tokens
    #[arg(long)]
    pub(crate) fifo: Option<PathBuf>,
}

/// How many cores, and which.
#[derive(Args, Debug)]
pub(crate) struct Wish {
    /// How many cores: N, or LEAST..MOST
    #[arg(long, value_name = "N|LEAST..MOST", value_parser = quantity)]
    pub(crate) cores: (u32, u32),

    /// Take cores far from each other instead of near
    #[arg(long)]
    pub(crate) scatter: bool,

    /// Take cores of node N only; may be repeated
    #[arg(long = "node", value_name = "N")]
    pub(crate) nodes: Vec<u32>,

    /// Take cores that share a cache with a CPU: LEVEL:CPU, as 3:0
    #[arg(long, value_name = "LEVEL:CPU", value_parser = cache)]
    pub(crate) sharing_cache: Option<(u8, u32)>,

    /// Take cores as near to the memory of node N as possible
    #[arg(long, value_name = "N")]
    pub(crate) near_memory: Option<u32>,
}

/// Show which programs have claimed which cores.
///
/// In a terminal it goes on until you press q; otherwise it writes once.
#[derive(Args, Debug)]
#[command(after_help = "\
With --json standard output is one object:
  folder   the registry; null if nobody has made one
  holders  [{process, name, cores, least, most, asked_back}]: cores by the lowest number of their CPUs,
           and how many cores others ask for")]
pub(crate) struct ClaimsArguments {
    /// Write once and end
    #[arg(long)]
    pub(crate) once: bool,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number, or two with dots between.
fn quantity(text: &str) -> Result<(u32, u32), String> {
    let wrong =
        || "must be a number of cores, as 4, or two, as 2..8; the first is 1 at least".to_owned();
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (least, most) = match text.split_once("..") {
        Some((least, most)) => (number(least)?, number(most)?),
        None => (number(text)?, number(text)?),
    };
    match 1 <= least && least <= most {
        true => Ok((least, most)),
        false => Err(wrong()),
    }
}

fn cache(text: &str) -> Result<(u8, u32), String> {
    let parts = text.split_once(':');
    let parts = parts.and_then(|(level, cpu)| Some((level.parse().ok()?, cpu.parse().ok()?)));
    parts.ok_or_else(|| "must be a level of caches and a CPU, as 3:0".to_owned())
}

fn descriptors(text: &str) -> Result<(i32, i32), String> {
    let parts = text.split_once(',');
    let parts = parts.and_then(|(read, write)| Some((read.parse().ok()?, write.parse().ok()?)));
    parts.ok_or_else(|| "must be two descriptors, as 3,4".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        assert_eq!(quantity("4"), Ok((4, 4)));
        assert_eq!(quantity("2..8"), Ok((2, 8)));
        for wrong in ["0", "3..2", "0..2", "x", "1..", "..4", "-1"] {
            assert!(quantity(wrong).is_err(), "{wrong}");
        }
        assert_eq!(cache("3:12"), Ok((3, 12)));
        assert!(cache("l3:0").is_err() && cache("3").is_err());
    }
}
