//! Compares the parallel way of rewriting graphs with one thread that shares nothing.
//!
//! Fairness: all sides do the same rounds with the same result, which is checked; they differ in
//! locks and threads only. The order of the sides turns round each time. Threads are not pinned:
//! the engine starts them itself.

use hearth_benches::measure::in_order;
use hearth_benches::rewrite::{MATCHES, Match, Side, rules, turn, videos};
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_sys::affinity;
use std::fmt::Write as _;

/// The side that others are compared with, first.
const SIDES: [Side; 3] = [Side::Sequential, Side::Threads(1), Side::Threads(2)];
/// Most that one thread of the parallel way may take, beside the sequential one.
const OVERHEAD_GOAL: f64 = 1.1;
/// Least that two threads gain, for all matches but the cheap ones.
const GAIN_GOAL: f64 = 1.7;

/// Compares the sides for each match.
pub(crate) fn rewrite(effort: Effort) -> Result<String, String> {
    println!("rewrite: what does the parallel way cost with one thread, and gain with two?");
    println!(
        "  made-up videos, 20 related ones each; {} cores, {} runs of each; goals: {OVERHEAD_GOAL} \
         times the sequential time with one thread, {GAIN_GOAL} times as fast with two",
        affinity::allowed().len(),
        effort.repeats
    );
    let mut rows = String::new();
    for of in MATCHES
        .iter()
        .filter(|of| !effort.brief || of.videos < 100_000)
    {
        rows += &row(of, effort.repeats)?;
    }
    Ok(rows)
}

fn name(side: Side) -> String {
    match side {
        Side::Sequential => "sequential".to_owned(),
        Side::Threads(1) => "1 thread".to_owned(),
        Side::Threads(threads) => format!("{threads} threads"),
    }
}

fn row(of: &Match, repeats: usize) -> Result<String, String> {
    let (graph, rules) = (videos(of.videos), rules(of));
    let mut answers = Vec::new();
    let kept = in_order(
        SIDES.len(),
        repeats,
        |order| order.rotate_left(1),
        |side| {
            let (time, applications, rounds) = turn(&graph, &rules, SIDES[side]);
            answers.push((applications, rounds));
            Ok((time.as_secs_f64(), false))
        },
    )?;
    let (applications, rounds) = answers[0];
    if answers.iter().any(|answer| *answer != answers[0]) {
        return Err(format!("match {}: sides differ: {answers:?}", of.name));
    }
    println!(
        "  match {}: {}; {} videos, {applications} applications in {rounds} rounds",
        of.name, of.question, of.videos
    );
    let mut rows = String::new();
    for (place, side) in SIDES.into_iter().enumerate() {
        let own = kept[place].values.as_slice();
        let found = Summary::of(own).ok_or("no measurements")?;
        let mut line = format!("    {:10} {:8.4} s", name(side), found.median);
        if place > 0 {
            let beside = ratio(own, &kept[0].values).ok_or("no measurements")?;
            let _ = write!(
                line,
                "; {:.1} % [{:.1}, {:.1}] of the sequential time",
                beside.value * 100.0,
                beside.low * 100.0,
                beside.high * 100.0
            );
            let _ = writeln!(
                rows,
                "rewrite {} {},{repeats},{},{},{},{},{}",
                of.name,
                name(side),
                found.median,
                Summary::of(&kept[0].values).map_or(0.0, |found| found.median),
                beside.value,
                beside.low,
                beside.high
            );
        }
        println!("{line}");
    }
    Ok(rows)
}

/// Lets every side work on a small graph, for its answer.
pub(crate) fn check() -> Result<(), String> {
    let graph = videos(1500);
    for of in &MATCHES {
        let rules = rules(of);
        let answers = SIDES.map(|side| {
            let (_, applications, rounds) = turn(&graph, &rules, side);
            (applications, rounds)
        });
        if answers.iter().any(|answer| *answer != answers[0]) {
            return Err(format!("match {}: sides differ: {answers:?}", of.name));
        }
    }
    Ok(())
}
