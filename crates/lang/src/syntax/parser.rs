//! Tokens to tree, by recursive descent.
//!
//! A function that cannot continue reports the reason and returns [`Failed`]; the parser of a list
//! (statements, members, arms) catches it, skips to the next possible item, and continues.
//! So every mistake is reported, and each once.

use super::token::{Kind, Token};
use super::{DEPTH_LIMIT, Dialect};
use crate::codes::syntax as codes;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::symbol::Symbol;
use crate::syntax::ast::{Expr, ExprKind, Name};

mod components;
mod control;
mod creation;
mod declarations;
mod expressions;
mod messages;
mod mistakes;
mod recovery;
mod statements;
mod types;

/// Something could not be read; the reason is reported already.
#[derive(Debug)]
struct Failed;

type Parse<T> = Result<T, Failed>;

/// The value that `return` may carry here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returns {
    /// In a procedure with a result: an expression, even on the next line.
    Value,
    /// In a procedure without: nothing.
    Nothing,
    /// Outside procedures, where `return` has no place; a later stage says so.
    Misplaced,
}

pub(super) struct Parser<'a> {
    text: &'a str,
    source: SourceId,
    tokens: &'a [Token],
    at: usize,
    dialect: Dialect,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Number of `(` and `[` opened since the last `{`: inside, line breaks mean nothing.
    parens: u32,
    /// Number of clauses, operators and types that enclose this place.
    depth: u32,
    /// The deepest nesting met since it was last reset.
    deepest: u32,
    returns: Returns,
    /// Operators that wait for their right operand; each expression uses the top of it.
    pending: Vec<expressions::Pending>,
    /// Empty buffers for the statements of blocks.
    buffers: Vec<Vec<Expr>>,
    /// Further statements that one faulty statement stands for.
    extra: Vec<Expr>,
    /// Reserved words reported as names: their further uses are no further mistakes.
    reported_words: Vec<Kind>,
    /// A comment without end: nothing is missed at the end of the file.
    open_comment: bool,
    /// The token at which missing braces were reported: they are reported together.
    braces_missed_at: Option<usize>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(
        text: &'a str,
        source: SourceId,
        tokens: &'a [Token],
        dialect: Dialect,
        open_comment: bool,
    ) -> Self {
        Parser {
            text,
            source,
            tokens,
            at: 0,
            dialect,
            diagnostics: Vec::new(),
            parens: 0,
            depth: 0,
            deepest: 0,
            returns: Returns::Misplaced,
            pending: Vec::new(),
            buffers: Vec::new(),
            extra: Vec::new(),
            reported_words: Vec::new(),
            open_comment,
            braces_missed_at: None,
        }
    }

    // The cursor. It never passes the last token, which is the end of the file.

    #[inline]
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    /// The kind of a token ahead; the end of the file beyond it.
    #[inline]
    fn kind_ahead(&self, ahead: usize) -> Kind {
        self.tokens
            .get(self.at + ahead)
            .map_or(Kind::End, |token| token.kind)
    }

    #[inline]
    fn bump(&mut self) -> Token {
        let token = self.tokens[self.at];
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    #[inline]
    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.at += 1;
        }
        found
    }

    fn skip_semicolons(&mut self) {
        while self.eat(Kind::Semicolon) {}
    }

    #[inline]
    fn span_of(&self, token: Token) -> Span {
        Span::new(self.source, token.start, token.end)
    }

    /// The span of the token at the cursor.
    fn here(&self) -> Span {
        self.span_of(self.token())
    }

    /// From a token up to the last one read.
    #[inline]
    fn span_from(&self, first: Token) -> Span {
        let end = match self.at {
            0 => first.end,
            at => self.tokens[at - 1].end.max(first.end),
        };
        Span::new(self.source, first.start, end)
    }

    fn previous(&self) -> Option<Token> {
        self.at.checked_sub(1).map(|at| self.tokens[at])
    }

    fn spelling(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    #[inline]
    fn name_of(&self, token: Token) -> Name {
        Name {
            symbol: Symbol(token.payload),
            span: self.span_of(token),
        }
    }

    /// Whether the token at the cursor belongs to what stands before it: it is on the same
    /// line, or line breaks mean nothing here.
    #[inline]
    fn continues(&self) -> bool {
        self.parens > 0 || !self.token().after_break
    }

    /// Whether a statement may end before the token at the cursor.
    fn at_separator(&self) -> bool {
        let token = self.token();
        token.after_break
            || matches!(token.kind, Kind::Semicolon | Kind::CloseBrace | Kind::End)
            || self
                .previous()
                .is_some_and(|token| token.kind == Kind::Semicolon)
    }

    /// A name, or the complaint that `what` is wanted.
    fn name(&mut self, what: &str) -> Parse<Name> {
        if self.kind() == Kind::Name {
            let token = self.bump();
            return Ok(self.name_of(token));
        }
        Err(self.name_expected(what))
    }

    /// Runs `read` one level deeper, unless that is too deep.
    #[inline]
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth == DEPTH_LIMIT {
            return Err(self.too_deep());
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Runs `read` inside `(` or `[`, where line breaks mean nothing.
    #[inline]
    fn enclosed<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.parens += 1;
        // On failure the count stays: recovery has to know what is open.
        let result = read(self)?;
        self.parens -= 1;
        Ok(result)
    }

    // Reports.

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports a mistake found at the cursor, unless what stands there was reported already.
    fn complain(&mut self, diagnostic: Diagnostic) -> Failed {
        let reported = match self.kind() {
            Kind::Unknown | Kind::OpenString => true,
            Kind::End => self.open_comment,
            _ => false,
        };
        if !reported {
            self.report(diagnostic);
        }
        Failed
    }

    fn too_deep(&mut self) -> Failed {
        let diagnostic = Diagnostic::error(
            codes::TOO_DEEP,
            "nested too deeply",
            self.here(),
            format!("this is level {}", DEPTH_LIMIT + 1),
        )
        .with_note(format!(
            "Clauses, operators and types nest at most {DEPTH_LIMIT} levels deep."
        ))
        .with_help("give inner parts names of their own, or move them to a procedure");
        self.braces_missed_at = Some(self.tokens.len() - 1);
        self.complain(diagnostic)
    }

    fn error_expr(&self, span: Span) -> Expr {
        Expr {
            kind: ExprKind::Error,
            span,
        }
    }
}
