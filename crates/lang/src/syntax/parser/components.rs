//! Components: members, then constructors, then the behaviour.

use super::{Parse, Parser, Returns};
use crate::source::Span;
use crate::syntax::ast::{
    Block, ComponentDeclaration, ConstructorDeclaration, Expr, ExprKind, MemberDeclaration, Name,
};
use crate::syntax::token::{Kind, Token};

/// The parts of a component, as far as read.
#[derive(Default)]
struct Parts {
    members: Vec<MemberDeclaration>,
    constructors: Vec<ConstructorDeclaration>,
    behaviour: Option<(Block, Span)>,
    /// Parts in the wrong order were reported: once is enough.
    disorder_reported: bool,
    /// Something was not read, so that what is missing may have been there.
    broken: bool,
}

impl Parser<'_> {
    pub(super) fn component(&mut self) -> Parse<ComponentDeclaration> {
        let first = self.bump();
        let name = self.name("the component")?;
        let presents = self.presents(name).unwrap_or_else(|_| {
            self.recover_head(0);
            Vec::new()
        });
        let mut parts = Parts::default();
        if self.kind() == Kind::OpenBrace {
            let returns = std::mem::replace(&mut self.returns, Returns::Misplaced);
            let open = self.bump();
            self.parts(open, &mut parts);
            self.returns = returns;
        } else {
            parts.broken = true;
            self.component_brace_expected(name.span);
        }
        let lacks = (parts.constructors.is_empty(), parts.behaviour.is_none());
        if !parts.broken && lacks != (false, false) {
            self.incomplete_component(name, lacks.0, lacks.1);
        }
        let span = self.span_from(first);
        Ok(ComponentDeclaration {
            name,
            presents,
            members: parts.members,
            constructors: parts.constructors,
            behaviour: match parts.behaviour {
                Some((block, _)) => block,
                None => super::declarations::empty_block(span.after()),
            },
            span,
        })
    }

    fn presents(&mut self, component: Name) -> Parse<Vec<Name>> {
        if !self.eat(Kind::Presents) {
            self.presents_expected(component)?;
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        loop {
            if self.kind() == Kind::Interface {
                return Err(self.unnamed_interface());
            }
            names.push(self.name("an interface")?);
            if !self.eat(Kind::Comma) {
                return Ok(names);
            }
        }
    }

    /// Everything between the braces of a component, and the closing one.
    fn parts(&mut self, open: Token, parts: &mut Parts) {
        loop {
            self.skip_semicolons();
            match self.kind() {
                Kind::CloseBrace => {
                    self.bump();
                    return;
                }
                Kind::End => {
                    parts.broken = true;
                    return self.unclosed_brace(open);
                }
                Kind::Component if !self.stands_inside(open) => {
                    parts.broken = true;
                    return self.unclosed_brace(open);
                }
                _ => self.part(parts),
            }
        }
    }

    fn part(&mut self, parts: &mut Parts) {
        let (start, errors) = (self.at, self.diagnostics.len());
        let known = (
            parts.members.len(),
            parts.constructors.len(),
            parts.behaviour.is_some(),
        );
        let read = self.part_by_kind(parts);
        let now = (
            parts.members.len(),
            parts.constructors.len(),
            parts.behaviour.is_some(),
        );
        match read {
            Ok(()) => self.separate(),
            Err(_) => {
                if self.at == start {
                    self.bump();
                }
                let opened = std::mem::replace(&mut self.parens, 0);
                self.recover(opened);
            }
        }
        parts.broken |= self.diagnostics.len() > errors && known == now;
    }

    fn part_by_kind(&mut self, parts: &mut Parts) -> Parse<()> {
        match self.kind() {
            Kind::Constructor => self.constructor(parts),
            Kind::Behaviour => self.behaviour(parts),
            Kind::Type if !self.names_reserved_word() => {
                self.member_order(parts);
                let member = self.type_declaration()?;
                parts.members.push(MemberDeclaration::Type(member));
                Ok(())
            }
            Kind::Proc => {
                self.member_order(parts);
                let member = self.proc_declaration()?;
                parts.members.push(MemberDeclaration::Proc(member));
                Ok(())
            }
            Kind::Component => {
                self.declaration_in_body();
                let first = self.token();
                self.misplaced_declaration(first);
                Ok(())
            }
            Kind::Name if self.kind_ahead(1) == Kind::Equals => {
                self.member_order(parts);
                self.member_variable(parts)
            }
            Kind::Name if self.misspelt_part() => {
                self.bump();
                self.part_by_spelling(parts)
            }
            _ => self.no_member(&mut parts.members),
        }
    }

    /// After a misspelt `behaviour` or `constructor` was reported and passed.
    fn part_by_spelling(&mut self, parts: &mut Parts) -> Parse<()> {
        self.at -= 1;
        if self.kind_ahead(1) == Kind::OpenBrace {
            self.behaviour(parts)
        } else {
            self.constructor(parts)
        }
    }

    fn member_variable(&mut self, parts: &mut Parts) -> Parse<()> {
        let name = self.bump();
        self.bump();
        let parens = self.parens;
        let value = self.clause().unwrap_or_else(|_| {
            let opened = std::mem::replace(&mut self.parens, parens) - parens;
            self.recover(opened);
            self.error_expr(self.span_of(name))
        });
        let span = self.span_of(name).to(value.span);
        parts.members.push(MemberDeclaration::Variable {
            name: self.name_of(name),
            value,
            span,
        });
        Ok(())
    }

    fn constructor(&mut self, parts: &mut Parts) -> Parse<()> {
        let first = self.bump();
        if let Some((_, behaviour)) = &parts.behaviour {
            let behaviour = *behaviour;
            self.disorder(parts, first, behaviour);
        }
        let params = self.params("`constructor`");
        let broken = params.is_err();
        let params = params.unwrap_or_else(|_| {
            let opened = std::mem::replace(&mut self.parens, 0);
            self.recover_head(opened);
            self.unknown_params()
        });
        let head = self.span_from(first);
        let body = self.body(Returns::Misplaced, "constructor", head, broken);
        parts
            .constructors
            .push(ConstructorDeclaration { params, body, head });
        Ok(())
    }

    fn behaviour(&mut self, parts: &mut Parts) -> Parse<()> {
        let first = self.bump();
        let head = self.span_of(first);
        let earlier = parts.behaviour.as_ref().map(|(_, earlier)| *earlier);
        if let Some(earlier) = earlier {
            self.second_behaviour(head, earlier);
        }
        if self.kind() == Kind::OpenParen && self.kind_ahead(1) == Kind::CloseParen {
            self.behaviour_with_parens();
        }
        let body = self.body(Returns::Misplaced, "behaviour", head, false);
        if earlier.is_none() {
            parts.behaviour = Some((body, head));
        }
        Ok(())
    }

    /// Members come before constructors and behaviour.
    fn member_order(&mut self, parts: &mut Parts) {
        let earlier = match (parts.constructors.first(), &parts.behaviour) {
            (Some(constructor), _) => constructor.head,
            (None, Some((_, behaviour))) => *behaviour,
            (None, None) => return,
        };
        let token = self.token();
        self.disorder(parts, token, earlier);
    }

    fn disorder(&mut self, parts: &mut Parts, late: Token, earlier: Span) {
        if !std::mem::replace(&mut parts.disorder_reported, true) {
            self.parts_out_of_order(late, earlier);
        }
    }

    /// A member for whatever could be read of a faulty one.
    pub(super) fn faulty_member(&self, name: Name, value: Option<Expr>) -> MemberDeclaration {
        let value = value.unwrap_or(Expr {
            kind: ExprKind::Error,
            span: name.span,
        });
        let span = name.span.to(value.span);
        MemberDeclaration::Variable { name, value, span }
    }
}
