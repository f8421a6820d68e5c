//! Activities over time: a row for each thing, with a bar for each stretch.

use crate::scale::{Scale, Span as Axis, moments};
use crate::style::Look;
use crate::svg::{Anchor, Canvas, Path, Picture, text_width};

const ROW: f64 = 18.0;
const BAR: f64 = 12.0;
const TOP: f64 = 46.0;
/// Approximate number of named moments.
const TICKS: usize = 6;

/// A stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Start, in nanoseconds.
    pub from: f64,
    /// End, in nanoseconds.
    pub to: f64,
    /// Number of its kind, from 0.
    pub kind: usize,
    /// Tip for a reader who points at it.
    pub tip: String,
}

/// A kind of stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its name in the legend.
    pub name: String,
    /// Its appearance.
    pub look: Look,
}

/// A moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Time, in nanoseconds.
    pub at: f64,
    /// Its row; none if it concerns all.
    pub row: Option<usize>,
    /// Tip for a reader who points at it.
    pub tip: String,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanRow {
    /// Its label.
    pub label: String,
    /// Its stretches; those narrower than half a pixel are joined.
    pub spans: Vec<Span>,
}

/// A chart of rows over one axis of time.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanChart {
    /// Its title.
    pub title: String,
    /// The ends of the axis in nanoseconds.
    pub window: (f64, f64),
    /// Kinds of stretches; further ones look like the last.
    pub kinds: Vec<Kind>,
    /// Rows from top to bottom.
    pub rows: Vec<SpanRow>,
    /// Marks, drawn above all stretches. Those outside the window are left out.
    pub marks: Vec<Mark>,
    /// Width in pixels.
    pub width: f64,
}

impl SpanChart {
    /// Draws the chart.
    pub fn draw(&self) -> Picture {
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let widest = self.rows.iter().map(|row| text_width(&row.label, 12.0));
        let left = widest.fold(0.0, f64::max).min(0.3 * self.width) + 14.0;
        let right = self.width - 16.0;
        self.legend(&mut canvas, left);
        let bottom = TOP + ROW * self.rows.len().max(1) as f64;
        let length = (self.window.1 - self.window.0).max(1.0);
        let place =
            |ns: f64| left + (right - left) * ((ns - self.window.0) / length).clamp(0.0, 1.0);
        let axis = Axis::of(Scale::Linear, self.window, (left, right));
        let ticks = axis.ticks(TICKS);
        for (&ns, text) in ticks.iter().zip(moments(&ticks)) {
            canvas.line("grid", (place(ns), TOP), (place(ns), bottom));
            // There may be no room behind the last.
            let anchor = match place(ns) + text_width(&text, 10.5) / 2.0 > self.width {
                true => Anchor::End,
                false => Anchor::Middle,
            };
            canvas.text("small faint", (place(ns), bottom + 14.0), anchor, &text);
        }
        for (nth, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW * nth as f64;
            let label = shortened(&row.label, left - 14.0);
            let foot = (left - 8.0, y + ROW / 2.0 + 4.0);
            canvas.text("", foot, Anchor::End, &label);
            for span in joined(&row.spans, length / (right - left) / 2.0) {
                let (from, to) = (place(span.from), place(span.to));
                let kind = self.kinds.get(span.kind).or(self.kinds.last());
                let class = format!("bar {}", kind.map_or("s0", |kind| kind.look.class()));
                let at = (from, y + (ROW - BAR) / 2.0);
                canvas.rect(&class, at, ((to - from).max(0.4), BAR), &span.tip);
            }
        }
        for mark in &self.marks {
            if mark.at >= self.window.0 && mark.at <= self.window.1 {
                self.mark(&mut canvas, mark, place(mark.at), bottom);
            }
        }
        Picture::new(&self.title, self.width, bottom + 24.0, canvas)
    }

    /// A line through all rows, or a diamond in one.
    fn mark(&self, canvas: &mut Canvas, mark: &Mark, x: f64, bottom: f64) {
        match mark.row {
            None => {
                canvas.line("mark", (x, TOP), (x, bottom));
                canvas.rect("hit", (x - 3.0, TOP), (6.0, bottom - TOP), &mark.tip);
            }
            Some(row) if row < self.rows.len() => {
                let y = TOP + ROW * (row as f64 + 0.5);
                let mut path = Path::default();
                path.move_to((x, y - 5.5));
                path.line_to((x + 4.5, y));
                path.line_to((x, y + 5.5));
                path.line_to((x - 4.5, y));
                path.close();
                canvas.path_with_tip("moment", &path, &mark.tip);
            }
            Some(_) => {}
        }
    }

    fn legend(&self, canvas: &mut Canvas, left: f64) {
        let mut x = left;
        for kind in &self.kinds {
            let class = format!("bar {}", kind.look.class());
            canvas.rect(&class, (x, 28.0), (10.0, 10.0), "");
            canvas.text("small", (x + 14.0, 37.0), Anchor::Start, &kind.name);
            x += 30.0 + text_width(&kind.name, 10.5);
        }
    }
}

/// Joins neighbours of one kind with a gap of less than `bit`, so that a picture has no more shapes
/// than pixels.
fn joined(spans: &[Span], bit: f64) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut count = 1;
    for span in spans {
        match found.last_mut() {
            Some(last) if last.kind == span.kind && span.from - last.to < bit => {
                count += 1;
                last.to = last.to.max(span.to);
                last.tip = format!("{count} stretches, close together");
            }
            _ => {
                count = 1;
                found.push(span.clone());
            }
        }
    }
    found
}

fn shortened(text: &str, width: f64) -> String {
    if text_width(text, 12.0) <= width {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while !short.is_empty() && text_width(&short, 12.0) + 12.0 > width {
        short.pop();
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: f64, to: f64, kind: usize) -> Span {
        Span {
            from,
            to,
            kind,
            tip: String::new(),
        }
    }

    #[test]
    fn narrow_gaps_are_closed_and_others_stay() {
        let spans = [span(0.0, 1.0, 0), span(1.1, 2.0, 0), span(9.0, 10.0, 0)];
        let joined = joined(&spans, 0.5);
        assert_eq!(joined.len(), 2);
        assert_eq!((joined[0].from, joined[0].to), (0.0, 2.0));
    }

    #[test]
    fn marks_are_drawn_where_they_are_and_others_left_out() {
        let mark = |at, row| Mark {
            at,
            row,
            tip: format!("at {at}"),
        };
        let chart = SpanChart {
            title: "Moves".to_owned(),
            window: (0.0, 10.0),
            kinds: vec![Kind {
                name: "Ping".to_owned(),
                look: Look::series(3),
            }],
            rows: vec![SpanRow {
                label: "a".to_owned(),
                spans: vec![span(1.0, 5.0, 7)],
            }],
            marks: vec![
                mark(2.0, None),
                mark(3.0, Some(0)),
                mark(4.0, Some(1)),
                mark(11.0, None),
            ],
            width: 400.0,
        };
        let drawn = chart.draw().inline();
        assert!(drawn.contains("class=\"bar s3\""), "{drawn}");
        assert_eq!(drawn.matches("class=\"moment\"").count(), 1);
        assert_eq!(drawn.matches("<line class=\"mark\"").count(), 1);
        assert!(drawn.contains("at 2<") && !drawn.contains("at 4<") && !drawn.contains("at 11<"));
    }

    #[test]
    fn the_axis_names_round_moments() {
        let chart = SpanChart {
            title: "Moments".to_owned(),
            window: (481e3, 2.3e6),
            kinds: Vec::new(),
            rows: Vec::new(),
            marks: Vec::new(),
            width: 400.0,
        };
        let drawn = chart.draw().inline();
        assert!(
            drawn.contains(">0.5 ms<") && drawn.contains(">2 ms<"),
            "{drawn}"
        );
        assert!(!drawn.contains("481"), "{drawn}");
    }

    #[test]
    fn kinds_are_not_mixed() {
        let spans = [span(0.0, 1.0, 0), span(1.0, 2.0, 1)];
        assert_eq!(joined(&spans, 9.0).len(), 2);
    }
}
