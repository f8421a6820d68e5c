//! Statements about channels: `connect`, `send`, `receive`, `select` and their like.

use super::{Parse, Parser};
use crate::syntax::ast::{End, Expr, ExprKind, SelectArm};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    pub(super) fn connect(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let from = self.end()?;
        self.expect_word(Kind::To, "connect a to b")?;
        let to = self.end()?;
        Ok(self.node(first, ExprKind::Connect(from, to)))
    }

    pub(super) fn disconnect(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let end = self.end()?;
        Ok(self.node(first, ExprKind::Disconnect(end)))
    }

    /// A channel, or a published name `on` an address.
    fn end(&mut self) -> Parse<End> {
        let channel = Box::new(self.expression()?);
        let address = if self.eat(Kind::On) {
            Some(Box::new(self.expression()?))
        } else {
            None
        };
        Ok(End { channel, address })
    }

    pub(super) fn publish(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let channel = Box::new(self.expression()?);
        self.expect_word(Kind::As, "publish channel as \"name\"")?;
        let name = Box::new(self.expression()?);
        Ok(self.node(first, ExprKind::Publish { channel, name }))
    }

    pub(super) fn send(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let value = Box::new(self.clause()?);
        self.expect_word(Kind::On, "send value on channel")?;
        let channel = Box::new(self.place("a channel")?);
        Ok(self.node(first, ExprKind::Send { value, channel }))
    }

    pub(super) fn receive(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let name = self.name("the received value")?;
        self.expect_word(Kind::From, "receive x from channel")?;
        let channel = Box::new(self.place("a channel")?);
        Ok(self.node(first, ExprKind::Receive { name, channel }))
    }

    pub(super) fn acknowledge(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let name = self.name("the received value")?;
        self.expect_word(Kind::From, "acknowledge x from channel after { … }")?;
        let channel = Box::new(self.place("a channel")?);
        self.expect_word(Kind::After, "acknowledge x from channel after { … }")?;
        let body = Box::new(self.clause()?);
        Ok(self.node(
            first,
            ExprKind::Acknowledge {
                name,
                channel,
                body,
            },
        ))
    }

    /// `select { arms }`
    pub(super) fn alternatives(&mut self) -> Parse<Expr> {
        let first = self.bump();
        if self.kind() != Kind::OpenBrace {
            return Err(self.select_brace_expected(first));
        }
        let open = self.bump();
        let outer_parens = std::mem::replace(&mut self.parens, 0);
        let mut arms = Vec::new();
        let mut default = None;
        loop {
            self.skip_semicolons();
            let start = self.at;
            let read = match self.kind() {
                Kind::CloseBrace => {
                    self.bump();
                    break;
                }
                Kind::Receive | Kind::Acknowledge => {
                    if let (Some(_), token) = (&default, self.token()) {
                        self.arm_after_default(token);
                    }
                    self.select_arm().map(|arm| arms.push(arm))
                }
                Kind::Default => self.select_default().map(|body| default = Some(body)),
                Kind::End | Kind::Component | Kind::Constructor | Kind::Behaviour => {
                    self.unclosed_brace(open);
                    break;
                }
                _ => Err(self.no_select_arm(open, !arms.is_empty() || default.is_some())),
            };
            if read.is_err() {
                self.parens = 0;
                self.skip_to_select_arm(start);
            }
        }
        self.parens = outer_parens;
        Ok(self.node(first, ExprKind::Select { arms, default }))
    }

    fn select_default(&mut self) -> Parse<Box<Expr>> {
        self.bump();
        if !self.eat(Kind::Colon) {
            self.colon_expected("`default`")?;
        }
        Ok(Box::new(self.clause()?))
    }

    fn select_arm(&mut self) -> Parse<SelectArm> {
        let first: Token = self.bump();
        let acknowledge = first.kind == Kind::Acknowledge;
        let example = if acknowledge {
            "acknowledge x from channel after: …"
        } else {
            "receive x from channel: …"
        };
        let name = self.name("the received value")?;
        self.expect_word(Kind::From, example)?;
        let channel = self.place("a channel")?;
        let guard = if self.eat(Kind::When) {
            Some(self.clause()?)
        } else {
            None
        };
        if acknowledge {
            self.expect_word(Kind::After, example)?;
        }
        self.arm_colon("the head of the arm")?;
        let body = self.clause()?;
        Ok(SelectArm {
            acknowledge,
            name,
            channel,
            guard,
            body,
            span: self.span_from(first),
        })
    }
}
