//! Benchmarks of the command itself: how fast it checks, how soon a program runs; and those whose
//! results do not compare two programs.

use hearth_benches::measure::{pin, run, undisturbed};
use hearth_benches::peers::beside;
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_testing::large;
use hearth_testing::toolchain::Workshop;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A name and a measurement that prints and returns a row of the record.
pub(crate) type Measurement = (&'static str, fn(Effort) -> Result<String, String>);

pub(crate) const BENCHMARKS: [Measurement; 15] = [
    ("check-speed", |effort| check_speed(effort.repeats)),
    ("run-latency", |effort| run_latency(effort.repeats)),
    ("first-run", |effort| first_run(effort.repeats)),
    ("pair-latency", crate::pair_latency::pair_latency),
    ("message-model", crate::message_model::message_model),
    ("heaps", crate::heaps_command::heaps),
    ("cachet", crate::cachet_command::cachet),
    ("futures", crate::futures_command::futures),
    ("servers", crate::servers_command::servers),
    ("sync", crate::sync_command::sync),
    ("stm", crate::stm_command::stm),
    ("rewrite", crate::rewrite_command::rewrite),
    ("reorder", crate::reorder_command::reorder),
    ("watch", crate::watch_command::watch),
    ("collect", crate::collect_command::collect),
];

const LINES: usize = 100_000;
const SEED: u64 = 2013;
/// Lines a second.
const CHECK_GOAL: f64 = 500_000.0;
const RUN_GOAL_MS: f64 = 20.0;
const FIRST_RUN_GOAL_MS: f64 = 1000.0;

const HELLO: &str = "printString(\"hello\\n\")\n";

/// The command with a cache of its own.
fn command(workshop: &Workshop) -> Result<Command, String> {
    let mut command = Command::new(beside("hearth", "use benches/run")?);
    command.env("XDG_CACHE_HOME", workshop.path().join("cache"));
    Ok(command)
}

fn write(workshop: &Workshop, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = workshop.path().join(name);
    fs::write(&path, text).map_err(|error| error.to_string())?;
    Ok(path)
}

/// Measures how many lines a second `hearth check` reads. The whole command is timed, from its
/// start to its end, on one core; the text is generated from a fixed seed and has no mistakes.
fn check_speed(repeats: usize) -> Result<String, String> {
    println!("check-speed: how many lines a second does `hearth check` read?");
    println!("  {LINES} generated lines (seed {SEED}), the whole command, elapsed time, one core");
    let workshop = Workshop::new("check-speed")?;
    let text = large::program(LINES, SEED);
    let lines = text.lines().count() as f64;
    let path = write(&workshop, "large.isf", &text)?;
    let cores = pin(1)?;
    let kept = undisturbed(repeats, || {
        let ran = run(command(&workshop)?.arg("check").arg(&path), "")?;
        Ok((lines / ran.times.wall, ran.disturbed))
    })?;
    let discarded = kept.discarded;
    let speed = Summary::of(&kept.values).ok_or("no measurements")?;
    let reached = if speed.median >= CHECK_GOAL {
        "reached"
    } else {
        "MISSED"
    };
    println!(
        "  median {:.0} lines/s, quartiles {:.0} to {:.0} ({repeats} runs, cores {cores:?}, \
         {discarded} disturbed ones discarded); goal {CHECK_GOAL:.0} {reached}\n",
        speed.median, speed.lower, speed.upper
    );
    Ok(format!("check-speed,{repeats},{},,,,", speed.median))
}

/// Measures what `hearth run` adds to an unchanged hello. The built program runs beside it, in
/// turn.
fn run_latency(repeats: usize) -> Result<String, String> {
    println!("run-latency: what does `hearth run` of an unchanged program add to the program?");
    println!("  hello, elapsed time; the executable of `hearth build` runs in turn with it");
    let workshop = Workshop::new("run-latency")?;
    let path = write(&workshop, "hello.isf", HELLO)?;
    let built = workshop.path().join("hello");
    run(
        command(&workshop)?
            .arg("build")
            .arg(&path)
            .arg("-o")
            .arg(&built),
        "",
    )?;
    // Short runs: many of them.
    let rounds = repeats * 5;
    let kept = undisturbed(rounds, || {
        let ran = run(command(&workshop)?.arg("run").arg(&path), "")?;
        let plain = run(&mut Command::new(&built), "")?;
        if ran.stdout != "hello\n" || plain.stdout != "hello\n" {
            return Err(format!(
                "hello says {:?} and {:?}",
                ran.stdout, plain.stdout
            ));
        }
        let disturbed = ran.disturbed || plain.disturbed;
        Ok(((ran.times.wall, plain.times.wall), disturbed))
    })?;
    let (through, direct): (Vec<_>, Vec<_>) = kept.values.into_iter().unzip();
    let both = Summary::of(&through).zip(Summary::of(&direct));
    let ((with, without), ratio) = both
        .zip(ratio(&through, &direct))
        .ok_or("no measurements")?;
    let added = (with.median - without.median) * 1e3;
    let reached = if added < RUN_GOAL_MS {
        "reached"
    } else {
        "MISSED"
    };
    println!(
        "  hearth run {:.2} ms, the program {:.2} ms: {added:.2} ms more ({rounds} runs); goal \
         {RUN_GOAL_MS} ms {reached}\n",
        with.median * 1e3,
        without.median * 1e3
    );
    Ok(format!(
        "run-latency,{rounds},{},{},{},{},{}",
        with.median, without.median, ratio.value, ratio.low, ratio.high
    ))
}

/// Measures the first `hearth run` of hello, with an empty cache.
fn first_run(repeats: usize) -> Result<String, String> {
    println!("first-run: how long does the first `hearth run` of hello take?");
    println!("  elapsed time, the cache is emptied before each run; the C compiler counts");
    let workshop = Workshop::new("first-run")?;
    let path = write(&workshop, "hello.isf", HELLO)?;
    let kept = undisturbed(repeats, || {
        // It is not there before the first run.
        let _ = fs::remove_dir_all(workshop.path().join("cache"));
        let ran = run(command(&workshop)?.arg("run").arg(&path), "")?;
        Ok((ran.times.wall, ran.disturbed))
    })?;
    let discarded = kept.discarded;
    let time = Summary::of(&kept.values).ok_or("no measurements")?;
    let median = time.median * 1e3;
    let reached = if median < FIRST_RUN_GOAL_MS {
        "reached"
    } else {
        "MISSED"
    };
    println!(
        "  median {median:.0} ms, quartiles {:.0} to {:.0} ({repeats} runs, {discarded} disturbed \
         ones discarded); goal {FIRST_RUN_GOAL_MS} ms {reached}\n",
        time.lower * 1e3,
        time.upper * 1e3
    );
    Ok(format!("first-run,{repeats},{},,,,", time.median))
}
