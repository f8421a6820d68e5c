//! The figures from which the claims are judged.

use std::collections::BTreeMap;

use super::instance::{Way, Work};
use super::options::Experiment;
use super::published;
use super::results::{Programs, Results};
use crate::claims::{Claims, Evidence, Size};
use crate::judging::Figure;

/// The source's claims, and those that we add.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/coscheduling/claims.md"),
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
    let mut evidence = Evidence::new(&CLAIMS, results.cpus());
    of_barriers(&mut evidence, results);
    of_packing(&mut evidence, results);
    of_half(&mut evidence, results);
    evidence.explain(explained(results));
    evidence
}

/// Programs of all CPUs at a barrier.
fn spinning(results: &Results, way: Way, count: usize) -> Programs {
    Programs {
        count,
        threads: results.cpus(),
        work: Work::Barrier,
        way,
        is_isolated: false,
    }
}

/// Runs of a figure, each by a bound.
fn by(runs: Option<&[f64]>, bound: f64) -> Option<Vec<f64>> {
    Some(runs?.iter().map(|run| run / bound).collect())
}

/// Runs of the part that is missing of the whole, each by a bound.
fn missing(runs: Option<&[f64]>, bound: f64) -> Option<Vec<f64>> {
    Some(runs?.iter().map(|run| (1.0 - run) / bound).collect())
}

/// A figure of the runs of a ratio whose other side is exact.
fn of_ratios(runs: Option<Vec<f64>>) -> Option<Figure> {
    Figure::of_runs(&runs?, &[1.0])
}

fn of_barriers(evidence: &mut Evidence, results: &Results) {
    let runs = |way, count, figure: &str| {
        let programs = spinning(results, way, count);
        results.found(Experiment::Barriers, programs, figure)
    };
    for way in [Way::Stop, Way::Gate] {
        let name = way.id();
        let together = runs(way, 2, "together");
        let put = |evidence: &mut Evidence, name: String, of: Option<Vec<f64>>| {
            evidence.put(&name, of_ratios(of));
        };
        put(
            evidence,
            format!("{name} not together/0.02 %"),
            missing(together, 0.0002),
        );
        put(
            evidence,
            format!("{name} not together/1 %"),
            missing(together, 0.01),
        );
        let skew = |figure| runs(way, 2, figure);
        put(
            evidence,
            format!("{name} skew/2 µs"),
            by(skew("skew_us"), 2.0),
        );
        put(
            evidence,
            format!("{name} skew of 99 %/200 µs"),
            by(skew("skew_99_us"), 200.0),
        );
        put(
            evidence,
            format!("{name} conductor/2 %"),
            by(runs(way, 2, "conductor_cores"), 0.02),
        );
        let rate = |way, count| runs(way, count, "rate");
        let alone = rate(Way::Free, 1);
        evidence.put_runs(&format!("{name} one gang/alone"), rate(way, 1), alone);
        evidence.put_runs(&format!("{name} two gangs/alone"), rate(way, 2), alone);
        let left = by(rate(Way::Free, 2), 1.0 / 3.0);
        evidence.put_runs(
            &format!("{name} two gangs/left/3"),
            rate(way, 2),
            left.as_deref(),
        );
        // Of the time that a single program is whole, which no gang can exceed here.
        let whole = runs(Way::Free, 1, "together");
        evidence.put_runs(&format!("{name} together/alone"), together, whole);
    }
    evidence.put_runs(
        "two left/alone",
        runs(Way::Free, 2, "rate"),
        runs(Way::Free, 1, "rate"),
    );
}

fn of_packing(evidence: &mut Evidence, results: &Results) {
    let runs = |programs| results.found(Experiment::Packing, programs, "rate");
    let alone = runs(spinning(results, Way::Free, 1));
    for (name, way) in [
        ("four gangs/ideal", Way::Stop),
        ("four gangs by gate/ideal", Way::Gate),
        ("four left/ideal", Way::Free),
    ] {
        evidence.put_runs(name, runs(spinning(results, way, 4)), alone);
    }
    let narrow = |way, count| {
        let threads = results.cpus() / 2;
        runs(Programs {
            threads,
            ..spinning(results, way, count)
        })
    };
    // Two run side by side.
    let ideal = by(narrow(Way::Free, 1), 0.5);
    for (name, way) in [
        ("eight gangs/ideal", Way::Stop),
        ("eight left/ideal", Way::Free),
    ] {
        evidence.put_runs(name, narrow(way, 8), ideal.as_deref());
    }
}

fn of_half(evidence: &mut Evidence, results: &Results) {
    for (work, name) in [(Work::Half, "half"), (Work::Moving, "moving")] {
        let runs = |way, count, is_isolated| {
            let programs = Programs {
                work,
                is_isolated,
                ..spinning(results, way, count)
            };
            results.found(Experiment::Half, programs, "rate")
        };
        // A program uses half of the machine, and two of them all.
        let ideal = by(runs(Way::Free, 1, false), 0.5);
        let ideal = ideal.as_deref();
        for (of, way, is_isolated) in [
            ("gangs alone on their cores", Way::Stop, true),
            ("gangs", Way::Stop, false),
            ("left", Way::Free, false),
        ] {
            let name = format!("{name} {of}/ideal");
            evidence.put_runs(&name, runs(way, 4, is_isolated), ideal);
        }
    }
}

/// Sentences for claims that this machine shows in its own way.
fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let mut explained = BTreeMap::new();
    let alone = results.found(
        Experiment::Barriers,
        spinning(results, Way::Free, 1),
        "together",
    );
    if let Some(together) = alone.and_then(hearth_stats::median) {
        let sentence = format!(
            "The threads of one program alone ran at the same time for {:.2} % of its time on this machine: the rest went \
             to others, the hypervisor among them.",
            100.0 * together
        );
        explained.insert("simultaneous", vec![sentence.clone()]);
        explained.insert("ours-together", vec![sentence]);
    }
    let left = results.found(
        Experiment::Barriers,
        spinning(results, Way::Free, 2),
        "rate",
    );
    let all = results.found(
        Experiment::Barriers,
        spinning(results, Way::Free, 1),
        "rate",
    );
    let medians = left
        .and_then(hearth_stats::median)
        .zip(all.and_then(hearth_stats::median));
    if let Some((left, all)) = medians.filter(|(left, _)| *left > 0.0) {
        explained.insert(
            "ours-three",
            vec![format!(
                "At most {:.2} times is possible: the system alone gets the rest done already.",
                all / left
            )],
        );
    }
    explained.insert(
        "machines",
        vec![
            "Virtual machines cannot be nested where this was run, and the study starts none."
                .to_owned(),
        ],
    );
    explained
}
