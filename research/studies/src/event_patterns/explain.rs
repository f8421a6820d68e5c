//! Reasons of the claims' results: the server's operations for each request, and their cost.

use std::collections::BTreeMap;

use hearth_draw::scale::Unit;

use super::grid::{mechanisms, pattern_words, patterns};
use super::options::Experiment;
use super::plan::APART;
use super::results::{Cell, Results};
use super::verdict::sweet_spot;

/// Operations in the order in which a request meets them, with the figure of how often it does.
const STEPS: [(&str, &str, &str); 7] = [
    ("obtain", "obtain_ns", "waits"),
    ("enqueue", "enqueue_ns", "events"),
    ("dequeue", "dequeue_ns", "events"),
    ("receive", "receive_ns", "reads"),
    ("serve", "serve_ns", "reads"),
    ("reactivate", "reactivate_ns", "rearmed"),
    ("send", "send_ns", "writes"),
];

/// Sentences by claim. A cause of several claims is given with the first.
pub(super) fn explained(results: &Results) -> BTreeMap<&'static str, Vec<String>> {
    let ways = |pattern| ways(results, pattern);
    BTreeMap::from([
        (
            "edge-over-select",
            [ways("half-async"), ways("leader")].concat(),
        ),
        ("twice", costs(results, "leader")),
        ("select-call", calls(results)),
        ("select-over-level", costs(results, "half-async")),
        ("events-a-call", events(results)),
        ("rearming-grows", rearming(results)),
        ("milder", rates(results)),
        ("waiter", waiters(results)),
        ("sweet-spot", spots(results)),
        ("sharded", costs(results, "sharded")),
    ])
}

fn line<'a>(results: &'a Results, pattern: &str, mechanism: &str) -> Vec<&'a Cell> {
    results.line(Experiment::Threads, [pattern, mechanism, APART], 0)
}

fn ns(value: f64) -> String {
    Unit::Nanoseconds.show(value)
}

/// Cost of each way to wait with a pattern, where its rate is the highest.
fn costs(results: &Results, pattern: &str) -> Vec<String> {
    let server_cores = results.cores_of_server(APART);
    let peaks = mechanisms()
        .into_iter()
        .filter_map(|mechanism| results.peak(Experiment::Threads, [pattern, mechanism, APART], 0));
    peaks.filter_map(|cell| cost(cell, server_cores)).collect()
}

fn cost(cell: &Cell, server_cores: usize) -> Option<String> {
    let of = |figure: &str| cell.median(figure);
    let steps: Vec<String> = STEPS
        .iter()
        .filter_map(|(name, time, often)| {
            let (time, often) = (of(time)?, of(often)?);
            (often >= 0.005).then(|| format!("{name} {often:.2} × {}", ns(time)))
        })
        .collect();
    let steps = match steps.is_empty() {
        true => String::new(),
        false => format!(
            "; {}; sleeps {:.2}",
            steps.join(", "),
            of("sleeps").unwrap_or(0.0)
        ),
    };
    let limit = match cell.is_clients_limit(server_cores) {
        true => "; the clients were the limit",
        false => "",
    };
    Some(format!(
        "{} {}, {} threads: {:.0} replies a second, {} of the server's time a request{steps}{limit}.",
        cell.case.pattern,
        cell.case.mechanism,
        cell.case.threads,
        of("rate")?,
        ns(of("server_ns")?),
    ))
}

/// Share that each way to wait takes of a request with a pattern, beside all that the server does
/// for it.
fn ways(results: &Results, pattern: &str) -> Vec<String> {
    let way = |mechanism| {
        let cell = results.peak(Experiment::Threads, [pattern, mechanism, APART], 0)?;
        let of = |figure: &str| cell.median(figure);
        let waiting = of("call_ns").map(|call| call * of("waits").unwrap_or(0.0));
        let waiting = waiting.map_or(String::new(), |waiting| {
            format!(", {} of it waiting calls", ns(waiting))
        });
        let rearming = of("reactivate_ns").unwrap_or(0.0) * of("rearmed").unwrap_or(0.0);
        let rearming = match rearming > 0.0 {
            true => format!(", {} arming again", ns(rearming)),
            false => String::new(),
        };
        let all = ns(of("server_ns")?);
        Some(format!("{mechanism} {all}{waiting}{rearming}"))
    };
    let words: Vec<String> = mechanisms().into_iter().filter_map(way).collect();
    if words.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "The server's time for a request with {}, at the peaks: {}.",
        pattern_words(pattern),
        words.join("; ")
    )]
}

/// Cost of a wait, and how many events it reports, where one thread alone waits.
fn calls(results: &Results) -> Vec<String> {
    let told = mechanisms().into_iter().filter_map(|mechanism| {
        let cell = line(results, "leader", mechanism).into_iter().next()?;
        let (call, waits) = (cell.median("call_ns")?, cell.median("waits")?);
        let all = cell.median("server_ns")?;
        Some(format!(
            "Leader/Followers with {mechanism} and one thread: a call takes {}, {:.0} % of the server's time for a \
             request ({}).",
            ns(call),
            100.0 * call * waits / all,
            ns(all)
        ))
    });
    told.collect()
}

/// A figure of a line by the number of threads.
fn by_threads(cells: &[&Cell], figure: &str, show: impl Fn(f64) -> String) -> String {
    let words: Vec<String> = cells
        .iter()
        .filter_map(|cell| {
            Some(format!(
                "{}: {}",
                cell.case.threads,
                show(cell.median(figure)?)
            ))
        })
        .collect();
    words.join(", ")
}

fn events(results: &Results) -> Vec<String> {
    let told = mechanisms().into_iter().filter_map(|mechanism| {
        let cells = line(results, "half-async", mechanism);
        let words = by_threads(&cells, "events_a_wait", |value| format!("{value:.1}"));
        (!words.is_empty()).then(|| {
            format!("Connections told of by a wait with {mechanism}, by threads: {words}.")
        })
    });
    let mut lines: Vec<String> = told.collect();
    if !lines.is_empty() {
        lines.push(
            "Where the thread that waits shares its core with those that work, it runs when they have nothing left, \
             and finds what has come meanwhile."
                .to_owned(),
        );
    }
    lines
}

fn rearming(results: &Results) -> Vec<String> {
    let told = ["half-async", "leader"].into_iter().filter_map(|pattern| {
        let cells = line(results, pattern, "level");
        let words = by_threads(&cells, "reactivate_ns", ns);
        (!words.is_empty()).then(|| format!("Arming again with {pattern}, by threads: {words}."))
    });
    told.collect()
}

fn rates(results: &Results) -> Vec<String> {
    let told = patterns().into_iter().filter_map(|pattern| {
        let cells = line(results, pattern, "edge");
        let words = by_threads(&cells, "rate", |value| format!("{value:.0}"));
        (!words.is_empty())
            .then(|| format!("Replies a second with {pattern} and edges, by threads: {words}."))
    });
    told.collect()
}

fn waiters(results: &Results) -> Vec<String> {
    let cells = line(results, "half-async", "edge");
    let words = by_threads(&cells, "waiter_busy", |value| {
        format!("{:.0} %", 100.0 * value)
    });
    if words.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "The thread that waits was on a core, or wanted one, by threads: {words}."
    )]
}

fn spots(results: &Results) -> Vec<String> {
    let told = mechanisms().into_iter().filter_map(|mechanism| {
        let spot = sweet_spot(results, mechanism)?;
        let cells = line(results, "leader", mechanism);
        let words = by_threads(&cells, "rate", |value| format!("{value:.0}"));
        Some(format!(
            "With {mechanism} the rule says {spot:.1} threads, each with a core; replies a second by threads: {words}."
        ))
    });
    told.collect()
}
