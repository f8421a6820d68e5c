//! Compares transactional memory with its peer and with one lock around the structure, by one and
//! two threads.
//!
//! Fairness: every side does the same work on its own data, with the same random numbers in the
//! same turn; threads are pinned; the order of the sides turns round each time. fast-stm compares
//! what it has read at the end only, so a transaction of it may walk in a circle, and its sides
//! bound their way.

use hearth_benches::measure::in_order;
use hearth_benches::runtime::Effort;
use hearth_benches::stm::{ROWS, Row, THREADS, turn};
use hearth_stats::{Summary, ratio};
use hearth_sys::affinity;
use std::fmt::Write as _;
use std::time::Duration;

/// Length of a turn.
const TURN: Duration = Duration::from_millis(200);
/// Sides that Hearth's are compared with, and the goals: the peer twice, and a lock where one
/// thread needs none.
const PEERS: [&str; 3] = ["fast-stm", "mutex", "parking_lot"];

/// Compares the sides in each row.
pub(crate) fn stm(effort: Effort) -> Result<String, String> {
    let duration = if effort.brief { TURN / 10 } else { TURN };
    println!(
        "stm: what do transactions cost beside fast-stm 0.5 and one lock around the structure?"
    );
    println!(
        "  {} cores; turns of {} ms, {} of each; goals: twice fast-stm, and by one thread a lock",
        affinity::allowed().len(),
        duration.as_millis(),
        effort.repeats
    );
    let mut rows = String::new();
    for of in ROWS {
        println!("  {}: {}", of.name, of.question);
        for threads in THREADS {
            println!(
                "    {threads} thread{}",
                if threads == 1 { "" } else { "s" }
            );
            rows += &row(of, threads, duration, effort.repeats)?;
        }
    }
    Ok(rows)
}

fn row(of: &Row, threads: usize, duration: Duration, repeats: usize) -> Result<String, String> {
    let sides = (of.sides)();
    for side in &sides {
        turn(side, threads, duration / 4, 1)?;
    }
    let mut turns = vec![1; sides.len()];
    let kept = in_order(
        sides.len(),
        repeats,
        |order| order.rotate_left(1),
        |side| {
            turns[side] += 1;
            Ok((turn(&sides[side], threads, duration, turns[side])?, false))
        },
    )?;
    let rates = |name: &str| {
        let place = sides.iter().position(|side| side.name == name);
        place.map_or(&[][..], |place| kept[place].values.as_slice())
    };
    let mut rows = String::new();
    for side in &sides {
        let own = rates(side.name);
        let found = Summary::of(own).ok_or("no measurements")?;
        let mut line = format!(
            "      {:12} {:8.3} million a second",
            side.name,
            found.median / 1e6
        );
        for peer in PEERS.into_iter().filter(|peer| *peer != side.name) {
            let beside = ratio(own, rates(peer)).ok_or("no measurements")?;
            let _ = write!(
                line,
                "; {:.2} [{:.2}, {:.2}] of {peer}",
                beside.value, beside.low, beside.high
            );
            let _ = writeln!(
                rows,
                "stm {} threads {threads} {} to {peer},{repeats},{},{},{},{},{}",
                of.name,
                side.name,
                found.median,
                Summary::of(rates(peer)).map_or(0.0, |found| found.median),
                beside.value,
                beside.low,
                beside.high
            );
        }
        println!("{line}");
    }
    Ok(rows)
}

/// Lets every side work for a moment, for its answer.
pub(crate) fn check() -> Result<(), String> {
    ROWS.iter().try_for_each(hearth_benches::stm::check)
}
