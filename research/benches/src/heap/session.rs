//! Runs everything under every allocator, in turns whose order is drawn anew.

use std::collections::BTreeMap;

use hearth_testing::random::Random;

use super::Request;
use super::allocators::{Allocator, FAST_PEERS, SYSTEM};
use super::programs::Programs;
use super::table::{Better, Cell, Row, Table};
use super::ticks::{Bursts, From, Latencies, Sorted, Which};
use super::workloads::{Group, HAND_OVER, Real, SEED, SUITE, Size, real};
use crate::measure::in_order;
use hearth_stats::Summary;

/// Number of processes over which the floor is taken; fewer leave interrupts in it.
const FLOOR_RUNS: [usize; 3] = [2, 3, 7];

/// State of a session.
pub struct Session<'a> {
    request: &'a Request,
    programs: Programs,
    allocators: &'a [Allocator],
    random: Random,
    /// Called with each run that is about to start.
    progress: &'a mut dyn FnMut(&str),
    table: Table,
    /// Programs that are missing.
    skipped: Vec<String>,
}

/// All results, and a line for each program that is missing.
pub struct Found {
    pub table: Table,
    pub skipped: Vec<String>,
}

/// Runs the requested measurements. A failure under one allocator is reported in its cells; an
/// error concerns all.
pub fn measure(
    request: &Request,
    allocators: &[Allocator],
    progress: &mut dyn FnMut(&str),
) -> Result<Found, String> {
    let mut session = Session {
        request,
        programs: Programs::new()?,
        allocators,
        random: Random::new(SEED),
        progress,
        table: Table::new(allocators.iter().map(|one| one.name.clone()).collect()),
        skipped: Vec::new(),
    };
    for group in Group::ALL {
        if request.wants(group) {
            session.group(group)?;
        }
    }
    session.means();
    Ok(Found {
        table: session.table,
        skipped: session.skipped,
    })
}

/// Each allocator's results, in the order of its runs, or why one failed.
type Outcomes<T> = Vec<Result<Vec<T>, String>>;

/// One allocator's figures, from which rows are made.
type Figures = BTreeMap<String, f64>;

impl Session<'_> {
    fn group(&mut self, group: Group) -> Result<(), String> {
        match group {
            Group::Fast => self.fast(),
            Group::Latency => self.latencies(),
            Group::Burst => self.bursts(),
            Group::Fragment => self.fragment(),
            Group::Suite => self.suite(),
            Group::Real => self.real()?,
            Group::Threads => self.threads(),
            Group::Forks => self.forks(),
        }
        Ok(())
    }

    fn size(&self) -> Size {
        self.request.size
    }

    /// Runs something under all allocators, `repeats` times, in shuffled turns. One that has failed
    /// is not run again. `one` says whether the run was disturbed so that it does not count. If the
    /// host is too busy for this, all have failed, and what comes next is still tried.
    fn alternate<T: Clone>(
        &mut self,
        what: &str,
        repeats: usize,
        mut one: impl FnMut(&Programs, &Allocator) -> Result<(T, bool), String>,
    ) -> Outcomes<T> {
        let (programs, allocators) = (&self.programs, self.allocators);
        let (random, progress) = (&mut self.random, &mut *self.progress);
        // Where only the answers count, nothing disturbs.
        let counts = self.request.size != Size::Small;
        let mut failed: Vec<Option<String>> = vec![None; allocators.len()];
        let mut turn = 0;
        let shuffle = |order: &mut [usize]| {
            turn += 1;
            progress(&format!("{what}, turn {turn} of {repeats}"));
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last + 1));
            }
        };
        let kept = in_order(allocators.len(), repeats, shuffle, |side| {
            if failed[side].is_some() {
                return Ok((None, false));
            }
            match one(programs, &allocators[side]) {
                Ok((value, is_disturbed)) => Ok((Some(value), counts && is_disturbed)),
                Err(error) => {
                    failed[side] = Some(error);
                    Ok((None, false))
                }
            }
        });
        let kept = match kept {
            Ok(kept) => kept,
            Err(busy) => return vec![Err(format!("{what}: {busy}")); allocators.len()],
        };
        let outcomes = kept.into_iter().zip(failed);
        outcomes
            .map(|(kept, failed)| match failed {
                Some(error) => Err(error),
                None => Ok(kept.values.into_iter().flatten().collect()),
            })
            .collect()
    }

    /// Runs a workload of ours `repeats` times, for the figures that it prints.
    fn figures(&mut self, words: &str, repeats: usize, is_timed: bool) -> Outcomes<Figures> {
        self.alternate(words, repeats, |programs, under| {
            let (mut figures, ran) = programs.workload(under, words)?;
            figures.insert(PEAK.to_owned(), ran.peak_mb);
            Ok((figures, is_timed && ran.disturbed))
        })
    }

    fn add(
        &mut self,
        group: Group,
        name: &str,
        unit: &'static str,
        better: Better,
        cells: Vec<Cell>,
    ) {
        self.table.rows.push(Row {
            group,
            name: name.to_owned(),
            unit,
            better,
            cells,
        });
    }

    /// Adds a row for a figure of the outcomes.
    fn add_figure(
        &mut self,
        group: Group,
        (name, unit, better): (&str, &'static str, Better),
        figure: &str,
        outcomes: &Outcomes<Figures>,
    ) {
        let cell = |outcome: &Result<Vec<Figures>, String>| match outcome {
            Err(error) => Cell::Failed(error.clone()),
            Ok(runs) => {
                let values: Option<Vec<f64>> =
                    runs.iter().map(|run| run.get(figure).copied()).collect();
                values
                    .filter(|values| !values.is_empty())
                    .map_or(Cell::Nothing, Cell::Values)
            }
        };
        let cells = outcomes.iter().map(cell).collect();
        self.add(group, name, unit, better, cells);
    }

    fn fast(&mut self) {
        let words = self
            .size()
            .of(["fast 1000 1", "fast 500000 10", "fast 3000000 40"]);
        let outcomes = self.figures(words, self.request.repeats, true);
        let sizes = [16, 64, 256, 1000, 4000, 20_000, 100_000];
        let pairs = sizes.map(|size| format!("pair-{size}"));
        let batches = ["lifo", "fifo", "random"].map(|order| format!("batch-{order}"));
        for name in pairs.iter().chain(&batches) {
            self.add_figure(Group::Fast, (name, "ns", Better::Less), name, &outcomes);
        }
    }

    fn latencies(&mut self) {
        let operations = self.size().of([2000, 200_000, 1_000_000]);
        let large = operations / 10;
        let cases = [
            ("null", format!("latency null 1 {operations} 8192 0")),
            ("rt-1", format!("latency rt 1 {operations} 8192 0")),
            ("mix-1", format!("latency mix 1 {operations} 8192 0")),
            ("big-1", format!("latency big 1 {large} 256 0")),
            ("rt-2", format!("latency rt 2 {operations} 8192 3")),
            ("mix-2", format!("latency mix 2 {operations} 8192 3")),
        ];
        for (name, words) in cases {
            self.latency(name, &words);
        }
    }

    fn latency(&mut self, name: &str, words: &str) {
        let file = self.programs.file("ticks");
        let words = format!("{words} {SEED} {}", file.display());
        let is_null = name == "null";
        // Merged at once: all of them together would fill memory.
        let mut floors: BTreeMap<String, Latencies> = BTreeMap::new();
        let outcomes = self.alternate(
            &format!("latency {name}"),
            self.size().of(FLOOR_RUNS),
            |programs, under| {
                if is_null && under.name != SYSTEM {
                    // It uses no allocator.
                    return Ok((Figures::new(), false));
                }
                programs.workload(under, &words)?;
                let run = Latencies::read(&file)?;
                let raw = percentiles(&run, &RAW);
                match floors.get_mut(&under.name) {
                    Some(floor) => floor.floor(&run)?,
                    None => {
                        floors.insert(under.name.clone(), run);
                    }
                }
                // A run with an interrupt stays in: the floor removes interrupts.
                Ok((raw, false))
            },
        );
        let floor_of = |under: &Allocator| {
            let floor = floors.get(&under.name);
            floor
                .map(|floor| percentiles(floor, &FLOOR))
                .unwrap_or_default()
        };
        let floors: Outcomes<Figures> = outcomes
            .iter()
            .zip(self.allocators)
            .map(|(outcome, under)| match outcome {
                Err(error) => Err(error.clone()),
                Ok(_) => Ok(vec![floor_of(under)]),
            })
            .collect();
        for (figure, ..) in FLOOR {
            self.add_if_there(name, figure, &floors);
        }
        for (figure, ..) in RAW {
            self.add_if_there(name, figure, &outcomes);
        }
    }

    fn add_if_there(&mut self, name: &str, figure: &str, outcomes: &Outcomes<Figures>) {
        let has = |outcome: &Result<Vec<Figures>, String>| {
            outcome
                .as_ref()
                .is_ok_and(|runs| runs.iter().any(|run| run.contains_key(figure)))
        };
        if outcomes.iter().any(has) {
            let named = format!("{name} {figure}");
            self.add_figure(
                Group::Latency,
                (&named, "ticks", Better::Less),
                figure,
                outcomes,
            );
        }
    }

    fn bursts(&mut self) {
        // Blocks and rounds. A million of many sizes need 3 GB, and rounds as long as several
        // interrupts: the floor alone says something of them.
        let cases: &[(u64, u64)] = self.size().of([
            &[(100, 3)],
            &[(1000, 11), (10_000, 11), (100_000, 5)],
            &[(1000, 21), (10_000, 21), (100_000, 11), (1_000_000, 5)],
        ]);
        for &(blocks, rounds) in cases {
            for sizes in ["null", "one", "many"] {
                self.burst(blocks, sizes, rounds);
            }
        }
    }

    fn burst(&mut self, blocks: u64, sizes: &str, rounds: u64) {
        let file = self.programs.file("ticks");
        let words = format!("burst {blocks} {sizes} {rounds} {SEED} {}", file.display());
        let mut merged: BTreeMap<String, (Bursts, Bursts)> = BTreeMap::new();
        let repeats = self.size().of(FLOOR_RUNS);
        let what = format!("burst of {blocks}, {sizes}");
        let outcomes = self.alternate(&what, repeats, |programs, under| {
            if sizes == "null" && under.name != SYSTEM {
                return Ok((Figures::new(), false));
            }
            let (mut figures, _) = programs.workload(under, &words)?;
            let run = Bursts::read(&file)?;
            figures.insert("worst raw".to_owned(), typical(&run.worst()));
            match merged.get_mut(&under.name) {
                Some((floor, calmest)) => {
                    floor.floor(&run)?;
                    calmest.calmest(&run)?;
                }
                None => {
                    merged.insert(under.name.clone(), (run.clone(), run));
                }
            }
            Ok((figures, false))
        });
        let of_merged = |under: &Allocator| {
            let (floor, calmest) = merged.get(&under.name)?;
            let figures = [("worst", floor), ("worst by round", calmest)];
            let figures = figures.map(|(name, run)| (name.to_owned(), typical(&run.worst())));
            Some(Figures::from(figures))
        };
        let merged: Outcomes<Figures> = outcomes
            .iter()
            .zip(self.allocators)
            .map(|(outcome, under)| match outcome {
                Err(error) => Err(error.clone()),
                Ok(_) => Ok(of_merged(under).into_iter().collect()),
            })
            .collect();
        for (figure, outcomes) in [
            ("worst", &merged),
            ("worst by round", &merged),
            ("worst raw", &outcomes),
            ("owner-mean", &outcomes),
            ("remote-mean", &outcomes),
        ] {
            let named = format!("{blocks} {sizes} {figure}");
            self.add_figure(
                Group::Burst,
                (&named, "ticks", Better::Less),
                figure,
                outcomes,
            );
        }
    }

    fn fragment(&mut self) {
        let words = self.size().of([
            "fragment 1 42 10",
            "fragment 64 42 1500",
            "fragment 64 42 1500",
        ]);
        let outcomes = self.figures(words, self.request.repeats, false);
        let phases = (0..6).map(|phase| format!("phase-{phase}"));
        for name in phases.chain(["worst", "peak"].map(str::to_owned)) {
            self.add_figure(
                Group::Fragment,
                (&name, "x", Better::Less),
                &name,
                &outcomes,
            );
        }
        for (name, unit) in [("after-mb", "MB"), ("later-mb", "MB"), ("seconds", "s")] {
            self.add_figure(Group::Fragment, (name, unit, Better::Less), name, &outcomes);
        }
    }

    fn suite(&mut self) {
        for workload in SUITE {
            let words = self.size().of(workload.words);
            let outcomes = self.figures(words, self.request.repeats, true);
            let what = (workload.name, workload.unit(), workload.better);
            self.add_figure(Group::Suite, what, workload.figure(), &outcomes);
            let what = format!("{}{RESIDENT}", workload.name);
            let what = (what.as_str(), "MB", Better::Less);
            self.add_figure(Group::Suite, what, PEAK, &outcomes);
        }
        debug_assert!(SUITE.iter().any(|one| one.name == HAND_OVER));
    }

    fn real(&mut self) -> Result<(), String> {
        let (all, missing) = real(&self.programs, self.size())?;
        self.skipped.extend(missing);
        for program in all {
            self.one_real(&program);
        }
        Ok(())
    }

    fn one_real(&mut self, program: &Real) {
        let mut answer = program.answer.clone();
        let what = program.name.to_owned();
        let outcomes = self.alternate(&what, self.request.repeats, |programs, under| {
            let ran = programs.run(under, &program.words)?;
            let wanted = answer.get_or_insert_with(|| ran.stdout.clone());
            if *wanted != ran.stdout {
                return Err(format!(
                    "{} says {:?} under {} instead of {wanted:?}",
                    program.name, ran.stdout, under.name
                ));
            }
            let figures = [("seconds", ran.seconds), (PEAK, ran.peak_mb)];
            let figures = figures.map(|(name, value)| (name.to_owned(), value));
            Ok((Figures::from(figures), ran.disturbed))
        });
        let what = (program.name, "s", Better::Less);
        self.add_figure(Group::Real, what, "seconds", &outcomes);
        let what = format!("{}{RESIDENT}", program.name);
        self.add_figure(Group::Real, (&what, "MB", Better::Less), PEAK, &outcomes);
    }

    fn threads(&mut self) {
        let words = self
            .size()
            .of(["thread-churn 50", "thread-churn 3000", "thread-churn 3000"]);
        let outcomes = self.figures(words, self.request.repeats, true);
        for (name, unit, figure) in [("a thread", "us", "us"), ("growth", "MB", "growth-mb")] {
            self.add_figure(
                Group::Threads,
                (name, unit, Better::Less),
                figure,
                &outcomes,
            );
        }
    }

    fn forks(&mut self) {
        let children = self.size().of([20, 200, 2000]);
        let words = format!("fork-churn {children} {SEED}");
        let outcomes = self.figures(&words, 1, false);
        for (name, unit, figure) in [("hangs", "", "hangs"), ("a child", "us", "us")] {
            self.add_figure(Group::Forks, (name, unit, Better::Less), figure, &outcomes);
        }
    }

    /// Adds the suite's means over all of its programs, real ones included.
    fn means(&mut self) {
        let of_suite = |row: &&Row| matches!(row.group, Group::Suite | Group::Real);
        let (memory, speed): (Vec<&Row>, Vec<&Row>) = self
            .table
            .rows
            .iter()
            .filter(of_suite)
            .partition(|row| row.name.ends_with(RESIDENT));
        if speed.is_empty() {
            return;
        }
        let names = self.table.allocators.iter();
        let speeds = names
            .clone()
            .map(|name| self.table.geometric_mean(&speed, name))
            .collect();
        let inverse = |cell: Cell| match cell {
            Cell::Values(values) => Cell::Values(values.iter().map(|gain| 1.0 / gain).collect()),
            other => other,
        };
        let residents = names
            .clone()
            .map(|name| inverse(self.table.geometric_mean(&memory, name)))
            .collect();
        let least = names.map(|name| self.least(&speed, name)).collect();
        let group = speed[0].group;
        self.add(group, SPEED, "of glibc's", Better::More, speeds);
        self.add(group, LEAST, "of the best peer's", Better::More, least);
        self.add(group, MEMORY, "of glibc's", Better::Less, residents);
    }

    /// An allocator's lowest speed, over all programs, relative to the best fast peer.
    fn least(&self, rows: &[&Row], allocator: &str) -> Cell {
        let shares = rows.iter().map(|row| {
            let mine = self.table.median(row, allocator)?;
            let (_, best) = self.table.best(row, Some(FAST_PEERS))?;
            Some(match row.better {
                Better::Less => best / mine,
                Better::More => mine / best,
            })
        });
        match shares.collect::<Option<Vec<f64>>>() {
            Some(shares) => Cell::Values(vec![shares.into_iter().fold(f64::INFINITY, f64::min)]),
            None => Cell::Nothing,
        }
    }
}

/// Suffix of a program's name: its peak resident memory.
pub const RESIDENT: &str = ", resident";
const PEAK: &str = "peak-mb";
/// Rows over all programs of the suite.
pub const SPEED: &str = "speed of all";
pub const LEAST: &str = "speed of the worst";
pub const MEMORY: &str = "memory of all";

/// A percentile, of which operations, from when on. Zero stands for the mean.
type Percentile = (&'static str, Which, From, f64);

const FLOOR: [Percentile; 12] = [
    ("malloc p50", Which::Malloc, From::Steady, 50.0),
    ("malloc p99", Which::Malloc, From::Steady, 99.0),
    ("malloc p99.9", Which::Malloc, From::Steady, 99.9),
    ("malloc p99.99", Which::Malloc, From::Steady, 99.99),
    ("malloc p99.999", Which::Malloc, From::Steady, 99.999),
    ("malloc max", Which::Malloc, From::Steady, 100.0),
    ("malloc cold max", Which::Malloc, From::Start, 100.0),
    ("free p99.9", Which::Free, From::Steady, 99.9),
    ("free max", Which::Free, From::Steady, 100.0),
    ("free cold max", Which::Free, From::Start, 100.0),
    ("touch p99.99", Which::Touch, From::Start, 99.99),
    ("touch max", Which::Touch, From::Start, 100.0),
];

/// Percentiles of single processes; frees for others have no floor.
const RAW: [Percentile; 6] = [
    ("malloc p50 raw", Which::Malloc, From::Steady, 50.0),
    ("malloc p99.9 raw", Which::Malloc, From::Steady, 99.9),
    ("malloc max raw", Which::Malloc, From::Steady, 100.0),
    ("free max raw", Which::Free, From::Steady, 100.0),
    ("remote free mean", Which::Remote, From::Steady, 0.0),
    ("remote free p99.9", Which::Remote, From::Steady, 99.9),
];

fn percentiles(run: &Latencies, wanted: &[Percentile]) -> Figures {
    // Sorted once for all percentiles of the same operations, which are neighbours.
    let mut last: Option<(Which, From, Sorted)> = None;
    let figures = wanted.iter().filter_map(|&(name, which, from, percent)| {
        let (_, _, sorted) = match last.take() {
            Some(same) if (same.0, same.1) == (which, from) => last.insert(same),
            _ => last.insert((which, from, run.sorted(which, from))),
        };
        let value = if percent == 0.0 {
            sorted.mean()
        } else {
            sorted.percentile(percent)
        };
        Some((name.to_owned(), value?))
    });
    figures.collect()
}

/// The median over rounds of each round's slowest malloc.
fn typical(worst: &[f64]) -> f64 {
    Summary::of(worst).map_or(0.0, |worst| worst.median)
}

/// Runs everything at its smallest under one allocator: an error if an answer is wrong or a run
/// fails; programs that are missing are left out. The figures mean nothing.
pub fn check(under: &Allocator) -> Result<(), String> {
    let request = Request {
        size: Size::Small,
        repeats: 1,
        groups: Group::ALL.to_vec(),
    };
    let mut allocators = vec![Allocator::system()];
    if under.library.is_some() {
        allocators.push(under.clone());
    }
    let found = measure(&request, &allocators, &mut |_| {})?;
    let failed = found.table.rows.iter().find_map(|row| {
        row.cells.iter().find_map(|cell| match cell {
            Cell::Failed(error) => Some(format!("{}: {error}", row.name)),
            Cell::Values(_) | Cell::Nothing => None,
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
