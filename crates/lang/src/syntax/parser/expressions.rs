//! Operators, operands and places.

use super::{Parse, Parser};
use crate::source::Span;
use crate::syntax::DEPTH_LIMIT;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Link, UnaryOp};
use crate::syntax::lexer::unescape;
use crate::syntax::token::{Kind, Token};

/// A left operand with its operator.
pub(super) struct Pending {
    left: Expr,
    height: Height,
    op: BinaryOp,
    power: u8,
}

/// Later stages get a chain of operators in parts that are no higher than this, as far as the
/// operands let them.
const PART_HEIGHT_MAX: u32 = 64;

/// The height of the tree that later stages make of an expression.
#[derive(Clone, Copy)]
struct Height {
    /// The last part of a chain, or any other expression.
    part: u32,
    /// The highest part before it; 0 without any.
    before: u32,
}

impl Height {
    fn of_operand(height: u32) -> Height {
        Height {
            part: height,
            before: 0,
        }
    }

    fn whole(self) -> u32 {
        match self.before {
            0 => self.part,
            before => before.max(self.part) + 1,
        }
    }

    /// The height with an operator and its right operand, and whether a new part begins there.
    fn joined(self, right: Height) -> (Height, bool) {
        let right = right.whole();
        let part = self.part.max(right) + 1;
        if part <= PART_HEIGHT_MAX || self.part <= right {
            return (Height { part, ..self }, false);
        }
        let joined = Height {
            part: right + 1,
            before: self.before.max(self.part),
        };
        (joined, true)
    }
}

/// Binding powers, the weakest first; all operators associate to the left.
fn binary_operator(kind: Kind) -> Option<(u8, BinaryOp)> {
    Some(match kind {
        Kind::Or => (1, BinaryOp::Or),
        Kind::And => (2, BinaryOp::And),
        Kind::Bar => (3, BinaryOp::BitOr),
        Kind::Caret => (4, BinaryOp::BitXor),
        Kind::Ampersand => (5, BinaryOp::BitAnd),
        Kind::EqualEqual => (6, BinaryOp::Equal),
        Kind::NotEqual => (6, BinaryOp::NotEqual),
        Kind::Less => (6, BinaryOp::Less),
        Kind::LessEqual => (6, BinaryOp::LessEqual),
        Kind::Greater => (6, BinaryOp::Greater),
        Kind::GreaterEqual => (6, BinaryOp::GreaterEqual),
        Kind::Plus => (7, BinaryOp::Add),
        Kind::Minus => (7, BinaryOp::Subtract),
        Kind::Star => (8, BinaryOp::Multiply),
        Kind::Slash => (8, BinaryOp::Divide),
        Kind::Percent => (8, BinaryOp::Remainder),
        _ => return None,
    })
}

pub(super) fn is_binary_operator(kind: Kind) -> bool {
    binary_operator(kind).is_some()
}

impl Parser<'_> {
    /// Operands and binary operators.
    ///
    /// Operators wait on one stack for their right operand, so that this costs no recursion; the
    /// height of the tree is kept, because later stages do recurse into it. A chain, however long,
    /// is not deep: later stages get it in parts.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        let base = self.pending.len();
        let outer_deepest = self.deepest;
        self.deepest = self.depth;
        let result = self.operands(base);
        self.pending.truncate(base);
        self.deepest = self.deepest.max(outer_deepest);
        result
    }

    // The stack frames of this recursion are kept small: rare or bulky parts are functions of
    // their own.
    fn operands(&mut self, base: usize) -> Parse<Expr> {
        let mut left = self.unary()?;
        let mut height = Height::of_operand(self.deepest - self.depth);
        loop {
            let operator = binary_operator(self.kind()).filter(|_| self.continues());
            let power = operator.map_or(0, |(power, _)| power);
            if self.pending.len() > base {
                left = self.combine(left, &mut height, base, power)?;
            }
            let Some((power, op)) = operator else {
                self.deepest = self.depth + height.whole();
                return Ok(left);
            };
            self.wait(left, height, op, power)?;
            self.deepest = self.depth;
            left = self.unary()?;
            height = Height::of_operand(self.deepest - self.depth);
        }
    }

    /// Gives the operators on the stack above `base` that bind at least as tightly as `power`
    /// their right operand.
    fn combine(
        &mut self,
        mut right: Expr,
        height: &mut Height,
        base: usize,
        power: u8,
    ) -> Parse<Expr> {
        while let Some(waiting) = self.pop_binding(base, power) {
            let apart;
            (*height, apart) = waiting.height.joined(*height);
            if self.depth + height.whole() > DEPTH_LIMIT {
                return Err(self.too_deep());
            }
            let op = waiting.op;
            right = chained(waiting.left, Link { op, right, apart });
        }
        Ok(right)
    }

    /// Passes an operator and puts it on the stack with its left operand.
    fn wait(&mut self, left: Expr, height: Height, op: BinaryOp, power: u8) -> Parse<()> {
        self.bump();
        let op = self.foreign_operator(op)?;
        if !self.continues() && self.declares_or_assigns() {
            self.no_operand()?;
        }
        self.pending.push(Pending {
            left,
            height,
            op,
            power,
        });
        Ok(())
    }

    /// Whether the next line begins a statement of its own, so that an operator before it lacks
    /// its right side.
    fn declares_or_assigns(&self) -> bool {
        self.kind() == Kind::Name && matches!(self.kind_ahead(1), Kind::Equals | Kind::Assign)
    }

    /// The operator on top of the stack above `base`, if it binds at least as tightly.
    fn pop_binding(&mut self, base: usize, power: u8) -> Option<Pending> {
        let binds = self.pending[base..]
            .last()
            .is_some_and(|waiting| waiting.power >= power);
        if binds { self.pending.pop() } else { None }
    }

    fn unary(&mut self) -> Parse<Expr> {
        let op = match self.kind() {
            Kind::Plus => UnaryOp::Plus,
            Kind::Minus => UnaryOp::Minus,
            Kind::Bang => UnaryOp::Not,
            Kind::Tilde => UnaryOp::Complement,
            _ => return self.primary(),
        };
        let sign = self.bump();
        let operand = self.nested(Self::unary)?;
        Ok(Expr {
            span: self.span_of(sign).to(operand.span),
            kind: ExprKind::Unary(op, Box::new(operand)),
        })
    }

    fn primary(&mut self) -> Parse<Expr> {
        let token = self.token();
        let kind = match token.kind {
            Kind::Name if self.at_beside(Kind::Name) => return self.beside_call(),
            Kind::Name => {
                self.at += 1;
                let name = self.name_of(token);
                let base = Expr {
                    kind: ExprKind::Name(name.symbol),
                    span: name.span,
                };
                return self.postfix(base);
            }
            Kind::Integer => ExprKind::Integer(token.payload as i32),
            Kind::Unsigned => ExprKind::Unsigned(token.payload),
            Kind::Byte => ExprKind::Byte(token.payload as u8),
            Kind::Real => ExprKind::Real(self.spelling(token).parse().unwrap_or(0.0)),
            Kind::True => ExprKind::Bool(true),
            Kind::False => ExprKind::Bool(false),
            Kind::BadLiteral => ExprKind::Error,
            Kind::String => {
                self.at += 1;
                let base = Expr {
                    kind: ExprKind::String(unescape(self.spelling(token))),
                    span: self.span_of(token),
                };
                return self.members_of(base);
            }
            Kind::Any => return self.boxed(),
            Kind::OpenParen => return self.parenthesised(),
            Kind::OpenBrace => {
                let block = self.block()?;
                return Ok(Expr {
                    span: block.span,
                    kind: ExprKind::Block(block),
                });
            }
            Kind::New => return self.creation(),
            _ => return self.no_operand(),
        };
        self.at += 1;
        Ok(Expr {
            kind,
            span: self.span_of(token),
        })
    }

    /// `beside f(a)`: the word belongs to the call, not to what is done with its result.
    fn beside_call(&mut self) -> Parse<Expr> {
        if self.kind_ahead(2) != Kind::OpenParen {
            return self.beside(Self::primary);
        }
        let call = self.beside(|this| {
            let token = this.bump();
            let name = this.name_of(token);
            let callee = Expr {
                kind: ExprKind::Name(name.symbol),
                span: name.span,
            };
            let open = this.bump();
            let arguments = this.arguments(open)?;
            Ok(this.node(token, ExprKind::Call(Box::new(callee), arguments)))
        })?;
        self.postfix(call)
    }

    /// `any(e)`
    fn boxed(&mut self) -> Parse<Expr> {
        let first = self.bump();
        if self.kind() != Kind::OpenParen {
            return Err(self.any_without_value(first));
        }
        let open = self.bump();
        let value = self.enclosed(|this| {
            let value = this.clause()?;
            this.close(open)?;
            Ok(value)
        })?;
        Ok(Expr {
            kind: ExprKind::Any(Box::new(value)),
            span: self.span_from(first),
        })
    }

    fn parenthesised(&mut self) -> Parse<Expr> {
        let open = self.bump();
        let inner = self.enclosed(|this| {
            let inner = this.clause()?;
            this.close(open)?;
            Ok(inner)
        })?;
        let expr = Expr {
            kind: ExprKind::Paren(Box::new(inner)),
            span: self.span_from(open),
        };
        self.members_of(expr)
    }

    /// `.length` and the like after a string or parentheses, which are not places.
    fn members_of(&mut self, base: Expr) -> Parse<Expr> {
        if matches!(self.kind(), Kind::Dot | Kind::OpenBracket) && self.continues() {
            return self.postfix(base);
        }
        Ok(base)
    }

    /// Fields, elements and calls. They continue an expression only on its line.
    pub(super) fn postfix(&mut self, mut base: Expr) -> Parse<Expr> {
        loop {
            let token = self.token();
            if !matches!(token.kind, Kind::Dot | Kind::OpenBracket | Kind::OpenParen)
                || !self.continues()
            {
                return Ok(base);
            }
            self.bump();
            let first = base.span;
            // All before becomes one level deeper; what is inside the brackets did so already.
            self.deepest += 1;
            if self.deepest > DEPTH_LIMIT {
                return Err(self.too_deep());
            }
            let kind = match token.kind {
                Kind::Dot if self.eat(Kind::Length) => ExprKind::Length(Box::new(base)),
                Kind::Dot => {
                    let field = self.name("a field or channel")?;
                    ExprKind::Field(Box::new(base), field)
                }
                Kind::OpenBracket => ExprKind::Index(Box::new(base), self.indices(token)?),
                _ => ExprKind::Call(Box::new(base), self.arguments(token)?),
            };
            let end = self.previous().map_or(first.end, |token| token.end);
            base = Expr {
                kind,
                span: Span { end, ..first },
            };
        }
    }

    fn indices(&mut self, open: Token) -> Parse<Vec<Expr>> {
        if self.kind() == Kind::CloseBracket {
            return Err(self.index_expected());
        }
        self.items(open)
    }

    /// The arguments of a call, whose `(` is read.
    pub(super) fn arguments(&mut self, open: Token) -> Parse<Vec<Expr>> {
        if self.eat(Kind::CloseParen) {
            return Ok(Vec::new());
        }
        self.items(open)
    }

    /// Clauses with commas between them, up to the mark that closes `open`.
    fn items(&mut self, open: Token) -> Parse<Vec<Expr>> {
        self.enclosed(|this| {
            let mut items = vec![this.clause()?];
            loop {
                if this.eat(Kind::Comma) {
                    items.push(this.clause()?);
                } else if this.kind() == Kind::Semicolon && this.semicolon_for_comma() {
                    this.bump();
                    items.push(this.clause()?);
                } else {
                    this.close(open)?;
                    return Ok(items);
                }
            }
        })
    }

    /// The `)` or `]` that belongs to `open`.
    pub(super) fn close(&mut self, open: Token) -> Parse<()> {
        let closing = closing_of(open.kind);
        if self.eat(closing) {
            return Ok(());
        }
        Err(self.unclosed_paren(open))
    }

    /// A named thing with its fields, elements and calls: a channel, say.
    pub(super) fn place(&mut self, what: &str) -> Parse<Expr> {
        if self.kind() == Kind::Name {
            return self.place_expr();
        }
        if !self.kind().begins_expression() {
            return Err(self.name_expected(what));
        }
        let token = self.token();
        let diagnostics = self.diagnostics.len();
        let expr = self.expression()?;
        if self.diagnostics.len() == diagnostics {
            self.no_place(token, expr.span, what);
        }
        Ok(self.error_expr(expr.span))
    }

    fn place_expr(&mut self) -> Parse<Expr> {
        let outer_deepest = self.deepest;
        self.deepest = self.depth;
        let expr = self.primary();
        self.deepest = self.deepest.max(outer_deepest);
        expr
    }
}

/// An operator after an expression, which may be a chain of operators already.
fn chained(left: Expr, link: Link) -> Expr {
    let span = left.span.to(link.right.span);
    let kind = match left {
        Expr {
            kind: ExprKind::Operators(first, mut links),
            ..
        } => {
            links.push(link);
            ExprKind::Operators(first, links)
        }
        left => ExprKind::Operators(Box::new(left), vec![link]),
    };
    Expr { kind, span }
}

pub(super) fn closing_of(open: Kind) -> Kind {
    match open {
        Kind::OpenBracket => Kind::CloseBracket,
        Kind::OpenBrace => Kind::CloseBrace,
        _ => Kind::CloseParen,
    }
}
