//! Look-ups in a tree larger than the caches, as they come and grouped by subtree: temporal
//! reorganisation.
//!
//! Fairness: the same tree, the same keys (fixed seed) in the same requests; grouping pays for its
//! sorting, within the time measured. Every look-up's answer is checked by the sum.

use hearth::sync::{Mode, Order, Owned};
use hearth_benches::measure::in_order;
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_testing::random::Random;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

const SEED: u64 = 2014;
/// With nodes and slack some 200 MB: beyond the caches of most machines.
const KEYS: u64 = 8 << 20;
/// Look-ups in one request, or posted before one waits.
const GROUPS: [usize; 4] = [64, 1024, 16_384, 131_072];
const LOOK_UPS: usize = 1 << 18;

/// Ways in which look-ups reach the tree.
const SIDES: [&str; 4] = [
    "batch as they come",
    "batch by key",
    "posts as they come",
    "posts by key",
];

struct Tree {
    values: BTreeMap<u64, u64>,
    sum: u64,
}

impl Tree {
    fn look_up(&mut self, key: u64) -> u64 {
        let value = self.values.get(&key).copied().unwrap_or(0);
        self.sum = self.sum.wrapping_add(value);
        value
    }
}

fn sections(depth: usize) -> Result<[Owned<Tree>; 2], String> {
    let tree = || Tree {
        values: (0..KEYS).map(|key| (key, key.wrapping_mul(7))).collect(),
        sum: 0,
    };
    let build = |order| {
        Owned::builder()
            .mode(Mode::Message)
            .order(order)
            .depth(depth as u32)
            .build(tree())
            .map_err(|error| error.to_string())
    };
    Ok([build(Order::Arrival)?, build(Order::Key)?])
}

/// Nanoseconds for a look-up.
fn measure(
    sections: &[Owned<Tree>; 2],
    side: usize,
    group: usize,
    keys: &[u64],
) -> Result<f64, String> {
    let section = &sections[side % 2];
    let before = section.call(|tree| tree.sum);
    let start = Instant::now();
    for part in keys.chunks(group) {
        match side {
            0 => drop(section.call(|tree| {
                part.iter()
                    .map(|key| tree.look_up(*key))
                    .collect::<Vec<_>>()
            })),
            1 => drop(section.batch_by_key(part, |key| **key, |tree, key| tree.look_up(*key))),
            _ => {
                for key in part.iter().copied() {
                    section.post_at(key, move |tree| {
                        tree.look_up(key);
                    });
                }
                section.call(|_| ());
            }
        }
    }
    let ns = start.elapsed().as_nanos() as f64 / keys.len() as f64;
    let wanted = keys.iter().map(|key| key.wrapping_mul(7)).sum::<u64>();
    match section.call(|tree| tree.sum).wrapping_sub(before) == wanted {
        true => Ok(ns),
        false => Err(format!("{} found other values", SIDES[side])),
    }
}

/// Compares the orders for each size of a group.
pub(crate) fn reorder(effort: Effort) -> Result<String, String> {
    let look_ups = if effort.brief { LOOK_UPS / 8 } else { LOOK_UPS };
    println!("reorder: what does it gain to group look-ups by subtree?");
    println!(
        "  a tree of {KEYS} keys, {look_ups} look-ups of one client by message (seed {SEED}), {} of each in turn",
        effort.repeats
    );
    let mut random = Random::new(SEED);
    let keys: Vec<u64> = (0..look_ups)
        .map(|_| random.below(KEYS as usize) as u64)
        .collect();
    let mut rows = String::new();
    for group in GROUPS {
        println!("  groups of {group}");
        let sections = sections(group)?;
        let kept = in_order(
            SIDES.len(),
            effort.repeats,
            |order| order.reverse(),
            |side| Ok((measure(&sections, side, group, &keys)?, false)),
        )?;
        for (side, kept_of) in kept.iter().enumerate() {
            // Beside the same without grouping.
            let base = &kept[side & !1].values;
            let found = Summary::of(&kept_of.values).ok_or("no measurements")?;
            let beside = ratio(base, &kept_of.values).ok_or("no measurements")?;
            println!(
                "    {:20} {:7.1} ns a look-up; {:.2} [{:.2}, {:.2}] of the throughput as they come",
                SIDES[side], found.median, beside.value, beside.low, beside.high
            );
            let _ = writeln!(
                rows,
                "reorder {group} {},{},{},{},{},{},{}",
                SIDES[side],
                effort.repeats,
                found.median,
                Summary::of(base).map_or(0.0, |found| found.median),
                beside.value,
                beside.low,
                beside.high
            );
        }
    }
    Ok(rows)
}
