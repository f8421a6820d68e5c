//! One run of one program with one allocator.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hearth_allocators::meter::format::{self, HEAD_BYTES, MeterWord, Mode, Readings};
use hearth_sys::process::ends_with_this_thread;

/// The quantity that is metered.
pub use hearth_allocators::meter::format::Mode as Metered;

use super::allocators::Allocator;
use super::monitor::{self, Status};
use crate::{StudyError, study};

/// Working place of runs.
#[derive(Clone, Debug)]
pub struct Bench<'a> {
    /// The program's folder, with its inputs.
    pub folder: &'a Path,
    /// The meter.
    pub meter: &'a Path,
    /// The meter's file, made for each run.
    pub file: &'a Path,
    /// Raised to stop.
    pub cancel: &'a AtomicBool,
}

/// A program to be run.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The executable.
    pub command: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Its allocator.
    pub allocator: &'a Allocator,
    /// The quantity that is measured, if any.
    pub mode: Option<Mode>,
    /// True if it has our input and output; otherwise it has no input, and its output is kept.
    pub is_shown: bool,
    /// Interval of looks at its memory; if `None`, only its end is watched for.
    pub watch: Option<Duration>,
}

/// Records that fit a meter's file: more calls than any program here makes. The file is sparse.
const TIMES: usize = 16 << 20;
const EVENTS: usize = 6 << 20;
/// Interval of checks whether a program has ended, if nothing else is watched.
const BEAT: Duration = Duration::from_micros(500);

/// Result of a run.
#[derive(Debug)]
pub struct Ran {
    /// The meter's readings.
    pub readings: Option<Readings>,
    /// The program's output.
    pub said: String,
    /// The peaks of its memory: as looked at, and as it was at its end.
    pub peaks: Option<Status>,
    /// Time from start to end, the program's loading included.
    pub seconds: f64,
}

impl Ran {
    /// Returns the counts of the program's requests, by name.
    #[must_use]
    pub fn counts(&self) -> Option<Vec<(&'static str, u64)>> {
        let readings = self.readings.as_ref()?;
        let bytes = readings.get(MeterWord::Requested);
        Some(vec![
            ("malloc", readings.get(MeterWord::Mallocs)),
            ("calloc", readings.get(MeterWord::Callocs)),
            ("realloc", readings.get(MeterWord::Reallocs)),
            ("moved", readings.get(MeterWord::Moved)),
            ("aligned", readings.get(MeterWord::Aligned)),
            ("free", readings.get(MeterWord::Frees)),
            ("bytes", bytes),
            ("largest", readings.get(MeterWord::Largest)),
            ("mean", bytes / readings.allocations().max(1)),
            ("provided", readings.get(MeterWord::Provided)),
        ])
    }

    /// The stamp of the program's end; 0 if it did not end by itself.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.readings
            .as_ref()
            .map_or(0, |readings| readings.get(MeterWord::End))
    }
}

/// End of a run.
#[derive(Debug)]
pub enum Ended {
    /// Well.
    Well(Box<Ran>),
    /// The program failed; why, in words.
    Failed(String),
    /// It was stopped.
    Cancelled,
}

impl Ended {
    /// The run, or else the end that the engine is told of.
    pub(super) fn well(self) -> Result<Box<Ran>, study::Ended> {
        match self {
            Ended::Well(ran) => Ok(ran),
            Ended::Failed(why) => Err(study::Ended::Failed(why)),
            Ended::Cancelled => Err(study::Ended::Cancelled),
        }
    }
}

/// Runs it.
///
/// # Errors
/// The meter's file cannot be written, or the program not be started.
pub fn launch(bench: &Bench, launch: &Launch) -> Result<Ended, StudyError> {
    let file = |action| {
        move |error: io::Error| StudyError::File {
            action,
            file: launch.command.to_owned(),
            error,
        }
    };
    let mut objects: Vec<String> = Vec::new();
    let mut command = Command::new(launch.command);
    if let Some(mode) = launch.mode {
        let capacity = match mode {
            Mode::Count => 0,
            Mode::Time => TIMES,
            Mode::Trace => EVENTS,
        };
        format::prepare(bench.file, mode, capacity).map_err(|error| StudyError::File {
            action: "write",
            file: bench.file.to_owned(),
            error,
        })?;
        objects.push(bench.meter.display().to_string());
        command.env(format::VARIABLE, bench.file);
    }
    objects.extend(
        launch
            .allocator
            .object
            .iter()
            .map(|object| object.display().to_string()),
    );
    command
        .args(launch.arguments)
        .current_dir(bench.folder)
        .env("LD_PRELOAD", objects.join(":"));
    if !launch.is_shown {
        command
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
    }
    ends_with_this_thread(&mut command);
    let begin = Instant::now();
    let mut child = command.spawn().map_err(|error| StudyError::Program {
        program: launch.command.to_owned(),
        error,
    })?;
    // Read beside, so that a program that says much does not wait for us.
    let pipe = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut pipe) = pipe {
            // What cannot be read is missing in what it said.
            let _ = pipe.read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).into_owned()
    });
    let mut peaks: Option<Status> = None;
    let mut join = |seen: Status| match &mut peaks {
        Some(peaks) => peaks.join(&seen),
        None => peaks = Some(seen),
    };
    let mut ignore = |_: Status| {};
    let seen: &mut dyn FnMut(Status) = if launch.watch.is_some() {
        &mut join
    } else {
        &mut ignore
    };
    let interval = launch.watch.unwrap_or(BEAT);
    let status =
        monitor::watch(&mut child, interval, bench.cancel, seen).map_err(file("wait for"))?;
    let seconds = begin.elapsed().as_secs_f64();
    let said = reader.join().unwrap_or_default();
    let Some(status) = status else {
        return Ok(Ended::Cancelled);
    };
    if !status.success() {
        return Ok(Ended::Failed(status.to_string()));
    }
    let readings = match launch.mode {
        Some(mode) => read(bench.file, mode).map_err(|error| StudyError::File {
            action: "read",
            file: bench.file.to_owned(),
            error,
        })?,
        None => None,
    };
    if launch.watch.is_some() {
        let at_end = readings
            .as_ref()
            .and_then(Readings::status)
            .and_then(Status::parse);
        if let Some(at_end) = at_end {
            join(at_end);
        }
    }
    Ok(Ended::Well(Box::new(Ran {
        readings,
        said,
        peaks,
        seconds,
    })))
}

/// The meter's file, as far as it is used.
fn read(path: &Path, mode: Mode) -> io::Result<Option<Readings>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; HEAD_BYTES];
    file.read_exact(&mut bytes)?;
    let word = |slot: MeterWord| {
        let at = 8 * slot as usize;
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    };
    let used = word(MeterWord::Records).min(word(MeterWord::Capacity)) * mode.record_bytes() as u64;
    file.take(used).read_to_end(&mut bytes)?;
    // The file is large where it was used, and not needed again.
    fs::remove_file(path)?;
    Ok(Readings::of(bytes))
}
