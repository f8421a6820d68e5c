//! Costs and gains of `Placement::Talk` for components in Rust.

use hearth_benches::embedded::{SHAPES, Shape, run as run_shape};
use hearth_benches::measure::{Kept, in_turn, pin, run};
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_sys::affinity;
use std::process::Command;

const FAIRNESS: &str = "The same components in a process of their own with Placement::Talk and with \
    Placement::WithCreator, in turn, on the same cores; from the first message to the last; CPU time of all that the \
    process does, the placer's own included. What it gains is beside a plan that keeps the two of each pair apart, where both begin.";
/// Name that tells Talk's process apart.
const TALK: &str = "talk";
const OS: &str = "os";

pub(crate) fn names<'a>() -> impl Iterator<Item = &'a str> {
    SHAPES.iter().map(|shape| shape.name)
}

/// The command `hearth-benches embedded SHAPE PLACEMENT ROUNDS`, which this program calls itself:
/// prints seconds and a sum.
pub(crate) fn embedded(words: &[String]) -> Result<String, String> {
    let [name, placement, rounds] = words else {
        return Err("embedded has a shape, a placement and a number of rounds".into());
    };
    let known = SHAPES.iter().find(|shape| shape.name == name);
    let shape = Shape {
        rounds: rounds.parse().map_err(|_| "no number of rounds")?,
        ..*known.ok_or("no such shape")?
    };
    let cores = affinity::allowed();
    let (seconds, sum) =
        run_shape(&shape, placement == TALK, &cores).map_err(|error| error.to_string())?;
    Ok(format!("{seconds} {sum}\n"))
}

/// Times of one run, in seconds.
#[derive(Clone, Copy)]
struct Took {
    /// From the first message to the last.
    wall: f64,
    /// Time on all cores, the placer's own included.
    cpu: f64,
}

/// Runs once: its times, its sum, and whether it was disturbed.
fn once(shape: &Shape, placement: &str, rounds: u32) -> Result<(Took, String, bool), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let words = ["embedded", shape.name, placement, &rounds.to_string()];
    let ran = run(Command::new(this).args(words), "")?;
    let said = ran.stdout.trim().split_once(' ');
    let (seconds, sum) = said.ok_or_else(|| format!("it says {:?}", ran.stdout))?;
    let wall = seconds.parse().map_err(|_| "it says no time")?;
    let cpu = ran.times.cpu;
    Ok((Took { wall, cpu }, sum.to_owned(), ran.disturbed))
}

/// Both ways give the same answer, of a few rounds.
pub(crate) fn check(shape: &Shape) -> Result<(), String> {
    let rounds = 100;
    let [(_, one, _), (_, other, _)] = [once(shape, OS, rounds)?, once(shape, TALK, rounds)?];
    match one == other {
        true => Ok(()),
        false => Err(format!("the sums are {one} and {other}")),
    }
}

/// Measures one shape, prints, and returns a row of the record.
pub(crate) fn row(shape: &Shape, effort: Effort) -> Result<String, String> {
    println!("{}: {}", shape.name, shape.question);
    println!("  {FAIRNESS}");
    check(shape)?;
    let cores = pin(shape.workers)?;
    let rounds = shape.rounds / if effort.brief { 4 } else { 1 };
    let sides = [OS, TALK];
    let kept = in_turn(sides.len(), effort.repeats, |side| {
        let (took, _, disturbed) = once(shape, sides[side], rounds)?;
        Ok((took, disturbed))
    })?;
    let [os, talk] = &kept[..] else {
        return Err("two sides were measured".into());
    };
    let of = |kept: &Kept<Took>, what: fn(&Took) -> f64| kept.values.iter().map(what).collect();
    let [os_walls, talk_walls]: [Vec<f64>; 2] = [os, talk].map(|side| of(side, |took| took.wall));
    let [os_cpus, talk_cpus]: [Vec<f64>; 2] = [os, talk].map(|side| of(side, |took| took.cpu));
    let both = Summary::of(&os_walls).zip(Summary::of(&talk_walls));
    let ratios = ratio(&talk_walls, &os_walls).zip(ratio(&talk_cpus, &os_cpus));
    let ((os_s, talk_s), (over, cpu)) = both.zip(ratios).ok_or("no measurements")?;
    let round_ns = |seconds: f64| 1e9 * seconds / f64::from(rounds) / shape.pairs as f64;
    println!(
        "  Os {:.1} ns, Talk {:.1} ns for each round trip ({} runs of each, cores {cores:?}, {} \
         disturbed ones discarded)",
        round_ns(os_s.median),
        round_ns(talk_s.median),
        effort.repeats,
        os.discarded + talk.discarded
    );
    println!(
        "  with Talk over without: time {:.3} [{:.3}, {:.3}], CPU time {:.3} [{:.3}, {:.3}], for \
         information\n",
        over.value, over.low, over.high, cpu.value, cpu.low, cpu.high
    );
    Ok(format!(
        "{},{},{},{},{},{},{}",
        shape.name, effort.repeats, talk_s.median, os_s.median, over.value, over.low, over.high
    ))
}
