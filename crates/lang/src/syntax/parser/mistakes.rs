//! Reports of mistakes: the cold half of the parser.
//!
//! Each function reports one mistake at the cursor. Those that return `Failed` leave the
//! recovery to the caller; those that return `Parse` or nothing put the parser in a position
//! to go on.

use super::{Failed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::token::{Kind, Token};

mod arms;
mod clauses;
mod closing;
mod declarations;
mod groups;
mod names;
mod operators;
mod separators;

impl Parser<'_> {
    /// The text found at the cursor instead of the expected one, for a title.
    fn found(&self) -> String {
        if self.token().after_break && self.kind() != Kind::End && self.at > 0 {
            return "the end of the line".to_owned();
        }
        self.describe(self.token())
    }

    fn describe(&self, token: Token) -> String {
        match token.kind {
            Kind::End => "the end of the file".to_owned(),
            Kind::String | Kind::OpenString => "a string".to_owned(),
            Kind::Name | Kind::Integer | Kind::Unsigned | Kind::Byte | Kind::Real => {
                format!("`{}`", self.spelling(token))
            }
            Kind::BadLiteral | Kind::Unknown => token.kind.text().to_owned(),
            kind => format!("`{}`", kind.text()),
        }
    }

    /// The place of something missing: the cursor, or the end of the last token if that ended its
    /// line, since no reader looks for it further down.
    fn gap(&self) -> Span {
        let token = self.token();
        match self.previous() {
            Some(previous) if token.after_break || token.kind == Kind::End => {
                self.span_of(previous).after()
            }
            _ => self.span_of(token),
        }
    }

    /// `expected X, found Y`, with a label at the gap.
    fn expected(&self, code: Code, what: &str) -> Diagnostic {
        let title = format!("expected {what}, found {}", self.found());
        let span = self.gap();
        let label = if span == self.here() {
            format!("{what} belongs here")
        } else {
            format!("{what} belongs after this")
        };
        Diagnostic::error(code, title, span, label)
    }

    fn fails(&mut self, diagnostic: Diagnostic) -> Failed {
        self.complain(diagnostic)
    }

    /// Whether the token before and the one at the cursor touch: `+` `=`.
    fn touches_previous(&self) -> bool {
        self.previous()
            .is_some_and(|previous| previous.end == self.token().start)
    }
}
