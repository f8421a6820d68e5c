//! A whole study: every load in every way, in turns.
//!
//! The runs of a load go round its cases, beginning with another one each time, so that what slows the
//! machine down for a while slows all of them. A load is kept when all its runs are there.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use hearth_sys::{System, affinity};

use super::build::Workshop;
use super::launch::{self, Ended, Launch};
use super::layouts::CORES;
use super::misses;
use super::options::{Experiment, Options};
use super::placements::{How, PLACEMENTS, Placement};
use super::plan::{C, Case, Round, rounds};
use super::results::{Cell, Folder, Results};
use super::ways::Way;
use super::workloads::Load;
use crate::StudyError;
use crate::ending::{End, Outcome};
use crate::kept;
use crate::progress::{Progress, Watched};
use crate::surroundings::{self, machine};

/// Runs the study with this `hearth` and keeps everything in `folder`.
///
/// `progress` is told before each run. When `cancel` becomes true the run under way is ended; with
/// `resume` the study goes on with the load that it was in. The calling thread is kept to the cores that
/// are used.
///
/// # Errors
/// Options that make no sense, a folder that is in use, a machine that does not say what it is, programs
/// that cannot be built.
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
    let cores = cores(system)?;
    let empty = Results::new(machine(system)?, cores.clone(), options.clone());
    let (folder, mut results) = Folder::open(folder, empty, resume)?;
    conditions(system, &mut results);
    // What is started inherits it.
    affinity::allow_current(&cores).map_err(unknown)?;
    let workshop = Workshop::new(&folder.path().join("programs"), hearth)?;
    let mut session = Session {
        options,
        folder: &folder,
        cores,
        workshop,
        watched: Watched::new(cancel, progress),
    };
    folder.fill(system, results, |results| session.all(results))
}

fn unknown(error: impl ToString) -> StudyError {
    StudyError::Machine {
        why: error.to_string(),
    }
}

/// The cores that are used: one hardware thread of each core, as many as the source's machine had.
fn cores(system: &dyn System) -> Result<Vec<usize>, StudyError> {
    let mut cores = surroundings::cores(system)?;
    cores.truncate(CORES);
    Ok(cores)
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
    if used < CORES {
        results.about.note(format!(
            "{used} core{}, where the source had four: what it put on single cores shares them here, and \
             nothing can be more than {used} times as fast as on one",
            if used == 1 { "" } else { "s" }
        ));
    } else if results.about.machine.threads > used {
        results.about.note(format!(
            "of {} hardware threads four are used, as the source had: {:?}",
            results.about.machine.threads, results.cores
        ));
    }
}

struct Session<'a> {
    options: &'a Options,
    folder: &'a Folder,
    cores: Vec<usize>,
    workshop: Workshop,
    watched: Watched<'a>,
}

impl Session<'_> {
    fn all(&mut self, results: &mut Results) -> Result<(), End> {
        let wanted = Experiment::ALL
            .into_iter()
            .filter(|&e| self.options.wants(e));
        let mut plans: Vec<(Experiment, Vec<Round>)> =
            wanted.map(|e| (e, rounds(e, self.options))).collect();
        let there = self.placements(results)?;
        for (_, rounds) in &mut plans {
            for round in rounds {
                round
                    .cases
                    .retain(|case| there.contains(&case.placement.as_str()));
            }
        }
        let all = plans.iter().flat_map(|(_, rounds)| rounds);
        let runs = all.map(|round| round.repeats * round.cases.len() as u32);
        self.watched.plan(runs.sum());
        let valgrind = misses::valgrind();
        for (experiment, rounds) in plans {
            if experiment == Experiment::Misses && valgrind.is_none() {
                results.about.note(
                    "cache misses are not counted, as there is no valgrind; install it, for example: apt-get \
                     install valgrind",
                );
                continue;
            }
            for round in rounds {
                self.round(results, experiment, round, valgrind.as_deref())?;
                self.folder.save(results)?;
            }
        }
        Ok(())
    }

    /// The placements that this Hearth has.
    fn placements(&mut self, results: &mut Results) -> Result<Vec<&'static str>, End> {
        let mut there = Vec::new();
        for placement in &PLACEMENTS {
            let is_there = match placement.how {
                How::Plan(name) => self.has(name)?,
                How::Policy(_) | How::Hand(_) => true,
            };
            if is_there {
                there.push(placement.id);
            } else {
                results.about.note(format!(
                    "this Hearth has no --place {}: left out",
                    placement.id
                ));
            }
        }
        Ok(there)
    }

    fn has(&mut self, place: &str) -> Result<bool, End> {
        let text = self.workshop.folder().join("empty.isf");
        fs::write(&text, "printString(\"\\n\")\n")
            .map_err(|error| kept::file("write", &text, error))?;
        let mut command = Command::new(self.workshop.hearth());
        command.args(["run", "--place", place]).arg(&text);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(command.status().is_ok_and(|status| status.success()))
    }

    /// All runs of a load in each case that it was not run in already.
    fn round(
        &mut self,
        results: &mut Results,
        experiment: Experiment,
        round: Round,
        valgrind: Option<&Path>,
    ) -> Result<(), End> {
        let Round {
            load,
            cases,
            repeats,
        } = round;
        let named = (experiment, load.id(), load.words());
        if !results.loads.contains(&named) {
            results.loads.push(named);
        }
        let planned = cases.len();
        let is_known = |case: &Case| results.cells.iter().any(|cell| cell.case == *case);
        let left: Vec<Case> = cases.into_iter().filter(|case| !is_known(case)).collect();
        self.watched.skip(repeats * (planned - left.len()) as u32);
        let mut cells: Vec<Cell> = left.into_iter().map(Cell::new).collect();
        for run in 0..repeats as usize {
            for turn in 0..cells.len() {
                let at = (turn + run) % cells.len();
                self.watched.tell(|| words(&cells[at].case))?;
                if cells[at].failed.is_none() {
                    self.one(&mut cells[at], &load, run as u64, valgrind)?;
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

    /// One run.
    fn one(
        &mut self,
        cell: &mut Cell,
        load: &Load,
        run: u64,
        valgrind: Option<&Path>,
    ) -> Result<(), End> {
        let mut launch = self.launch(&cell.case, load, run)?;
        match cell.case.experiment {
            Experiment::Memory => match launch::memory(&launch, self.watched.cancel)? {
                Ended::Well(memory) => {
                    cell.push("peak_kb", memory.peak_kb);
                    cell.push("growth_kb", memory.growth_kb);
                }
                Ended::Failed(why) => cell.failed = Some(why),
                Ended::Cancelled => return Err(End::Cancelled),
            },
            Experiment::Misses => {
                let out = self.workshop.folder().join("cachegrind.out");
                let before = misses::arguments(&out, &launch.program);
                launch
                    .arguments
                    .splice(0..0, before.into_iter().map(OsString::from));
                launch.program = valgrind.map_or(PathBuf::from("valgrind"), Path::to_owned);
                match launch::time(&launch, self.watched.cancel)? {
                    Ended::Well(_) => {
                        let text = fs::read_to_string(&out).unwrap_or_default();
                        match misses::figures(&text) {
                            Some(figures) => figures
                                .into_iter()
                                .for_each(|(name, count)| cell.push(name, count)),
                            None => cell.failed = Some("Cachegrind wrote no counts".into()),
                        }
                    }
                    Ended::Failed(why) => cell.failed = Some(why),
                    Ended::Cancelled => return Err(End::Cancelled),
                }
            }
            _ => match launch::time(&launch, self.watched.cancel)? {
                Ended::Well(ran) => {
                    cell.push("real", ran.real);
                    cell.push("user", ran.user);
                    cell.push("system", ran.system);
                }
                Ended::Failed(why) => cell.failed = Some(why),
                Ended::Cancelled => return Err(End::Cancelled),
            },
        }
        Ok(())
    }

    /// How a case is started.
    fn launch(&mut self, case: &Case, load: &Load, run: u64) -> Result<Launch, End> {
        let absent = |what, given: &str| StudyError::NotThere {
            what,
            given: given.to_owned(),
            known: Vec::new(),
        };
        let placement = Placement::named(&case.placement)
            .ok_or_else(|| absent("placement", &case.placement))?;
        let way = Way::named(&case.heaps).ok_or_else(|| absent("heap", &case.heaps))?;
        let mut launch = Launch {
            prints: load.prints(),
            ..Launch::default()
        };
        if case.carrier == C {
            launch.program = self.workshop.c(load.workload, load.rows)?;
            let places = self.places_in_c(placement, load);
            launch.arguments = load
                .arguments(places.as_deref())
                .into_iter()
                .map(OsString::from)
                .collect();
        } else {
            let (text, program) = self.workshop.insense(load, placement.hand(), &self.cores)?;
            launch.program = program;
            let seed = (self.options.seed + run).to_string();
            launch.environment = vec![
                ("HEARTH_CARRIER", case.carrier.clone().into()),
                ("HEARTH_HEAPS", way.heaps.into()),
                ("HEARTH_SEED", seed.into()),
            ];
            match placement.how {
                How::Policy(name) => launch.environment.push(("HEARTH_PLACE", name.into())),
                How::Hand(_) => launch.environment.push(("HEARTH_PLACE", "os".into())),
                How::Plan(name) => {
                    launch.program = self.workshop.hearth().to_owned();
                    let words = [
                        "run",
                        "--place",
                        name,
                        "--carrier",
                        &case.carrier,
                        "--heaps",
                        way.heaps,
                    ];
                    launch.arguments = words.map(OsString::from).to_vec();
                    launch.arguments.push(text.into());
                }
            }
        }
        if let Some((of, flags)) = way.preload {
            let object = self.workshop.preload(of, flags)?;
            launch.environment.push(("LD_PRELOAD", object.into()));
        }
        if let Some(tunables) = way.tunables {
            launch.environment.push(("GLIBC_TUNABLES", tunables.into()));
        }
        Ok(launch)
    }

    /// The cores of a C program's threads; none if they are the system's to choose.
    fn places_in_c(&self, placement: &Placement, load: &Load) -> Option<Vec<usize>> {
        let parts = load.parts().len();
        match (placement.hand(), placement.id) {
            (Some(hand), _) => Some(hand.cores(load, &self.cores)),
            (None, "spread") => Some(
                (0..parts)
                    .map(|k| self.cores[k % self.cores.len()])
                    .collect(),
            ),
            (None, "single") => Some(vec![self.cores[0]; parts]),
            _ => None,
        }
    }
}

/// A case for people.
fn words(case: &Case) -> String {
    let Case {
        load,
        carrier,
        heaps,
        placement,
        ..
    } = case;
    format!("{load} {carrier} {heaps} {placement}")
}
