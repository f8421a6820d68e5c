//! One run: program B is started and works, program A is started and works, and both are timed
//! while they work together.
//!
//! | figure | what |
//! |---|---|
//! | `seconds` | mean time of a product of A |
//! | `rate` | products of A a second |
//! | `victim_seconds`, `victim_rate` | the same of B |
//! | `total_rate` | products of both a second |
//! | `threads` | A's threads |
//! | `choice_seconds` | the time that A took to choose them |
//! | `foreign`, `told` | A's estimate of others' threads; 1 if it has one |
//! | `others_cores` | CPUs that neither program kept busy and somebody did |

use std::path::Path;
use std::process::Command;

use hearth_sys::System;
use hearth_sys::clock::monotonic_ns;

use super::instance::Record;
use super::options::OversubscriptionOptions;
use super::plan::{Case, NOBODY};
use crate::StudyError;
use crate::program::{OTHERS_MIN, Program, busy};
use crate::study::{Ended, OTHERS};

fn start(
    program: &Path,
    (way, threads, foreign): (&str, usize, usize),
    milliseconds: u32,
    rows: usize,
) -> Result<Program, StudyError> {
    let mut command = Command::new(program);
    command.args(["tool", "oversubscribed", way]);
    command.args(["--threads", &threads.to_string()]);
    command.args(["--foreign", &foreign.to_string()]);
    command.args(["--rows", &rows.to_string()]);
    command.args(["--milliseconds", &milliseconds.to_string()]);
    Program::start(&mut command).map_err(|error| StudyError::Program {
        program: program.to_owned(),
        error,
    })
}

/// Makes a run of a case with two processes of `program`.
///
/// # Errors
/// The program cannot be started.
pub fn run(
    program: &Path,
    system: &dyn System,
    case: &Case,
    options: &OversubscriptionOptions,
) -> Result<Ended, StudyError> {
    let (ms, rows) = (options.measure_ms(), options.rows());
    let is_alone = case.way == NOBODY;
    // B's work is stolen in all experiments, as in the source's first.
    let mut victim = match case.foreign {
        0 => None,
        threads => {
            let ms = if is_alone { ms } else { 0 };
            Some(start(program, ("stealing", threads, 0), ms, rows)?)
        }
    };
    let mut own = match is_alone {
        true => None,
        false => Some(start(
            program,
            (&case.way, case.threads, case.foreign),
            ms,
            rows,
        )?),
    };
    let figures = both(system, own.as_mut(), victim.as_mut());
    Ok(match figures {
        Ok(figures) => Ended::Well(figures),
        Err(why) => Ended::Failed(why),
    })
}

fn both(
    system: &dyn System,
    mut own: Option<&mut Program>,
    mut victim: Option<&mut Program>,
) -> Result<Vec<(String, f64)>, String> {
    let mut programs = [victim.as_deref_mut(), own.as_deref_mut()];
    for program in programs.iter_mut().flatten() {
        program.wait_until_ready()?;
    }
    let (begin, busy) = (monotonic_ns(), busy(system));
    for program in programs.iter_mut().flatten() {
        program.begin()?;
    }
    let is_first = own.is_some();
    let own = own.map(|program| record(program, false)).transpose()?;
    let victim = victim
        .map(|program| record(program, is_first))
        .transpose()?;
    let seconds = 1e-9 * monotonic_ns().saturating_sub(begin) as f64;
    let mut figures = figures(own.as_ref(), victim.as_ref())?;
    if seconds >= OTHERS_MIN {
        let used: f64 = [&own, &victim]
            .into_iter()
            .flatten()
            .map(|record| record.cpu_seconds)
            .sum();
        let others = (self::busy(system) - busy - used) / seconds;
        figures.push((OTHERS.to_owned(), others.max(0.0)));
    }
    Ok(figures)
}

/// The record of a program; ends its input if that is what it waits for.
fn record(program: &mut Program, is_to_end: bool) -> Result<Record, String> {
    if is_to_end {
        program.end();
    }
    serde_json::from_str(&program.line()?).map_err(|error| error.to_string())
}

/// The figures of the records of A and B.
///
/// # Errors
/// They did not run at the same time. In words.
pub fn figures(
    own: Option<&Record>,
    victim: Option<&Record>,
) -> Result<Vec<(String, f64)>, String> {
    const TOGETHER: &str = "the programs did not run at the same time";
    let window = [own, victim].into_iter().flatten();
    let window = window.map(Record::window).reduce(|one, other| {
        let ((from, to), (begin, end)) = (one?, other?);
        (from.max(begin) < to.min(end)).then(|| (from.max(begin), to.min(end)))
    });
    let window = window.flatten().ok_or(TOGETHER)?;
    let mut figures = Vec::new();
    let mut put = |name: &str, value: f64| figures.push((name.to_owned(), value));
    let mut total = 0.0;
    for (record, prefix) in [(own, ""), (victim, "victim_")] {
        let Some(record) = record else { continue };
        let rate = record.rate(window);
        total += rate;
        put(&format!("{prefix}rate"), rate);
        put(
            &format!("{prefix}seconds"),
            record.seconds(window).ok_or(TOGETHER)?,
        );
    }
    put("total_rate", total);
    if let Some(own) = own {
        put("threads", own.threads as f64);
        put("choice_seconds", own.choice_seconds);
        put("told", f64::from(own.foreign.is_some()));
        if let Some(foreign) = own.foreign {
            put("foreign", foreign);
        }
    }
    Ok(figures)
}
