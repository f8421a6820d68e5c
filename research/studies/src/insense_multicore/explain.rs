//! Reasons of the claims' results: what else was measured beside them.

use crate::judging::Figure;
use std::collections::BTreeMap;

use super::options::Experiment;
use super::results::Results;
use super::ways::WAYS;

/// Sentences by claim.
pub(super) fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let mut all = BTreeMap::new();
    for (claim, load, placement) in [
        ("alloc-one", "alloc-1x1000", "os"),
        ("alloc-four", "alloc-4x1000", "os"),
        ("alloc-four-spread", "alloc-4x1000", "spread"),
        ("alloc-four-single", "alloc-4x1000", "single"),
    ] {
        all.insert(claim, of_heaps(results, load, placement));
    }
    all.insert("memory", of_memory(results));
    all.insert("misses", of_misses(results));
    for (claim, experiment) in [
        ("pairs", Experiment::SenderReceiver),
        ("client-server", Experiment::ClientServer),
        ("dispatch-worker", Experiment::DispatchWorker),
        ("no-communication", Experiment::NoCommunication),
    ] {
        all.insert(claim, of_placements(results, experiment));
    }
    all.insert(
        "abstract",
        vec![
            "The source's section on programs that do not communicate says that round robin is about equal to \
             the system's placement, and its conclusion gives 2.6 times for sender and receiver: the \
             abstract's 2.4 is of neither."
                .to_owned(),
        ],
    );
    all
}

fn ratio(
    results: &Results,
    experiment: Experiment,
    of: [&str; 4],
    to: [&str; 4],
) -> Option<Figure> {
    let real = |case| Some(results.named(experiment, case)?.runs("real"));
    Figure::of_runs(real(of)?, real(to)?)
}

/// Time that each way takes beside private heaps, the list's addition, and the same in C.
fn of_heaps(results: &Results, load: &str, placement: &str) -> Vec<String> {
    let list = Experiment::List;
    let private = [load, "threads", "private", placement];
    let mut lines = Vec::new();
    let others: Vec<String> = WAYS
        .iter()
        .filter(|way| way.id != "private")
        .filter_map(|way| {
            let figure = ratio(results, list, [load, "threads", way.id, placement], private)?;
            Some(format!("{} {}", way.id, figure.words()))
        })
        .collect();
    if !others.is_empty() {
        lines.push(format!(
            "Times of private heaps, with threads: {}.",
            others.join(", ")
        ));
    }
    let of = |heaps| [load, "threads", heaps, placement];
    if let Some(whole) = ratio(results, list, of("listed"), of("source-private")) {
        lines.push(format!(
            "The source's shared heap beside its own private ones, both rebuilt: {} times.",
            whole.words()
        ));
    }
    if let Some(added) = ratio(results, list, of("listed"), of("locked")) {
        lines.push(format!(
            "The list adds a factor of {} to the lock.",
            added.words()
        ));
    }
    if let Some(lock) = ratio(results, list, of("locked"), of("malloc")) {
        lines.push(format!(
            "The lock adds a factor of {} to malloc.",
            lock.words()
        ));
    }
    let in_c = |heaps| [load, "c", heaps, placement];
    if let Some(c) = ratio(results, list, in_c("listed"), in_c("malloc")) {
        lines.push(format!(
            "In plain C list and lock make malloc slower by {} times.",
            c.words()
        ));
    }
    let workers = |heaps| [load, "workers", heaps, placement];
    if let Some(figure) = ratio(results, list, workers("listed"), workers("private")) {
        lines.push(format!(
            "On workers, listed beside private: {} times.",
            figure.words()
        ));
    }
    lines
}

fn of_memory(results: &Results) -> Vec<String> {
    let load = results
        .loads_of(Experiment::Memory)
        .map(|(load, _)| load)
        .find(|load| load.starts_with("alloc"));
    let Some(load) = load else { return Vec::new() };
    let grown: Vec<String> = ["private", "shared", "malloc", "listed", "source-private"]
        .iter()
        .filter_map(|heaps| {
            let cell = results.named(Experiment::Memory, [load, "threads", heaps, "os"])?;
            let growth = cell.summary("growth_kb")?.median / 1024.0;
            let peak = cell.summary("peak_kb")?.median / 1024.0;
            Some(format!("{heaps} {growth:.1} MB, at most {peak:.1}"))
        })
        .collect();
    vec![
        format!("Growth of resident memory after the first quarter: {}.", grown.join("; ")),
        "What grows is the list: a node of 32 bytes for each block ever made, reachable to the end, so that no \
         tool calls it a leak. By the source's own count, 5,002 blocks a pass, four components and 5,000 \
         passes, it is 3.2 GB on a machine of 8."
            .to_owned(),
    ]
}

fn of_misses(results: &Results) -> Vec<String> {
    let count = |heaps, figure| {
        let case = ["cache-4x250", "threads", heaps, "os"];
        Some(
            results
                .named(Experiment::Misses, case)?
                .summary(figure)?
                .median,
        )
    };
    let counted: Vec<String> = ["private", "shared", "malloc", "listed", "source-private"]
        .iter()
        .filter_map(|heaps| {
            let (reads, writes) = (
                count(heaps, "d1_read_misses")?,
                count(heaps, "d1_write_misses")?,
            );
            Some(format!("{heaps} {reads:.0} + {writes:.0}"))
        })
        .collect();
    if counted.is_empty() {
        return Vec::new();
    }
    vec![
        format!("First-level data misses, reads and writes: {}.", counted.join("; ")),
        "The source's are first touches: its misses of the last level are those of the first, and nearly all \
         of the difference are writes. Cachegrind simulates one cache for all threads."
            .to_owned(),
    ]
}

/// The fastest placement of each carrier, and C beside.
fn of_placements(results: &Results, experiment: Experiment) -> Vec<String> {
    let load = results.last_load(experiment);
    let mut lines = Vec::new();
    for (carrier, heaps) in [
        ("threads", "shared"),
        ("workers", "private"),
        ("c", "malloc"),
    ] {
        let cells = results.of(experiment).filter(|cell| {
            cell.case.load == load && cell.case.carrier == carrier && cell.case.heaps == heaps
        });
        let mut times: Vec<(&str, f64)> = cells
            .filter_map(|cell| Some((cell.case.placement.as_str(), cell.summary("real")?.median)))
            .collect();
        times.sort_by(|a, b| a.1.total_cmp(&b.1));
        let words: Vec<String> = times
            .iter()
            .map(|(placement, s)| format!("{placement} {:.1} ms", 1e3 * s))
            .collect();
        if !words.is_empty() {
            lines.push(format!(
                "By placement, {carrier} with {heaps}: {}.",
                words.join(", ")
            ));
        }
    }
    lines
}
