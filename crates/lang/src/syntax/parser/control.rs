//! Choices and loops: `if`, `for`, `case`, `project`.

use super::expressions::is_binary_operator;
use super::{Parse, Parser};
use crate::syntax::ast::{CaseArm, Expr, ExprKind, Name, ProjectArm};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    pub(super) fn choice(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let condition = self.clause()?;
        if !self.eat(Kind::Then) {
            self.then_expected(first)?;
        }
        let then = self.clause()?;
        let otherwise = if self.eat(Kind::Else) {
            Some(Box::new(self.clause()?))
        } else {
            None
        };
        Ok(self.node(
            first,
            ExprKind::If {
                condition: Box::new(condition),
                then: Box::new(then),
                otherwise,
            },
        ))
    }

    /// `for i = lo .. hi : step do clause`
    pub(super) fn loop_(&mut self) -> Parse<Expr> {
        let first = self.bump();
        if self.kind() == Kind::OpenParen {
            return self.for_with_parens(first);
        }
        let variable = self.name("the loop variable")?;
        if !self.eat(Kind::Equals) {
            self.for_equals_expected()?;
        }
        let from = self.expression()?;
        if !self.eat(Kind::Dots) {
            self.dots_expected(first)?;
        }
        let to = self.expression()?;
        let step = if self.eat(Kind::Colon) {
            self.step()?
        } else {
            1
        };
        if !self.eat(Kind::Do) {
            self.do_expected(first)?;
        }
        let body = self.clause()?;
        Ok(self.node(
            first,
            ExprKind::For {
                variable,
                from: Box::new(from),
                to: Box::new(to),
                step,
                body: Box::new(body),
            },
        ))
    }

    /// A step is a literal, so that the direction of the loop is known. One stands in for a
    /// faulty one.
    fn step(&mut self) -> Parse<i32> {
        let first = self.token();
        if first.kind == Kind::Do {
            self.step_expected();
            return Ok(1);
        }
        let negative = self.eat(Kind::Minus);
        if !negative {
            self.eat(Kind::Plus);
        }
        let token = self.token();
        if token.kind == Kind::Integer && !is_binary_operator(self.kind_ahead(1)) {
            self.bump();
            let size = token.payload as i32;
            if size == 0 {
                self.step_of_zero(first, token);
                return Ok(1);
            }
            return Ok(if negative { -size } else { size });
        }
        let step = self.expression()?;
        self.step_no_literal(self.span_of(first).to(step.span));
        Ok(1)
    }

    /// `case e of 1, 2: clause … default: clause`
    pub(super) fn cases(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let scrutinee = self.expression()?;
        if !self.eat(Kind::Of) {
            self.of_expected(first)?;
        }
        let mut arms = Vec::new();
        let default = self.arms(first, |this| {
            let arm = this.case_arm()?;
            arms.push(arm);
            Ok(())
        })?;
        Ok(self.node(
            first,
            ExprKind::Case {
                scrutinee: Box::new(scrutinee),
                arms,
                default,
            },
        ))
    }

    fn case_arm(&mut self) -> Parse<CaseArm> {
        let mut labels = vec![self.clause()?];
        while self.eat(Kind::Comma) {
            labels.push(self.clause()?);
        }
        self.arm_colon("the labels")?;
        let body = self.clause()?;
        Ok(CaseArm { labels, body })
    }

    /// `project e as x onto integer: clause … default: clause`
    pub(super) fn unwrap(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let scrutinee = self.clause()?;
        self.expect_word(Kind::As, "project e as x onto integer: … default: …")?;
        let name: Name = self.name("the value")?;
        self.expect_word(Kind::Onto, "project e as x onto integer: … default: …")?;
        let mut arms = Vec::new();
        self.skip_semicolons();
        if self.kind() == Kind::Default {
            self.project_without_arms(first);
        }
        let default = self.arms(first, |this| {
            let ty = this.ty()?;
            this.arm_colon("the type")?;
            let body = this.clause()?;
            arms.push(ProjectArm { ty, body });
            Ok(())
        })?;
        Ok(self.node(
            first,
            ExprKind::Project {
                scrutinee: Box::new(scrutinee),
                name,
                arms,
                default,
            },
        ))
    }

    /// The arms of a `case` or `project`, and its `default`.
    ///
    /// No mark ends the arms, so where `default` is missing, what follows could be an arm; it
    /// is taken for one only if its label is followed by a colon.
    fn arms(
        &mut self,
        first: Token,
        mut arm: impl FnMut(&mut Self) -> Parse<()>,
    ) -> Parse<Box<Expr>> {
        loop {
            self.skip_semicolons();
            if self.eat(Kind::Default) {
                if !self.eat(Kind::Colon) {
                    self.colon_expected("`default`")?;
                }
                return Ok(Box::new(self.clause()?));
            }
            let begins_arm = match first.kind {
                Kind::Case => self.kind().begins_clause(),
                _ => self.kind().begins_type(),
            };
            if !begins_arm {
                self.arm_expected(first)?;
                return Ok(Box::new(self.error_expr(self.here())));
            }
            if !self.label_ahead(first.kind) {
                if !self.default_follows() {
                    self.default_missing(first);
                    return Ok(Box::new(self.error_expr(self.here())));
                }
                self.several_statements_in_arm(first.kind);
            } else {
                let parens = self.parens;
                if arm(self).is_ok() {
                    continue;
                }
                self.parens = parens;
                if !self.default_follows() {
                    return Err(super::Failed);
                }
            }
            self.skip_to_default();
        }
    }
}
