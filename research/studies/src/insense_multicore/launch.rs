//! One run of a program: real, user and system time, as `time` gives them, and what it printed.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hearth_sys::process::ends_with_this_thread;
use hearth_sys::usage::{self, Whose};

use crate::StudyError;
use crate::nmart::monitor::{self, Status};
use crate::study;

/// A program to be run.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables added to its environment, from which everything of Hearth's is taken away first.
    pub environment: Vec<(&'static str, OsString)>,
    /// The output that it must print.
    pub prints: String,
}

/// Times of a run, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// Time from start to end, the program's loading included.
    pub real: f64,
    /// Time in its own code, on all cores.
    pub user: f64,
    /// Time in the kernel for it.
    pub system: f64,
}

/// Memory of a run, kB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// Resident at most.
    pub peak_kb: f64,
    /// Growth in the last three quarters of the run.
    pub growth_kb: f64,
}

/// End of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended<T> {
    /// Well.
    Well(T),
    /// The program failed; why, in words.
    Failed(String),
    /// It was stopped.
    Cancelled,
}

impl<T> Ended<T> {
    /// Converts it for the engine, with the figures that were taken of the run.
    pub(super) fn map(self, figures: impl FnOnce(T) -> study::Ended) -> study::Ended {
        match self {
            Ended::Well(found) => figures(found),
            Ended::Failed(why) => study::Ended::Failed(why),
            Ended::Cancelled => study::Ended::Cancelled,
        }
    }
}

/// Interval of checks whether a run is to end.
const BEAT: Duration = Duration::from_millis(20);
/// A run that takes longer has lost its way: the longest here take seconds.
const LONGEST: Duration = Duration::from_secs(300);
/// Interval of looks at its memory.
const LOOK: Duration = Duration::from_millis(2);

fn command(launch: &Launch) -> Command {
    let mut command = Command::new(&launch.program);
    command.args(&launch.arguments);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        // The places of the runtime and caches do not affect how a program runs.
        let stays = ["HEARTH_LIB", "HEARTH_CACHE"]
            .iter()
            .any(|kept| text.starts_with(kept));
        if text.starts_with("HEARTH_") && !stays || text == "LD_PRELOAD" {
            command.env_remove(&name);
        }
    }
    command
        .env("LC_ALL", "C")
        .envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

fn spawn(launch: &Launch) -> Result<Child, StudyError> {
    let mut command = command(launch);
    ends_with_this_thread(&mut command);
    command.spawn().map_err(|error| StudyError::Program {
        program: launch.program.clone(),
        error,
    })
}

/// Runs it and takes its time. Nothing looks at it meanwhile, but whether it is to end.
///
/// # Errors
/// It cannot be started.
pub fn time(launch: &Launch, cancel: &AtomicBool) -> Result<Ended<Ran>, StudyError> {
    let before = usage::read(Whose::Children);
    let begin = Instant::now();
    let mut child = spawn(launch)?;
    let pipe = child.stdout.take();
    let child = Mutex::new(child);
    let locked = &|| child.lock().unwrap_or_else(PoisonError::into_inner);
    let (end, ended) = channel::<()>();
    let mut said = String::new();
    let status = std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                // Relaxed: says only that it is to stop.
                if cancel.load(Ordering::Relaxed) || begin.elapsed() > LONGEST {
                    // It may have ended meanwhile.
                    let _ = locked().kill();
                }
            }
        });
        // A program's output ends with it, and its end is noticed at once.
        if let Some(mut pipe) = pipe {
            // What cannot be read is missing in what it said, and the run has failed.
            let _ = pipe.read_to_string(&mut said);
        }
        let status = locked().wait();
        drop(end);
        status
    });
    let real = begin.elapsed().as_secs_f64();
    let used = usage::read(Whose::Children).since(&before);
    if cancel.load(Ordering::Relaxed) {
        return Ok(Ended::Cancelled);
    }
    let status = status.map_err(|error| StudyError::Program {
        program: launch.program.clone(),
        error,
    })?;
    if real > LONGEST.as_secs_f64() {
        return Ok(Ended::Failed(format!(
            "it did not end in {} seconds",
            LONGEST.as_secs()
        )));
    }
    if !status.success() {
        return Ok(Ended::Failed(status.to_string()));
    }
    if said != launch.prints {
        return Ok(Ended::Failed(format!(
            "it printed {said:?} and not {:?}",
            launch.prints
        )));
    }
    Ok(Ended::Well(Ran {
        real,
        user: used.user_us as f64 / 1e6,
        system: used.system_us as f64 / 1e6,
    }))
}

/// Runs it and looks at its memory all the while.
///
/// # Errors
/// It cannot be started.
pub fn memory(launch: &Launch, cancel: &AtomicBool) -> Result<Ended<Memory>, StudyError> {
    let mut child = spawn(launch)?;
    let mut seen: Vec<Status> = Vec::new();
    let status = monitor::watch(&mut child, LOOK, cancel, &mut |status| seen.push(status))
        .map_err(|error| StudyError::Program {
            program: launch.program.clone(),
            error,
        })?;
    match status {
        None => Ok(Ended::Cancelled),
        Some(status) if !status.success() => Ok(Ended::Failed(status.to_string())),
        Some(_) => Ok(match grown(&seen) {
            Some(memory) => Ended::Well(memory),
            None => Ended::Failed("it ended before it was looked at".into()),
        }),
    }
}

/// The peak, and the growth from a quarter of the looks on: what a program needs once is there by
/// then.
fn grown(seen: &[Status]) -> Option<Memory> {
    let (early, last) = (seen.get(seen.len() / 4)?, seen.last()?);
    let peak = seen.iter().map(|status| status.resident_peak_kb).max()?;
    Some(Memory {
        peak_kb: peak as f64,
        growth_kb: last.resident_kb as f64 - early.resident_kb as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(resident: &[u64]) -> Vec<Status> {
        let look = |&resident_kb: &u64| Status {
            resident_kb,
            resident_peak_kb: resident_kb,
            ..Status::default()
        };
        resident.iter().map(look).collect()
    }

    #[test]
    fn growth_begins_after_the_first_quarter() {
        let memory = grown(&looks(&[0, 100, 110, 120, 130, 140, 150, 160])).unwrap();
        assert_eq!((memory.peak_kb, memory.growth_kb), (160.0, 50.0));
        assert_eq!(grown(&looks(&[7])).unwrap().growth_kb, 0.0);
        assert_eq!(grown(&[]), None);
    }

    #[test]
    fn a_program_is_timed_and_what_it_prints_is_looked_at() {
        let never = AtomicBool::new(false);
        let mut launch = Launch {
            program: "echo".into(),
            arguments: vec!["yes".into()],
            prints: "yes\n".into(),
            ..Launch::default()
        };
        assert!(matches!(time(&launch, &never).unwrap(), Ended::Well(ran) if ran.real > 0.0));
        launch.prints = "no\n".into();
        assert!(
            matches!(time(&launch, &never).unwrap(), Ended::Failed(why) if why.contains("yes"))
        );
        launch.program = "no-such-program-at-all".into();
        assert!(time(&launch, &never).is_err());
    }

    #[test]
    fn a_run_is_ended_when_it_is_to_end() {
        let now = AtomicBool::new(true);
        let launch = Launch {
            program: "sleep".into(),
            arguments: vec!["600".into()],
            ..Launch::default()
        };
        assert_eq!(time(&launch, &now).unwrap(), Ended::Cancelled);
        assert_eq!(memory(&launch, &now).unwrap(), Ended::Cancelled);
    }
}
