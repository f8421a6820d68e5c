//! Where a piece of text stands: spans, and the map from offsets to lines and columns.

/// Which text a span points into. The user's file is 0; prelude texts follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord, Default)]
pub struct SourceId(pub u16);

impl SourceId {
    /// The file the user asked to compile.
    pub const USER: SourceId = SourceId(0);
    /// The text of the standard environment.
    pub const PRELUDE: SourceId = SourceId(1);
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

    /// The empty span just behind this one.
    pub fn after(self) -> Span {
        Span {
            start: self.end,
            ..self
        }
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

    /// Where a line starts, counted from 1; none if there are not so many.
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
