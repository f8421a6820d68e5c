//! Written types to interned types.

use super::Checker;
use super::scope::{Binding, InterfaceId};
use super::show::word;
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::syntax::ast::{self, Direction, Group, Name, TypeDeclaration, TypeKind};
use crate::types::{Port, Type, TypeId};

impl<'a> Checker<'a> {
    /// `type x is …`: what `x` then stands for. Binding it is the caller's.
    pub(super) fn type_declaration(&mut self, declaration: &'a TypeDeclaration) -> Binding {
        let (ty, interface) = match &declaration.ty.kind {
            TypeKind::Interface(groups) => {
                let (ty, ports) = self.interface(groups);
                let id = InterfaceId(self.interfaces.len() as u32);
                self.interfaces.push(ports);
                (ty, Some(id))
            }
            TypeKind::Named(symbol) => match self.find(*symbol) {
                Some(Binding::Type(ty, interface)) => (ty, interface),
                _ => (self.resolve(&declaration.ty), None),
            },
            _ => (self.resolve(&declaration.ty), None),
        };
        self.remember_name(ty, declaration.name.symbol);
        Binding::Type(ty, interface)
    }

    /// The first name of a type that has parts; the fixed ones have names of their own.
    pub(super) fn remember_name(&mut self, ty: TypeId, name: Symbol) {
        if ty <= TypeId::NEVER {
            return;
        }
        if self.declared_names.len() <= ty.index() {
            self.declared_names.resize(ty.index() + 1, None);
        }
        let slot = &mut self.declared_names[ty.index()];
        if slot.is_none() {
            *slot = Some(name);
            self.type_names.push((ty, name));
        }
    }

    pub(super) fn resolve(&mut self, ty: &'a ast::Type) -> TypeId {
        match &ty.kind {
            TypeKind::Integer => TypeId::INTEGER,
            TypeKind::Unsigned => TypeId::UNSIGNED,
            TypeKind::Real => TypeId::REAL,
            TypeKind::Bool => TypeId::BOOL,
            TypeKind::Byte => TypeId::BYTE,
            TypeKind::String => TypeId::STRING,
            TypeKind::Any => TypeId::ANY,
            TypeKind::Error => TypeId::ERROR,
            TypeKind::Named(symbol) => self.named_type(*symbol, ty.span),
            TypeKind::Channel(direction, payload) => {
                let payload = self.resolve(payload);
                self.channel_type(*direction, payload)
            }
            TypeKind::Array(element) => {
                let element = self.resolve(element);
                self.array_type(element)
            }
            TypeKind::Interface(groups) => self.interface(groups).0,
            TypeKind::Struct(groups) => self.structure(groups),
            TypeKind::Enum(labels) => self.enumeration(labels),
            TypeKind::Proc { params, result } => {
                let params: Vec<TypeId> = params.iter().map(|param| self.resolve(param)).collect();
                let result = match result {
                    Some(result) => self.resolve(result),
                    None => TypeId::VOID,
                };
                self.proc_type(params, result)
            }
        }
    }

    fn named_type(&mut self, symbol: Symbol, span: Span) -> TypeId {
        match self.find(symbol) {
            Some(Binding::Type(ty, _)) => ty,
            Some(Binding::Component(id)) => self.components[id.index()].ty,
            Some(Binding::Faulty) => TypeId::ERROR,
            Some(binding) => {
                self.value_for_type(symbol, span, binding);
                TypeId::ERROR
            }
            None => {
                self.undeclared(Name { symbol, span }, super::name::Wanted::Type);
                TypeId::ERROR
            }
        }
    }

    /// A mistake inside a type makes the whole of it one, lest it be compared with others.
    fn intern(&mut self, ty: Type, parts: &[TypeId]) -> TypeId {
        if parts.contains(&TypeId::ERROR) {
            TypeId::ERROR
        } else {
            self.types.intern(ty)
        }
    }

    pub(super) fn channel_type(&mut self, direction: Direction, payload: TypeId) -> TypeId {
        self.intern(Type::Channel(direction, payload), &[payload])
    }

    pub(super) fn array_type(&mut self, element: TypeId) -> TypeId {
        self.intern(Type::Array(element), &[element])
    }

    pub(super) fn proc_type(&mut self, params: Vec<TypeId>, result: TypeId) -> TypeId {
        if result == TypeId::ERROR || params.contains(&TypeId::ERROR) {
            return TypeId::ERROR;
        }
        self.types.intern(Type::Proc {
            params: params.into(),
            result,
        })
    }

    fn structure(&mut self, groups: &'a [Group]) -> TypeId {
        let mut fields: Vec<(Symbol, TypeId)> = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        let mut parts = Vec::new();
        for group in groups {
            let mut ty = self.resolve(&group.ty);
            if let Type::Struct(_) = self.types.get(ty) {
                self.struct_in_struct(&group.ty, ty);
                ty = TypeId::ERROR;
            }
            parts.push(ty);
            for name in &group.names {
                if let Some(i) = fields.iter().position(|&(field, _)| field == name.symbol) {
                    self.listed_twice("field", *name, spans[i]);
                    parts.push(TypeId::ERROR);
                } else {
                    fields.push((name.symbol, ty));
                    spans.push(name.span);
                }
            }
        }
        self.intern(Type::Struct(fields.into()), &parts)
    }

    fn struct_in_struct(&mut self, field: &ast::Type, ty: TypeId) {
        let shown = self.show(ty);
        self.report(
            Diagnostic::error(
                code::STRUCT_IN_STRUCT,
                "a struct cannot hold another struct",
                field.span,
                format!("this field would be a {}", self.show_full(ty)),
            )
            .with_note("The size of a struct must be known and fixed.")
            .with_help(format!(
                "hold an array of them, `{shown}[]`, or a box, `any`; or list the fields here"
            )),
        );
    }

    fn enumeration(&mut self, labels: &'a [Name]) -> TypeId {
        let list: Box<[Symbol]> = labels.iter().map(|label| label.symbol).collect();
        let ty = self.types.intern(Type::Enum(list));
        // At the top of the prelude, the index knows the labels.
        if self.at.layer.is_some() && self.at.scopes.depth() == 0 {
            return ty;
        }
        for (position, label) in labels.iter().enumerate() {
            self.declare(*label, Binding::Label(ty, position as u32));
        }
        ty
    }

    /// The type, and the ports in their order of writing.
    fn interface(&mut self, groups: &'a [(Direction, Group)]) -> (TypeId, Vec<(Port, Span)>) {
        let mut ports: Vec<(Port, Span)> = Vec::new();
        let mut parts = Vec::new();
        for (direction, group) in groups {
            let payload = self.resolve(&group.ty);
            parts.push(payload);
            for name in &group.names {
                let earlier = ports.iter().find(|(port, _)| port.name == name.symbol);
                if let Some(&(_, span)) = earlier {
                    self.listed_twice("channel", *name, span);
                    continue;
                }
                let port = Port {
                    name: name.symbol,
                    direction: *direction,
                    payload,
                };
                ports.push((port, name.span));
            }
        }
        let sorted = sorted_ports(ports.iter().map(|&(port, _)| port));
        let ty = self.intern(Type::Component(sorted), &parts);
        (ty, ports)
    }

    fn listed_twice(&mut self, what: &str, name: Name, first: Span) {
        let word = self.name(name.symbol);
        let code = match what {
            "channel" => code::DUPLICATE_CHANNEL,
            _ => code::DECLARED_TWICE,
        };
        self.report(
            Diagnostic::error(
                code,
                format!("the {what} `{word}` is listed twice"),
                name.span,
                "again here",
            )
            .with_label(first, "first here")
            .with_help("give one of them another name"),
        );
    }

    /// `in integer`, for messages about a port.
    pub(super) fn show_port(&self, port: &Port) -> String {
        format!("{} {}", word(port.direction), self.show(port.payload))
    }
}

pub(super) fn sorted_ports(ports: impl Iterator<Item = Port>) -> Box<[Port]> {
    let mut sorted: Vec<Port> = ports.collect();
    sorted.sort_by_key(|port| port.name);
    sorted.into()
}
