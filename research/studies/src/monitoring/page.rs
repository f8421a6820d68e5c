//! The study as one page: the claims first, then the source's table with ours beside it, then
//! depths and losses.

use hearth_draw::Picture;
use hearth_draw::bars::BarChart;
use hearth_draw::line::{Axis, LineChart, Point, Series};
use hearth_draw::page::{Section, Table};
use hearth_draw::scale::{Scale, Unit};

use super::launch::BUFFER_SMALL;
use super::options::{BUSY_DEPTH, Experiment};
use super::parts::Part;
use super::places::Row;
use super::plan::{BLOCK, LAWS};
use super::results::Results;
use super::ways::{Monitor, Way};
use super::{peers, published, tables, verdict};
use crate::pages::{self, counted};
use crate::results::{self, File};

/// Differences from the source's study, beyond the machine.
const DIFFERENCES: [[&str; 3]; 7] = [
    [
        "program",
        "Java, byte code woven at load time",
        "Rust, probes that are part of the source text; Kieker's rows as in the source, with its version 2.0.2, which \
         has no synchronous writer",
    ],
    [
        "runs",
        "10 processes of 20 minutes, 2,000,000 calls, of which the second half counts",
        "10 processes whose counted half takes a second unless asked otherwise, after calls without work; they take \
         turns. Medians over the processes of each one's mean, with bootstrap intervals",
    ],
    [
        "placing",
        "the process is kept to some cores",
        "with Hearth, each of the two threads to its own, but for A5; with Kieker as in the source",
    ],
    [
        "collecting",
        "a writer that does nothing",
        "Hearth's and Kieker's writers take the records and drop them: Hearth's has encoded them by then",
    ],
    [
        "a record",
        "a call: signature, session, trace, both times, order, some 180 bytes of text",
        "a record each for begin and end; encoded, a call takes some bytes",
    ],
    [
        "when records come too fast",
        "the application waits",
        "the same, but where other laws are compared",
    ],
    [
        "a method that waits for the clock",
        "hides whatever takes its core while it waits",
        "the same; the load without a method hides nothing",
    ],
];

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = format!(
        "{}, of the source's rows {}",
        counted(results.site.cores, "core"),
        rows(results)
    );
    let mut page = pages::begin(
        "Monitoring",
        &results.about,
        &used,
        "What does it cost to look at a program's calls, and how much of that does another core take over? The source, \
         of 2012, split what Kieker costs a call into instrumentation, collecting and writing by the differences of \
         four runs, and moved the writer. The same four runs are made here with Hearth's probes, with Kieker of today \
         and with fastrace in turns; and calls nest deeper, until the writer falls behind.",
    );
    page.add(claims(results));
    page.add(parts(results));
    page.add(busy(results));
    page.add(depth(results));
    page.add(saturation(results));
    page.add(processors());
    page.add(differences());
    pages::end(page, "monitoring", &results.about)
}

fn rows(results: &Results) -> String {
    let rows = results.site.places.iter().map(|place| place.row.id());
    rows.collect::<Vec<_>>().join(", ")
}

/// The charts as files of their own, by name.
#[must_use]
pub fn charts(results: &Results) -> Vec<File> {
    let mut charts = Vec::new();
    for experiment in [Experiment::Parts, Experiment::Busy] {
        for &monitor in &results.site.monitors {
            if let Some(picture) = bars(results, experiment, monitor) {
                let name = format!("{}-{}.svg", experiment.id(), monitor.id());
                charts.push((name, picture));
            }
        }
    }
    for &monitor in &results.site.monitors {
        if let Some(picture) = by_depth(results, monitor) {
            charts.push((format!("depth-{}.svg", monitor.id()), picture));
        }
    }
    if let Some(picture) = rates(results) {
        charts.push(("saturation.svg".into(), picture));
    }
    let files = charts.into_iter();
    files
        .map(|(name, picture)| (name, picture.file()))
        .collect()
}

/// The engine's tables, and each part with its interval.
pub(super) fn tables(results: &Results) -> Vec<File> {
    let mut files = Vec::new();
    for experiment in Experiment::ALL {
        let rows = results.rows(experiment);
        if !rows.is_empty() {
            let columns = <super::Monitoring as crate::study::Study>::COLUMNS;
            files.extend(results::tables(experiment.id(), columns, &rows));
        }
    }
    files.push(tables::file(results));
    files
}

fn claims(results: &Results) -> Section {
    let section = Section::new("What is claimed").text(
        "Each claim is judged by one rule, which the source's own figures go through as well. The answer is that of \
         Hearth's probes under the source's load, one call in 500 µs; those of calls that do nothing else, and of \
         Kieker on this machine, stand below it. S1 to A5 are the source's names of writers and cores. A part is a \
         difference of medians; where what is divided by is not above zero for sure, nothing is told.",
    );
    pages::claims(
        section,
        &verdict::measured(results).verdicts(),
        &verdict::as_published().verdicts(),
        &results.about,
    )
}

fn parts(results: &Results) -> Section {
    let mut section = Section::new("The source's table, and ours")
        .text(
            "One call in 500 µs. Hearth and Kieker here are two programs in two languages on one machine; the published \
             column is a third, on another. Intervals are 95 % bootstrap intervals over processes.",
        )
        .table(&tables::beside(results));
    for &monitor in &results.site.monitors {
        if let Some(picture) = bars(results, Experiment::Parts, monitor) {
            section = section.picture(&picture, "");
        }
    }
    section.folded_table(
        "All that was measured",
        &tables::load(results, Experiment::Parts),
    )
}

fn busy(results: &Results) -> Section {
    let mut section = Section::new(&format!("Calls {BUSY_DEPTH} deep that do nothing else")).text(
        "MooBench's load of today: all that is recorded comes as fast as it can, and the writer has always something \
         to do. Times are those of a call with all within it.",
    );
    for &monitor in &results.site.monitors {
        if let Some(picture) = bars(results, Experiment::Busy, monitor) {
            section = section.picture(&picture, "");
        }
    }
    section.table(&tables::load(results, Experiment::Busy))
}

/// A monitor's parts by row.
fn bars(results: &Results, experiment: Experiment, monitor: Monitor) -> Option<Picture> {
    let measured: Vec<Row> = Row::ALL
        .into_iter()
        .filter(|&row| {
            let runs = results.runs(experiment, monitor, row);
            runs.part(Part::Instrumentation).is_some()
        })
        .collect();
    let series = Part::THREE.map(|part| {
        let of = |row: &Row| {
            let found = results.runs(experiment, monitor, *row).part(part);
            found.map_or(0.0, |found| found.value.max(0.0))
        };
        (part.id().to_owned(), measured.iter().map(of).collect())
    });
    let load = match experiment {
        Experiment::Busy => "calls that do nothing else",
        _ => "one call in 500 µs",
    };
    (!measured.is_empty()).then(|| {
        BarChart {
            classes: measured.iter().map(|row| row.id().to_owned()).collect(),
            series: series.to_vec(),
            y_label: "of a call".into(),
            unit: Unit::Nanoseconds,
            ..BarChart::new(&format!("{}, {load}: parts by row", monitor.words()))
        }
        .draw()
    })
}

fn depth(results: &Results) -> Section {
    let mut section = Section::new("By the depth of recursion").text(
        "Calls within a call in 500 µs, the writer apart from the application. The source's writing is a constant of \
         2.5 µs and 0.1 µs for each call; its collecting 0.9 µs for each.",
    );
    for &monitor in &results.site.monitors {
        if let Some(picture) = by_depth(results, monitor) {
            section = section.picture(&picture, "");
        }
    }
    match results.of(Experiment::Depth).next() {
        Some(_) => section.table(&tables::depth(results)),
        None => section.text("Not measured."),
    }
}

fn by_depth(results: &Results, monitor: Monitor) -> Option<Picture> {
    let depths = results.depths(Experiment::Depth, monitor);
    let series = Part::THREE.map(|part| {
        let points = depths.iter().filter_map(|&depth| {
            let runs = results.runs_at(Experiment::Depth, monitor, depth);
            let found = runs.part(part)?;
            let point = Point::new(depth.into(), found.value);
            Some(point.within(found.low, found.high))
        });
        Series::line(part.id(), points.collect())
    });
    (!depths.is_empty()).then(|| {
        LineChart {
            x: Axis::new("calls within a call", Scale::Linear, Unit::Number),
            y: Axis::new("of a call", Scale::Linear, Unit::Nanoseconds),
            series: series.to_vec(),
            ..LineChart::new(&format!("{}: parts by depth", monitor.words()))
        }
        .draw()
    })
}

fn saturation(results: &Results) -> Section {
    let section = Section::new("To saturation").text(&format!(
        "More calls in 500 µs than the source had, with blocks of {} between program and writer, so that what it cannot \
         keep up with shows early. What a law drops, overwrites or leaves out is counted by the monitor; what is \
         stored, by the reader of its file. Emitted less stored less lost is not accounted for.",
        Unit::Bytes.show(BUFFER_SMALL as f64)
    ));
    if results.of(Experiment::Saturation).next().is_none() {
        return section.text("Not measured.");
    }
    let section = match rates(results) {
        Some(picture) => section.picture(&picture, ""),
        None => section,
    };
    section.table(&tables::saturation(results))
}

/// Rates stored by depth, a line for each law, and the rate emitted.
fn rates(results: &Results) -> Option<Picture> {
    let line = |law: &str, figure: &str| -> Vec<Point> {
        let cells = results.of(Experiment::Saturation).filter(|cell| {
            cell.case.monitor == Monitor::Hearth
                && cell.case.way == Way::File
                && cell.case.law == law
        });
        let point = |cell: &super::results::Cell| {
            let found = cell.summary(figure)?;
            let point = Point::new(cell.case.depth.into(), found.median);
            Some(point.within(found.least, found.most))
        };
        cells.filter_map(point).collect()
    };
    let mut series: Vec<Series> = LAWS
        .iter()
        .map(|law| Series::line(&format!("stored, {law}"), line(law, "stored_per_s")))
        .collect();
    let emitted = LAWS.iter().find(|law| **law != BLOCK)?;
    series.push(Series::dashed(
        &format!("emitted, {emitted}"),
        line(emitted, "emitted_per_s"),
    ));
    let is_there = series.iter().any(|series| !series.points.is_empty());
    is_there.then(|| {
        LineChart {
            x: Axis::new("calls within a call", Scale::Log2, Unit::Number),
            y: Axis::new("records a second", Scale::Log10, Unit::Number),
            series,
            ..LineChart::new("Hearth: records emitted and stored")
        }
        .draw()
    })
}

fn processors() -> Section {
    let mut table = Table::new(&[
        "processor",
        ">writing, synchronous",
        ">asynchronous",
        "where",
    ]);
    let us = |text: &str| match text {
        "" => "—".to_owned(),
        us => format!("{us} µs"),
    };
    for [name, synchronous, asynchronous, said] in published::processors() {
        table.row(vec![
            name.into(),
            us(synchronous),
            us(asynchronous),
            said.into(),
        ]);
    }
    let mut said = Table::new(&["what", ">published", "where"]);
    for finding in published::findings() {
        said.row(vec![
            finding.name.to_owned(),
            finding.figure.words(),
            finding.place.to_owned(),
        ]);
    }
    Section::new("The source's processors")
        .text(
            "Writing on all cores of four machines. This machine is one more; its rows are above.",
        )
        .table(&table)
        .folded_table("What the source says, as it is judged", &said)
}

fn differences() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for row in DIFFERENCES {
        table.row(row.map(str::to_owned).to_vec());
    }
    Section::new("What is different")
        .text(&format!(
            "Peers are Kieker {} and fastrace {}; {}. fastrace stores nothing by itself: its spans go to a reporter \
             that drops them, which is collecting.",
            peers::KIEKER,
            peers::FASTRACE,
            peers::HINT
        ))
        .table(&table)
}
