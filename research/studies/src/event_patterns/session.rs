//! A whole study: every cell, in turns.
//!
//! The runs of an experiment go round its cells, beginning with another one each time, so that what slows the
//! machine down for a while slows all of them. Each run is kept when it is there.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hearth_sys::System;

use super::figures::Figures;
use super::launch::{self, Cores, Ended};
use super::options::{Experiment, Options};
use super::plan::{APART, Case, cases};
use super::results::{Cell, Folder, Results};
use crate::StudyError;
use crate::ending::{End, Outcome};
use crate::progress::{Progress, Watched};
use crate::surroundings::{self, machine};

/// A run in which others kept more of the cores busy is made again, as few cores leave no room for others.
const DISTURBED: f64 = 0.1;
/// So often at most; then the least disturbed counts.
const TRIES: u32 = 3;
/// How often what is measured is written down.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// Runs the study with this `hearth`, whose tool is the server, and keeps everything in `folder`.
///
/// `progress` is told before each run. When `cancel` becomes true the run under way is ended; with `resume` the
/// study goes on with that run. The calling thread is kept to the cores of the clients.
///
/// # Errors
/// Options that make no sense, a folder that is in use, a machine that does not say what it is.
pub fn run(
    system: &dyn System,
    hearth: &Path,
    options: &Options,
    folder: &Path,
    resume: bool,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Results, Outcome), StudyError> {
    options.check()?;
    let cores = surroundings::cores(system)?;
    let empty = Results::new(machine(system)?, &cores, options.clone());
    let (folder, mut results) = Folder::open(folder, empty, resume)?;
    note_conditions(system, &mut results);
    let mut session = Session {
        hearth,
        options,
        folder: &folder,
        watched: Watched::new(cancel, progress),
        saved: Instant::now(),
    };
    folder.fill(system, results, |results| {
        let ended = session.all(results);
        note_disturbed(results);
        ended
    })
}

fn note_conditions(system: &dyn System, results: &mut Results) {
    // Of an earlier part, if this goes on with it; what disturbed runs is in their figures.
    results
        .about
        .notes
        .retain(|note| !OF_A_PART.iter().any(|begin| note.starts_with(begin)));
    let (quick, debug) = (results.options.quick, results.about.is_debug_build);
    for note in surroundings::notes(system, &results.about.machine, quick, debug) {
        results.about.note(note);
    }
    let (server, clients) = (results.server_cores.len(), results.client_cores.len());
    let s = |count| if count == 1 { "" } else { "s" };
    if results.server_cores == results.client_cores {
        results.about.note(
            "one core: server and clients share it, and nothing is told of threads side by side",
        );
    } else if server < 16 {
        results.about.note(format!(
            "{server} core{} for the server and {clients} for the clients, where the source had 16 each: more \
             than {server} thread{} share cores, and what threads do to each other side by side is not seen",
            s(server),
            s(server)
        ));
    }
}

fn note_disturbed(results: &mut Results) {
    let runs = results
        .cells
        .iter()
        .flat_map(|cell| cell.runs("others_cores"));
    let (all, disturbed) = runs.fold((0, 0), |(all, disturbed), others| {
        (all + 1, disturbed + usize::from(*others >= DISTURBED))
    });
    results.about.notes.retain(|note| !note.ends_with(AMID));
    if disturbed > 0 {
        results.about.note(format!("{disturbed} of {all} {AMID}"));
    }
}

/// Begins of notes that are of the part in which they were made.
const OF_A_PART: [&str; 2] = ["the machine was not idle", "the hypervisor took"];
/// The end of a note that changes as a study goes on.
const AMID: &str = "runs were made while others kept more than a tenth of a core busy, each time that they were tried";

struct Session<'a> {
    hearth: &'a Path,
    options: &'a Options,
    folder: &'a Folder,
    watched: Watched<'a>,
    saved: Instant,
}

impl Session<'_> {
    fn all(&mut self, results: &mut Results) -> Result<(), End> {
        let wanted: Vec<(Experiment, Vec<Case>)> = Experiment::ALL
            .into_iter()
            .filter(|&e| self.options.wants(e))
            .map(|e| (e, cases(e, self.options)))
            .collect();
        let repeats = self.options.repeats() as usize;
        let runs = repeats * wanted.iter().map(|(_, cases)| cases.len()).sum::<usize>();
        self.watched.plan(runs as u32);
        for (_, cases) in wanted {
            let places = places(results, cases);
            for run in 0..repeats {
                for turn in 0..places.len() {
                    let place = places[(turn + run) % places.len()];
                    self.one(results, place, run)?;
                }
            }
            self.folder.save(results)?;
        }
        Ok(())
    }

    /// A run of a cell, if it is not there yet.
    fn one(&mut self, results: &mut Results, place: usize, run: usize) -> Result<(), End> {
        let cell = &results.cells[place];
        if cell.count() > run || cell.failed.is_some() {
            self.watched.skip(1);
            return Ok(());
        }
        let case = cell.case.clone();
        self.watched.tell(|| case.words())?;
        let cores = cores_of(results, &case.layout);
        match self.undisturbed(&case, &cores)? {
            Ended::Well(figures) => figures
                .into_iter()
                .for_each(|(figure, value)| results.cells[place].push(&figure, value)),
            Ended::Failed(why) => {
                results.about.note(format!("{}: {why}", case.words()));
                results.cells[place].failed = Some(why);
            }
            Ended::Cancelled => return Err(End::Cancelled),
        }
        if self.saved.elapsed() > SAVE_EVERY {
            self.saved = Instant::now();
            self.folder.save(results)?;
        }
        Ok(())
    }
}

impl Session<'_> {
    /// The least disturbed of a few runs: the first in which others left the cores alone.
    fn undisturbed(&self, case: &Case, cores: &Cores) -> Result<Ended, StudyError> {
        let others = |figures: &Figures| figures.get("others_cores").copied().unwrap_or(0.0);
        let mut best: Option<Figures> = None;
        // The system's times are too coarse for the short runs of a quick study.
        let tries = if self.options.quick { 1 } else { TRIES };
        for _ in 0..tries {
            let ended = launch::run(self.hearth, case, cores, self.options, self.watched.cancel)?;
            let Ended::Well(figures) = ended else {
                return Ok(ended);
            };
            if best
                .as_ref()
                .is_none_or(|best| others(&figures) < others(best))
            {
                best = Some(figures);
            }
            if best.as_ref().is_some_and(|best| others(best) < DISTURBED) {
                break;
            }
        }
        Ok(best.map_or(Ended::Cancelled, Ended::Well))
    }
}

/// Where the cases' cells are; they are made if need be.
fn places(results: &mut Results, cases: Vec<Case>) -> Vec<usize> {
    let place = |case: Case| {
        let found = results.cells.iter().position(|cell| cell.case == case);
        found.unwrap_or_else(|| {
            results.cells.push(Cell::new(case));
            results.cells.len() - 1
        })
    };
    cases.into_iter().map(place).collect()
}

fn cores_of(results: &Results, layout: &str) -> Cores {
    let (server, clients) = (&results.server_cores, &results.client_cores);
    if layout == APART {
        return Cores {
            server: server.clone(),
            clients: clients.clone(),
        };
    }
    let mut all: Vec<usize> = server.iter().chain(clients).copied().collect();
    all.sort_unstable();
    all.dedup();
    Cores {
        server: all.clone(),
        clients: all,
    }
}
