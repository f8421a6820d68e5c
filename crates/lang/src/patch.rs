//! A program's text with the word `beside` before what was found, and with statements taken out of
//! their blocks as procedures where that makes them futures.

use crate::analysis::futures::extract::{self, Edit, Proposal};
use crate::analysis::futures::{Beside, Finding, Futures, Pattern};
use crate::compile::{self, CompileOptions};
use crate::core;
use crate::source::{LineIndex, SourceId, Span};

const WORD: &str = "beside ";

/// A program's futures, and its text as it would be with them.
#[derive(Debug)]
pub struct Patched {
    /// All that was found, extracted procedures included, and what was refused, in terms of the
    /// old text.
    pub futures: Futures,
    /// The new text; the old one if nothing is to be written.
    pub text: String,
    /// The words that the new text has more, in its order.
    pub places: Vec<Place>,
}

/// A call or a loop that gets the word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// In the new text, from 1.
    pub line: u32,
    /// The procedure that is called; none for a loop.
    pub callee: Option<String>,
    pub pattern: Pattern,
    /// The call is of a procedure that the old text does not have.
    pub is_extracted: bool,
}

/// Finds the futures of a program, and writes them into its text; `None` with errors.
pub fn patched(text: &str, options: &CompileOptions) -> Option<Patched> {
    let mut futures = compile::futures(text, options)?;
    let (taken, edits, inside) = extracted(text, options, &futures);
    let with_procedures = extract::edited(text, &edits);
    let found = inside.as_ref().unwrap_or(&futures);
    let lines = LineIndex::new(&with_procedures);
    let is_extracted = |finding: &Finding| {
        let mut names = taken.iter().map(|proposal| &proposal.name);
        names.any(|name| finding.callee.as_ref() == Some(name))
    };
    let mut places = Vec::new();
    let mut words = Vec::new();
    for finding in found.found.iter().filter(|finding| !finding.is_asked) {
        let at = finding.span.start as usize;
        places.push(Place {
            line: lines.line(finding.span.start),
            callee: finding.callee.clone(),
            pattern: finding.pattern,
            is_extracted: is_extracted(finding),
        });
        words.push(Edit {
            range: at..at,
            text: WORD.to_owned(),
        });
    }
    let text = extract::edited(&with_procedures, &words);
    let of_parts: Vec<Finding> = found
        .found
        .iter()
        .filter(|finding| is_extracted(finding))
        .filter_map(|finding| as_statements(finding, &taken, &edits))
        .collect();
    futures.found.extend(of_parts);
    futures.found.sort_by_key(|found| found.span.start);
    Some(Patched {
        futures,
        text,
        places,
    })
}

/// The statements that become procedures, the changes of the text for it, and the futures of the
/// changed text.
fn extracted(
    text: &str,
    options: &CompileOptions,
    base: &Futures,
) -> (Vec<Proposal>, Vec<Edit>, Option<Futures>) {
    let mut taken: Vec<Proposal> = Vec::new();
    let mut edits: Vec<Edit> = Vec::new();
    let mut futures = None;
    let Some(mut program) = compile::check(text, options).program else {
        return (taken, edits, futures);
    };
    core::prune(&mut program, |component| {
        options.hosted && component.span.source == SourceId::USER
    });
    for proposal in extract::proposals(&program, text) {
        let is_found = |finding: &Finding| {
            finding.callee.is_none() && finding.span.end as usize == proposal.range.end
        };
        let overlaps = |other: &Proposal| {
            other.range.start < proposal.range.end && proposal.range.start < other.range.end
        };
        if base.found.iter().any(is_found) || taken.iter().any(overlaps) {
            continue;
        }
        let mut tried = edits.clone();
        tried.extend(proposal.edits.iter().cloned());
        let Some(of_tried) = compile::futures(&extract::edited(text, &tried), options) else {
            continue;
        };
        let is_future = |name: &String| {
            let mut found = of_tried.found.iter();
            found.any(|finding| finding.callee.as_ref() == Some(name))
        };
        let mut names = taken.iter().map(|taken| &taken.name);
        if is_future(&proposal.name) && names.all(is_future) {
            taken.push(proposal);
            edits = tried;
            futures = Some(of_tried);
        }
    }
    (taken, edits, futures)
}

/// The finding of a new procedure's call, told of the statements in the old text.
fn as_statements(finding: &Finding, taken: &[Proposal], edits: &[Edit]) -> Option<Finding> {
    let name = finding.callee.as_ref()?;
    let proposal = taken.iter().find(|proposal| proposal.name == *name)?;
    let old = |span: Span| Span {
        start: before(edits, span.start as usize) as u32,
        end: before(edits, span.end as usize) as u32,
        ..span
    };
    let mut notes = finding.notes.clone();
    for note in &mut notes {
        *note = note.replacen("The call", "The new procedure", 1);
    }
    notes.push(format!(
        "`--patch` makes them a procedure `{name}`: {}.",
        finding.pattern.name()
    ));
    Some(Finding {
        pattern: Pattern::Extracted,
        span: Span {
            start: proposal.range.start as u32,
            end: proposal.range.end as u32,
            ..finding.span
        },
        beside: old(finding.beside),
        waits: match finding.waits {
            Beside::UntilUse(span) => Beside::UntilUse(old(span)),
            Beside::Until(span) => Beside::Until(old(span)),
            Beside::UntilEnd => Beside::UntilEnd,
        },
        notes,
        mark: None,
        ..finding.clone()
    })
}

/// The position in the old text of one in the new.
fn before(edits: &[Edit], at: usize) -> usize {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    // Bytes of the new text so far, and of the old.
    let (mut new, mut old) = (0, 0);
    for edit in edits {
        let start = new + (edit.range.start - old);
        if at < start {
            break;
        }
        if at < start + edit.text.len() {
            return edit.range.start;
        }
        (new, old) = (start + edit.text.len(), edit.range.end);
    }
    old + (at - new)
}
