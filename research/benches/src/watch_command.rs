//! Compares probes with other monitors: what a call ten deep costs, split into the parts of the
//! source's four runs.
//!
//! Each run is a process of its own: without a probe (T), with probes that are off (I), on and
//! stored nowhere (C), on and stored by a writer (W). Differences of medians over the processes
//! give the parts. Fairness: every side calls the same function ten deep; all do nothing else. A
//! side's processes take turns with the others'. Kieker's function is woven at load time and
//! warmed up, with its defaults: a queue and a writer's thread, a file of text. fastrace collects
//! the ten spans below a root and reports them to a reporter that drops them. tracing has its
//! registry, and a layer that does nothing. The compiler makes a loop of the function without a
//! probe, so what is over it includes the ten calls, except in Java.

use hearth_benches::measure::{in_turn, noticing};
use hearth_benches::peers::beside;
use hearth_benches::runtime::Effort;
use hearth_monitor::{Destination, Mode, Monitor, Options, call};
use hearth_stats::{interval, median};
use hearth_testing::toolchain::Workshop;
use hearth_watch::stream::Law;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const DEPTH: u32 = 9;
const BATCHES: usize = 21;
/// Goal for a call ten deep stored in a file, over its baseline, in nanoseconds.
const GOAL_NS: f64 = 500.0;

/// A monitor, and the ways in which it runs: from no probe to all stored.
struct Side {
    name: &'static str,
    /// The baseline first.
    ways: &'static [Way],
}

/// A way in which a monitor runs, and the argument of its process.
type Way = (&'static str, &'static str);

const NO_PROBE: &str = "no probe";

const SIDES: [Side; 4] = [
    Side {
        name: "hearth",
        ways: &[
            (NO_PROBE, "plain"),
            ("off", "off"),
            ("nowhere", "nowhere"),
            ("file", "file"),
            ("file, synchronous", "synchronous"),
        ],
    },
    Side {
        name: "fastrace",
        ways: &[
            (NO_PROBE, "plain"),
            ("off", "fastrace-off"),
            ("nowhere", "fastrace"),
        ],
    },
    Side {
        name: "tracing",
        ways: &[
            (NO_PROBE, "plain"),
            ("off", "tracing-off"),
            ("nowhere", "tracing"),
        ],
    },
    Side {
        name: "kieker",
        ways: &[
            (NO_PROBE, "plain"),
            ("off", "off"),
            ("nowhere", "nowhere"),
            ("file", "file"),
        ],
    },
];

/// Measures all sides that are there, prints them, and returns the rows of the record.
pub(crate) fn watch(effort: Effort) -> Result<String, String> {
    println!(
        "watch: what does a call ten deep cost, by monitor and by what happens to its records?"
    );
    println!(
        "  a process a run, in turns; nanoseconds over the same call without a probe, with its"
    );
    println!("  95 % interval");
    let workshop = Workshop::new("watch")?;
    let calls = if effort.brief { 2_000 } else { 20_000 };
    let mut ways: Vec<(&Side, &Way)> = Vec::new();
    for side in &SIDES {
        match command(side, &side.ways[0], calls, workshop.path()) {
            Ok(_) => ways.extend(side.ways.iter().map(|way| (side, way))),
            Err(error) => println!("  {}: skipped: {error}", side.name),
        }
    }
    let measured = in_turn(ways.len(), effort.repeats, |nth| {
        let (side, way) = ways[nth];
        let logs = workshop.path().join("logs");
        fs::create_dir_all(&logs).map_err(|error| error.to_string())?;
        let measured = nanoseconds(&mut command(side, way, calls, &logs)?);
        // Kieker's have hundreds of megabytes.
        let _ = fs::remove_dir_all(&logs);
        measured
    })?;
    let mut rows = String::new();
    let mut base: &[f64] = &[];
    for ((side, (what, _)), kept) in ways.iter().zip(&measured) {
        let of = |values: &[Vec<f64>]| Some(median(&values[0])? - median(&values[1])?);
        if *what == NO_PROBE {
            base = &kept.values;
            let ns = median(base).ok_or("no measurements")?;
            println!("\n  {:<9} {what:<18} {ns:>9.1} ns", side.name);
            continue;
        }
        let over = interval(&[&kept.values, base], of).ok_or("no measurements")?;
        println!(
            "  {:<9} {what:<18} {:>+9.1} ns [{:.1}, {:.1}]",
            "", over.value, over.low, over.high
        );
        let name = what.replace([' ', ','], "");
        let _ = writeln!(
            rows,
            "watch-{}-{name},{},{},{},{},,",
            side.name, effort.repeats, over.value, over.low, over.high
        );
        if side.name == "hearth" && *what == "file" {
            let is_reached = over.value <= GOAL_NS;
            let reached = if is_reached { "reached" } else { "MISSED" };
            println!("  {:<9} goal {GOAL_NS:.0} ns {reached}", "");
        }
    }
    Ok(rows.trim_end().to_owned())
}

/// The process of a run.
fn command(side: &Side, way: &Way, calls: u32, folder: &Path) -> Result<Command, String> {
    let hint = "use benches/run, or research/benches/install-peers watch";
    let mut command = match side.name {
        "hearth" => {
            let this = std::env::current_exe().map_err(|error| error.to_string())?;
            let mut command = Command::new(this);
            command
                .args(["watched", way.1, &calls.to_string()])
                .arg(folder);
            return Ok(command);
        }
        "kieker" => {
            let classes = beside("../peers/watch/Deep.class", hint)?;
            let agent = beside("../peers/watch/kieker.jar", hint)?;
            return kieker(way, &classes, &agent, calls, folder);
        }
        _ => Command::new(beside("../peers/bin/watch-peers", hint)?),
    };
    command.args([way.1, &calls.to_string()]);
    Ok(command)
}

fn kieker(
    way: &Way,
    classes: &Path,
    agent: &Path,
    calls: u32,
    folder: &Path,
) -> Result<Command, String> {
    let beside = classes.parent().ok_or("a class has a folder")?;
    let mut command = Command::new("java");
    if way.1 != "plain" {
        let writer = match way.1 {
            "file" => "filesystem.FileWriter",
            _ => "dump.DumpWriter",
        };
        command
            .arg(format!("-javaagent:{}", agent.display()))
            .arg(format!(
                "-Dorg.aspectj.weaver.loadtime.configuration=file:{}",
                beside.join("aop.xml").display()
            ))
            .arg("-Dkieker.monitoring.skipDefaultAOPConfiguration=true")
            .arg(format!("-Dkieker.monitoring.enabled={}", way.1 != "off"))
            .arg(format!(
                "-Dkieker.monitoring.writer=kieker.monitoring.writer.{writer}"
            ))
            .arg(format!(
                "-Dkieker.monitoring.writer.filesystem.FileWriter.customStoragePath={}",
                folder.display()
            ));
    }
    // Its log has 200 bytes a record.
    let calls = (calls / 10).to_string();
    command.arg("-cp").arg(beside).arg("Deep").arg(calls);
    Ok(command)
}

/// Runs the process of a run, and reads what it measured.
fn nanoseconds(command: &mut Command) -> Result<(f64, bool), String> {
    let (output, is_disturbed) = noticing(|| command.output());
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let figure = said.lines().rev().find_map(|line| line.trim().parse().ok());
    match (output.status.success(), figure) {
        (true, Some(ns)) => Ok((ns, is_disturbed)),
        _ => Err(format!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

// ---- this program as one that is watched ------------------------------------------------------

#[inline(never)]
fn plain(depth: u32) -> u32 {
    match depth {
        0 => black_box(1),
        depth => plain(depth - 1) + 1,
    }
}

#[inline(never)]
fn probed(depth: u32) -> u32 {
    call!("deep");
    match depth {
        0 => black_box(1),
        depth => probed(depth - 1) + 1,
    }
}

/// Runs `hearth-benches watched WAY CALLS FOLDER`, and returns nanoseconds a call ten deep.
pub(crate) fn watched(words: &[String]) -> Result<String, String> {
    let [way, calls, folder] = words else {
        return Err("usage: hearth-benches watched WAY CALLS FOLDER".into());
    };
    let calls: u32 = calls.parse().map_err(|_| "CALLS is a number")?;
    if way == "plain" {
        return Ok(timed(calls, || {
            black_box(plain(DEPTH));
        }));
    }
    let file = Path::new(folder).join(format!("{}.calls", std::process::id()));
    let to_file = || Options::to_file(&file).on("*").law(Law::Block);
    let options = match way.as_str() {
        "off" => Options::to(Destination::Nowhere),
        "nowhere" => Options::to(Destination::Nowhere).on("*"),
        "synchronous" => to_file().mode(Mode::Synchronous),
        _ => to_file(),
    };
    let monitor = Monitor::begin(options).map_err(|error| error.to_string())?;
    let said = timed(calls, || {
        black_box(probed(DEPTH));
    });
    let report = monitor.finish();
    let _ = fs::remove_file(&file);
    match report.lost {
        0 => Ok(said),
        lost => Err(format!("{lost} of {} records are lost", report.emitted)),
    }
}

/// The median over some batches of calls, after one that does not count.
fn timed(calls: u32, mut action: impl FnMut()) -> String {
    let mut times: Vec<f64> = (0..=BATCHES)
        .map(|_| {
            let begin = Instant::now();
            (0..calls).for_each(|_| action());
            begin.elapsed().as_nanos() as f64 / f64::from(calls)
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    format!("{}\n", times[BATCHES / 2])
}
