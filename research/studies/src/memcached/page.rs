//! The study as one page: the claims first, then each figure of the source, then what it does not
//! have.

use hearth_draw::Picture;
use hearth_draw::bars::BarChart;
use hearth_draw::line::{Axis, LineChart, Point, Series};
use hearth_draw::page::{Section, Table};
use hearth_draw::scale::{Scale, Unit};

use super::gaps::GAPS;
use super::kinds::{KINDS, LOCK, MEMCACHED, MESSAGE, PLAIN};
use super::options::Experiment;
use super::plan::{Case, MEMCASLAP, OURS};
use super::published;
use super::ratio::of_runs;
use super::results::{Cell, Results};
use super::verdict;
use crate::pages::{self, counted};
use hearth_stats::Summary;

/// Servers in the chart of throughput by threads, in the order of their colours.
const SIDES: [&str; 4] = [MEMCACHED, LOCK, MESSAGE, "auto"];

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = counted(results.site.cores.len(), "core");
    let mut page = pages::begin(
        "memcached, synchronous or asynchronous",
        &results.about,
        &used,
        "Is a server faster when the section that takes memory for new items belongs to a thread of its own, asked by \
         message? The source, of 2014, changed memcached 1.4.20 so and ran it on 64 cores. Here it is cachet, whose \
         section runs either way by an option, with today's memcached beside.",
    );
    page.add(claims(results));
    page.add(threads(results));
    page.add(gains(results));
    page.add(cycles(results));
    page.add(optimisations(results));
    page.add(evicting(results));
    page.add(setup(results));
    page.add(gaps());
    pages::end(page, "memcached", &results.about)
}

/// The charts as files of their own, by name.
#[must_use]
pub fn charts(results: &Results) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    for reads in results.mixes(Experiment::Threads) {
        for (load, name) in [(OURS, "throughput"), (MEMCASLAP, "throughput-memcaslap")] {
            let is_measured = |cell: &Cell| cell.case.load == load && cell.case.reads == reads;
            if !results.of(Experiment::Threads).any(is_measured) {
                continue;
            }
            charts.push((
                format!("{name}-{reads}.svg"),
                by_threads(results, reads, load, &RATE).file(),
            ));
        }
        charts.push((
            format!("server-time-{reads}.svg"),
            by_threads(results, reads, OURS, &TIME).file(),
        ));
    }
    if results.of(Experiment::Threads).next().is_some() {
        charts.push(("gains.svg".to_owned(), gain_bars(results).file()));
    }
    if results.of(Experiment::Sections).next().is_some() {
        charts.push(("cycles.svg".to_owned(), cycle_lines(results).file()));
    }
    for threads in results.threads(Experiment::Optimisations) {
        charts.push((
            format!("optimisations-{threads}.svg"),
            optimisation_bars(results, threads).file(),
        ));
    }
    charts
}

fn claims(results: &Results) -> Section {
    let section = Section::new("What the source claims").text(
        "Each claim is judged by one rule, which the source's own figures go through as well. A ratio of \
         medians stands with its 95 % bootstrap interval; alike is within 5 %.",
    );
    pages::claims(
        section,
        &verdict::measured(results).verdicts(),
        &[],
        &results.about,
    )
}

/// A figure by threads.
struct Drawn {
    figure: &'static str,
    title: &'static str,
    label: &'static str,
    unit: Unit,
}

const RATE: Drawn = Drawn {
    figure: "rate",
    title: "throughput by server threads",
    label: "requests a second",
    unit: Unit::Number,
};
const TIME: Drawn = Drawn {
    figure: "server_ns",
    title: "the server's time on cores for a request",
    label: "a request",
    unit: Unit::Nanoseconds,
};

fn point(threads: u32, runs: &[f64]) -> Option<Point> {
    let at = |share| hearth_stats::quantile(runs, share);
    Some(Point::new(f64::from(threads), at(0.5)?).within(at(0.25)?, at(0.75)?))
}

fn by_threads(results: &Results, reads: u32, load: &str, drawn: &Drawn) -> Picture {
    let counts = results.threads(Experiment::Threads);
    let series = SIDES.iter().enumerate().map(|(at, kind)| {
        let points = counts.iter().filter_map(|&threads| {
            let cell = results.cell(&case(Experiment::Threads, reads, load, threads, kind))?;
            point(threads, cell.runs(drawn.figure))
        });
        Series::line(kind, points.collect()).coloured(at)
    });
    let mut series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    if drawn.figure == "rate" {
        series.extend(as_published(&series, reads));
    }
    LineChart {
        series,
        x: Axis::new("server threads", Scale::Log2, Unit::Number),
        y: Axis::new(drawn.label, Scale::Linear, drawn.unit),
        ..LineChart::new(&format!(
            "{}/{} reads and writes, {load}: {}",
            reads,
            100 - reads,
            drawn.title
        ))
    }
    .draw()
}

/// Predicts the version by message: our throughput under the lock, times the gain that the source
/// measured.
fn as_published(series: &[Series], reads: u32) -> Option<Series> {
    let gain = published::gain(reads)?;
    let lock = series.iter().find(|series| series.name == LOCK)?;
    let points = lock
        .points
        .iter()
        .map(|point| Point::new(point.x, gain * point.y));
    let name = format!("{LOCK} × {gain}, the source's gain by message");
    let colour = SIDES.iter().position(|side| *side == MESSAGE)?;
    Some(Series::dashed(&name, points.collect()).coloured(colour))
}

fn case(experiment: Experiment, reads: u32, load: &str, threads: u32, kind: &str) -> Case {
    Case {
        experiment,
        reads,
        load: load.to_owned(),
        threads,
        kind: kind.to_owned(),
        is_bound: false,
    }
}

fn threads(results: &Results) -> Section {
    let mut section = Section::new("Figure 4.1: throughput by threads").text(
        "The source's curves are lost; its text has a gain for each mix. As many client threads as server threads, 20 \
         connections each, on the machine's own cores. The broken line is what the source's gain would be over the lock here. Bands reach from quartile to quartile. What a line does beyond as \
         many threads as cores is the system's sharing of cores.",
    );
    let mixes = results.mixes(Experiment::Threads);
    if mixes.is_empty() {
        return section.text("Not measured.");
    }
    for (reads, letter) in mixes.into_iter().zip(["a", "b", "c"]) {
        let published = published::gain(reads).map_or(String::new(), |gain| {
            format!(
                "The source: by message {:.0} % more than under a lock.",
                100.0 * (gain - 1.0)
            )
        });
        section = section
            .heading(&format!(
                "4.1{letter}: {reads}/{} reads and writes",
                100 - reads
            ))
            .text(&published);
        for (load, drawn) in [(OURS, &RATE), (MEMCASLAP, &RATE), (OURS, &TIME)] {
            let has = results.of(Experiment::Threads).any(|cell| {
                cell.case.load == load
                    && cell.case.reads == reads
                    && !cell.runs(drawn.figure).is_empty()
            });
            if has {
                section = section.picture(&by_threads(results, reads, load, drawn), "");
            }
        }
        section = section.folded_table(
            "All figures",
            &table(results, |case| {
                case.experiment == Experiment::Threads && case.reads == reads
            }),
        );
    }
    section
}

/// A gain in percent; none if a side is missing.
fn gain(results: &Results, reads: u32, threads: u32, load: &str) -> Option<f64> {
    let runs = |kind| {
        let cell = results.cell(&case(Experiment::Threads, reads, load, threads, kind));
        cell.map_or(&[][..], |cell| cell.runs("rate"))
    };
    let (value, ..) = of_runs(runs(MESSAGE), runs(LOCK))?.ratio?;
    Some(value)
}

fn gain_bars(results: &Results) -> Picture {
    let mixes = results.mixes(Experiment::Threads);
    let mut series = vec![(
        "the source".to_owned(),
        mixes
            .iter()
            .map(|&reads| published::gain(reads).unwrap_or(0.0))
            .collect(),
    )];
    let evidence = verdict::measured(results);
    let peak = |reads: &u32| {
        let figure = evidence.figure(&format!("gain {reads}"));
        figure
            .and_then(|figure| figure.ratio)
            .map_or(0.0, |ratio| ratio.0)
    };
    series.push((
        "here, peak to peak".to_owned(),
        mixes.iter().map(peak).collect(),
    ));
    for threads in results.threads(Experiment::Threads) {
        let values = mixes
            .iter()
            .map(|&reads| gain(results, reads, threads, OURS).unwrap_or(0.0));
        let of_these = if threads == 1 { "" } else { "s" };
        series.push((
            format!("here, {threads} thread{of_these}"),
            values.collect(),
        ));
    }
    BarChart {
        classes: mixes
            .iter()
            .map(|reads| format!("{} % writes", 100 - reads))
            .collect(),
        series,
        y_label: "times the throughput under a lock".to_owned(),
        ..BarChart::new("What the section by message gains")
    }
    .draw()
}

fn gains(results: &Results) -> Section {
    let section = Section::new("The gain").text(
        "By message, with the three optimisations, over under a lock; 1 is no gain. The source does not say whether \
         its gains are of peaks or of the same number of threads.",
    );
    match results.of(Experiment::Threads).next() {
        Some(_) => section.picture(&gain_bars(results), ""),
        None => section.text("Not measured."),
    }
}

fn cycle_lines(results: &Results) -> Picture {
    let experiment = Experiment::Sections;
    let counts = results.threads(experiment);
    let mut series = Vec::new();
    for (at, kind) in [LOCK, MESSAGE].into_iter().enumerate() {
        for is_bound in [false, true] {
            let points: Vec<Point> = counts
                .iter()
                .filter_map(|&threads| {
                    let case = Case {
                        is_bound,
                        ..case(experiment, 0, OURS, threads, kind)
                    };
                    point(threads, results.cell(&case)?.runs("section_ticks"))
                })
                .collect();
            let one = match is_bound {
                false => Series::line(kind, points),
                true => Series::dashed(&format!("{kind}, workers bound"), points),
            };
            series.push(one.coloured(at + 1));
        }
    }
    LineChart {
        series,
        x: Axis::new("server threads", Scale::Log2, Unit::Number),
        y: Axis::new("cycles for an entry", Scale::Linear, Unit::Number),
        ..LineChart::new("Cycles in the section, writes only")
    }
    .draw()
}

fn cycles(results: &Results) -> Section {
    let section = Section::new("Cycles in the critical section").text(
        "Time stamp counter at the section's beginning and end, so that taking and releasing the lock, or sending and \
         waiting, is not in it. The source says near constant by message and growing under a lock; its curves are \
         lost. It compared workers bound to cores and not, to be sure of counters that differ between cores.",
    );
    match results.of(Experiment::Sections).next() {
        None => section.text("Not measured."),
        Some(_) => section.picture(&cycle_lines(results), "").folded_table(
            "All figures",
            &table(results, |case| case.experiment == Experiment::Sections),
        ),
    }
}

/// The servers of the experiment on optimisations, of which the first is the one that others are
/// compared with.
fn optimisation_kinds() -> impl Iterator<Item = &'static str> {
    KINDS
        .iter()
        .map(|kind| kind.id)
        .filter(|id| !matches!(*id, MEMCACHED | "auto"))
}

fn optimisation_bars(results: &Results, threads: u32) -> Picture {
    let values = |figure: &str| -> Vec<f64> {
        let of = |kind: &str| {
            let cell = results.cell(&case(Experiment::Optimisations, 70, OURS, threads, kind));
            cell.and_then(|cell| cell.summary(figure))
                .map(|summary: Summary| summary.median)
        };
        let base = of(PLAIN).unwrap_or(1.0);
        optimisation_kinds()
            .map(|kind| of(kind).unwrap_or(0.0) / base)
            .collect()
    };
    BarChart {
        classes: optimisation_kinds().map(str::to_owned).collect(),
        series: vec![
            ("throughput".to_owned(), values("rate")),
            (
                "the server's time for a request".to_owned(),
                values("server_ns"),
            ),
        ],
        y_label: "times the plain version's".to_owned(),
        ..BarChart::new(&format!(
            "70/30, {threads} server threads: the plain version by message is 1"
        ))
    }
    .draw()
}

fn optimisations(results: &Results) -> Section {
    let mut section = Section::new("The three optimisations").text(
        "The source's plain version lost throughput; a zero-copy queue, clients that spin before they block and a server \
         that takes all requests at once made it win. It does not measure them one by one; here are all eight \
         combinations, the lock, and two ways that it did not have.",
    );
    let counts = results.threads(Experiment::Optimisations);
    if counts.is_empty() {
        return section.text("Not measured.");
    }
    for threads in counts {
        section = section
            .heading(&format!("{threads} server threads"))
            .picture(&optimisation_bars(results, threads), "")
            .table(&table(results, |case| {
                case.experiment == Experiment::Optimisations && case.threads == threads
            }));
    }
    let mut names = Table::new(&["name", "what"]);
    for kind in &KINDS {
        names.row(vec![kind.id.to_owned(), kind.title.to_owned()]);
    }
    section.folded_table("Names", &names)
}

fn evicting(results: &Results) -> Section {
    let section = Section::new("Ten times as much data as memory").text(
        "The source does not say how large its cache was. Where all fits the section cuts a block from free memory; where \
         it does not, each write puts out the least used items first, and the section is longer.",
    );
    let table = table(results, |case| case.experiment == Experiment::Evicting);
    match table.rows.is_empty() {
        true => section.text("Not measured."),
        false => section.table(&table),
    }
}

fn table(results: &Results, is_wanted: impl Fn(&Case) -> bool) -> Table {
    let mut table = Table::new(&[
        "server",
        "generator",
        ">threads",
        ">requests/s",
        ">quarters",
        ">server µs",
        ">waits ‰",
        ">p50 µs",
        ">p99 µs",
        ">section cycles",
        ">section %",
        ">contended %",
    ]);
    for cell in results.cells.iter().filter(|cell| is_wanted(&cell.case)) {
        table.row(row(cell));
    }
    table
}

fn row(cell: &Cell) -> Vec<String> {
    let case = &cell.case;
    let median = |figure: &str, by: f64, digits: usize| {
        let summary = cell.summary(figure);
        summary.map_or(String::new(), |summary| {
            format!("{:.digits$}", summary.median / by)
        })
    };
    let rates = cell.runs("rate");
    let quarter = |share| hearth_stats::quantile(rates, share);
    let quarters = match (quarter(0.25), quarter(0.75)) {
        (Some(low), Some(high)) => format!("{low:.0}–{high:.0}"),
        _ => "failed".to_owned(),
    };
    vec![
        format!(
            "{}{}",
            case.kind,
            if case.is_bound { ", bound" } else { "" }
        ),
        case.load.clone(),
        case.threads.to_string(),
        median("rate", 1.0, 0),
        quarters,
        median("server_ns", 1e3, 2),
        median("waits", 1.0, 0),
        median("p50_us", 1.0, 0),
        median("p99_us", 1.0, 0),
        median("section_ticks", 1.0, 0),
        median("section_percent", 1.0, 1),
        median("contended_percent", 1.0, 2),
    ]
}

fn setup(results: &Results) -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for row in published::setup() {
        table.row(row.map(str::to_owned).to_vec());
    }
    for (name, version) in &results.site.versions {
        table.row(vec![
            format!("version of {name}"),
            String::new(),
            version.clone(),
        ]);
    }
    Section::new("The set-up").table(&table)
}

fn gaps() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for gap in &GAPS {
        table.row([gap.id, gap.what, gap.here].map(str::to_owned).to_vec());
    }
    Section::new("What the source leaves open").table(&table)
}
