//! Types, and the groups of parameters, fields and ports.

use super::{Parse, Parser};
use crate::syntax::ast::{Direction, Group, Name, Type, TypeKind};
use crate::syntax::token::{Kind, Token};

impl Parser<'_> {
    /// A type with its brackets. A channel takes all that follow: `in integer[]` carries arrays.
    pub(super) fn ty(&mut self) -> Parse<Type> {
        let first = self.token();
        let outer_deepest = std::mem::replace(&mut self.deepest, self.depth);
        let mut ty = self.base_type()?;
        while self.kind() == Kind::OpenBracket {
            let open = self.bump();
            if self.kind() != Kind::CloseBracket {
                return Err(self.length_in_type(open));
            }
            self.bump();
            self.deepest += 1;
            if self.deepest > super::DEPTH_LIMIT {
                return Err(self.too_deep());
            }
            ty = Type {
                kind: TypeKind::Array(Box::new(ty)),
                span: self.span_from(first),
            };
        }
        self.deepest = self.deepest.max(outer_deepest);
        Ok(ty)
    }

    /// A type without brackets after it.
    pub(super) fn base_type(&mut self) -> Parse<Type> {
        let first = self.token();
        let kind = match first.kind {
            Kind::IntegerType => TypeKind::Integer,
            Kind::UnsignedType => TypeKind::Unsigned,
            Kind::RealType => TypeKind::Real,
            Kind::BoolType => TypeKind::Bool,
            Kind::ByteType => TypeKind::Byte,
            Kind::StringType => TypeKind::String,
            Kind::Any => TypeKind::Any,
            Kind::Name => TypeKind::Named(self.name_of(first).symbol),
            Kind::In | Kind::Out | Kind::Interface | Kind::Struct | Kind::Enum | Kind::Proc => {
                let kind = self.nested(Self::built_type)?;
                return Ok(Type {
                    kind,
                    span: self.span_from(first),
                });
            }
            _ => return Err(self.type_expected()),
        };
        self.bump();
        Ok(Type {
            kind,
            span: self.span_of(first),
        })
    }

    /// The types made of others.
    fn built_type(&mut self) -> Parse<TypeKind> {
        match self.bump().kind {
            Kind::In => Ok(TypeKind::Channel(Direction::In, Box::new(self.ty()?))),
            Kind::Out => Ok(TypeKind::Channel(Direction::Out, Box::new(self.ty()?))),
            Kind::Interface => {
                let open = self.open_paren("interface", "interface(in integer a; out bool b)")?;
                Ok(TypeKind::Interface(self.ports(open)?))
            }
            Kind::Struct => {
                let open = self.open_paren("struct", "struct(integer x, y; string name)")?;
                Ok(TypeKind::Struct(self.groups(open)?))
            }
            Kind::Enum => {
                let open = self.open_paren("enum", "enum(red, green, blue)")?;
                Ok(TypeKind::Enum(self.labels(open)?))
            }
            _ => self.proc_type(),
        }
    }

    fn proc_type(&mut self) -> Parse<TypeKind> {
        let open = self.open_paren("proc", "proc(integer; string) : bool")?;
        let mut params = Vec::new();
        self.skip_semicolons();
        while !self.eat_close() {
            params.push(self.ty()?);
            if self.kind() == Kind::Comma {
                self.comma_between_types();
                self.bump();
            } else if self.kind() == Kind::Name && self.continues_group() {
                return Err(self.named_parameter_of_type());
            } else {
                self.group_end(open)?;
            }
        }
        let result = if self.kind() == Kind::Colon && self.kind_ahead(1).begins_type() {
            self.bump();
            Some(Box::new(self.ty()?))
        } else {
            None
        };
        Ok(TypeKind::Proc { params, result })
    }

    fn labels(&mut self, open: Token) -> Parse<Vec<Name>> {
        let mut labels = Vec::new();
        loop {
            labels.push(self.name("a label")?);
            if !self.eat(Kind::Comma) {
                self.close(open)?;
                self.parens -= 1;
                return Ok(labels);
            }
        }
    }

    fn ports(&mut self, open: Token) -> Parse<Vec<(Direction, Group)>> {
        let mut ports = Vec::new();
        self.skip_semicolons();
        while !self.eat_close() {
            let direction = match self.kind() {
                Kind::In => Direction::In,
                Kind::Out => Direction::Out,
                _ => return Err(self.direction_expected(open)),
            };
            self.bump();
            ports.push((direction, self.group(open, "a channel")?));
        }
        Ok(ports)
    }

    /// Parameters or fields, up to the closing parenthesis: `integer w, h; string name`.
    pub(super) fn groups(&mut self, open: Token) -> Parse<Vec<Group>> {
        let mut groups = Vec::new();
        self.skip_semicolons();
        while !self.eat_close() {
            groups.push(self.group(open, "a parameter or field")?);
        }
        Ok(groups)
    }

    /// One type with its names, and what ends the group.
    fn group(&mut self, open: Token, what: &str) -> Parse<Group> {
        let first = self.token();
        let ty = self.ty()?;
        if matches!(
            self.kind(),
            Kind::Comma | Kind::CloseParen | Kind::Semicolon | Kind::Colon
        ) {
            return Err(self.group_without_name(first, what));
        }
        let mut names = vec![self.name(what)?];
        while self.kind() == Kind::Comma {
            if self.comma_joins_groups() {
                self.comma_between_groups(open);
                self.bump();
                return Ok(Group { ty, names });
            }
            self.bump();
            names.push(self.name(what)?);
        }
        self.group_end(open)?;
        Ok(Group { ty, names })
    }

    /// Whether the comma at the cursor is followed by a type and a name instead of a name.
    fn comma_joins_groups(&self) -> bool {
        let next = self.kind_ahead(1);
        let named = next == Kind::Name
            && (self.kind_ahead(2) == Kind::Name
                || (self.kind_ahead(2) == Kind::OpenBracket
                    && self.kind_ahead(3) == Kind::CloseBracket));
        let breaks = self
            .tokens
            .get(self.at + 2)
            .is_some_and(|token| token.after_break);
        next.is_type_keyword() || (named && !breaks)
    }

    fn continues_group(&self) -> bool {
        !self.token().after_break
    }

    /// Between groups stands `;` or a line break.
    fn group_end(&mut self, open: Token) -> Parse<()> {
        match self.kind() {
            Kind::CloseParen => Ok(()),
            Kind::Semicolon => {
                self.skip_semicolons();
                Ok(())
            }
            kind if kind.begins_type() && !self.continues_group() && !self.list_broke_off() => {
                Ok(())
            }
            _ => Err(self.unclosed_groups(open)),
        }
    }

    /// The `)` after groups. It is counted so that recovery knows what is open.
    fn eat_close(&mut self) -> bool {
        let closes = self.eat(Kind::CloseParen);
        if closes {
            self.parens -= 1;
        }
        closes
    }

    /// The `(` of a type or a parameter list.
    fn open_paren(&mut self, after: &str, example: &str) -> Parse<Token> {
        if self.kind() == Kind::OpenParen {
            self.parens += 1;
            return Ok(self.bump());
        }
        Err(self.paren_expected(after, example))
    }
}
