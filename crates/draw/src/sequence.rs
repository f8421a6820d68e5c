//! Messages between parties in the order of time, from top to bottom.

use crate::svg::{Anchor, Canvas, Path, Picture, text_width};

const NAME: f64 = 13.0;
const LABEL: f64 = 11.0;
const BOX: f64 = 26.0;
const ROW: f64 = 30.0;
/// Least distance of two parties.
const APART: f64 = 130.0;
const TITLE: f64 = 34.0;
const EDGE: f64 = 12.0;
const HEAD: f64 = 7.0;
/// Width of the loop by which a party sends to itself.
const LOOP: f64 = 34.0;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender's place among the parties.
    pub from: usize,
    /// The receiver's.
    pub to: usize,
    /// Its text.
    pub text: String,
    /// It answers an earlier one, and is dashed.
    pub is_answer: bool,
}

/// A sequence diagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Its title.
    pub title: String,
    /// Names of the parties, from left to right.
    pub parties: Vec<String>,
    /// Messages from top to bottom.
    pub messages: Vec<Message>,
}

impl Sequence {
    /// Draws the diagram.
    pub fn draw(&self) -> Picture {
        let columns = self.columns();
        let mut canvas = Canvas::default();
        canvas.text("title", (4.0, 18.0), Anchor::Start, &self.title);
        let top = TITLE + BOX;
        let bottom = top + ROW * (self.messages.len() as f64 + 1.0);
        for (party, &x) in self.parties.iter().zip(&columns) {
            canvas.line("grid", (x, top), (x, bottom));
            let width = text_width(party, NAME) + 16.0;
            canvas.rect("package box", (x - width / 2.0, TITLE), (width, BOX), "");
            canvas.text("bold", (x, TITLE + 17.0), Anchor::Middle, party);
        }
        for (nth, message) in self.messages.iter().enumerate() {
            let y = top + ROW * (nth as f64 + 1.0);
            let at = |party: usize| columns.get(party).copied().unwrap_or(EDGE);
            arrow(&mut canvas, at(message.from), at(message.to), y, message);
        }
        let last = columns.last().copied().unwrap_or(0.0);
        let own = self
            .messages
            .iter()
            .filter(|message| message.from == message.to);
        let beside = own.map(|message| text_width(&message.text, LABEL) + LOOP + 8.0);
        let widest = beside.fold(APART / 2.0, f64::max);
        let width = (last + widest + EDGE).max(text_width(&self.title, 15.0) + 2.0 * EDGE);
        Picture::new(&self.title, width, bottom + EDGE, canvas)
    }

    /// Middles of the parties: neighbours have room for their names and their messages.
    fn columns(&self) -> Vec<f64> {
        let half = |party: &String| text_width(party, NAME) / 2.0 + 8.0;
        let mut columns: Vec<f64> = Vec::new();
        for (nth, party) in self.parties.iter().enumerate() {
            let Some(&before) = columns.last() else {
                columns.push(EDGE + half(party).max(40.0));
                continue;
            };
            let between = self.messages.iter().filter(|message| {
                let (low, high) = (message.from.min(message.to), message.from.max(message.to));
                high == nth && low + 1 == nth || low == nth - 1 && high == nth - 1
            });
            let texts = between.map(|message| {
                let loops = if message.from == message.to {
                    LOOP
                } else {
                    0.0
                };
                text_width(&message.text, LABEL) + loops + 20.0
            });
            let names = half(&self.parties[nth - 1]) + half(party) + 16.0;
            columns.push(before + texts.fold(names.max(APART), f64::max).min(420.0));
        }
        columns
    }
}

fn arrow(canvas: &mut Canvas, from: f64, to: f64, y: f64, message: &Message) {
    let (class, head_class) = match message.is_answer {
        true => ("curve s7 dashed", "curve s7"),
        false => ("curve s0", "curve s0"),
    };
    let mut head = Path::default();
    if from == to {
        let mut bow = Path::default();
        bow.move_to((from, y - 6.0));
        bow.line_to((from + LOOP, y - 6.0));
        bow.line_to((from + LOOP, y + 6.0));
        bow.line_to((from, y + 6.0));
        canvas.path(class, &bow);
        head.move_to((from + HEAD, y + 6.0 - HEAD / 2.0));
        head.line_to((from, y + 6.0));
        head.line_to((from + HEAD, y + 6.0 + HEAD / 2.0));
        canvas.path(head_class, &head);
        canvas.text(
            "small",
            (from + LOOP + 6.0, y + 4.0),
            Anchor::Start,
            &message.text,
        );
        return;
    }
    let mut shaft = Path::default();
    shaft.move_to((from, y));
    shaft.line_to((to, y));
    canvas.path(class, &shaft);
    let back = if to > from { -HEAD } else { HEAD };
    head.move_to((to + back, y - HEAD / 2.0));
    head.line_to((to, y));
    head.line_to((to + back, y + HEAD / 2.0));
    canvas.path(head_class, &head);
    canvas.text(
        "small",
        ((from + to) / 2.0, y - 5.0),
        Anchor::Middle,
        &message.text,
    );
}
