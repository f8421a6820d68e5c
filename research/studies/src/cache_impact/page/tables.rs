//! The study's tables and sentences.

use hearth_draw::page::Table;
use hearth_draw::scale::Unit;
use hearth_published::source::{Parameters, Type};
use hearth_stats::median;

use super::super::compare;
use super::super::record::{Row, Sweep};
use super::super::replay::Replayed;
use super::super::results::Results;
use super::super::sweep::is_possible;
use super::super::timers::Jitter;
use super::super::verdict::Evidence;

fn ns(value: f64) -> String {
    Unit::Nanoseconds.show(value)
}

fn bytes(value: f64) -> String {
    Unit::Bytes.show(value)
}

pub(super) fn counted(count: u32, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The text with a capital letter and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{}{}{end}", first.unwrap_or_default(), letters.as_str())
}

/// Notes that a reader needs before anything else.
pub(super) fn notes(results: &Results) -> Vec<String> {
    let mut notes: Vec<String> = results
        .about
        .notes
        .iter()
        .map(|note| sentence(note))
        .collect();
    for defect in &results.options.defects {
        notes.push(format!(
            "The source's defect `{}` is reproduced: {}.",
            defect.id(),
            defect.title()
        ));
    }
    notes.push(format!(
        "{} sizes, {} runs each, {} s in all; nice value {}; a clean run has at most {} minor faults.",
        results.options.bytes().len(),
        results.options.repeats(),
        results.about.seconds.round(),
        results.site.nice,
        results.site.faults_allowed
    ));
    notes
}

/// Placement's impact at each capacity.
pub(super) fn impacts(evidences: &[&Evidence]) -> Table {
    let mut table = Table::new(&[
        "times",
        "placement",
        "at",
        ">buffer",
        ">added",
        ">of type 1's time",
        ">of its own time",
    ]);
    let published = [Evidence::published(0), Evidence::published(1)];
    let names = ["here, as published", "here, threads ready"];
    let here = evidences
        .iter()
        .zip(names)
        .map(|(e, name)| (*e, name.to_owned()));
    let others = published
        .iter()
        .map(|e| (e, format!("published, {}", e.machine)));
    for (evidence, name) in here.chain(others) {
        for kind in [Type::Two, Type::Three] {
            for (at, capacity) in &evidence.capacities {
                let reaches = evidence
                    .of(kind)
                    .last()
                    .is_some_and(|p| p.bytes >= *capacity);
                let Some(impact) = evidence.impact_at(kind, *capacity).filter(|_| reaches) else {
                    continue;
                };
                table.row(vec![
                    name.clone(),
                    format!("type {}", kind.number()),
                    at.clone(),
                    bytes(*capacity as f64),
                    ns(impact.difference_ns),
                    format!("{:+.1} %", impact.of_base_percent),
                    format!("{:+.1} %", impact.of_own_percent),
                ]);
            }
        }
    }
    table
}

/// Exchanges of nothing, beside the published ones.
pub(super) fn zero(results: &Results) -> Table {
    let mut table = Table::new(&[
        "no data",
        ">runs here",
        ">mean here",
        ">deviation here",
        ">median here",
        ">Xeon 5130",
        ">Xeon E5-2695 v2",
    ]);
    for kind in Type::ALL {
        let cell = |value: Option<f64>| value.map_or("not measured".to_owned(), ns);
        let zero = results.zero(kind);
        let zero = zero.as_ref();
        let mean = zero.and_then(|zero| zero.mean());
        let published = |machine: usize| {
            let data = hearth_published::cache_impact::ZERO_DATA[machine];
            let mean = data[kind.number() as usize - 1];
            format!("{} ± {}", ns(mean.mean_ns), ns(mean.deviation_ns))
        };
        table.row(vec![
            format!("experiment {}", kind.experiment()),
            zero.map_or(0, |zero| zero.times_ns.len()).to_string(),
            cell(mean.map(|(mean, _)| mean)),
            cell(mean.map(|(_, deviation)| deviation)),
            cell(zero.and_then(|zero| zero.median())),
            published(0),
            published(1),
        ]);
    }
    table
}

/// Times at every size, with the published ones of that size.
pub(super) fn times(evidence: &Evidence) -> Table {
    let mut table = Table::new(&[
        ">bytes",
        ">experiment 2",
        ">experiment 3",
        ">experiment 4",
        ">type 2 of type 1",
        ">type 3 of type 1",
    ]);
    let mut sizes: Vec<u64> = evidence
        .measured
        .iter()
        .flatten()
        .map(|p| p.bytes)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let time = |kind: Type| {
            let point = evidence.of(kind).iter().find(|p| p.bytes == size);
            point.map(|point| point.ns)
        };
        let mut cells = vec![size.to_string()];
        cells.extend(Type::ALL.map(|kind| time(kind).map_or(String::new(), ns)));
        for kind in [Type::Two, Type::Three] {
            let differences = evidence.differences(kind);
            let found = differences.iter().find(|d| d.bytes == size);
            cells.push(found.map_or(String::new(), |d| {
                format!(
                    "{:+.1} %{}",
                    d.impact.of_base_percent,
                    if d.is_noticeable {
                        ""
                    } else {
                        " (not noticeable)"
                    }
                )
            }));
        }
        table.row(cells);
    }
    table
}

/// The model's parameters here and as published.
pub(super) fn parameters(model: &Parameters) -> Table {
    let mut table = Table::new(&["parameter", ">here", ">Xeon 5130", ">Xeon E5-2695 v2"]);
    let published = Parameters::published();
    let all = [model, &published[0], &published[1]];
    let deepest = all.iter().map(|m| m.levels.len()).max().unwrap_or(0);
    let mut row = |name: String, value: &dyn Fn(&Parameters) -> Option<String>| {
        let cells = all.iter().map(|m| value(m).unwrap_or_default());
        table.row(std::iter::once(name).chain(cells).collect());
    };
    for at in 0..deepest {
        row(format!("level {}", at + 1), &|m| {
            let level = m.levels.get(at)?;
            let capacity = bytes(level.capacity_bytes as f64);
            Some(format!("{}, {capacity}", ns(level.latency.read_ns)))
        });
    }
    row("memory".into(), &|m| Some(ns(m.memory.read_ns)));
    for kind in Type::ALL {
        row(format!("control, type {}", kind.number()), &|m| {
            Some(ns(m.zero_data.control_ns[kind.number() as usize - 1]))
        });
    }
    row("beyond the last level, a byte".into(), &|m| {
        Some(ns(m.beyond?.slope_ns_per_byte()))
    });
    table
}

const ERROR_COLUMNS: [&str; 8] = [
    "model",
    "placement",
    "sizes",
    ">how many",
    ">median error",
    ">mean error",
    ">predicted by measured",
    ">rank correlation",
];

/// Errors of the source's model, by region.
pub(super) fn errors(model: &str, evidence: &Evidence) -> Table {
    let triples = Type::ALL.map(|kind| evidence.predictions(kind));
    errors_of(model, &triples, &evidence.capacities)
}

/// The same from triples of size, predicted, measured, by type.
pub(super) fn errors_of(
    model: &str,
    triples: &[Vec<(u64, f64, f64)>; 3],
    capacities: &[(String, u64)],
) -> Table {
    let mut table = Table::new(&ERROR_COLUMNS);
    for kind in Type::ALL {
        let of = &triples[kind.number() as usize - 1];
        for errors in compare::errors(of, capacities) {
            table.row(vec![
                model.to_owned(),
                format!("type {}", kind.number()),
                errors.region,
                errors.sizes.to_string(),
                format!("{:.0} %", errors.median_percent),
                format!("{:.0} %", errors.mean_percent),
                format!("{:.2}", errors.ratio),
                errors.spearman.map_or(String::new(), |s| format!("{s:.2}")),
            ]);
        }
    }
    table
}

/// Levels as the curve shows them, beside the system's claims.
pub(super) fn levels(results: &Results) -> Table {
    let mut table = Table::new(&["level", ">latency", ">ends at", ">claimed"]);
    let Some(ring) = compare::level_curve(results) else {
        return table;
    };
    let deepest = ring.levels.len().max(results.site.place.caches.len());
    for at in 0..deepest {
        let found = ring.levels.get(at);
        let capacity = found.and_then(|level| level.capacity_bytes);
        let rises = found.is_some_and(|level| !level.is_settled);
        table.row(vec![
            (at + 1).to_string(),
            found.map_or("not seen".into(), |level| {
                format!(
                    "{}{}",
                    ns(level.latency_ns),
                    if rises { " or more" } else { "" }
                )
            }),
            capacity.map_or(String::new(), bytes),
            results
                .site
                .place
                .caches
                .get(at)
                .map_or(String::new(), |cache| {
                    format!("L{}, {}", cache.level, bytes(cache.bytes as f64))
                }),
        ]);
    }
    table
}

/// Times of experiment 1 that cannot be.
pub(super) fn impossible(results: &Results) -> Vec<String> {
    let rows: Vec<Row> = results.rows_of(Sweep::Latency).collect();
    let times = || {
        rows.iter()
            .flat_map(|row| row.times(None).map(|time| (row.bytes, time)))
    };
    let wrong = times()
        .filter(|&(bytes, time)| !is_possible(bytes, time))
        .count();
    let negative = rows
        .iter()
        .flat_map(|row| &row.runs)
        .filter(|run| run.time.is_none())
        .count();
    let mut said = vec![format!(
        "{wrong} of {} runs took less than any processor needs for such a loop.",
        times().count()
    )];
    if negative > 0 {
        said.push(format!(
            "{negative} intervals were negative and have no time."
        ));
    }
    said
}

/// The timer tests, beside the published ones.
pub(super) fn timers(results: &Results) -> Table {
    let mut table = Table::new(&[
        "difference of readings that follow each other",
        ">least",
        ">median",
        ">largest",
        "Xeon 5130",
    ]);
    let Some(timers) = &results.site.timers else {
        return table;
    };
    let mut row = |jitter: &Jitter, unit: &str, published: &str| {
        if let Some((least, middle, most)) = jitter.summary() {
            table.row(vec![
                jitter.timer.clone(),
                format!("{least} {unit}"),
                format!("{middle} {unit}"),
                format!("{most} {unit}"),
                published.to_owned(),
            ]);
        }
    };
    row(&timers.clock, "ns", "81 to 90 ns");
    for jitter in &timers.counter {
        let published = match jitter.timer.as_str() {
            "CPUID, RDTSC" => "324 to 336 cycles",
            _ => "",
        };
        row(jitter, results.site.unit.name(), published);
    }
    table
}

/// Experiment 0 and the durations of events.
pub(super) fn events(results: &Results) -> Table {
    use hearth_published::cache_impact::{INTERRUPT, MINOR_FAULT, REGISTER_LATENCY_CYCLES};
    let mut table = Table::new(&[
        "what",
        ">as published, here",
        ">without the overhead",
        ">Xeon 5130",
        ">Xeon E5-2695 v2",
    ]);
    if let Some(register) = &results.site.register {
        let unit = results.site.unit.name();
        table.row(vec![
            "experiment 0: register".into(),
            format!("{:.1} {unit}", register.mean),
            format!("{:.1} {unit}", register.mean - register.empty),
            format!("{REGISTER_LATENCY_CYCLES} cycles"),
            String::new(),
        ]);
    }
    if let Some(events) = &results.site.events {
        let middle = |values: &[f64], none: &str| median(values).map_or(none.to_owned(), ns);
        table.row(vec![
            "interrupt, median".into(),
            middle(&events.interrupt_published_ns, "none came"),
            middle(&events.gaps_ns, "none seen"),
            ns(INTERRUPT[0].mean_ns),
            ns(INTERRUPT[1].mean_ns),
        ]);
        table.row(vec![
            "minor fault, median".into(),
            middle(&events.fault_published_ns, "reading faults no more"),
            events.fault_ns.map_or("not measured".into(), ns),
            ns(MINOR_FAULT[0].mean_ns),
            ns(MINOR_FAULT[1].mean_ns),
        ]);
    }
    table
}

/// The file-open test.
pub(super) fn opening(results: &Results) -> Table {
    let mut table = Table::new(&["step", ">minor faults"]);
    if let Some(opening) = &results.site.opening {
        for (path, faults) in &opening.steps {
            table.row(vec![format!("open and close {path}"), faults.to_string()]);
        }
        table.row(vec![
            format!(
                "read /proc/interrupts {} times, until it changed",
                opening.reads
            ),
            opening.until_changed.to_string(),
        ]);
    }
    table
}

/// A published headline and what the published table gives.
pub(super) fn headline(replayed: &Replayed) -> String {
    let way = |percent: f64| if percent < 0.0 { "faster" } else { "slower" };
    format!(
        "Headline for type {} at the last level's size: {} % slower. The published times around it \
         give {}, {:.1} % of type 1's time and {:.1} % of its own, {}.",
        replayed.kind.number(),
        replayed.printed_percent,
        ns(replayed.impact.difference_ns),
        replayed.impact.of_base_percent.abs(),
        replayed.impact.of_own_percent.abs(),
        way(replayed.impact.of_own_percent)
    )
}
