//! Errors in a system's or mapping's file: the place, the field, the fault, and the next step.

use thiserror::Error;

/// A mistake at a place of a file.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{file}:{line}: {field}: {fault}")]
pub struct FileError {
    /// Name of the file, as the user gave it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The field, such as `component 3, period_us`, or the table that has the mistake.
    pub field: String,
    /// The mistake.
    pub fault: Fault,
}

/// A mistake, with the step that mends it.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Fault {
    /// The text is not TOML, or a field is missing, unknown or of another type.
    #[error("{message}: mend it as docs/consolidate.md describes the file")]
    Form {
        /// The parser's words.
        message: String,
    },
    /// A list without entries that must have one.
    #[error("there is no {what}: add a table [[{what}]]")]
    Missing {
        /// The table's name.
        what: &'static str,
    },
    /// A name that is used twice.
    #[error("`{name}` is the name of another {what}: give each {what} a name of its own")]
    Twice {
        /// The name.
        name: String,
        /// Kind of thing.
        what: &'static str,
    },
    /// A name that nothing has.
    #[error("there is no {what} `{name}`{near}: name one of the file's, or add it")]
    Unknown {
        /// The name.
        name: String,
        /// Kind of thing.
        what: &'static str,
        /// A near name with its words, or nothing.
        near: String,
    },
    /// A name without letters.
    #[error("the name is empty: give it one")]
    NoName,
    /// A word that is none of a few.
    #[error("`{word}` is none of {choices}: write one of them")]
    Word {
        /// The word.
        word: String,
        /// The words that can stand there.
        choices: &'static str,
    },
    /// A number outside its range.
    #[error("{value} is not {range}: write such a number")]
    Range {
        /// The number.
        value: f64,
        /// The range in words, such as "a number above 0".
        range: &'static str,
    },
    /// A deadline beyond the period.
    #[error(
        "the deadline of {deadline} µs is longer than the period of {period} µs: shorten it, or leave it out, and it is the period"
    )]
    Deadline {
        /// The deadline, µs.
        deadline: f64,
        /// The period, µs.
        period: f64,
    },
    /// A component without any time.
    #[error("the component has no time: write wcet_us, or times with core, memory and us")]
    NoTime,
    /// A message from a component to itself.
    #[error("the message goes from `{name}` to itself: leave it out")]
    Loop {
        /// The component.
        name: String,
    },
    /// Shares of modes that do not add up to 1.
    #[error("the shares of the modes add up to {sum}: let them add up to 1, or leave all out")]
    Shares {
        /// Their sum.
        sum: f64,
    },
    /// Too many of something.
    #[error("there are {found} {what}, and {max} can be read: leave some out")]
    Many {
        /// Their number.
        found: usize,
        /// Kind of thing.
        what: &'static str,
        /// The most that can be read.
        max: usize,
    },
    /// A component without a place in a mapping.
    #[error("`{name}` has no place: add a table [[placed]] for it")]
    Unplaced {
        /// The component.
        name: String,
    },
    /// XML that is not well formed, or not AMALTHEA.
    #[error("{message}")]
    Xml {
        /// The fault, with the next step.
        message: String,
    },
}
