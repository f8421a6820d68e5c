//! One figure a row, with its interval: costs of different things side by side.

use crate::scale::{Scale, Span, Unit};
use crate::svg::{Anchor, Canvas, Picture, text_width};

const ROW: f64 = 24.0;
const FONT: f64 = 12.0;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its subject.
    pub label: String,
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it was measured; others are drawn as rings.
    pub is_measured: bool,
}

/// A chart of rows. Rows whose value the scale cannot show are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct RowChart {
    /// Its title.
    pub title: String,
    /// Mapping of values to positions.
    pub scale: Scale,
    /// Unit in which values are written.
    pub unit: Unit,
    /// Rows from top to bottom.
    pub rows: Vec<Row>,
    /// Width in pixels.
    pub width: f64,
    /// Range that the axis shows in any case, such as all of a share; otherwise only that of the
    /// rows.
    pub reach: Option<(f64, f64)>,
}

impl RowChart {
    /// A chart without rows, of the usual width.
    pub fn new(title: &str, scale: Scale, unit: Unit) -> RowChart {
        RowChart {
            title: title.to_owned(),
            scale,
            unit,
            rows: Vec::new(),
            width: 860.0,
            reach: None,
        }
    }

    /// Draws the chart.
    pub fn draw(&self) -> Picture {
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| Span::takes(self.scale, row.value))
            .collect();
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts
                .map(|text| text_width(&text, FONT))
                .fold(0.0, f64::max)
        };
        let labels = widest(&mut rows.iter().map(|row| row.label.clone()));
        let values = widest(&mut rows.iter().map(|row| self.unit.show(row.value)));
        let left = labels.min(0.45 * self.width) + 14.0;
        let right = self.width - values - 26.0;
        let top = 32.0;
        let bottom = top + ROW * rows.len().max(1) as f64;
        let ends = rows.iter().flat_map(|row| {
            let (low, high) = row.interval.unwrap_or((row.value, row.value));
            [row.value, low, high]
        });
        let reach = self.reach.filter(|_| !rows.is_empty());
        let reach = reach.into_iter().flat_map(|(low, high)| [low, high]);
        match Span::around(self.scale, ends.chain(reach), (left, right)) {
            None => canvas.text("faint", (left, top + 16.0), Anchor::Start, "no data"),
            Some(span) => {
                self.grid(&mut canvas, span, top, bottom);
                for (at, row) in rows.iter().enumerate() {
                    let y = top + ROW * (at as f64 + 0.5);
                    self.row(&mut canvas, row, span, left, y);
                }
            }
        }
        Picture::new(&self.title, self.width, bottom + 30.0, canvas)
    }

    fn grid(&self, canvas: &mut Canvas, span: Span, top: f64, bottom: f64) {
        let mut last = f64::NEG_INFINITY;
        for tick in span.ticks(7) {
            let place = span.place(tick);
            canvas.line("grid", (place, top), (place, bottom));
            let label = self.unit.show(tick);
            let half = text_width(&label, FONT) / 2.0;
            if place - half > last + 6.0 {
                canvas.text("faint", (place, bottom + 17.0), Anchor::Middle, &label);
                last = place + half;
            }
        }
        canvas.line(
            "axis",
            (span.place(span.clamp(0.0)), bottom),
            (self.width - 8.0, bottom),
        );
    }

    fn row(&self, canvas: &mut Canvas, row: &Row, span: Span, left: f64, y: f64) {
        canvas.text("", (left - 10.0, y + 4.0), Anchor::End, &row.label);
        let mut tip = format!("{}: {}", row.label, self.unit.show(row.value));
        if let Some((low, high)) = row.interval {
            let low = if Span::takes(self.scale, low) {
                low
            } else {
                row.value
            };
            let ends = (span.place(span.clamp(low)), span.place(span.clamp(high)));
            canvas.line("s0 whisker", (ends.0, y), (ends.1, y));
            for end in [ends.0, ends.1] {
                canvas.line("s0 whisker", (end, y - 4.0), (end, y + 4.0));
            }
            tip = format!(
                "{tip} ({} to {})",
                self.unit.show(low),
                self.unit.show(high)
            );
        }
        if !row.is_measured {
            tip.push_str(", not measured");
        }
        let look = if row.is_measured {
            "s0 dot"
        } else {
            "s0 hollow"
        };
        canvas.circle(look, (span.place(row.value), y), 4.0, &tip);
        let at = (self.width - 6.0, y + 4.0);
        canvas.text("", at, Anchor::End, &self.unit.show(row.value));
    }
}
