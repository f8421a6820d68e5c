//! Diagnostics for brackets that do not match.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::syntax::parser::expressions::closing_of;
use crate::syntax::parser::{Failed, Parser};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// A `(` or `[` whose partner is missing at the cursor.
    pub(in crate::syntax::parser) fn unclosed_paren(&mut self, open: Token) -> Failed {
        let (opening, closing) = (open.kind.text(), closing_of(open.kind).text());
        let mut diagnostic = Diagnostic::error(
            codes::UNCLOSED,
            format!("expected `{closing}`, found {}", self.found()),
            self.gap(),
            format!("`{closing}` is missing here"),
        )
        .with_label(
            self.span_of(open),
            format!("this `{opening}` is not closed"),
        );
        if matches!(self.kind(), Kind::Equals) {
            diagnostic = diagnostic.with_help("comparison for equality is written `==`");
        } else if self.gap() == self.here()
            && self.kind().begins_expression()
            && self.kind() != Kind::OpenBrace
        {
            diagnostic = diagnostic.with_help("if this is a further item, put a comma before it");
        }
        self.fails(diagnostic)
    }

    /// A `{` whose partner is missing at the cursor. Said once for all that are open there.
    pub(in crate::syntax::parser) fn unclosed_brace(&mut self, open: Token) {
        if self.braces_missed_at == Some(self.at) {
            return;
        }
        self.braces_missed_at = Some(self.at);
        let (title, label) = match self.kind() {
            Kind::End => (
                "a `}` is missing at the end of the file".to_owned(),
                "the file ends inside a block".to_owned(),
            ),
            kind => (
                format!("a `}}` is missing before `{}`", kind.text()),
                "a block should have ended before this".to_owned(),
            ),
        };
        let span = if self.kind() == Kind::End {
            self.gap()
        } else {
            self.here()
        };
        let mut diagnostic = Diagnostic::error(codes::UNCLOSED, title, span, label)
            .with_label(self.span_of(open), "this `{` is not closed");
        if let Some((opening, closing)) = self.suspicious_pair(open) {
            diagnostic = diagnostic
                .with_label(self.span_of(opening), "or this one is not:")
                .with_label(self.span_of(closing), "this `}` is indented less");
        }
        self.complain(diagnostic);
    }

    /// The first pair of braces from `open` on whose closing one is indented less than the
    /// line of its opening one: the opening one's true partner is probably missing.
    fn suspicious_pair(&self, open: Token) -> Option<(Token, Token)> {
        let from = self
            .tokens
            .partition_point(|token| token.start < open.start);
        let mut opened = Vec::new();
        for &token in &self.tokens[from..self.at] {
            match token.kind {
                Kind::OpenBrace => opened.push(token),
                Kind::CloseBrace => {
                    let opening = opened.pop()?;
                    let less =
                        token.after_break && self.indentation(token) < self.indentation(opening);
                    if less && opening != open {
                        return Some((opening, token));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// A `}` at the level of the file: at its end a warning, else what follows is wrong. After
    /// other mistakes it is most likely a consequence of them.
    pub(in crate::syntax::parser) fn surplus_brace(&mut self) {
        let brace = self.here();
        while matches!(self.kind(), Kind::CloseBrace | Kind::Semicolon) {
            self.bump();
        }
        if self.diagnostics.iter().any(Diagnostic::is_error) {
            return;
        }
        let diagnostic = if self.kind() == Kind::End {
            Diagnostic::warning(
                codes::SURPLUS_BRACE,
                "surplus `}` at the end of the file",
                brace,
                "this `}` closes nothing",
            )
            .with_help("remove it")
        } else {
            Diagnostic::error(
                codes::TEXT_AFTER_END,
                "text after a surplus `}`",
                self.here(),
                "the program should have ended before this",
            )
            .with_label(brace, "this `}` closes nothing")
            .with_help("remove the `}`, or add the `{` that it should close")
        };
        self.complain(diagnostic);
    }

    /// A `)` or `]` without its partner.
    pub(in crate::syntax::parser) fn stray_closer(&mut self) -> Failed {
        let kind = self.kind();
        let opening = if kind == Kind::CloseParen { "(" } else { "[" };
        let diagnostic = Diagnostic::error(
            codes::STRAY_CLOSER,
            format!("`{}` without `{opening}`", kind.text()),
            self.here(),
            "this closes nothing",
        );
        self.fails(diagnostic)
    }
}
