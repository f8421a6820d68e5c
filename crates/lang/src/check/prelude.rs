//! The prelude: an index of its declarations, each checked when something names it.
//!
//! Signatures are checked at once, bodies after the user's program. The text of the prelude sees
//! the prelude only, whatever the user calls his own things.

use super::scope::{Binding, Scopes};
use super::{BodyKind, BodyState, CheckPosition, Checker};
use crate::codes::semantic as code;
use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, Span};
use crate::symbol::Symbol;
use crate::syntax::ast::{
    ComponentDeclaration, Declaration, Expr, ExprKind, ProcDeclaration, TypeDeclaration, TypeKind,
    Unit,
};
use crate::tree::{self, Body, ComponentId, Global, GlobalId, ProcId};
use crate::types::TypeId;
use std::mem;

pub(super) struct Index<'a> {
    /// By symbol, the newest unit's entry.
    heads: Vec<u32>,
    entries: Vec<Entry<'a>>,
    /// Bodies still to be checked, with the unit they stand in.
    pending: Vec<(Pending<'a>, u32)>,
}

#[derive(Clone, Copy)]
struct Entry<'a> {
    symbol: Symbol,
    layer: u32,
    item: Item<'a>,
    state: State,
    /// The entry of the same name in an older unit, which this one hides.
    hidden: u32,
}

#[derive(Clone, Copy)]
enum Item<'a> {
    Type(&'a TypeDeclaration),
    Label(&'a TypeDeclaration, u32),
    Proc(&'a ProcDeclaration),
    Component(&'a ComponentDeclaration),
    Global(&'a Expr, GlobalId),
}

#[derive(Clone, Copy)]
enum State {
    Unseen,
    /// Its signature is being checked; it must not depend on itself.
    Busy,
    Done(Binding),
}

enum Pending<'a> {
    Proc(&'a ProcDeclaration, ProcId),
    Component(&'a ComponentDeclaration, ComponentId),
}

const NONE: u32 = u32::MAX;

impl<'a> Index<'a> {
    /// Also makes the table of globals, all of them still unused.
    pub(super) fn new(units: &'a [Unit], symbols: usize) -> (Self, Vec<Global>) {
        let mut index = Index {
            heads: vec![NONE; symbols],
            entries: Vec::with_capacity(256),
            pending: Vec::new(),
        };
        let mut globals = Vec::new();
        for (layer, unit) in units.iter().enumerate() {
            index.add_unit(unit, layer as u32, &mut globals);
        }
        (index, globals)
    }

    fn add_unit(&mut self, unit: &'a Unit, layer: u32, globals: &mut Vec<Global>) {
        for declaration in &unit.declarations {
            match declaration {
                Declaration::Type(ty) => {
                    self.add(ty.name.symbol, layer, Item::Type(ty));
                    if let TypeKind::Enum(labels) = &ty.ty.kind {
                        for (position, label) in labels.iter().enumerate() {
                            self.add(label.symbol, layer, Item::Label(ty, position as u32));
                        }
                    }
                }
                Declaration::Proc(proc) => self.add(proc.name.symbol, layer, Item::Proc(proc)),
                Declaration::Component(component) => {
                    self.add(component.name.symbol, layer, Item::Component(component));
                }
            }
        }
        for statement in &unit.statements {
            if let ExprKind::Declare(name, value) = &statement.kind {
                let id = GlobalId(globals.len() as u32);
                globals.push(unused_global(name.symbol));
                self.add(name.symbol, layer, Item::Global(value, id));
            }
        }
    }

    fn add(&mut self, symbol: Symbol, layer: u32, item: Item<'a>) {
        let hidden = mem::replace(&mut self.heads[symbol.index()], self.entries.len() as u32);
        self.entries.push(Entry {
            symbol,
            layer,
            item,
            state: State::Unseen,
            hidden,
        });
    }

    fn position(&self, symbol: Symbol, newest: u32) -> Option<usize> {
        let mut at = *self.heads.get(symbol.index())?;
        while at != NONE && self.entries[at as usize].layer > newest {
            at = self.entries[at as usize].hidden;
        }
        (at != NONE).then_some(at as usize)
    }

    /// Every name, with whether it is a type.
    pub(super) fn names(&self) -> impl Iterator<Item = (Symbol, bool)> {
        self.entries.iter().map(|entry| {
            let is_type = matches!(entry.item, Item::Type(_) | Item::Component(_));
            (entry.symbol, is_type)
        })
    }
}

/// The declarations at the top of a unit, except labels.
pub(crate) fn declared_names(unit: &Unit) -> impl Iterator<Item = Symbol> {
    let declarations = unit
        .declarations
        .iter()
        .map(|declaration| match declaration {
            Declaration::Type(d) => d.name.symbol,
            Declaration::Proc(d) => d.name.symbol,
            Declaration::Component(d) => d.name.symbol,
        });
    let variables = unit
        .statements
        .iter()
        .filter_map(|statement| match &statement.kind {
            ExprKind::Declare(name, _) => Some(name.symbol),
            _ => None,
        });
    declarations.chain(variables)
}

fn unused_global(name: Symbol) -> Global {
    Global {
        name,
        ty: TypeId::VOID,
        init: Body {
            locals: Vec::new(),
            params: 0,
            block: tree::Expr {
                kind: tree::ExprKind::Nothing,
                ty: TypeId::VOID,
                span: Span::default(),
            },
        },
        used: false,
    }
}

impl CheckPosition<'_> {
    /// The top of a unit of the prelude.
    fn prelude(layer: u32) -> Self {
        CheckPosition {
            scopes: Scopes::default(),
            body: BodyState::new(BodyKind::Initialiser),
            component: None,
            layer: Some(layer),
        }
    }
}

impl<'a> Checker<'a> {
    /// The meaning of a prelude name, as seen from here.
    pub(super) fn find_in_prelude(&mut self, symbol: Symbol) -> Option<Binding> {
        let newest = self.at.layer.unwrap_or(u32::MAX);
        let at = self.prelude.position(symbol, newest)?;
        Some(self.demand(at))
    }

    /// The type of that name, without regard to what the user declares.
    pub(super) fn find_type_of_prelude(&mut self, symbol: Symbol) -> TypeId {
        match self.find_in_prelude(symbol) {
            Some(Binding::Type(ty, _)) => ty,
            _ => TypeId::ERROR,
        }
    }

    pub(super) fn demand_everything(&mut self) {
        for at in 0..self.prelude.entries.len() {
            self.demand(at);
        }
    }

    fn demand(&mut self, at: usize) -> Binding {
        let entry = self.prelude.entries[at];
        match entry.state {
            State::Done(binding) => return binding,
            State::Busy => {
                self.circular(entry.symbol);
                return Binding::Faulty;
            }
            State::Unseen => self.prelude.entries[at].state = State::Busy,
        }
        let here = mem::replace(&mut self.at, CheckPosition::prelude(entry.layer));
        let binding = self.demand_item(entry.item, entry.layer);
        self.at = here;
        self.prelude.entries[at].state = State::Done(binding);
        binding
    }

    #[cold]
    fn circular(&mut self, symbol: Symbol) {
        self.report(Diagnostic::error(
            code::OWN_NAME,
            format!("`{}` of the prelude depends on itself", self.name(symbol)),
            Span::new(SourceId::PRELUDE, 0, 0),
            "in this text",
        ));
    }

    fn demand_item(&mut self, item: Item<'a>, layer: u32) -> Binding {
        match item {
            Item::Type(declaration) => self.type_declaration(declaration),
            Item::Label(declaration, position) => {
                let ty = self.find_type_of_prelude(declaration.name.symbol);
                Binding::Label(ty, position)
            }
            Item::Proc(declaration) => {
                let (id, _) = self.open_proc(declaration, None);
                let pending = Pending::Proc(declaration, id);
                self.prelude.pending.push((pending, layer));
                Binding::Proc(id)
            }
            Item::Component(declaration) => {
                let id = self.open_component(declaration);
                self.open_constructors(declaration, id);
                let pending = Pending::Component(declaration, id);
                self.prelude.pending.push((pending, layer));
                Binding::Component(id)
            }
            Item::Global(value, id) => {
                let init = self.initialiser(value);
                let ty = init.block.ty;
                let global = &mut self.globals[id.index()];
                global.ty = ty;
                global.init = init;
                global.used = true;
                Binding::Global(id, ty)
            }
        }
    }

    /// Checks the bodies of what was named, and of what those name, until nothing is left.
    pub(super) fn finish_prelude(&mut self) {
        while let Some((pending, layer)) = self.prelude.pending.pop() {
            let here = mem::replace(&mut self.at, CheckPosition::prelude(layer));
            match pending {
                Pending::Proc(declaration, id) => {
                    let params = self.params(&declaration.params);
                    self.proc_code(declaration, id, &params);
                }
                Pending::Component(declaration, id) => self.component_text(declaration, id),
            }
            self.at = here;
        }
    }
}
