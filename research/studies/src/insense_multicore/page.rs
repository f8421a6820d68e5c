//! The study as one page: the claims first, then each experiment.

use hearth_draw::Picture;
use hearth_draw::bars::BarChart;
use hearth_draw::page::{Section, Table};
use hearth_draw::scale::{Scale, Unit};

use super::defects::DEFECTS;
use super::options::Experiment;
use super::placements::PLACEMENTS;
use super::plan::{C, CARRIERS};
use super::published;
use super::results::{Cell, Results};
use super::verdict;
use super::ways::{HEAPS, WAYS};
use crate::cache_impact::page::tables::sentence;
use crate::pages::{self, counted};

/// Draws the page.
#[must_use]
pub fn page(results: &Results) -> String {
    let used = format!(
        "{} of {}",
        results.site.cores.len(),
        counted(results.about.machine.threads, "hardware thread")
    );
    let mut page = pages::begin(
        "Insense on several cores",
        &results.about,
        &used,
        "What are private heaps and the placement of components worth? The source, of 2013, gave each \
         component of Insense a thread on a desktop machine of four cores, and measured six workloads. They \
         are run again here, with its own heaps rebuilt beside Hearth's, and in plain C.",
    );
    page.add(claims(results));
    for experiment in Experiment::ALL {
        page.add(match experiment {
            Experiment::List => list(results),
            Experiment::Memory => memory(results),
            Experiment::Misses => misses(results),
            experiment => times(results, experiment),
        });
    }
    page.add(names());
    page.add(defects());
    pages::end(page, "insense-multicore", &results.about)
}

/// The charts as files of their own, by name.
#[must_use]
pub fn charts(results: &Results) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    for experiment in Experiment::ALL {
        if experiment.workload().is_some() {
            for (load, _) in results.loads_of(experiment) {
                charts.push((
                    format!("{load}.svg"),
                    bars(results, experiment, load).file(),
                ));
            }
        }
    }
    charts
}

fn claims(results: &Results) -> Section {
    let section = Section::new("What the source claims").text(
        "Each claim is judged by one rule, which the source's own figures go through as well. Its components \
         were threads, so that the figures are of threads; a ratio of medians stands with its 95 % \
         bootstrap interval.",
    );
    pages::claims(
        section,
        &verdict::measured(results).verdicts(),
        &verdict::as_published().verdicts(),
        &results.about,
    )
}

/// The series of a chart of a load: carrier and heap.
fn sides() -> Vec<(&'static str, &'static str)> {
    let mut sides: Vec<_> = CARRIERS
        .into_iter()
        .flat_map(|carrier| HEAPS.map(|heaps| (carrier, heaps)))
        .collect();
    sides.push((C, "malloc"));
    sides
}

fn bars(results: &Results, experiment: Experiment, load: &str) -> Picture {
    let placements: Vec<&str> = PLACEMENTS
        .iter()
        .map(|placement| placement.id)
        .filter(|id| {
            results
                .of(experiment)
                .any(|cell| cell.case.placement == *id)
        })
        .collect();
    let series = sides().into_iter().map(|(carrier, heaps)| {
        let values = placements.iter().map(|placement| {
            let cell = results.named(experiment, [load, carrier, heaps, placement]);
            let summary = cell.and_then(|cell| cell.summary("real"));
            summary.map_or(0.0, |summary| summary.median * 1e9)
        });
        (format!("{carrier}, {heaps}"), values.collect())
    });
    BarChart {
        classes: placements.iter().map(|id| (*id).to_owned()).collect(),
        series: series.collect(),
        scale: Scale::Log10,
        unit: Unit::Nanoseconds,
        ..BarChart::new(&format!("{load}: real time by placement"))
    }
    .draw()
}

fn times(results: &Results, experiment: Experiment) -> Section {
    let mut section = Section::new(&capital(experiment.id())).text(&format!(
        "{}. Medians of the runs, with the least and the most.",
        capital(experiment.title())
    ));
    if results.of(experiment).next().is_none() {
        return section.text("Not measured.");
    }
    for (load, words) in results.loads_of(experiment) {
        section = section
            .heading(load)
            .text(&sentence(words))
            .picture(&bars(results, experiment, load), "")
            .folded_table(
                "Real, user and system time of each",
                &time_table(results, experiment, load),
            );
    }
    section
}

fn time_table(results: &Results, experiment: Experiment, load: &str) -> Table {
    let mut table = Table::new(&[
        "carrier",
        "heaps",
        "placement",
        ">real ms",
        ">least",
        ">most",
        ">user ms",
        ">system ms",
        ">of the system's placement",
    ]);
    for cell in results.of(experiment).filter(|cell| cell.case.load == load) {
        let case = &cell.case;
        let mut row = vec![
            case.carrier.clone(),
            case.heaps.clone(),
            case.placement.clone(),
        ];
        match (
            cell.summary("real"),
            cell.summary("user"),
            cell.summary("system"),
        ) {
            (Some(real), Some(user), Some(system)) => {
                let os = results.named(experiment, [load, &case.carrier, &case.heaps, "os"]);
                let os = os.and_then(|os| os.summary("real"));
                row.extend([
                    ms(real.median),
                    ms(real.least),
                    ms(real.most),
                    ms(user.median),
                    ms(system.median),
                    os.map_or(String::new(), |os| {
                        format!("{:.2}", real.median / os.median)
                    }),
                ]);
            }
            _ => row.extend(["failed", "", "", "", "", ""].map(str::to_owned)),
        }
        table.row(row);
    }
    table
}

fn list(results: &Results) -> Section {
    let mut section = Section::new("The source's heaps, rebuilt").text(
        "Private heaps were 16 times as fast as the shared one in the source. Its shared heap was malloc, and \
         each block was also appended to one list under one lock. The same executable runs here with malloc as \
         it is, with a lock around it, with lock and list, and with the source's private heaps, all \
         preloaded; and with Hearth's own heaps.",
    );
    for (load, words) in results.loads_of(Experiment::List) {
        section = section
            .heading(load)
            .text(&sentence(words))
            .table(&list_table(results, load));
    }
    section
}

fn list_table(results: &Results, load: &str) -> Table {
    let mut table = Table::new(&[
        "carrier",
        "placement",
        "heaps",
        ">real ms",
        ">least",
        ">most",
        ">user ms",
        ">system ms",
        ">times private",
    ]);
    let experiment = Experiment::List;
    let cells: Vec<&Cell> = results
        .of(experiment)
        .filter(|cell| cell.case.load == load)
        .collect();
    for carrier in [CARRIERS[0], CARRIERS[1], C] {
        for placement in ["os", "spread", "single"] {
            for cell in &cells {
                let case = &cell.case;
                if case.carrier != carrier || case.placement != placement {
                    continue;
                }
                let (Some(real), Some(user), Some(system)) = (
                    cell.summary("real"),
                    cell.summary("user"),
                    cell.summary("system"),
                ) else {
                    continue;
                };
                let private = results.named(experiment, [load, carrier, "private", placement]);
                let private = private.and_then(|private| private.summary("real"));
                table.row(vec![
                    carrier.to_owned(),
                    placement.to_owned(),
                    case.heaps.clone(),
                    ms(real.median),
                    ms(real.least),
                    ms(real.most),
                    ms(user.median),
                    ms(system.median),
                    private.map_or(String::new(), |private| {
                        format!("{:.2}", real.median / private.median)
                    }),
                ]);
            }
        }
    }
    table
}

fn memory(results: &Results) -> Section {
    let section = Section::new("Memory").text(
        "Resident memory, looked at every two milliseconds of one run each: at most, and by how much it grew \
         after the first quarter of the run, by when a program that does not keep has what it needs.",
    );
    let mut table = Table::new(&["load", "carrier", "heaps", ">at most MB", ">growth MB"]);
    for cell in results.of(Experiment::Memory) {
        let case = &cell.case;
        let mb = |figure| {
            let summary = cell.summary(figure);
            summary.map_or("failed".to_owned(), |summary| {
                format!("{:.1}", summary.median / 1024.0)
            })
        };
        table.row(vec![
            case.load.clone(),
            case.carrier.clone(),
            case.heaps.clone(),
            mb("peak_kb"),
            mb("growth_kb"),
        ]);
    }
    if table.rows.is_empty() {
        return section.text("Not measured.");
    }
    section.table(&table)
}

fn misses(results: &Results) -> Section {
    let mut section = Section::new("Cache misses").text(
        "Cachegrind with the source's first and last level. It simulates one cache and runs one thread at a \
         time, so that it cannot show what cores do to each other. The published table is of test_cache, \
         50,000 passes; here there are fewer, as the misses are first touches.",
    );
    let mut table = Table::new(&[
        "load",
        "placement",
        "heaps",
        ">D1 read",
        ">D1 write",
        ">LL data",
        ">I1",
        ">D1 of the shared",
    ]);
    for row in published::misses() {
        let shared = published::misses()
            .into_iter()
            .find(|other| other.placement == row.placement && other.heaps == "shared");
        table.row(vec![
            "published".to_owned(),
            row.placement.to_owned(),
            row.heaps.to_owned(),
            format!("{:.0}", row.d1_read),
            format!("{:.0}", row.d1_write),
            format!("{:.0}", row.ll_data),
            format!("{:.0}", row.i1),
            shared.map_or(String::new(), |shared| {
                format!("{:+.1} %", 100.0 * (row.d1() / shared.d1() - 1.0))
            }),
        ]);
    }
    for cell in results.of(Experiment::Misses) {
        let case = &cell.case;
        let count = |figure| {
            cell.summary(figure)
                .map_or("failed".to_owned(), |s| format!("{:.0}", s.median))
        };
        let total = |cell: &Cell| cell.summary("d1_misses").map(|summary| summary.median);
        let listed = [case.load.as_str(), &case.carrier, "listed", &case.placement];
        let listed = results.named(Experiment::Misses, listed).and_then(total);
        let of_shared = total(cell).zip(listed);
        table.row(vec![
            case.load.clone(),
            case.placement.clone(),
            case.heaps.clone(),
            count("d1_read_misses"),
            count("d1_write_misses"),
            count("ll_data_misses"),
            count("i1_misses"),
            of_shared.map_or(String::new(), |(of, to)| {
                format!("{:+.1} %", 100.0 * (of / to - 1.0))
            }),
        ]);
    }
    if results.of(Experiment::Misses).next().is_none() {
        section = section.text("Not measured here.");
    }
    section.table(&table)
}

fn names() -> Section {
    let mut table = Table::new(&["name", "what"]);
    for placement in &PLACEMENTS {
        table.row(vec![
            format!("placement {}", placement.id),
            placement.title.to_owned(),
        ]);
    }
    for way in &WAYS {
        table.row(vec![format!("heaps {}", way.id), way.title.to_owned()]);
    }
    Section::new("Names").table(&table)
}

fn defects() -> Section {
    let mut table = Table::new(&["", "the source", "here"]);
    for defect in &DEFECTS {
        table.row(
            [defect.id, defect.what, defect.here]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    Section::new("The source's defects").table(&table)
}

fn ms(seconds: f64) -> String {
    let ms = 1e3 * seconds;
    if ms < 100.0 {
        format!("{ms:.1}")
    } else {
        format!("{ms:.0}")
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
