//! Rows of a sweep, and the source's tables of them: one of clean runs, one of all.
//!
//! A third table, ours, has a line for each run.

use std::fmt::Write as _;

use hearth_published::source::Type;
use hearth_stats::{median, quantile};
use serde::{Deserialize, Serialize};

use super::exchange::Run;
use super::snapshot::Events;
use crate::results::Figures;

/// Measurements of a sweep over sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// Experiment 1.
    Latency,
    /// Experiments 2 to 4, by type.
    Exchange(Kind),
    /// The same with threads that are ready.
    Ready(Kind),
}

/// A type of the source's taxonomy, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Type 1.
    SameCore,
    /// Type 2.
    SameChip,
    /// Type 3.
    OtherChip,
}

impl From<Type> for Kind {
    fn from(kind: Type) -> Self {
        match kind {
            Type::One => Kind::SameCore,
            Type::Two => Kind::SameChip,
            Type::Three => Kind::OtherChip,
        }
    }
}

impl From<Kind> for Type {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::SameCore => Type::One,
            Kind::SameChip => Type::Two,
            Kind::OtherChip => Type::Three,
        }
    }
}

impl Sweep {
    /// Experiment and, in file names, what it is called.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Sweep::Latency => "1",
            Sweep::Exchange(Kind::SameCore) => "2",
            Sweep::Exchange(Kind::SameChip) => "3",
            Sweep::Exchange(Kind::OtherChip) => "4",
            Sweep::Ready(Kind::SameCore) => "2r",
            Sweep::Ready(Kind::SameChip) => "3r",
            Sweep::Ready(Kind::OtherChip) => "4r",
        }
    }
}

/// All runs of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The buffer's size.
    pub bytes: u64,
    /// The timed runs, in order.
    pub runs: Vec<Run>,
}

impl Row {
    /// Times of the runs; of the clean ones alone, if `clean` says how many minor faults those
    /// may have.
    pub fn times(&self, clean: Option<u64>) -> impl Iterator<Item = u64> + '_ {
        let kept = move |run: &&Run| clean.is_none_or(|allowed| run.events.is_clean(allowed));
        self.runs.iter().filter(kept).filter_map(|run| run.time)
    }

    /// The mean of those times, rounded; 0 if there are none, as published.
    #[must_use]
    pub fn mean(&self, clean: Option<u64>) -> u64 {
        let (mut sum, mut count) = (0u128, 0u128);
        for time in self.times(clean) {
            sum += u128::from(time);
            count += 1;
        }
        let mean = (sum + count / 2).checked_div(count).unwrap_or(0);
        u64::try_from(mean).unwrap_or(u64::MAX)
    }

    /// Counts the clean runs.
    #[must_use]
    pub fn clean_runs(&self, allowed: u64) -> usize {
        let clean = self.runs.iter().filter(|run| run.events.is_clean(allowed));
        clean.count()
    }

    /// The value that the comparison uses: the median of the clean runs, or of all if none is
    /// clean, with the quarters around it.
    #[must_use]
    pub fn typical(&self, allowed: u64) -> Option<Typical> {
        let numbers = |clean| -> Vec<f64> { self.times(clean).map(|t| t as f64).collect() };
        let clean = numbers(Some(allowed));
        let is_clean = !clean.is_empty();
        let times = if is_clean { clean } else { numbers(None) };
        Some(Typical {
            time: median(&times)?,
            low: quantile(&times, 0.25)?,
            high: quantile(&times, 0.75)?,
            is_clean,
        })
    }
}

/// The middle of a row's times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Typical {
    /// The median.
    pub time: f64,
    /// A quarter of the times are below.
    pub low: f64,
    /// A quarter are above.
    pub high: f64,
    /// True if it comes from clean runs alone.
    pub is_clean: bool,
}

/// The head of the source's tables for `repeats` repeats.
#[must_use]
pub fn head(repeats: u32) -> String {
    let mut text = String::from("N,Time,TimeMin");
    for k in 1..=repeats {
        let _ = write!(text, ",{k}.INT,{k}.PFMIN,{k}.PFMAJ");
    }
    text.push('\n');
    text
}

/// A line of the source's tables. `clean` as for [`Row::times`]; `least` is the time of no data.
#[must_use]
pub fn line(row: &Row, clean: Option<u64>, least: u64) -> String {
    let mut text = format!("{},{},{least}", row.bytes, row.mean(clean));
    for run in &row.runs {
        let Events {
            interrupts,
            faults_minor,
            faults_major,
        } = run.events;
        let _ = write!(text, ",{interrupts},{faults_minor},{faults_major}");
    }
    text.push('\n');
    text
}

/// The head of our table of single runs.
pub const RUNS_HEAD: &str = "N,k,Time,INT,PFMIN,PFMAJ,sender,receiver\n";

/// A row's lines in our table. A negative interval has no time; a core that the system does not
/// tell is empty.
#[must_use]
pub fn run_lines(row: &Row) -> String {
    let cell = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
    let mut text = String::new();
    for (k, run) in row.runs.iter().enumerate() {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{}",
            row.bytes,
            k + 1,
            cell(run.time),
            run.events.interrupts,
            run.events.faults_minor,
            run.events.faults_major,
            cell(run.sender.map(|core| core as u64)),
            cell(run.receiver.map(|core| core as u64)),
        );
    }
    text
}

/// Stands for a time or a core that is not known.
const UNKNOWN: f64 = -1.0;

/// The figures of a run.
#[must_use]
pub fn figures(run: &Run) -> [(String, f64); 6] {
    let core = |core: Option<usize>| core.map_or(UNKNOWN, |core| core as f64);
    let figures = [
        ("time", run.time.map_or(UNKNOWN, |time| time as f64)),
        ("interrupts", run.events.interrupts as f64),
        ("faults_minor", run.events.faults_minor as f64),
        ("faults_major", run.events.faults_major as f64),
        ("sender", core(run.sender)),
        ("receiver", core(run.receiver)),
    ];
    figures.map(|(name, value)| (name.to_owned(), value))
}

/// The runs that have these figures.
#[must_use]
pub fn runs(figures: &Figures) -> Vec<Run> {
    let known = |figure: &str, at: usize| {
        let value = figures.runs(figure).get(at).copied();
        value
            .filter(|value| *value >= 0.0)
            .map(|value| value as u64)
    };
    let core = |figure, at| known(figure, at).and_then(|core| usize::try_from(core).ok());
    let count = |figure, at| known(figure, at).unwrap_or(0);
    let run = |at| Run {
        time: known("time", at),
        events: Events {
            interrupts: count("interrupts", at),
            faults_minor: count("faults_minor", at),
            faults_major: count("faults_major", at),
        },
        sender: core("sender", at),
        receiver: core("receiver", at),
    };
    (0..figures.runs("time").len()).map(run).collect()
}
