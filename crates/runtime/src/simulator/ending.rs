//! Begins and ends a simulation: chooses its schedule, and writes the results when it is over.

use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::checks::Fault;
use super::schedule::{self, Schedule};
use super::{STATE, Stage, state};
use crate::ground::options::{self, Simulation};
use crate::ground::{exits, output};
use crate::hooks::simulation::is_on;

/// The program's name, for the line that tells how to replay the run.
static PROGRAM: OnceLock<String> = OnceLock::new();
/// The step limit ended the run.
static IS_CUT_SHORT: AtomicBool = AtomicBool::new(false);

pub(super) fn remember_name(name: String) {
    let _ = PROGRAM.set(name);
}

/// The origin of the run, as the schedule's file records it, if there is one.
static ORIGIN: OnceLock<Origin> = OnceLock::new();

struct Origin {
    seed: u64,
    workers: usize,
}

/// Returns the requested schedule.
pub(super) fn schedule_of(simulation: &Simulation) -> Schedule {
    let Some(path) = &simulation.schedule else {
        return Schedule::by_seed(simulation.seed);
    };
    let written = read(Path::new(path)).unwrap_or_else(|reason| refuse(path, &reason));
    let _ = ORIGIN.set(Origin {
        seed: written.seed,
        workers: written.workers,
    });
    Schedule::given(written.deviations)
}

/// Returns the seed of the simulation, or of the run that its schedule comes from.
pub(super) fn seed() -> u64 {
    let given = options::get().simulation.as_ref();
    let origin = ORIGIN.get().map(|origin| origin.seed);
    origin.or(given.map(|given| given.seed)).unwrap_or(0)
}

/// Returns the number of workers that the schedule was made for, if one is followed.
pub(super) fn workers() -> Option<usize> {
    ORIGIN.get().map(|origin| origin.workers.max(1))
}

fn read(path: &Path) -> Result<schedule::Written, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("could not read it ({error})"))?;
    schedule::read(&text)
}

fn refuse(path: &str, reason: &str) -> ! {
    output::complain(&format!("HEARTH_SCHEDULE={path}: {reason}"));
    exits::end(exits::USAGE)
}

/// Records a failure, in a few words that identify it. The first counts.
pub(super) fn note_failure(kind: impl FnOnce() -> String) {
    if is_on() {
        let kind = kind();
        state().failure.get_or_insert(kind);
    }
}

/// Reports that the runtime has broken a promise, and ends the process.
pub(super) fn tell_fault(fault: Fault) -> ! {
    note_failure(|| fault.kind.to_owned());
    output::complain(&format!(
        "{}: {}\nhearth: this is a bug in hearth, not in the program; please report it with this \
         message, the program and the schedule",
        fault.kind, fault.story
    ));
    exits::end(exits::BUG)
}

/// Ends the process: the requested number of steps is done.
pub(super) fn out_of_steps() -> ! {
    IS_CUT_SHORT.store(true, Ordering::Relaxed);
    output::flush();
    if options::get()
        .simulation
        .as_ref()
        .is_some_and(|one| one.record.is_none())
    {
        output::complain("the simulation has done the steps that it was given, and ends here");
    }
    exits::end(exits::DONE)
}

/// Reports a failure at the process's end, with the way to replay it, and writes the record.
pub(super) fn at_exit(code: i32) {
    if !is_on() {
        return;
    }
    let Some(simulation) = &options::get().simulation else {
        return;
    };
    match &simulation.record {
        Some(path) => record(path, code),
        None if [exits::FAILED, exits::BUG].contains(&code) => tell_how_to_repeat(simulation),
        None => {}
    }
}

fn tell_how_to_repeat(simulation: &Simulation) {
    let name = PROGRAM.get().map_or("PROGRAM", String::as_str);
    let (what, again) = match &simulation.schedule {
        Some(path) => (format!("the schedule {path}"), path.clone()),
        None => (
            format!("seed {}", simulation.seed),
            simulation.seed.to_string(),
        ),
    };
    output::complain(&format!(
        "this was a simulation with {what}; to repeat it: hearth run --simulate {again} {name}"
    ));
}

/// Writes the followed schedule, its ending, and the trace.
fn record(path: &str, code: i32) {
    // If the thread that ends the process holds the state, there is nothing to report.
    let Ok(guard) = STATE.try_lock() else { return };
    let Some(state) = &*guard else { return };
    let end = match &state.failure {
        Some(failure) => failure.clone(),
        None if IS_CUT_SHORT.load(Ordering::Relaxed) => "cut short".to_owned(),
        None if code == exits::DONE => "done".to_owned(),
        None => format!("exit code {code}"),
    };
    let mut text = schedule::write(seed(), Stage::count(), &state.schedule.deviations);
    let _ = write!(
        text,
        "\nend {end}\nsteps {}\ndecisions {}\n\n{}",
        state.steps,
        state.schedule.count,
        state.trace.text()
    );
    if let Err(error) = std::fs::write(path, text) {
        output::complain(&format!("could not write {path} ({error})"));
    }
}
