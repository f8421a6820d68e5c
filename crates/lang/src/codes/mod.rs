//! The codes of diagnostics, each with the longer story that `hearth explain CODE` tells.
//!
//! E01xx lexical, E02xx syntax, E03xx names, E04xx types, E05xx calls, E06xx components,
//! E07xx member access, E08xx structure and exceptions, W09xx warnings.

use crate::diagnostic::Code;

pub mod semantic;
pub mod syntax;

/// A code with its title and its story, which is Markdown.
#[derive(Debug)]
pub struct Entry {
    pub code: Code,
    pub title: &'static str,
    pub story: &'static str,
}

/// Every code there is, in order.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    syntax::ENTRIES.iter().chain(semantic::ENTRIES)
}

/// The entry of a code such as `E0301`, in either case of letters.
pub fn lookup(code: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.code.0.eq_ignore_ascii_case(code))
}
