//! The source's tables. The files are in `research/studies/published/nmart`; what is read here are
//! facts of this repository, so that a row that cannot be understood is left out and found by a
//! test.

use std::str::FromStr;

const TIMES: &str = include_str!("../../published/nmart/times.csv");
const SYNTHETIC: &str = include_str!("../../published/nmart/synthetic.csv");
const APPENDIX: &str = include_str!("../../published/nmart/appendix.csv");
const HISTOGRAMS: &str = include_str!("../../published/nmart/histograms.csv");
const MEANS: &str = include_str!("../../published/nmart/means.csv");
const WORKLOADS: &str = include_str!("../../published/nmart/workloads.csv");
const DISTANCES: &str = include_str!("../../published/nmart/distances.csv");
const PAYOFF: &str = include_str!("../../published/nmart/payoff.csv");

/// The source's allocators: as it prints them, and as this study calls them.
pub const ALLOCATORS: [(&str, &str); 7] = [
    ("Best", "best-fit"),
    ("First", "first-fit"),
    ("Half", "half-fit"),
    ("Hoard", "hoard"),
    ("nMART", "nmart"),
    ("tcmalloc", "tcmalloc"),
    ("TLSF", "tlsf"),
];

/// The source's machine's cycles a microsecond: what its times are divided by.
pub const CYCLES_PER_US: f64 = 2010.0;

/// The lines below the head, cut at commas.
fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

fn cell<T: FromStr>(row: &[&str], at: usize) -> Option<T> {
    row.get(at)?.parse().ok()
}

fn allocator(printed: &str) -> Option<&'static str> {
    let found = ALLOCATORS.iter().find(|(name, _)| *name == printed);
    found.map(|(_, id)| *id)
}

/// Statistics over the source's thousand runs, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// True for each run's longest call, false for the sum of all.
    pub is_longest: bool,
    /// `cfrac`, `espresso`, `gawk` or `p2c`.
    pub program: &'static str,
    /// 1 to 3, light to heavy.
    pub set: u8,
    /// The allocator's name in this study.
    pub allocator: &'static str,
    /// True for `free`, false for `malloc`.
    pub is_free: bool,
    /// The mean.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// The standard deviation.
    pub deviation: f64,
}

impl Times {
    /// Name of this study's figure for it.
    #[must_use]
    pub const fn figure(&self) -> &'static str {
        match (self.is_longest, self.is_free) {
            (true, false) => "allocate_max",
            (true, true) => "free_max",
            (false, false) => "allocate_sum",
            (false, true) => "free_sum",
        }
    }

    /// The workload, as this study calls it.
    #[must_use]
    pub fn workload(&self) -> String {
        format!("{}{}", self.program, self.set)
    }
}

/// Tables 4.11 to 4.34.
pub fn times() -> impl Iterator<Item = Times> {
    rows(TIMES).filter_map(|row| {
        Some(Times {
            is_longest: row[1] == "longest",
            program: row.get(2)?,
            set: cell(&row, 3)?,
            allocator: allocator(row.get(4)?)?,
            is_free: *row.get(5)? == "free",
            mean: cell(&row, 6)?,
            least: cell(&row, 7)?,
            most: cell(&row, 8)?,
            deviation: cell(&row, 9)?,
        })
    })
}

/// Seconds of a run under synthetic load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// `MEAN` or `CDF`.
    pub model: &'static str,
    /// Threads.
    pub threads: u32,
    /// The allocator's name in this study.
    pub allocator: &'static str,
    /// Mean and standard deviation with memory of the node that the threads run on.
    pub local: (f64, f64),
    /// The same with memory of other nodes only.
    pub remote: (f64, f64),
}

/// Tables 4.35 to 4.46.
pub fn synthetic() -> impl Iterator<Item = Synthetic> {
    rows(SYNTHETIC).filter_map(|row| {
        Some(Synthetic {
            model: row.first()?,
            threads: cell(&row, 1)?,
            allocator: allocator(row.get(2)?)?,
            local: (cell(&row, 3)?, cell(&row, 4)?),
            remote: (cell(&row, 5)?, cell(&row, 6)?),
        })
    })
}

/// A figure of appendix A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// A program, with its set's number for those of sets 1 to 3: `cfrac1`, `larson`.
    pub workload: (&'static str, u8),
    /// The allocator's name in this study.
    pub allocator: &'static str,
    /// `requested_bytes`, `provided_bytes`, `internal_frag_pct`, `peak_kB`, `data_kB`, `cycles`,
    /// `instructions`, `L1_miss_pct`, `L3_miss_pct` or `elapsed_s`.
    pub field: &'static str,
    /// The figure.
    pub value: f64,
}

impl Figure {
    /// The workload in one word, as this study calls it.
    #[must_use]
    pub fn name(&self) -> String {
        let (program, set) = self.workload;
        if set <= 3 {
            format!("{program}{set}")
        } else {
            program.to_owned()
        }
    }
}

/// Appendix A.
pub fn appendix() -> impl Iterator<Item = Figure> {
    rows(APPENDIX).filter_map(|row| {
        Some(Figure {
            workload: (row.get(1)?, cell(&row, 2)?),
            allocator: allocator(row.get(3)?)?,
            field: row.get(4)?,
            value: cell(&row, 5)?,
        })
    })
}

/// A bin of the three histograms of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// `cfrac1` to `p2c3`.
    pub workload: &'static str,
    /// Its upper edge, which belongs to it; `None` for the last bin.
    pub up_to: Option<u64>,
    /// Numbers of sizes, times between requests, holding times.
    pub counts: [u64; 3],
}

/// A bin's label: `512`, `4k`, `2m`.
#[must_use]
pub fn edge(label: &str) -> Option<u64> {
    let (digits, factor) = match label.as_bytes().last()? {
        b'k' => (&label[..label.len() - 1], 1 << 10),
        b'm' => (&label[..label.len() - 1], 1 << 20),
        _ => (label, 1),
    };
    digits.parse::<u64>().ok().map(|number| number * factor)
}

/// Tables C.2 to C.13.
pub fn histograms() -> impl Iterator<Item = Bin> {
    rows(HISTOGRAMS).filter_map(|row| {
        Some(Bin {
            workload: row.first()?,
            up_to: edge(row.get(1)?),
            counts: [cell(&row, 2)?, cell(&row, 3)?, cell(&row, 4)?],
        })
    })
}

/// Table C.1: means and standard deviations of sizes, times between requests, holding times.
pub fn means() -> impl Iterator<Item = (&'static str, [(f64, f64); 3])> {
    rows(MEANS).filter_map(|row| {
        let pair = |at: usize| Some((cell(&row, at)?, cell(&row, at + 1)?));
        Some((*row.first()?, [pair(1)?, pair(3)?, pair(5)?]))
    })
}

/// Requests of a workload with the C library's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `cfrac1` to `p2c3`, or one of those with threads.
    pub workload: &'static str,
    /// Requests.
    pub mallocs: u64,
    /// Releases.
    pub frees: u64,
    /// The largest request, bytes.
    pub largest: u64,
    /// The mean, bytes.
    pub mean: u64,
}

/// Tables 4.1 to 4.3.
pub fn asked() -> impl Iterator<Item = Asked> {
    rows(WORKLOADS).filter_map(|row| {
        Some(Asked {
            workload: row.first()?,
            mallocs: cell(&row, 1)?,
            frees: cell(&row, 2)?,
            largest: cell(&row, 4)?,
            mean: cell(&row, 5)?,
        })
    })
}

/// A table of distances, or of seconds. Rows are memory nodes, columns the nodes that copied.
/// `kind` is `seconds`, `firmware` or `measured`; `nodes` 4 or 8.
#[must_use]
pub fn distances(nodes: usize, kind: &str) -> Vec<Vec<f64>> {
    let wanted =
        rows(DISTANCES).filter(|row| cell(row, 0) == Some(nodes) && row.get(1) == Some(&kind));
    wanted
        .map(|row| (0..nodes).filter_map(|at| cell(&row, 3 + at)).collect())
        .collect()
}

/// Remote placement before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Payoff {
    /// The node that the task runs on. All others have its memory.
    pub node: usize,
    /// Megabytes.
    pub megabytes: u32,
    /// Seconds with the firmware's order and with the measured one.
    pub seconds: (f64, f64),
}

impl Payoff {
    /// The gain as the source counts it: of the new time.
    #[must_use]
    pub fn gain_percent(&self) -> f64 {
        100.0 * (self.seconds.0 / self.seconds.1 - 1.0)
    }
}

/// Tables B.6 to B.9.
pub fn payoff() -> impl Iterator<Item = Payoff> {
    rows(PAYOFF).filter_map(|row| {
        // Two masks of bits, of processors and of memory, the highest node first.
        let processors = row.first()?.split(' ').next()?;
        let node = processors.len() - 1 - processors.find('1')?;
        Some(Payoff {
            node,
            megabytes: cell(&row, 1)?,
            seconds: (cell(&row, 2)?, cell(&row, 3)?),
        })
    })
}
