//! The figures from which the claims are judged.

use hearth_stats::{Ratio, ratio_of_ratios};
use hearth_transactions::kernels::Name;

use super::figures::{
    COMPRESSED, UNCOMPRESSED, bank, deviation, least, of_program, suite, throughput,
};
use super::options::Experiment;
use super::plan::{BANK, UNTRACED};
use super::published;
use super::results::Results;
use crate::claims::{Claims, Evidence, Size};
use crate::judging::{Figure, Relation};

/// The source's claims, and those that we add.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/transactions/claims.md"),
    size: Size::Factor,
};

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// The measured evidence.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.site.cores.len());
    of_bank(&mut evidence, results);
    of_outside(&mut evidence, results);
    of_kernels(&mut evidence, results);
    ours(&mut evidence, results);
    evidence
}

fn figure(ratio: Ratio) -> Figure {
    Figure::between(ratio.value, ratio.low, ratio.high)
}

/// A ratio in units of a bound, which it is above or below only if its whole interval is.
fn against(ratio: Ratio, bound: f64) -> Figure {
    let Ratio { value, low, high } = ratio;
    let relation = match () {
        () if low > bound => Relation::More,
        () if high < bound => Relation::Less,
        () => Relation::Unclear,
    };
    Figure {
        relation,
        ratio: Some((value / bound, low / bound, high / bound)),
    }
}

fn of_bank(evidence: &mut Evidence, results: &Results) {
    let worst = least(results, &UNCOMPRESSED);
    evidence.put(
        "least uncompressed/76 %",
        worst.map(|ratio| against(ratio, 0.76)),
    );
    for way in COMPRESSED {
        let left = throughput(results, way).map(figure);
        evidence.put(&format!("{way}/untraced"), left);
        let deviation = deviation(results, Experiment::Bank, way);
        let deviation = deviation.map(|deviation| deviation.against(0.15));
        evidence.put(&format!("{way} deviation/15 %"), deviation);
    }
    for (name, figure_name, of, to) in [
        (
            "bytes bin1m/lz4-3ct",
            "bytes_a_txn",
            "full-bin1m",
            "full-lz4-3ct",
        ),
        (
            "memory bin1m/bin10k",
            "grown_kib",
            "full-bin1m",
            "full-bin10k",
        ),
        (
            "memory bin10k/untraced",
            "grown_kib",
            "full-bin10k",
            UNTRACED,
        ),
    ] {
        evidence.put(name, bank(results, figure_name, of, to).map(figure));
    }
    let runs = |experiment, tracing| {
        let cell = results.found(experiment, BANK, tracing)?;
        Some(cell.runs("rate"))
    };
    let kept = || {
        ratio_of_ratios([
            runs(Experiment::Alone, "full-lz4-3ct")?,
            runs(Experiment::Alone, UNTRACED)?,
            runs(Experiment::Bank, "full-lz4-3ct")?,
            runs(Experiment::Bank, UNTRACED)?,
        ])
    };
    evidence.put("lz4-3ct kept by one/all threads", kept().map(figure));
}

fn of_outside(evidence: &mut Evidence, results: &Results) {
    let outside = throughput(results, "outside-reduced");
    evidence.put("outside/untraced", outside.map(figure));
    let runs = |experiment, tracing| {
        let cell = results.found(experiment, BANK, tracing)?;
        Some(cell.runs("rate"))
    };
    // Each beside the untraced runs of its own experiment.
    let beside = |way| {
        ratio_of_ratios([
            runs(Experiment::Bank, way)?,
            runs(Experiment::Bank, UNTRACED)?,
            runs(Experiment::Outside, "outside-reduced")?,
            runs(Experiment::Outside, UNTRACED)?,
        ])
    };
    let all = UNCOMPRESSED.into_iter().filter_map(beside);
    let worst = all.min_by(|one, other| one.value.total_cmp(&other.value));
    evidence.put("least uncompressed/outside", worst.map(figure));
    let own = deviation(results, Experiment::Bank, "full-bin10k");
    let theirs = deviation(results, Experiment::Outside, "outside-reduced");
    if let (Some(own), Some(theirs)) = (own, theirs) {
        evidence.put("bin10k deviation/outside's", own.against(theirs.mean.abs()));
    }
}

fn of_kernels(evidence: &mut Evidence, results: &Results) {
    // The ratio of speeds is that of times, turned round.
    for (name, slower, faster) in [
        ("suite lz4-3ct/zstd", "full-zstd", "full-lz4-3ct"),
        ("suite lz4-3ct/bin10k", "full-bin10k", "full-lz4-3ct"),
    ] {
        let speed = suite(results, "seconds", slower, faster);
        evidence.put(name, speed.map(figure));
    }
    for (name, of, to) in [
        ("suite full bytes/lz4", "full-bin10k", "full-lz4-3ct"),
        ("suite full bytes/zstd", "full-bin10k", "full-zstd"),
        (
            "suite reduced bytes/lz4",
            "reduced-bin10k",
            "reduced-lz4-3ct",
        ),
        ("suite reduced bytes/zstd", "reduced-bin10k", "reduced-zstd"),
    ] {
        evidence.put(name, suite(results, "bytes", of, to).map(figure));
    }
    // The published ratio of the strong codec.
    let smaller = suite(results, "bytes", "full-bin10k", "hearth-full");
    evidence.put(
        "suite full bytes/hearth's/10.79",
        smaller.map(|ratio| against(ratio, 10.79)),
    );
    let labyrinth = of_program(
        results,
        Experiment::Kernels,
        Name::Labyrinth.id(),
        "seconds",
        UNTRACED,
        "full-bin1m",
    );
    evidence.put("labyrinth bin1m/untraced", labyrinth.map(figure));
}

fn ours(evidence: &mut Evidence, results: &Results) {
    for (name, way, bound) in [
        ("hearth-reduced/90 %", "hearth-reduced", 0.9),
        ("hearth-full/70 %", "hearth-full", 0.7),
        ("hearth-full/90 %", "hearth-full", 0.9),
    ] {
        let left = throughput(results, way).map(|ratio| against(ratio, bound));
        evidence.put(name, left);
    }
    for way in ["hearth-reduced", "hearth-full"] {
        let found = deviation(results, Experiment::Bank, way);
        let found = found.map(|deviation| deviation.against(0.05));
        evidence.put(&format!("{way} deviation/5 %"), found);
    }
    let smaller = bank(results, "bytes_a_txn", "full-bin1m", "hearth-full");
    evidence.put(
        "bytes bin1m/hearth-full/25",
        smaller.map(|ratio| against(ratio, 25.0)),
    );
}
