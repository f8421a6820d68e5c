//! The figures from which the claims are judged.
//!
//! The source's claims are of Kieker, and said of any such monitor. They are judged by Hearth's
//! probes under the source's load; beside that answer stand those of calls that do nothing else,
//! and of Kieker of today on this machine.

use super::explain::explained;
use super::options::{BUSY_DEPTH, Experiment};
use super::parts::{self, Part, Runs, Side};
use super::places::Row;
use super::plan::BLOCK;
use super::published;
use super::results::Results;
use super::ways::{Monitor, Way};
use crate::claims::{Claims, Evidence, Size};
use crate::judging::{Figure, Relation};

/// Goal for a call ten deep stored in a file, over one without probes.
const GOAL_NS: f64 = 500.0;
/// Bytes of a call in the source's log: at least 362 MB for 2,000,000 calls.
const LOG_BYTES: f64 = 181.0;
/// Depths between which growth is compared, as the source's curve has them.
const DEPTHS: [u32; 3] = [1, 32, 64];
/// The depth beyond the source's last.
const BEYOND: u32 = 256;

/// The source's claims, and those that we add.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/monitoring/claims.md"),
    size: Size::Factor,
};

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    Evidence::new(&CLAIMS, published::CORES).with(published::findings())
}

/// The measured evidence: Hearth's probes, under the source's load.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = of(results, Monitor::Hearth, Experiment::Parts);
    ours(&mut evidence, results);
    evidence.explain(explained(results));
    evidence
}

/// The evidence of a monitor under a load: that of `parts` or that of `busy`.
#[must_use]
pub fn of(results: &Results, monitor: Monitor, load: Experiment) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.site.cores);
    let side = |row, part| Side::new(results.runs(load, monitor, row), part);
    for (row, above, below) in [
        (Row::S1, Part::Instrumentation, Part::Collecting),
        (Row::S1, Part::Writing, Part::Collecting),
    ] {
        let name = format!("{} {}/{}", row.id(), above.id(), below.id());
        evidence.put(&name, parts::ratio(side(row, above), side(row, below)));
    }
    for (above, below, part) in [
        (Row::S2, Row::S1, Part::Overhead),
        (Row::A1, Row::S1, Part::Writing),
        (Row::A2, Row::S1, Part::Overhead),
        (Row::A2, Row::A1, Part::Overhead),
        (Row::A3, Row::S1, Part::Overhead),
        (Row::A3, Row::A1, Part::Overhead),
        (Row::A3, Row::A2, Part::Writing),
        (Row::A4, Row::A2, Part::Overhead),
        (Row::A5, Row::A3, Part::Overhead),
        (Row::A5, Row::S1, Part::Writing),
    ] {
        let name = format!("{}/{} {}", above.id(), below.id(), part.id());
        evidence.put(&name, parts::ratio(side(above, part), side(below, part)));
    }
    if load == Experiment::Parts {
        by_depth(&mut evidence, results, monitor);
    }
    log(&mut evidence, results, monitor, load);
    evidence
}

/// Growth with the depth of recursion.
fn by_depth(evidence: &mut Evidence, results: &Results, monitor: Monitor) {
    let side = |experiment, depth, part| {
        let runs: Runs<'_> = results.runs_at(experiment, monitor, depth);
        Side::new(runs, part)
    };
    let collecting = DEPTHS.map(|depth| side(Experiment::Depth, depth, Part::Unwritten));
    evidence.put(
        "collecting a call, 32 to 64 deep/1 to 32 deep",
        parts::slopes(collecting, DEPTHS),
    );
    let ends = [DEPTHS[0], DEPTHS[2]];
    let writing = ends.map(|depth| side(Experiment::Depth, depth, Part::Writing));
    evidence.put(
        "writing a further call/the first",
        parts::further(writing, ends),
    );
    let depths = [BEYOND, DEPTHS[2]];
    let overhead = depths.map(|depth| side(Experiment::Saturation, depth, Part::Overhead));
    evidence.put(
        "overhead a call, 256 deep/64 deep",
        parts::each(overhead, depths),
    );
}

/// Bytes that a call leaves.
fn log(evidence: &mut Evidence, results: &Results, monitor: Monitor, load: Experiment) {
    let cells = results.of(load).filter(|cell| {
        cell.case.monitor == monitor && cell.case.way == Way::File && cell.case.law == BLOCK
    });
    let found = cells
        .map(|cell| cell.runs("bytes_a_call"))
        .find(|runs| !runs.is_empty());
    evidence.put_runs("bytes a call/181", found, &[LOG_BYTES][..]);
}

/// Goals, losses and peers.
fn ours(evidence: &mut Evidence, results: &Results) {
    let busy = |monitor, row, part| Side::new(results.runs(Experiment::Busy, monitor, row), part);
    let name = "ten deep, A3 overhead/500 ns";
    debug_assert_eq!(BUSY_DEPTH, 10, "the claim's words");
    let apart = results.site.apart();
    let here = busy(Monitor::Hearth, apart, Part::Overhead);
    evidence.put(name, parts::ratio_to(here, GOAL_NS));
    for (name, peer, part) in [
        (
            "ten deep, A5 overhead/Kieker's",
            Monitor::Kieker,
            Part::Overhead,
        ),
        (
            "ten deep, A5 collecting/fastrace's",
            Monitor::Fastrace,
            Part::Unwritten,
        ),
    ] {
        let sides = [Monitor::Hearth, peer].map(|monitor| busy(monitor, Row::A5, part));
        evidence.put(name, parts::ratio(sides[0], sides[1]));
    }
    evidence.put("runs accounted for/runs", accounted(results));
}

/// Whether all records of all runs are accounted for: alike only if not one is missing.
fn accounted(results: &Results) -> Option<Figure> {
    let runs: Vec<f64> = results
        .cells
        .iter()
        .flat_map(|cell| cell.runs("unaccounted"))
        .copied()
        .collect();
    let exact = runs.iter().filter(|missing| **missing == 0.0).count();
    let share = exact as f64 / runs.len().max(1) as f64;
    let relation = match exact == runs.len() {
        true => Relation::Alike,
        false => Relation::Less,
    };
    (!runs.is_empty()).then_some(Figure {
        relation,
        ratio: Some((share, share, share)),
    })
}
