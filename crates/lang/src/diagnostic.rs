//! Mistakes in a user's program, as data. Rendered only at the rim.

use crate::source::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// The identity of a kind of mistake: `E0301` and the like. Every code has an entry in
/// [`crate::codes`] with a title and the longer story that `hearth explain` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

/// A span with what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// One mistake: what was found, what was expected, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub severity: Severity,
    /// One line, lower case, no full stop: what is wrong.
    pub title: String,
    /// The place; its label explains it.
    pub primary: Label,
    /// Other places that matter ("first declared here").
    pub secondary: Vec<Label>,
    /// Explanations, as whole sentences.
    pub notes: Vec<String>,
    /// The fix to suggest, if there is one.
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn error(
        code: Code,
        title: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            title: title.into(),
            primary: Label {
                span,
                text: label.into(),
            },
            secondary: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    pub fn warning(
        code: Code,
        title: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, title, span, label)
        }
    }

    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
