//! Figures computed from runs: each is a ratio with its interval, or a deviation.

use super::equivalence::Deviation;
use super::options::Experiment;
use super::plan::{BANK, UNTRACED};
use super::results::Results;
use hearth_stats::{Ratio, interval, median, ratio};
use hearth_transactions::kernels::Name;

/// The ratio of a figure of the bank under two ways.
#[must_use]
pub fn bank(results: &Results, figure: &str, of: &str, to: &str) -> Option<Ratio> {
    let experiment = match of {
        "seen" | "outside-reduced" | "outside-full" => Experiment::Outside,
        _ => Experiment::Bank,
    };
    of_program(results, experiment, BANK, figure, of, to)
}

/// The share of the untraced bank's throughput that a way leaves.
#[must_use]
pub fn throughput(results: &Results, tracing: &str) -> Option<Ratio> {
    bank(results, "rate", tracing, UNTRACED)
}

/// The ratio of a figure of a program under two ways.
#[must_use]
pub fn of_program(
    results: &Results,
    experiment: Experiment,
    program: &str,
    figure: &str,
    of: &str,
    to: &str,
) -> Option<Ratio> {
    let runs = |tracing| {
        let cell = results.found(experiment, program, tracing)?;
        Some(cell.runs(figure))
    };
    ratio(runs(of)?, runs(to)?)
}

/// The deviation of a way's aborts a transaction from those without traces.
#[must_use]
pub fn deviation(results: &Results, experiment: Experiment, tracing: &str) -> Option<Deviation> {
    let runs = |tracing| {
        let cell = results.found(experiment, BANK, tracing)?;
        Some(cell.runs("aborts"))
    };
    Deviation::of(runs(tracing)?, runs(UNTRACED)?)
}

/// The geometric mean over the ten programs of the ratios of a figure under two ways. None if one
/// of the programs is missing.
#[must_use]
pub fn suite(results: &Results, figure: &str, of: &str, to: &str) -> Option<Ratio> {
    let mut lists = Vec::new();
    for name in Name::SUITE {
        for tracing in [of, to] {
            let cell = results.found(Experiment::Kernels, name.id(), tracing)?;
            lists.push(cell.runs(figure));
        }
    }
    interval(&lists, |drawn| {
        let mut logarithms = 0.0;
        for pair in drawn.chunks(2) {
            logarithms += (median(&pair[0])? / median(&pair[1])?).ln();
        }
        let mean = (logarithms / (drawn.len() / 2) as f64).exp();
        mean.is_finite().then_some(mean)
    })
}

/// Ways of the source whose traces are not compressed.
pub const UNCOMPRESSED: [&str; 6] = [
    "reduced-bin10k",
    "reduced-bin1m",
    "full-ascii",
    "full-bin1",
    "full-bin10k",
    "full-bin1m",
];
/// Those with compressors.
pub const COMPRESSED: [&str; 3] = ["full-lz4-1ct", "full-lz4-2ct", "full-lz4-3ct"];

/// The smallest throughput that some ways leave.
#[must_use]
pub fn least(results: &Results, ways: &[&str]) -> Option<Ratio> {
    let all = ways.iter().filter_map(|way| throughput(results, way));
    all.min_by(|one, other| one.value.total_cmp(&other.value))
}

/// The largest.
#[must_use]
pub fn most(results: &Results, ways: &[&str]) -> Option<Ratio> {
    let all = ways.iter().filter_map(|way| throughput(results, way));
    all.max_by(|one, other| one.value.total_cmp(&other.value))
}

/// A figure of ours in words, by the name that the table of published figures has.
#[must_use]
pub fn in_words(results: &Results, name: &str) -> Option<String> {
    let ratio_words = |ratio: Ratio| {
        let Ratio { value, low, high } = ratio;
        format!("{value:.3} [{low:.3}, {high:.3}]")
    };
    let (kind, rest) = name.split_once(' ')?;
    match (kind, rest.split_once('/')) {
        ("throughput", _) => throughput(results, rest).map(ratio_words),
        ("least", _) if rest == "uncompressed" => least(results, &UNCOMPRESSED).map(ratio_words),
        ("span", _) if rest == "compressed" => {
            let (low, high) = (least(results, &COMPRESSED)?, most(results, &COMPRESSED)?);
            Some(format!("{:.3} to {:.3}", low.value, high.value))
        }
        ("deviation", _) => {
            let experiment = match rest.starts_with("outside") {
                true => Experiment::Outside,
                false => Experiment::Bank,
            };
            deviation(results, experiment, rest).map(|deviation| deviation.words())
        }
        ("bytes", Some((of, to))) => bank(results, "bytes_a_txn", of, to).map(ratio_words),
        ("suite-rate", Some((of, to))) => suite(results, "seconds", to, of).map(ratio_words),
        ("suite-bytes", Some((of, to))) => suite(results, "bytes", of, to).map(ratio_words),
        ("labyrinth", Some((of, to))) => {
            let (program, experiment) = (Name::Labyrinth.id(), Experiment::Kernels);
            of_program(results, experiment, program, "seconds", to, of).map(ratio_words)
        }
        ("memory", _) => {
            let cell = results.found(Experiment::Bank, BANK, rest)?;
            Some(format!("{:.1} MB", cell.median("grown_kib")? / 1024.0))
        }
        _ => None,
    }
}
