//! Diagnostics for mistakes in the arms of `case`, `project` and `select`.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::syntax::habits;
use crate::syntax::parser::{Failed, Parse, Parser};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// The colon after the label of an arm.
    pub(in crate::syntax::parser) fn arm_colon(&mut self, after: &str) -> Parse<()> {
        if self.eat(Kind::Colon) {
            return Ok(());
        }
        self.colon_expected(after)
    }

    pub(in crate::syntax::parser) fn colon_expected(&mut self, after: &str) -> Parse<()> {
        let diagnostic = self.expected(codes::WORD_EXPECTED, &format!("`:` after {after}"));
        let failed = self.fails(diagnostic);
        if matches!(
            self.kind(),
            Kind::Then | Kind::Do | Kind::Equals | Kind::Comma
        ) {
            self.bump();
        }
        if self.kind().begins_clause() {
            Ok(())
        } else {
            Err(failed)
        }
    }

    /// Neither an arm nor `default`.
    pub(in crate::syntax::parser) fn arm_expected(&mut self, first: Token) -> Parse<()> {
        if self.default_follows() {
            let what = match first.kind {
                Kind::Case => "a label or `default`",
                _ => "a type or `default`",
            };
            let diagnostic = self.expected(codes::WORD_EXPECTED, what);
            return Err(self.fails(diagnostic));
        }
        self.default_missing(first);
        Ok(())
    }

    pub(in crate::syntax::parser) fn default_missing(&mut self, first: Token) {
        let word = first.kind.text();
        let diagnostic = Diagnostic::error(
            codes::MISSING_DEFAULT,
            format!("this `{word}` has no `default`"),
            self.gap(),
            "`default` is missing here",
        )
        .with_label(self.span_of(first), format!("this `{word}`"))
        .with_help("end it with `default: { }` if there is nothing else to do");
        self.complain(diagnostic);
    }

    pub(in crate::syntax::parser) fn project_without_arms(&mut self, first: Token) {
        let diagnostic = Diagnostic::error(
            codes::NO_ARMS,
            "this `project` has no arms",
            self.here(),
            "an arm such as `integer: …` belongs before this",
        )
        .with_label(self.span_of(first), "this `project`")
        .with_help("name at least one type that the value may have");
        self.complain(diagnostic);
    }

    pub(in crate::syntax::parser) fn several_statements_in_arm(&mut self, of: Kind) {
        let diagnostic = Diagnostic::error(
            codes::SEVERAL_STATEMENTS_IN_ARM,
            format!("an arm of `{}` has one statement", of.text()),
            self.here(),
            "the next arm or `default` belongs here",
        );
        let arm = match of {
            Kind::Select => "receive x from c",
            Kind::Project => "integer",
            _ => "1",
        };
        self.complain(diagnostic.with_help(format!(
            "put several statements between braces: `{arm}: {{ … }}`"
        )));
    }

    /// Reports a token between the arms of a `select` that begins none.
    pub(in crate::syntax::parser) fn no_select_arm(
        &mut self,
        open: Token,
        after_arm: bool,
    ) -> Failed {
        let token = self.token();
        if token.kind == Kind::Name {
            let meant = habits::similar_keyword(self.spelling(token));
            if let Some(meant @ ("receive" | "acknowledge" | "default")) = meant {
                self.misspelt(token, meant);
                return Failed;
            }
        }
        if after_arm && self.kind().begins_clause() {
            self.several_statements_in_arm(Kind::Select);
            return Failed;
        }
        let diagnostic = self
            .expected(
                codes::WORD_EXPECTED,
                "`receive`, `acknowledge`, `default` or `}`",
            )
            .with_label(self.span_of(open), "the arms of `select` begin here")
            .with_help("write `receive x from c: …`");
        self.fails(diagnostic)
    }

    pub(in crate::syntax::parser) fn arm_after_default(&mut self, arm: Token) {
        let diagnostic = Diagnostic::error(
            codes::PARTS_OUT_OF_ORDER,
            "an arm follows `default`",
            self.span_of(arm),
            "too late",
        );
        self.report(diagnostic.with_help("put `default` last"));
    }
}
