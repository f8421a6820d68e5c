//! Diagnostics for mistakes in names and reserved words.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::parser::{Failed, Parser};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    pub(in crate::syntax::parser) fn name_expected(&mut self, what: &str) -> Failed {
        let token = self.token();
        let on_line = self.gap() == self.here();
        if token.kind.is_keyword() && on_line {
            return self.reserved(token, what);
        }
        let diagnostic = self.expected(codes::NAME_EXPECTED, &format!("the name of {what}"));
        self.fails(diagnostic)
    }

    /// `when = 3`
    pub(in crate::syntax::parser) fn reserved_word_declared(&mut self) -> Failed {
        self.reserved(self.token(), "a variable")
    }

    fn reserved(&mut self, token: Token, what: &str) -> Failed {
        if self.reported_words.contains(&token.kind) {
            return Failed;
        }
        self.reported_words.push(token.kind);
        let word = token.kind.text();
        let diagnostic = Diagnostic::error(
            codes::RESERVED_WORD,
            format!("`{word}` is a reserved word and cannot name {what}"),
            self.span_of(token),
            "a reserved word",
        )
        .with_help(format!(
            "choose another name, such as `{word}1` or `the{}`",
            capitalised(word)
        ));
        self.fails(diagnostic)
    }

    /// Something that is no channel where one is wanted: it was read as an expression.
    pub(in crate::syntax::parser) fn no_place(&mut self, token: Token, span: Span, what: &str) {
        let found = if matches!(token.kind, Kind::OpenParen | Kind::OpenBrace) {
            "an expression".to_owned()
        } else {
            self.describe(token)
        };
        let mut diagnostic = Diagnostic::error(
            codes::NOT_A_PLACE,
            format!("expected {what}, found {found}"),
            span,
            format!("{what} is given by its name, as a field or as an element"),
        );
        if token.kind == Kind::OpenParen {
            diagnostic = diagnostic.with_help("leave the parentheses out");
        } else if token.kind == Kind::New {
            diagnostic = diagnostic.with_help("give it a name first: `c = new …`");
        }
        self.report(diagnostic);
    }

    /// `1 := 2`
    pub(in crate::syntax::parser) fn no_target(&mut self, sign: Token, target: Span) {
        let diagnostic = Diagnostic::error(
            codes::NOT_A_PLACE,
            "nothing can be assigned to this expression",
            target,
            "not a variable, field or element",
        )
        .with_label(self.span_of(sign), "the assignment");
        self.report(diagnostic);
    }

    pub(in crate::syntax::parser) fn type_expected(&mut self) -> Failed {
        let mut diagnostic = self.expected(codes::TYPE_EXPECTED, "a type");
        if self.kind().is_keyword() || self.kind() == Kind::OpenBracket {
            diagnostic = diagnostic.with_help(
                "types are `integer`, `unsigned`, `real`, `bool`, `byte`, `string`, `any`, \
                 names of types, `in` or `out` with a type, and arrays such as `integer[]`",
            );
        }
        self.fails(diagnostic)
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
