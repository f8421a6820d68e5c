//! The figures from which the claims are judged.
//!
//! The source's components were threads: it is the threads here that its claims are judged by. Its
//! shared heap had a list of all blocks under a lock, and that is the shared heap in claims about
//! allocation.

use super::explain::explained;
use super::options::Experiment;
use super::published;
use super::results::Results;
use crate::claims::{Claims, Evidence, Size};
use crate::judging::Figure;

/// The source's claims.
pub static CLAIMS: Claims = Claims {
    table: include_str!("../../published/insense-multicore/claims.md"),
    size: Size::Factor,
};

/// The published evidence.
#[must_use]
pub fn as_published() -> Evidence {
    published::evidence(&CLAIMS)
}

/// The measured evidence.
#[must_use]
pub fn measured(results: &Results) -> Evidence {
    let mut evidence = Evidence::new(&CLAIMS, results.site.cores.len());
    allocation(&mut evidence, results);
    caches(&mut evidence, results);
    communication(&mut evidence, results);
    let real = |case: [&str; 4]| {
        let cell = results.named(Experiment::NoCommunication, case)?;
        Some(cell.runs("real"))
    };
    // The last load is the larger array.
    let load = results.last_load(Experiment::NoCommunication);
    let at = |placement| real([&load, "threads", "shared", placement]);
    for (name, of, to) in [
        ("no-communication single/os", "single", "os"),
        ("no-communication spread/os", "spread", "os"),
        ("no-communication os/spread in the abstract", "os", "spread"),
    ] {
        evidence.put_runs(name, at(of), at(to));
    }
    evidence.explain(explained(results));
    evidence
}

fn allocation(evidence: &mut Evidence, results: &Results) {
    let cell = |components: u32, heaps: &str, placement: &str| {
        let load = format!("alloc-{components}x1000");
        results.named(Experiment::List, [&load, "threads", heaps, placement])
    };
    let real =
        |components, heaps, placement| Some(cell(components, heaps, placement)?.runs("real"));
    for (name, components, placement) in [
        ("alloc-1 shared/private", 1, "os"),
        ("alloc-4 shared/private", 4, "os"),
        ("alloc-4 shared/private spread", 4, "spread"),
        ("alloc-4 shared/private single", 4, "single"),
    ] {
        let shared = real(components, "listed", placement);
        let private = real(components, "private", placement);
        evidence.put_runs(name, shared, private);
    }
    let listed = |placement| real(4, "listed", placement);
    evidence.put_runs("alloc-4 shared os/single", listed("os"), listed("single"));
    let times = |figure| cell(4, "listed", "os").map(|cell| cell.runs(figure));
    evidence.put_runs("alloc-4 shared system/user", times("system"), times("user"));
    let load = results.last_load(Experiment::Memory);
    let load = results
        .loads_of(Experiment::Memory)
        .map(|(load, _)| load)
        .find(|load| load.starts_with("alloc"))
        .unwrap_or(&load)
        .to_owned();
    let growth = |heaps| {
        let cell = results.named(Experiment::Memory, [&load, "threads", heaps, "os"])?;
        // A page more or less does not count as growth.
        Some(cell.summary("growth_kb")?.median.max(0.0) + 256.0)
    };
    if let (Some(shared), Some(private)) = (growth("listed"), growth("private")) {
        evidence.put("memory shared/private", Figure::exact(shared / private));
    }
}

fn caches(evidence: &mut Evidence, results: &Results) {
    for rows in [250, 850] {
        let load = format!("cache-4x{rows}");
        let real = |heaps| {
            let cell = results.named(Experiment::Cache, [&load, "threads", heaps, "os"])?;
            Some(cell.runs("real"))
        };
        let name = format!("cache-{rows} shared/private");
        evidence.put_runs(&name, real("shared"), real("private"));
    }
    for placement in ["os", "single", "spread"] {
        let misses = |heaps| {
            let case = ["cache-4x250", "threads", heaps, placement];
            Some(results.named(Experiment::Misses, case)?.runs("d1_misses"))
        };
        let name = format!("misses private/shared {placement}");
        evidence.put_runs(&name, misses("private"), misses("listed"));
    }
}

fn communication(evidence: &mut Evidence, results: &Results) {
    let all: [(Experiment, &[(&str, &str)]); 3] = [
        (
            Experiment::SenderReceiver,
            &[("os", "together"), ("apart", "together"), ("os", "apart")],
        ),
        (
            Experiment::ClientServer,
            &[("single", "os"), ("together", "os"), ("apart", "os")],
        ),
        (
            Experiment::DispatchWorker,
            &[("single", "os"), ("together", "os"), ("apart", "os")],
        ),
    ];
    for (experiment, pairs) in all {
        let load = experiment.id();
        let real = |placement| {
            let cell = results.named(experiment, [load, "threads", "shared", placement])?;
            Some(cell.runs("real"))
        };
        for (of, to) in pairs {
            evidence.put_runs(&format!("{load} {of}/{to}"), real(of), real(to));
        }
    }
}
