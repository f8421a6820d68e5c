//! The parts of a machine as nested boxes, for all pictures: nesting, sizes and positions.
//!
//! Parts with the same threads share a box. A node that straddles other parts has no box of its
//! own; the [`remarks`] name it.

use hearth_machine::topology::{Cache, CacheKind, Thread, Topology, format_list};

use crate::svg::{Anchor, Canvas, text_width};

pub(crate) const PAD: f64 = 7.0;
const GAP: f64 = 6.0;
const BAR: f64 = 16.0;
/// Size of names, which are bold at times and so wider than the font size says.
const NAME: f64 = 13.0;
const HEAD: f64 = 18.0;
/// Usual width for the arrangement of boxes.
pub(crate) const WIDTH: f64 = 1020.0;
/// Most cores whose caches are named in each; beyond, they are named once, above.
pub(crate) const CORES_IN_FULL: usize = 32;

/// A box.
pub(crate) struct Part {
    pub(crate) look: Look,
    /// Lines at its top: names, then caches as bars.
    pub(crate) names: Vec<String>,
    pub(crate) bars: Vec<String>,
    pub(crate) threads: Vec<Thread>,
    /// Boxes inside; a core has none.
    pub(crate) parts: Vec<Part>,
    at: (f64, f64),
    pub(crate) size: (f64, f64),
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Look {
    Package,
    Node,
    Cache,
    Core,
}

impl Part {
    fn head(&self) -> f64 {
        let names = if self.names.is_empty() { 0.0 } else { HEAD };
        names + (BAR + 2.0) * self.bars.len() as f64
    }

    fn least_width(&self) -> f64 {
        let name = text_width(&self.names.join(" · "), NAME);
        let bars = self.bars.iter().map(|bar| text_width(bar, 10.5) + 6.0);
        bars.fold(name, f64::max)
    }
}

/// Outermost boxes with their contents. The private caches of a core appear only if `full`. Boxes
/// have no sizes yet, see [`arrange`].
pub(crate) fn tree(machine: &Topology, full: bool) -> Vec<Part> {
    let mut flat: Vec<Part> = Vec::new();
    let add = |look,
               name: Option<String>,
               bar: Option<String>,
               threads: &[Thread],
               flat: &mut Vec<Part>| {
        let is_core = |look: Look| look == Look::Core;
        let known = flat
            .iter()
            .position(|part| part.threads == threads && is_core(part.look) == is_core(look));
        let at = known.unwrap_or(flat.len());
        if known.is_none() {
            flat.push(Part {
                look,
                names: Vec::new(),
                bars: Vec::new(),
                threads: threads.to_vec(),
                parts: Vec::new(),
                at: (0.0, 0.0),
                size: (0.0, 0.0),
            });
        }
        let part = &mut flat[at];
        part.names.extend(name);
        part.bars.extend(bar);
    };
    for package in machine.packages() {
        let name = format!("package {}", package.os.0);
        add(Look::Package, Some(name), None, &package.threads, &mut flat);
    }
    for node in machine
        .nodes()
        .iter()
        .filter(|node| !node.threads.is_empty())
    {
        if nests(machine, &node.threads) {
            let name = match node.memory {
                Some(memory) => format!("node {}, {memory}", node.os.0),
                None => format!("node {}", node.os.0),
            };
            add(Look::Node, Some(name), None, &node.threads, &mut flat);
        }
    }
    let mut caches: Vec<&Cache> = machine.caches().iter().collect();
    caches.sort_by_key(|cache| std::cmp::Reverse(cache.level));
    for cache in caches
        .iter()
        .filter(|cache| cores_of(machine, &cache.threads) > 1)
    {
        add(
            Look::Cache,
            None,
            Some(cache_name(cache)),
            &cache.threads,
            &mut flat,
        );
    }
    for core in machine.cores() {
        add(Look::Core, None, None, &core.threads, &mut flat);
    }
    if full {
        for cache in caches
            .iter()
            .filter(|cache| cores_of(machine, &cache.threads) == 1)
        {
            let core = machine.thread(cache.threads[0]).core;
            let threads = &machine.cores()[core.index()].threads;
            let mut name = cache_name(cache);
            if cache.threads.len() < threads.len() {
                name.push_str(" each");
            }
            let known = flat.iter().any(|part| {
                part.look == Look::Core && part.threads == *threads && part.bars.contains(&name)
            });
            if !known {
                add(Look::Core, None, Some(name), threads, &mut flat);
            }
        }
    }
    nested(flat)
}

/// Puts boxes into the smallest that holds them.
fn nested(mut flat: Vec<Part>) -> Vec<Part> {
    // Small ones first, so that each is complete when it moves; a core before boxes equal to it.
    flat.sort_by_key(|part| (part.threads.len(), part.look != Look::Core));
    let mut roots: Vec<Part> = Vec::new();
    for mut part in flat {
        let (inside, outside) = roots.into_iter().partition(|root| {
            root.threads
                .iter()
                .all(|thread| part.threads.contains(thread))
        });
        roots = outside;
        part.parts = inside;
        part.parts.sort_by_key(|part| part.threads[0]);
        roots.push(part);
    }
    roots.sort_by_key(|part| part.threads[0]);
    roots
}

/// Whether a set of threads is nested with each package, shared cache and core it meets.
fn nests(machine: &Topology, threads: &[Thread]) -> bool {
    let fits = |other: &[Thread]| {
        let common = other
            .iter()
            .filter(|thread| threads.contains(thread))
            .count();
        common == 0 || common == other.len() || common == threads.len()
    };
    machine.packages().iter().all(|part| fits(&part.threads))
        && machine.caches().iter().all(|cache| fits(&cache.threads))
        && machine.cores().iter().all(|core| fits(&core.threads))
}

fn cores_of(machine: &Topology, threads: &[Thread]) -> usize {
    let mut cores: Vec<_> = threads
        .iter()
        .map(|&thread| machine.thread(thread).core)
        .collect();
    cores.sort_unstable();
    cores.dedup();
    cores.len()
}

fn cache_name(cache: &Cache) -> String {
    let kind = match cache.kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    format!("L{}{kind} {}", cache.level, cache.size)
}

/// The caches of the first core alone, for machines with too many cores to name each.
pub(crate) fn caches_of_a_core(machine: &Topology) -> Option<String> {
    let first = machine.cores().first()?.threads.first()?;
    let names: Vec<String> = machine
        .caches()
        .iter()
        .filter(|cache| cache.threads.contains(first) && cores_of(machine, &cache.threads) == 1)
        .map(cache_name)
        .collect();
    (!names.is_empty()).then(|| format!("each core: {}", names.join(", ")))
}

/// Sets the sizes and positions of all boxes for a picture of about this width; returns the size of
/// the whole. A core has the size that `inside` returns, plus its frame.
pub(crate) fn arrange(
    parts: &mut [Part],
    from: (f64, f64),
    wide: f64,
    inside: &dyn Fn(&Part) -> (f64, f64),
) -> (f64, f64) {
    for part in parts.iter_mut() {
        measure(part, wide, inside);
    }
    let (columns, _) = columns(parts, wide);
    place(parts, columns, from);
    grid(parts, columns)
}

fn measure(part: &mut Part, wide: f64, inside: &dyn Fn(&Part) -> (f64, f64)) {
    let (width, height) = if part.parts.is_empty() {
        inside(part)
    } else {
        for inner in &mut part.parts {
            measure(inner, wide - 2.0 * PAD, inside);
        }
        let (columns, _) = columns(&part.parts, wide - 2.0 * PAD);
        let size = grid(&part.parts, columns);
        place(&mut part.parts, columns, (0.0, 0.0));
        size
    };
    part.size = (
        width.max(part.least_width()) + 2.0 * PAD,
        height + part.head() + 2.0 * PAD,
    );
}

/// Number of columns in which boxes look best: within the width if possible, and neither a tower
/// nor a wall.
fn columns(parts: &[Part], width: f64) -> (usize, f64) {
    let badness = |columns: usize| {
        let (w, h) = grid(parts, columns);
        let shape = (w / h / 1.9).ln().abs();
        let over = (w / width).ln().max(0.0) * 10.0;
        let ragged = match parts.len() % columns {
            0 => 0.0,
            // An empty row of large boxes hurts more than one of many small ones.
            last => {
                let slots = parts.len().next_multiple_of(columns) as f64;
                (1.8 * (columns - last) as f64 / slots).max(0.35)
            }
        };
        shape + over + ragged
    };
    (1..=parts.len().max(1))
        .map(|columns| (columns, badness(columns)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((1, 0.0))
}

/// Width and height of boxes in this many columns.
fn grid(parts: &[Part], columns: usize) -> (f64, f64) {
    let mut size: (f64, f64) = (0.0, 0.0);
    for row in parts.chunks(columns.max(1)) {
        let widths: f64 = row.iter().map(|part| part.size.0 + GAP).sum();
        let height = row.iter().map(|part| part.size.1).fold(0.0, f64::max);
        size = (size.0.max(widths - GAP), size.1 + height + GAP);
    }
    (size.0, (size.1 - GAP).max(0.0))
}

/// Positions boxes from the upper left corner.
fn place(parts: &mut [Part], columns: usize, from: (f64, f64)) {
    let mut y = from.1;
    for row in parts.chunks_mut(columns.max(1)) {
        let mut x = from.0;
        let height = row.iter().map(|part| part.size.1).fold(0.0, f64::max);
        for part in row {
            part.at = (x, y);
            x += part.size.0 + GAP;
        }
        y += height + GAP;
    }
}

/// Draws the inside of a core, from its upper left corner.
pub(crate) type Inside<'a> = dyn FnMut(&mut Canvas, &Part, (f64, f64)) + 'a;

/// Draws a box whose position is relative to the picture; boxes inside are relative to it. Calls
/// `inside` with the corner of each core.
pub(crate) fn paint(canvas: &mut Canvas, machine: &Topology, part: &Part, inside: &mut Inside) {
    let class = match part.look {
        Look::Package | Look::Cache => "box package",
        Look::Node => "box node",
        Look::Core => "box core",
    };
    canvas.rect(class, part.at, part.size, &tip(machine, part));
    let (left, mut y) = (part.at.0 + PAD, part.at.1 + PAD);
    if !part.names.is_empty() {
        let look = if part.names.iter().any(|name| name.starts_with("package")) {
            "bold"
        } else {
            ""
        };
        canvas.text(
            look,
            (left, y + 11.0),
            Anchor::Start,
            &part.names.join(" · "),
        );
        y += HEAD;
    }
    for bar in &part.bars {
        let wide = part.size.0 - 2.0 * PAD;
        canvas.rect("cache", (left, y), (wide, BAR), "");
        let middle = (left + wide / 2.0, y + 12.0);
        canvas.text("small", middle, Anchor::Middle, bar);
        y += BAR + 2.0;
    }
    if part.parts.is_empty() {
        inside(canvas, part, (left, y));
    }
    for inner in &part.parts {
        let placed = inner.moved((left + inner.at.0, y + inner.at.1));
        paint(canvas, machine, &placed, inside);
    }
}

impl Part {
    fn moved(&self, at: (f64, f64)) -> Part {
        Part {
            look: self.look,
            names: self.names.clone(),
            bars: self.bars.clone(),
            threads: self.threads.clone(),
            parts: self.parts.iter().map(|part| part.moved(part.at)).collect(),
            at,
            size: self.size,
        }
    }
}

fn tip(machine: &Topology, part: &Part) -> String {
    let numbers = part
        .threads
        .iter()
        .map(|&thread| machine.os_thread(thread).0);
    let threads = format_list(numbers);
    match part.look {
        Look::Core => format!("core with hardware threads {threads}"),
        _ => format!("hardware threads {threads}"),
    }
}

/// Remarks about parts without a place in the drawing.
pub(crate) fn remarks(machine: &Topology) -> Vec<String> {
    let mut lines = Vec::new();
    for node in machine.nodes() {
        if node.threads.is_empty() {
            let memory = match node.memory {
                Some(memory) => format!("{memory} of memory"),
                None => "memory of unknown size".to_owned(),
            };
            lines.push(format!("node {}: {memory}, no threads", node.os.0));
        } else if !nests(machine, &node.threads) {
            let threads = node
                .threads
                .iter()
                .map(|&thread| machine.os_thread(thread).0);
            let threads = format_list(threads);
            lines.push(format!("node {} lies across: threads {threads}", node.os.0));
        }
    }
    if !machine.offline().is_empty() {
        let offline = format_list(machine.offline().iter().map(|thread| thread.0));
        lines.push(format!("offline: {offline}"));
    }
    lines
}
