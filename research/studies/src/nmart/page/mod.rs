//! The study as one page: the claims first, then each experiment with the source's figures beside.

mod tables;

use hearth_draw::Picture;
use hearth_draw::bars::BarChart;
use hearth_draw::line::{Axis, LineChart, Point, Series};
use hearth_draw::page::Section;
use hearth_draw::scale::{Scale, Unit};

use super::characterise::QUANTITIES;
use super::options::Experiment;
use super::published;
use super::results::Results;
use super::verdict::Evidence;
use crate::pages::{self, counted};

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = format!(
        "{}, {}",
        counted(results.about.machine.threads, "hardware thread"),
        counted(results.about.machine.nodes.len(), "node")
    );
    let mut page = pages::begin(
        "Allocators in bounded time",
        &results.about,
        &used,
        "Can a general allocator take bounded time on a machine of several nodes? The source built \
         one in 2013, nMART, and ran it on four quad-core Opterons beside six others. Its \
         allocators are built here after its text, and run beside those of today; its figures \
         stand beside those of this machine.",
    );
    page.add(claims(results));
    page.add(times(results));
    page.add(fragments(results));
    page.add(memory(results));
    page.add(threads(results));
    page.add(synthetic(results));
    page.add(nodes(results));
    page.add(workloads(results));
    pages::end(page, "nmart", &results.about)
}

fn claims(results: &Results) -> Section {
    let section = Section::new("What the source claims").text(
        "The same rules judge this machine's figures and the source's published ones, over the \
         source's seven allocators as far as they are here.",
    );
    pages::claims(
        section,
        &Evidence::measured(results).verdicts(),
        &Evidence::published().verdicts(),
        &results.about,
    )
}

/// A bar for each allocator at each workload.
fn bars(
    results: &Results,
    experiment: Experiment,
    figure: &str,
    title: &str,
    unit: Unit,
    factor: f64,
) -> Picture {
    let workloads = results.workloads(experiment);
    let series = results.allocators(experiment).into_iter().map(|id| {
        let values = workloads.iter().map(|(workload, _)| {
            let cell = results.find(experiment, workload, id);
            let summary = cell.and_then(|cell| cell.summary(figure));
            summary.map_or(0.0, |summary| summary.mean * factor)
        });
        (id.to_owned(), values.collect())
    });
    BarChart {
        classes: workloads
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        series: series.collect(),
        scale: if unit == Unit::Percent {
            Scale::Linear
        } else {
            Scale::Log10
        },
        unit,
        ..BarChart::new(title)
    }
    .draw()
}

fn times(results: &Results) -> Section {
    let mut section = Section::new("Longest and total times").text(
        "Each call is timed between serialising stamps, the same in front of every allocator. A \
         run's longest call is the source's measure; on a machine that is interrupted it is the \
         machine's. The floor has the least time of each call over seven runs that make the same \
         calls: what is left is the allocator, and pages touched first.",
    );
    if results.of(Experiment::Times).next().is_none() {
        return section.text("Not measured.");
    }
    let ns = results.site.ns_per_unit;
    let figures = [
        ("allocate_max", "Longest malloc of a run, mean of the runs"),
        ("floor_allocate_max", "Longest malloc of the floor"),
        ("free_max", "Longest free of a run, mean of the runs"),
        ("floor_free_max", "Longest free of the floor"),
        ("allocate_sum", "All mallocs of a run"),
        ("free_sum", "All frees of a run"),
    ];
    for (figure, title) in figures {
        section = section
            .heading(title)
            .picture(
                &bars(
                    results,
                    Experiment::Times,
                    figure,
                    title,
                    Unit::Nanoseconds,
                    ns,
                ),
                "",
            )
            .table(&tables::beside(
                results,
                Experiment::Times,
                figure,
                tables::Show::Kilocycles,
            ));
    }
    section.text(
        "Figures are thousands of cycles of each machine: mean, and the most of all runs. The \
         published ones below stand for a program of the same kind, not the same program.",
    )
}

fn fragments(results: &Results) -> Section {
    let title = "Waste: of the bytes provided, headers included";
    let section = Section::new("Internal fragmentation").text(
        "f = (h − a) / h, a the bytes asked for, h those provided: as the allocator says, and with \
         what it adds to each block. Others' headers are not known, so that they have the first \
         only. Blocks here begin at multiples of 16, as programs of today need; the source rounds \
         to 4.",
    );
    if results.of(Experiment::Fragments).next().is_none() {
        return section.text("Not measured.").picture(&tlsf_waste(), "");
    }
    section
        .picture(&bars(results, Experiment::Fragments, "waste_percent", title, Unit::Percent, 1.0), "")
        .table(&tables::beside(results, Experiment::Fragments, "waste_percent", tables::Show::Percent))
        .heading("Without headers")
        .table(&tables::beside(results, Experiment::Fragments, "payload_waste_percent", tables::Show::Percent))
        .table(&tables::classes(results))
        .picture(
            &tlsf_waste(),
            "The source's figure 3.1, computed: what TLSF and nMART add to small requests. 68 bytes \
             become 80 with TLSF.",
        )
}

/// The waste of small requests by size.
fn tlsf_waste() -> Picture {
    let line = |name: &str, provided: fn(usize) -> usize| {
        let points =
            (1..=512).map(|bytes| Point::new(bytes as f64, (provided(bytes) - bytes) as f64));
        Series::dashed(name, points.collect())
    };
    LineChart {
        x: Axis::new("bytes asked for", Scale::Linear, Unit::Bytes),
        y: Axis::new("bytes wasted", Scale::Linear, Unit::Number),
        series: vec![
            line("TLSF, in steps of 16", |bytes| {
                bytes.max(16).next_multiple_of(16)
            }),
            line("nMART, in steps of 4, as published", |bytes| {
                bytes.next_multiple_of(4)
            }),
            line(
                "nMART as it is here",
                hearth_allocators::nmart::block::payload_for,
            ),
        ],
        ..LineChart::new("Waste of small requests")
    }
    .draw()
}

fn memory(results: &Results) -> Section {
    let section = Section::new("Peak memory").text(
        "VmPeak and VmData, looked at every tenth of a millisecond while the program runs, and once \
         more as it ends. The meter is part of each. Programs with threads have 8 MB of data for \
         each thread's stack.",
    );
    if results.of(Experiment::Memory).next().is_none() {
        return section.text("Not measured.");
    }
    section
        .picture(
            &bars(
                results,
                Experiment::Memory,
                "peak_kb",
                "Peak virtual memory",
                Unit::Bytes,
                1024.0,
            ),
            "",
        )
        .table(&tables::beside(
            results,
            Experiment::Memory,
            "peak_kb",
            tables::Show::Plain,
        ))
        .heading("Data")
        .table(&tables::beside(
            results,
            Experiment::Memory,
            "data_kb",
            tables::Show::Plain,
        ))
        .heading("Resident")
        .table(&tables::beside(
            results,
            Experiment::Memory,
            "resident_kb",
            tables::Show::Plain,
        ))
}

fn threads(results: &Results) -> Section {
    let mut section = Section::new("Programs with threads").text(
        "Seconds as the program says. larson runs for a fixed time, so that what counts is how many \
         blocks it replaced; the source gives seconds. Hardware counters are not read: virtual \
         machines have none.",
    );
    let all = [
        (
            Experiment::Sharing,
            "seconds",
            "False sharing",
            tables::Show::Seconds,
        ),
        (
            Experiment::Larson,
            "allocations",
            "larson: blocks asked for",
            tables::Show::Plain,
        ),
        (
            Experiment::Shbench,
            "seconds",
            "shbench",
            tables::Show::Seconds,
        ),
    ];
    for (experiment, figure, title, show) in all {
        if results.of(experiment).next().is_some() {
            section = section
                .heading(title)
                .table(&tables::beside(results, experiment, figure, show));
        }
    }
    section.table(&tables::counters())
}

fn synthetic(results: &Results) -> Section {
    let mut section = Section::new("Synthetic load").text(
        "A large block that stays and is gone over again and again, and 100,000 small ones after \
         the model, with as many threads. Local: processors and memory of one node. Remote: the \
         same processors, memory of all others. Times are the model's only; nobody waits.",
    );
    for (experiment, model) in [(Experiment::Mean, "MEAN"), (Experiment::Cdf, "CDF")] {
        if results.of(experiment).next().is_some() {
            section = section
                .heading(&format!("{model} here"))
                .picture(&by_threads(results, experiment, model), "")
                .table(&tables::beside(
                    results,
                    experiment,
                    "seconds",
                    tables::Show::Seconds,
                ));
        }
        for side in ["local", "remote"] {
            section = section.picture(&published_by_threads(model, side), "");
        }
    }
    section
}

fn thread_chart(title: &str, series: Vec<Series>) -> Picture {
    LineChart {
        x: Axis::new("threads", Scale::Log2, Unit::Number),
        y: Axis::new("seconds", Scale::Linear, Unit::Number),
        series,
        height: 330.0,
        ..LineChart::new(title)
    }
    .draw()
}

fn by_threads(results: &Results, experiment: Experiment, model: &str) -> Picture {
    let mut series = Vec::new();
    for (colour, id) in results.allocators(experiment).into_iter().enumerate() {
        for side in ["local", "remote"] {
            let points: Vec<Point> = results
                .of(experiment)
                .filter(|cell| cell.case.allocator == id && cell.case.workload.ends_with(side))
                .filter_map(|cell| {
                    let threads = cell.case.workload.split('/').nth(1)?.parse().ok()?;
                    let summary = cell.summary("seconds")?;
                    Some(Point::new(threads, summary.mean).within(summary.least, summary.most))
                })
                .collect();
            let name = format!("{id}, {side}");
            let line = if side == "local" {
                Series::line(&name, points)
            } else {
                Series::dashed(&name, points)
            };
            if !line.points.is_empty() {
                series.push(line.coloured(colour));
            }
        }
    }
    thread_chart(
        &format!("{model}: seconds by threads, this machine"),
        series,
    )
}

fn published_by_threads(model: &str, side: &str) -> Picture {
    let series = published::ALLOCATORS.iter().map(|(name, id)| {
        let rows = published::synthetic().filter(|row| row.model == model && row.allocator == *id);
        let points = rows.map(|row| {
            let (mean, deviation) = if side == "local" {
                row.local
            } else {
                row.remote
            };
            Point::new(f64::from(row.threads), mean).within(mean - deviation, mean + deviation)
        });
        Series::line(name, points.collect())
    });
    thread_chart(&format!("{model}, {side}: published"), series.collect())
}

fn nodes(results: &Results) -> Section {
    let mut section = Section::new("Nodes").text(
        "Firmware says of most nodes that they are equally far. The source measures how long \
         copying takes from each node's processors to each node's memory, and compiles the table \
         into the kernel, whose lists of where to take memory from next follow it.",
    );
    match &results.distances() {
        Some(means) if means.len() > 1 => {
            section = section.heading("Here").table(&tables::distances(means));
        }
        Some(means) => {
            let seconds = means
                .first()
                .and_then(|row| row.first())
                .copied()
                .unwrap_or(f64::NAN);
            section = section.text(&format!(
                "This machine has one node: touching and copying the buffer takes {seconds:.3} s \
                 there, and there is no other to compare with."
            ));
        }
        None => {}
    }
    for nodes in [4, 8] {
        section = section
            .heading(&format!("Published: {nodes} nodes"))
            .table(&tables::published_distances(nodes));
    }
    section
        .heading("Where the kernel goes next (simulated)")
        .text(
            "The lists of Linux 3.0.4 from each table, and the mean way of a page, in links, for a \
             task that may use every node but its own: the source's way of measuring what the order \
             is worth. As many pages are asked for as a node has free.",
        )
        .table(&tables::orders())
        .heading("What the order is worth, published")
        .picture(&payoff(), "The gain is counted of the new time, as in the source.")
        .table(&tables::payoff())
}

fn payoff() -> Picture {
    let mut sizes: Vec<u32> = published::payoff().map(|row| row.megabytes).collect();
    sizes.dedup();
    sizes.truncate(5);
    let series = (0..4).map(|node| {
        let rows = published::payoff().filter(|row| row.node == node);
        (
            format!("node {node}"),
            rows.map(|row| row.gain_percent()).collect(),
        )
    });
    BarChart {
        classes: sizes.iter().map(|size| format!("{size} MB")).collect(),
        series: series.collect(),
        y_label: "gain, %".to_owned(),
        ..BarChart::new("Remote memory by the measured order against the firmware's")
    }
    .draw()
}

fn workloads(results: &Results) -> Section {
    let mut section = Section::new("The programs").text(
        "What each program asks for, recorded with First-fit as in the source. gawk is the source's \
         own; the others stand in the place of programs that are not packaged.",
    );
    section = section.table(&tables::workloads(results));
    for (workload, character) in &results.site.characters {
        let mut chart = BarChart {
            x_label: "up to".to_owned(),
            y_label: "share, %".to_owned(),
            height: 240.0,
            ..BarChart::new(&format!("{workload}: sizes, intervals and holding times"))
        };
        let last = character
            .quantities
            .iter()
            .filter_map(|q| q.bins.last())
            .map(|(edge, _)| *edge)
            .max();
        let edges: Vec<u64> = std::iter::successors(Some(8), |edge| Some(edge * 2))
            .take_while(|edge| Some(*edge) <= last)
            .collect();
        chart.classes = edges.iter().map(|edge| tables::edge(*edge)).collect();
        for (name, quantity) in QUANTITIES.iter().zip(&character.quantities) {
            let share = |edge: &u64| {
                let bin = quantity.bins.iter().find(|(up_to, _)| up_to == edge);
                bin.map_or(0.0, |(_, count)| {
                    100.0 * *count as f64 / quantity.count.max(1) as f64
                })
            };
            chart
                .series
                .push(((*name).to_owned(), edges.iter().map(share).collect()));
        }
        section = section.picture(&chart.draw(), "");
    }
    section.folded_table("Published means", &tables::means())
}
