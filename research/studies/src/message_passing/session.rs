//! A whole study: every cell in turns.
//!
//! The runs of a round go round its cases, beginning with another one each time, so that what slows the
//! machine down for a while slows all of them. A round is kept when all its runs are there.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hearth_machine::capture::Capture;
use hearth_machine::profile::Profile;
use hearth_machine::topology::Thread;
use hearth_sys::{System, affinity};

use super::costs::Costs;
use super::distances;
use super::engine::config::LINE_BYTES;
use super::engine::{Pages, run as run_once};
use super::options::{Experiment, Options, defects_of};
use super::plan::{Case, DISPLACEMENT_THREADS, Fit, Round, rounds};
use super::results::{Cell, Folder, Results};
use crate::StudyError;
use crate::cache_impact::site::Files;
use crate::ending::{End, Outcome};
use crate::progress::{Progress, Watched};
use crate::surroundings::{self, machine};

/// If neither a measurement nor the system says how large the first cache is: as large as many are.
const CACHE_LINES: usize = 512;

/// Runs the study and keeps everything in `folder`. The profile says how large caches are and what transfers cost;
/// without one the system's word is taken for the sizes, and nothing is predicted.
///
/// `progress` is told before each run. When `cancel` becomes true the study ends after the run under way; with
/// `resume` it goes on with the round that it was in. The calling thread is kept to the cores that are used.
///
/// # Errors
/// Options that make no sense, a folder that is in use, a machine that does not say what it is.
pub fn run(
    system: &dyn System,
    profile: Option<&Profile>,
    options: &Options,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results, Outcome), StudyError> {
    options.check()?;
    let cores = surroundings::cores(system)?;
    let (first, second) = caches(system, profile)?;
    let mut empty = Results::new(machine(system)?, cores.clone(), first, options.clone());
    empty.second_cache_lines = second;
    empty.costs = profile.and_then(Costs::of);
    if let Some(cost) = profile.and_then(|known| known.system.futex_wake_other_core_ns.as_ref()) {
        hearth_sync::set_wake_cost(Duration::from_nanos(cost.value.max(0.0) as u64));
    }
    let (folder, mut results) = Folder::open(folder, empty, resume)?;
    conditions(system, &mut results);
    // Threads that are started inherit it.
    affinity::allow_current(&cores).map_err(unknown)?;
    let mut session = Session {
        options,
        folder: &folder,
        watched: Watched::new(cancel, progress),
    };
    folder.fill(system, results, |results| {
        let ended = session.all(results);
        note_pages(results);
        ended
    })
}

fn unknown(error: impl ToString) -> StudyError {
    StudyError::Machine {
        why: error.to_string(),
    }
}

/// Lines of the first two data caches: as measured, or as the system has it.
fn caches(
    system: &dyn System,
    profile: Option<&Profile>,
) -> Result<(usize, Option<usize>), StudyError> {
    let lines = |bytes: f64| (bytes / LINE_BYTES as f64).round() as usize;
    let measured = profile.map(|profile| profile.caches.as_slice());
    let measured = measured.unwrap_or_default().iter();
    let mut sizes: Vec<usize> = measured
        // A measured size within a tenth of the claimed one is the claimed one.
        .filter_map(|cache| {
            let found = cache.capacity_bytes()?;
            let claimed = cache.claimed_bytes.map(|bytes| bytes as f64);
            let is_near = |claimed: &f64| (found / claimed - 1.0).abs() < 0.1;
            Some(lines(claimed.filter(is_near).unwrap_or(found)))
        })
        .collect();
    if sizes.is_empty() {
        let capture = Capture::gather(&mut Files(system));
        let reading = capture.read().map_err(unknown)?;
        let caches = reading.topology.data_caches(Thread(0));
        sizes = caches.map(|cache| lines(cache.size.0 as f64)).collect();
    }
    let first = sizes.first().copied().filter(|lines| *lines >= 16);
    Ok((first.unwrap_or(CACHE_LINES), sizes.get(1).copied()))
}

fn conditions(system: &dyn System, results: &mut Results) {
    let notes = surroundings::notes(
        system,
        &results.about.machine,
        results.options.quick,
        results.about.is_debug_build,
    );
    for note in notes {
        results.about.note(note);
    }
    let used = results.cores.len();
    if used < DISPLACEMENT_THREADS {
        results.about.note(format!(
            "{used} core{}, where the source had 24 and put ten threads or more on as many: what takes more \
             threads than cores is not run unless asked for",
            if used == 1 { "" } else { "s" }
        ));
    }
    if results.costs.is_none() {
        results.about.note(
            "caches and transfers were not measured, so that nothing is predicted; `hearth probe` measures them",
        );
    }
    if let Some(more) = results.options.threads.iter().find(|n| **n > used) {
        results.about.note(format!(
            "{more} threads were asked for on {used} cores: there threads share cores, which the source's did not"
        ));
    }
    let on = defects_of(results.options.defects);
    if !on.is_empty() {
        results
            .about
            .note(format!("with defects of the listing: {}", on.join(", ")));
    }
    results.about.note(
        "the source ran inside a kernel of its own; here threads are pinned and look for their answers before \
         they sleep, and interrupts and the system's scheduler remain",
    );
}

fn note_pages(results: &mut Results) {
    let is_small = |cell: &Cell| cell.pages.is_some_and(|pages| pages != Pages::Huge);
    let small = results.cells.iter().filter(|cell| is_small(cell)).count();
    if small > 0 {
        results.about.note(format!(
            "in {small} of {} cells the system did not give huge pages for all data, so that misses of the \
             address cache are in the figures",
            results.cells.len()
        ));
    }
}

struct Session<'a> {
    options: &'a Options,
    folder: &'a Folder,
    watched: Watched<'a>,
}

impl Session<'_> {
    fn all(&mut self, results: &mut Results) -> Result<(), End> {
        let (cores, lines) = (results.cores.len(), results.cache_lines);
        let wanted = Experiment::ALL
            .into_iter()
            .filter(|&e| self.options.wants(e));
        let plans: Vec<(Experiment, Vec<Round>)> = wanted
            .map(|e| (e, rounds(e, self.options, cores, lines)))
            .collect();
        let all = plans.iter().flat_map(|(_, rounds)| rounds);
        let runs = all.map(|round| round.repeats * round.cases.len() as u32);
        self.watched.plan(runs.sum());
        for (experiment, rounds) in plans {
            if experiment == Experiment::Distances {
                trace(results)?;
                self.folder.save(results)?;
            }
            for round in rounds {
                self.round(results, round)?;
                self.folder.save(results)?;
            }
        }
        Ok(())
    }

    /// All runs of each case of a round that was not run already.
    fn round(&mut self, results: &mut Results, round: Round) -> Result<(), End> {
        let planned = round.cases.len();
        let mut left: Vec<Case> = Vec::new();
        for case in round.cases {
            let is_known = results.cells.iter().any(|cell| cell.case == case);
            if !is_known && !left.contains(&case) {
                left.push(case);
            }
        }
        self.watched
            .skip(round.repeats * (planned - left.len()) as u32);
        let mut cells: Vec<Cell> = left.into_iter().map(Cell::new).collect();
        for run in 0..round.repeats {
            for turn in 0..cells.len() {
                let at = (turn + run as usize) % cells.len();
                let case = &cells[at].case;
                self.watched
                    .tell(|| format!("{}, {}", words(case), case.x))?;
                let cell = &mut cells[at];
                if cell.failed.is_some() {
                    continue;
                }
                match run_once(&cell.case.config, run) {
                    Ok(measured) => cell.push(measured),
                    Err(error) => cell.failed = Some(error.to_string()),
                }
            }
        }
        for cell in cells {
            if let Some(why) = &cell.failed {
                results.about.note(format!("{}: {why}", words(&cell.case)));
            }
            results.cells.push(cell);
        }
        Ok(())
    }
}

/// With so many threads as the source's first named curve has: more say the same of more.
fn trace(results: &mut Results) -> Result<(), StudyError> {
    let mut levels = vec![results.cache_lines];
    levels.extend(results.second_cache_lines);
    let sizes = results.sizes(Fit::Machine);
    results.traced = distances::traced(sizes, &levels, 2, results.options.seed)?;
    Ok(())
}

/// A case for people, but for what is on the horizontal axis.
fn words(case: &Case) -> String {
    let (id, config) = (case.experiment.id(), &case.config);
    format!("{id} {}, {} threads", config.mode, config.threads)
}
