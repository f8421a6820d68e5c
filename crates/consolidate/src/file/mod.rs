//! The system's file: TOML, as `docs/consolidate.md` describes it.
//!
//! - [`read`] makes a [`System`] of a text, or says the line, the field and what to do.
//! - [`read_mapping`] and [`write_mapping`]: where components are.

mod error;
mod forms;
mod mapping;
mod resolve;

pub use error::{Fault, FileError};
pub use mapping::{read_mapping, write_mapping};

use crate::model::System;

/// Reads a system from TOML. `name` is the file's name, for errors.
///
/// # Errors
/// [`FileError`] at the first mistake.
pub fn read(text: &str, name: &str) -> Result<System, FileError> {
    let source = Source { text, name };
    let form: forms::SystemForm = source.parse()?;
    resolve::resolve(&source, form)
}

/// A text and its file's name.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    name: &'a str,
}

impl Source<'_> {
    fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, FileError> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let message = error.message().trim().replace('\n', " ");
            self.error(at, Fault::Form { message })
        })
    }

    /// The mistake at a byte of the text. The field is found in the text around it.
    fn error(&self, at: usize, fault: Fault) -> FileError {
        let before = self.text.get(..at).unwrap_or(self.text);
        FileError {
            file: self.name.to_owned(),
            line: before.matches('\n').count() + 1,
            field: self.field(before, at),
            fault,
        }
    }

    /// The table and key at a byte, such as `component 2, period_us`.
    fn field(&self, before: &str, at: usize) -> String {
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        let is_header = line.trim_start().starts_with('[');
        let upto = match is_header {
            true => self.text.len().min(start + line.len()),
            false => at.min(self.text.len()),
        };
        let head = |line: &str| {
            let line = line.trim();
            let inner = line
                .strip_prefix("[[")
                .and_then(|rest| rest.split_once("]]"));
            let single = || line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            inner
                .or_else(single)
                .map(|(name, _)| name.trim().to_owned())
        };
        let heads: Vec<String> = self.text[..upto].lines().filter_map(head).collect();
        let table = heads.last().map(|last| {
            let is_list = self.text.contains(&format!("[[{last}]]"));
            let nth = heads.iter().filter(|head| *head == last).count();
            match is_list {
                true => format!("{last} {nth}"),
                false => last.clone(),
            }
        });
        let key = line.split_once('=').map(|(key, _)| key.trim().to_owned());
        match (table, key.filter(|_| !is_header)) {
            (Some(table), Some(key)) => format!("{table}, {key}"),
            (Some(table), None) => table,
            (None, Some(key)) => key,
            (None, None) => "the file".to_owned(),
        }
    }
}
