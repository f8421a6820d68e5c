//! Diagnostics for mistakes in parameters, fields, channels and the types around them.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::syntax::parser::{Failed, Parser};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// `integer a, integer b`. Said once a list.
    pub(in crate::syntax::parser) fn comma_between_groups(&mut self, open: Token) {
        let said = self
            .diagnostics
            .iter()
            .rev()
            .take_while(|diagnostic| diagnostic.primary.span.start > open.start)
            .any(|diagnostic| diagnostic.code == codes::COMMA_BETWEEN_GROUPS);
        if said {
            return;
        }
        let diagnostic = Diagnostic::error(
            codes::COMMA_BETWEEN_GROUPS,
            "a comma joins names of one type only",
            self.here(),
            "`;` belongs here, since a type follows",
        )
        .with_help("write `integer a, b` for one type, `integer a; real b` for several");
        self.report(diagnostic);
    }

    /// `proc(integer, real)`
    pub(in crate::syntax::parser) fn comma_between_types(&mut self) {
        let diagnostic = Diagnostic::error(
            codes::COMMA_BETWEEN_GROUPS,
            "the types of a procedure are separated by `;`",
            self.here(),
            "`;` belongs here",
        );
        self.report(diagnostic.with_help("write `proc(integer; real)`"));
    }

    /// `proc(integer a)` as a type.
    pub(in crate::syntax::parser) fn named_parameter_of_type(&mut self) -> Failed {
        let diagnostic = Diagnostic::error(
            codes::BAD_GROUP,
            "the type of a procedure names no parameters",
            self.here(),
            "a name has no place here",
        );
        self.fails(diagnostic.with_help("write the types alone: `proc(integer; real) : bool`"))
    }

    /// A group that is one word only, or begins with its names: `(a, b)`, `(a : integer)`.
    pub(in crate::syntax::parser) fn group_without_name(
        &mut self,
        first: Token,
        what: &str,
    ) -> Failed {
        let span = self.span_from(first);
        let word = &self.text[span.start as usize..span.end as usize];
        let (label, help) = if self.kind() == Kind::Colon {
            (
                "a name before its type".to_owned(),
                format!("the type comes first: `integer {word}`"),
            )
        } else if first.kind == Kind::Name {
            (
                format!("`{word}` is read as a type, and {what} should follow"),
                format!("write `integer {word}` if this is the name"),
            )
        } else {
            (
                format!("{what} should follow this type"),
                format!("write `{word} x`"),
            )
        };
        let diagnostic = Diagnostic::error(
            codes::BAD_GROUP,
            "a type and a name are needed here",
            span,
            label,
        );
        self.fails(diagnostic.with_help(help))
    }

    /// Neither a separator nor the closing parenthesis after a group.
    pub(in crate::syntax::parser) fn unclosed_groups(&mut self, open: Token) -> Failed {
        let kind = self.kind();
        let on_line = self.gap() == self.here();
        if kind.begins_type() && on_line {
            let mut diagnostic = Diagnostic::error(
                codes::MISSING_SEPARATOR,
                format!("expected `;` or `)`, found {}", self.found()),
                self.here(),
                "`;` belongs before this",
            );
            if self
                .previous()
                .is_some_and(|token| token.kind == Kind::Name)
            {
                diagnostic = diagnostic.with_help(
                    "groups are separated by `;`, names of one type by commas: \
                     `integer a, b; real c`",
                );
            }
            return self.fails(diagnostic);
        }
        if matches!(kind, Kind::Equals | Kind::Assign) {
            let diagnostic = Diagnostic::error(
                codes::BAD_GROUP,
                "parameters and fields have no value of their own",
                self.here(),
                "no value may be given here",
            );
            return self.fails(diagnostic);
        }
        self.unclosed_paren(open)
    }

    /// Whether the name at the cursor, though on a new line, begins no further group.
    pub(in crate::syntax::parser) fn list_broke_off(&self) -> bool {
        self.kind() == Kind::Name
            && !matches!(
                self.kind_ahead(1),
                Kind::Name | Kind::OpenBracket | Kind::Comma | Kind::CloseParen
            )
    }

    pub(in crate::syntax::parser) fn direction_expected(&mut self, open: Token) -> Failed {
        if !self.kind().begins_type() {
            return self.unclosed_paren(open);
        }
        let diagnostic = Diagnostic::error(
            codes::BAD_GROUP,
            format!("expected `in` or `out`, found {}", self.found()),
            self.here(),
            "a channel begins with its direction",
        );
        self.fails(diagnostic.with_help("write `in integer x` or `out integer x`"))
    }

    pub(in crate::syntax::parser) fn paren_expected(
        &mut self,
        after: &str,
        example: &str,
    ) -> Failed {
        let mut diagnostic = self.expected(codes::WORD_EXPECTED, &format!("`(` after `{after}`"));
        if matches!(self.kind(), Kind::OpenBrace) {
            diagnostic = diagnostic.with_note("Types are written with parentheses, not braces.");
        }
        self.fails(diagnostic.with_help(format!("write `{example}`")))
    }

    /// `integer[10] a`
    pub(in crate::syntax::parser) fn length_in_type(&mut self, open: Token) -> Failed {
        let diagnostic = Diagnostic::error(
            codes::TYPE_EXPECTED,
            "the type of an array has no length",
            self.span_of(open).to(self.here()),
            "`[]` belongs here",
        );
        self.fails(diagnostic.with_help(
            "write `integer[]`; the length is given at creation: `new integer[10] of 0`",
        ))
    }
}
