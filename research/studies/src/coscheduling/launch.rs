//! One run: programs are started, as gangs or without, and begin at once.
//!
//! | figure | what |
//! |---|---|
//! | `rate` | rounds of all programs a second |
//! | `together` | part of a program's time during which all of its threads ran |
//! | `apart` | part of all programs' time during which only one ran |
//! | `skew_us`, `skew_99_us` | first to last thread of a turn to begin: median, and of 99 % |
//! | `conductor_cores` | CPUs that the gangs' own processes kept busy |
//! | `others_cores` | CPUs that nobody of ours kept busy and somebody did |
//!
//! All but the last two are by the threads' own clocks.

use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_gang::FOLDER_VARIABLE;
use hearth_gang::witness::{Ran, judge};
use hearth_sys::System;
use hearth_sys::clock::{monotonic_ns, process_ns};

use super::instance::{Asked, Record, Spent, Way, arguments};
use super::options::CoschedulingOptions;
use super::plan::Case;
use crate::StudyError;
use crate::program::{OTHERS_MIN, Program, busy};
use crate::study::{Ended, OTHERS};

/// A registry of gangs for one run, which no other gangs share. Removed with this value.
struct Registry(PathBuf);

impl Registry {
    fn new() -> Registry {
        // In memory, as registries are.
        let memory = Path::new("/dev/shm");
        let place = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        Registry(place.join(format!("hearth-study-{}", std::process::id())))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Not there without gangs.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a run of a case with processes of `program`.
///
/// # Errors
/// The program cannot be started.
pub fn run(
    program: &Path,
    system: &dyn System,
    case: &Case,
    options: &CoschedulingOptions,
) -> Result<Ended, StudyError> {
    let registry = Registry::new();
    let asked = Asked {
        way: case.way,
        is_isolated: case.is_isolated,
        work: case.work,
        threads: case.threads,
        milliseconds: options.measure_ms(),
    };
    let mut programs = Vec::new();
    for _ in 0..case.programs {
        let mut command = Command::new(program);
        command
            .args(arguments(&asked))
            .env(FOLDER_VARIABLE, &registry.0);
        let started = Program::start(&mut command);
        programs.push(started.map_err(|error| StudyError::Program {
            program: program.to_owned(),
            error,
        })?);
    }
    Ok(match all(system, case.way, &mut programs) {
        Ok(figures) => Ended::Well(figures),
        Err(why) => Ended::Failed(why),
    })
}

fn all(
    system: &dyn System,
    way: Way,
    programs: &mut [Program],
) -> Result<Vec<(String, f64)>, String> {
    for program in programs.iter_mut() {
        program.wait_until_ready()?;
    }
    let is_ganged = way != Way::Free;
    // What the gangs' processes have used up to now is not of the run.
    let own = |program: &Program| process_ns(program.number()).unwrap_or(0);
    let before: f64 = match is_ganged {
        true => programs
            .iter()
            .map(|program| own(program) as f64 / 1e9)
            .sum(),
        false => 0.0,
    };
    let (begin, busy_before) = (monotonic_ns(), busy(system));
    for program in programs.iter_mut() {
        program.begin()?;
    }
    let mut records = Vec::new();
    for program in programs.iter_mut() {
        let record: Record =
            serde_json::from_str(&program.line()?).map_err(|error| error.to_string())?;
        records.push(record);
    }
    let seconds = 1e-9 * monotonic_ns().saturating_sub(begin) as f64;
    let used = busy(system) - busy_before;
    let mut conductor = -before;
    if is_ganged {
        for program in programs.iter_mut() {
            let spent: Spent =
                serde_json::from_str(&program.line()?).map_err(|error| error.to_string())?;
            conductor += spent.spent_seconds;
        }
    }
    let mut figures = figures(&records);
    let mut put = |name: &str, value: f64| figures.push((name.to_owned(), value));
    if is_ganged {
        put("conductor_cores", conductor.max(0.0) / seconds);
    }
    if seconds >= OTHERS_MIN {
        let own: f64 = records.iter().map(|record| record.cpu_seconds).sum();
        let others = (used - own - conductor.max(0.0)) / seconds;
        put(OTHERS, others.max(0.0));
    }
    Ok(figures)
}

/// The figures of the records of all programs.
#[must_use]
pub fn figures(records: &[Record]) -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    let mut put = |name: &str, value: Option<f64>| {
        figures.extend(value.map(|value| (name.to_owned(), value)));
    };
    let rates = records
        .iter()
        .map(|record| record.rounds as f64 / record.seconds.max(1e-9));
    put("rate", Some(rates.sum()));
    let ran = |pairs: &Vec<(u64, u64)>| -> Vec<Ran> {
        let pairs = pairs.iter();
        pairs.map(|&(begin, end)| Ran { begin, end }).collect()
    };
    let sets: Vec<Vec<Vec<Ran>>> = records
        .iter()
        .map(|record| record.ran.iter().map(ran).collect())
        .collect();
    if sets.iter().any(Vec::is_empty) {
        return figures;
    }
    let verdict = judge(&sets);
    let (all, any): (u64, u64) = (verdict.all_ns.iter().sum(), verdict.any_ns.iter().sum());
    put("together", (any > 0).then(|| all as f64 / any as f64));
    if records.len() > 1 {
        put("apart", verdict.apart());
        let micros = |part| verdict.skew_ns(part).map(|ns| ns as f64 / 1e3);
        put("skew_us", micros(0.5));
        put("skew_99_us", micros(0.99));
    }
    figures
}
