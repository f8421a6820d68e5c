//! Types, operators, operands and creation.

use super::items::Item;
use super::layout::Layout;
use crate::syntax::ast::{Block, Expr, ExprKind, Group, Type, TypeKind, UnaryOp};
use crate::syntax::token::Kind;

impl Layout<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Integer(_)
            | ExprKind::Unsigned(_)
            | ExprKind::Byte(_)
            | ExprKind::Real(_)
            | ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::Name(_)
            | ExprKind::Error => self.tokens_until(expr.span.end),
            ExprKind::Any(value) => {
                self.word(Kind::Any);
                self.parenthesised(value);
            }
            ExprKind::Paren(inner) => self.parenthesised(inner),
            ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ExprKind::Operators(..) => self.operators(expr),
            ExprKind::Length(base) => {
                self.expr(base);
                self.tokens_until(expr.span.end);
            }
            ExprKind::Field(base, _) => {
                self.expr(base);
                self.tokens_until(expr.span.end);
            }
            ExprKind::Index(base, indices) => {
                self.expr(base);
                self.word(Kind::OpenBracket);
                self.parens += 1;
                self.separated(indices, Item::Space);
                self.parens -= 1;
                self.word(Kind::CloseBracket);
            }
            ExprKind::Call(callee, args) => {
                self.expr(callee);
                self.arguments(args);
            }
            ExprKind::Beside(inner) => {
                self.word(Kind::Name);
                self.space();
                self.expr(inner);
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::NewChannel(_, ty) => {
                self.word(Kind::New);
                self.space();
                self.token();
                self.space();
                self.ty(ty);
            }
            ExprKind::NewNamed { args, .. } => {
                self.word(Kind::New);
                self.space();
                self.word(Kind::Name);
                self.arguments(args);
            }
            ExprKind::NewArray {
                element,
                lengths,
                init,
            } => {
                self.word(Kind::New);
                self.space();
                self.ty(element);
                for _ in lengths {
                    self.word(Kind::OpenBracket);
                    self.word(Kind::Integer);
                    self.word(Kind::CloseBracket);
                }
                self.spaced(Kind::Of);
                self.expr(init);
            }
            _ => self.statement(expr),
        }
    }

    fn parenthesised(&mut self, inner: &Expr) {
        self.word(Kind::OpenParen);
        self.parens += 1;
        self.expr(inner);
        self.parens -= 1;
        self.word(Kind::CloseParen);
    }

    /// `- -x` keeps its blank, lest it look like an operator of other languages.
    fn unary(&mut self, op: UnaryOp, operand: &Expr) {
        self.token();
        if matches!(op, UnaryOp::Plus | UnaryOp::Minus)
            && matches!(
                operand.kind,
                ExprKind::Unary(UnaryOp::Plus | UnaryOp::Minus, _)
            )
        {
            self.space();
        }
        self.expr(operand);
    }

    /// A line may end after an operator. However deep the tree of operators, what is broken is
    /// indented once.
    fn operators(&mut self, expr: &Expr) {
        let mut indented = false;
        self.operands(expr, &mut indented);
        self.push(Item::Dedent);
    }

    fn operands(&mut self, expr: &Expr, indented: &mut bool) {
        if let ExprKind::Operators(first, links) = &expr.kind {
            self.operands(first, indented);
            for link in links {
                self.space();
                self.token();
                self.push(Item::Fill);
                self.operands(&link.right, indented);
            }
            return;
        }
        self.expr(expr);
        if !std::mem::replace(indented, true) {
            self.push(Item::Indent);
        }
    }

    fn separated(&mut self, items: &[Expr], gap: Item<'static>) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.word(Kind::Comma);
                self.push(gap);
            }
            self.expr(item);
        }
    }

    fn arguments(&mut self, args: &[Expr]) {
        self.word(Kind::OpenParen);
        self.parens += 1;
        if !args.is_empty() {
            self.push(Item::Open(false));
            self.push(Item::Indent);
            self.push(Item::Soft);
            self.separated(args, Item::Line);
            self.push(Item::Dedent);
            self.push(Item::Soft);
            self.push(Item::Close);
        }
        self.parens -= 1;
        self.word(Kind::CloseParen);
    }

    pub(super) fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Channel(_, payload) => {
                self.token();
                self.space();
                self.ty(payload);
            }
            TypeKind::Array(element) => {
                self.ty(element);
                self.word(Kind::OpenBracket);
                self.word(Kind::CloseBracket);
            }
            TypeKind::Interface(ports) => {
                self.word(Kind::Interface);
                let count = ports.len();
                self.groups(count, |this, at| {
                    this.token();
                    this.space();
                    this.group(&ports[at].1);
                });
            }
            TypeKind::Struct(fields) => {
                self.word(Kind::Struct);
                self.params(fields);
            }
            TypeKind::Proc { params, result } => {
                self.word(Kind::Proc);
                self.groups(params.len(), |this, at| this.ty(&params[at]));
                if let Some(result) = result {
                    self.spaced(Kind::Colon);
                    self.ty(result);
                }
            }
            TypeKind::Enum(labels) => self.labels(labels.len()),
            _ => self.token(),
        }
    }

    fn labels(&mut self, count: usize) {
        self.word(Kind::Enum);
        self.word(Kind::OpenParen);
        self.push(Item::Indent);
        for at in 0..count {
            if at > 0 {
                self.word(Kind::Comma);
                self.push(Item::Fill);
            }
            self.word(Kind::Name);
        }
        self.push(Item::Dedent);
        self.word(Kind::CloseParen);
    }

    pub(super) fn params(&mut self, groups: &[Group]) {
        self.groups(groups.len(), |this, at| this.group(&groups[at]));
    }

    /// Groups in parentheses. Line breaks separate groups as `;` does, so groups that the
    /// author put on several lines stay on lines of their own.
    fn groups(&mut self, count: usize, mut group: impl FnMut(&mut Self, usize)) {
        self.word(Kind::OpenParen);
        let spread = self.spread_in_brackets();
        self.drop_semicolons();
        self.push(Item::Open(spread));
        self.push(Item::Indent);
        self.push(Item::Soft);
        for at in 0..count {
            group(self, at);
            if at + 1 == count {
                break;
            }
            if self.kind() == Kind::Semicolon {
                self.token();
                self.drop_semicolons();
                self.push(Item::Line);
            } else {
                self.push(Item::Break);
            }
        }
        self.drop_semicolons();
        self.leading_comments();
        self.push(Item::Dedent);
        self.push(Item::Soft);
        self.push(Item::Close);
        self.word(Kind::CloseParen);
    }

    fn group(&mut self, group: &Group) {
        self.ty(&group.ty);
        self.space();
        for at in 0..group.names.len() {
            if at > 0 {
                self.word(Kind::Comma);
                self.space();
            }
            self.word(Kind::Name);
        }
    }

    /// A block of several statements has several lines; one of one statement keeps to one line
    /// if it was written so.
    pub(super) fn block(&mut self, block: &Block) {
        let outer_parens = std::mem::replace(&mut self.parens, 0);
        self.word(Kind::OpenBrace);
        let several = block.statements.len() > 1;
        self.braced(several, |this, spread| {
            for statement in &block.statements {
                this.begin_line(spread);
                this.expr(statement);
                this.end_statement();
            }
        });
        self.parens = outer_parens;
    }

    /// The inside of braces, the first of which is printed, and the second.
    pub(super) fn braced(&mut self, several: bool, inside: impl FnOnce(&mut Self, bool)) {
        self.drop_semicolons();
        if self.kind() == Kind::CloseBrace && !self.comment_follows() {
            self.space();
            return self.word(Kind::CloseBrace);
        }
        let spread = several || self.spread_in_brackets();
        self.push(Item::Open(spread));
        self.push(Item::Indent);
        inside(self, spread);
        self.leading_comments();
        self.push(Item::Dedent);
        self.push(if spread { Item::Tight } else { Item::Line });
        self.push(Item::Close);
        self.word(Kind::CloseBrace);
    }

    /// The line break before a statement, arm or member: certain in what is spread over
    /// several lines, else up to the group.
    pub(super) fn begin_line(&mut self, spread: bool) {
        if spread {
            self.newline();
        } else {
            self.push(Item::Line);
        }
    }
}
