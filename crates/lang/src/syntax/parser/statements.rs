//! Lists of statements, and what a single statement or clause begins with.

use super::{Parse, Parser, Returns};
use crate::source::Span;
use crate::syntax::ast::{Block, Expr, ExprKind, Handler, Name};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// `{ … }`
    pub(super) fn block(&mut self) -> Parse<Block> {
        let open = self.bump();
        let parens = std::mem::replace(&mut self.parens, 0);
        // Collected in a buffer that is used again, so that the block's own list fits exactly.
        let mut buffer = self.buffers.pop().unwrap_or_default();
        self.statements(open, &mut buffer);
        let mut statements = Vec::with_capacity(buffer.len());
        statements.append(&mut buffer);
        self.buffers.push(buffer);
        self.parens = parens;
        Ok(Block {
            statements,
            span: self.span_from(open),
        })
    }

    /// The statements of a block, and its closing brace.
    fn statements(&mut self, open: Token, statements: &mut Vec<Expr>) {
        loop {
            self.skip_semicolons();
            match self.kind() {
                Kind::CloseBrace => {
                    self.bump();
                    return;
                }
                Kind::End | Kind::Constructor | Kind::Behaviour => {
                    return self.unclosed_brace(open);
                }
                Kind::Component | Kind::Proc if !self.stands_inside(open) => {
                    return self.unclosed_brace(open);
                }
                Kind::Component | Kind::Proc => {
                    self.declaration_in_body();
                    let first = self.token();
                    let dropped = self.misplaced_declaration(first);
                    statements.push(dropped);
                }
                _ => self.statement_into(statements),
            }
        }
    }

    /// Reads one statement and the separator after it. A broken statement becomes an
    /// `Error`, and reading continues after it.
    pub(super) fn statement_into(&mut self, statements: &mut Vec<Expr>) {
        let first = self.at;
        let parens = self.parens;
        match self.statement() {
            Ok(statement) => {
                statements.push(statement);
                if !self.at_separator() {
                    self.missing_separator(first, statements);
                }
            }
            Err(_) => {
                if self.at == first {
                    self.bump();
                }
                let opened = self.parens.saturating_sub(parens);
                self.parens = parens;
                self.recover(opened);
                let rest = self.rest_of(first);
                statements.push(rest);
            }
        }
        statements.append(&mut self.extra);
    }

    /// The remains of a broken statement: the name it declares, if it does.
    fn rest_of(&self, first: usize) -> Expr {
        let token = self.tokens[first];
        let span = self.span_from(token);
        let following = |ahead: usize| self.tokens.get(first + ahead).copied();
        let error = || Box::new(self.error_expr(span));
        let kind = match (token.kind, following(1), following(2)) {
            (Kind::Name, Some(equals), _) if equals.kind == Kind::Equals => {
                ExprKind::Declare(self.name_of(token), error())
            }
            (Kind::Receive | Kind::Acknowledge, Some(name), _) if name.kind == Kind::Name => {
                ExprKind::Receive {
                    name: self.name_of(name),
                    channel: error(),
                }
            }
            _ => ExprKind::Error,
        };
        Expr { kind, span }
    }

    /// The separator after a declaration or member.
    pub(super) fn separate(&mut self) {
        if !self.at_separator() {
            self.missing_separator(self.at, &mut Vec::new());
        }
    }

    fn statement(&mut self) -> Parse<Expr> {
        match self.kind() {
            Kind::Name => self.clause(),
            Kind::Type if !self.names_reserved_word() => self.type_statement(),
            Kind::Try => self.nested(Self::protected),
            kind if kind.begins_clause() && !self.names_reserved_word() => self.clause(),
            _ => self.no_statement(),
        }
    }

    fn type_statement(&mut self) -> Parse<Expr> {
        let declaration = self.type_declaration()?;
        Ok(Expr {
            span: declaration.span,
            kind: ExprKind::Type(Box::new(declaration)),
        })
    }

    /// Whether the keyword at the cursor is used as a name: `when = 3`.
    pub(super) fn names_reserved_word(&self) -> bool {
        self.kind().is_keyword() && matches!(self.kind_ahead(1), Kind::Equals | Kind::Assign)
    }

    /// Anything that may stand as a part of a statement.
    #[inline]
    pub(super) fn clause(&mut self) -> Parse<Expr> {
        self.nested(Self::clause_inner)
    }

    fn clause_inner(&mut self) -> Parse<Expr> {
        match self.kind() {
            Kind::Name if self.kind_ahead(1) == Kind::Equals => self.declare(),
            Kind::If => self.choice(),
            Kind::For => self.loop_(),
            Kind::Name if self.at_beside(Kind::For) => self.beside(Self::loop_),
            Kind::Case => self.cases(),
            Kind::Select => self.alternatives(),
            Kind::Project => self.unwrap(),
            Kind::Connect => self.connect(),
            Kind::Disconnect => self.disconnect(),
            Kind::Send => self.send(),
            Kind::Receive => self.receive(),
            Kind::Acknowledge => self.acknowledge(),
            Kind::Publish => self.publish(),
            Kind::Stop => self.stop(),
            Kind::Return => self.return_(),
            Kind::Throw => self.throw(),
            Kind::Type => self.needs_braces("a type declaration", Self::type_statement),
            Kind::Try => self.needs_braces("`try`", Self::protected),
            _ => self.expression_clause(),
        }
    }

    /// Whether the word `beside` stands here, before such a token on its line. It is a name
    /// elsewhere: no clause has a name before another or before `for`.
    pub(super) fn at_beside(&self, before: Kind) -> bool {
        self.kind() == Kind::Name
            && self.kind_ahead(1) == before
            && self.spelling(self.token()) == "beside"
            && (self.parens > 0 || !self.tokens[self.at + 1].after_break)
    }

    /// `beside f(a)`, `beside for …`
    pub(super) fn beside(&mut self, inner: fn(&mut Self) -> Parse<Expr>) -> Parse<Expr> {
        let word = self.bump();
        let inner = self.nested(inner)?;
        Ok(self.node(word, ExprKind::Beside(Box::new(inner))))
    }

    /// `x = e`
    fn declare(&mut self) -> Parse<Expr> {
        let name = self.bump();
        let equals = self.bump();
        self.foreign_equals(equals)?;
        let value = self.clause()?;
        Ok(Expr {
            span: self.span_of(name).to(value.span),
            kind: ExprKind::Declare(self.name_of(name), Box::new(value)),
        })
    }

    /// An expression, or an assignment to it.
    fn expression_clause(&mut self) -> Parse<Expr> {
        let target = self.expression()?;
        match self.kind() {
            Kind::Assign | Kind::Equals => self.assignment(target),
            _ => Ok(target),
        }
    }

    fn assignment(&mut self, target: Expr) -> Parse<Expr> {
        let is_place = is_place(&target.kind);
        if self.parens > 0 && !is_place {
            // A closing bracket is missing rather than a target.
            return Ok(target);
        }
        if self.kind() == Kind::Equals {
            self.equals_for_assign(&target)?;
        }
        let sign = self.bump();
        if !is_place && sign.kind == Kind::Assign {
            self.no_target(sign, target.span);
        }
        let value = self.clause()?;
        Ok(Expr {
            span: target.span.to(value.span),
            kind: ExprKind::Assign(Box::new(target), Box::new(value)),
        })
    }

    /// `try clause except A clause …`
    fn protected(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let body = self.clause()?;
        if self.kind() != Kind::Except {
            self.try_without_handler(first);
        }
        let mut handlers = Vec::new();
        while self.eat(Kind::Except) {
            let label = self.handler_label();
            let body = self.clause()?;
            handlers.push(Handler { label, body });
        }
        Ok(Expr {
            span: self.span_from(first),
            kind: ExprKind::Try {
                body: Box::new(body),
                handlers,
            },
        })
    }

    /// The label may be left out. A name is the label if a clause follows that cannot be the
    /// rest of an expression begun by that name; a sign could be either and is taken as the
    /// beginning of the handler.
    fn handler_label(&mut self) -> Option<Name> {
        let next = self.kind_ahead(1);
        let is_label = self.kind() == Kind::Name
            && next.begins_clause()
            && next != Kind::OpenParen
            && !self.at_beside(Kind::For)
            && !(self.at_beside(Kind::Name) && self.kind_ahead(2) == Kind::OpenParen);
        is_label.then(|| {
            let token = self.bump();
            self.name_of(token)
        })
    }

    /// `return [clause]`
    fn return_(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let begins = self.kind().begins_clause();
        let value = match self.returns {
            Returns::Value if begins => Some(Box::new(self.clause()?)),
            Returns::Nothing if begins && self.continues() => {
                self.return_with_value(first);
                self.clause()?;
                None
            }
            Returns::Misplaced if begins && self.continues() => Some(Box::new(self.clause()?)),
            _ => None,
        };
        Ok(Expr {
            span: self.span_from(first),
            kind: ExprKind::Return(value),
        })
    }

    /// `stop [ID]`: the name stands on the line of `stop`.
    fn stop(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let token = self.token();
        let target = (token.kind == Kind::Name && !token.after_break).then(|| {
            self.bump();
            self.name_of(token)
        });
        Ok(Expr {
            span: self.span_from(first),
            kind: ExprKind::Stop(target),
        })
    }

    fn throw(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let label = self.name("an exception")?;
        Ok(Expr {
            span: self.span_from(first),
            kind: ExprKind::Throw(label),
        })
    }

    /// The span from a token, for a whole node.
    pub(super) fn node(&self, first: Token, kind: ExprKind) -> Expr {
        let span: Span = self.span_from(first);
        Expr { kind, span }
    }
}

fn is_place(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::Name(_) | ExprKind::Error => true,
        ExprKind::Field(base, _)
        | ExprKind::Length(base)
        | ExprKind::Index(base, _)
        | ExprKind::Call(base, _) => is_place(&base.kind),
        _ => false,
    }
}
