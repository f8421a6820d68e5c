//! The components of a run, as a table.

use hearth_draw::page::{Section, Table};
use hearth_draw::scale::Unit;
use hearth_watch::figures::Sum;
use hearth_watch::{Carrying, Component, Recording};

use super::{ROWS, busiest, doing, mostly_on, share, time};

pub(super) fn section(recording: &Recording) -> Section {
    let all = busiest(recording);
    let (shown, rest) = all.split_at(all.len().min(ROWS));
    let mut table = Table::new(&[
        "component",
        ">running",
        ">ready",
        ">waiting",
        ">runs",
        ">heap, most",
        ">at last",
        ">moves",
        "mostly on",
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
            heap(one, one.heap_bytes),
            heap(one, one.heap_last),
            one.moves.to_string(),
            place(recording, one),
            doing(recording, one),
        ]);
    }
    if !rest.is_empty() {
        table.row(together(rest));
    }
    let mut section = Section::new("Components");
    if recording.components_left > 0 {
        let text = format!(
            "{} components that were created later have no figures of their own.",
            recording.components_left
        );
        section = section.text(&text);
    }
    let explanation = format!(
        "Running is a component's own code; ready, that another had the worker; waiting, at a channel or \
         for the outside. The share is that of its life. {}",
        heaps(recording)
    );
    section.table(&table).explained(&explanation)
}

fn together(rest: &[&Component]) -> Vec<String> {
    let sum = Sum::of(rest.iter().copied());
    let bytes = |of: fn(&Component) -> u64| {
        let sum: u64 = rest.iter().map(|one| of(one)).sum();
        match sum {
            0 => "–".to_owned(),
            sum => Unit::Bytes.show(sum as f64),
        }
    };
    vec![
        format!("{} more, together", sum.components),
        time(sum.running),
        time(sum.ready),
        time(sum.waiting),
        sum.runs.to_string(),
        bytes(|one| one.heap_bytes),
        bytes(|one| one.heap_last),
        sum.moves.to_string(),
        String::new(),
        String::new(),
    ]
}

fn heap(one: &Component, bytes: u64) -> String {
    match (one.heap, one.heap_bytes) {
        (0, 0) => "–".to_owned(),
        _ => Unit::Bytes.show(bytes as f64),
    }
}

fn heaps(recording: &Recording) -> String {
    match recording.heap_shared {
        Some(bytes) => format!(
            "All components share one heap (--heaps shared), which had {} of blocks at the end.",
            Unit::Bytes.show(bytes as f64)
        ),
        None if recording.components.iter().all(|one| one.heap_bytes == 0) => {
            "No component had a heap of its own.".to_owned()
        }
        None => "Heap is the bytes of blocks in a component's own heap: the most when it was resumed or \
                 ended, and the last known, at its end or that of the program. Blocks that come and \
                 go between are not seen."
            .to_owned(),
    }
}

fn place(recording: &Recording, one: &Component) -> String {
    let core = mostly_on(recording, one).map(|core| format!("core {core}"));
    match (recording.carrying, one.mostly, core) {
        (Carrying::Threads, _, core) => core.unwrap_or_else(|| "–".to_owned()),
        (Carrying::Workers, Some(worker), Some(core)) => format!("worker {worker}, {core}"),
        (Carrying::Workers, Some(worker), None) => format!("worker {worker}"),
        (Carrying::Workers, None, _) => "–".to_owned(),
    }
}
