//! Calls and loops beside others: what `--futures` is worth on the cores at hand, and what it costs
//! where there is nothing to gain.

use hearth_benches::measure::{Run, in_order, run, side_by_side};
use hearth_benches::peers::{build_insense_with, folder};
use hearth_benches::runtime::Effort;
use hearth_lang::compile::CompileOptions;
use hearth_stats::{Ratio, Summary, ratio};
use hearth_sys::affinity;
use hearth_testing::toolchain::Workshop;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs, in `research/benches/futures`.
const PROGRAMS: [&str; 15] = [
    "fibonacci",
    "filter",
    "integration",
    "knapsack",
    "life",
    "mandelbrot",
    "matrix",
    "merge-sort",
    "nearest",
    "parser",
    "primes",
    "queens",
    "quicksort",
    "rules",
    "trees",
];

/// The goals: the geometric mean of the ratios on two cores, and the least of them, with one worker
/// as well.
const MEAN_MIN: f64 = 1.6;
const LEAST: f64 = 0.98;

/// Runs of each side, at most: a run takes up to two seconds.
const REPEATS_MAX: usize = 7;

/// Share of a core that other programs may take before a run does not count: futures are worth
/// nothing on cores that others have.
const OTHERS_MAX: f64 = 0.06;

/// A side: compiled with futures or without, and the number of workers if given.
const SIDES: [(bool, Option<&str>); 4] = [
    (false, None),
    (true, None),
    (false, Some("1")),
    (true, Some("1")),
];

/// A side beside those: as many copies of the program without futures at once as there are cores.
/// No division of one copy's work can be faster than what the cores do of theirs together.
const COPIES: usize = SIDES.len();

/// The two executables of a program.
struct Pair {
    plain: PathBuf,
    beside: PathBuf,
    _workshops: [Workshop; 2],
}

impl Pair {
    fn build(name: &str) -> Result<Pair, String> {
        let stem = format!("futures/{name}");
        let workshops = [Workshop::new("futures-plain")?, Workshop::new("futures")?];
        let with = |futures| CompileOptions {
            futures,
            ..CompileOptions::default()
        };
        Ok(Pair {
            plain: build_insense_with(&stem, workshops[0].path(), &with(false))?,
            beside: build_insense_with(&stem, workshops[1].path(), &with(true))?,
            _workshops: workshops,
        })
    }

    fn run(&self, side: usize) -> Result<Run, String> {
        let (has_futures, workers) = SIDES[side];
        let program: &Path = if has_futures {
            &self.beside
        } else {
            &self.plain
        };
        let mut command = Command::new(program);
        command
            .env_remove("HEARTH_CARRIER")
            .env_remove("HEARTH_FUTURES");
        match workers {
            Some(count) => command.env("HEARTH_WORKERS", count),
            None => command.env_remove("HEARTH_WORKERS"),
        };
        run(&mut command, "")
    }
}

/// Whether others had the cores for a noticeable part of a run; `busy` are the seconds for which
/// all cores were at work.
fn is_disturbed(ran: &Run, busy: f64) -> bool {
    let others = busy - ran.times.cpu;
    ran.disturbed || others > OTHERS_MAX * ran.times.wall + 0.02
}

/// Checks that the programs print the same in order, beside, and wherever they may.
pub(crate) fn check() -> Result<(), String> {
    for name in PROGRAMS {
        let pair = Pair::build(name)?;
        let expected = pair.run(0)?.stdout;
        let always = run(
            Command::new(&pair.beside).env("HEARTH_FUTURES", "always"),
            "",
        )?;
        for found in [pair.run(1)?.stdout, pair.run(3)?.stdout, always.stdout] {
            if found != expected {
                return Err(format!("{name}: {found:?} instead of {expected:?}"));
            }
        }
    }
    Ok(())
}

/// Measures all programs.
pub(crate) fn futures(effort: Effort) -> Result<String, String> {
    let repeats = effort.repeats.min(REPEATS_MAX);
    println!("futures: how much faster are programs whose calls and loops run beside each other?");
    println!(
        "  The same text compiled with --futures and without, by cc -O3; {repeats} runs of each side in turn, \
         elapsed time with start and end. The programs are in {}.",
        folder().join("futures").display()
    );
    println!(
        "  program        in order   beside: faster        copies: throughput    one worker: beside \
         over in order"
    );
    let mut rows = String::new();
    let cores = affinity::allowed();
    let (mut logs, mut limits) = (Vec::new(), Vec::new());
    let mut below = Vec::new();
    for name in PROGRAMS {
        let pair = Pair::build(name)?;
        let expected = pair.run(0)?.stdout;
        let kept = in_order(
            SIDES.len() + 1,
            repeats,
            |order| order.reverse(),
            |side| {
                if side == COPIES {
                    let copies = cores.iter().map(|_| Command::new(&pair.plain)).collect();
                    return side_by_side(copies, &cores);
                }
                let before = busy_seconds();
                let ran = pair.run(side)?;
                let disturbed = is_disturbed(&ran, busy_seconds() - before);
                match ran.stdout == expected {
                    true => Ok((ran.times.wall, disturbed)),
                    false => Err(format!("{name}: {:?}, not {expected:?}", ran.stdout)),
                }
            },
        )?;
        let walls: Vec<&[f64]> = kept.iter().map(|kept| kept.values.as_slice()).collect();
        let faster = ratio(walls[0], walls[1]).ok_or("no measurements")?;
        let alone = ratio(walls[2], walls[3]).ok_or("no measurements")?;
        // The cores' throughput, as a multiple of one's.
        let copies = ratio(walls[0], walls[COPIES]).ok_or("no measurements")?;
        let limit = cores.len() as f64 * copies.value;
        let seconds = Summary::of(walls[0]).ok_or("no measurements")?.median;
        println!(
            "  {name:12} {seconds:8.3} s   {}   {limit:.3}                 {}",
            interval(faster),
            interval(alone)
        );
        logs.push(faster.value.ln());
        limits.push(limit.ln());
        for found in [faster, alone] {
            if found.value < LEAST {
                below.push(name);
            }
        }
        for (what, found) in [("cores", faster), ("one-worker", alone)] {
            let _ = writeln!(
                rows,
                "futures {name} {what},{repeats},{},{seconds},{},{},{}",
                seconds / found.value,
                found.value,
                found.low,
                found.high
            );
        }
    }
    let mean_of = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    let mean = mean_of(&logs);
    let reached = if mean >= MEAN_MIN {
        "reached"
    } else {
        "MISSED"
    };
    println!("  geometric mean {mean:.2}, goal {MEAN_MIN} {reached}");
    println!(
        "  geometric mean of what {} copies at once do in the time of one: {:.2}, which is the limit \
         of these cores",
        cores.len(),
        mean_of(&limits)
    );
    match below.is_empty() {
        true => println!("  none below {LEAST}: goal reached"),
        false => println!("  below {LEAST}: {}: goal MISSED", below.join(", ")),
    }
    Ok(rows)
}

/// Seconds of all cores that were busy, since the start of the machine; counted in hundredths.
fn busy_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let words = text.lines().next().unwrap_or("").split_ascii_whitespace();
    let ticks: Vec<f64> = words.skip(1).filter_map(|word| word.parse().ok()).collect();
    // The fourth and fifth are idle.
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    (ticks.iter().take(8).sum::<f64>() - idle) / 100.0
}

fn interval(found: Ratio) -> String {
    format!("{:.3} [{:.3}, {:.3}]", found.value, found.low, found.high)
}
