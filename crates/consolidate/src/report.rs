//! The report as one page.

use hearth_draw::Look;
use hearth_draw::bars::BarChart;
use hearth_draw::page::{Page, Section, Table, Tone};
use hearth_draw::spans::{Kind, Span, SpanChart, SpanRow};
use hearth_text::counted;

use crate::check::core_name;
use crate::model::System;
use crate::result::{Consolidated, digits, gaps, rows};
use crate::why::reasons;

/// Most rows of a timeline, and releases drawn on it.
const ROWS_MAX: usize = 40;
const JOBS_MAX: usize = 4000;

/// The page.
#[must_use]
pub fn page(system: &System, result: &Consolidated) -> String {
    let mut page = Page::new(&format!("{}, consolidated", system.name));
    page.lead(&format!(
        "{} on {} and {}.",
        counted(system.components.len(), "component"),
        counted(result.figures.units, "unit"),
        counted(result.figures.cores, "core"),
    ));
    let tone = match result.found.gap_units() == 0.0 {
        true => Tone::Good,
        false => Tone::Note,
    };
    page.callout(tone, "How near the best", &gaps(result));
    page.add(figures(result));
    page.add(loads(system, result));
    for mode in 0..system.modes.len() {
        page.add(timeline(system, result, mode));
    }
    page.add(places(system, result));
    page.add(together(system, result));
    page.add(switches(system, result));
    page.footer("Written by hearth consolidate. Modelled from the file, not measured; every rule was checked.");
    page.html()
}

fn figures(result: &Consolidated) -> Section {
    let mut table = Table::new(&["", ">before", ">after", "unit"]);
    for row in rows(result) {
        table.row(row.to_vec());
    }
    let section = Section::new("Before and after").table(&table);
    match (&result.before, &result.figures) {
        (Some(before), after) => {
            let changes = [
                ("units", before.units as f64 - after.units as f64, ""),
                ("cables", before.cabling_m - after.cabling_m, " m"),
                ("power", before.power_w - after.power_w, " W"),
                (
                    "traffic on buses",
                    (before.traffic_bits_s - after.traffic_bits_s) / 1e3,
                    " kbit/s",
                ),
            ];
            let told = |sign: f64| {
                let rounded = changes.iter().map(|(what, change, unit)| {
                    (what, (sign * change * 1e3).round() / 1e3, unit)
                });
                let some = rounded.filter(|(_, change, _)| *change > 0.0);
                let some = some.map(|(what, change, unit)| {
                    format!("{what} by {}{unit}", digits(change))
                });
                let some = some.collect::<Vec<_>>();
                match some.is_empty() {
                    true => "nothing".to_owned(),
                    false => some.join(", "),
                }
            };
            section.text(&format!("Less: {}. More: {}.", told(1.0), told(-1.0)))
        }
        (None, _) => section.text("The file does not name today's unit of every component, so there is nothing to compare with."),
    }
}

fn loads(system: &System, result: &Consolidated) -> Section {
    let cores = result.found.mapping.cores();
    let classes = cores.iter().map(|core| {
        let place = &system.cores[*core];
        format!("{}/{}", system.units[place.unit].name, place.nth)
    });
    let series = system.modes.iter().enumerate().map(|(mode, one)| {
        let of = |core: &usize| {
            let mut loads = result.checked.loads.iter();
            let load = loads.find(|load| load.core == *core && load.mode == mode);
            load.map_or(0.0, |load| 100.0 * load.utilisation)
        };
        (one.name.clone(), cores.iter().map(of).collect())
    });
    let mut chart = BarChart::new("Load of each core by mode");
    chart.x_label = "core".to_owned();
    chart.y_label = "load, %".to_owned();
    chart.classes = classes.collect();
    chart.series = series.collect();
    let section = Section::new("Loads");
    match cores.len() <= 48 {
        true => section.picture(&chart.draw(), "A core must hold each mode, not their sum."),
        false => {
            section.text("There are too many cores for a picture; the table below has their loads.")
        }
    }
}

/// One row a core: jobs as they would run from a common release on, by priority.
fn timeline(system: &System, result: &Consolidated, mode: usize) -> Section {
    let name = &system.modes[mode].name;
    let mapping = &result.found.mapping;
    let active = (0..system.components.len()).filter(|at| system.components[*at].modes.has(mode));
    let mut periods: Vec<u64> = active.map(|at| system.components[at].period_ns).collect();
    periods.sort_unstable();
    let section = Section::new(&format!("Timeline: {name}"));
    let Some(middle) = periods.get(periods.len() / 2) else {
        return section.text("Nothing is active in this mode.");
    };
    let window = 2 * middle;
    let mut chart = SpanChart {
        title: format!("{name}, from a common release on"),
        window: (0.0, window as f64),
        kinds: (0..8)
            .map(|nth| Kind {
                name: String::new(),
                look: Look::series(nth),
            })
            .collect(),
        rows: Vec::new(),
        marks: Vec::new(),
        width: 980.0,
    };
    chart.kinds.clear();
    for level in crate::model::Asil::ALL {
        chart.kinds.push(Kind {
            name: level.to_string(),
            look: Look::series(level.steps()),
        });
    }
    for core in mapping.cores().into_iter().take(ROWS_MAX) {
        chart.rows.push(SpanRow {
            label: core_name(system, core).replace('`', ""),
            spans: run(system, result, core, mode, window),
        });
    }
    section.picture(
        &chart.draw(),
        "Each job runs for its worst time; shorter deadlines go first. Colours are safety levels; point at a bar for its component.",
    )
}

/// Simulates one core with preemption by priority.
fn run(system: &System, result: &Consolidated, core: usize, mode: usize, window: u64) -> Vec<Span> {
    let loads = result.checked.loads.iter();
    let mut loads = loads.filter(|load| load.core == core && load.mode == mode);
    let Some(load) = loads.next() else {
        return Vec::new();
    };
    // In the order of priority: next release and work that is left.
    let mut tasks: Vec<(usize, u64, u64, u64, u64)> = (load.responses.iter())
        .map(|(at, _)| {
            let seat = result.found.mapping.0[*at];
            let time = system.time_ns(*at, seat.core, seat.memory).unwrap_or(0);
            (*at, time, system.components[*at].period_ns, 0, 0)
        })
        .collect();
    let mut spans: Vec<Span> = Vec::new();
    let mut now = 0;
    while now < window && spans.len() < JOBS_MAX {
        for (_, time, period, release, left) in &mut tasks {
            while *release <= now {
                *left += *time;
                *release += *period;
            }
        }
        let next = tasks.iter().map(|task| task.3).min().unwrap_or(window);
        let Some((at, _, _, _, left)) = tasks.iter_mut().find(|task| task.4 > 0) else {
            now = next;
            continue;
        };
        let end = (now + *left).min(next).min(window);
        *left -= end - now;
        let one = &system.components[*at];
        spans.push(Span {
            from: now as f64,
            to: end as f64,
            kind: one.asil.steps(),
            tip: format!("{} ({})", one.name, one.asil),
        });
        now = end;
    }
    spans
}

fn places(system: &System, result: &Consolidated) -> Section {
    let mapping = &result.found.mapping;
    let mut table = Table::new(&["unit", ">core", "lock-step", "load", "components"]);
    let locked = mapping.locked(system);
    for core in mapping.cores() {
        let place = &system.cores[core];
        let loads = result.checked.loads.iter().filter(|load| load.core == core);
        let loads = loads.map(|load| {
            format!(
                "{} {:.0} %",
                system.modes[load.mode].name,
                100.0 * load.utilisation
            )
        });
        let names = mapping
            .on_core(core)
            .map(|at| system.components[at].name.clone());
        table.row(vec![
            system.units[place.unit].name.clone(),
            place.nth.to_string(),
            if locked.contains(&core) { "yes" } else { "" }.to_owned(),
            loads.collect::<Vec<_>>().join(", "),
            names.collect::<Vec<_>>().join(", "),
        ]);
    }
    Section::new("Places").table(&table)
}

fn together(system: &System, result: &Consolidated) -> Section {
    let mut table = Table::new(&["component", "with", "because"]);
    for pair in reasons(system, &result.found.mapping) {
        table.row(vec![
            system.components[pair.a].name.clone(),
            system.components[pair.b].name.clone(),
            pair.reasons.join("; "),
        ]);
    }
    let section = Section::new("Why together");
    match table.rows.is_empty() {
        true => section
            .text("No two components gain by sharing a unit; they share it because it has room."),
        false => section
            .text("Pairs on one unit that gain by it; others share a unit because it has room.")
            .table(&table),
    }
}

fn switches(system: &System, result: &Consolidated) -> Section {
    let mut table = Table::new(&[
        "from",
        "to",
        ">at most",
        "stop, in order",
        "start, in order",
    ]);
    let names = |list: &[usize]| {
        let names = list.iter().map(|at| system.components[*at].name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    for plan in &result.switches {
        table.row(vec![
            system.modes[plan.from].name.clone(),
            system.modes[plan.to].name.clone(),
            plan.total_ns.map_or("no bound".to_owned(), |ns| {
                format!("{} µs", digits(ns as f64 / 1e3))
            }),
            names(&plan.stops),
            names(&plan.starts),
        ]);
    }
    let section = Section::new("Mode switches");
    match table.rows.is_empty() {
        true => section.text("There is one mode only."),
        false => section
            .text("Each core goes on until it is idle; when all have been, the components of the new mode start.")
            .table(&table),
    }
}
