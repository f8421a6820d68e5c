//! Line charts: lines and points over two axes.

use crate::scale::{Scale, Span, Unit};
use crate::style::SERIES;
use crate::svg::{Anchor, Canvas, Path, Picture, text_width};

/// Longest series whose points have tips: thousands of them make a page slow.
const TIPS_MAX: usize = 600;
const FONT: f64 = 12.0;
const SMALL: f64 = 10.5;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its label; may be empty.
    pub label: String,
    /// Mapping of values to positions.
    pub scale: Scale,
    /// Unit in which values are written.
    pub unit: Unit,
    /// The first and last value; from the data if absent. Values outside are left out.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis that takes its ends from the data.
    pub fn new(label: &str, scale: Scale, unit: Unit) -> Axis {
        Axis {
            label: label.to_owned(),
            scale,
            unit,
            range: None,
        }
    }
}

/// A point and, if known, an interval of its y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position along the horizontal axis.
    pub x: f64,
    /// Position along the vertical axis.
    pub y: f64,
    /// The lower and the upper end.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A point without an interval.
    pub const fn new(x: f64, y: f64) -> Point {
        Point {
            x,
            y,
            interval: None,
        }
    }

    /// The same point with an interval.
    pub const fn within(self, low: f64, high: f64) -> Point {
        Point {
            interval: Some((low, high)),
            ..self
        }
    }
}

/// Appearance of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A line with a dot at each point; intervals as a band.
    Line,
    /// A dashed line without dots, for modelled or claimed values; intervals as a band.
    Dashed,
    /// Dots; intervals as whiskers.
    Dots,
    /// Rings; intervals as whiskers.
    Rings,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Points in the order of the line.
    pub points: Vec<Point>,
    /// Their appearance.
    pub look: Look,
    /// Number of its colour, from 0; its position in the chart if absent.
    pub colour: Option<usize>,
}

impl Series {
    /// A line.
    pub fn line(name: &str, points: Vec<Point>) -> Series {
        Series::new(name, points, Look::Line)
    }

    /// A dashed line.
    pub fn dashed(name: &str, points: Vec<Point>) -> Series {
        Series::new(name, points, Look::Dashed)
    }

    /// Dots.
    pub fn dots(name: &str, points: Vec<Point>) -> Series {
        Series::new(name, points, Look::Dots)
    }

    /// A series of any appearance.
    pub fn new(name: &str, points: Vec<Point>, look: Look) -> Series {
        Series {
            name: name.to_owned(),
            points,
            look,
            colour: None,
        }
    }

    /// The same in the colour with that number, so that two series can share one.
    #[must_use]
    pub fn coloured(self, colour: usize) -> Series {
        Series {
            colour: Some(colour),
            ..self
        }
    }
}

/// A line across the whole chart at one value, with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The value.
    pub at: f64,
    /// Its name.
    pub label: String,
}

/// A chart. Points that an axis cannot show (not finite, not above 0 on a logarithmic one, outside
/// its range) are left out, and lines are interrupted there.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data.
    pub series: Vec<Series>,
    /// Vertical lines at values of x.
    pub marks: Vec<Mark>,
    /// Horizontal lines at values of y.
    pub levels: Vec<Mark>,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels, including the legend.
    pub height: f64,
}

impl LineChart {
    /// An empty chart of the usual size with linear axes.
    pub fn new(title: &str) -> LineChart {
        LineChart {
            title: title.to_owned(),
            x: Axis::new("", Scale::Linear, Unit::Number),
            y: Axis::new("", Scale::Linear, Unit::Number),
            series: Vec::new(),
            marks: Vec::new(),
            levels: Vec::new(),
            width: 860.0,
            height: 420.0,
        }
    }

    /// Draws the chart.
    pub fn draw(&self) -> Picture {
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let below_legend = self.legend(&mut canvas, 38.0);
        let (mark_rows, mark_places) = self.mark_rows();
        let top = below_legend + 14.0 * mark_rows as f64 + 4.0;
        let frame = Frame {
            left: 74.0,
            right: self.width - 18.0,
            top,
            bottom: (self.height - 46.0).max(top + 60.0),
        };
        let across = self.span(&self.x, true, (frame.left, frame.right));
        let upwards = self.span(&self.y, false, (frame.bottom, frame.top));
        if let (Some(x), Some(y)) = (across, upwards) {
            self.grid(&mut canvas, &frame, x, y);
            self.marks(&mut canvas, &frame, x, &mark_places, below_legend);
            self.levels(&mut canvas, &frame, y);
            // Bands first, so that no line is under another's band.
            for (at, series) in self.series.iter().enumerate() {
                band(&mut canvas, series, colour(at, series), x, y);
            }
            for (at, series) in self.series.iter().enumerate() {
                self.draw_series(&mut canvas, series, colour(at, series), x, y);
            }
        } else {
            let middle = (
                (frame.left + frame.right) / 2.0,
                (frame.top + frame.bottom) / 2.0,
            );
            canvas.text("faint", middle, Anchor::Middle, "no data");
        }
        canvas.line(
            "axis",
            (frame.left, frame.bottom),
            (frame.right, frame.bottom),
        );
        canvas.line("axis", (frame.left, frame.top), (frame.left, frame.bottom));
        let middle = (frame.left + frame.right) / 2.0;
        canvas.text(
            "faint",
            (middle, frame.bottom + 38.0),
            Anchor::Middle,
            &self.x.label,
        );
        let middle = (frame.top + frame.bottom) / 2.0;
        canvas.text_upwards("faint", (14.0, middle), &self.y.label);
        Picture::new(&self.title, self.width, frame.bottom + 46.0, canvas)
    }

    fn span(&self, axis: &Axis, horizontal: bool, places: (f64, f64)) -> Option<Span> {
        if let Some(range) = axis.range {
            return Some(Span::of(axis.scale, range, places));
        }
        let points = self.series.iter().flat_map(|series| &series.points);
        let values: Vec<f64> = points
            .flat_map(|point| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                if horizontal {
                    vec![point.x]
                } else {
                    vec![point.y, low, high]
                }
            })
            .collect();
        let marks = if horizontal {
            &self.marks
        } else {
            &self.levels
        };
        let marks = marks.iter().map(|mark| mark.at);
        Span::around(axis.scale, values.into_iter().chain(marks), places)
    }

    /// Draws the names of series, in as many rows as they need; returns the lower edge.
    fn legend(&self, canvas: &mut Canvas, from: f64) -> f64 {
        let named: Vec<(usize, &Series)> = self
            .series
            .iter()
            .enumerate()
            .filter(|(_, series)| !series.name.is_empty())
            .collect();
        let (mut x, mut y) = (6.0, from);
        for &(at, series) in &named {
            let wide = 26.0 + text_width(&series.name, FONT) + 18.0;
            if x > 6.0 && x + wide > self.width {
                (x, y) = (6.0, y + 18.0);
            }
            let class = colour(at, series);
            let middle = (x + 10.0, y - 4.0);
            match series.look {
                Look::Line | Look::Dashed => {
                    let dashed = if series.look == Look::Dashed {
                        " dashed"
                    } else {
                        ""
                    };
                    let class = format!("curve{dashed} {class}");
                    canvas.line(&class, (x, y - 4.0), (x + 20.0, y - 4.0));
                }
                Look::Dots => canvas.circle(&format!("{class} dot"), middle, 3.5, ""),
                Look::Rings => canvas.circle(&format!("{class} hollow"), middle, 3.5, ""),
            }
            canvas.text("", (x + 26.0, y), Anchor::Start, &series.name);
            x += wide;
        }
        if named.is_empty() {
            from - 10.0
        } else {
            y + 10.0
        }
    }

    fn grid(&self, canvas: &mut Canvas, frame: &Frame, x: Span, y: Span) {
        let count = ((frame.right - frame.left) / 80.0) as usize;
        let mut last = f64::NEG_INFINITY;
        for tick in x.ticks(count.max(2)) {
            let place = x.place(tick);
            canvas.line("grid2", (place, frame.top), (place, frame.bottom));
            let label = self.x.unit.show(tick);
            let half = text_width(&label, FONT) / 2.0;
            if place - half > last + 6.0 {
                let at = (place, frame.bottom + 17.0);
                canvas.text("faint", at, Anchor::Middle, &label);
                last = place + half;
            }
        }
        let count = ((frame.bottom - frame.top) / 45.0) as usize;
        for tick in y.ticks(count.max(2)) {
            let place = y.place(tick);
            canvas.line("grid", (frame.left, place), (frame.right, place));
            let at = (frame.left - 7.0, place + 4.0);
            canvas.text("faint", at, Anchor::End, &self.y.unit.show(tick));
        }
    }

    /// The row above the chart for each mark's name, and the number of rows.
    fn mark_rows(&self) -> (usize, Vec<usize>) {
        let places = (74.0, self.width - 18.0);
        let Some(x) = self.span(&self.x, true, places) else {
            return (0, Vec::new());
        };
        let mut order: Vec<usize> = (0..self.marks.len()).collect();
        order.sort_by(|&a, &b| self.marks[a].at.total_cmp(&self.marks[b].at));
        let mut ends: Vec<f64> = Vec::new();
        let mut rows = vec![0; self.marks.len()];
        for index in order {
            let mark = &self.marks[index];
            if !x.holds(mark.at) {
                continue;
            }
            let (start, width) = self.mark_label(x.place(mark.at), &mark.label);
            let free = ends.iter().position(|end| *end + 8.0 < start);
            let row = free.unwrap_or(ends.len());
            if row == ends.len() {
                ends.push(0.0);
            }
            ends[row] = start + width;
            rows[index] = row;
        }
        (ends.len(), rows)
    }

    /// The start of a mark's name, kept inside the picture, and its width.
    fn mark_label(&self, place: f64, label: &str) -> (f64, f64) {
        let width = text_width(label, SMALL);
        let start = (place - width / 2.0).min(self.width - 4.0 - width).max(4.0);
        (start, width)
    }

    fn marks(&self, canvas: &mut Canvas, frame: &Frame, x: Span, rows: &[usize], from: f64) {
        let last = rows.iter().max().copied().unwrap_or(0);
        for (mark, &row) in self.marks.iter().zip(rows) {
            if !x.holds(mark.at) {
                continue;
            }
            let place = x.place(mark.at);
            // The first row is the nearest to the chart.
            let y = from + 12.0 + 14.0 * (last - row) as f64 - 4.0;
            canvas.line("mark", (place, y + 3.0), (place, frame.bottom));
            let (start, _) = self.mark_label(place, &mark.label);
            canvas.text("small faint halo", (start, y), Anchor::Start, &mark.label);
        }
    }

    fn levels(&self, canvas: &mut Canvas, frame: &Frame, y: Span) {
        for mark in self.levels.iter().filter(|mark| y.holds(mark.at)) {
            let place = y.place(mark.at);
            canvas.line("mark", (frame.left, place), (frame.right, place));
            let at = (frame.right - 4.0, place - 4.0);
            canvas.text("small faint halo", at, Anchor::End, &mark.label);
        }
    }

    fn draw_series(&self, canvas: &mut Canvas, series: &Series, class: &str, x: Span, y: Span) {
        let place = |point: &Point| (x.place(point.x), y.place(point.y));
        if matches!(series.look, Look::Line | Look::Dashed) {
            let mut path = Path::default();
            for run in runs(&series.points, x, y) {
                path.move_to(place(&run[0]));
                run[1..].iter().for_each(|point| path.line_to(place(point)));
            }
            let dashed = if series.look == Look::Dashed {
                " dashed"
            } else {
                ""
            };
            canvas.path(&format!("{class} curve{dashed}"), &path);
        }
        let shown: Vec<&Point> = series
            .points
            .iter()
            .filter(|point| x.holds(point.x) && y.holds(point.y))
            .collect();
        let radius = if shown.len() > 120 { 1.6 } else { 2.6 };
        for point in &shown {
            let (dot, radius) = match series.look {
                Look::Line => ("dot", radius),
                Look::Dashed => ("hit", 4.0),
                Look::Dots => ("dot", radius + 0.4),
                Look::Rings => ("hollow", radius + 0.8),
            };
            if matches!(series.look, Look::Dots | Look::Rings)
                && let Some((low, high)) = point.interval
            {
                let (low, high) = (y.place(y.clamp(low)), y.place(y.clamp(high)));
                let at = x.place(point.x);
                canvas.line(&format!("{class} whisker"), (at, low), (at, high));
            }
            let tip = if shown.len() <= TIPS_MAX {
                self.tip(series, point)
            } else {
                String::new()
            };
            if dot != "hit" || !tip.is_empty() {
                let class = if dot == "hit" {
                    dot.to_owned()
                } else {
                    format!("{class} {dot}")
                };
                canvas.circle(&class, place(point), radius, &tip);
            }
        }
    }

    fn tip(&self, series: &Series, point: &Point) -> String {
        let (x, y) = (self.x.unit.show(point.x), self.y.unit.show(point.y));
        let name = match series.name.as_str() {
            "" => String::new(),
            name => format!("{name}, "),
        };
        match point.interval {
            None => format!("{name}{x}: {y}"),
            Some((low, high)) => {
                let (low, high) = (self.y.unit.show(low), self.y.unit.show(high));
                format!("{name}{x}: {y} ({low} to {high})")
            }
        }
    }
}

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

fn colour(at: usize, series: &Series) -> &'static str {
    const CLASSES: [&str; SERIES] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
    CLASSES[series.colour.unwrap_or(at) % SERIES]
}

/// The points that can be shown, split where one cannot.
fn runs(points: &[Point], x: Span, y: Span) -> Vec<Vec<Point>> {
    points
        .split(|point| !(x.holds(point.x) && y.holds(point.y)))
        .filter(|run| !run.is_empty())
        .map(<[Point]>::to_vec)
        .collect()
}

fn band(canvas: &mut Canvas, series: &Series, class: &str, x: Span, y: Span) {
    if !matches!(series.look, Look::Line | Look::Dashed) {
        return;
    }
    let mut path = Path::default();
    for run in runs(&series.points, x, y) {
        let ends = |point: &Point| {
            let (low, high) = point.interval?;
            let at = x.place(point.x);
            Some(((at, y.place(y.clamp(low))), (at, y.place(y.clamp(high)))))
        };
        let ends: Vec<((f64, f64), (f64, f64))> = run.iter().filter_map(ends).collect();
        if ends.len() < 2 {
            continue;
        }
        path.move_to(ends[0].1);
        ends[1..].iter().for_each(|(_, high)| path.line_to(*high));
        ends.iter().rev().for_each(|(low, _)| path.line_to(*low));
        path.close();
    }
    canvas.path(&format!("{class} band"), &path);
}
