//! The commands about machines: probe, predict, advise, machine.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hearth_machine::profile::Carrier;
use hearth_machine::topology::{Bytes, OsThread, parse_list};

/// Measure this machine and keep its profile.
///
/// Takes about a minute, on a machine that is otherwise idle. Everything else that depends on the
/// machine reads the profile: `hearth predict`, `hearth advise`, and programs that place their
/// components. Needs no special rights. If interrupted, it leaves an older profile unchanged.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth probe                          measures, keeps the profile and shows it
  hearth probe --quick --html page.html draws it, too
  hearth probe --from old.json --html page.html
  hearth probe --capture mine.json      the machine's own description, to be sent to us

Environment:
  HEARTH_PROFILE   the file that the profile is kept in; otherwise hearth/profile.json in
                   $XDG_CONFIG_HOME or ~/.config")]
pub(crate) struct Probe {
    /// Take about 10 seconds, with wider intervals
    #[arg(long, conflicts_with = "deep")]
    pub(crate) quick: bool,

    /// Take about ten minutes, with larger buffers and more strides
    #[arg(long)]
    pub(crate) deep: bool,

    /// Write the profile to FILE instead of its usual place
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Draw the profile: a page for a browser, in one file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Show the profile as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Measure nothing; show or draw the profile in FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "deep", "output", "cpus", "seed"])]
    pub(crate) from: Option<PathBuf>,

    /// Measure only these CPUs, as in 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// The seed of random choices
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = super::number
    )]
    pub(crate) seed: u64,

    /// Measure nothing; write the machine's own description, without names, to FILE
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["quick", "deep", "output", "html", "json", "from", "cpus", "seed"]
    )]
    pub(crate) capture: Option<PathBuf>,
}

/// The source of figures.
#[derive(Args, Clone, Debug)]
pub(crate) struct Basis {
    /// Use the profile in FILE instead of the kept one
    #[arg(long, value_name = "FILE", conflicts_with = "machine")]
    pub(crate) profile: Option<PathBuf>,

    /// Assume costs for a described machine, as `2 packages, 8 cores`, or one of its examples
    #[arg(long, value_name = "DESCRIPTION")]
    pub(crate) machine: Option<String>,
}

impl From<Basis> for hearth_driver::profiles::Basis {
    fn from(basis: Basis) -> Self {
        Self {
            profile: basis.profile,
            machine: basis.machine,
        }
    }
}

/// Options of passing messages.
#[derive(Args, Debug)]
pub(crate) struct Passing {
    /// How control passes from sender to receiver
    #[arg(long, value_enum, value_name = "CARRIER", default_value = "threads")]
    pub(crate) carrier: Passed,

    /// How messages follow each other
    #[arg(long, value_enum, value_name = "MODE", default_value = "alternating")]
    pub(crate) mode: Mode,

    /// Buffers in rotation when streaming
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: u32,

    /// Write each message into memory that is new from the operating system
    #[arg(long)]
    pub(crate) fresh: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A kernel thread each; the receiver sleeps until it is woken
    Threads,
    /// A kernel thread each; the receiver spins
    Spin,
    /// Pinned workers, each running many components
    Worker,
}

impl From<Passed> for Carrier {
    fn from(passed: Passed) -> Carrier {
        match passed {
            Passed::Threads => Carrier::Threads,
            Passed::Spin => Carrier::Spin,
            Passed::Worker => Carrier::Worker,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The sender waits until the receiver is done
    Alternating,
    /// The sender continues while the receiver reads
    Streaming,
}

/// Predict the cost of passing bytes between two threads.
///
/// Modelled from the machine's profile, for one pair of CPUs or for each way in which two of them
/// are related. One exchange lasts from the sender's first store to the receiver's last load.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth predict 4K                              each relation of this machine
  hearth predict 4K --from 0 --to 1 --carrier spin
  hearth predict --table 64-64M --plot time.svg  powers of two, as a table and as a picture
  hearth predict 1M --machine nmart-8            a machine that is not at hand")]
pub(crate) struct Predict {
    /// The size of a message: 64, 4K, 1MiB
    #[arg(value_name = "BYTES", value_parser = size, required_unless_present = "table")]
    pub(crate) bytes: Option<Bytes>,

    /// The sender's CPU
    #[arg(long, value_name = "CPU", value_parser = cpu, requires = "to")]
    pub(crate) from: Option<OsThread>,

    /// The receiver's CPU
    #[arg(long, value_name = "CPU", value_parser = cpu, requires = "from")]
    pub(crate) to: Option<OsThread>,

    #[command(flatten)]
    pub(crate) passing: Passing,

    #[command(flatten)]
    pub(crate) basis: Basis,

    /// The equations to use
    #[arg(long, value_enum, value_name = "MODEL", default_value = "hearth")]
    pub(crate) model: Equations,

    /// Many sizes: a list as 64,1K,1M, or a range of powers of two as 64-64M
    #[arg(long, value_name = "SIZES", value_parser = sizes)]
    pub(crate) table: Option<Sizes>,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw time by size as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Equations {
    /// Hearth's own, with uncertainty
    Hearth,
    /// The cache-impact source's, as intended
    Source,
    /// The same as printed, with their mistakes
    SourcePrinted,
}

/// Find the best CPUs for a sender and a receiver, if it matters.
///
/// Ranks the pairs of CPUs by the predicted time of a message, and says so where they differ by
/// less than the prediction's uncertainty.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hearth advise 4K                        all pairs
  hearth advise 64 --carrier spin --sender 0
  hearth advise 1M --mode streaming --rate 2000")]
pub(crate) struct Advise {
    /// The size of a message: 64, 4K, 1MiB
    #[arg(value_name = "BYTES", value_parser = size)]
    pub(crate) bytes: Bytes,

    /// The CPU on which the sender stays
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    pub(crate) sender: Option<OsThread>,

    /// The CPU on which the receiver stays
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    pub(crate) receiver: Option<OsThread>,

    /// Messages a second, to show their share of the time
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(crate) rate: Option<f64>,

    #[command(flatten)]
    pub(crate) passing: Passing,

    #[command(flatten)]
    pub(crate) basis: Basis,

    /// Show all pairs, not only the best
    #[arg(long)]
    pub(crate) all: bool,

    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the parts of a machine, and exchange them with hwloc.
#[derive(Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  hearth machine show                       this machine
  hearth machine show profile.json          also a capture, or XML that lstopo wrote
  hearth machine show '2 packages, 4 cores, 2 threads'
  hearth machine export --hwloc this.xml    for lstopo -i this.xml
  hearth machine import that.xml -o that.json"
)]
pub(crate) struct Machine {
    #[command(subcommand)]
    pub(crate) action: MachineAction,
}

#[derive(Subcommand, Debug)]
pub(crate) enum MachineAction {
    /// Show packages, nodes, cores and caches
    Show(MachineShow),
    /// Write them for hwloc, with the figures of the profile
    Export(MachineExport),
    /// Read them from hwloc's XML
    Import(MachineImport),
}

#[derive(Args, Debug)]
pub(crate) struct MachineShow {
    /// A profile, a capture or hwloc's XML, else a description or the name of an example; this
    /// machine if not given
    #[arg(value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct MachineExport {
    /// The XML file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) hwloc: PathBuf,

    /// The machine to export, as for `show`; by default this machine's profile, or its parts
    #[arg(value_name = "MACHINE")]
    pub(crate) machine: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct MachineImport {
    /// The XML file that lstopo wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Write a profile with these parts and assumed costs, for `hearth predict --profile`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// CPUs by the operating system's numbers, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpus(pub(crate) Vec<u32>);

pub(super) fn cpus(text: &str) -> Result<Cpus, String> {
    let numbers = parse_list(text).map_err(|error| error.to_string())?;
    if numbers.is_empty() {
        return Err("no CPU is named; write lists like `0-3,8`".into());
    }
    Ok(Cpus(numbers))
}

fn cpu(text: &str) -> Result<OsThread, String> {
    let digits = text.strip_prefix("cpu").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number);
    number
        .map(OsThread)
        .ok_or_else(|| "a CPU is a number, as the operating system counts them: 0, 1, …".into())
}

/// A size: bytes, or with K, M, G, T for powers of 1024, optionally followed by `iB` or `B`.
pub(super) fn size(text: &str) -> Result<Bytes, String> {
    const HINT: &str = "a size is a number, with K, M or G for powers of 1024: 64, 4K, 1MiB";
    let letters = text.trim().to_ascii_uppercase();
    let plain = letters
        .strip_suffix("IB")
        .filter(|rest| rest.ends_with(['K', 'M', 'G', 'T']));
    let plain = plain
        .or_else(|| letters.strip_suffix('B'))
        .unwrap_or(&letters);
    let bytes = Bytes::parse(plain.trim_end()).ok_or(HINT)?;
    // Larger messages than any memory would only make the model's numbers meaningless.
    if bytes > Bytes::gib(1024) {
        return Err("the largest message is 1T".into());
    }
    Ok(bytes)
}

/// Sizes in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<Bytes>);

fn sizes(text: &str) -> Result<Sizes, String> {
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (size(first)?.0.max(1), size(last)?.0);
        if first > last {
            return Err("the first size of a range is the smaller one".into());
        }
        let doubled = std::iter::successors(Some(first), |size| size.checked_mul(2));
        let sizes = doubled.take_while(|&size| size <= last).map(Bytes);
        return Ok(Sizes(sizes.collect()));
    }
    text.split(',')
        .map(size)
        .collect::<Result<_, _>>()
        .map(Sizes)
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("a rate is a number of messages a second, above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("64", 64),
            ("64B", 64),
            ("4k", 4096),
            ("4K", 4096),
            ("4KB", 4096),
            ("4 KiB", 4096),
            ("1MiB", 1 << 20),
            ("2g", 2 << 30),
        ] {
            assert_eq!(size(text), Ok(Bytes(bytes)), "{text}");
        }
        for text in [
            "",
            "B",
            "K",
            "-1",
            "1.5K",
            "64iB",
            "0x40",
            "2T",
            "99999999999999999999",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tables_of_sizes() {
        let of =
            |text| sizes(text).map(|sizes| sizes.0.iter().map(|size| size.0).collect::<Vec<_>>());
        assert_eq!(of("64,1K"), Ok(vec![64, 1024]));
        assert_eq!(of("64-512"), Ok(vec![64, 128, 256, 512]));
        assert_eq!(of("0-4"), Ok(vec![1, 2, 4]));
        assert!(of("512-64").is_err() && of("").is_err() && of("64,").is_err());
    }

    #[test]
    fn cpus_as_people_name_them() {
        assert_eq!(cpu("3"), Ok(OsThread(3)));
        assert_eq!(cpu("cpu3"), Ok(OsThread(3)));
        assert!(cpu("+3").is_err() && cpu("T3").is_err() && cpu("").is_err());
        assert_eq!(cpus("0-1,3"), Ok(Cpus(vec![0, 1, 3])));
        assert!(cpus("").is_err() && cpus("3-1").is_err());
    }
}
