//! A table as colours: dark is little, bright is much.

use crate::scale::{Scale, Span, Unit};
use crate::style::{DARK_TEXT_FROM, STEPS};
use crate::svg::{Anchor, Canvas, Path, Picture, text_width};

/// Width from which cells show their value.
const TEXT_FROM: f64 = 30.0;
/// Width from which cells show a tip.
const TIP_FROM: f64 = 6.0;
/// The widest cells.
const CELL_MAX: f64 = 54.0;
const FONT: f64 = 12.0;

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its figure.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it was inferred from others and not measured: it is hatched.
    pub is_inferred: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Its title.
    pub title: String,
    /// Label of the rows.
    pub row_label: String,
    /// Label of the columns.
    pub column_label: String,
    /// Names of rows.
    pub rows: Vec<String>,
    /// Names of columns.
    pub columns: Vec<String>,
    /// Cells by row and column; nothing where there is no figure.
    pub cells: Vec<Vec<Option<Cell>>>,
    /// Rows and columns before which a line is drawn, where groups meet.
    pub borders: Vec<usize>,
    /// Unit in which values are written.
    pub unit: Unit,
}

impl HeatMap {
    /// Draws the table. Colours are even in ratios if the largest value is at least three times the
    /// smallest, otherwise in differences.
    pub fn draw(&self) -> Picture {
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let count = self.rows.len().max(self.columns.len()).max(1);
        let side = (620.0 / count as f64).clamp(3.0, CELL_MAX);
        let widest = self.rows.iter().map(|name| text_width(name, FONT));
        let left = 30.0 + widest.fold(0.0, f64::max) + 8.0;
        let top = 64.0;
        let size = (
            side * self.columns.len() as f64,
            side * self.rows.len() as f64,
        );
        let colours = Colours::of(self.cells.iter().flatten().flatten());
        self.names(&mut canvas, (left, top), side);
        self.cells(&mut canvas, (left, top), side, colours.as_ref());
        for &border in &self.borders {
            let at = border as f64 * side;
            if border < self.columns.len() {
                canvas.line("axis", (left + at, top - 4.0), (left + at, top + size.1));
            }
            if border < self.rows.len() {
                canvas.line("axis", (left - 4.0, top + at), (left + size.0, top + at));
            }
        }
        let legend_left = left + size.0 + 26.0;
        let wide = colours.map_or(0.0, |colours| {
            self.legend(&mut canvas, (legend_left, top), &colours)
        });
        // Titles are bold, which is wider.
        let title = 1.12 * text_width(&self.title, 15.0) + 12.0;
        let width = (legend_left + wide + 8.0).max(title);
        let height = (top + size.1 + 14.0).max(top + 16.0 * STEPS as f64 + 40.0);
        Picture::new(&self.title, width, height, canvas)
    }

    fn names(&self, canvas: &mut Canvas, (left, top): (f64, f64), side: f64) {
        let middle = left + side * self.columns.len() as f64 / 2.0;
        canvas.text(
            "faint",
            (middle, top - 26.0),
            Anchor::Middle,
            &self.column_label,
        );
        let middle = top + side * self.rows.len() as f64 / 2.0;
        canvas.text_upwards("faint", (16.0, middle), &self.row_label);
        let widest = self.columns.iter().map(|name| text_width(name, FONT) + 6.0);
        let step = (widest.fold(1.0, f64::max) / side).ceil().max(1.0) as usize;
        for (at, name) in self.columns.iter().enumerate().step_by(step) {
            let x = left + side * (at as f64 + 0.5);
            canvas.text("", (x, top - 8.0), Anchor::Middle, name);
        }
        let step = (15.0 / side).ceil().max(1.0) as usize;
        for (at, name) in self.rows.iter().enumerate().step_by(step) {
            let y = top + side * (at as f64 + 0.5) + 4.0;
            canvas.text("", (left - 8.0, y), Anchor::End, name);
        }
    }

    fn cells(
        &self,
        canvas: &mut Canvas,
        (left, top): (f64, f64),
        side: f64,
        colours: Option<&Colours>,
    ) {
        let gap = if side >= 8.0 { 1.0 } else { 0.0 };
        let (mut light, mut dark) = (Path::default(), Path::default());
        for (row, cells) in self.cells.iter().enumerate() {
            let y = top + side * row as f64;
            let mut at = 0;
            while at < cells.len() {
                let cell = cells[at].filter(|cell| cell.value.is_finite());
                let step = cell.and_then(|cell| Some(colours?.step(cell.value)));
                // Merge small cells of one colour into one shape: thousands of them make a page
                // slow.
                let same = |other: &Option<Cell>| {
                    let other = other.filter(|cell| cell.value.is_finite());
                    other.and_then(|cell| Some(colours?.step(cell.value))) == step
                };
                let run = if side < TIP_FROM {
                    cells[at..].iter().take_while(|other| same(other)).count()
                } else {
                    1
                };
                let x = left + side * at as f64;
                let class = step.map_or("none".to_owned(), |step| format!("h{step}"));
                let tip = match cell {
                    Some(cell) if side >= TIP_FROM => self.tip(row, at, &cell),
                    _ => String::new(),
                };
                let wide = side * run as f64 - gap;
                canvas.rect(&class, (x, y), (wide, side - gap), &tip);
                let bright = step.is_some_and(|step| step >= DARK_TEXT_FROM);
                for (i, cell) in cells[at..at + run].iter().enumerate() {
                    if cell.is_some_and(|cell| cell.is_inferred) {
                        let path = if bright { &mut light } else { &mut dark };
                        hatch(path, (x + side * i as f64, y), side - gap);
                    }
                }
                if let (Some(cell), true) = (cell, side >= TEXT_FROM) {
                    let text = self.short(cell.value, side);
                    let look = if bright { "on-light" } else { "on-dark" };
                    let small = if side < 40.0 { " small" } else { "" };
                    let place = (x + side / 2.0, y + side / 2.0 + 4.0);
                    canvas.text(&format!("{look}{small}"), place, Anchor::Middle, &text);
                }
                at += run;
            }
        }
        canvas.path("hatch-dark", &dark);
        canvas.path("hatch-light", &light);
    }

    /// A cell's value, without its unit if that is the legend's, rounded if it would not fit.
    fn short(&self, value: f64, side: f64) -> String {
        let whole = self.unit.show(value);
        if self.unit == Unit::Nanoseconds && value < 999.5 {
            let text = whole.trim_end_matches(" ns");
            let fits = text_width(text, 11.0) < side - 4.0;
            return if fits {
                text.to_owned()
            } else {
                format!("{value:.0}")
            };
        }
        whole
    }

    fn tip(&self, row: usize, column: usize, cell: &Cell) -> String {
        let name = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
        let mut tip = format!(
            "{} – {}: {}",
            name(&self.rows, row),
            name(&self.columns, column),
            self.unit.show(cell.value)
        );
        if let Some((low, high)) = cell.interval {
            tip.push_str(&format!(
                " ({} to {})",
                self.unit.show(low),
                self.unit.show(high)
            ));
        }
        if cell.is_inferred {
            tip.push_str(", inferred");
        }
        tip
    }

    /// Draws the steps and their meaning; returns the width.
    fn legend(&self, canvas: &mut Canvas, (left, top): (f64, f64), colours: &Colours) -> f64 {
        let mut widest = text_width("inferred", FONT);
        let steps: Vec<usize> = colours.used();
        for (at, &step) in steps.iter().rev().enumerate() {
            let y = top + 16.0 * at as f64;
            canvas.rect(&format!("h{step}"), (left, y), (18.0, 15.0), "");
            let value = self.unit.show(colours.middle(step));
            widest = widest.max(text_width(&value, FONT));
            canvas.text("faint", (left + 25.0, y + 12.0), Anchor::Start, &value);
        }
        let mut all = self.cells.iter().flatten().flatten();
        if all.any(|cell| cell.is_inferred) {
            let y = top + 16.0 * steps.len() as f64 + 8.0;
            canvas.rect("h3", (left, y), (18.0, 15.0), "");
            let mut path = Path::default();
            hatch(&mut path, (left, y), 15.0);
            canvas.path("hatch-dark", &path);
            canvas.text("faint", (left + 25.0, y + 12.0), Anchor::Start, "inferred");
        }
        25.0 + widest
    }
}

/// One stroke from corner to corner; in larger cells two more beside it.
fn hatch(path: &mut Path, (x, y): (f64, f64), side: f64) {
    path.move_to((x, y + side));
    path.line_to((x + side, y));
    if side >= 14.0 {
        let half = side / 2.0;
        path.move_to((x, y + half));
        path.line_to((x + half, y));
        path.move_to((x + half, y + side));
        path.line_to((x + side, y + half));
    }
}

/// Mapping of values to steps.
struct Colours {
    span: Span,
    equal: bool,
}

impl Colours {
    fn of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Option<Colours> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in cells
            .map(|cell| cell.value)
            .filter(|value| value.is_finite())
        {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            return None;
        }
        let scale = if low > 0.0 && high >= 3.0 * low {
            Scale::Log10
        } else {
            Scale::Linear
        };
        Some(Colours {
            span: Span::of(scale, (low, high), (0.0, STEPS as f64)),
            equal: low == high,
        })
    }

    fn step(&self, value: f64) -> usize {
        if self.equal {
            return 3;
        }
        (self.span.place(value).max(0.0) as usize).min(STEPS - 1)
    }

    fn used(&self) -> Vec<usize> {
        if self.equal {
            vec![3]
        } else {
            (0..STEPS).collect()
        }
    }

    /// The value in the middle of a step.
    fn middle(&self, step: usize) -> f64 {
        if self.equal {
            return self.span.clamp(0.0);
        }
        self.span.value((step as f64 + 0.5).min(STEPS as f64))
    }
}
