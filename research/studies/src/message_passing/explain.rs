//! Reasons of the claims' results: what the machine's measured costs predict, and what detectors
//! say.

use std::collections::BTreeMap;

use hearth_model::locality::thrashing::{self, Runs};
use hearth_sync::Mode;

use super::costs::Costs;
use super::engine::Config;
use super::evidence::{Slopes, judged_fit, judged_threads};
use super::options::Experiment;
use super::plan::{DISPLACEMENT_THREADS, Fit};
use super::results::{RATE, Results};

/// Sentences by claim.
pub(super) fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let mut all = BTreeMap::new();
    if let Some(costs) = &results.site.costs {
        all.insert("small", small(results, costs));
        all.insert("gain", gain(results, costs));
        all.insert("line", line(results, costs));
        all.insert("edge", edge(results, costs));
        all.insert("lock-falls", falls(results, costs));
        all.insert("size", size(results, costs));
    }
    all.entry("thrashing")
        .or_insert_with(|| thrashing_words(results));
    all
}

fn small(results: &Results, costs: &Costs) -> Vec<String> {
    let (fit, threads) = found(results, Experiment::Displacement);
    let of = |mode| {
        costs
            .expect(&displacement(results, fit, mode, threads, 24))
            .rate
    };
    vec![format!(
        "By this machine's costs a hand-over takes {:.0} ns each way; with 24 lines and {threads} threads messages \
         let through {:.2} times as much as the lock.",
        costs.hand_over_ns,
        of(Mode::Message) / of(Mode::Lock)
    )]
}

/// The best that costs allow: here, and with as many threads as the source had.
fn gain(results: &Results, costs: &Costs) -> Vec<String> {
    let (fit, threads) = found(results, Experiment::Displacement);
    let best = |threads| best_gain(results, costs, fit, threads);
    let mut lines = Vec::new();
    let (here, at) = best(threads);
    lines.push(format!(
        "By this machine's costs the most with {threads} threads is {here:.2} times, at {at} lines: the thread that \
         serves runs no loop, so that {} loop{} by message stand against {threads} under the lock.",
        threads - 1,
        if threads == 2 { "" } else { "s" },
    ));
    if threads < DISPLACEMENT_THREADS {
        let (there, at) = best(DISPLACEMENT_THREADS);
        let config = displacement(results, fit, Mode::Lock, DISPLACEMENT_THREADS, at);
        let (within, both) = (costs.load_ns(at), costs.load_ns(at + config.local_lines));
        lines.push(format!(
            "With {DISPLACEMENT_THREADS} cores of this kind the same costs say {there:.2} times, at {at} lines: the \
             section is then what all wait for, and a line of it takes {both:.2} ns under the lock and {within:.2} ns \
             by message."
        ));
    }
    lines
}

/// The largest ratio of message to lock over sections, and where.
fn best_gain(results: &Results, costs: &Costs, fit: Fit, threads: usize) -> (f64, usize) {
    let cache = results.sizes(fit).cache_lines();
    let ratio = |lines| {
        let of = |mode| {
            costs
                .expect(&displacement(results, fit, mode, threads, lines))
                .rate
        };
        of(Mode::Message) / of(Mode::Lock)
    };
    let places = (1..=16).map(|sixteenth| (cache * sixteenth / 16).max(1));
    let best = places.map(|lines| (ratio(lines), lines));
    best.max_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or((1.0, cache))
}

fn line(results: &Results, costs: &Costs) -> Vec<String> {
    let (fit, threads) = found(results, Experiment::Displacement);
    let cache = results.sizes(fit).cache_lines();
    let (lock, message) = (costs.load_ns(3 * cache), costs.load_ns(cache / 2));
    let slopes = Slopes::of(results, fit, threads);
    let mut lines = vec![format!(
        "The latency curve has {message:.2} ns for a line of half the first cache and {lock:.2} ns where the loop's \
         own data is gone over, too: a factor of {:.2}, which is the most that this effect can give.",
        lock / message
    )];
    if let (Some(message), Some(lock)) = (slopes.message, slopes.lock) {
        lines.push(format!(
            "Measured with as many loops: a further line of the section adds {lock:.2} ns under the lock and \
             {message:.2} ns by message."
        ));
    }
    lines
}

fn edge(results: &Results, costs: &Costs) -> Vec<String> {
    let (fit, threads) = found(results, Experiment::Displacement);
    let slopes = Slopes::of(results, fit, threads);
    let mut lines = Vec::new();
    if let Some(first) = costs.lines(1) {
        lines.push(format!(
            "The first cache ends at {first} lines by the latency curve."
        ));
    }
    if let (Some(within), Some(beyond)) = (slopes.message, slopes.beyond) {
        lines.push(format!(
            "By message a further line adds {within:.2} ns up to three quarters of it, and {beyond:.2} ns beyond it."
        ));
    }
    lines
}

fn falls(results: &Results, costs: &Costs) -> Vec<String> {
    let (fit, _) = found(results, Experiment::Invalidation);
    let cells = results.series(Experiment::Invalidation, fit, Mode::Lock, 2);
    let (Some(none), Some(most)) = (cells.first(), cells.last()) else {
        return Vec::new();
    };
    let (before, after) = (
        costs.expect(&none.case.config),
        costs.expect(&most.case.config),
    );
    vec![format!(
        "A line that another core has modified takes {:.1} ns here. With 2 threads and {} modified lines that makes a \
         section of {:.0} ns one of {:.0} ns, beside {:.0} ns of each loop's own: {:.2} times the throughput is \
         expected.",
        costs.transfer_ns,
        most.case.x,
        before.section_ns,
        after.section_ns,
        after.local_ns,
        after.rate / before.rate
    )]
}

fn size(results: &Results, costs: &Costs) -> Vec<String> {
    let (fit, threads) = found(results, Experiment::MessageSize);
    let config = |message_bytes| Config {
        message_bytes,
        section_lines: 1,
        ..displacement(results, fit, Mode::Message, threads, 1)
    };
    let (small, large) = (costs.expect(&config(64)), costs.expect(&config(16384)));
    vec![format!(
        "With {threads} threads the server is {} by this machine's costs, whatever the message: a transfer of each of \
         its lines one after the other would leave {:.2} of the throughput with 16 KiB, and caches fetch several at \
         a time.",
        if large.is_saturated {
            "saturated"
        } else {
            "never saturated"
        },
        large.rate / small.rate
    )]
}

/// The detector's words on the second experiment's series over threads, for each number of modified
/// lines.
fn thrashing_words(results: &Results) -> Vec<String> {
    let experiment = Experiment::Invalidation;
    let (fit, _) = found(results, experiment);
    let threads = results.threads(experiment, Mode::Lock);
    if threads.len() < 2 {
        return vec![
            "The detector needs two numbers of threads at least: --threads asks for others."
                .to_owned(),
        ];
    }
    let mut places: Vec<usize> = results
        .of(experiment)
        .filter(|cell| cell.case.fit == fit)
        .map(|cell| cell.case.x)
        .collect();
    places.sort_unstable();
    places.dedup();
    let mut lines = Vec::new();
    let mut calm = Vec::new();
    for x in places {
        let runs = threads.iter().filter_map(|&n| {
            let cells = results.series(experiment, fit, Mode::Lock, n);
            let cell = cells.into_iter().find(|cell| cell.case.x == x)?;
            Some(Runs {
                threads: u32::try_from(n).unwrap_or(u32::MAX),
                throughputs: cell.runs(RATE).to_vec(),
            })
        });
        match thrashing::detect(&runs.collect::<Vec<_>>()) {
            Ok(Some(found)) => lines.push(format!("With {x} modified lines {found}.")),
            Ok(None) => calm.push(x.to_string()),
            Err(error) => lines.push(format!("With {x} modified lines {error}.")),
        }
    }
    if !calm.is_empty() {
        lines.push(format!(
            "With {} modified lines the detector finds no fall from {} to {} threads.",
            calm.join(", "),
            threads[0],
            threads[threads.len() - 1]
        ));
    }
    lines
}

/// The sizes and the number of threads by which an experiment is judged; where it was not run those
/// that would be.
fn found(results: &Results, experiment: Experiment) -> (Fit, usize) {
    (
        judged_fit(results, experiment).unwrap_or(Fit::Machine),
        judged_threads(results, experiment).unwrap_or(2),
    )
}

fn displacement(
    results: &Results,
    fit: Fit,
    mode: Mode,
    threads: usize,
    section_lines: usize,
) -> Config {
    let local_lines = results.sizes(fit).local_lines();
    Config {
        mode,
        threads,
        local_lines,
        section_lines,
        ..Config::default()
    }
}
