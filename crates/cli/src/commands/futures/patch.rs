//! What was found as a patch: the word `beside` before each call and loop.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hearth_driver::input::Source;
use hearth_lang::analysis::futures::{Finding, Futures};
use hearth_lang::source::LineIndex;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
const WORD: &str = "beside ";

/// The patch, to be applied in the folder from which `name` leads to the program. Before it a line
/// for each place, which tools that apply patches pass over. Empty without places.
pub(super) fn of(name: &str, source: &Source, futures: &Futures) -> String {
    let places: Vec<&Finding> = futures.found.iter().filter(|f| !f.is_asked).collect();
    if places.is_empty() {
        return String::new();
    }
    let index = LineIndex::new(&source.text);
    let mut text = String::new();
    let mut words: BTreeMap<u32, ()> = BTreeMap::new();
    for place in places {
        let line = index.line(place.span.start);
        let what = place.callee.as_deref().unwrap_or("for");
        let _ = writeln!(
            text,
            "{}:{line}: `{what}`: {}",
            source.name,
            place.pattern.name()
        );
        words.insert(place.span.start, ());
    }
    let _ = write!(
        text,
        "\n--- {}\n+++ {}\n",
        quoted("a", name),
        quoted("b", name)
    );
    let lines = lines_of(&source.text);
    let changed: BTreeMap<usize, String> = changed(&lines, words.into_keys());
    for (from, to) in hunks(&changed, lines.len()) {
        write_hunk(&mut text, &lines, &changed, from..to);
    }
    text
}

/// Each line with its position in the text and its end of line.
fn lines_of(text: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        (start, line)
    });
    lines.collect()
}

/// The new text of each line that gets a word, by its index.
fn changed(lines: &[(usize, &str)], words: impl Iterator<Item = u32>) -> BTreeMap<usize, String> {
    let mut changed: BTreeMap<usize, String> = BTreeMap::new();
    let mut words: Vec<usize> = words.map(|at| at as usize).collect();
    words.sort_unstable();
    // From the last: positions before it stay as they are.
    for at in words.into_iter().rev() {
        let line = lines.partition_point(|(start, _)| *start <= at) - 1;
        let (start, old) = lines[line];
        let new = changed.entry(line).or_insert_with(|| old.to_owned());
        new.insert_str(at - start, WORD);
    }
    changed
}

/// Ranges of lines that hold the changes and what is around them.
fn hunks(changed: &BTreeMap<usize, String>, count: usize) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for &line in changed.keys() {
        let (from, to) = (
            line.saturating_sub(CONTEXT),
            (line + CONTEXT + 1).min(count),
        );
        match hunks.last_mut() {
            Some((_, end)) if from <= *end => *end = to,
            _ => hunks.push((from, to)),
        }
    }
    hunks
}

fn write_hunk(
    text: &mut String,
    lines: &[(usize, &str)],
    changed: &BTreeMap<usize, String>,
    range: std::ops::Range<usize>,
) {
    let (first, count) = (range.start + 1, range.len());
    let _ = writeln!(text, "@@ -{first},{count} +{first},{count} @@");
    let mut write = |sign: char, line: &str| {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    };
    let mut line = range.start;
    while line < range.end {
        if !changed.contains_key(&line) {
            write(' ', lines[line].1);
            line += 1;
            continue;
        }
        // Changed lines that follow each other are one change.
        let end = (line..range.end).find(|line| !changed.contains_key(line));
        let end = end.unwrap_or(range.end);
        for (_, old) in &lines[line..end] {
            write('-', old);
        }
        for line in line..end {
            write('+', &changed[&line]);
        }
        line = end;
    }
}

/// A name as git writes it in a patch.
fn quoted(side: &str, name: &str) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\');
    if name.bytes().all(is_plain) {
        // A blank would end the name.
        let end = if name.contains(' ') { "\t" } else { "" };
        return format!("{side}/{name}{end}");
    }
    let mut quoted = format!("\"{side}/");
    for byte in name.bytes() {
        match byte {
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(byte as char);
            }
            _ if is_plain(byte) => quoted.push(byte as char),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}
