//! The tables of the page, and one as a file: each part with its interval.

use hearth_draw::page::Table;
use hearth_draw::scale::Unit;
use hearth_stats::Ratio;

use super::explain::ns;
use super::options::Experiment;
use super::parts::{Part, Runs};
use super::places::Row;
use super::published;
use super::results::Results;
use super::ways::{Monitor, Way};
use crate::results::File;

/// The published table, and ours beside it under the same load.
pub(super) fn beside(results: &Results) -> Table {
    let monitors = [Monitor::Hearth, Monitor::Kieker];
    let mut table = Table::new(&[
        "",
        "writer and cores",
        "part",
        ">Kieker 1.4, published",
        ">Hearth here",
        ">Kieker here",
    ]);
    for published in published::parts() {
        let row = published.row;
        for (nth, part) in Part::THREE.into_iter().enumerate() {
            let said = published.us[nth].map_or("—".to_owned(), |us| format!("{us} µs"));
            let here =
                monitors.map(|monitor| measured(results, Experiment::Parts, monitor, row, part));
            table.row(line(row, nth == 0, part, said, here));
        }
        let said = published.overhead_us();
        let said = said.map_or(published.said.to_owned(), |us| format!("{us:.1} µs"));
        let here = monitors
            .map(|monitor| measured(results, Experiment::Parts, monitor, row, Part::Overhead));
        table.row(line(row, false, Part::Overhead, said, here));
    }
    table
}

fn line(row: Row, is_first: bool, part: Part, said: String, here: [String; 2]) -> Vec<String> {
    let (id, words) = match is_first {
        true => (row.id(), row.words()),
        false => ("", ""),
    };
    let [hearth, kieker] = here;
    let begin = [id, words, part.id()].map(str::to_owned);
    begin.into_iter().chain([said, hearth, kieker]).collect()
}

/// A part in words, or why there is none.
fn measured(
    results: &Results,
    experiment: Experiment,
    monitor: Monitor,
    row: Row,
    part: Part,
) -> String {
    let runs = results.runs(experiment, monitor, row);
    match runs.part(part) {
        Some(found) => ns(found),
        None if results.site.lacking().contains(&row) => "not on this machine".into(),
        None if monitor == Monitor::Kieker && row.is_synchronous() => "has no such writer".into(),
        None => "not measured".into(),
    }
}

/// All monitors in all rows of a load.
pub(super) fn load(results: &Results, experiment: Experiment) -> Table {
    let mut table = Table::new(&[
        "monitor",
        "",
        "writer and cores",
        ">without probe",
        ">instrumentation",
        ">collecting",
        ">writing",
        ">overhead",
    ]);
    for &monitor in &results.site.monitors {
        for row in Row::ALL {
            let runs = results.runs(experiment, monitor, row);
            let Some(plain) = runs.plain() else {
                continue;
            };
            let part = |part| runs.part(part).map_or("—".to_owned(), ns);
            table.row(vec![
                monitor.words().into(),
                row.id().into(),
                row.words().into(),
                Unit::Nanoseconds.show(plain),
                part(Part::Instrumentation),
                part(Part::Collecting),
                part(Part::Writing),
                part(Part::Overhead),
            ]);
        }
    }
    table
}

/// The parts by depth, with the source's beside.
pub(super) fn depth(results: &Results) -> Table {
    let mut table = Table::new(&[
        ">depth",
        "monitor",
        ">instrumentation",
        ">collecting",
        ">writing",
        ">writing, as the source's grows",
    ]);
    let as_published = |depth: u32| {
        let (constant, call) = published::by_depth(Part::Writing)?;
        Some(format!("{:.1} µs", constant + call * f64::from(depth)))
    };
    for &monitor in &results.site.monitors {
        for depth in results.depths(Experiment::Depth, monitor) {
            let runs = results.runs_at(Experiment::Depth, monitor, depth);
            let part = |part| runs.part(part).map_or("—".to_owned(), ns);
            table.row(vec![
                depth.to_string(),
                monitor.words().into(),
                part(Part::Instrumentation),
                part(Part::Collecting),
                part(Part::Writing),
                as_published(depth).unwrap_or_default(),
            ]);
        }
    }
    table
}

/// Rates and losses by depth and law.
pub(super) fn saturation(results: &Results) -> Table {
    let mut table = Table::new(&[
        ">depth",
        "monitor",
        "law",
        ">a call",
        ">records/s emitted",
        ">stored",
        ">lost",
        ">dropped",
        ">overwritten",
        ">refused",
        ">not accounted for",
        ">bytes a call",
    ]);
    for cell in results.of(Experiment::Saturation) {
        let case = &cell.case;
        if case.way != Way::File {
            continue;
        }
        let count = |figure| {
            let median = cell.median(figure);
            median.map_or(String::new(), |median| format!("{median:.0}"))
        };
        let lost = cell.median("lost").zip(cell.median("emitted"));
        let lost = lost.map(|(lost, emitted)| 100.0 * lost / emitted);
        table.row(vec![
            case.depth.to_string(),
            case.monitor.words().into(),
            case.law.clone(),
            cell.median("mean_ns")
                .map_or("failed".into(), |ns| Unit::Nanoseconds.show(ns)),
            count("emitted_per_s"),
            count("stored_per_s"),
            lost.map_or(String::new(), |share| format!("{share:.2} %")),
            count("dropped"),
            count("overwritten"),
            count("refused"),
            count("unaccounted"),
            cell.median("bytes_a_call")
                .map_or(String::new(), |bytes| format!("{bytes:.2}")),
        ]);
    }
    table
}

/// Each part with its interval, as a file.
pub(super) fn file(results: &Results) -> File {
    let mut text = String::from("experiment,monitor,row,depth,part,ns,low,high\n");
    let parts = [
        Part::Instrumentation,
        Part::Collecting,
        Part::Writing,
        Part::Overhead,
    ];
    let mut add = |begin: &str, runs: Runs<'_>| {
        for part in parts {
            if let Some(Ratio { value, low, high }) = runs.part(part) {
                text += &format!("{begin},{},{value},{low},{high}\n", part.id());
            }
        }
    };
    for &monitor in &results.site.monitors {
        let name = monitor.id();
        for (experiment, depth) in [(Experiment::Parts, 1), (Experiment::Busy, 10)] {
            for row in Row::ALL {
                let begin = format!("{},{name},{},{depth}", experiment.id(), row.id());
                add(&begin, results.runs(experiment, monitor, row));
            }
        }
        let apart = results.site.apart().id();
        for experiment in [Experiment::Depth, Experiment::Saturation] {
            for depth in results.depths(experiment, monitor) {
                let begin = format!("{},{name},{apart},{depth}", experiment.id());
                add(&begin, results.runs_at(experiment, monitor, depth));
            }
        }
    }
    ("overhead.csv".into(), text)
}
