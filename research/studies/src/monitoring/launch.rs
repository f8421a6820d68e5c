//! One run: a process that measures itself, on the cores of its row.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hearth_sys::usage::{self, Whose};
use hearth_sys::{System, affinity, procfs};

use super::options::{Experiment, MonitoringOptions};
use super::peers::{self, Calls, Peers};
use super::places::Place;
use super::plan::Case;
use super::ways::{Monitor, Way};
use crate::StudyError;
use crate::study::{Ended, OTHERS};

/// Bytes of blocks between program and writer: the monitor's default.
pub const BUFFER: u64 = 16 << 20;
/// The same where the writer is to fall behind, so that it does so early in a run.
pub const BUFFER_SMALL: u64 = 1 << 20;
/// Calls, those within calls included, before any that are timed: compilers at run time have
/// settled by then.
const WARM_UP: u32 = 200_000;
const WARM_UP_QUICK: u32 = 20_000;
/// Calls of others in a run of calls that do nothing else, one for so many of ours: Kieker writes
/// 200 bytes and takes two microseconds for each, fastrace keeps a second's spans in memory.
const OURS_FOR_ONE: u32 = 10;
/// A shorter run says nothing of others, for the system counts in hundredths of a second.
const OTHERS_MIN: Duration = Duration::from_millis(300);
/// Interval of looks whether a process has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Programs and the folder that runs need.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The program whose tool `monitored` is monitored.
    pub program: PathBuf,
    /// Other monitors.
    pub peers: Peers,
    /// The folder for records.
    pub folder: PathBuf,
}

/// Makes one run of a case.
///
/// # Errors
/// The program cannot be started, or the system does not let it be kept to its cores.
pub fn run(
    bench: &Bench,
    system: &dyn System,
    case: &Case,
    place: &Place,
    options: &MonitoringOptions,
    cancel: &AtomicBool,
) -> Result<Ended, StudyError> {
    let logs = bench.folder.join("records");
    fs::create_dir_all(&logs).map_err(|error| StudyError::File {
        action: "make the folder",
        file: logs.clone(),
        error,
    })?;
    let Some(mut command) = command(bench, case, place, options, &logs) else {
        let name = case.monitor.words();
        return Ok(Ended::Failed(format!(
            "{name} is not here any more; {}",
            peers::HINT
        )));
    };
    // The process inherits it.
    affinity::allow_current(&place.allowed).map_err(|error| StudyError::Cores { error })?;
    let before = Moment::now(system);
    let ended = output(&mut command, cancel).map_err(|error| StudyError::Program {
        program: command.get_program().into(),
        error,
    });
    let after = Moment::now(system);
    let bytes = bytes(&logs);
    // Hundreds of megabytes of Kieker's; what stays is overwritten by the next run.
    let _ = fs::remove_dir_all(&logs);
    let Some(output) = ended? else {
        return Ok(Ended::Cancelled);
    };
    let mut figures = match figures(&output) {
        Ok(figures) => figures,
        Err(why) => return Ok(Ended::Failed(why)),
    };
    if case.monitor == Monitor::Kieker && case.way == Way::File {
        let calls = calls(case, options);
        let all = f64::from(calls.calls + calls.warm_up) * f64::from(case.depth);
        figures.push(("bytes_a_call".to_owned(), bytes as f64 / all));
    }
    if let Some(bytes) = of(&figures, "bytes") {
        // A call has two records.
        let stored = of(&figures, "stored").unwrap_or(0.0) / 2.0;
        figures.push(("bytes_a_call".to_owned(), bytes / stored.max(1.0)));
    }
    if let Some(others) = after.others_since(&before) {
        figures.push((OTHERS.to_owned(), others));
    }
    Ok(Ended::Well(figures))
}

fn of(figures: &[(String, f64)], name: &str) -> Option<f64> {
    let found = figures.iter().find(|(of, _)| of == name);
    found.map(|(_, value)| *value)
}

/// Numbers of calls of a case's runs.
#[must_use]
pub fn calls(case: &Case, options: &MonitoringOptions) -> Calls {
    let warm_up = if options.quick {
        WARM_UP_QUICK
    } else {
        WARM_UP
    };
    let share = match case.monitor {
        Monitor::Kieker | Monitor::Fastrace if case.method_ns == 0 => OURS_FOR_ONE,
        _ => 1,
    };
    Calls {
        calls: (options.calls(case.method_ns) / share).max(4),
        warm_up: (warm_up / case.depth).max(10),
    }
}

/// The process of a run; none if its monitor is not there.
fn command(
    bench: &Bench,
    case: &Case,
    place: &Place,
    options: &MonitoringOptions,
    logs: &Path,
) -> Option<Command> {
    let calls = calls(case, options);
    match case.monitor {
        Monitor::Kieker => {
            let folder = bench.peers.kieker.as_ref()?;
            Some(peers::kieker(folder, case, calls, logs))
        }
        Monitor::Fastrace => {
            let program = bench.peers.fastrace.as_ref()?;
            Some(peers::fastrace(program, case, calls))
        }
        Monitor::Hearth => {
            let mut command = Command::new(&bench.program);
            command.args(["tool", "monitored", case.way.id()]);
            let buffer = match case.experiment {
                Experiment::Saturation => BUFFER_SMALL,
                _ => BUFFER,
            };
            for (name, value) in [
                ("--law", case.law.clone()),
                ("--calls", calls.calls.to_string()),
                ("--warm-up", calls.warm_up.to_string()),
                ("--method", case.method_ns.to_string()),
                ("--depth", case.depth.to_string()),
                ("--buffer", buffer.to_string()),
            ] {
                command.args([name, &value]);
            }
            if case.row.is_synchronous() {
                command.arg("--synchronous");
            }
            if let Some(core) = place.application {
                command.args(["--application-core", &core.to_string()]);
            }
            if let Some(core) = place.writer {
                command.args(["--writer-core", &core.to_string()]);
            }
            command.arg("--file").arg(logs.join("monitored.calls"));
            Some(command)
        }
    }
}

/// Runs a process to its end; none if it was stopped first.
fn output(command: &mut Command, cancel: &AtomicBool) -> io::Result<Option<Output>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child: Child = command.spawn()?;
    // They print some lines, which fit into a pipe, and so end without a reader.
    while child.try_wait()?.is_none() {
        // Relaxed: says only that it is to stop.
        if cancel.load(Ordering::Relaxed) {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
    child.wait_with_output().map(Some)
}

/// Figures that a process printed, or why it has none.
fn figures(output: &Output) -> Result<Vec<(String, f64)>, String> {
    let said = String::from_utf8_lossy(&output.stdout);
    let figure = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse::<f64>().ok()?))
    };
    let figures: Vec<(String, f64)> = said.lines().filter_map(figure).collect();
    if output.status.success() && of(&figures, "mean_ns").is_some() {
        return Ok(figures);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it printed no figures").trim();
    Err(format!("the monitored program: {last}"))
}

/// Bytes of all files below a folder.
fn bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// The machine's ticks and ours at a moment.
struct Moment {
    at: Instant,
    busy_ticks: u64,
    ours_us: u64,
}

impl Moment {
    fn now(system: &dyn System) -> Moment {
        let times = procfs::parse_stat(&system.read("/proc/stat").unwrap_or_default());
        let ours = [Whose::Process, Whose::Children].map(usage::read);
        Moment {
            at: Instant::now(),
            busy_ticks: times.iter().map(|of| of.user + of.system + of.steal).sum(),
            ours_us: ours.iter().map(|of| of.user_us + of.system_us).sum(),
        }
    }

    /// Cores that others kept busy since then; none if too little time has gone.
    fn others_since(&self, before: &Moment) -> Option<f64> {
        let gone = self.at - before.at;
        if gone < OTHERS_MIN {
            return None;
        }
        let busy = self.busy_ticks.saturating_sub(before.busy_ticks) as f64 / TICKS_PER_SECOND;
        let ours = self.ours_us.saturating_sub(before.ours_us) as f64 / 1e6;
        Some(((busy - ours) / gone.as_secs_f64()).max(0.0))
    }
}

/// Linux counts so for programs, whatever its own ticks are.
const TICKS_PER_SECOND: f64 = 100.0;
