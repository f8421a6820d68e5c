//! Rows of a sweep, and the source's tables of them: one of clean runs, one of all.
//!
//! A third table, ours, has a line for each run. The others are made from it, and so is what a
//! resumed study begins with.

use std::fmt::Write as _;

use hearth_published::source::Type;
use hearth_stats::{median, quantile};
use serde::{Deserialize, Serialize};

use super::exchange::Run;
use super::snapshot::Events;

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

/// The rows in our table. A last row that has fewer runs than `repeats`, as its writer was
/// stopped, is left out.
///
/// # Errors
/// The first line that cannot be understood, by its number and text.
pub fn read_runs(text: &str, repeats: u32) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = Vec::new();
    let is_whole = text.ends_with('\n');
    let lines = text.lines().count();
    for (at, line) in text.lines().enumerate() {
        // A line without an end was being written.
        let is_torn = !is_whole && at + 1 == lines;
        if is_torn || (at == 0 && line == RUNS_HEAD.trim_end()) {
            continue;
        }
        let (bytes, k, run) =
            read_run(line).ok_or_else(|| format!("line {} is {line:?}", at + 1))?;
        if k == 1 {
            rows.push(Row {
                bytes,
                runs: Vec::new(),
            });
        }
        match rows.last_mut() {
            Some(row) if row.bytes == bytes && row.runs.len() + 1 == k => row.runs.push(run),
            _ => return Err(format!("line {} does not follow the one before", at + 1)),
        }
    }
    if rows
        .last()
        .is_some_and(|row| row.runs.len() < repeats as usize)
    {
        rows.pop();
    }
    Ok(rows)
}

fn read_run(line: &str) -> Option<(u64, usize, Run)> {
    let cells: Vec<&str> = line.split(',').collect();
    let [bytes, k, time, int, minor, major, sender, receiver] = cells[..] else {
        return None;
    };
    let optional = |cell: &str| match cell {
        "" => Some(None),
        _ => cell.parse::<u64>().ok().map(Some),
    };
    let core = |cell| Some(optional(cell)?.and_then(|core| usize::try_from(core).ok()));
    let run = Run {
        time: optional(time)?,
        events: Events {
            interrupts: int.parse().ok()?,
            faults_minor: minor.parse().ok()?,
            faults_major: major.parse().ok()?,
        },
        sender: core(sender)?,
        receiver: core(receiver)?,
    };
    Some((bytes.parse().ok()?, k.parse().ok()?, run))
}
