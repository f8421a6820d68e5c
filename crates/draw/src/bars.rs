//! Counts by class, as bars side by side.

use crate::scale::{Scale, Span, Unit};
use crate::style::SERIES;
use crate::svg::{Anchor, Canvas, Picture, text_width};

const FONT: f64 = 12.0;

/// A bar chart.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Its title.
    pub title: String,
    /// Label of the classes.
    pub x_label: String,
    /// Label of the counts.
    pub y_label: String,
    /// The classes, from left to right.
    pub classes: Vec<String>,
    /// A name and a value for each class. Values of 0 or less have no bar.
    pub series: Vec<(String, Vec<f64>)>,
    /// Mapping of values to heights. On a logarithmic scale bars begin below the smallest value.
    pub scale: Scale,
    /// Unit in which values are written.
    pub unit: Unit,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
}

impl BarChart {
    /// A chart without bars, of the usual size.
    pub fn new(title: &str) -> BarChart {
        BarChart {
            title: title.to_owned(),
            x_label: String::new(),
            y_label: String::new(),
            classes: Vec::new(),
            series: Vec::new(),
            scale: Scale::Linear,
            unit: Unit::Number,
            width: 860.0,
            height: 330.0,
        }
    }

    /// Draws the chart.
    pub fn draw(&self) -> Picture {
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let top = self.legend(&mut canvas);
        let (left, right) = (74.0, self.width - 12.0);
        let bottom = (self.height - 46.0).max(top + 60.0);
        let values = self.series.iter().flat_map(|(_, values)| values.iter());
        let values: Vec<f64> = values.copied().filter(|value| *value > 0.0).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let base = match self.scale {
            Scale::Linear => 0.0,
            Scale::Log2 => low / 2.0,
            Scale::Log10 => low / 3.0,
        };
        if values.is_empty() || !high.is_finite() {
            let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
            canvas.text("faint", middle, Anchor::Middle, "none");
        } else {
            let room = if self.scale == Scale::Linear {
                1.05
            } else {
                1.4
            };
            let span = Span::of(self.scale, (base, high * room), (bottom, top));
            for tick in span.ticks(5) {
                let y = span.place(tick);
                canvas.line("grid", (left, y), (right, y));
                let label = self.unit.show(tick);
                canvas.text("faint", (left - 7.0, y + 4.0), Anchor::End, &label);
            }
            self.bars(&mut canvas, span, left, right, bottom);
        }
        self.names(&mut canvas, left, right, bottom);
        canvas.line("axis", (left, bottom), (right, bottom));
        let middle = (top + bottom) / 2.0;
        canvas.text_upwards("faint", (14.0, middle), &self.y_label);
        Picture::new(&self.title, self.width, bottom + 46.0, canvas)
    }

    fn legend(&self, canvas: &mut Canvas) -> f64 {
        if self.series.len() < 2 {
            return 34.0;
        }
        let (mut x, mut y) = (6.0, 38.0);
        for (at, (name, _)) in self.series.iter().enumerate() {
            let wide = 18.0 + text_width(name, FONT) + 16.0;
            if x > 6.0 && x + wide > self.width {
                (x, y) = (6.0, y + 18.0);
            }
            let class = format!("s{} bar", at % SERIES);
            canvas.rect(&class, (x, y - 10.0), (12.0, 12.0), "");
            canvas.text("", (x + 18.0, y), Anchor::Start, name);
            x += wide;
        }
        y + 14.0
    }

    fn bars(&self, canvas: &mut Canvas, span: Span, left: f64, right: f64, bottom: f64) {
        let class_width = (right - left) / self.classes.len().max(1) as f64;
        let width = 0.82 * class_width / self.series.len().max(1) as f64;
        for (at, (name, values)) in self.series.iter().enumerate() {
            for (class, &value) in values.iter().enumerate().take(self.classes.len()) {
                if !(value > 0.0 && value.is_finite()) {
                    continue;
                }
                let x = left + class_width * (class as f64 + 0.09) + width * at as f64;
                let y = span.place(value);
                let tip = format!("{name} {}: {}", self.classes[class], self.unit.show(value));
                let look = format!("s{} bar", at % SERIES);
                canvas.rect(&look, (x, y), ((width - 1.0).max(0.6), bottom - y), &tip);
            }
        }
    }

    /// Writes as many names of classes as fit.
    fn names(&self, canvas: &mut Canvas, left: f64, right: f64, bottom: f64) {
        let class_width = (right - left) / self.classes.len().max(1) as f64;
        let mut last = f64::NEG_INFINITY;
        for (class, name) in self.classes.iter().enumerate() {
            let place = left + class_width * (class as f64 + 0.5);
            let half = text_width(name, FONT) / 2.0;
            if place - half > last + 5.0 {
                canvas.text("faint", (place, bottom + 17.0), Anchor::Middle, name);
                last = place + half;
            }
        }
        let middle = ((left + right) / 2.0, bottom + 38.0);
        canvas.text("faint", middle, Anchor::Middle, &self.x_label);
    }
}
