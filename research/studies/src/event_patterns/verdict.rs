//! The figures from which the claims are judged.
//!
//! A claim about threads side by side needs cores for them: with fewer the answer is that it cannot
//! be shown, whatever the figures are, since threads that share a core have other reasons.

use super::explain::explained;
use super::options::Experiment;
use super::plan::{APART, TOGETHER};
use super::published;
use super::results::{Cell, Results};
use crate::claims::{Claims, Evidence, Size};
use crate::judging::Figure;

/// A rate this near to the highest is at the peak.
const AT_PEAK: f64 = 0.95;
/// Lower bound on the time of a system call. A shorter result is the difference of two larger times
/// that are too close to tell apart.
const CALL_NS_MIN: f64 = 50.0;
/// Most events that the source's select reported in one call.
const EVENTS_A_CALL: f64 = 8.0;

/// The source's claims, and those that we add.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/event-patterns/claims.md"),
    size: Size::Factor,
};

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// The measured evidence, where server and clients have cores of their own.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.cores_of_server(APART));
    peaks(&mut evidence, results);
    calls(&mut evidence, results);
    threads(&mut evidence, results);
    evidence.explain(explained(results));
    evidence
}

/// The highest rates beside each other.
fn peaks(evidence: &mut Evidence, results: &Results) {
    let rate = |pattern, mechanism| {
        let peak = results.peak(Experiment::Threads, [pattern, mechanism, APART], 0)?;
        Some(peak.runs("rate"))
    };
    for (name, of, to) in [
        (
            "half-async edge/select",
            ("half-async", "edge"),
            ("half-async", "select"),
        ),
        (
            "leader edge/select",
            ("leader", "edge"),
            ("leader", "select"),
        ),
        (
            "half-async select/level",
            ("half-async", "select"),
            ("half-async", "level"),
        ),
        (
            "leader level/select",
            ("leader", "level"),
            ("leader", "select"),
        ),
        (
            "half-async/leader edge",
            ("half-async", "edge"),
            ("leader", "edge"),
        ),
        (
            "sharded/half-async edge",
            ("sharded", "edge"),
            ("half-async", "edge"),
        ),
        (
            "sharded/leader edge",
            ("sharded", "edge"),
            ("leader", "edge"),
        ),
    ] {
        evidence.put_runs(name, rate(of.0, of.1), rate(to.0, to.1));
    }
}

/// Adds the cost of calls and the number of events that they report.
fn calls(evidence: &mut Evidence, results: &Results) {
    let line =
        |pattern, mechanism| results.line(Experiment::Threads, [pattern, mechanism, APART], 0);
    let alone = |mechanism| {
        let cell = line("leader", mechanism).into_iter().next()?;
        (cell.case.threads == 1).then(|| cell.runs("call_ns"))
    };
    evidence.put_runs("leader select/edge call", alone("select"), alone("edge"));
    let select = line("half-async", "select").into_iter();
    let told = select.filter_map(|cell| Some((cell, cell.median("events_a_wait")?)));
    let most = told
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cell, _)| cell);
    evidence.put_runs(
        "half-async select events a call/8",
        most.map(|cell| cell.runs("events_a_wait")),
        &[EVENTS_A_CALL][..],
    );
    for pattern in ["half-async", "leader"] {
        let cells = line(pattern, "level");
        let rearming = |cell: Option<&&Cell>| cell.map(|cell| cell.runs("reactivate_ns").to_vec());
        let (least, most) = (rearming(cells.first()), rearming(cells.last()));
        let name = format!("{pattern} level rearming at most/least threads");
        if cells.len() > 1 {
            evidence.put_runs(&name, most.as_deref(), least.as_deref());
        }
    }
}

/// Adds the effect of more threads.
fn threads(evidence: &mut Evidence, results: &Results) {
    let edge = |pattern| results.line(Experiment::Threads, [pattern, "edge", APART], 0);
    let (half, leader) = (edge("half-async"), edge("leader"));
    if let (Some(half_last), Some(leader_last)) = (half.last(), leader.last()) {
        evidence.put_runs(
            "leader/half-async edge at most threads",
            Some(leader_last.runs("rate")),
            Some(half_last.runs("rate")),
        );
        let (of, to) = (kept(&leader), kept(&half));
        evidence.put_runs(
            "leader/half-async edge kept at most threads",
            of.as_deref(),
            to.as_deref(),
        );
    }
    for (name, line, threads) in [
        ("half-async edge peak at/10 threads", &half, 10.0),
        ("leader edge peak at/13 threads", &leader, 13.0),
    ] {
        if let Some(at) = first_at_peak(line) {
            evidence.put(name, Figure::exact(at as f64 / threads));
        }
    }
    let busy = |threads| {
        let cell = half.iter().find(|cell| cell.case.threads == threads)?;
        Some(cell.runs("waiter_busy"))
    };
    evidence.put_runs(
        "half-async edge waiter busy at 10/2 threads",
        busy(10),
        busy(2),
    );
    if let (Some(spot), Some(at)) = (sweet_spot(results, "edge"), first_at_peak(&leader)) {
        evidence.put(
            "leader edge peak at/sweet spot",
            Figure::exact(at as f64 / spot),
        );
    }
}

/// Rates with the most threads, as shares of the highest median.
fn kept(line: &[&Cell]) -> Option<Vec<f64>> {
    let medians = line.iter().filter_map(|cell| cell.median("rate"));
    let peak = medians.fold(0.0, f64::max);
    let last = line.last()?.runs("rate");
    (peak > 0.0).then(|| last.iter().map(|rate| rate / peak).collect())
}

/// The fewest threads with which the rate is at its peak.
fn first_at_peak(line: &[&Cell]) -> Option<usize> {
    let rated = line
        .iter()
        .filter_map(|cell| Some((cell.case.threads, cell.median("rate")?)));
    let rated: Vec<(usize, f64)> = rated.collect();
    let peak = rated.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let found = rated.iter().find(|(_, rate)| *rate >= AT_PEAK * peak);
    found.map(|(threads, _)| *threads)
}

/// The source's rule for Leader/Followers, from the times of one thread: the threads with which the
/// time of a message, the serial section's included, divided by them is that of the serial section.
pub(super) fn sweet_spot(results: &Results, mechanism: &str) -> Option<f64> {
    let line = results.line(Experiment::Threads, ["leader", mechanism, APART], 0);
    let cell = line.into_iter().find(|cell| cell.case.threads == 1)?;
    let serial = cell.median("call_ns")? * cell.median("waits")?;
    (serial >= CALL_NS_MIN).then_some(cell.median("server_ns")? / serial)
}

/// The layouts with their words.
pub const LAYOUTS: [(&str, &str); 2] = [
    (APART, "server and clients on cores of their own"),
    (TOGETHER, "server and clients on all cores"),
];
