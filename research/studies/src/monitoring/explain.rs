//! Reasons of the claims' results: the parts in nanoseconds, rows that the machine lacks, and the
//! answers of other loads and of Kieker.

use std::collections::BTreeMap;

use hearth_draw::scale::Unit;
use hearth_stats::Ratio;

use super::options::Experiment;
use super::parts::Part;
use super::places::Row;
use super::results::{Cell, Results};
use super::verdict::{CLAIMS, of};
use super::ways::{Monitor, Way};
use crate::judging::{Answer, JudgedClaim};

/// Sentences by claim.
pub(super) fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let mut all: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for (words, monitor, load) in [
        (
            "Hearth, calls ten deep that do nothing else",
            Monitor::Hearth,
            Experiment::Busy,
        ),
        (
            "Kieker of today, under the source's load",
            Monitor::Kieker,
            Experiment::Parts,
        ),
        (
            "Kieker of today, calls ten deep that do nothing else",
            Monitor::Kieker,
            Experiment::Busy,
        ),
    ] {
        for verdict in of(results, monitor, load).verdicts() {
            if let Some(line) = answered(words, &verdict) {
                all.entry(verdict.id).or_default().push(line);
            }
        }
    }
    let parts = |row| parts_of(results, row);
    for (id, rows) in [
        ("writing-most", &[Row::S1][..]),
        ("one-core", &[Row::S1, Row::A1]),
        ("neighbour", &[Row::S1, Row::A1, Row::A3]),
        ("two-suffice", &[Row::A3, Row::A5]),
    ] {
        let lines = rows.iter().flat_map(|&row| parts(row));
        all.entry(id).or_default().extend(lines);
    }
    for claim in CLAIMS.rows() {
        if let Some(line) = lacking(results, &claim.relations) {
            all.entry(claim.id).or_default().push(line);
        }
    }
    all.entry("saturation")
        .or_default()
        .extend(saturated(results));
    all
}

/// The answer of another monitor or load, if it was measured.
fn answered(words: &str, verdict: &JudgedClaim) -> Option<String> {
    let is_measured = verdict.because != "not measured" && verdict.published.is_some();
    let is_told = verdict.answer != Answer::CannotTell || verdict.because.contains('[');
    (is_measured && is_told).then(|| format!("{words}: {}; {}.", verdict.word(), verdict.because))
}

/// The parts of a row, as they were measured.
fn parts_of(results: &Results, row: Row) -> Vec<String> {
    let loads = [
        ("one call in 500 µs", Experiment::Parts),
        ("ten deep, nothing else", Experiment::Busy),
    ];
    let told = loads.into_iter().flat_map(|(load, experiment)| {
        [Monitor::Hearth, Monitor::Kieker].map(|monitor| {
            let runs = results.runs(experiment, monitor, row);
            let parts = Part::THREE.map(|part| runs.part(part));
            let [Some(instrumentation), Some(collecting), Some(writing)] = parts else {
                return None;
            };
            Some(format!(
                "{}, {}, {load}: {} instrumentation, {} collecting, {} writing.",
                row.id(),
                monitor.words(),
                ns(instrumentation),
                ns(collecting),
                ns(writing)
            ))
        })
    });
    told.flatten().collect()
}

/// A time with its interval.
pub(super) fn ns(of: Ratio) -> String {
    let show = |value: f64| Unit::Nanoseconds.show(value);
    format!("{} [{}, {}]", show(of.value), show(of.low), show(of.high))
}

/// The rows of a claim that this machine has no cores for.
fn lacking(
    results: &Results,
    relations: &[(&'static str, Vec<crate::judging::Relation>)],
) -> Option<String> {
    let lacking = results.site.lacking();
    let is_named = |row: &&Row| relations.iter().any(|(name, _)| name.contains(row.id()));
    let rows = lacking.iter().filter(is_named);
    let words: Vec<String> = rows
        .map(|row| format!("{} takes {}", row.id(), row.need()))
        .collect();
    (!words.is_empty()).then(|| format!("This machine lacks it: {}.", words.join("; ")))
}

/// Rates and losses by depth.
fn saturated(results: &Results) -> Vec<String> {
    let cells = results.of(Experiment::Saturation).filter(|cell| {
        cell.case.monitor == Monitor::Hearth && cell.case.way == Way::File && cell.count() > 0
    });
    cells.filter_map(loss).collect()
}

fn loss(cell: &Cell) -> Option<String> {
    let emitted = cell.median("emitted_per_s")?;
    let share = cell.median("lost")? / cell.median("emitted")?;
    Some(format!(
        "{} deep, {}: {:.1} million records a second, {:.1} % lost.",
        cell.case.depth,
        cell.case.law,
        emitted / 1e6,
        100.0 * share
    ))
}
