//! Diagnostics for two statements without a separator, and for text that cannot begin a statement.

use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Expr, Name};
use crate::syntax::habits;
use crate::syntax::parser::expressions::is_binary_operator;
use crate::syntax::parser::{Failed, Parse, Parser};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// A statement, the last of `statements`, that began at token `first` is followed by
    /// something on its line. Often what stands there tells what was meant.
    pub(in crate::syntax::parser) fn missing_separator(
        &mut self,
        first: usize,
        statements: &mut Vec<Expr>,
    ) {
        let start = self.tokens[first];
        let word = self.spelling(start);
        let alone = self.at == first + 1 && start.kind == Kind::Name;
        let called = start.kind == Kind::Name
            && self.at > first + 1
            && self.tokens[first + 1].kind == Kind::OpenParen;
        if alone && self.declares_with_type(word) {
            statements.pop();
            return self.typed_local_at(first, statements);
        }
        if alone || (called && self.kind().begins_clause()) {
            if let Some(help) = habits::help(word) {
                statements.pop();
                return self.foreign_word(start, help, statements);
            }
            if let Some(meant) = habits::similar_keyword(word) {
                self.misspelt(start, meant);
                statements.pop();
                return self.after_unknown_word(start, meant, statements);
            }
        }
        match self.kind() {
            Kind::CloseParen | Kind::CloseBracket => {
                self.stray_closer();
                self.recover(0);
            }
            kind if kind.begins_clause() || kind.is_keyword() => self.two_on_a_line(alone),
            _ => {
                let diagnostic = self.expected(codes::MISSING_SEPARATOR, "a line break or `;`");
                self.complain(diagnostic);
                self.recover(0);
            }
        }
    }

    fn two_on_a_line(&mut self, after_name: bool) {
        let mut diagnostic = Diagnostic::error(
            codes::MISSING_SEPARATOR,
            format!("expected a line break or `;`, found {}", self.found()),
            self.here(),
            "`;` belongs before this",
        );
        let literal = matches!(
            self.kind(),
            Kind::Integer | Kind::Unsigned | Kind::Byte | Kind::Real | Kind::String
        );
        if after_name && literal {
            diagnostic = diagnostic.with_help("put arguments in parentheses: `f(1)`");
        }
        self.complain(diagnostic);
        if !self.begins_whole_statement() {
            self.recover(0);
        }
    }

    /// Whether reading on here makes sense: prose should not be taken for statements.
    fn begins_whole_statement(&self) -> bool {
        let kind = self.kind();
        let named = kind == Kind::Name
            && matches!(
                self.kind_ahead(1),
                Kind::Equals | Kind::Assign | Kind::OpenParen | Kind::Dot | Kind::OpenBracket
            );
        let typed = kind.is_type_keyword() && kind != Kind::Any;
        named || typed || kind == Kind::OpenBrace || kind.begins_statement_surely()
    }

    /// After a name that is a whole statement: whether it is a type and a declaration follows.
    fn declares_with_type(&self, word: &str) -> bool {
        if self.kind() != Kind::Name {
            return false;
        }
        let token = self.tokens[(self.at + 1).min(self.tokens.len() - 1)];
        let ends = token.after_break
            || matches!(token.kind, Kind::Semicolon | Kind::CloseBrace | Kind::End);
        match token.kind {
            Kind::Equals | Kind::Assign => true,
            Kind::Comma => habits::similar_keyword(word).is_none(),
            _ => ends && habits::similar_keyword(word).is_none(),
        }
    }

    fn typed_local_at(&mut self, first: usize, statements: &mut Vec<Expr>) {
        self.at = first;
        match self.typed_variable() {
            Ok(declared) => {
                for (name, value) in declared {
                    statements.push(self.declares(name, value));
                }
                if !self.at_separator() {
                    self.recover(0);
                }
            }
            Err(_) => {
                statements.push(self.error_expr(self.span_of(self.tokens[first])));
                self.recover(0);
            }
        }
    }

    /// `integer x = 3`, `integer a, b`, `Point p`: reported, and what it declares.
    pub(in crate::syntax::parser) fn typed_variable(&mut self) -> Parse<Vec<(Name, Option<Expr>)>> {
        let first = self.token();
        self.ty()?;
        let ty = self.span_from(first);
        if self.kind() != Kind::Name || !self.continues() {
            return Err(self.type_begins_statement(ty));
        }
        let name = self.token();
        match self.kind_ahead(1) {
            Kind::OpenParen => return Err(self.typed_procedure(first, name)),
            Kind::OpenBracket => return Err(self.typed_array(ty, name)),
            _ => {}
        }
        let said = self.diagnostics.len();
        let mut declared = Vec::new();
        loop {
            let name = self.name("a variable")?;
            let valued = self.eat(Kind::Equals) || self.eat(Kind::Assign);
            let value = if valued { Some(self.clause()?) } else { None };
            declared.push((name, value));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        let diagnostic = self.typed_local(ty, &declared);
        self.diagnostics.insert(said, diagnostic);
        Ok(declared)
    }

    fn typed_local(&self, ty: Span, declared: &[(Name, Option<Expr>)]) -> Diagnostic {
        let text = |span: Span| &self.text[span.start as usize..span.end as usize];
        let word = text(ty);
        let diagnostic = Diagnostic::error(
            codes::TYPED_LOCAL,
            "a variable is declared by its value, without a type",
            ty,
            "no type belongs here",
        );
        match declared {
            [(name, Some(value))] => diagnostic.with_help(format!(
                "leave `{word}` out: `{} = {}`",
                text(name.span),
                first_line(text(value.span)),
            )),
            [(name, None)] if word.starts_with(|c: char| c.is_lowercase()) && !typical(word) => {
                diagnostic.with_help(format!(
                    "to call `{word}`, write `{word}({0})`; to declare `{0}`, give it a value: \
                     `{0} = …`",
                    text(name.span),
                ))
            }
            [(name, _), ..] => diagnostic.with_help(format!(
                "give it a value, which also gives it its type: `{} = {}`",
                text(name.span),
                default_of(word),
            )),
            [] => diagnostic,
        }
    }

    fn type_begins_statement(&mut self, ty: Span) -> Failed {
        let word = first_line(&self.text[ty.start as usize..ty.end as usize]);
        let diagnostic = Diagnostic::error(
            codes::STATEMENT_EXPECTED,
            format!("the type `{word}` cannot begin a statement"),
            ty,
            "a statement belongs here",
        );
        self.fails(diagnostic.with_help("variables are declared by their values: `x = 0`"))
    }

    /// `integer f(…) {`
    fn typed_procedure(&mut self, first: Token, name: Token) -> Failed {
        let (ty, name) = (self.spelling(first), self.spelling(name));
        let diagnostic = Diagnostic::error(
            codes::FOREIGN_WORD,
            "a procedure begins with `proc`",
            self.span_of(first),
            "`proc` is missing before the name",
        );
        self.fails(diagnostic.with_help(format!("write `proc {name}(…) : {ty} {{ … }}`")))
    }

    /// `integer a[10]`
    fn typed_array(&mut self, ty: Span, name: Token) -> Failed {
        let word = &self.text[ty.start as usize..ty.end as usize];
        let name = self.spelling(name);
        let diagnostic = Diagnostic::error(
            codes::TYPED_LOCAL,
            "a variable is declared by its value, without a type",
            ty,
            "no type belongs here",
        );
        self.fails(diagnostic.with_help(format!(
            "create the array: `{name} = new {word}[10] of {}`",
            default_of(word)
        )))
    }

    fn foreign_word(&mut self, word: Token, help: &str, statements: &mut Vec<Expr>) {
        let spelling = self.spelling(word);
        let diagnostic = Diagnostic::error(
            codes::FOREIGN_WORD,
            format!("there is no `{spelling}` in Insense"),
            self.span_of(word),
            "an ordinary name without meaning here",
        );
        self.complain(diagnostic.with_help(help));
        self.after_unknown_word(word, "", statements);
    }

    /// Continues with the block that belongs to an unknown word, or after its line.
    fn after_unknown_word(&mut self, word: Token, meant: &str, statements: &mut Vec<Expr>) {
        let receives = matches!(meant, "receive" | "acknowledge") && self.kind() == Kind::Name;
        statements.push(if receives {
            let name = self.name_of(self.token());
            self.declares(name, None)
        } else {
            self.error_expr(self.span_of(word))
        });
        while !self.at_separator() && self.kind() != Kind::OpenBrace {
            self.bump();
        }
    }

    /// Reports a token that cannot begin a statement.
    pub(in crate::syntax::parser) fn no_statement(&mut self) -> Parse<Expr> {
        let token = self.token();
        if self.names_reserved_word() {
            return Err(self.reserved_word_declared());
        }
        match token.kind {
            Kind::CloseParen | Kind::CloseBracket => Err(self.stray_closer()),
            kind if kind.is_type_keyword() => {
                let mut declared = self.typed_variable()?.into_iter();
                let first = declared.next();
                for (name, value) in declared {
                    let further = self.declares(name, value);
                    self.extra.push(further);
                }
                Ok(match first {
                    Some((name, value)) => self.declares(name, value),
                    None => self.error_expr(self.span_of(token)),
                })
            }
            kind if is_binary_operator(kind) || matches!(kind, Kind::Dot | Kind::OpenBracket) => {
                Err(self.operator_begins_line())
            }
            kind if kind.is_keyword() => Err(self.stray_word(token)),
            _ => Err(self.begins_nothing("a statement")),
        }
    }

    pub(in crate::syntax::parser) fn begins_nothing(&mut self, what: &str) -> Failed {
        let diagnostic = Diagnostic::error(
            codes::STATEMENT_EXPECTED,
            format!("expected {what}, found {}", self.describe(self.token())),
            self.here(),
            format!("{what} cannot begin with this"),
        );
        self.fails(diagnostic)
    }

    /// `else` without `if` and the like.
    fn stray_word(&mut self, token: Token) -> Failed {
        let word = token.kind.text();
        let after_semicolon = self
            .previous()
            .filter(|previous| previous.kind == Kind::Semicolon);
        let (belongs, breaks) = match token.kind {
            Kind::Else | Kind::Then => ("if", token.kind == Kind::Else),
            Kind::Do => ("for", false),
            Kind::Except => ("try", true),
            Kind::Of | Kind::Default => ("case", true),
            Kind::Onto => ("project", false),
            Kind::From => ("receive", false),
            Kind::After => ("acknowledge", false),
            Kind::When => ("select", false),
            Kind::To => ("connect", false),
            Kind::On => ("send", false),
            Kind::Presents => ("component", false),
            _ => {
                return self.begins_nothing("a statement");
            }
        };
        let mut diagnostic = Diagnostic::error(
            codes::STRAY_WORD,
            format!("`{word}` without its `{belongs}`"),
            self.span_of(token),
            format!("no `{belongs}` is open here"),
        );
        if let Some(semicolon) = after_semicolon.filter(|_| breaks) {
            diagnostic = diagnostic
                .with_label(
                    self.span_of(semicolon),
                    format!("this `;` ends the `{belongs}`"),
                )
                .with_help(format!("leave the `;` before `{word}` out"));
        }
        self.fails(diagnostic)
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

/// Whether a word names a type, here or elsewhere, rather than a procedure.
fn typical(word: &str) -> bool {
    Kind::keyword(word).is_some()
        || word.ends_with(']')
        || word.contains(' ')
        || habits::help(word).is_some()
}

fn default_of(ty: &str) -> &'static str {
    match ty {
        "integer" => "0",
        "unsigned" => "$0",
        "byte" => "#0",
        "real" => "0.0",
        "bool" => "false",
        "string" => "\"\"",
        _ => "…",
    }
}
