//! The study as one page: the claims first, then each experiment with its curves.

use hearth_draw::Picture;
use hearth_draw::line::{Axis, LineChart, Mark, Point, Series};
use hearth_draw::page::{Section, Table};
use hearth_draw::scale::{Scale, Unit};

use super::figures::{Bounded, Within, bounded, of_room, room, slowdown};
use super::matrix::Partition;
use super::options::Experiment;
use super::plan::{NOBODY, PINNED, SOURCE, foreign, of_policies};
use super::policies::Policy;
use super::results::{Cell, Results};
use super::verdict;
use crate::pages::{self, counted};

/// Differences from the source's study, beyond the machine.
const DIFFERENCES: [[&str; 3]; 6] = [
    [
        "system",
        "Windows 7; the jump on two Linux systems as well",
        "Linux",
    ],
    [
        "stealing",
        "Intel TBB",
        "rayon, by rows of the product: the same rule, that a thread without work takes from another",
    ],
    [
        "static parts",
        "OpenMP's static schedule",
        "rayon's threads, each with its own part of the rows",
    ],
    [
        "times",
        "means over trials",
        "means over the products of a run, medians over runs that take turns, with bootstrap intervals",
    ],
    [
        "B in the second experiment",
        "heavy calculations with 4 threads",
        "the same product as in the first, N/2 threads, with stealing",
    ],
    [
        "tools",
        "described, not measured",
        "their rules, run as policies of A; of .NET's pool only that it climbs",
    ],
];

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = counted(results.cpus(), "CPU");
    let mut page = pages::begin(
        "Oversubscription",
        &results.about,
        &used,
        "A program that runs more threads than there are free CPUs gets faster and makes others slower. The source, of \
         2012, showed it with two programs on eight cores, and that a jump in the program's own times gives it away. \
         Two processes multiply matrices here, A with more and more threads beside B; then A chooses its threads.",
    );
    page.add(pages::claims(
        Section::new("What is claimed").text(
            "Each claim is judged by one rule, which the source's own words go through as well. A ratio of medians stands \
             with its 95 % bootstrap interval. N is the number of CPUs, r of B's threads; fit is N − r threads of A, jump \
             one more, over 2N.",
        ),
        &verdict::measured(results).verdicts(),
        &verdict::as_published().verdicts(),
        &results.about,
    ));
    page.add(of_impact(results));
    page.add(of_artifact(results));
    page.add(of_policies_section(results));
    page.add(of_simulation(results));
    page.add(differences());
    pages::end(page, "oversubscription", &results.about)
}

/// The charts as files of their own, by name.
#[must_use]
pub fn charts(results: &Results) -> Vec<(String, String)> {
    let has = |experiment| results.of(experiment).next().is_some();
    let mut charts = Vec::new();
    if has(Experiment::Impact) {
        charts.push(("impact.svg".to_owned(), times(results).file()));
        charts.push(("throughput.svg".to_owned(), throughput(results).file()));
    }
    if has(Experiment::Artifact) {
        charts.push(("artifact.svg".to_owned(), artifact(results).file()));
        for one in bounded(results) {
            let name = format!("bounds-{}.svg", one.foreign);
            charts.push((name, bounds(&one).file()));
        }
    }
    if has(Experiment::Simulated) {
        charts.push(("simulated.svg".to_owned(), simulated(results).file()));
    }
    charts
}

fn points(curve: &[(usize, f64)]) -> Vec<Point> {
    let point = |(threads, value): &(usize, f64)| Point::new(*threads as f64, *value);
    curve.iter().map(point).collect()
}

fn chart(title: &str, y: &str, series: Vec<Series>, marks: &[(usize, &str)]) -> Picture {
    let mark = |(at, label): &(usize, &str)| Mark {
        at: *at as f64,
        label: (*label).to_owned(),
    };
    LineChart {
        x: Axis::new("threads of A", Scale::Linear, Unit::Number),
        y: Axis::new(y, Scale::Linear, Unit::Number),
        series,
        marks: marks.iter().map(mark).collect(),
        ..LineChart::new(title)
    }
    .draw()
}

fn in_ms(curve: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    curve
        .into_iter()
        .map(|(threads, seconds)| (threads, 1e3 * seconds))
        .collect()
}

/// The times of A and B by A's threads.
fn times(results: &Results) -> Picture {
    let r = foreign(results.cpus());
    let way = Partition::Stealing.id();
    let curve = |figure| in_ms(results.curve(Experiment::Impact, (way, r), figure));
    chart(
        "A beside B: time of a product",
        "ms",
        vec![
            Series::line("A", points(&curve("seconds"))),
            Series::line("B", points(&curve("victim_seconds"))),
        ],
        &[(room(results.cpus(), r), "N − r"), (results.cpus(), "N")],
    )
}

/// Products a second of both, and of A alone.
fn throughput(results: &Results) -> Picture {
    let r = foreign(results.cpus());
    let way = Partition::Stealing.id();
    let curve = |r, figure| results.curve(Experiment::Impact, (way, r), figure);
    chart(
        "Products a second",
        "1/s",
        vec![
            Series::line("A and B", points(&curve(r, "total_rate"))),
            Series::dashed("A alone", points(&curve(0, "rate"))),
        ],
        &[(room(results.cpus(), r), "N − r"), (results.cpus(), "N")],
    )
}

/// The times of A with static parts and with stealing, alone and beside B.
fn artifact(results: &Results) -> Picture {
    let r = foreign(results.cpus());
    let mut series = Vec::new();
    for (colour, partition) in [Partition::Static, Partition::Stealing]
        .into_iter()
        .enumerate()
    {
        let curve = |r| in_ms(results.curve(Experiment::Artifact, (partition.id(), r), "seconds"));
        let name = |of: &str| format!("{}, {of}", partition.id());
        series.push(Series::line(&name("alone"), points(&curve(0))).coloured(2 * colour));
        series.push(Series::line(&name("beside B"), points(&curve(r))).coloured(2 * colour + 1));
    }
    let cpus = results.cpus();
    let marks = [(room(cpus, r) + 1, "N − r + 1"), (cpus + 1, "N + 1")];
    chart("A: time of a product", "ms", series, &marks)
}

/// Times with static parts between the model's bounds.
fn bounds(of: &Bounded) -> Picture {
    let curve = |pick: &dyn Fn(&Within) -> f64| {
        let point = |one: &Within| Point::new(one.0 as f64, 1e3 * pick(one));
        of.points.iter().map(point).collect::<Vec<_>>()
    };
    let title = match of.foreign {
        0 => "A alone, static parts, and the model's bounds".to_owned(),
        r => format!(
            "A beside {}, static parts, and the model's bounds",
            counted(r, "thread")
        ),
    };
    chart(
        &title,
        "ms",
        vec![
            Series::line("measured", curve(&|one| one.2)),
            Series::dashed("least contention", curve(&|one| one.1)),
            Series::dashed("most contention", curve(&|one| one.3)),
        ],
        &[],
    )
}

/// The simulated times.
fn simulated(results: &Results) -> Picture {
    let (cores, r) = SOURCE;
    let mut series = Vec::new();
    for (way, name) in [
        (Partition::Static.id(), "static"),
        (PINNED, "static, threads never move"),
        (Partition::Stealing.id(), "stealing"),
    ] {
        for r in [0, r] {
            let curve = results.curve(Experiment::Simulated, (way, r), "time");
            let of = if r == 0 { "alone" } else { "beside 4 threads" };
            series.push(Series::dashed(&format!("{name}, {of}"), points(&curve)));
        }
    }
    chart(
        "Simulated, eight cores: time of a section",
        "of its time with one thread",
        series,
        &[(cores - r + 1, "5"), (cores + 1, "9")],
    )
}

fn table(cells: &[&Cell], figures: &[(&str, &str, f64, usize)]) -> Table {
    let mut head = vec!["way of A", ">threads", ">of B", ">runs"];
    head.extend(figures.iter().map(|(_, column, ..)| *column));
    let mut table = Table::new(&head);
    for cell in cells {
        let threads = match cell.case.threads {
            0 => String::new(),
            threads => threads.to_string(),
        };
        let mut row = vec![
            cell.case.way.clone(),
            threads,
            cell.case.foreign.to_string(),
            cell.count().to_string(),
        ];
        match &cell.failed {
            Some(why) => row.push(why.clone()),
            None => row.extend(figures.iter().map(|(figure, _, factor, digits)| {
                let median = cell.median(figure);
                median.map_or(String::new(), |median| {
                    format!("{:.digits$}", factor * median)
                })
            })),
        }
        table.row(row);
    }
    table
}

const TIMES: [(&str, &str, f64, usize); 5] = [
    ("seconds", ">A, ms", 1e3, 2),
    ("victim_seconds", ">B, ms", 1e3, 2),
    ("rate", ">A, 1/s", 1.0, 1),
    ("victim_rate", ">B, 1/s", 1.0, 1),
    ("total_rate", ">both, 1/s", 1.0, 1),
];

fn of_impact(results: &Results) -> Section {
    let section = Section::new("What A's threads cost B");
    let cells: Vec<&Cell> = results.of(Experiment::Impact).collect();
    if cells.is_empty() {
        return section.text("Not measured.");
    }
    section
        .text("Work is stolen in both programs. B has N/2 threads. Medians over runs.")
        .picture(&times(results), "")
        .picture(&throughput(results), "")
        .folded_table("Every number of threads", &table(&cells, &TIMES))
}

fn of_artifact(results: &Results) -> Section {
    let mut section = Section::new("The jump");
    let cells: Vec<&Cell> = results.of(Experiment::Artifact).collect();
    if cells.is_empty() {
        return section.text("Not measured.");
    }
    section = section.picture(&artifact(results), "");
    let all = bounded(results);
    if let Some(one) = all.first() {
        section = section.text(&format!(
            "The model's bounds are scaled by the line through the times of an idle machine with up to N threads: {:.2} ms \
             for the parallel part, {:.2} ms beside it.",
            1e3 * one.line.scale,
            1e3 * one.line.constant
        ));
    }
    for one in &all {
        let within = format!("{} of {} times lie between", one.within(), one.points.len());
        section = section.picture(&bounds(one), &within);
    }
    section.folded_table("Every number of threads", &table(&cells, &TIMES))
}

fn of_policies_section(results: &Results) -> Section {
    let section = Section::new("Who chooses how");
    let cells: Vec<&Cell> = results.of(Experiment::Policies).collect();
    if cells.is_empty() {
        return section.text("Not measured.");
    }
    let cpus = results.cpus();
    let mut short = Table::new(&[
        "way of A",
        ">of B",
        ">room",
        ">threads chosen",
        ">told",
        ">B's time, of its time alone",
    ]);
    for r in of_policies(cpus) {
        for policy in Policy::ALL {
            let case = (policy.id(), 0, r);
            let median = |figure| {
                let runs = results.found(Experiment::Policies, case, figure)?;
                hearth_stats::median(runs)
            };
            let Some(threads) = median("threads") else {
                continue;
            };
            let told = results
                .found(Experiment::Policies, case, "told")
                .map(|told| {
                    let count = told.iter().filter(|told| **told > 0.0).count();
                    format!("{count} of {}", told.len())
                });
            let is_teller = matches!(policy, Policy::Calibrated | Policy::CalibratedElseMeasured);
            let slower = slowdown(results, policy, r);
            short.row(vec![
                policy.id().to_owned(),
                r.to_string(),
                room(cpus, r).to_string(),
                format!("{threads:.1}"),
                told.filter(|_| is_teller).unwrap_or_default(),
                slower.map_or(String::new(), |ratio| {
                    format!("{:.3} [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high)
                }),
            ]);
        }
    }
    let exact = of_room(results, Policy::Calibrated);
    let exact = exact.iter().map(|(r, of)| {
        let right = of.iter().filter(|of| (**of - 1.0).abs() < 1e-9).count();
        format!("beside {r}: {right} of {}", of.len())
    });
    let exact: Vec<String> = exact.collect();
    let columns = [
        &TIMES[..],
        &[
            ("threads", ">threads chosen", 1.0, 1),
            ("choice_seconds", ">choice, ms", 1e3, 0),
        ],
    ]
    .concat();
    section
        .text(
            "A chooses once, beside B at work, and then steals work as in the first experiment. Room is what B leaves, one \
             thread at least. *loadavg-settled* is what CPUs less the load average would choose if the average were up to \
             date; its B is told to it. *Told* counts runs in which a calibration could tell.",
        )
        .table(&short)
        .text(&format!(
            "Calibrations that chose exactly the room: {}.",
            exact.join(", ")
        ))
        .text(&format!(
            "*{NOBODY}* is B alone, by which its time beside A is judged."
        ))
        .folded_table("All figures", &table(&cells, &columns))
}

fn of_simulation(results: &Results) -> Section {
    let section = Section::new("Simulated: eight cores");
    let cells: Vec<&Cell> = results.of(Experiment::Simulated).collect();
    if cells.is_empty() {
        return section.text("Not computed.");
    }
    let columns = [
        ("time", ">time, simulated", 1.0, 4),
        ("others", ">of B's CPU time, simulated", 1.0, 3),
    ];
    section
        .text(
            "A model, not a measurement: queues of threads that take turns, the others' first, and cores with nothing to do \
             that take waiting threads from others. It shows what follows from these rules alone.",
        )
        .picture(&simulated(results), "")
        .folded_table("Every number of threads", &table(&cells, &columns))
}

fn differences() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for row in DIFFERENCES {
        table.row(row.map(str::to_owned).to_vec());
    }
    Section::new("What is different").table(&table)
}
