//! Diagnostics as text.
//!
//! The renderer is given excerpts, never whole files: a diagnostic touches a few lines, a program
//! may have a hundred thousand, and a line may have a million characters. So `Excerpt` cuts out
//! the lines that matter, and of a long line the part that matters.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Level, Snippet};
use hearth_lang::diagnostic::{Diagnostic, Label, Severity};
use hearth_lang::source::Sources;
use hearth_lang::source::{LineIndex, SourceId, Span};

/// Labels this many lines apart are shown in one excerpt; the renderer folds what is between.
const GAP_LINES: u32 = 12;
/// Spans over more lines are shown by their first line only.
const SPAN_LINES: u32 = 8;
/// Longer lines are cut around their labels.
const LINE_BYTES: usize = 240;
/// The bytes of such a line that are kept before and after the label.
const BEFORE_BYTES: usize = 60;
const BEHIND_BYTES: usize = 120;

const CUT: &str = "…";

pub struct Renderer {
    inner: annotate_snippets::Renderer,
}

impl Renderer {
    pub fn new(coloured: bool) -> Self {
        let inner = if coloured {
            annotate_snippets::Renderer::styled()
        } else {
            annotate_snippets::Renderer::plain()
        };
        Renderer {
            inner: inner
                .decor_style(DecorStyle::Ascii)
                .term_width(LINE_BYTES + 200),
        }
    }

    /// A renderer for a stream, in colours if that is a terminal and the environment allows it.
    pub fn for_stream(stream: &impl IsTerminal) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Renderer::new(!plain && stream.is_terminal())
    }

    /// All of them, each followed by an empty line.
    pub fn render(&self, sources: Sources<'_>, diagnostics: &[Diagnostic]) -> String {
        self.render_at(sources, diagnostics, |diagnostic| {
            match diagnostic.severity {
                Severity::Error => Level::ERROR,
                Severity::Warning => Level::WARNING,
            }
        })
    }

    /// Remarks that are no mistakes, in the same form: `kind` stands where `error` would.
    pub fn render_remarks(
        &self,
        sources: Sources<'_>,
        kind: &'static str,
        remarks: &[Diagnostic],
    ) -> String {
        self.render_at(sources, remarks, |_| Level::NOTE.with_name(kind))
    }

    fn render_at<'l>(
        &self,
        sources: Sources<'_>,
        diagnostics: &[Diagnostic],
        level: impl Fn(&Diagnostic) -> Level<'l>,
    ) -> String {
        let mut lines = BTreeMap::new();
        let mut text = String::new();
        for diagnostic in diagnostics.iter().map(clipped) {
            for label in labels(&diagnostic) {
                let source = label.span.source;
                lines.entry(source).or_insert_with(|| sources.lines(source));
            }
            let level = level(&diagnostic);
            text.push_str(&self.one(sources, &lines, &diagnostic, level));
            text.push_str("\n\n");
        }
        text
    }

    fn one(
        &self,
        sources: Sources<'_>,
        lines: &BTreeMap<SourceId, LineIndex>,
        diagnostic: &Diagnostic,
        level: Level<'_>,
    ) -> String {
        let excerpts = excerpts(sources, lines, diagnostic);
        let corrections: Vec<_> = excerpts.iter().filter_map(Excerpt::correction).collect();
        let mut group = level
            .primary_title(diagnostic.title.as_str())
            .id(diagnostic.code.0)
            .elements(excerpts.into_iter().map(Excerpt::into_snippet));
        for note in &diagnostic.notes {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let mut text = self.inner.render(&[group]);
        for (computed, true_place) in corrections {
            text = text.replacen(&computed, &true_place, 1);
        }
        text
    }
}

/// A quoted name longer than this is cut in messages.
const QUOTED_CHARS_MAX: usize = 80;

/// The diagnostic with its very long names cut.
fn clipped(diagnostic: &Diagnostic) -> Diagnostic {
    let mut diagnostic = diagnostic.clone();
    let texts = [&mut diagnostic.title, &mut diagnostic.primary.text].into_iter();
    let secondary = diagnostic.secondary.iter_mut().map(|label| &mut label.text);
    for text in texts
        .chain(secondary)
        .chain(&mut diagnostic.notes)
        .chain(&mut diagnostic.help)
    {
        if text.len() > QUOTED_CHARS_MAX {
            *text = clip_quoted(text);
        }
    }
    diagnostic
}

fn clip_quoted(text: &str) -> String {
    let cut = |(i, part): (usize, &str)| match part.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) if i % 2 == 1 => format!("{}…", &part[..end]),
        _ => part.to_owned(),
    };
    text.split('`')
        .enumerate()
        .map(cut)
        .collect::<Vec<_>>()
        .join("`")
}

/// The primary label first.
fn labels(diagnostic: &Diagnostic) -> impl Iterator<Item = &Label> {
    std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary)
}

/// A few lines of a source, with their labels.
struct Excerpt<'a> {
    name: &'a str,
    line_start: u32,
    text: String,
    annotations: Vec<Annotation<'a>>,
    /// The labelled span.
    line: u32,
    column: u32,
    /// Its place in `text`.
    offset: usize,
}

impl<'a> Excerpt<'a> {
    fn into_snippet(self) -> Snippet<'a, Annotation<'a>> {
        Snippet::source(self.text)
            .path(self.name)
            .line_start(self.line_start as usize)
            .annotations(self.annotations)
    }

    /// The renderer counts columns in the excerpt. If the line was cut: what it will write, and
    /// what it should.
    fn correction(&self) -> Option<(String, String)> {
        let before = &self.text[..self.offset];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let computed = before[start..].chars().count() as u32 + 1;
        let place = |column| format!("{}:{}:{column}", self.name, self.line);
        (computed != self.column).then(|| (place(computed), place(self.column)))
    }
}

/// The excerpts of a diagnostic: the one with its primary label, then the others in order.
fn excerpts<'a>(
    sources: Sources<'a>,
    lines: &BTreeMap<SourceId, LineIndex>,
    diagnostic: &'a Diagnostic,
) -> Vec<Excerpt<'a>> {
    let mut by_place: Vec<(SourceId, Range<u32>, &Label, bool)> = labels(diagnostic)
        .enumerate()
        .map(|(i, label)| {
            let range = shown_lines(&lines[&label.span.source], label.span);
            (label.span.source, range, label, i == 0)
        })
        .collect();
    by_place.sort_by_key(|(source, range, ..)| (*source, range.start));
    let mut found: Vec<(bool, Excerpt<'a>)> = by_place
        .chunk_by(|(source, range, ..), (next, next_range, ..)| {
            source == next && next_range.start <= range.end + GAP_LINES
        })
        .map(|cluster| {
            let source = cluster[0].0;
            let labels: Vec<_> = cluster
                .iter()
                .map(|&(.., label, first)| (label, first))
                .collect();
            let range = cluster[0].1.start
                ..cluster
                    .iter()
                    .map(|(_, range, ..)| range.end)
                    .max()
                    .unwrap_or(0);
            let has_primary = labels.iter().any(|&(_, first)| first);
            let excerpt = excerpt(sources.get(source), &lines[&source], range, &labels);
            (has_primary, excerpt)
        })
        .collect();
    found.sort_by_key(|&(has_primary, _)| !has_primary);
    found.into_iter().map(|(_, excerpt)| excerpt).collect()
}

/// The lines of a span that are shown, half open, from 1.
fn shown_lines(lines: &LineIndex, span: Span) -> Range<u32> {
    let first = lines.line(span.start);
    let last = lines.line(span.end.saturating_sub(1).max(span.start));
    if last - first >= SPAN_LINES {
        return first..first + 1;
    }
    first..last + 1
}

fn excerpt<'a>(
    (name, text): (&'a str, &'a str),
    lines: &LineIndex,
    range: Range<u32>,
    labels: &[(&'a Label, bool)],
) -> Excerpt<'a> {
    let mut shown = Shown::default();
    for line in range.clone() {
        let bytes = line_bytes(lines, text, line);
        let near = labels
            .iter()
            .flat_map(|(label, _)| [label.span.start as usize, label.span.end as usize]);
        shown.push_line(text, bytes, near);
    }
    let subject = labels
        .iter()
        .find(|(_, first)| *first)
        .or(labels.first())
        .map_or(0, |(label, _)| label.span.start);
    let (line, column) = place(lines, text, subject);
    let annotations = labels
        .iter()
        .map(|(label, first)| {
            let kind = if *first {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            let last_line_end = line_bytes(lines, text, range.end - 1).end;
            let end = (label.span.end as usize).min(last_line_end.max(label.span.start as usize));
            let end = if shown_lines(lines, label.span).len() == 1 {
                end.min(line_bytes(lines, text, lines.line(label.span.start)).end)
            } else {
                end
            };
            let start = shown.offset(label.span.start as usize);
            let annotation = kind.span(start..shown.offset(end).max(start));
            if label.text.is_empty() {
                annotation
            } else {
                annotation.label(label.text.as_str())
            }
        })
        .collect();
    Excerpt {
        name,
        line_start: range.start,
        annotations,
        line,
        column,
        offset: shown.offset(subject as usize),
        text: shown.text,
    }
}

/// Line and column of an offset, from 1; columns count characters.
pub fn place(lines: &LineIndex, text: &str, offset: u32) -> (u32, u32) {
    let (line, column) = lines.line_column(offset);
    let end = (offset as usize).min(text.len());
    let start = (offset - (column - 1)) as usize;
    let characters = text
        .get(start..end)
        .map_or(column as usize - 1, |before| before.chars().count());
    (line, characters as u32 + 1)
}

/// The range of a line in its text, without its end mark.
fn line_bytes(lines: &LineIndex, text: &str, line: u32) -> Range<usize> {
    let start = lines.start(line).map_or(text.len(), |start| start as usize);
    let end = lines.start(line + 1).map_or(text.len(), |end| end as usize);
    let kept = text[start..end].trim_end_matches(['\n', '\r', '\x0c']);
    start..start + kept.len()
}

/// Lines that were taken over, each whole or in part.
#[derive(Default)]
struct Shown {
    text: String,
    /// For each line, the bytes taken from the source, and their start in `text`.
    pieces: Vec<(Range<usize>, usize)>,
}

impl Shown {
    fn push_line(&mut self, text: &str, line: Range<usize>, near: impl Iterator<Item = usize>) {
        let piece = if line.len() <= LINE_BYTES {
            line.clone()
        } else {
            window(text, &line, near)
        };
        if piece.start > line.start {
            self.text.push_str(CUT);
        }
        self.pieces.push((piece.clone(), self.text.len()));
        self.text.push_str(&text[piece.clone()]);
        if piece.end < line.end {
            self.text.push_str(CUT);
        }
        self.text.push('\n');
    }

    /// The place of a source offset in `text`; the nearest one shown if it was cut away.
    fn offset(&self, offset: usize) -> usize {
        let after = self
            .pieces
            .partition_point(|(piece, _)| piece.start <= offset);
        let (piece, start) = &self.pieces[after.saturating_sub(1)];
        start + offset.clamp(piece.start, piece.end) - piece.start
    }
}

/// The part of a long line around the first offset that lies in it.
fn window(text: &str, line: &Range<usize>, near: impl Iterator<Item = usize>) -> Range<usize> {
    let centre = near
        .filter(|offset| (line.start..=line.end).contains(offset))
        .min()
        .unwrap_or(line.start);
    let mut start = centre.saturating_sub(BEFORE_BYTES).max(line.start);
    let mut end = (centre + BEHIND_BYTES).min(line.end);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use hearth_lang::diagnostic::Code;

    use super::*;

    fn span(start: usize, end: usize) -> Span {
        Span::new(SourceId::USER, start as u32, end as u32)
    }

    fn render(text: &str, diagnostic: &Diagnostic) -> String {
        Renderer::new(false).render(
            Sources::new("a.isf", text),
            std::slice::from_ref(diagnostic),
        )
    }

    #[test]
    fn labels_notes_and_help() {
        let text = "x = 3\ny = x + z\n";
        let diagnostic =
            Diagnostic::error(Code("E0301"), "`z` is not declared", span(14, 15), "here")
                .with_label(span(0, 1), "`x` is near")
                .with_note("names are declared before use")
                .with_help("write `x`");
        assert_eq!(
            render(text, &diagnostic),
            "\
error[E0301]: `z` is not declared
 --> a.isf:2:9
  |
1 | x = 3
  | - `x` is near
2 | y = x + z
  |         ^ here
  |
  = note: names are declared before use
  = help: write `x`

"
        );
    }

    #[test]
    fn remarks_have_a_name_of_their_own() {
        let remark =
            Diagnostic::warning(Code("passes"), "they are independent", span(0, 1), "here");
        let shown = Renderer::new(false).render_remarks(
            Sources::new("a.isf", "x = 3\n"),
            "found",
            &[remark],
        );
        assert!(
            shown.starts_with("found[passes]: they are independent\n"),
            "{shown}"
        );
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut() {
        let mut text = "a = 1 + ".repeat(131_072);
        let start = text.len();
        text.push_str("zz");
        let diagnostic = Diagnostic::error(Code("E0301"), "t", span(start, start + 2), "here");
        let shown = render(&text, &diagnostic);
        assert!(shown.len() < 1000, "{}", shown.len());
        assert!(shown.contains("a.isf:1:1048577"), "{shown}");
        assert!(shown.contains("…"), "{shown}");
        assert!(shown.contains("^^ here"), "{shown}");
    }

    #[test]
    fn every_kind_of_line_end_counts() {
        let text = "a\r\nb\rc\x0cd";
        let diagnostic = Diagnostic::error(Code("E0301"), "t", span(7, 8), "here");
        let shown = render(text, &diagnostic);
        assert!(shown.contains("a.isf:4:1"), "{shown}");
        assert!(shown.contains("4 | d"), "{shown}");
    }

    #[test]
    fn spans_at_the_end_and_of_nothing() {
        for text in ["", "a", "a\n", "é\n"] {
            let end = text.len();
            let diagnostic = Diagnostic::error(Code("E0201"), "t", span(end, end), "end");
            assert!(render(text, &diagnostic).contains("end"), "{text:?}");
        }
    }

    #[test]
    fn distant_labels_get_excerpts_of_their_own() {
        let text = "a = 1\n".repeat(50_000);
        let far = text.len() - 6;
        let diagnostic = Diagnostic::error(Code("E0302"), "t", span(far, far + 1), "again")
            .with_label(span(0, 1), "first");
        let shown = render(&text, &diagnostic);
        assert!(shown.contains("a.isf:50000:1"), "{shown}");
        assert!(shown.contains("a.isf:1:1"), "{shown}");
        assert!(shown.lines().count() < 14, "{shown}");
    }

    #[test]
    fn a_span_over_many_lines_shows_its_first() {
        let text = "component C {\n".to_owned() + &"x\n".repeat(100) + "}\n";
        let diagnostic = Diagnostic::error(Code("E0601"), "t", span(0, text.len() - 1), "this");
        let shown = render(&text, &diagnostic);
        assert!(shown.contains("component C {"), "{shown}");
        assert!(shown.lines().count() < 8, "{shown}");
    }
}
