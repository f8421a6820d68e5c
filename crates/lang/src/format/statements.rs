//! Declarations, statements and their parts.

use super::items::Item;
use super::layout::Layout;
use crate::syntax::ast::{
    CaseArm, ComponentDeclaration, Declaration, End, Expr, ExprKind, MemberDeclaration, ProcBody,
    ProcDeclaration, ProjectArm, SelectArm, TypeDeclaration, Unit,
};
use crate::syntax::token::Kind;

impl Layout<'_> {
    pub(super) fn unit(&mut self, unit: &Unit) {
        self.drop_semicolons();
        for declaration in &unit.declarations {
            self.newline();
            match declaration {
                Declaration::Type(declaration) => self.type_declaration(declaration),
                Declaration::Proc(declaration) => self.proc_declaration(declaration),
                Declaration::Component(declaration) => self.component(declaration),
            }
            self.end_statement();
        }
        for statement in &unit.statements {
            self.newline();
            self.expr(statement);
            self.end_statement();
        }
        // Surplus braces, which are tolerated.
        while self.kind() == Kind::CloseBrace {
            self.newline();
            self.token();
            self.drop_semicolons();
        }
    }

    fn type_declaration(&mut self, declaration: &TypeDeclaration) {
        self.word(Kind::Type);
        self.space();
        self.word(Kind::Name);
        self.spaced(Kind::Is);
        self.ty(&declaration.ty);
    }

    fn proc_declaration(&mut self, declaration: &ProcDeclaration) {
        self.word(Kind::Proc);
        self.space();
        self.word(Kind::Name);
        self.params(&declaration.params);
        if let Some(result) = &declaration.result {
            self.spaced(Kind::Colon);
            self.ty(result);
        }
        self.space();
        if let ProcBody::Block(block) = &declaration.body {
            self.block(block);
        }
    }

    fn component(&mut self, component: &ComponentDeclaration) {
        self.word(Kind::Component);
        self.space();
        self.word(Kind::Name);
        self.spaced(Kind::Presents);
        for at in 0..component.presents.len() {
            if at > 0 {
                self.word(Kind::Comma);
                self.space();
            }
            self.word(Kind::Name);
        }
        self.space();
        self.word(Kind::OpenBrace);
        self.braced(true, |this, _| {
            for member in &component.members {
                this.newline();
                this.member(member);
                this.end_statement();
            }
            for constructor in &component.constructors {
                this.newline();
                this.word(Kind::Constructor);
                this.params(&constructor.params);
                this.space();
                this.block(&constructor.body);
                this.end_statement();
            }
            this.newline();
            this.word(Kind::Behaviour);
            this.space();
            this.block(&component.behaviour);
            this.end_statement();
        });
    }

    fn member(&mut self, member: &MemberDeclaration) {
        match member {
            MemberDeclaration::Type(declaration) => self.type_declaration(declaration),
            MemberDeclaration::Proc(declaration) => self.proc_declaration(declaration),
            MemberDeclaration::Variable { value, .. } => {
                self.word(Kind::Name);
                self.spaced(Kind::Equals);
                self.expr(value);
            }
        }
    }

    /// The kinds of expressions that are no operands.
    pub(super) fn statement(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Declare(_, value) => {
                self.word(Kind::Name);
                self.spaced(Kind::Equals);
                self.expr(value);
            }
            ExprKind::Assign(target, value) => {
                self.expr(target);
                self.spaced(Kind::Assign);
                self.expr(value);
            }
            ExprKind::Type(declaration) => self.type_declaration(declaration),
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => self.choice(condition, then, otherwise.as_deref()),
            ExprKind::For { from, to, body, .. } => self.loop_(from, to, body),
            ExprKind::Case {
                scrutinee,
                arms,
                default,
            } => {
                self.word(Kind::Case);
                self.space();
                self.expr(scrutinee);
                self.space();
                self.word(Kind::Of);
                self.arms(arms, default, Self::case_arm);
            }
            ExprKind::Project {
                scrutinee,
                arms,
                default,
                ..
            } => {
                self.word(Kind::Project);
                self.space();
                self.expr(scrutinee);
                self.spaced(Kind::As);
                self.word(Kind::Name);
                self.space();
                self.word(Kind::Onto);
                self.arms(arms, default, Self::project_arm);
            }
            ExprKind::Select { arms, default } => self.select(arms, default.as_deref()),
            ExprKind::Try { body, handlers } => {
                self.word(Kind::Try);
                self.body(body);
                for handler in handlers {
                    self.next_part();
                    self.word(Kind::Except);
                    if handler.label.is_some() {
                        self.space();
                        self.word(Kind::Name);
                    }
                    self.body(&handler.body);
                }
            }
            _ => self.message(expr),
        }
    }

    fn message(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Connect(from, to) => {
                self.word(Kind::Connect);
                self.space();
                self.end(from);
                self.spaced(Kind::To);
                self.end(to);
            }
            ExprKind::Disconnect(end) => {
                self.word(Kind::Disconnect);
                self.space();
                self.end(end);
            }
            ExprKind::Publish { channel, name } => {
                self.word(Kind::Publish);
                self.space();
                self.expr(channel);
                self.spaced(Kind::As);
                self.expr(name);
            }
            ExprKind::Send { value, channel } => {
                self.word(Kind::Send);
                self.space();
                self.expr(value);
                self.spaced(Kind::On);
                self.expr(channel);
            }
            ExprKind::Receive { channel, .. } => {
                self.word(Kind::Receive);
                self.received(channel);
            }
            ExprKind::Acknowledge { channel, body, .. } => {
                self.word(Kind::Acknowledge);
                self.received(channel);
                self.space();
                self.word(Kind::After);
                self.body(body);
            }
            ExprKind::Stop(target) => {
                self.word(Kind::Stop);
                if target.is_some() {
                    self.space();
                    self.word(Kind::Name);
                }
            }
            ExprKind::Return(value) => {
                self.word(Kind::Return);
                if let Some(value) = value {
                    self.space();
                    self.expr(value);
                }
            }
            ExprKind::Throw(_) => {
                self.word(Kind::Throw);
                self.space();
                self.word(Kind::Name);
            }
            _ => debug_assert!(false, "an expression is no statement: {expr:?}"),
        }
    }

    /// `x from c`
    fn received(&mut self, channel: &Expr) {
        self.space();
        self.word(Kind::Name);
        self.spaced(Kind::From);
        self.expr(channel);
    }

    fn end(&mut self, end: &End) {
        self.expr(&end.channel);
        if let Some(address) = &end.address {
            self.spaced(Kind::On);
            self.expr(address);
        }
    }

    /// The body of a clause: a block begins on the line, anything else where the author put it.
    fn body(&mut self, body: &Expr) {
        if self.on_new_line() && !matches!(body.kind, ExprKind::Block(_)) {
            self.push(Item::Indent);
            self.push(Item::Break);
            self.expr(body);
            self.push(Item::Dedent);
        } else {
            self.space();
            self.expr(body);
        }
    }

    /// Before `else` and `except`: on the line of a block's end, else where the author put it.
    fn next_part(&mut self) {
        if self.on_new_line() && !self.after_brace() {
            self.push(Item::Break);
        } else {
            self.space();
        }
    }

    fn choice(&mut self, condition: &Expr, then: &Expr, otherwise: Option<&Expr>) {
        self.word(Kind::If);
        self.space();
        self.expr(condition);
        self.space();
        self.word(Kind::Then);
        self.body(then);
        let Some(otherwise) = otherwise else {
            return;
        };
        self.next_part();
        self.word(Kind::Else);
        if matches!(otherwise.kind, ExprKind::If { .. }) {
            self.space();
            self.expr(otherwise);
        } else {
            self.body(otherwise);
        }
    }

    fn loop_(&mut self, from: &Expr, to: &Expr, body: &Expr) {
        self.word(Kind::For);
        self.space();
        self.word(Kind::Name);
        self.spaced(Kind::Equals);
        self.expr(from);
        self.spaced(Kind::Dots);
        self.expr(to);
        self.space();
        if self.kind() == Kind::Colon {
            self.word(Kind::Colon);
            self.space();
            while self.kind() != Kind::Do {
                self.token();
            }
            self.space();
        }
        self.word(Kind::Do);
        self.body(body);
    }

    /// The arms of `case` and `project`, on lines of their own unless written on one line.
    ///
    /// Inside parentheses a line break does not keep an arm from going on, so there the
    /// semicolons between arms stay.
    fn arms<A>(&mut self, arms: &[A], default: &Expr, print: impl Fn(&mut Self, &A)) {
        let spread = self.spread_until(default.span.end);
        self.push(Item::Open(spread));
        self.push(Item::Indent);
        self.end_arm();
        for arm in arms {
            self.begin_line(spread);
            print(self, arm);
            self.end_arm();
        }
        self.begin_line(spread);
        self.word(Kind::Default);
        self.word(Kind::Colon);
        self.body(default);
        self.push(Item::Dedent);
        self.push(Item::Close);
    }

    fn end_arm(&mut self) {
        if self.parens > 0 && self.kind() == Kind::Semicolon {
            self.token();
        }
        self.end_statement();
    }

    fn case_arm(&mut self, arm: &CaseArm) {
        for (at, label) in arm.labels.iter().enumerate() {
            if at > 0 {
                self.word(Kind::Comma);
                self.space();
            }
            self.expr(label);
        }
        self.word(Kind::Colon);
        self.body(&arm.body);
    }

    fn project_arm(&mut self, arm: &ProjectArm) {
        self.ty(&arm.ty);
        self.word(Kind::Colon);
        self.body(&arm.body);
    }

    fn select(&mut self, arms: &[SelectArm], default: Option<&Expr>) {
        self.word(Kind::Select);
        self.space();
        let outer_parens = std::mem::replace(&mut self.parens, 0);
        self.word(Kind::OpenBrace);
        let several = arms.len() + usize::from(default.is_some()) > 1;
        self.braced(several, |this, spread| {
            for arm in arms {
                this.begin_line(spread);
                this.select_arm(arm);
                this.end_statement();
            }
            if let Some(default) = default {
                this.begin_line(spread);
                this.word(Kind::Default);
                this.word(Kind::Colon);
                this.body(default);
                this.end_statement();
            }
        });
        self.parens = outer_parens;
    }

    fn select_arm(&mut self, arm: &SelectArm) {
        self.token();
        self.received(&arm.channel);
        if let Some(guard) = &arm.guard {
            self.spaced(Kind::When);
            self.expr(guard);
        }
        if arm.acknowledge {
            self.space();
            self.word(Kind::After);
        }
        self.word(Kind::Colon);
        self.body(&arm.body);
    }
}
