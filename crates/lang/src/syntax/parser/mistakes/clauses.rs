//! Diagnostics for mistakes in the words and marks inside clauses.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Name};
use crate::syntax::habits;
use crate::syntax::parser::{Failed, Parse, Parser};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// The keyword `kind`. Another word of its sort is taken for it; if it is only left out,
    /// reading continues without it.
    pub(in crate::syntax::parser) fn expect_word(
        &mut self,
        kind: Kind,
        example: &str,
    ) -> Parse<()> {
        if self.eat(kind) {
            return Ok(());
        }
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, &format!("`{}`", kind.text()))
            .with_help(format!("write `{example}`"));
        let failed = self.fails(diagnostic);
        if self.resembles(kind) {
            self.bump();
            return Ok(());
        }
        let next_word = kind == Kind::As && self.kind() == Kind::Onto;
        let stands_for_it = self.continues()
            && !next_word
            && matches!(
                self.kind(),
                Kind::To
                    | Kind::On
                    | Kind::From
                    | Kind::In
                    | Kind::Of
                    | Kind::As
                    | Kind::Is
                    | Kind::With
                    | Kind::Onto
                    | Kind::Comma
                    | Kind::Equals
                    | Kind::Do
                    | Kind::Then
            );
        if stands_for_it {
            self.bump();
            return Ok(());
        }
        let left_out = self.continues() && kind != Kind::On && self.kind().begins_expression();
        if left_out { Ok(()) } else { Err(failed) }
    }

    pub(in crate::syntax::parser) fn then_expected(&mut self, first: Token) -> Parse<()> {
        let mut diagnostic = self.expected(codes::MISSING_THEN, "`then`").with_label(
            self.span_of(first),
            "the condition of this `if` ends before that",
        );
        diagnostic = match self.kind() {
            Kind::Equals => diagnostic.with_help("comparison for equality is written `==`"),
            Kind::Assign => {
                diagnostic.with_help("a condition is an expression; equality is written `==`")
            }
            _ => diagnostic.with_help("write `if condition then { … } else { … }`"),
        };
        let failed = self.fails(diagnostic);
        self.go_on_with_clause(failed, Kind::Then)
    }

    /// Whether the name at the cursor probably misspells `kind`.
    fn resembles(&self, kind: Kind) -> bool {
        let token = self.token();
        let word = kind.text();
        token.kind == Kind::Name
            && habits::distance(self.spelling(token), word) <= word.len().min(4) / 2
    }

    /// After a missing word: past what is written instead of it, if a clause follows.
    fn go_on_with_clause(&mut self, failed: Failed, missing: Kind) -> Parse<()> {
        let instead = self.resembles(missing)
            || matches!(
                self.kind(),
                Kind::Colon | Kind::Do | Kind::Then | Kind::Comma
            );
        if instead && self.kind_ahead(1).begins_clause() {
            self.bump();
        }
        if self.kind().begins_clause() {
            Ok(())
        } else {
            Err(failed)
        }
    }

    /// `for (i = 0; i < 9; i++) { … }`: only the body is read.
    pub(in crate::syntax::parser) fn for_with_parens(&mut self, first: Token) -> Parse<Expr> {
        let diagnostic = Diagnostic::error(
            codes::WORD_EXPECTED,
            "expected the loop variable after `for`, found `(`",
            self.here(),
            "no parenthesis belongs here",
        )
        .with_label(self.span_of(first), "this loop counts through a range")
        .with_help("write `for i = 0 .. 9 do { … }`");
        let failed = self.fails(diagnostic);
        while self.kind() != Kind::OpenBrace {
            if self.token().after_break || matches!(self.kind(), Kind::CloseBrace | Kind::End) {
                return Err(failed);
            }
            self.bump();
        }
        self.block()?;
        Ok(self.error_expr(self.span_from(first)))
    }

    /// `for i in 0 .. 9`, `for i := 0 .. 9`
    pub(in crate::syntax::parser) fn for_equals_expected(&mut self) -> Parse<()> {
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, "`=`")
            .with_help("write `for i = 0 .. 9 do { … }`");
        let failed = self.fails(diagnostic);
        if matches!(self.kind(), Kind::In | Kind::Assign | Kind::From) {
            self.bump();
            Ok(())
        } else {
            Err(failed)
        }
    }

    /// `for i = 0 to 9`
    pub(in crate::syntax::parser) fn dots_expected(&mut self, first: Token) -> Parse<()> {
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, "`..`")
            .with_label(self.span_of(first), "this loop needs a range")
            .with_help("write `for i = 0 .. 9 do { … }`; both ends are included");
        let failed = self.fails(diagnostic);
        if matches!(self.kind(), Kind::To | Kind::Comma | Kind::Colon) {
            self.bump();
            Ok(())
        } else {
            Err(failed)
        }
    }

    pub(in crate::syntax::parser) fn do_expected(&mut self, first: Token) -> Parse<()> {
        let diagnostic = self
            .expected(codes::MISSING_DO, "`do`")
            .with_label(
                self.span_of(first),
                "the head of this `for` ends before that",
            )
            .with_help("write `for i = 0 .. 9 do { … }`");
        let failed = self.fails(diagnostic);
        self.go_on_with_clause(failed, Kind::Do)
    }

    pub(in crate::syntax::parser) fn step_expected(&mut self) {
        let diagnostic = self
            .expected(codes::BAD_STEP, "a step")
            .with_help("write a number, `: 2` or `: -1`, or leave the colon out");
        self.complain(diagnostic);
    }

    pub(in crate::syntax::parser) fn step_of_zero(&mut self, first: Token, last: Token) {
        let diagnostic = Diagnostic::error(
            codes::BAD_STEP,
            "the step of a `for` is zero",
            self.span_of(first).to(self.span_of(last)),
            "this loop would never end",
        );
        self.report(diagnostic.with_help("count up by `: 1` or down by `: -1`"));
    }

    pub(in crate::syntax::parser) fn step_no_literal(&mut self, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::BAD_STEP,
            "the step of a `for` must be a literal",
            span,
            "an integer with or without a sign belongs here",
        )
        .with_note("The direction of a loop is known before it runs.");
        self.report(diagnostic.with_help("count by one and compute the value in the loop"));
    }

    pub(in crate::syntax::parser) fn of_expected(&mut self, first: Token) -> Parse<()> {
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, "`of`")
            .with_label(
                self.span_of(first),
                "this `case` needs `of` before its arms",
            )
            .with_help("write `case e of 1: … default: …`");
        let failed = self.fails(diagnostic);
        if matches!(self.kind(), Kind::Colon | Kind::In | Kind::Is | Kind::Do) {
            self.bump();
        }
        if self.kind().begins_clause() && self.kind() != Kind::OpenBrace {
            Ok(())
        } else {
            Err(failed)
        }
    }

    pub(in crate::syntax::parser) fn return_with_value(&mut self, first: Token) {
        let diagnostic = Diagnostic::error(
            codes::RETURN_WITH_VALUE,
            "a value is returned by a procedure without result",
            self.here(),
            "this procedure returns nothing",
        )
        .with_label(self.span_of(first), "`return` takes no value here")
        .with_help("name the result type, `proc f() : integer { … }`, or leave the value out");
        self.report(diagnostic);
    }

    pub(in crate::syntax::parser) fn try_without_handler(&mut self, first: Token) {
        let diagnostic = self
            .expected(codes::TRY_WITHOUT_HANDLER, "`except`")
            .with_label(self.span_of(first), "this `try` has no handler")
            .with_help("add `except { … }` for every exception, or `except SomeException { … }`");
        self.complain(diagnostic);
    }

    /// A statement where only a clause may stand: read as if it had its braces.
    pub(in crate::syntax::parser) fn needs_braces(
        &mut self,
        what: &str,
        read: fn(&mut Self) -> Parse<Expr>,
    ) -> Parse<Expr> {
        if self.names_reserved_word() {
            return Err(self.reserved_word_declared());
        }
        let first = self.token();
        let diagnostics = self.diagnostics.len();
        let statement = read(self)?;
        if self.diagnostics.len() == diagnostics {
            let diagnostic = Diagnostic::error(
                codes::NEEDS_BRACES,
                format!("{what} is a statement and needs braces here"),
                self.span_of(first),
                "a part of another statement begins here",
            );
            let word = first.kind.text();
            self.report(diagnostic.with_help(format!("write `{{ {word} … }}`")));
        }
        Ok(statement)
    }

    /// `new C`
    pub(in crate::syntax::parser) fn new_without_arguments(&mut self, first: Token, name: Name) {
        let spelling = &self.text[name.span.start as usize..name.span.end as usize];
        let diagnostic = Diagnostic::error(
            codes::BAD_CREATION,
            format!("`new {spelling}` without arguments"),
            self.span_from(first),
            "parentheses belong after this, even empty ones",
        );
        self.complain(diagnostic.with_help(format!("write `new {spelling}()`")));
    }

    /// `new integer`
    pub(in crate::syntax::parser) fn array_expected(
        &mut self,
        first: Token,
        element: Span,
    ) -> Failed {
        let word = &self.text[element.start as usize..element.end as usize];
        let diagnostic = Diagnostic::error(
            codes::BAD_CREATION,
            "nothing of this type can be created",
            self.span_of(first).to(element),
            "`new` creates channels, components, structs and arrays",
        );
        let help = match self.kind() {
            _ if word.contains('(') => {
                "name the type first, `type T is …`, and write `new T(…)`".to_owned()
            }
            _ => format!("for an array write `new {word}[10] of` and the value of its elements"),
        };
        self.fails(diagnostic.with_help(help))
    }

    /// `new integer[3]`
    pub(in crate::syntax::parser) fn array_without_value(&mut self, first: Token) -> Failed {
        let created = self.span_from(first);
        let text = &self.text[created.start as usize..created.end as usize];
        let diagnostic = self
            .expected(codes::BAD_CREATION, "`of`")
            .with_label(created, "the elements of this array need a value")
            .with_help(format!(
                "write `{text} of 0`, with the value of every element"
            ));
        self.fails(diagnostic)
    }

    pub(in crate::syntax::parser) fn length_no_literal(&mut self, span: Span) {
        let several = self.text[span.start as usize..span.end as usize].contains(',');
        let empty = self.text[span.start as usize..].starts_with('[');
        let (title, help) = if several {
            (
                "each dimension has brackets of its own",
                "write `new integer[2][3] of 0`",
            )
        } else if empty {
            ("an array needs its length", "write `new integer[10] of 0`")
        } else {
            (
                "the length of an array must be a literal",
                "write a number: sizes are known before a program runs",
            )
        };
        let diagnostic = Diagnostic::error(
            codes::LENGTH_NO_LITERAL,
            title,
            span,
            "an integer literal belongs here",
        );
        self.report(diagnostic.with_help(help));
    }

    pub(in crate::syntax::parser) fn select_brace_expected(&mut self, first: Token) -> Failed {
        let diagnostic = self
            .expected(codes::WORD_EXPECTED, "`{`")
            .with_label(
                self.span_of(first),
                "the arms of a `select` must be in braces",
            )
            .with_help("write `select { receive x from c: … }`");
        self.fails(diagnostic)
    }

    /// The remains of a faulty statement: the name it declares.
    pub(in crate::syntax::parser) fn declares(&self, name: Name, value: Option<Expr>) -> Expr {
        let value = value.unwrap_or_else(|| self.error_expr(name.span));
        Expr {
            span: name.span.to(value.span),
            kind: ExprKind::Declare(name, Box::new(value)),
        }
    }
}
