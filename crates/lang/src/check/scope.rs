//! Scopes: which binding a name has here.
//!
//! Each symbol has a head: the innermost binding of it, an index into a stack of entries. An
//! entry remembers the head it hid, so leaving a scope pops entries and restores heads. A lookup
//! is two array reads; nothing is hashed.

use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{ComponentId, GlobalId, LocalId, MemberId, PortId, ProcId};
use crate::types::TypeId;

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Binding {
    Local(LocalId, TypeId),
    Member(MemberId, TypeId),
    Port(PortId, TypeId),
    Global(GlobalId, TypeId),
    Proc(ProcId),
    Component(ComponentId),
    Type(TypeId, Option<InterfaceId>),
    /// Position in the enum.
    Label(TypeId, u32),
    /// Declared, but wrongly; already reported.
    Faulty,
}

/// Index into the checker's list of interfaces in their order of writing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InterfaceId(pub(super) u32);

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) symbol: Symbol,
    pub(super) binding: Binding,
    pub(super) span: Span,
    hidden: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Scopes {
    heads: Vec<u32>,
    entries: Vec<Entry>,
    /// The first entry of each open scope.
    starts: Vec<u32>,
}

impl Scopes {
    pub(super) fn with_capacity(symbols: usize) -> Self {
        Scopes {
            heads: vec![NONE; symbols],
            ..Scopes::default()
        }
    }

    pub(super) fn enter(&mut self) {
        self.starts.push(self.entries.len() as u32);
    }

    pub(super) fn leave(&mut self) {
        let start = self.starts.pop().expect("leave without enter") as usize;
        for entry in self.entries.drain(start..).rev() {
            self.heads[entry.symbol.index()] = entry.hidden;
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn lookup(&self, symbol: Symbol) -> Option<&Entry> {
        match self.heads.get(symbol.index()) {
            Some(&head) if head != NONE => Some(&self.entries[head as usize]),
            _ => None,
        }
    }

    /// The binding made in the innermost scope itself, if any.
    pub(super) fn lookup_here(&self, symbol: Symbol) -> Option<&Entry> {
        let start = self.starts.last().copied().unwrap_or(0);
        match self.heads.get(symbol.index()) {
            Some(&head) if head != NONE && head >= start => Some(&self.entries[head as usize]),
            _ => None,
        }
    }

    /// Binds in the innermost scope. The caller has looked for an earlier one there.
    pub(super) fn bind(&mut self, symbol: Symbol, span: Span, binding: Binding) {
        let index = symbol.index();
        if index >= self.heads.len() {
            self.heads.resize(index + 1, NONE);
        }
        let hidden = std::mem::replace(&mut self.heads[index], self.entries.len() as u32);
        self.entries.push(Entry {
            symbol,
            binding,
            span,
            hidden,
        });
    }

    /// Every binding, innermost first, hidden ones included.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().rev()
    }
}
