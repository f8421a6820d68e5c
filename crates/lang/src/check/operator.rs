//! Operators: operands join to the larger type before anything is computed.

use super::Checker;
use super::fit::{Fit, convert, faulty, rank, with_article};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, UnaryOp};
use crate::tree::{Expr, ExprKind};
use crate::types::{Type, TypeId};
use std::mem;

impl<'a> Checker<'a> {
    pub(super) fn unary(&mut self, op: UnaryOp, operand: &'a ast::Expr, span: Span) -> Expr {
        let operand = self.value(operand);
        let ty = operand.ty;
        let fits = match op {
            UnaryOp::Plus | UnaryOp::Minus => rank(ty).is_some(),
            UnaryOp::Not => ty == TypeId::BOOL,
            UnaryOp::Complement => rank(ty).is_some() && ty != TypeId::REAL,
        };
        if ty == TypeId::ERROR {
            let known = op == UnaryOp::Not;
            return Expr {
                ty: if known { TypeId::BOOL } else { TypeId::ERROR },
                ..faulty(span)
            };
        }
        if !fits {
            self.bad_operand(op, &operand, span);
            return faulty(span);
        }
        if op == UnaryOp::Plus {
            return operand;
        }
        Expr {
            kind: ExprKind::Unary(op, Box::new(operand)),
            ty,
            span,
        }
    }

    #[cold]
    fn bad_operand(&mut self, op: UnaryOp, operand: &Expr, span: Span) {
        let (sign, wanted) = match op {
            UnaryOp::Plus => ("+", "a number"),
            UnaryOp::Minus => ("-", "a number"),
            UnaryOp::Not => ("!", "a bool"),
            UnaryOp::Complement => ("~", "an integer, unsigned or byte"),
        };
        let found = with_article(&self.show(operand.ty));
        let mut diagnostic = Diagnostic::error(
            code::OPERANDS,
            format!("`{sign}` needs {wanted}, not {found}"),
            span,
            format!("the operand is {}", self.show_full(operand.ty)),
        );
        if op == UnaryOp::Not && rank(operand.ty).is_some() {
            diagnostic = diagnostic.with_help("`!` binds tightest: write `!(a == b)` for a whole comparison; `~` complements bits");
        }
        self.report(diagnostic);
    }

    /// A chain of operators.
    pub(super) fn operators(&mut self, first: &'a ast::Expr, links: &'a [ast::Link]) -> Expr {
        let mut parts = Vec::new();
        let mut left = self.value(first);
        for link in links {
            if link.apart {
                let carried = Expr {
                    kind: ExprKind::Carried,
                    ty: left.ty,
                    span: left.span,
                };
                parts.push(mem::replace(&mut left, carried));
            }
            let right = self.value(&link.right);
            let span = first.span.to(link.right.span);
            left = self.operation(link.op, left, right, span);
        }
        if parts.is_empty() {
            return left;
        }
        let (ty, span) = (left.ty, left.span);
        parts.push(left);
        Expr {
            kind: ExprKind::Chain(parts),
            ty,
            span,
        }
    }

    fn operation(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        use BinaryOp as B;
        let bad = left.ty == TypeId::ERROR || right.ty == TypeId::ERROR;
        let joined = match op {
            B::Or | B::And => {
                let both = left.ty == TypeId::BOOL && right.ty == TypeId::BOOL;
                both.then_some(TypeId::BOOL)
            }
            B::BitOr | B::BitXor | B::BitAnd | B::Remainder => {
                join(left.ty, right.ty).filter(|&ty| ty != TypeId::REAL)
            }
            B::Add | B::Subtract | B::Multiply | B::Divide => join(left.ty, right.ty),
            B::Less | B::LessEqual | B::Greater | B::GreaterEqual => join(left.ty, right.ty),
            B::Equal | B::NotEqual => self.comparable(left.ty, right.ty),
        };
        let truth = matches!(
            op,
            B::Or
                | B::And
                | B::Less
                | B::LessEqual
                | B::Greater
                | B::GreaterEqual
                | B::Equal
                | B::NotEqual
        );
        let Some(joined) = joined.filter(|_| !bad) else {
            if !bad {
                self.bad_operands(op, &left, &right, span);
            }
            return Expr {
                kind: ExprKind::Error,
                ty: if truth { TypeId::BOOL } else { TypeId::ERROR },
                span,
            };
        };
        let left = widen(left, joined);
        let right = widen(right, joined);
        Expr {
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty: if truth { TypeId::BOOL } else { joined },
            span,
        }
    }

    /// The type in which two values are compared for equality.
    pub(super) fn comparable(&self, left: TypeId, right: TypeId) -> Option<TypeId> {
        if let Some(joined) = join(left, right) {
            return Some(joined);
        }
        if matches!(self.types.get(left), Type::Proc { .. }) {
            return None;
        }
        if left == right || self.fit(right, left) == Fit::Offered {
            return Some(left);
        }
        (self.fit(left, right) == Fit::Offered).then_some(right)
    }

    #[cold]
    fn bad_operands(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span) {
        use BinaryOp as B;
        let sign = sign(op);
        let wanted = match op {
            B::Or | B::And => "needs two bools",
            B::BitOr | B::BitXor | B::BitAnd | B::Remainder => "needs integers, unsigneds or bytes",
            B::Equal | B::NotEqual => "needs two numbers or two values of one type",
            _ => "needs two numbers",
        };
        let (l, r) = (self.show(left.ty), self.show(right.ty));
        let mut diagnostic = Diagnostic::error(
            code::OPERANDS,
            format!("`{sign}` {wanted}, not `{l}` and `{r}`"),
            Span {
                start: left.span.end,
                end: right.span.start.max(left.span.end),
                source: span.source,
            },
            format!("`{sign}` does not fit its operands"),
        )
        .with_label(left.span, format!("this is {}", self.show_full(left.ty)))
        .with_label(right.span, format!("this is {}", self.show_full(right.ty)));
        if let Some(help) = self.operand_help(op, left.ty, right.ty) {
            diagnostic = diagnostic.with_help(help);
        }
        self.report(diagnostic);
    }

    fn operand_help(&self, op: BinaryOp, left: TypeId, right: TypeId) -> Option<&'static str> {
        use BinaryOp as B;
        let strings = left == TypeId::STRING || right == TypeId::STRING;
        let number = rank(left).is_some() || rank(right).is_some();
        let boxes = left == TypeId::ANY || right == TypeId::ANY;
        match op {
            B::Add if strings => {
                Some("strings cannot be joined; print or send the parts one after the other")
            }
            B::Less | B::LessEqual | B::Greater | B::GreaterEqual if strings => {
                Some("strings have no order; compare characters with `charAt(s, $i)`")
            }
            B::Or | B::And if number => {
                Some("compare numbers first: `a != 0 and b != 0`; bits are joined by `|` and `&`")
            }
            B::BitOr | B::BitAnd if left == TypeId::BOOL || right == TypeId::BOOL => {
                Some("truth values are joined by `or` and `and`")
            }
            B::Remainder => Some("`realToInt(...)` makes an integer of a real"),
            _ if boxes => Some("take the value out of its box with `project`"),
            B::Equal | B::NotEqual if matches!(self.types.get(left), Type::Proc { .. }) => {
                Some("procedures cannot be compared; call them with `...()`")
            }
            _ => None,
        }
    }
}

/// The larger of two numeric types.
pub(super) fn join(left: TypeId, right: TypeId) -> Option<TypeId> {
    if rank(left)? >= rank(right)? {
        Some(left)
    } else {
        Some(right)
    }
}

/// Numbers are converted; component types may differ, their values do not.
pub(super) fn widen(value: Expr, target: TypeId) -> Expr {
    if value.ty != target && rank(target).is_some() {
        convert(value, target)
    } else {
        value
    }
}

fn sign(op: BinaryOp) -> &'static str {
    use BinaryOp as B;
    match op {
        B::Or => "or",
        B::And => "and",
        B::BitOr => "|",
        B::BitXor => "^",
        B::BitAnd => "&",
        B::Equal => "==",
        B::NotEqual => "!=",
        B::Less => "<",
        B::LessEqual => "<=",
        B::Greater => ">",
        B::GreaterEqual => ">=",
        B::Add => "+",
        B::Subtract => "-",
        B::Multiply => "*",
        B::Divide => "/",
        B::Remainder => "%",
    }
}
