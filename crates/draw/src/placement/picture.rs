//! A placement as a picture: components in the cores of a machine, and curves between them.

use std::collections::BTreeMap;

use hearth_machine::topology::{Thread, format_list};

use super::slots::{self, BoxPosition, CoreLayouts, Form};
use super::{Connection, Placement, Survey, Way, cores, percent, rate};
use crate::parts::{self, Part};
use crate::scale::Unit;
use crate::svg::{Anchor, Canvas, Path, Picture, text_width};

/// Most curves: the dearest. More cannot be told apart.
const CURVES_MAX: usize = 120;
/// Most cores in a picture of the usual width. With more it is as wide as `WIDE`, or it would be a
/// tower.
const CORES_OF_USUAL_WIDTH: usize = 64;
const WIDE: f64 = 1800.0;
/// Number of line widths, `w0` to `w5`.
const WIDTHS: usize = 6;
const FONT: f64 = 12.0;
/// Font size to estimate sentences by, whose letters are wider than those of names.
const FONT_WIDE: f64 = 13.0;
/// Largest width of a line of text.
const TEXT_WIDTH: f64 = 1000.0;

impl Placement<'_> {
    /// Draws the placement.
    pub fn draw(&self) -> Picture {
        let survey = Survey::of(self);
        let slots = CoreLayouts::of(&survey);
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let mut y = 26.0;
        let mut widest = text_width(&self.title, 15.0);
        let (bottom, right) = legend(&mut canvas, &survey, &slots, y);
        y = bottom;
        widest = widest.max(right);
        let mut boxes = parts::tree(self.machine, false);
        let is_large = self.machine.cores().len() > CORES_OF_USUAL_WIDTH;
        let wide = if is_large { WIDE } else { parts::WIDTH };
        let inside = |_: &Part| slots.size();
        let (width, height) = parts::arrange(&mut boxes, (2.0, y), wide, &inside);
        let mut cores: Vec<(Vec<Thread>, (f64, f64))> = Vec::new();
        for part in &boxes {
            let mut inside = |_: &mut Canvas, part: &Part, at: (f64, f64)| {
                cores.push((part.threads.clone(), at));
            };
            parts::paint(&mut canvas, self.machine, part, &mut inside);
        }
        let (drawn, curves) = match slots.form {
            Form::Boxes => between_members(&survey, &slots, &cores),
            Form::Names | Form::Dots => between_cores(&survey, &slots, &cores),
        };
        // The dearest last: it lies above the others.
        for curve in drawn.iter().rev() {
            canvas.path_with_tip(&curve.class, &curve.path, &curve.tip);
        }
        for (threads, at) in &cores {
            slots.paint(&mut canvas, threads, *at);
        }
        y += height + 6.0;
        for line in remarks(&survey, drawn.len(), curves, slots.form) {
            for line in folded(&line, widest.max(width)) {
                y += 17.0;
                widest = widest.max(text_width(&line, FONT_WIDE));
                canvas.text("faint", (4.0, y), Anchor::Start, &line);
            }
        }
        Picture::new(
            &self.title,
            widest.max(width).max(300.0) + 8.0,
            y + 12.0,
            canvas,
        )
    }
}

/// Draws the legend, in as many rows as needed. Returns its lower and right edge.
fn legend(canvas: &mut Canvas, survey: &Survey, slots: &CoreLayouts, from: f64) -> (f64, f64) {
    let mut rows = Rows {
        at: (4.0, from),
        right: 0.0,
    };
    for (look, text) in slots.legend() {
        let (x, y) = rows.next(canvas, 16.0, &text);
        canvas.rect(&format!("{look} bar"), (x, y - 9.0), (10.0, 10.0), "");
    }
    rows.break_line();
    if !survey.connections.is_empty() {
        let text = format!("messages cost {}:", cores(survey.cost));
        rows.next(canvas, 0.0, &text);
    }
    for way in Way::ALL {
        let here = survey.connections.iter().filter(|(_, of)| *of == Some(way));
        let costs: Vec<f64> = here.map(|(one, _)| one.cost_ns_per_s).collect();
        if costs.is_empty() {
            continue;
        }
        let share = percent(costs.iter().sum(), survey.cost);
        let (x, y) = rows.next(canvas, 28.0, &format!("{}, {share}", way.name()));
        let mut path = Path::default();
        path.move_to((x + 2.0, y - 4.0));
        path.line_to((x + 22.0, y - 4.0));
        canvas.path(&format!("way way{} w3", way as usize), &path);
    }
    rows.break_line();
    (rows.at.1 + 8.0, rows.right)
}

/// Entries of a legend, one after the other, in lines.
struct Rows {
    at: (f64, f64),
    right: f64,
}

impl Rows {
    /// Writes a text with some room before it, and returns the position of that room.
    fn next(&mut self, canvas: &mut Canvas, room: f64, text: &str) -> (f64, f64) {
        let wide = room + text_width(text, FONT) + 14.0;
        if self.at.0 > 4.0 && self.at.0 + wide > TEXT_WIDTH {
            self.break_line();
        }
        let (x, y) = (self.at.0, self.at.1 + 14.0);
        canvas.text("", (x + room, y), Anchor::Start, text);
        self.at.0 += wide;
        self.right = self.right.max(self.at.0);
        (x, y)
    }

    fn break_line(&mut self) {
        if self.at.0 > 4.0 {
            self.at = (4.0, self.at.1 + 19.0);
        }
    }
}

struct Curve {
    class: String,
    path: Path,
    tip: String,
}

/// The width of a curve by its cost, where the dearest has the largest width. By the square root,
/// so that cheap ones stay visible. Among many curves, none gets the full width: it would hide
/// others.
fn width_of(cost: f64, dearest: f64, curves: usize) -> usize {
    let widths = if curves <= 8 { WIDTHS } else { WIDTHS - 2 };
    if dearest <= 0.0 {
        return 0;
    }
    let step = (cost / dearest).sqrt() * widths as f64;
    (step as usize).min(widths - 1)
}

/// Messages between two ends, both ways.
#[derive(Default)]
struct Bundle {
    cost: f64,
    /// From the end with the lower number; then to it.
    there: Sum,
    back: Sum,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    connections: usize,
    messages_per_s: f64,
    bytes_per_s: f64,
}

impl Bundle {
    fn add(&mut self, one: &Connection, is_there: bool) {
        let sum = if is_there {
            &mut self.there
        } else {
            &mut self.back
        };
        sum.connections += 1;
        sum.messages_per_s += one.messages_per_s;
        sum.bytes_per_s += one.bytes_per_s;
        self.cost += one.cost_ns_per_s;
    }
}

impl Sum {
    fn told(self, from: &str, to: &str, is_bundle: bool) -> Option<String> {
        if self.connections == 0 {
            return None;
        }
        let count = match (is_bundle, self.connections) {
            (false, _) => String::new(),
            (true, 1) => "1 connection, ".to_owned(),
            (true, count) => format!("{count} connections, "),
        };
        let bytes = Unit::Bytes.show(self.bytes_per_s);
        let messages = rate(self.messages_per_s);
        Some(format!(
            "{from} → {to}: {count}{messages} messages/s, {bytes}/s"
        ))
    }
}

/// Bundles by their ends, the dearest first.
fn dearest(bundles: BTreeMap<(usize, usize), (Way, Bundle)>) -> Vec<((usize, usize), Way, Bundle)> {
    let bundles = bundles.into_iter();
    let mut bundles: Vec<_> = bundles
        .map(|(ends, (way, bundle))| (ends, way, bundle))
        .collect();
    bundles.sort_by(|a, b| b.2.cost.total_cmp(&a.2.cost));
    bundles
}

/// Bundles between ends; `end` maps components to them.
fn bundled(survey: &Survey, end: impl Fn(usize) -> usize) -> Vec<((usize, usize), Way, Bundle)> {
    let mut bundles: BTreeMap<(usize, usize), (Way, Bundle)> = BTreeMap::new();
    for (one, way) in &survey.connections {
        let Some(way) = *way else { continue };
        let (from, to) = (end(one.from), end(one.to));
        let entry = bundles.entry((from.min(to), from.max(to)));
        let (farthest, bundle) = entry.or_insert((way, Bundle::default()));
        *farthest = (*farthest).max(way);
        bundle.add(one, from <= to);
    }
    dearest(bundles)
}

fn tip(survey: &Survey, names: [&str; 2], way: Way, bundle: &Bundle, is_bundle: bool) -> String {
    let there = bundle.there.told(names[0], names[1], is_bundle);
    let back = bundle.back.told(names[1], names[0], is_bundle);
    let cost = percent(bundle.cost, survey.cost);
    let cost = format!("{}: {cost} of what messages cost", way.name());
    let lines: Vec<String> = there.into_iter().chain(back).chain([cost]).collect();
    lines.join("\n")
}

/// Draws curves between boxes, and returns how many there would be.
fn between_members(
    survey: &Survey,
    slots: &CoreLayouts,
    cores: &[(Vec<Thread>, (f64, f64))],
) -> (Vec<Curve>, usize) {
    let places = cores
        .iter()
        .flat_map(|(threads, at)| slots.places(threads, *at));
    let places: BTreeMap<usize, BoxPosition> = places.collect();
    let bundles = bundled(survey, |component| component);
    let pairs = bundles.iter().filter(|((a, b), _, _)| a != b);
    let count = pairs.clone().count();
    let most = pairs
        .clone()
        .next()
        .map_or(0.0, |(_, _, bundle)| bundle.cost);
    let curves = pairs
        .clone()
        .take(CURVES_MAX)
        .filter_map(|((a, b), way, bundle)| {
            let names = [*a, *b].map(|end| survey.component(end).name.as_str());
            Some(Curve {
                class: format!(
                    "way way{} w{}",
                    *way as usize,
                    width_of(bundle.cost, most, count)
                ),
                path: side_to_side(*places.get(a)?, *places.get(b)?),
                tip: tip(survey, names, *way, bundle, false),
            })
        });
    (curves.collect(), count)
}

/// A path from the side of a box to that of another: the facing sides or, for boxes above each
/// other, the right sides.
fn side_to_side(a: BoxPosition, b: BoxPosition) -> Path {
    let mut path = Path::default();
    let (a, b) = if a.left <= b.left { (a, b) } else { (b, a) };
    let gap = b.left - a.right;
    if gap > 8.0 {
        let bend = (gap * 0.5).clamp(12.0, 120.0);
        // Other boxes may lie between boxes of one row: pass below them, where rows leave room.
        let is_far = gap > 2.0 * slots::GUTTER + 20.0 && (a.middle - b.middle).abs() < 8.0;
        let dip = if is_far {
            slots::PITCH * 0.5 / 0.75
        } else {
            0.0
        };
        path.move_to((a.right, a.middle));
        let leaves = (a.right + bend, a.middle + dip);
        let arrives = (b.left - bend, b.middle + dip);
        path.curve_to(leaves, arrives, (b.left, b.middle));
    } else {
        let far = (a.middle - b.middle).abs();
        let bend = 8.0 + (far * 0.16).min(60.0);
        let right = a.right.max(b.right);
        path.move_to((a.right, a.middle));
        path.curve_to(
            (right + bend, a.middle),
            (right + bend, b.middle),
            (b.right, b.middle),
        );
    }
    path
}

/// Draws the curves between cores. Returns them, and the number there would be without the limit.
fn between_cores(
    survey: &Survey,
    slots: &CoreLayouts,
    cores: &[(Vec<Thread>, (f64, f64))],
) -> (Vec<Curve>, usize) {
    let machine = survey.placement.machine;
    let core_of = |component: usize| {
        let thread = survey.component(component).thread;
        thread.map_or(0, |thread| machine.thread(thread).core.index())
    };
    let bundles = bundled(survey, core_of);
    let pairs = bundles.iter().filter(|((a, b), _, _)| a != b);
    let count = pairs.clone().count();
    let most = pairs
        .clone()
        .next()
        .map_or(0.0, |(_, _, bundle)| bundle.cost);
    // At the lower edges, where they hide least of the cores' contents.
    let edges: BTreeMap<Thread, (f64, f64)> = cores
        .iter()
        .map(|(threads, at)| {
            let size = slots.size();
            (
                threads[0],
                (at.0 + size.0 / 2.0, at.1 + size.1 + parts::PAD),
            )
        })
        .collect();
    let curves = pairs
        .clone()
        .take(CURVES_MAX)
        .filter_map(|((a, b), way, bundle)| {
            let ends = [*a, *b].map(|core| &machine.cores()[core].threads);
            let [from, to] = ends.map(|threads| edges.get(&threads[0]).copied());
            let names = ends.map(|threads| {
                let numbers = threads.iter().map(|&thread| machine.os_thread(thread).0);
                format!("core of {}", format_list(numbers))
            });
            let width = width_of(bundle.cost, most, count);
            Some(Curve {
                class: format!("way bundled way{} w{width}", *way as usize),
                path: bow(from?, to?),
                tip: tip(survey, [&names[0], &names[1]], *way, bundle, true),
            })
        });
    (curves.collect(), count)
}

/// A bow between two points: the longer, the farther from the straight line, so that curves of
/// cores in one row do not hide each other.
fn bow(from: (f64, f64), to: (f64, f64)) -> Path {
    let (across, down) = (to.0 - from.0, to.1 - from.1);
    let side = (-down * 0.18, across * 0.18);
    let near = |part: f64| {
        (
            from.0 + across * part + side.0,
            from.1 + down * part + side.1,
        )
    };
    let mut path = Path::default();
    path.move_to(from);
    path.curve_to(near(0.3), near(0.7), to);
    path
}

/// Remarks about components without a place, and how to read the picture.
fn remarks(survey: &Survey, drawn: usize, curves: usize, form: Form) -> Vec<String> {
    let mut lines = Vec::new();
    let mut key = "Numbers: hardware threads. Bars: how busy.".to_owned();
    if drawn > 0 {
        let ends = match form {
            Form::Boxes => "components",
            Form::Names | Form::Dots => "cores",
        };
        key.push_str(&format!(
            " Curves: messages between {ends}, the wider the dearer"
        ));
        if curves > drawn {
            key.push_str(&format!("; the {drawn} dearest of {curves}"));
        }
        key.push('.');
    }
    lines.push(key);
    let lost = survey.nowhere.len();
    if lost > 0 {
        let first = survey.nowhere.iter().take(8);
        let names: Vec<&str> = first
            .map(|&one| survey.component(one).name.as_str())
            .collect();
        let more = match lost - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        lines.push(format!("Without a place: {}{more}.", names.join(", ")));
    }
    lines.extend(survey.placement.remarks.iter().cloned());
    lines.extend(parts::remarks(survey.placement.machine));
    lines
}

/// A text in lines no wider than the rest of the picture, if that is wide.
fn folded(text: &str, width: f64) -> Vec<String> {
    let width = width.clamp(360.0, TEXT_WIDTH);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), FONT_WIDE) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
