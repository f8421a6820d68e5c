//! Words of a text with their places, and names that fit a line.

use super::error::{Fault, ReadError};
use super::measure::Reading;
use crate::graph::{Component, Graph};

/// A text being read, for messages.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) form: &'static str,
    pub(super) text: &'a str,
}

/// A place: a line from 0 and a byte in it. Columns are counted only for errors, since counting
/// characters for each word would make long lines slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPosition {
    pub(super) line: usize,
    pub(super) byte: usize,
}

impl Text<'_> {
    pub(super) fn error(self, at: TextPosition, fault: Fault) -> ReadError {
        let line = self.text.lines().nth(at.line).unwrap_or_default();
        let before = line.get(..at.byte).unwrap_or(line);
        ReadError::Text {
            form: self.form,
            line: at.line + 1,
            column: before.chars().count() + 1,
            fault,
        }
    }

    /// The last line, for parts that are missing at the end.
    pub(super) fn end(self) -> TextPosition {
        let line = self.text.lines().count().saturating_sub(1);
        let byte = self.text.lines().last().map_or(0, str::len);
        TextPosition { line, byte }
    }

    pub(super) fn whole_number(
        self,
        (at, word): (TextPosition, &str),
        what: &'static str,
        (min, max): (u32, u32),
    ) -> Result<u32, ReadError> {
        // `parse` would accept a sign.
        let is_digits = word.bytes().all(|b| b.is_ascii_digit());
        let number = word.parse::<u32>().ok().filter(|_| is_digits);
        number.filter(|n| (min..=max).contains(n)).ok_or_else(|| {
            let word = shown(word);
            let fault = Fault::Whole {
                word,
                what,
                min,
                max,
            };
            self.error(at, fault)
        })
    }
}

/// The words of a line with their places.
pub(super) fn words(line: usize, text: &str) -> impl Iterator<Item = (TextPosition, &str)> {
    text.split_whitespace().map(move |word| {
        let byte = word.as_ptr() as usize - text.as_ptr() as usize;
        (TextPosition { line, byte }, word)
    })
}

/// A word as messages show it.
pub(super) fn shown(word: &str) -> String {
    const SHOWN_MAX: usize = 40;
    let short: String = word.chars().take(SHOWN_MAX).collect();
    let more = if short.len() < word.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

/// Puts a name on one line: line breaks and backslashes are escaped as in Rust. [`unescape`] is the
/// inverse.
pub(super) fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => {
                escaped.extend(c.escape_unicode());
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// None if a backslash is followed by something that [`escape`] does not write.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        name.push_str(before);
        if let Some(after) = after.strip_prefix('\\') {
            name.push('\\');
            rest = after;
            continue;
        }
        let (code, after) = after.strip_prefix("u{")?.split_once('}')?;
        name.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        rest = after;
    }
    name.push_str(rest);
    Some(name)
}

/// A graph of this many components without connections. `found` holds the names in the text; they
/// count only if each component has its own.
pub(super) fn components(
    count: usize,
    reading: &Reading,
    found: Vec<Option<String>>,
    notes: &mut Vec<String>,
) -> Result<Graph, ReadError> {
    if !reading.names.is_empty() && reading.names.len() != count {
        return Err(ReadError::Names {
            components: count,
            names: reading.names.len(),
        });
    }
    let mut graph = Graph::new();
    for name in &reading.names {
        graph.add(Component::new(name));
    }
    if !reading.names.is_empty() {
        graph.check().map_err(ReadError::Graph)?;
        return Ok(graph);
    }
    let is_some_named = found.iter().any(Option::is_some);
    for name in found.into_iter().flatten() {
        graph.add(Component::new(name));
    }
    if graph.components.len() == count && graph.check().is_ok() {
        return Ok(graph);
    }
    if is_some_named {
        notes.push(
            "the names in the comments are left out: not each component has one of its own".into(),
        );
    }
    let mut graph = Graph::new();
    for at in 0..count {
        graph.add(Component::new(format!("c{at}")));
    }
    Ok(graph)
}

/// A count in a text, as a component's number.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).expect("a text of 2³² things does not fit into memory")
}
