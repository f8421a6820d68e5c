//! The study as one page: the claims first, then the source's figures, then what we add.

use hearth_draw::Picture;
use hearth_draw::bars::BarChart;
use hearth_draw::line::{Axis, LineChart, Mark, Point, Series};
use hearth_draw::page::{Section, Table};
use hearth_draw::scale::{Scale, Unit};

use super::grid::{GRID, Kind, mechanism_words, mechanisms, pattern_words, patterns};
use super::options::{CONNECTIONS, Experiment, MESSAGE_BYTES};
use super::plan::APART;
use super::published;
use super::results::{Cell, Results};
use super::verdict::{self, LAYOUTS};
use crate::pages::{self, counted};

/// Differences from the source's study, beyond the machine.
const DIFFERENCES: [[&str; 3]; 7] = [
    [
        "runs",
        "5 of 5 minutes, means",
        "5 of 2 seconds unless asked otherwise, medians with bootstrap intervals; cells take turns",
    ],
    [
        "messages",
        "not said",
        "64 bytes each way, without Nagle's delay",
    ],
    [
        "arming again",
        "after the message is read, before it is processed",
        "after the reply is sent, by who had the connection",
    ],
    [
        "network",
        "client and server on processors of their own in one machine",
        "the same by the loopback device: what it does for a message is done on the sender's core",
    ],
    [
        "select",
        "one bit set, which is written when a connection is armed",
        "the same; who arms while another waits also wakes it",
    ],
    ["clients", "as many threads as cores", "the same"],
    [
        "read until nothing is left, with edges",
        "not said",
        "a read that gives less than it may ends it, as Linux promises",
    ],
];

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = format!(
        "{} for the server and {} for the clients",
        counted(results.site.server_cores.len(), "core"),
        results.site.client_cores.len()
    );
    let mut page = pages::begin(
        "Event servers",
        &results.about,
        &used,
        &format!(
            "Which threads wait, which work, and how do they wait? The source, of 2012, compared two patterns of threads \
         with three ways to wait on a machine of 32 cores. The same grid is run here by {CONNECTIONS} connections \
         with one request of {MESSAGE_BYTES} bytes under way each; connections of each thread's own are added."
        ),
    );
    page.add(claims(results));
    page.add(threads(results));
    page.add(operations(results));
    page.add(layouts(results, Experiment::Together));
    page.add(layouts(results, Experiment::Work));
    page.add(timers(results));
    page.add(figures());
    page.add(differences());
    pages::end(page, "event-patterns", &results.about)
}

/// The charts as files of their own, by name.
#[must_use]
pub fn charts(results: &Results) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    if results.of(Experiment::Threads).next().is_some() {
        for pattern in patterns() {
            charts.push((
                format!("threads-{pattern}.svg"),
                by_mechanism(results, pattern),
            ));
        }
        charts.push(("threads-edge.svg".into(), by_pattern(results, "edge")));
        for pattern in ["half-async", "leader"] {
            charts.push((
                format!("operations-{pattern}-level.svg"),
                steps(results, pattern),
            ));
        }
        charts.push(("obtain-half-async-edge.svg".into(), stage(results)));
        charts.push(("obtain-leader.svg".into(), obtain(results)));
    }
    for (layout, work_us) in worked(results, Experiment::Together) {
        charts.push((
            "together.svg".into(),
            rates(results, Experiment::Together, layout, work_us),
        ));
    }
    for (layout, work_us) in worked(results, Experiment::Work) {
        charts.push((
            format!("work-{work_us}-{layout}.svg"),
            rates(results, Experiment::Work, layout, work_us),
        ));
    }
    charts
        .into_iter()
        .map(|(name, picture)| (name, picture.file()))
        .collect()
}

fn claims(results: &Results) -> Section {
    let section = Section::new("What is claimed").text(
        "Each claim is judged by one rule, which the source's own figures go through as well. Rates are compared where \
         each is highest by the number of threads; a ratio of medians stands with its 95 % bootstrap interval. \
         A time of an operation has in it whatever time its thread was off its core.",
    );
    pages::claims(
        section,
        &verdict::measured(results).verdicts(),
        &verdict::as_published().verdicts(),
        &results.about,
    )
}

fn line<'a>(results: &'a Results, pattern: &str, mechanism: &str) -> Vec<&'a Cell> {
    results.line(Experiment::Threads, [pattern, mechanism, APART], 0)
}

/// A figure by threads, with least and most.
fn points(cells: &[&Cell], figure: &str) -> Vec<Point> {
    let point = |cell: &&Cell| {
        let found = cell.summary(figure)?;
        let point = Point::new(cell.case.threads as f64, found.median);
        Some(point.within(found.least, found.most))
    };
    cells.iter().filter_map(point).collect()
}

fn chart(results: &Results, title: &str, label: &str, unit: Unit, series: Vec<Series>) -> Picture {
    let cores = results.cores_of_server(APART);
    let mark = Mark {
        at: cores as f64,
        label: format!(
            "{cores} core{}; beyond, shared",
            if cores == 1 { "" } else { "s" }
        ),
    };
    let mut y = Axis::new(label, Scale::Linear, unit);
    let most = series
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| point.interval.map_or(point.y, |(_, high)| high))
        .fold(0.0, f64::max);
    y.range = (most > 0.0).then_some((0.0, 1.05 * most));
    LineChart {
        x: Axis::new("threads of the server", Scale::Linear, Unit::Number),
        y,
        series,
        marks: vec![mark],
        ..LineChart::new(title)
    }
    .draw()
}

fn by_mechanism(results: &Results, pattern: &str) -> Picture {
    let series = mechanisms().into_iter().map(|mechanism| {
        let cells = line(results, pattern, mechanism);
        Series::line(mechanism_words(mechanism), points(&cells, "rate"))
    });
    let title = format!("{}: replies a second", pattern_words(pattern));
    chart(
        results,
        &title,
        "replies a second",
        Unit::Number,
        series.collect(),
    )
}

fn by_pattern(results: &Results, mechanism: &str) -> Picture {
    let series = patterns().into_iter().map(|pattern| {
        let cells = line(results, pattern, mechanism);
        Series::line(pattern_words(pattern), points(&cells, "rate"))
    });
    let title = format!("{}: replies a second", mechanism_words(mechanism));
    chart(
        results,
        &title,
        "replies a second",
        Unit::Number,
        series.collect(),
    )
}

/// Receive, re-arm and send, level-triggered.
fn steps(results: &Results, pattern: &str) -> Picture {
    let cells = line(results, pattern, "level");
    let series = [
        ("receive", "receive_ns"),
        ("arm again", "reactivate_ns"),
        ("send", "send_ns"),
    ];
    let series = series.map(|(name, figure)| Series::line(name, points(&cells, figure)));
    let title = format!(
        "{}, level-triggered: time of an operation",
        pattern_words(pattern)
    );
    chart(results, &title, "", Unit::Nanoseconds, series.to_vec())
}

/// Draws the steps of the thread that waits, with edges.
fn stage(results: &Results) -> Picture {
    let cells = line(results, "half-async", "edge");
    let series = [
        ("obtain events", "obtain_ns"),
        ("of that, not asleep", "call_ns"),
        ("queue one", "enqueue_ns"),
    ];
    let series = series.map(|(name, figure)| Series::line(name, points(&cells, figure)));
    let title = "Half-Sync/Half-Async, edges: the thread that waits";
    chart(results, title, "", Unit::Nanoseconds, series.to_vec())
}

fn obtain(results: &Results) -> Picture {
    let series = mechanisms().into_iter().map(|mechanism| {
        let cells = line(results, "leader", mechanism);
        Series::line(mechanism_words(mechanism), points(&cells, "obtain_ns"))
    });
    let title = "Leader/Followers: time to obtain one event";
    chart(results, title, "", Unit::Nanoseconds, series.collect())
}

fn threads(results: &Results) -> Section {
    let mut section = Section::new("Threads").text(
        "Medians of the runs; the band is from the least to the most. More threads than the server has cores share them: \
         what they show there is not what threads on cores of their own do.",
    );
    if results.of(Experiment::Threads).next().is_none() {
        return section.text("Not measured.");
    }
    let number = |pattern| match pattern {
        "half-async" => "Beside the source's figure 5.",
        "leader" => "Beside the source's figure 8.",
        _ => "",
    };
    for pattern in patterns() {
        section = section.picture(&by_mechanism(results, pattern), number(pattern));
    }
    section = section.picture(
        &by_pattern(results, "edge"),
        "Beside the source's figure 4.",
    );
    section.folded_table("Each cell", &rate_table(results, Experiment::Threads))
}

fn operations(results: &Results) -> Section {
    let section = Section::new("Operations").text(
        "The mean time of each operation, by clocks read around it. It has in it the time for which its thread was off \
         its core, so it grows with threads that share one.",
    );
    if results.of(Experiment::Threads).next().is_none() {
        return section.text("Not measured.");
    }
    section
        .picture(&stage(results), "Beside the source's figure 6.")
        .picture(
            &steps(results, "half-async"),
            "Beside the source's figure 7.",
        )
        .picture(&obtain(results), "Beside the source's figure 9.")
        .picture(&steps(results, "leader"), "Beside the source's figure 10.")
        .folded_table("Each cell, a request", &operation_table(results))
}

/// The layouts and work that an experiment has.
fn worked(results: &Results, experiment: Experiment) -> Vec<(&'static str, u32)> {
    let mut found = Vec::new();
    for (layout, _) in LAYOUTS {
        for cell in results.of(experiment) {
            let entry = (layout, cell.case.work_us);
            if cell.case.layout == layout && !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    found
}

/// Rates of all cells by the number of threads.
fn rates(results: &Results, experiment: Experiment, layout: &str, work_us: u32) -> Picture {
    let rate = |pattern, mechanism, threads| {
        let line = results.line(experiment, [pattern, mechanism, layout], work_us);
        let cell = line.into_iter().find(|cell| cell.case.threads == threads);
        cell.and_then(|cell| cell.median("rate")).unwrap_or(0.0)
    };
    let mut threads: Vec<usize> = results
        .of(experiment)
        .map(|cell| cell.case.threads)
        .collect();
    threads.sort_unstable();
    threads.dedup();
    let series = threads.into_iter().map(|threads| {
        let values = GRID
            .iter()
            .map(|kind| rate(kind.pattern, kind.mechanism, threads));
        let name = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
        (name, values.collect())
    });
    let words = LAYOUTS
        .iter()
        .find(|(id, _)| *id == layout)
        .map_or(layout, |(_, words)| words);
    // Names that have room below their bars.
    let short = |kind: &Kind| kind.pattern.split('-').next().unwrap_or_default();
    let classes = GRID
        .iter()
        .map(|kind| format!("{} {}", short(kind), kind.mechanism));
    BarChart {
        classes: classes.collect(),
        series: series.collect(),
        y_label: "replies a second".into(),
        width: 1360.0,
        ..BarChart::new(&format!("{work_us} µs of work, {words}: replies a second"))
    }
    .draw()
}

fn layouts(results: &Results, experiment: Experiment) -> Section {
    let title = match experiment {
        Experiment::Together => "All cores for both",
        _ => "Requests with work",
    };
    let mut section = Section::new(title);
    if results.of(experiment).next().is_none() {
        return section.text("Not measured.");
    }
    for (layout, work_us) in worked(results, experiment) {
        section = section.picture(&rates(results, experiment, layout, work_us), "");
    }
    section.folded_table("Each cell", &rate_table(results, experiment))
}

fn rate_table(results: &Results, experiment: Experiment) -> Table {
    let mut table = Table::new(&[
        "pattern",
        "mechanism",
        "layout",
        ">threads",
        ">work µs",
        ">replies/s",
        ">least",
        ">most",
        ">p50 µs",
        ">p99 µs",
        ">server cores",
        ">server µs a request",
        ">client cores",
        ">others",
        "limit",
    ]);
    for cell in results.of(experiment).filter(|cell| cell.case.is_timed) {
        let case = &cell.case;
        let mut row = vec![
            case.pattern.clone(),
            case.mechanism.clone(),
            case.layout.clone(),
            case.threads.to_string(),
            case.work_us.to_string(),
        ];
        let Some(rate) = cell.summary("rate") else {
            row.push("not measured".into());
            table.row(row);
            continue;
        };
        let of = |figure, digits: usize| {
            let median = cell.median(figure);
            median.map_or(String::new(), |median| format!("{median:.digits$}"))
        };
        let server_us = cell.median("server_ns").map_or(0.0, |ns| ns / 1e3);
        let limit = match cell.is_clients_limit(results.cores_of_server(&case.layout)) {
            true => "the clients",
            false => "",
        };
        row.extend([
            format!("{:.0}", rate.median),
            format!("{:.0}", rate.least),
            format!("{:.0}", rate.most),
            of("p50_us", 0),
            of("p99_us", 0),
            of("server_cores", 2),
            format!("{server_us:.2}"),
            of("client_cores", 2),
            of("others_cores", 2),
            limit.to_owned(),
        ]);
        table.row(row);
    }
    table
}

/// Means of operations, and how often a request meets each.
fn operation_table(results: &Results) -> Table {
    let figures = [
        (">obtain", "obtain_ns"),
        (">call", "call_ns"),
        (">enqueue", "enqueue_ns"),
        (">dequeue", "dequeue_ns"),
        (">receive", "receive_ns"),
        (">serve", "serve_ns"),
        (">arm again", "reactivate_ns"),
        (">send ns", "send_ns"),
        (">waits", "waits"),
        (">events a wait", "events_a_wait"),
        (">reads", "reads"),
        (">writes", "writes"),
        (">armed", "rearmed"),
        (">rung", "rung"),
        (">sleeps", "sleeps"),
    ];
    let heads = ["pattern", "mechanism", ">threads"].into_iter();
    let heads: Vec<&str> = heads.chain(figures.map(|(head, _)| head)).collect();
    let mut table = Table::new(&heads);
    for cell in results.of(Experiment::Threads) {
        let case = &cell.case;
        let mut row = vec![
            case.pattern.clone(),
            case.mechanism.clone(),
            case.threads.to_string(),
        ];
        row.extend(figures.map(|(_, figure)| {
            let digits = if figure.ends_with("_ns") { 0 } else { 2 };
            let median = cell.median(figure);
            median.map_or(String::new(), |median| format!("{median:.digits$}"))
        }));
        table.row(row);
    }
    table
}

fn timers(results: &Results) -> Section {
    let section = Section::new("What the timers cost").text(
        "All figures are of runs in which operations are timed. Beside each the same without.",
    );
    let mut table = Table::new(&[
        "pattern",
        "mechanism",
        ">threads",
        ">timed, replies/s",
        ">without",
        ">ratio",
    ]);
    for cell in results
        .of(Experiment::Timers)
        .filter(|cell| cell.case.is_timed)
    {
        let untimed = results.of(Experiment::Timers).find(|other| {
            !other.case.is_timed
                && other.case.pattern == cell.case.pattern
                && other.case.mechanism == cell.case.mechanism
        });
        let without = untimed.and_then(|other| other.median("rate"));
        if let (Some(timed), Some(without)) = (cell.median("rate"), without) {
            table.row(vec![
                cell.case.pattern.clone(),
                cell.case.mechanism.clone(),
                cell.case.threads.to_string(),
                format!("{timed:.0}"),
                format!("{without:.0}"),
                format!("{:.3}", timed / without),
            ]);
        }
    }
    if table.rows.is_empty() {
        return section.text("Not measured.");
    }
    section.table(&table)
}

fn figures() -> Section {
    let mut table = Table::new(&["figure", "shows", "left"]);
    for row in published::figures() {
        table.row(row.map(str::to_owned).to_vec());
    }
    let mut said = Table::new(&["what", ">published", "where"]);
    for finding in published::findings() {
        said.row(vec![
            finding.name.to_owned(),
            finding.figure.words(),
            finding.place.to_owned(),
        ]);
    }
    Section::new("The source's figures")
        .text("They are pictures, whose curves its text does not give. What it says of them is what is judged.")
        .table(&table)
        .folded_table("What it says, as it is judged", &said)
}

fn differences() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for row in DIFFERENCES {
        table.row(row.map(str::to_owned).to_vec());
    }
    Section::new("What is different").table(&table)
}
