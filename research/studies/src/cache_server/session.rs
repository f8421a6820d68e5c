//! A whole study: every server under every load, in turns.
//!
//! The servers of a round run at the same time, and one of them is asked at a time; their runs take turns,
//! beginning with another one each time, so that what slows the machine down for a while slows all of them. A
//! round is kept when all its runs are there.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cachet_load::memcaslap;
use cachet_load::server::Program;
use hearth_sys::System;
use hearth_sys::clock::Clock;

use super::kinds::{KINDS, Kind, MEMCACHED};
use super::measure::{Bench, Setup};
use super::options::{Experiment, Options};
use super::plan::{Case, MEMCASLAP, Round, rounds};
use super::results::{Cell, Folder, Results};
use crate::StudyError;
use crate::ending::{End, Outcome};
use crate::progress::{Progress, Watched};
use crate::surroundings::{self, machine};

/// The program that servers of ours are.
const CACHET: &str = "cachet";

/// Runs the study and keeps everything in `folder`.
///
/// `progress` is told before each run. When `cancel` becomes true the run under way is the last; with `resume` the
/// study goes on with the round that it was in.
///
/// # Errors
/// Options that make no sense, a folder that is in use, a machine that does not say what it is, no server.
pub fn run(
    system: &dyn System,
    options: &Options,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results, Outcome), StudyError> {
    options.check()?;
    let there = There::look(options.cachet.as_deref())?;
    let cores = system.allowed().map_err(unknown)?;
    let empty = Results::new(machine(system)?, cores.clone(), options.clone());
    let (folder, mut results) = Folder::open(folder, empty, resume)?;
    conditions(system, &mut results, &there);
    let mut session = Session {
        options,
        folder: &folder,
        cores,
        there: &there,
        watched: Watched::new(cancel, progress),
    };
    folder.fill(system, results, |results| session.all(results))
}

fn unknown(error: impl ToString) -> StudyError {
    StudyError::Machine {
        why: error.to_string(),
    }
}

/// The programs that are there.
struct There {
    cachet: Option<(PathBuf, String)>,
    memcached: Option<String>,
    memcaslap: Option<&'static str>,
}

impl There {
    fn look(given: Option<&Path>) -> Result<There, StudyError> {
        let version = |path: &Path| Program::new(CACHET, path).version();
        let cachet = match given {
            Some(path) => {
                let version = version(path).ok_or_else(|| StudyError::Program {
                    program: path.to_owned(),
                    error: std::io::ErrorKind::NotFound.into(),
                })?;
                Some((path.to_owned(), version))
            }
            None => beside()
                .into_iter()
                .chain([PathBuf::from(CACHET)])
                .find_map(|path| version(&path).map(|version| (path, version))),
        };
        let memcached = Program::new(MEMCACHED, Path::new(MEMCACHED)).version();
        if cachet.is_none() && memcached.is_none() {
            return Err(StudyError::NotThere {
                what: "server",
                given: CACHET.to_owned(),
                known: vec![
                    "cachet (cargo build --release -p cachet, or --cachet FILE)".to_owned(),
                    "memcached".to_owned(),
                ],
            });
        }
        Ok(There {
            cachet,
            memcached,
            memcaslap: memcaslap::found(),
        })
    }

    fn has(&self, case: &Case) -> bool {
        let has_server = match Kind::named(&case.kind).is_some_and(Kind::is_memcached) {
            true => self.memcached.is_some(),
            false => self.cachet.is_some(),
        };
        has_server && (case.load != MEMCASLAP || self.memcaslap.is_some())
    }
}

/// Where Cargo and packages put it.
fn beside() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let found = this.parent()?.join(CACHET);
    found.is_file().then_some(found)
}

fn conditions(system: &dyn System, results: &mut Results, there: &There) {
    results.ns_per_tick = Clock::calibrate(system, 20).ns_per_tick();
    let notes = surroundings::notes(
        system,
        &results.about.machine,
        results.options.quick,
        results.about.is_debug_build,
    );
    notes.into_iter().for_each(|note| results.about.note(note));
    let cores = results.cores.len();
    results.about.note(format!(
        "{cores} core{}, where the source had 64: servers and generators share them all, so that rates are \
         those of both together; the server's time for a request is its own",
        if cores == 1 { "" } else { "s" }
    ));
    let mut version = |name: &str, version: Option<&str>, without: &str| match version {
        Some(version) => {
            let version = version.to_owned();
            results.versions.insert(name.to_owned(), version);
        }
        None => results.about.note(without),
    };
    version(
        MEMCACHED,
        there.memcached.as_deref(),
        "there is no memcached: left out; install it, for example: apt-get install memcached",
    );
    version(
        CACHET,
        there.cachet.as_ref().map(|(_, version)| version.as_str()),
        "there is no cachet: left out; build it, cargo build --release -p cachet, or give --cachet FILE",
    );
    version(
        MEMCASLAP,
        there.memcaslap,
        "there is no memcaslap: left out; install it, for example: apt-get install libmemcached-tools",
    );
}

struct Session<'a> {
    options: &'a Options,
    folder: &'a Folder,
    cores: Vec<usize>,
    there: &'a There,
    watched: Watched<'a>,
}

impl Session<'_> {
    fn all(&mut self, results: &mut Results) -> Result<(), End> {
        let wanted = Experiment::ALL
            .into_iter()
            .filter(|&e| self.options.wants(e));
        let mut plan: Vec<Round> = wanted
            .flat_map(|e| rounds(e, self.options, self.cores.len()))
            .collect();
        for round in &mut plan {
            round.cases.retain(|case| self.there.has(case));
        }
        let runs = plan.iter();
        let runs = runs.map(|round| round.repeats * round.cases.len() as u32);
        self.watched.plan(runs.sum());
        for round in plan {
            self.round(results, round)?;
            self.folder.save(results)?;
        }
        Ok(())
    }

    /// All runs of a round, but of cases that were run already.
    fn round(&mut self, results: &mut Results, round: Round) -> Result<(), End> {
        let planned = round.cases.len();
        let left: Vec<Case> = round
            .cases
            .iter()
            .filter(|case| results.cell(case).is_none())
            .cloned()
            .collect();
        self.watched
            .skip(round.repeats * (planned - left.len()) as u32);
        let mut cells = Vec::new();
        for case in left {
            self.watched.go_on()?;
            let bench = self.bench(&case, &round, results.ns_per_tick);
            cells.push((Cell::new(case), bench));
        }
        for run in 0..round.repeats as usize {
            for turn in 0..cells.len() {
                let count = cells.len();
                let (cell, bench) = &mut cells[(turn + run) % count];
                self.watched.tell(|| words(&cell.case))?;
                one(cell, bench);
            }
        }
        self.watched.go_on()?;
        for (cell, _) in cells {
            if let Some(why) = &cell.failed {
                results.about.note(format!("{}: {why}", words(&cell.case)));
            }
            results.cells.push(cell);
        }
        Ok(())
    }

    fn bench(&self, case: &Case, round: &Round, ns_per_tick: f64) -> Result<Bench, String> {
        let cachet = self.there.cachet.as_ref().map(|(path, _)| path.as_path());
        let setup = Setup {
            cachet: cachet.unwrap_or(Path::new(CACHET)),
            cores: &self.cores,
            memory_mib: round.memory_mib,
            keys: round.keys,
            run: Duration::from_millis(self.options.run_ms(case.experiment)),
            ns_per_tick,
        };
        Bench::new(case, &setup)
    }
}

/// One run; nothing if an earlier one failed.
fn one(cell: &mut Cell, bench: &Result<Bench, String>) {
    if cell.failed.is_some() {
        return;
    }
    match bench.as_ref().map_err(Clone::clone).and_then(Bench::run) {
        Ok(figures) => figures
            .into_iter()
            .for_each(|(figure, value)| cell.push(figure, value)),
        Err(why) => cell.failed = Some(why),
    }
}

/// A case for people.
#[must_use]
pub fn words(case: &Case) -> String {
    let title = KINDS.iter().find(|kind| kind.id == case.kind);
    format!(
        "{} {} % reads, {} thread{}{}, {}: {}",
        case.experiment.id(),
        case.reads,
        case.threads,
        if case.threads == 1 { "" } else { "s" },
        if case.is_bound { " bound" } else { "" },
        case.load,
        title.map_or("", |kind| kind.id)
    )
}
