//! `hearth heap`: the heaps of a running program, from outside.

use std::fmt::Write as _;

use hearth_heap::geometry::{granule_bytes, region_shift};
use hearth_heap::inspect::HeapReading;
use hearth_machine::topology::Bytes;
use hearth_report::heap_map;
use hearth_report::heaps::{self, Depth, Reading, Spaces};
use hearth_terminal::{Failure, output};
use hearth_text::columns::{Columns, Side};
use hearth_text::counted;

use super::heap_top;
use crate::arguments::heap::{Heap, HeapAction, HeapShow};

pub(crate) fn heap(arguments: &Heap) -> Result<(), Failure> {
    match &arguments.action {
        HeapAction::Show(arguments) => show(arguments),
        HeapAction::Top(arguments) => heap_top::top(arguments),
    }
}

fn show(arguments: &HeapShow) -> Result<(), Failure> {
    let spaces = heaps::find(arguments.pid)?;
    let readings = spaces.read(Depth::Chunks);
    if !spaces.process.is_there() {
        let message = format!("process {} ended while it was looked at", arguments.pid);
        return Err(Failure::input(message));
    }
    if let Some(path) = &arguments.map {
        let picture = heap_map::draw(&spaces.title(), &readings);
        output::replace(path, picture.file().as_bytes())?;
    }
    if arguments.json {
        let document = heaps::document(&spaces, &readings);
        return output::write_json(&document);
    }
    let mut text = text(&spaces, &readings, arguments.heaps);
    if let Some(path) = &arguments.map {
        let _ = writeln!(
            text,
            "\nWrote {}: each chunk with its owner and how full it is.",
            path.display()
        );
    }
    output::write(text)
}

fn text(spaces: &Spaces, readings: &[Reading], heaps_max: usize) -> String {
    let mut text = format!("{}\n", spaces.title());
    for (nth, reading) in readings.iter().enumerate() {
        if readings.len() > 1 {
            let count = readings.len();
            let _ = write!(
                text,
                "\nspace {} of {count}, at {:#x}\n",
                nth + 1,
                reading.directory
            );
        }
        text.push('\n');
        text.push_str(&totals(reading));
        if reading.nodes.len() > 1 {
            text.push_str("\nnodes\n");
            text.push_str(&nodes(reading));
        }
        text.push_str("\nregions\n");
        text.push_str(&levels(reading));
        let _ = write!(text, "\nheaps, {} in all\n", reading.heaps.len());
        text.push_str(&heap_table(reading, heaps_max, |_| None).lines(2));
        let more = reading.heaps.len().saturating_sub(heaps_max);
        if more > 0 && heaps_max > 0 {
            let _ = writeln!(text, "  and {more} smaller ones; --heaps N shows more");
        }
    }
    text
}

/// Bytes for people.
pub(super) fn bytes(count: u64) -> String {
    Bytes(count).to_string()
}

pub(super) fn totals(reading: &Reading) -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Left]);
    let of = |count: u64, what: &str| counted(count as usize, what);
    columns.row([
        "held",
        &bytes(reading.held),
        "chunks that heaps and large blocks have",
    ]);
    columns.row([
        "live",
        &bytes(reading.live()),
        "blocks that the program has, large and mapped ones too",
    ]);
    columns.row([
        "in front",
        &bytes(reading.in_front()),
        "blocks that heaps keep at hand",
    ]);
    columns.row([
        "large",
        &bytes(reading.large.bytes),
        &of(reading.large.count, "block"),
    ]);
    columns.row([
        "mapped",
        &bytes(reading.mapped.bytes),
        &of(reading.mapped.count, "block"),
    ]);
    columns.row([
        "idle",
        &bytes(reading.idle),
        "no heap's, and not given back to the system",
    ]);
    columns.lines(2)
}

fn nodes(reading: &Reading) -> String {
    let mut columns = Columns::new(&[Side::Right; 7]);
    columns.row([
        "node",
        "arenas",
        "held",
        "brought away",
        "idle",
        "heaps",
        "live in heaps",
    ]);
    for node in &reading.nodes {
        columns.row([
            node.number.to_string(),
            node.arenas.to_string(),
            bytes(node.held),
            bytes(node.brought),
            bytes(node.idle),
            node.heaps.count.to_string(),
            bytes(node.heaps.bytes),
        ]);
    }
    columns.lines(2)
}

fn levels(reading: &Reading) -> String {
    let mut columns = Columns::new(&[Side::Right; 6]);
    columns.row([
        "level",
        "granule",
        "blocks up to",
        "regions",
        "bytes",
        "taken",
    ]);
    for (level, sum) in reading.levels.iter().flatten().enumerate() {
        let all = sum.regions << region_shift(level);
        columns.row([
            level.to_string(),
            bytes(granule_bytes(level) as u64),
            bytes(granule_bytes(level) as u64 * 16),
            sum.regions.to_string(),
            bytes(all),
            share(sum.taken, all),
        ]);
    }
    columns.lines(2)
}

/// A part of a whole in percent; nothing of nothing is none.
pub(super) fn share(part: u64, whole: u64) -> String {
    hearth_text::percent(part as f64, whole as f64, 0)
}

/// The first heaps, and what else there is to say of each.
pub(super) fn heap_table(
    reading: &Reading,
    heaps_max: usize,
    change: impl Fn(&HeapReading) -> Option<String>,
) -> Columns {
    const SIDES: [Side; 8] = [
        Side::Right,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ];
    let mut columns = Columns::new(&SIDES);
    let heaps = &reading.heaps[..heaps_max.min(reading.heaps.len())];
    let with_changes = heaps.iter().any(|heap| change(heap).is_some());
    let mut head = vec![
        "number", "kind", "node", "live", "resident", "chunks", "share",
    ];
    if with_changes {
        head.push("change");
    }
    if !heaps.is_empty() {
        columns.row(head);
    }
    let live = reading.live();
    for heap in heaps {
        let node = reading.nodes.get(heap.node);
        let mut row = vec![
            heap.number.to_string(),
            heaps::kind_name(heap.kind).to_owned(),
            node.map_or("?".into(), |node| node.number.to_string()),
            bytes(heap.live()),
            bytes(heap.resident()),
            heap.chunks.to_string(),
            share(heap.live(), live),
        ];
        row.extend(change(heap));
        columns.row(row);
    }
    columns
}
