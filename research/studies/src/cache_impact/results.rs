//! All that the study found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Case;
use super::record::{self, Kind, RUNS_HEAD, Row, Sweep};
use super::ring::Ring;
use super::site;
use super::study::CacheImpact;
use super::sweep::{Register, Unit};
use super::timers::{EventCosts, Opening, Timers};
use crate::results::File;
use crate::study;

/// All that the study found.
pub type Results = study::Results<CacheImpact>;

/// The machine, the conditions of the runs, and what was measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// The machine and its hardware threads.
    pub place: site::Site,
    /// The nice value that it ran with.
    pub nice: i32,
    /// Minor faults that a clean run may have.
    pub faults_allowed: u64,
    /// The unit of cycles.
    pub unit: Unit,
    /// Nanoseconds to one of them.
    pub ns_per_unit: f64,
    /// Timer tests.
    pub timers: Option<Timers>,
    /// The file-open test.
    pub opening: Option<Opening>,
    /// Durations of events.
    pub events: Option<EventCosts>,
    /// Experiment 0.
    pub register: Option<Register>,
    /// Experiment 1b.
    pub rings: Vec<Ring>,
}

/// Minor faults of the source's clean runs.
pub(super) const FAULTS_PUBLISHED: u64 = 2;

impl Site {
    /// Creates the site of a machine without further facts.
    #[must_use]
    pub fn new(place: site::Site) -> Site {
        Site {
            place,
            nice: 0,
            faults_allowed: FAULTS_PUBLISHED,
            unit: Unit::Cycles,
            ns_per_unit: 1.0,
            timers: None,
            opening: None,
            events: None,
            register: None,
            rings: Vec::new(),
        }
    }
}

/// Exchanges of nothing, of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroData {
    /// The type.
    pub kind: Kind,
    /// Every time, ns.
    pub times_ns: Vec<u64>,
}

impl ZeroData {
    /// Mean and standard deviation, ns; `None` for fewer than two.
    #[must_use]
    pub fn mean(&self) -> Option<(f64, f64)> {
        let count = self.times_ns.len() as f64;
        if self.times_ns.len() < 2 {
            return None;
        }
        let mean = self.times_ns.iter().map(|&t| t as f64).sum::<f64>() / count;
        let squares = self.times_ns.iter().map(|&t| (t as f64 - mean).powi(2));
        Some((mean, (squares.sum::<f64>() / (count - 1.0)).sqrt()))
    }

    /// The median, ns.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        let times: Vec<f64> = self.times_ns.iter().map(|&t| t as f64).collect();
        hearth_stats::median(&times)
    }
}

impl Results {
    /// The measured rows of the sweeps of a number, or of all.
    fn numbered(&self, sweep: Sweep, number: Option<u32>) -> impl Iterator<Item = Row> {
        self.cells.iter().filter_map(move |cell| match cell.case {
            Case::Row {
                sweep: of,
                number: at,
                bytes,
            } if of == sweep && number.is_none_or(|number| number == at) => {
                let runs = record::runs(&cell.figures);
                (!runs.is_empty()).then_some(Row { bytes, runs })
            }
            _ => None,
        })
    }

    /// All measured rows, sweep after sweep.
    pub fn rows_of(&self, sweep: Sweep) -> impl Iterator<Item = Row> {
        self.numbered(sweep, None)
    }

    /// The measured rows, runs of one size joined over the sweeps, by size.
    #[must_use]
    pub fn joined(&self, sweep: Sweep) -> Vec<Row> {
        let mut by_bytes: BTreeMap<u64, Row> = BTreeMap::new();
        for row in self.rows_of(sweep) {
            let joined = by_bytes.entry(row.bytes).or_default();
            joined.bytes = row.bytes;
            joined.runs.extend(row.runs);
        }
        by_bytes.into_values().collect()
    }

    /// Exchanges of nothing of one type.
    #[must_use]
    pub fn zero(&self, kind: impl Into<Kind>) -> Option<ZeroData> {
        let kind = kind.into();
        let cell = self.cell(&Case::Zero(kind))?;
        let runs = record::runs(&cell.figures).into_iter();
        let times_ns: Vec<u64> = runs.filter_map(|run| run.time).collect();
        (!times_ns.is_empty()).then_some(ZeroData { kind, times_ns })
    }
}

/// The rings, the exchanges of nothing, and the three tables of each sweep.
pub(super) fn tables(results: &Results) -> Vec<File> {
    let cpu = results.site.place.cpu_type();
    let mut tables = Vec::new();
    if !results.site.rings.is_empty() {
        tables.push((format!("{cpu}-1b-1.csv"), ring_table(&results.site.rings)));
    }
    let kinds = [Kind::SameCore, Kind::SameChip, Kind::OtherChip];
    let zero: Vec<ZeroData> = kinds.into_iter().filter_map(|k| results.zero(k)).collect();
    if !zero.is_empty() {
        tables.push((format!("{cpu}-zero-1.csv"), zero_table(&zero)));
    }
    for sweep in sweeps() {
        for number in 1..=results.options.sweeps {
            let rows: Vec<Row> = results.numbered(sweep, Some(number)).collect();
            if rows.is_empty() {
                continue;
            }
            let name = |table| table_name(results, sweep, number, table);
            let runs: String = rows.iter().map(record::run_lines).collect();
            tables.push((name("runs"), format!("{RUNS_HEAD}{runs}")));
            for (table, clean) in [
                ("clean", Some(results.site.faults_allowed)),
                ("dirty", None),
            ] {
                let nothing = rows.iter().find(|row| row.bytes == 0);
                let least = nothing.map_or(0, |row| row.mean(clean));
                let lines = rows.iter().map(|row| record::line(row, clean, least));
                let head = record::head(results.options.repeats());
                tables.push((name(table), head + &lines.collect::<String>()));
            }
        }
    }
    tables
}

/// `CPU_TYPE-EXPERIMENT-RUN`, as the source names its tables, with what kind of table it is.
#[must_use]
pub fn table_name(results: &Results, sweep: Sweep, number: u32, table: &str) -> String {
    let cpu = results.site.place.cpu_type();
    format!("{cpu}-{}-{number}.{table}.csv", sweep.id())
}

/// Everything that is swept over sizes.
pub(crate) fn sweeps() -> impl Iterator<Item = Sweep> {
    let kinds = [Kind::SameCore, Kind::SameChip, Kind::OtherChip];
    let first = std::iter::once(Sweep::Latency);
    first
        .chain(kinds.map(Sweep::Exchange))
        .chain(kinds.map(Sweep::Ready))
}

fn ring_table(rings: &[Ring]) -> String {
    let mut text = String::from("order,stride,N,ns,low,high\n");
    for ring in rings {
        let order = if ring.is_random {
            "random"
        } else {
            "ascending"
        };
        for (bytes, ns, low, high) in &ring.points {
            text += &format!(
                "{order},{},{bytes},{ns:.3},{low:.3},{high:.3}\n",
                ring.stride
            );
        }
    }
    text
}

fn zero_table(zero: &[ZeroData]) -> String {
    let mut text = String::from("experiment,k,Time\n");
    for zero in zero {
        let id = Sweep::Exchange(zero.kind).id();
        for (k, time) in zero.times_ns.iter().enumerate() {
            text += &format!("{id},{},{time}\n", k + 1);
        }
    }
    text
}
