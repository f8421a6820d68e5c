//! All that a study found, and the folder it is kept in.
//!
//! `results.json` has all but the sweeps, and is replaced whole; a sweep's tables grow by a row at
//! a time. If a study is stopped for any reason, the folder's contents are good.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::options::CacheImpactOptions;
use super::record::{self, Kind, RUNS_HEAD, Row, Sweep};
use super::ring::Ring;
use super::site::Site;
use super::sweep::{Register, Unit};
use super::timers::{EventCosts, Opening, Timers};
use crate::StudyError;
use crate::kept::{self, file};

/// The format of `results.json`.
const FORMAT: u32 = 1;

/// Exchanges of nothing, of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// All that a study found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The format of the file.
    pub format: u32,
    /// The version of the Hearth that measured.
    pub hearth_version: String,
    /// Built without optimisation: figures to look at, not to keep.
    pub is_debug_build: bool,
    /// The site: machine and hardware threads.
    pub site: Site,
    /// The options of the run.
    pub options: CacheImpactOptions,
    /// Time taken so far, in seconds.
    pub seconds: f64,
    /// All that was asked for is there.
    pub is_complete: bool,
    /// The share of its time that the hypervisor took from this machine meanwhile, 0 to 1.
    pub steal_share: Option<f64>,
    /// The nice value that it ran with.
    pub nice: i32,
    /// Minor faults that a clean run may have.
    pub faults_allowed: u64,
    /// The unit of cycles.
    pub unit: Unit,
    /// Nanoseconds to one of them.
    pub ns_per_unit: f64,
    /// Notes on what was left out or went differently, in sentences without a full stop.
    pub notes: Vec<String>,
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
    /// Exchanges of nothing, by type.
    pub zero: Vec<ZeroData>,
    /// The sweeps by what they measured and which one it was, from 1. In tables, not in the file.
    #[serde(skip)]
    pub sweeps: BTreeMap<(Sweep, u32), Vec<Row>>,
}

impl Results {
    /// Creates results without runs.
    #[must_use]
    pub fn new(site: Site, options: CacheImpactOptions) -> Results {
        Results {
            format: FORMAT,
            hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_debug_build: cfg!(debug_assertions),
            site,
            options,
            seconds: 0.0,
            is_complete: false,
            steal_share: None,
            nice: 0,
            faults_allowed: 2,
            unit: Unit::Cycles,
            ns_per_unit: 1.0,
            notes: Vec::new(),
            timers: None,
            opening: None,
            events: None,
            register: None,
            rings: Vec::new(),
            zero: Vec::new(),
            sweeps: BTreeMap::new(),
        }
    }

    /// Says something once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// All measured rows, sweep after sweep.
    pub fn rows(&self, sweep: Sweep) -> impl Iterator<Item = &Row> {
        let kept = self.sweeps.iter().filter(move |((of, _), _)| *of == sweep);
        kept.flat_map(|(_, rows)| rows)
    }

    /// The measured rows, runs of one size joined over the sweeps, by size.
    #[must_use]
    pub fn joined(&self, sweep: Sweep) -> Vec<Row> {
        let mut by_bytes: BTreeMap<u64, Row> = BTreeMap::new();
        for row in self.rows(sweep) {
            let joined = by_bytes.entry(row.bytes).or_default();
            joined.bytes = row.bytes;
            joined.runs.extend(&row.runs);
        }
        by_bytes.into_values().collect()
    }

    /// Exchanges of nothing of one type.
    #[must_use]
    pub fn zero(&self, kind: impl Into<Kind>) -> Option<&ZeroData> {
        let kind = kind.into();
        self.zero.iter().find(|zero| zero.kind == kind)
    }
}

/// The folder of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

/// The name of the file with all but the sweeps.
pub const RESULTS: &str = "results.json";
/// The name of the page.
pub const PAGE: &str = "cache-impact.html";

impl Folder {
    /// The folder at a path, whatever is in it.
    #[must_use]
    pub fn at(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
        }
    }

    /// Opens or makes the folder, and reads its contents if the run is to be continued.
    ///
    /// # Errors
    /// It holds results and `resume` is false; they were made on another machine or with other
    /// options; a file cannot be read, written or understood.
    pub fn open(
        path: &Path,
        site: Site,
        options: &CacheImpactOptions,
        resume: bool,
    ) -> Result<(Folder, Results), StudyError> {
        let folder = Folder::at(path);
        fs::create_dir_all(path).map_err(|error| file("make the folder", path, error))?;
        let earlier = folder.results()?;
        let Some(mut earlier) = earlier else {
            return Ok((folder, Results::new(site, options.clone())));
        };
        let differs = if earlier.site != site {
            Some("the machine")
        } else if earlier.is_debug_build != cfg!(debug_assertions) {
            Some("how Hearth was built")
        } else {
            earlier.options.differs(options)
        };
        kept::go_on(path, resume, differs)?;
        earlier.options = options.clone();
        earlier.is_complete = false;
        Ok((folder, earlier))
    }

    /// Reads the folder's results, sweeps included; `None` if there are none.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub fn results(&self) -> Result<Option<Results>, StudyError> {
        let path = self.path.join(RESULTS);
        let Some(mut results) = kept::read::<Results>(&path, FORMAT)? else {
            return Ok(None);
        };
        for sweep in sweeps() {
            for number in 1..=results.options.sweeps {
                if let Some(rows) = self.rows(&results, sweep, number)? {
                    results.sweeps.insert((sweep, number), rows);
                }
            }
        }
        Ok(Some(results))
    }

    /// The results of an earlier study.
    ///
    /// # Errors
    /// There are none, or they cannot be read.
    pub fn read(path: &Path) -> Result<Results, StudyError> {
        let folder = Folder::at(path);
        let missing = || file("read", &path.join(RESULTS), io::ErrorKind::NotFound.into());
        folder.results()?.ok_or_else(missing)
    }

    fn rows(
        &self,
        results: &Results,
        sweep: Sweep,
        number: u32,
    ) -> Result<Option<Vec<Row>>, StudyError> {
        let path = self.path.join(self.name(results, sweep, number, "runs"));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file("read", &path, error)),
        };
        let rows = record::read_runs(&text, results.options.repeats());
        rows.map(Some)
            .map_err(|why| StudyError::Damaged { file: path, why })
    }

    /// `CPU_TYPE-EXPERIMENT-RUN`, as the source names its tables, with what kind of table it is.
    #[must_use]
    pub fn name(&self, results: &Results, sweep: Sweep, number: u32, table: &str) -> String {
        let cpu = results.site.cpu_type();
        format!("{cpu}-{}-{number}.{table}.csv", sweep.id())
    }

    /// Replaces `results.json`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, results: &Results) -> Result<(), StudyError> {
        let text = serde_json::to_string_pretty(results).unwrap_or_default();
        self.replace(RESULTS, text.as_bytes())?;
        if !results.rings.is_empty() {
            self.replace(
                &format!("{}-1b-1.csv", results.site.cpu_type()),
                ring_table(&results.rings).as_bytes(),
            )?;
        }
        if !results.zero.is_empty() {
            self.replace(
                &format!("{}-zero-1.csv", results.site.cpu_type()),
                zero_table(&results.zero).as_bytes(),
            )?;
        }
        Ok(())
    }

    /// Gives a file new contents by one rename.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace(&self, name: &str, contents: &[u8]) -> Result<PathBuf, StudyError> {
        kept::replace(&self.path, name, contents)
    }

    /// The tables of a sweep, with the rows that are there already.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn tables(
        &self,
        results: &Results,
        sweep: Sweep,
        number: u32,
    ) -> Result<Tables, StudyError> {
        let allowed = results.faults_allowed;
        let name = |table| self.path.join(self.name(results, sweep, number, table));
        let head = record::head(results.options.repeats());
        let mut tables = Tables {
            runs: Table::new(name("runs"), RUNS_HEAD)?,
            clean: Table::new(name("clean"), &head)?,
            dirty: Table::new(name("dirty"), &head)?,
            least: [0; 2],
            allowed,
        };
        for row in results.sweeps.get(&(sweep, number)).into_iter().flatten() {
            tables.add(row)?;
        }
        Ok(tables)
    }
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

/// A table that grows.
#[derive(Debug)]
struct Table {
    file: File,
    path: PathBuf,
}

impl Table {
    fn new(path: PathBuf, head: &str) -> Result<Table, StudyError> {
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).open(&path);
        let file = opened.map_err(|error| file("write", &path, error))?;
        let mut table = Table { file, path };
        table.add(head)?;
        Ok(table)
    }

    fn add(&mut self, text: &str) -> Result<(), StudyError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| file("write", &self.path, error))
    }
}

/// The three tables of a sweep, under way.
#[derive(Debug)]
pub struct Tables {
    runs: Table,
    clean: Table,
    dirty: Table,
    /// The time of no data, clean and dirty.
    least: [u64; 2],
    allowed: u64,
}

impl Tables {
    /// Adds a row to each.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn add(&mut self, row: &Row) -> Result<(), StudyError> {
        let clean = Some(self.allowed);
        if row.bytes == 0 {
            self.least = [row.mean(clean), row.mean(None)];
        }
        self.runs.add(&record::run_lines(row))?;
        self.clean.add(&record::line(row, clean, self.least[0]))?;
        self.dirty.add(&record::line(row, None, self.least[1]))
    }
}
