//! The parts of a machine as nested boxes: packages, nodes, caches, cores, hardware threads.
//!
//! Parts with the same threads share a box. A node that straddles other parts has no box of its
//! own; it is named below, as are nodes without threads and offline threads.

use hearth_machine::topology::Topology;

use crate::parts::{self, Part};
use crate::svg::{Anchor, Canvas, Picture, text_width};

const THREAD: (f64, f64) = (30.0, 20.0);

/// Draws a machine. Numbers are the operating system's.
pub fn draw(machine: &Topology) -> Picture {
    let full = machine.cores().len() <= parts::CORES_IN_FULL;
    let mut boxes = parts::tree(machine, full);
    let mut canvas = Canvas::default();
    canvas.text("title", (4.0, 18.0), Anchor::Start, "Topology");
    let mut y = 30.0;
    if !full && let Some(line) = parts::caches_of_a_core(machine) {
        canvas.text("faint", (4.0, y + 8.0), Anchor::Start, &line);
        y += 20.0;
    }
    let (width, height) = parts::arrange(&mut boxes, (2.0, y), parts::WIDTH, &room);
    for part in &boxes {
        let mut inside = |canvas: &mut Canvas, part: &Part, at| threads(canvas, machine, part, at);
        parts::paint(&mut canvas, machine, part, &mut inside);
    }
    y += height + 6.0;
    let mut widest = width;
    for line in parts::remarks(machine) {
        y += 18.0;
        widest = widest.max(text_width(&line, 12.0));
        canvas.text("faint", (4.0, y), Anchor::Start, &line);
    }
    Picture::new("Topology", widest.max(300.0) + 8.0, y + 12.0, canvas)
}

/// Size of a core's threads.
fn room(core: &Part) -> (f64, f64) {
    let count = core.threads.len() as f64;
    ((THREAD.0 + 3.0) * count - 3.0, THREAD.1)
}

fn threads(canvas: &mut Canvas, machine: &Topology, core: &Part, at: (f64, f64)) {
    let (mut x, y) = at;
    for &thread in &core.threads {
        let hardware = machine.thread(thread);
        canvas.rect("thread", (x, y), THREAD, &hardware.os.to_string());
        let middle = (x + THREAD.0 / 2.0, y + 14.0);
        canvas.text("small", middle, Anchor::Middle, &hardware.os.0.to_string());
        x += THREAD.0 + 3.0;
    }
}
