//! `new`: channels, components, structs and arrays.

use super::{Parse, Parser};
use crate::source::Span;
use crate::syntax::ast::{Direction, Expr, ExprKind};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    pub(super) fn creation(&mut self) -> Parse<Expr> {
        let first = self.bump();
        let kind = match self.kind() {
            Kind::In => {
                self.bump();
                ExprKind::NewChannel(Direction::In, self.nested(Self::ty)?)
            }
            Kind::Out => {
                self.bump();
                ExprKind::NewChannel(Direction::Out, self.nested(Self::ty)?)
            }
            Kind::Name if self.kind_ahead(1) != Kind::OpenBracket => {
                if !self.continues() && self.kind_ahead(1) != Kind::OpenParen {
                    return Err(self.type_expected());
                }
                self.instance(first)?
            }
            kind if kind.begins_type() => self.array(first)?,
            _ => return Err(self.type_expected()),
        };
        Ok(Expr {
            kind,
            span: self.span_from(first),
        })
    }

    /// `C(args)`
    fn instance(&mut self, first: Token) -> Parse<ExprKind> {
        let name = self.name("a component or struct")?;
        if self.kind() != Kind::OpenParen || !self.continues() {
            self.new_without_arguments(first, name);
            return Ok(ExprKind::Error);
        }
        let open = self.bump();
        let args = self.arguments(open)?;
        Ok(ExprKind::NewNamed { name, args })
    }

    /// `integer[2][3] of e`
    fn array(&mut self, first: Token) -> Parse<ExprKind> {
        let element = self.base_type()?;
        if self.kind() != Kind::OpenBracket {
            return Err(self.array_expected(first, element.span));
        }
        let mut lengths = Vec::new();
        while self.kind() == Kind::OpenBracket {
            self.array_length(&mut lengths)?;
        }
        if self.kind() != Kind::Of {
            return Err(self.array_without_value(first));
        }
        self.bump();
        let init = Box::new(self.nested(Self::expression)?);
        Ok(ExprKind::NewArray {
            element,
            lengths,
            init,
        })
    }

    /// `[3]`. A length that is no literal is reported and left out, one stands in for it.
    fn array_length(&mut self, lengths: &mut Vec<(u32, Span)>) -> Parse<()> {
        let open = self.bump();
        let token = self.token();
        if token.kind == Kind::Integer && self.kind_ahead(1) == Kind::CloseBracket {
            lengths.push((token.payload, self.span_of(token)));
            self.bump();
            self.bump();
            return Ok(());
        }
        let wrong = self.enclosed(|this| {
            let start = this.token();
            if this.kind() != Kind::CloseBracket {
                this.clause()?;
                while this.eat(Kind::Comma) {
                    this.clause()?;
                }
            }
            let span = if this.kind() == Kind::CloseBracket && this.token() == start {
                this.span_of(open).to(this.here())
            } else {
                this.span_from(start)
            };
            this.close(open)?;
            Ok(span)
        })?;
        self.length_no_literal(wrong);
        lengths.push((1, wrong));
        Ok(())
    }
}
