//! Spans as lines and columns, for documents that editors read.

use std::collections::BTreeMap;

use hearth_lang::source::{LineIndex, SourceId, Sources, Span};
use hearth_terminal::render;
use serde_json::{Value, json};

/// The line indices of the sources seen so far.
pub(super) struct Lines<'a> {
    sources: Sources<'a>,
    known: BTreeMap<SourceId, LineIndex>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(sources: Sources<'a>) -> Self {
        Lines {
            sources,
            known: Default::default(),
        }
    }

    /// `{file, start, end}`, each end `{line, column, offset}`.
    pub(super) fn span(&mut self, span: Span) -> Value {
        let (file, start, end) = self.ends(span);
        let place = |(line, column): (u32, u32), offset: u32| json!({ "line": line, "column": column, "offset": offset });
        json!({ "file": file, "start": place(start, span.start), "end": place(end, span.end) })
    }

    /// The name of a span's text, and line and column of its start and its end, from 1.
    pub(super) fn ends(&mut self, span: Span) -> (&'a str, (u32, u32), (u32, u32)) {
        let (file, text) = self.sources.get(span.source);
        let lines = self
            .known
            .entry(span.source)
            .or_insert_with(|| LineIndex::new(text));
        let place = |offset| render::place(lines, text, offset);
        (file, place(span.start), place(span.end))
    }
}
