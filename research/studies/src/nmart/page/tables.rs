//! The study's tables and sentences.

use hearth_draw::page::Table;

use super::super::distances::{self, Whole, transpose};
use super::super::options::Experiment;
use super::super::published;
use super::super::results::{Results, published as published_figure};
use super::super::zones::{SQUARE, fallback, hops, remote_cost};
use hearth_stats::Summary;

/// Format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// Thousands of cycles, with the most of all runs.
    Kilocycles,
    /// Parts of a hundred.
    Percent,
    /// Whole numbers, unchanged.
    Plain,
    /// Seconds with the deviation.
    Seconds,
}

impl Show {
    fn show(self, summary: &Summary) -> String {
        match self {
            Show::Kilocycles => format!("{} / {}", kilo(summary.mean), kilo(summary.most)),
            Show::Percent => format!("{:.2}", summary.mean),
            Show::Plain => format!("{:.0}", summary.mean),
            Show::Seconds => format!("{:.3} ± {:.3}", summary.mean, summary.deviation),
        }
    }

    fn one(self, value: f64) -> String {
        match self {
            Show::Kilocycles => kilo(value),
            Show::Percent => format!("{value:.2}"),
            Show::Plain => format!("{value:.0}"),
            Show::Seconds => format!("{value:.2}"),
        }
    }
}

fn kilo(cycles: f64) -> String {
    let thousands = cycles / 1000.0;
    match thousands {
        small if small < 100.0 => format!("{small:.2}"),
        large => format!("{large:.0}"),
    }
}

/// A bin's edge, as the source writes it.
pub(super) fn edge(bytes: u64) -> String {
    match bytes {
        small if small < 1 << 10 => small.to_string(),
        middle if middle < 1 << 20 => format!("{}k", middle >> 10),
        large => format!("{}m", large >> 20),
    }
}

/// A row for each allocator, a column for each workload; below each workload's name what it stands
/// for, and rows of what was published for that.
pub(super) fn beside(results: &Results, experiment: Experiment, figure: &str, show: Show) -> Table {
    let workloads = results.workloads(experiment);
    let names: Vec<String> = workloads
        .iter()
        .map(|(name, stands_for)| match stands_for {
            Some(other) if other != name => format!(">{name} for {other}"),
            _ => format!(">{name}"),
        })
        .collect();
    let mut columns = vec!["allocator"];
    columns.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&columns);
    for id in results.allocators(experiment) {
        let mut row = vec![id.to_owned()];
        for (workload, _) in &workloads {
            let cell = results.find(experiment, workload, id);
            row.push(match cell {
                Some(cell) if cell.failed.is_some() => "failed".to_owned(),
                Some(cell) => cell
                    .summary(figure)
                    .map_or("–".to_owned(), |found| show.show(&found)),
                None => "–".to_owned(),
            });
        }
        table.row(row);
    }
    for (printed, id) in published::ALLOCATORS {
        let values: Vec<Option<f64>> = workloads
            .iter()
            .map(|(_, other)| published_figure(experiment, (*other)?, id, figure))
            .collect();
        if values.iter().any(Option::is_some) {
            let mut row = vec![format!("published: {printed}")];
            row.extend(
                values
                    .iter()
                    .map(|value| value.map_or("–".to_owned(), |value| show.one(value))),
            );
            table.row(row);
        }
    }
    table
}

/// Waste that nMART's own classes would cause for each program's requests.
pub(super) fn classes(results: &Results) -> Table {
    let mut table = Table::new(&["program", ">waste of nMART's published classes alone, %"]);
    for (workload, character) in &results.site.characters {
        table.row(vec![
            workload.clone(),
            format!("{:.2}", character.class_waste_percent),
        ]);
    }
    table
}

/// The source's hardware counters.
pub(super) fn counters() -> Table {
    let mut table = Table::new(&[
        "published",
        "allocator",
        ">Gcycles",
        ">Ginstructions",
        ">L1 misses, %",
        ">L3 misses, %",
        ">seconds",
    ]);
    for workload in ["cache-scratch", "cache-thrash", "larson", "shbench"] {
        for (printed, id) in published::ALLOCATORS {
            let value = |field: &str| {
                let mut found = published::appendix().filter(|figure| {
                    figure.name() == workload && figure.allocator == id && figure.field == field
                });
                found.next().map_or(f64::NAN, |figure| figure.value)
            };
            table.row(vec![
                workload.to_owned(),
                printed.to_owned(),
                format!("{:.3}", value("cycles") / 1e9),
                format!("{:.3}", value("instructions") / 1e9),
                format!("{:.2}", value("L1_miss_pct")),
                format!("{:.2}", value("L3_miss_pct")),
                format!("{:.2}", value("elapsed_s")),
            ]);
        }
    }
    table
}

fn joined<T: ToString>(values: &[T]) -> String {
    values
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A machine's own.
pub(super) fn distances(means: &[Vec<f64>]) -> Table {
    let mut table = Table::new(&[
        "memory of node",
        "seconds by node of processors",
        "distances",
        "order from it",
    ]);
    let whole = distances::table(means, Whole::Rounded);
    let orders = distances::orders(means);
    for (node, row) in means.iter().enumerate() {
        let seconds: Vec<String> = row.iter().map(|seconds| format!("{seconds:.3}")).collect();
        table.row(vec![
            node.to_string(),
            seconds.join(" "),
            joined(&whole[node]),
            orders
                .get(node)
                .map_or(String::new(), |order| joined(order)),
        ]);
    }
    table
}

/// Firmware's and measured table, and what the means give by each way to whole numbers.
pub(super) fn published_distances(nodes: usize) -> Table {
    let mut table = Table::new(&[
        "memory of node",
        "firmware",
        "published",
        "cut off",
        "rounded",
        "order by the means",
    ]);
    let means = published::distances(nodes, "seconds");
    let cut = distances::table(&means, Whole::Truncated);
    let rounded = distances::table(&means, Whole::Rounded);
    let orders = distances::orders(&means);
    let (firmware, measured) = (
        published::distances(nodes, "firmware"),
        published::distances(nodes, "measured"),
    );
    for node in 0..nodes {
        table.row(vec![
            node.to_string(),
            joined(&firmware[node]),
            joined(&measured[node]),
            joined(&cut[node]),
            joined(&rounded[node]),
            joined(&orders[node]),
        ]);
    }
    table
}

fn whole(table: &[Vec<f64>]) -> Vec<Vec<u16>> {
    let row = |row: &Vec<f64>| row.iter().map(|distance| *distance as u16).collect();
    transpose(&table.iter().map(row).collect::<Vec<Vec<u16>>>())
}

/// The four-node machine's lists by either table, and how far its pages are.
pub(super) fn orders() -> Table {
    let mut table = Table::new(&[
        "node",
        "by the firmware's table",
        ">links a page",
        "by the measured table",
        ">links a page",
    ]);
    const PAGES: u64 = 1 << 20;
    let costs = hops(4, &SQUARE);
    let firmware = fallback(&whole(&published::distances(4, "firmware")));
    let measured = fallback(&whole(&published::distances(4, "measured")));
    for node in 0..4 {
        table.row(vec![
            node.to_string(),
            joined(&firmware[node]),
            format!("{:.2}", remote_cost(&firmware, &costs, node, PAGES)),
            joined(&measured[node]),
            format!("{:.2}", remote_cost(&measured, &costs, node, PAGES)),
        ]);
    }
    table
}

/// Seconds before and after.
pub(super) fn payoff() -> Table {
    let mut table = Table::new(&[
        "node",
        ">megabytes",
        ">firmware's order, s",
        ">measured order, s",
        ">gain, %",
    ]);
    for row in published::payoff() {
        table.row(vec![
            row.node.to_string(),
            row.megabytes.to_string(),
            format!("{:.3}", row.seconds.0),
            format!("{:.3}", row.seconds.1),
            format!("{:.1}", row.gain_percent()),
        ]);
    }
    table
}

/// The programs' requests, with what each program stands for.
pub(super) fn workloads(results: &Results) -> Table {
    let mut table = Table::new(&[
        "program",
        ">requests",
        ">releases",
        ">largest",
        ">mean",
        ">interval, cycles",
        ">holding, µs",
        ">blocks at a time",
        "stands for",
        ">requests",
        ">releases",
        ">largest",
        ">mean",
        ">interval, cycles",
        ">holding, µs",
    ]);
    for cell in results.of(Experiment::Workloads) {
        let one = |figure: &str| cell.summary(figure).map_or(f64::NAN, |found| found.mean);
        let character = results.site.characters.get(&cell.case.workload);
        let mean = |quantity: usize| {
            let found = character.map(|character| character.quantities[quantity].mean);
            found.map_or("–".to_owned(), |mean| format!("{mean:.0}"))
        };
        let mut row = vec![
            cell.case.workload.clone(),
            format!("{:.0}", one("mallocs")),
            format!("{:.0}", one("frees")),
            format!("{:.0}", one("largest")),
            mean(0),
            mean(1),
            mean(2),
            character.map_or("–".to_owned(), |character| {
                character.blocks_max.to_string()
            }),
        ];
        let other = cell.case.stands_for.as_deref().unwrap_or_default();
        row.push(other.to_owned());
        let asked = published::asked().find(|asked| asked.workload == other);
        let counts = |of: fn(&published::Asked) -> u64| {
            asked
                .as_ref()
                .map_or("–".to_owned(), |asked| of(asked).to_string())
        };
        row.extend([
            counts(|asked| asked.mallocs),
            counts(|asked| asked.frees),
            counts(|asked| asked.largest),
            counts(|asked| asked.mean),
        ]);
        let means = published::means().find(|(workload, _)| *workload == other);
        row.extend(
            [1, 2].map(|at| {
                means.map_or("–".to_owned(), |(_, means)| format!("{:.0}", means[at].0))
            }),
        );
        table.row(row);
    }
    table
}

/// The source's means and deviations.
pub(super) fn means() -> Table {
    let mut table = Table::new(&[
        "program",
        ">size, bytes",
        ">interval, cycles",
        ">holding time, µs",
    ]);
    for (workload, quantities) in published::means() {
        let mut row = vec![workload.to_owned()];
        row.extend(quantities.map(|(mean, deviation)| format!("{mean:.0} ± {deviation:.0}")));
        table.row(row);
    }
    table
}
