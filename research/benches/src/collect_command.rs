//! Measures the collection of components: how soon a million are gone, whether a server that
//! forgets its clients stays small, and what collections cost where nothing is garbage.

use hearth_benches::measure::{in_turn, peak, pin, run, undisturbed};
use hearth_benches::peers::build_insense;
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_testing::toolchain::Workshop;
use hearth_watch::Recording;
use std::fs::File;
use std::process::Command;

const OPTION: &str = "HEARTH_COLLECT";
const CORES: usize = 2;
/// Goals: seconds for a million, and for which one may hold up a worker.
const GOAL_S: f64 = 1.0;
const GOAL_HELD_S: f64 = 1e-3;
/// The most bytes that a hundred times as many clients may add.
const GOAL_GROWTH: f64 = 8.0 * (1 << 20) as f64;

/// Programs in which nothing is garbage: where it is, and its input.
const LIVING: [(&str, &str); 4] = [
    ("collecting/living", "100000\n"),
    ("runtime/create", "2000\n"),
    ("runtime/ping-pong", "20000000\n0\n0\n"),
    ("runtime/ring", "20000\n0\n0\n"),
];

pub(crate) fn collect(effort: Effort) -> Result<String, String> {
    println!("collect: how soon are dead components gone, and what does it cost the living?");
    let cores = pin(CORES)?;
    println!("  cores {cores:?}, {} workers", cores.len());
    let workshop = Workshop::new("collect")?;
    let rows = [
        dead(&workshop, effort)?,
        flat(&workshop, effort)?,
        living(&workshop, effort)?,
    ];
    println!();
    Ok(rows.join("\n"))
}

fn verdict(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "MISSED" }
}

/// Measures the time from `collectComponents()` until the last of a million has ended. They hold
/// each other in pairs, and 17 objects each in a heap of their own. The figures are from the
/// recording, whose cost is included.
fn dead(workshop: &Workshop, effort: Effort) -> Result<String, String> {
    let pairs = if effort.brief { 50_000 } else { 500_000 };
    let program = build_insense("collecting/dead", workshop.path())?;
    let file = workshop.path().join("watch");
    let kept = undisturbed(effort.repeats, || {
        let mut command = Command::new(&program);
        command
            .env(OPTION, "off")
            .env("HEARTH_WATCH", &file)
            .env("HEARTH_WATCH_WINDOW", "65536");
        let ran = run(&mut command, &format!("{pairs}\n"))?;
        let file = File::open(&file).map_err(|error| error.to_string())?;
        let recording = Recording::totals_of_file(&file).map_err(|unfit| unfit.to_string())?;
        let collected = recording.collected;
        if collected.components != 2 * pairs {
            return Err(format!("{} were collected", collected.components));
        }
        let seconds = [collected.ns, collected.held_ns_max].map(|ns| ns as f64 / 1e9);
        Ok((seconds, ran.disturbed))
    })?;
    let (took, held): (Vec<f64>, Vec<f64>) =
        kept.values.iter().map(|&[took, held]| (took, held)).unzip();
    let took = Summary::of(&took).ok_or("no measurements")?;
    let held_max = held.iter().copied().fold(0.0, f64::max);
    let goal = match effort.brief {
        true => String::new(),
        false => format!("; goal {GOAL_S} s {}", verdict(took.median <= GOAL_S)),
    };
    println!(
        "  {} dead: {:.3} s, quartiles {:.3} to {:.3}{goal}",
        2 * pairs,
        took.median,
        took.lower,
        took.upper
    );
    println!(
        "  longest hold of a worker: {:.0} µs; goal {:.0} µs {}",
        held_max * 1e6,
        GOAL_HELD_S * 1e6,
        verdict(held_max <= GOAL_HELD_S)
    );
    Ok(format!(
        "collect-dead,{},{},{held_max},,,",
        effort.repeats, took.median
    ))
}

/// Measures the peak memory of a server that forgets its clients, by their number.
fn flat(workshop: &Workshop, effort: Effort) -> Result<String, String> {
    let many: u32 = if effort.brief { 1_000_000 } else { 10_000_000 };
    let program = build_insense("collecting/forgotten", workshop.path())?;
    let mut command = Command::new(&program);
    command.env(OPTION, "auto");
    let of = |clients: u32| peak(&command, &format!("{clients}\n"));
    let (few_bytes, _) = of(many / 100)?;
    let (many_bytes, _) = of(many)?;
    println!(
        "  a server that forgets its clients: {:.1} MB with {}, {:.1} MB with {many}; goal 8 MiB more {}",
        few_bytes / 1e6,
        many / 100,
        many_bytes / 1e6,
        verdict(many_bytes - few_bytes <= GOAL_GROWTH)
    );
    Ok(format!("collect-flat,1,{many_bytes},{few_bytes},,,"))
}

/// Measures programs in which nothing is garbage with collections as they come and without.
fn living(workshop: &Workshop, effort: Effort) -> Result<String, String> {
    let mut rows = Vec::new();
    for (stem, input) in LIVING {
        let program = build_insense(stem, workshop.path())?;
        let name = stem.rsplit('/').next().unwrap_or(stem);
        let kept = in_turn(2, effort.repeats, |side| {
            let mut command = Command::new(&program);
            command.env(OPTION, ["auto", "off"][side]);
            let ran = run(&mut command, input)?;
            Ok((ran.times.wall, ran.disturbed))
        })?;
        let [with, without] = &kept[..] else {
            return Err("there are two sides".to_owned());
        };
        let ratio = ratio(&with.values, &without.values).ok_or("no measurements")?;
        println!(
            "  {name}, nothing is garbage: {:.3} [{:.3}, {:.3}] times the time without collections",
            ratio.value, ratio.low, ratio.high
        );
        rows.push(format!(
            "collect-{name},{},,,{},{},{}",
            effort.repeats, ratio.value, ratio.low, ratio.high
        ));
    }
    Ok(rows.join("\n"))
}
