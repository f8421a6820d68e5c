//! Finished pictures, and the canvas that charts draw on.

use std::fmt::Write as _;

use crate::style;

/// A picture. Its unit is a CSS pixel at full size; pages shrink it to their width.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    title: String,
    width: f64,
    height: f64,
    body: String,
}

impl Picture {
    pub(crate) fn new(title: &str, width: f64, height: f64, canvas: Canvas) -> Picture {
        Picture {
            title: title.to_owned(),
            width,
            height,
            body: canvas.body,
        }
    }

    /// Its title, in a few words.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The `<svg>` element, for a [page](crate::page), whose style sheet gives its colours.
    pub fn inline(&self) -> String {
        self.element("")
    }

    /// A whole SVG file, with the style sheet in it.
    pub fn file(&self) -> String {
        let pictures = style::with_plain_colours(style::PICTURES);
        let style = format!("<style>{}{pictures}</style>", style::COLOURS);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n",
            self.element(&style)
        )
    }

    fn element(&self, first: &str) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let title = escape(&self.title);
        format!(
            "<svg class=\"picture\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{title}\">{first}{}</svg>",
            self.body
        )
    }
}

/// Escapes text for markup, in attributes too. Control characters, which XML cannot hold, become
/// question marks.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('?');
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A coordinate with at most one decimal. A number that is not finite would make the file
/// unreadable and becomes 0; charts leave such points out before.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".into();
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".into()
    } else {
        text.into()
    }
}

/// Estimated width of a text in the sans-serif fonts of pages, for a size in pixels. On the wide
/// side: fonts differ, and labels must not touch.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|letter| match letter {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.3,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '-' | '/' | 'I' => 0.37,
            'm' | 'w' | 'M' | 'W' | '%' => 0.92,
            letter if letter.is_uppercase() => 0.7,
            letter if letter.is_ascii() => 0.58,
            _ => 0.75,
        })
        .sum();
    ems * size
}

/// Position of a text relative to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Shapes in drawing order. Colours and strokes come from the classes, see [`style`].
#[derive(Default)]
pub(crate) struct Canvas {
    body: String,
}

impl Canvas {
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        );
    }

    /// Draws a rectangle by its upper left corner, width and height. A reader who points at it sees
    /// the tip.
    pub(crate) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), tip: &str) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            number(at.0),
            number(at.1),
            number(size.0),
            number(size.1)
        );
        self.close("rect", tip);
    }

    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64, tip: &str) {
        let _ = write!(
            self.body,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"",
            number(at.0),
            number(at.1),
            number(radius)
        );
        self.close("circle", tip);
    }

    fn close(&mut self, element: &str, tip: &str) {
        if tip.is_empty() {
            self.body.push_str("/>");
        } else {
            let _ = write!(self.body, "><title>{}</title></{element}>", escape(tip));
        }
    }

    /// Draws a path, see [`Path`].
    pub(crate) fn path(&mut self, class: &str, path: &Path) {
        if !path.data.is_empty() {
            let _ = write!(
                self.body,
                "<path class=\"{class}\" d=\"{}\"/>",
                path.data.trim_end()
            );
        }
    }

    /// Draws a path with a tip for a reader who points at it.
    pub(crate) fn path_with_tip(&mut self, class: &str, path: &Path, tip: &str) {
        let data = path.data.trim_end();
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{data}\"");
        self.close("path", tip);
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        self.text_with(class, at, anchor, "", text);
    }

    /// Draws a text that runs upwards.
    pub(crate) fn text_upwards(&mut self, class: &str, at: (f64, f64), text: &str) {
        let turn = format!(
            " transform=\"rotate(-90 {} {})\"",
            number(at.0),
            number(at.1)
        );
        self.text_with(class, at, Anchor::Middle, &turn, text);
    }

    fn text_with(&mut self, class: &str, at: (f64, f64), anchor: Anchor, more: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = match class {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        let _ = write!(
            self.body,
            "<text{class} x=\"{}\" y=\"{}\"{anchor}{more}>{}</text>",
            number(at.0),
            number(at.1),
            escape(text)
        );
    }
}

/// The data of a path.
#[derive(Default)]
pub(crate) struct Path {
    data: String,
}

impl Path {
    pub(crate) fn move_to(&mut self, at: (f64, f64)) {
        let _ = write!(self.data, "M{} {} ", number(at.0), number(at.1));
    }

    pub(crate) fn line_to(&mut self, at: (f64, f64)) {
        let _ = write!(self.data, "L{} {} ", number(at.0), number(at.1));
    }

    /// Adds a curve that leaves towards the first of two points and arrives from the second.
    pub(crate) fn curve_to(&mut self, leaves: (f64, f64), arrives: (f64, f64), at: (f64, f64)) {
        let [a, b, c, d, e, f] = [leaves.0, leaves.1, arrives.0, arrives.1, at.0, at.1].map(number);
        let _ = write!(self.data, "C{a} {b} {c} {d} {e} {f} ");
    }

    pub(crate) fn close(&mut self) {
        self.data.push_str("Z ");
    }
}
