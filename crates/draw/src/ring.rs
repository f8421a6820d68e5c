//! Things that wait for each other in a ring.

use std::f64::consts::TAU;

use crate::svg::{Anchor, Canvas, Path, Picture, text_width};

/// Height of a box with two lines.
const HEIGHT: f64 = 42.0;
const NAME: f64 = 13.0;
const DETAIL: f64 = 11.0;
/// Points of the ellipse, from which arrows are made.
const POINTS: usize = 720;
/// Free points of the ellipse between a box and an arrow.
const GAP: usize = 4;
const HEAD: f64 = 8.0;
/// Least distance of neighbouring boxes, for the arrow.
const SPACE: f64 = 34.0;
/// Smallest radii.
const SMALLEST: (f64, f64) = (130.0, 64.0);
const EDGE: f64 = 12.0;
const TITLE: f64 = 34.0;

/// One of those in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// A few words more, below the name.
    pub detail: String,
}

/// A ring: each waits for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Its title.
    pub title: String,
    /// Those in it, in order.
    pub links: Vec<Link>,
}

impl Ring {
    /// Draws the ring clockwise, the first on top.
    pub fn draw(&self) -> Picture {
        let widths: Vec<f64> = self.links.iter().map(width).collect();
        let widest = widths.iter().copied().fold(0.0, f64::max);
        let count = self.links.len() as f64;
        let radii = radii(&widths);
        let centre = (
            radii.0 + widest / 2.0 + EDGE,
            TITLE + radii.1 + HEIGHT / 2.0 + EDGE,
        );
        let on = |turn: f64| {
            let (x, y) = on_ellipse(radii, turn);
            (centre.0 + x, centre.1 + y)
        };
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        for nth in 0..self.links.len() {
            let next = (nth + 1) % self.links.len();
            let ends = [nth, next].map(|at| (on(at as f64 / count), widths[at]));
            let arc = (0..=POINTS)
                .map(|point| on((nth as f64 + point as f64 / POINTS as f64) / count))
                .collect();
            arrow(&mut canvas, arc, ends);
        }
        for (nth, link) in self.links.iter().enumerate() {
            let at = on(nth as f64 / count);
            let corner = (at.0 - widths[nth] / 2.0, at.1 - HEIGHT / 2.0);
            canvas.rect("waits", corner, (widths[nth], HEIGHT), "");
            canvas.text("bold", (at.0, at.1 - 3.0), Anchor::Middle, &link.name);
            let below = (at.0, at.1 + 13.0);
            canvas.text("faint small", below, Anchor::Middle, &link.detail);
        }
        let size = (2.0 * centre.0, centre.1 + radii.1 + HEIGHT / 2.0 + EDGE);
        Picture::new(&self.title, size.0, size.1, canvas)
    }
}

/// The point of an ellipse around nought after a part of a turn, clockwise from the top.
fn on_ellipse(radii: (f64, f64), turn: f64) -> (f64, f64) {
    let angle = turn * TAU;
    (radii.0 * angle.sin(), -radii.1 * angle.cos())
}

/// Radii of an ellipse on which boxes of these widths have room for an arrow between each and the
/// next.
fn radii(widths: &[f64]) -> (f64, f64) {
    let count = widths.len();
    let has_room = |radii| {
        (0..count).all(|nth| {
            let next = (nth + 1) % count;
            let [one, other] = [nth, next].map(|at| on_ellipse(radii, at as f64 / count as f64));
            let between = (widths[nth] + widths[next]) / 2.0 + SPACE;
            next == nth
                || (one.0 - other.0).abs() > between
                || (one.1 - other.1).abs() > HEIGHT + SPACE
        })
    };
    let mut radii = SMALLEST;
    while !has_room(radii) {
        radii = (radii.0 * 1.1, radii.1 * 1.1);
    }
    radii
}

fn width(link: &Link) -> f64 {
    let name = text_width(&link.name, NAME);
    name.max(text_width(&link.detail, DETAIL)) + 20.0
}

/// Draws the part of an arc that lies outside the boxes at its ends, with a head.
fn arrow(canvas: &mut Canvas, arc: Vec<(f64, f64)>, ends: [((f64, f64), f64); 2]) {
    let is_free = |at: &(f64, f64)| {
        ends.iter().all(|(centre, width)| {
            (at.0 - centre.0).abs() > width / 2.0 || (at.1 - centre.1).abs() > HEIGHT / 2.0
        })
    };
    let free: Vec<(f64, f64)> = arc.into_iter().filter(is_free).collect();
    let Some(shown) = free.get(GAP..free.len().saturating_sub(GAP)) else {
        return;
    };
    let (Some(&first), Some(&tip)) = (shown.first(), shown.last()) else {
        return;
    };
    let mut line = Path::default();
    line.move_to(first);
    shown.iter().for_each(|&at| line.line_to(at));
    canvas.path("awaited", &line);
    let from = shown[shown.len().saturating_sub(12)];
    let (x, y) = (tip.0 - from.0, tip.1 - from.1);
    let length = x.hypot(y).max(0.1);
    let (x, y) = (x / length * HEAD, y / length * HEAD);
    let mut head = Path::default();
    head.move_to(tip);
    head.line_to((tip.0 - x - y / 2.0, tip.1 - y + x / 2.0));
    head.line_to((tip.0 - x + y / 2.0, tip.1 - y - x / 2.0));
    head.close();
    canvas.path("over", &head);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(count: usize) -> Ring {
        let link = |nth| Link {
            name: format!("Worker#{nth}"),
            detail: "receives from requests".to_owned(),
        };
        Ring {
            title: "Who waits for whom".to_owned(),
            links: (1..=count).map(link).collect(),
        }
    }

    #[test]
    fn each_has_a_box_and_an_arrow() {
        for count in 1..=12 {
            let picture = ring(count).draw().inline();
            assert_eq!(picture.matches("<rect").count(), count, "{count}");
            assert_eq!(picture.matches("\"awaited\"").count(), count, "{count}");
            assert_eq!(picture.matches("\"over\"").count(), count, "{count}");
        }
    }
}
