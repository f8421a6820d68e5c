//! Text for people: the few forms that every message, page and table shares.
//!
//! - [`counted`]: a number with its noun, `1 component`, `2 components`.
//! - [`near`]: the name that a misspelt word probably meant; one rule for the compiler and the
//!   command.
//! - [`prose`]: sentences and wrapped lines.
//! - [`columns`]: cells as aligned lines.
//! - [`date`]: the day of a moment.
//! - [`cause`]: an I/O error as a part of a sentence.
//!
//! Values with units are [`hearth_draw::scale::Unit`]'s: it knows how many digits count.
//!
//! This crate must never know what its words are about, and never print.
//!
//! [`hearth_draw::scale::Unit`]: ../hearth_draw/scale/enum.Unit.html
//!
//! ```
//! use hearth_text::{counted, near};
//!
//! assert_eq!(counted(1, "component"), "1 component");
//! assert_eq!(counted(2, "component"), "2 components");
//! assert_eq!(near::nearest("prinInt", ["printInt", "count"]), Some("printInt"));
//! ```
#![forbid(unsafe_code)]

pub mod columns;
pub mod date;
pub mod near;
pub mod prose;

/// A number and what it counts: `1 component`, `2 components`.
pub fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// A part of a whole in percent, with so many decimals; `-` where the whole is nothing.
pub fn percent(part: f64, whole: f64, decimals: usize) -> String {
    if whole == 0.0 {
        return "-".into();
    }
    format!("{:.decimals$} %", 100.0 * part / whole)
}

/// An I/O error as part of a line: lower case, without the operating system's number.
pub fn cause(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::StorageFull => "the disk is full".into(),
        ErrorKind::QuotaExceeded => "the disk quota is used up".into(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        ErrorKind::IsADirectory => "it is a directory".into(),
        ErrorKind::NotADirectory => "a part of the path is not a directory".into(),
        ErrorKind::InvalidFilename => "the name is too long".into(),
        _ => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text);
            let mut letters = text.chars();
            letters
                .next()
                .map(|first| first.to_lowercase().chain(letters).collect())
                .unwrap_or_default()
        }
    }
}
