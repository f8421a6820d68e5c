//! What a run came to, as a page for a browser.

use hearth_draw::page::{Page, Section, Table, Tone};
use hearth_draw::rows::{Row, RowChart};
use hearth_draw::scale::{Scale, Unit};
use hearth_draw::spans::{Span, SpanChart, SpanRow};
use hearth_draw::topology;
use hearth_watch::figures::{self, Sum};
use hearth_watch::{Carrying, Component, Ending, Happening, Recording, State};

use crate::surroundings;

/// So many components, and channels, have a row; the rest are added up.
const ROWS: usize = 40;
/// So many have a row in the timeline.
const TIMELINE_ROWS: usize = 24;
/// The timeline has the last so many stretches at most.
const TIMELINE_SLICES: usize = 20_000;

/// The page of a program's run.
pub(crate) fn page(recording: &Recording, program: &str) -> String {
    let mut page = Page::new(&format!("{program}: what it did"));
    page.lead(&summary(recording));
    if recording.events_lost > 0 {
        let lines = [format!(
            "{} earlier events are not kept, so the timeline has the end of the run. The sums are of all \
             of it. --watch-window keeps more.",
            recording.events_lost
        )];
        page.callout(Tone::Note, "A part of the events", &lines);
    }
    page.add(components(recording));
    page.add(timeline(recording));
    if let Some(section) = workers(recording) {
        page.add(section);
    }
    page.add(channels(recording));
    page.footer("Written by hearth run --report. What the words mean: docs/report.md.");
    page.html()
}

/// One line of all of it.
pub(crate) fn summary(recording: &Recording) -> String {
    let sum = Sum::of(&recording.components);
    let end = match recording.ending {
        Ending::Code(code) => format!("ended with code {code}"),
        Ending::Open => "was ended from outside, or goes on".to_owned(),
    };
    let carrier = match recording.carrying {
        Carrying::Workers => surroundings::count(recording.workers.len(), "worker"),
        Carrying::Threads => "a thread each".to_owned(),
    };
    format!(
        "{} on {carrier}; {}, of which components ran {}; it {end}.",
        surroundings::count(
            recording.components.len() + recording.components_left as usize,
            "component"
        ),
        time(recording.ns),
        time(sum.running),
    )
}

/// A time as people read it.
pub(crate) fn time(ns: u64) -> String {
    Unit::Nanoseconds.show(ns as f64)
}

/// What a component does now, in a few words.
pub(crate) fn doing(recording: &Recording, component: &Component) -> String {
    match component.state {
        State::Made => "made".to_owned(),
        State::Ready => "ready".to_owned(),
        State::Running => "running".to_owned(),
        State::Ended => "ended".to_owned(),
        State::Waiting(wait) => hearth_watch::trace::describe(recording, component.id, wait),
    }
}

/// Those that ran longest first.
pub(crate) fn busiest(recording: &Recording) -> Vec<&Component> {
    let mut all: Vec<&Component> = recording.components.iter().collect();
    all.sort_by_key(|component| (std::cmp::Reverse(component.running), component.id));
    all
}

fn share(part: u64, of: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64)
}

fn components(recording: &Recording) -> Section {
    let all = busiest(recording);
    let (shown, rest) = all.split_at(all.len().min(ROWS));
    let mut table = Table::new(&[
        "component",
        ">running",
        ">ready",
        ">waiting",
        ">runs",
        ">moves",
        "worker",
        "at the end",
    ]);
    for one in shown {
        let ns = one.ended.unwrap_or(recording.ns).saturating_sub(one.made);
        table.row(vec![
            one.name.clone(),
            format!("{} ({})", time(one.running), share(one.running, ns)),
            time(one.ready),
            time(one.waiting),
            one.runs.to_string(),
            one.moves.to_string(),
            one.worker
                .map_or("own thread".to_owned(), |worker| worker.to_string()),
            doing(recording, one),
        ]);
    }
    if !rest.is_empty() {
        let sum = Sum::of(rest.iter().copied());
        table.row(vec![
            format!("{} more, together", sum.components),
            time(sum.running),
            time(sum.ready),
            time(sum.waiting),
            sum.runs.to_string(),
            sum.moves.to_string(),
            String::new(),
            String::new(),
        ]);
    }
    let mut section = Section::new("Components").text(
        "Running is a component's own code; ready, that another had the worker; waiting, at a channel or \
         for the outside. The share is that of its life.",
    );
    if recording.components_left > 0 {
        let text = format!(
            "{} components that were made later have no figures of their own.",
            recording.components_left
        );
        section = section.text(&text);
    }
    section.table(&table)
}

fn timeline(recording: &Recording) -> Section {
    let slices = figures::slices(recording);
    let section = Section::new("Timeline");
    let slices = &slices[slices.len().saturating_sub(TIMELINE_SLICES)..];
    let Some(first) = slices.first() else {
        return section.text("No component ran in the window of the events.");
    };
    let from = first.from as f64;
    let to = slices.iter().map(|slice| slice.to).max().unwrap_or(0) as f64;
    let mut time_of = std::collections::HashMap::new();
    for slice in slices {
        *time_of.entry(slice.id).or_insert(0) += slice.to - slice.from;
    }
    let mut ids: Vec<u64> = time_of.keys().copied().collect();
    ids.sort_by_key(|id| (std::cmp::Reverse(time_of[id]), *id));
    let left = ids.len().saturating_sub(TIMELINE_ROWS);
    ids.truncate(TIMELINE_ROWS);
    ids.sort_unstable();
    let mut kinds: Vec<String> = recording
        .workers
        .iter()
        .take(7)
        .map(|worker| format!("on worker {}", worker.index))
        .collect();
    if recording.carrying == Carrying::Threads {
        kinds = vec!["running".to_owned()];
    }
    let row = |id: &u64| SpanRow {
        label: recording
            .component(*id)
            .map_or_else(|| format!("component {id}"), |one| one.name.clone()),
        spans: slices
            .iter()
            .filter(|slice| slice.id == *id)
            .map(|slice| Span {
                from: slice.from as f64,
                to: slice.to as f64,
                kind: usize::from(slice.worker.unwrap_or(0)).min(7),
                tip: tip(recording, slice),
            })
            .collect(),
    };
    let chart = SpanChart {
        title: "Who ran when".to_owned(),
        window: (from, to),
        kinds,
        rows: ids.iter().map(row).collect(),
        width: 1020.0,
    };
    let more = match left {
        0 => String::new(),
        _ => format!(" {left} components that ran less are left out."),
    };
    let caption = format!(
        "The last {} in which something ran. A trace (--trace) has all that is kept, to look at closely.{more}",
        match slices.len() {
            1 => "stretch".to_owned(),
            count => format!("{count} stretches"),
        }
    );
    section.picture(&chart.draw(), &caption)
}

fn tip(recording: &Recording, slice: &figures::Slice) -> String {
    let end = match slice.end {
        Some(Happening::Waits(wait)) => {
            let wait = hearth_watch::trace::describe(recording, slice.id, wait);
            format!(", then {wait}")
        }
        Some(Happening::Ended) => ", then it ended".to_owned(),
        _ => String::new(),
    };
    format!(
        "{} at {}{end}",
        time(slice.to - slice.from),
        time(slice.from)
    )
}

fn workers(recording: &Recording) -> Option<Section> {
    if recording.workers.is_empty() {
        return None;
    }
    let mut chart = RowChart::new("Busy share of each worker", Scale::Linear, Unit::Percent);
    for worker in &recording.workers {
        let core = worker
            .core
            .map_or(String::new(), |core| format!(" on core {core}"));
        chart.rows.push(Row {
            label: format!("worker {}{core}", worker.index),
            value: 100.0 * worker.busy as f64 / recording.ns.max(1) as f64,
            interval: None,
            is_measured: true,
        });
    }
    let mut table = Table::new(&[
        "worker",
        ">core",
        ">busy",
        ">share",
        ">runs",
        "components, busiest first",
    ]);
    let all = busiest(recording);
    for worker in &recording.workers {
        let here: Vec<&str> = all
            .iter()
            .filter(|one| one.worker == Some(worker.index))
            .map(|one| one.name.as_str())
            .collect();
        let mut names = here.iter().take(6).copied().collect::<Vec<_>>().join(", ");
        if here.len() > 6 {
            names += &format!(" and {} more", here.len() - 6);
        }
        table.row(vec![
            worker.index.to_string(),
            worker
                .core
                .map_or("any".to_owned(), |core| core.to_string()),
            time(worker.busy),
            share(worker.busy, recording.ns),
            worker.runs.to_string(),
            names,
        ]);
    }
    let mut section = Section::new("Workers and the machine")
        .picture(&chart.draw(), "From the beginning of the run to its end.")
        .table(&table);
    if let Ok(here) = surroundings::reading() {
        section = section.picture(
            &topology::draw(&here.topology),
            "The machine, by the system's own account.",
        );
    }
    Some(section)
}

fn channels(recording: &Recording) -> Section {
    let all = figures::channels(recording);
    let section = Section::new("Channels");
    if all.is_empty() {
        return section.text("No ports were connected.");
    }
    let mut table = Table::new(&[
        "between",
        "and",
        ">messages",
        ">bytes",
        ">first waited",
        ">second waited",
    ]);
    for channel in all.iter().take(ROWS) {
        table.row(vec![
            figures::end_name(recording, channel.ends[0]),
            figures::end_name(recording, channel.ends[1]),
            channel.messages().to_string(),
            channel
                .bytes
                .map_or("–".to_owned(), |bytes| bytes.to_string()),
            time(channel.waited[0]),
            time(channel.waited[1]),
        ]);
    }
    let rest = all.get(ROWS..).unwrap_or_default();
    if !rest.is_empty() {
        let messages: u64 = rest.iter().map(figures::Channel::messages).sum();
        table.row(vec![
            format!("{} more", rest.len()),
            String::new(),
            messages.to_string(),
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
    section
        .text(
            "A message makes whoever comes first wait, so the waits at both ends are counted as messages. Those \
             to a select that waited are not among them, and bytes are not counted.",
        )
        .table(&table)
}
