//! Source texts and places in them: the user's text and the preludes, spans, and the map from
//! offsets to lines and columns.

/// The texts of the standard environment, one a generation, and their names. The first is the
/// current one; the others extend it.
const PRELUDES: [(&str, &str); 4] = [
    ("prelude/g3.isf", include_str!("../prelude/g3.isf")),
    ("prelude/g2.isf", include_str!("../prelude/g2.isf")),
    ("prelude/g1.isf", include_str!("../prelude/g1.isf")),
    ("prelude/g0.isf", include_str!("../prelude/g0.isf")),
];

/// The text that a span points into. The user's file is 0; the preludes follow, newest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Default)]
pub struct SourceId(pub u16);

impl SourceId {
    /// The file the user asked to compile.
    pub const USER: SourceId = SourceId(0);
    /// The text of the standard environment.
    pub const PRELUDE: SourceId = SourceId(1);
    /// The number of sources: the user's text and the preludes.
    pub const COUNT: u16 = 1 + PRELUDES.len() as u16;

    /// Name and text of a prelude; `None` for the user's text.
    pub fn prelude(self) -> Option<(&'static str, &'static str)> {
        let index = usize::from(self.0).checked_sub(1)?;
        PRELUDES.get(index).copied()
    }
}

/// A half-open range of bytes `[start, end)` in one source text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
    pub source: SourceId,
}

impl Span {
    pub const fn new(source: SourceId, start: u32, end: u32) -> Self {
        Span { start, end, source }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            source: self.source,
        }
    }

    /// The empty span just after this one.
    pub fn after(self) -> Span {
        Span {
            start: self.end,
            ..self
        }
    }
}

/// The texts that spans point into: the user's, and the preludes'.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The user's text as messages call it, a path as a rule.
    pub name: &'a str,
    /// The user's text.
    pub text: &'a str,
}

impl<'a> Sources<'a> {
    /// The user's text under this name, and the preludes.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Sources { name, text }
    }

    /// Name and text of a source.
    pub fn get(&self, source: SourceId) -> (&'a str, &'a str) {
        match source.prelude() {
            None => (self.name, self.text),
            Some((name, text)) => (name, text),
        }
    }

    /// The text a span covers.
    pub fn slice(&self, span: Span) -> &'a str {
        let (_, text) = self.get(span.source);
        text.get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// Lines and columns of a source. Computed anew each time: keep it while rendering.
    pub fn lines(&self, source: SourceId) -> LineIndex {
        LineIndex::new(self.get(source).1)
    }
}

/// Line starts of a text, for turning offsets into lines and columns.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Lines end at LF, at CR (a CR LF pair counts once) and at FF.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (i, &byte) in bytes.iter().enumerate() {
            let ends_line = byte == b'\n'
                || byte == b'\x0c'
                || (byte == b'\r' && bytes.get(i + 1) != Some(&b'\n'));
            if ends_line {
                starts.push(i as u32 + 1);
            }
        }
        LineIndex { starts }
    }

    /// The start of a line, counted from 1; `None` if there are fewer lines.
    pub fn start(&self, line: u32) -> Option<u32> {
        self.starts.get((line as usize).checked_sub(1)?).copied()
    }

    /// The line of an offset, counted from 1.
    pub fn line(&self, offset: u32) -> u32 {
        self.starts.partition_point(|&start| start <= offset) as u32
    }

    /// Line and column of an offset, both counted from 1; the column counts bytes.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let line = self.line(offset);
        (line, offset - self.starts[line as usize - 1] + 1)
    }
}
