//! Prints how often the rule for a pair's states invents one, and how often it finds those that
//! are there, on simulated pairs: the figures of the internals' page about the probe. The argument
//! is the number of simulated probes of each kind, 200 if there is none.

#[path = "../tests/simulated/mod.rs"]
mod simulated;

use std::io::Write;

use hearth_probe::pair_states::{PairState, states};
use hearth_probe::pairs::TRANSFERS;
use simulated::{Level, Noise, ROUGH, Simulated, USUAL};

/// Visits of a probe and samples of each: quick and normal with two threads, and normal with many.
const EFFORTS: [(&str, usize, usize); 3] = [
    ("quick", 7, 2048),
    ("normal", 12, 2048),
    ("normal, 16 threads", 12, 512),
];
const NOISES: [(&str, Noise); 2] = [("usual", USUAL), ("rough", ROUGH)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(200), |word| word.parse())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "states invented where there is one, of {count}")?;
    for (noise, of) in NOISES {
        for (effort, visits, samples) in EFFORTS {
            let invented = (0..count).filter(|&seed| {
                let level = Level {
                    ns: 60.0,
                    share: 1.0,
                };
                let mut pair = Simulated::new(&[level], 1.0, of, seed);
                !states(&pair.visits(visits, samples), TRANSFERS).is_empty()
            });
            writeln!(out, "  {noise:6} {effort:20} {}", invented.count())?;
        }
    }
    writeln!(
        out,
        "\ntwo states found where the probe saw both, percent; by ratio, share of the slow one and dwell"
    )?;
    for (noise, of) in NOISES {
        let middle = Simulated::new(&[], 1.0, of, 0).middle();
        for slow in [45.0, 60.0, 124.0] {
            writeln!(out, "  {noise}, 26 and {slow} ns")?;
            for dwell_s in [1e-3, 1e-2, 1.0, 30.0] {
                write!(out, "    {dwell_s:7} s")?;
                for share in [0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95] {
                    let levels = [(26.0, 1.0 - share), (slow, share)];
                    let levels = levels.map(|(ns, share)| Level { ns, share });
                    let tried =
                        (0..count).filter_map(|seed| found(&levels, dwell_s, of, middle, seed));
                    let tried: Vec<Found> = tried.collect();
                    write!(out, "  {}", told(&tried))?;
                }
                writeln!(out)?;
            }
        }
    }
    Ok(())
}

/// Verdict of a probe on a pair with two states.
struct Found {
    is_found: bool,
    covered: usize,
    shares_covered: bool,
}

/// None where the probe met only one of the two.
fn found(levels: &[Level], dwell_s: f64, noise: Noise, middle: f64, seed: u64) -> Option<Found> {
    let mut pair = Simulated::new(levels, dwell_s, noise, seed);
    let visits = pair.visits(12, 2048);
    if pair.times.iter().any(|&times| times < 200) {
        return None;
    }
    let states = states(&visits, TRANSFERS);
    let covers = |(state, level): &(&PairState, &Level)| state.one_way_ns.covers(level.ns * middle);
    let is_found = states.len() == 2;
    Some(Found {
        is_found,
        covered: states.iter().zip(levels).filter(covers).count(),
        shares_covered: is_found && states[1].time_share.covers(levels[1].share),
    })
}

fn told(tried: &[Found]) -> String {
    let found: Vec<&Found> = tried.iter().filter(|one| one.is_found).collect();
    let percent = |part: usize, of: usize| 100.0 * part as f64 / (of.max(1)) as f64;
    let covered = found.iter().map(|one| one.covered).sum();
    let shares = found.iter().filter(|one| one.shares_covered).count();
    format!(
        "{:3.0} ({:3.0} {:3.0})",
        percent(found.len(), tried.len()),
        percent(covered, 2 * found.len()),
        percent(shares, found.len())
    )
}
