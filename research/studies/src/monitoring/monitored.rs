//! The program that is monitored: a method that takes some time, below itself to a depth, called
//! again and again, as MooBench has it.
//!
//! It is a process of its own for each run and prints its figures, a name and a value in a line.
//! The second half of its calls counts. Each is timed, without a probe as well, so that the clock's
//! time is not in the differences of runs.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hearth_monitor::{Destination, Mode, Monitor, Options, Report, call};
use hearth_stats::quantile_of_sorted;
use hearth_sys::affinity;
use hearth_watch::stream::{Law, Log};

use super::ways::Way;
use crate::StudyError;

/// Bytes of stack for each call within a call, generously: optimised frames have some tens.
const STACK_A_CALL: usize = 1024;
/// Bytes of stack for all else.
const STACK_MIN: usize = 1 << 20;

/// Parameters of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The run of the four.
    pub way: Way,
    /// The thread that fills a block writes it.
    pub is_synchronous: bool,
    /// Consequence of records that come too fast.
    pub law: Law,
    /// Bytes of blocks between program and writer.
    pub buffer: u64,
    /// Calls, of which the second half counts.
    pub calls: u32,
    /// Calls before these, which take no time of their own.
    pub warm_up: u32,
    /// Time that the innermost call takes, by the clock.
    pub method_ns: u32,
    /// Calls within a call, itself included.
    pub depth: u32,
    /// The core of the thread that calls; any if absent.
    pub application_core: Option<usize>,
    /// The core of the writer's thread; any if absent.
    pub writer_core: Option<usize>,
    /// The file for records, which is deleted at the end.
    pub file: PathBuf,
}

/// Makes a run, and returns its figures as lines.
///
/// # Errors
/// Threads cannot be kept to their cores, or the monitor does not begin.
pub fn monitored(asked: &Asked) -> Result<String, StudyError> {
    let stack = STACK_MIN + asked.depth as usize * STACK_A_CALL;
    let builder = thread::Builder::new().name("monitored".into());
    thread::scope(|scope| {
        let run = builder
            .stack_size(stack)
            .spawn_scoped(scope, || run(asked))
            .map_err(|error| StudyError::Thread { error })?;
        match run.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn run(asked: &Asked) -> Result<String, StudyError> {
    if let Some(core) = asked.application_core {
        affinity::pin_current(core).map_err(|error| StudyError::Cores { error })?;
    }
    let monitor = match asked.way {
        Way::Plain => None,
        way => {
            let begun = Monitor::begin(options(asked, way));
            Some(begun.map_err(|error| StudyError::Benchmark {
                why: format!("the monitor: {error}"),
            })?)
        }
    };
    let call = match monitor {
        None => plain,
        Some(_) => probed,
    };
    for _ in 0..asked.warm_up {
        black_box(call(asked.depth, Duration::ZERO));
    }
    let method = Duration::from_nanos(asked.method_ns.into());
    let mut times = vec![0; asked.calls as usize];
    let begin = Instant::now();
    for time in &mut times {
        let begin = Instant::now();
        black_box(call(asked.depth, method));
        *time = begin.elapsed().as_nanos() as u64;
    }
    let all = begin.elapsed();
    let report = monitor.map(Monitor::finish);
    let mut said = of_times(&mut times[asked.calls as usize / 2..]);
    if let Some(report) = &report {
        said += &of_report(asked, report, all)?;
    }
    Ok(said)
}

fn options(asked: &Asked, way: Way) -> Options {
    let to = match way {
        Way::File => Destination::File(asked.file.clone()),
        _ => Destination::Nowhere,
    };
    let mode = match asked.is_synchronous {
        true => Mode::Synchronous,
        false => Mode::Asynchronous,
    };
    let mut options = Options::to(to)
        .mode(mode)
        .law(asked.law)
        .buffer(asked.buffer);
    if way != Way::Off {
        options = options.on("*");
    }
    match asked.writer_core {
        Some(core) => options.writer_on(core),
        None => options,
    }
}

/// Mean, median and high quantiles of a call's time.
fn of_times(times: &mut [u64]) -> String {
    times.sort_unstable();
    let sorted: Vec<f64> = times.iter().map(|ns| *ns as f64).collect();
    let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
    let mut said = format!("mean_ns {mean}\n");
    for (name, share) in [
        ("median_ns", 0.5),
        ("p99_ns", 0.99),
        ("p99_9_ns", 0.999),
        ("longest_ns", 1.0),
    ] {
        if let Some(ns) = quantile_of_sorted(&sorted, share) {
            let _ = writeln!(said, "{name} {ns}");
        }
    }
    said
}

/// The monitor's account, and beside it what the file has. `all` is the time of all calls but those
/// that warm up.
fn of_report(asked: &Asked, report: &Report, all: Duration) -> Result<String, StudyError> {
    let timed = asked.calls as f64 / f64::from(asked.calls + asked.warm_up).max(1.0);
    let emitted = report.emitted as f64;
    let rate = emitted * timed / all.as_secs_f64();
    let mut said = format!(
        "emitted {emitted}\nlost {}\nemitted_per_s {rate}\n",
        report.lost
    );
    if asked.way != Way::File {
        return Ok(said);
    }
    let found = read(&asked.file);
    // Gone, or it will be with the folder.
    let _ = fs::remove_file(&asked.file);
    let file = found.map_err(|why| StudyError::Benchmark { why })?;
    let missing = report.emitted.abs_diff(file.stored + report.lost);
    let expected = 2 * u64::from(asked.calls + asked.warm_up) * u64::from(asked.depth);
    let miscounted = report.emitted.abs_diff(expected);
    for (name, value) in [
        ("stored", file.stored),
        ("dropped", file.dropped),
        ("overwritten", file.overwritten),
        ("refused", file.refused),
        ("bytes", file.bytes),
        ("unaccounted", missing + miscounted),
    ] {
        let _ = writeln!(said, "{name} {value}");
    }
    let share = file.stored as f64 / emitted.max(1.0);
    let _ = writeln!(said, "stored_per_s {}", rate * share);
    Ok(said)
}

/// Contents of a file of records, counted by the reader and not by the writer.
struct InFile {
    stored: u64,
    dropped: u64,
    overwritten: u64,
    refused: u64,
    bytes: u64,
}

fn read(path: &Path) -> Result<InFile, String> {
    let unread = |error: &dyn std::fmt::Display| format!("its file cannot be read: {error}");
    let bytes = fs::metadata(path).map_err(|error| unread(&error))?.len();
    let mut log = Log::open(path).map_err(|error| unread(&error))?;
    while log.next_chunk().is_some() {}
    let mut file = InFile {
        stored: 0,
        dropped: 0,
        overwritten: 0,
        refused: 0,
        bytes,
    };
    for (total, stored) in log.accounts() {
        file.stored += stored;
        file.dropped += total.dropped;
        file.overwritten += total.overwritten;
        file.refused += total.refused;
    }
    Ok(file)
}

/// The method without a probe. Its depth is hidden from the compiler, which would make a loop of
/// it.
#[inline(never)]
fn plain(depth: u32, method: Duration) -> Duration {
    match depth {
        0 | 1 => wait(method),
        deeper => black_box(plain(black_box(deeper - 1), method)),
    }
}

/// The same with a probe.
#[inline(never)]
fn probed(depth: u32, method: Duration) -> Duration {
    call!("Monitored.method");
    match depth {
        0 | 1 => wait(method),
        deeper => black_box(probed(black_box(deeper - 1), method)),
    }
}

/// Looks at the clock until the time is over, and once in any case.
#[inline(never)]
fn wait(method: Duration) -> Duration {
    let begin = Instant::now();
    loop {
        let gone = begin.elapsed();
        if gone >= method {
            return gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Monitors are one at a time in a process.
    #[test]
    fn each_way_says_what_it_found_and_every_record_is_accounted_for() {
        let file = std::env::temp_dir().join(format!("hearth-monitored-{}", std::process::id()));
        let asked = Asked {
            way: Way::Plain,
            is_synchronous: false,
            law: Law::Block,
            buffer: 1 << 20,
            calls: 4_000,
            warm_up: 10,
            method_ns: 0,
            depth: 10,
            application_core: None,
            writer_core: None,
            file: file.clone(),
        };
        let figure = |said: &str, name: &str| -> Option<f64> {
            let lines = said.lines().filter_map(|line| line.split_once(' '));
            let found = lines.into_iter().find(|(of, _)| *of == name)?;
            found.1.parse().ok()
        };
        let plain = monitored(&asked).unwrap();
        assert!(figure(&plain, "mean_ns").unwrap() > 0.0);
        assert_eq!(figure(&plain, "emitted"), None);
        let off = monitored(&Asked {
            way: Way::Off,
            ..asked.clone()
        });
        assert_eq!(figure(&off.unwrap(), "emitted"), Some(0.0));
        for (is_synchronous, law) in [
            (true, Law::Block),
            (false, Law::Block),
            (false, Law::DropNewest),
            (false, Law::DropOldest),
            (false, Law::Sample),
        ] {
            let said = monitored(&Asked {
                way: Way::File,
                is_synchronous,
                law,
                ..asked.clone()
            });
            let said = said.unwrap();
            assert_eq!(figure(&said, "emitted"), Some(80_200.0), "{said}");
            assert_eq!(figure(&said, "unaccounted"), Some(0.0), "{said}");
            let of = |name| figure(&said, name).unwrap();
            assert_eq!(of("stored") + of("lost"), of("emitted"), "{said}");
            assert!(law != Law::Block || of("lost") == 0.0, "{said}");
            assert!(!file.exists());
        }
    }

    #[test]
    fn a_method_takes_its_time_at_any_depth() {
        let method = Duration::from_micros(50);
        for depth in [1, 2, 64] {
            let begin = Instant::now();
            assert!(plain(depth, method) >= method);
            assert!(begin.elapsed() >= method);
        }
    }
}
