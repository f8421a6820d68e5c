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

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hearth_sys::clock::monotonic_ns;
use hearth_sys::{System, procfs};

use super::instance::{READY, Record};
use super::options::OversubscriptionOptions;
use super::plan::{Case, NOBODY};
use crate::StudyError;
use crate::study::{Ended, OTHERS};

/// The system's ticks are too coarse for others' use of a shorter time, seconds.
const OTHERS_MIN: f64 = 0.3;
/// The system's ticks a second in `/proc/stat`, on all architectures.
const TICKS: f64 = 100.0;

/// A program of the pair. It is killed with this value, if it has not ended.
struct Program {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &mut Command) -> io::Result<Program> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or_else(|| io::Error::other("it has no output"))?;
        Ok(Program {
            child,
            orders,
            answers: BufReader::new(answers),
        })
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        read.map_err(|error| error.to_string())?;
        if !line.is_empty() {
            return Ok(line);
        }
        let mut said = String::new();
        if let Some(errors) = self.child.stderr.as_mut() {
            // What cannot be read is missing in the complaint.
            let _ = errors.read_to_string(&mut said);
        }
        let said = said.trim().trim_start_matches("hearth: ");
        Err(if said.is_empty() {
            "it ended without figures".to_owned()
        } else {
            said.to_owned()
        })
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        match self.line()?.trim() {
            READY => Ok(()),
            other => Err(format!("it is not ready: {other}")),
        }
    }

    fn begin(&mut self) -> Result<(), String> {
        let orders = self.orders.as_mut().ok_or("it has no input")?;
        let written = orders.write_all(b"go\n").and_then(|()| orders.flush());
        written.map_err(|error| error.to_string())
    }

    /// Its record; ends its input if that is what it waits for.
    fn record(&mut self, is_to_end: bool) -> Result<Record, String> {
        if is_to_end {
            self.orders = None;
        }
        serde_json::from_str(&self.line()?).map_err(|error| error.to_string())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already if all is well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
    let own = own.map(|program| program.record(false)).transpose()?;
    let victim = victim.map(|program| program.record(is_first)).transpose()?;
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

/// CPU time that anybody used, seconds.
fn busy(system: &dyn System) -> f64 {
    let text = system.read("/proc/stat").unwrap_or_default();
    let times = procfs::parse_stat(&text);
    times.iter().map(|cpu| cpu.user + cpu.system).sum::<u64>() as f64 / TICKS
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
