//! Declarations: procedures and components.

use super::body::Finished;
use super::scope::{Binding, InterfaceId};
use super::types::sorted_ports;
use super::{
    BodyKind, BodyState, Checker, ComponentEntry, ComponentState, Forward, ProcEntry, Signature,
};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::syntax::ast::{
    Block, ComponentDeclaration, ConstructorDeclaration, Declaration, Group, MemberDeclaration,
    Name, ProcBody, ProcDeclaration,
};
use crate::tree::{
    Body, Channel, Component, ComponentId, Member, MemberId, PortId, ProcCode, ProcId,
};
use crate::types::{Port, Type, TypeId};
use std::mem;

impl<'a> Checker<'a> {
    pub(super) fn declaration(&mut self, declaration: &'a Declaration) {
        match declaration {
            Declaration::Type(declaration) => {
                let binding = self.type_declaration(declaration);
                self.declare(declaration.name, binding);
            }
            Declaration::Proc(declaration) => self.proc(declaration, None),
            Declaration::Component(declaration) => {
                let id = self.open_component(declaration);
                self.component_text(declaration, id);
                self.declare(declaration.name, Binding::Component(id));
            }
        }
    }

    // ---- procedures ----

    fn proc(&mut self, declaration: &'a ProcDeclaration, owner: Option<ComponentId>) {
        let (id, params) = self.open_proc(declaration, owner);
        self.proc_code(declaration, id, &params);
        self.declare(declaration.name, Binding::Proc(id));
    }

    /// Names and types of parameters, groups taken apart.
    pub(super) fn params(&mut self, groups: &'a [Group]) -> Vec<(Name, TypeId)> {
        let mut params = Vec::new();
        for group in groups {
            let ty = self.resolve(&group.ty);
            params.extend(group.names.iter().map(|&name| (name, ty)));
        }
        params
    }

    /// The heading: number, type, parameters.
    pub(super) fn open_proc(
        &mut self,
        declaration: &'a ProcDeclaration,
        owner: Option<ComponentId>,
    ) -> (ProcId, Vec<(Name, TypeId)>) {
        let params = self.params(&declaration.params);
        let result = match &declaration.result {
            Some(result) => self.resolve(result),
            None => TypeId::VOID,
        };
        let ty = match readable(&declaration.params) {
            true => self.proc_type(params.iter().map(|&(_, ty)| ty).collect(), result),
            false => TypeId::ERROR,
        };
        let native = matches!(declaration.body, ProcBody::Native { .. });
        let owner = owner.filter(|_| !native);
        let id = self.proc_number(declaration.name, ty);
        let entry = ProcEntry {
            name: declaration.name.symbol,
            owner,
            ty,
            result,
            span: declaration.name.span,
            captures: false,
            uses: Vec::new(),
            code: None,
        };
        match self.procs.get_mut(id.index()) {
            Some(promised) => *promised = entry,
            None => self.procs.push(entry),
        }
        (id, params)
    }

    /// A new number, or the one that calls through the procedure's type already use.
    fn proc_number(&mut self, name: Name, ty: TypeId) -> ProcId {
        let next = ProcId(self.procs.len() as u32);
        let Some(component) = &mut self.at.component else {
            return next;
        };
        let promised = component
            .forwards
            .iter_mut()
            .find(|f| f.name == name.symbol && f.ty == ty && !f.declared);
        if let Some(forward) = promised {
            forward.declared = true;
            return forward.proc;
        }
        // Calls inside the procedure itself go through the type of its name, if there is one.
        let typed = self
            .at
            .scopes
            .lookup(name.symbol)
            .map(|entry| entry.binding);
        if matches!(typed, Some(Binding::Type(named, _)) if named == ty) {
            component.forwards.push(Forward {
                name: name.symbol,
                ty,
                proc: next,
                span: name.span,
                declared: true,
            });
        }
        next
    }

    pub(super) fn proc_code(
        &mut self,
        declaration: &'a ProcDeclaration,
        id: ProcId,
        params: &[(Name, TypeId)],
    ) {
        let code = match &declaration.body {
            ProcBody::Native {
                symbol,
                blocks,
                raises,
            } => ProcCode::Native {
                symbol: *symbol,
                params: params.iter().map(|&(_, ty)| ty).collect(),
                blocks: *blocks,
                raises: *raises,
            },
            ProcBody::Block(block) => {
                ProcCode::Body(self.proc_body(declaration, block, id, params))
            }
        };
        self.procs[id.index()].code = Some(code);
    }

    fn proc_body(
        &mut self,
        declaration: &ProcDeclaration,
        block: &'a Block,
        id: ProcId,
        params: &[(Name, TypeId)],
    ) -> Body {
        let result = self.procs[id.index()].result;
        let mut state = BodyState::new(BodyKind::Proc(result));
        state.proc = Some((declaration.name.symbol, id));
        let Finished { body, mut state } = self.body(state, params, block);
        let entry = &mut self.procs[id.index()];
        entry.captures = state.captures;
        entry.uses = mem::take(&mut state.uses);
        if result != TypeId::VOID {
            self.result_rules(declaration, result, &body, &state);
        }
        body
    }

    /// A procedure with a result must contain a `return`, and where its end can be reached the
    /// result needs a default.
    fn result_rules(
        &mut self,
        declaration: &ProcDeclaration,
        result: TypeId,
        body: &Body,
        state: &BodyState,
    ) {
        let word = self.name(declaration.name.symbol);
        let shown = self.show(result);
        let heading = declaration.name.span;
        if !state.returns {
            self.report(
                Diagnostic::error(
                    code::NO_RETURN,
                    format!("procedure `{word}` has a result but no `return`"),
                    heading,
                    format!("declared to yield `{shown}`"),
                )
                .with_help(
                    "end it with `return ...`; a value as the last statement is not a result",
                ),
            );
        } else if body.block.ty != TypeId::NEVER && !self.has_default(result) {
            self.report(
                Diagnostic::error(
                    code::NO_DEFAULT,
                    format!("procedure `{word}` may end without `return`, and `{shown}` has no default value"),
                    heading,
                    format!("must yield {}", self.show_full(result)),
                )
                .with_label(closing_brace(body.block.span), "its end can be reached")
                .with_note("Only numbers, bool, string and enums have a default value.")
                .with_help("return a value at the end as well"),
            );
        }
    }

    // ---- components ----

    /// The heading: number, type and channels.
    pub(super) fn open_component(&mut self, declaration: &'a ComponentDeclaration) -> ComponentId {
        let (channels, unknown_ports) = self.presented(declaration);
        let ports = sorted_ports(channels.iter().map(|channel| Port {
            name: channel.name,
            direction: channel.direction,
            payload: channel.payload,
        }));
        let faulty = ports.iter().any(|port| port.payload == TypeId::ERROR);
        let ty = if faulty || unknown_ports {
            TypeId::ERROR
        } else {
            self.types.intern(Type::Component(ports))
        };
        self.remember_name(ty, declaration.name.symbol);
        // Only now: looking for the interfaces may bring components of the prelude.
        let id = ComponentId(self.components.len() as u32);
        self.components.push(ComponentEntry {
            name: declaration.name.symbol,
            span: declaration.name.span,
            ty,
            channels,
            constructors: Vec::new(),
            unknown_ports,
            service: declaration.name.span.source != SourceId::USER,
            done: None,
        });
        id
    }

    /// The channels of all interfaces, in the order these list them, and whether some are
    /// missing because of a mistake.
    fn presented(&mut self, declaration: &'a ComponentDeclaration) -> (Vec<Channel>, bool) {
        let mut channels: Vec<Channel> = Vec::new();
        let mut unknown = declaration.presents.is_empty();
        for &name in &declaration.presents {
            let Some(interface) = self.interface_named(name, &mut unknown) else {
                unknown = true;
                continue;
            };
            for at in 0..self.interfaces[interface.0 as usize].len() {
                let (port, span) = self.interfaces[interface.0 as usize][at];
                let earlier = channels.iter().find(|channel| channel.name == port.name);
                if let Some(earlier) = earlier {
                    let first = earlier.span;
                    self.channel_twice(name, port, first, span);
                    continue;
                }
                channels.push(Channel {
                    name: port.name,
                    direction: port.direction,
                    payload: port.payload,
                    span,
                });
            }
        }
        (channels, unknown)
    }

    fn interface_named(&mut self, name: Name, unknown: &mut bool) -> Option<InterfaceId> {
        match self.find(name.symbol) {
            Some(Binding::Type(ty, Some(interface))) => {
                *unknown |= ty == TypeId::ERROR;
                return Some(interface);
            }
            Some(Binding::Faulty | Binding::Type(TypeId::ERROR, None)) => {}
            Some(binding) => self.not_an_interface(name, binding),
            None => self.undeclared(name, super::name::Wanted::Interface),
        }
        None
    }

    #[cold]
    fn not_an_interface(&mut self, name: Name, binding: Binding) {
        let word = self.name(name.symbol);
        let what = self.kind_of(binding);
        let diagnostic = Diagnostic::error(
            code::NOT_AN_INTERFACE,
            format!("`{word}` is {what}, not an interface"),
            name.span,
            "a component presents interfaces",
        )
        .with_help(format!(
            "declare one: `type I{word} is interface(in integer ... ; out integer ...)`"
        ));
        let declared = self.declared_at(name.symbol);
        let diagnostic =
            self.with_declaration(diagnostic, declared, format!("declared as {what} here"));
        self.report(diagnostic);
    }

    #[cold]
    fn channel_twice(&mut self, interface: Name, port: Port, first: Span, second: Span) {
        let word = self.name(port.name);
        let diagnostic = Diagnostic::error(
            code::DUPLICATE_CHANNEL,
            format!("two interfaces of this component have a channel `{word}`"),
            interface.span,
            "this interface brings it a second time",
        );
        let diagnostic = self.with_declaration(diagnostic, first, "first here");
        let diagnostic = if second == first {
            diagnostic.with_help("name each interface once")
        } else {
            self.with_declaration(diagnostic, second, "and here")
                .with_help("give one of the channels another name")
        };
        self.report(diagnostic);
    }

    /// The parameters of a prelude component's constructors, before its text is checked.
    pub(super) fn open_constructors(
        &mut self,
        declaration: &'a ComponentDeclaration,
        id: ComponentId,
    ) {
        let signatures = declaration
            .constructors
            .iter()
            .map(|constructor| Signature {
                params: self.param_types(constructor),
                span: constructor.head,
            })
            .collect();
        self.components[id.index()].constructors = signatures;
    }

    fn param_types(&mut self, constructor: &'a ConstructorDeclaration) -> Option<Vec<TypeId>> {
        let params = self.params(&constructor.params);
        readable(&constructor.params).then(|| params.into_iter().map(|(_, ty)| ty).collect())
    }

    /// Members, constructors and behaviour.
    pub(super) fn component_text(
        &mut self,
        declaration: &'a ComponentDeclaration,
        id: ComponentId,
    ) {
        let outer = self.at.component.replace(ComponentState {
            id,
            declaration,
            unknown_ports: self.components[id.index()].unknown_ports,
            members: Vec::new(),
            forwards: Vec::new(),
            leaving: Vec::new(),
        });
        let first_proc = self.procs.len();
        self.at.scopes.enter();
        self.bind_ports(id);
        for member in &declaration.members {
            self.component_member(member, id);
        }
        let constructors = self.constructors(declaration, id);
        let state = BodyState::new(BodyKind::Behaviour);
        let behaviour = self.body(state, &[], &declaration.behaviour).body;
        self.at.scopes.leave();
        let state = mem::replace(&mut self.at.component, outer);
        let state = state.expect("the component under check");
        self.check_forwards(state.forwards);
        self.spread_captures(first_proc);
        self.check_leaving(state.leaving);
        let entry = &mut self.components[id.index()];
        entry.done = Some(Component {
            name: entry.name,
            ty: entry.ty,
            channels: mem::take(&mut entry.channels),
            members: state.members,
            constructors,
            behaviour,
            service: entry.service,
            span: entry.span,
            used: true,
        });
    }

    /// A procedure that uses one that names its component's members does so itself. The component's
    /// procedures are among those from `first` on.
    fn spread_captures(&mut self, first: usize) {
        let mut users = vec![Vec::new(); self.procs.len() - first];
        for (at, proc) in self.procs.iter().enumerate().skip(first) {
            for used in &proc.uses {
                users[used.index() - first].push(at);
            }
        }
        let mut left: Vec<usize> = (first..self.procs.len())
            .filter(|&at| self.procs[at].captures)
            .collect();
        while let Some(at) = left.pop() {
            for &user in &users[at - first] {
                if !mem::replace(&mut self.procs[user].captures, true) {
                    left.push(user);
                }
            }
        }
    }

    fn bind_ports(&mut self, id: ComponentId) {
        for at in 0..self.components[id.index()].channels.len() {
            let channel = &self.components[id.index()].channels[at];
            let (symbol, span) = (channel.name, channel.span);
            let (direction, payload) = (channel.direction, channel.payload);
            let ty = self.channel_type(direction, payload);
            self.declare(Name { symbol, span }, Binding::Port(PortId(at as u32), ty));
        }
    }

    fn component_member(&mut self, member: &'a MemberDeclaration, id: ComponentId) {
        match member {
            MemberDeclaration::Type(declaration) => {
                let binding = self.type_declaration(declaration);
                self.declare(declaration.name, binding);
            }
            MemberDeclaration::Proc(declaration) => self.proc(declaration, Some(id)),
            MemberDeclaration::Variable { name, value, .. } => {
                let init = self.initialiser(value);
                let ty = init.block.ty;
                let Some(component) = &mut self.at.component else {
                    return;
                };
                let number = MemberId(component.members.len() as u32);
                component.members.push(Member {
                    name: name.symbol,
                    ty,
                    init,
                    span: name.span,
                });
                self.declare(*name, Binding::Member(number, ty));
            }
        }
    }

    fn constructors(
        &mut self,
        declaration: &'a ComponentDeclaration,
        id: ComponentId,
    ) -> Vec<Body> {
        let mut signatures: Vec<Signature> = Vec::new();
        let mut bodies = Vec::new();
        for constructor in &declaration.constructors {
            let params = self.params(&constructor.params);
            let types = readable(&constructor.params)
                .then(|| params.iter().map(|&(_, ty)| ty).collect::<Vec<TypeId>>());
            let known = types
                .as_ref()
                .is_some_and(|types| !types.contains(&TypeId::ERROR));
            let mut alike = signatures.iter().filter(|_| known);
            if let Some(earlier) = alike.find(|earlier| earlier.params == types) {
                let first = earlier.span;
                self.same_constructor(constructor, first);
            }
            let state = BodyState::new(BodyKind::Constructor);
            bodies.push(self.body(state, &params, &constructor.body).body);
            signatures.push(Signature {
                params: types,
                span: constructor.head,
            });
        }
        self.components[id.index()].constructors = signatures;
        bodies
    }

    #[cold]
    fn same_constructor(&mut self, constructor: &ConstructorDeclaration, first: Span) {
        self.report(
            Diagnostic::error(
                code::SAME_CONSTRUCTOR,
                "two constructors take the same types",
                constructor.head,
                "this one could never be chosen",
            )
            .with_label(first, "the first one")
            .with_help("constructors differ by the types of their parameters only"),
        );
    }
}

/// Whether the parser could read all parameters: a list that broke off ends in a group without
/// names.
fn readable(params: &[Group]) -> bool {
    params.iter().all(|group| !group.names.is_empty())
}

/// The last character of a block.
fn closing_brace(block: Span) -> Span {
    Span {
        start: block.end.saturating_sub(1).max(block.start),
        ..block
    }
}
