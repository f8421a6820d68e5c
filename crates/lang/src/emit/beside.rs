//! Procedures that calls beside others reach, a second and a third time.
//!
//! | copy | its base | calls beside others | called by |
//! |---|---|---|---|
//! | ordinary | its component's | in order | ordinary copies; parts of life, if that is best |
//! | piece | a parameter | in order | divided copies, records |
//! | divided | a parameter | as records | parts of life, divided copies, records |
//!
//! A procedure that names no members has its base as a parameter anyway: its ordinary copy is its
//! piece. A program without marks has ordinary copies alone, and its text says nothing of all this.

use super::Context;
use crate::core::ir::*;
use crate::core::passes::look_at_each;
use crate::tree::{ProcCode, ProcId};
use crate::types::TypeId;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A copy of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Copy {
    /// The only one of a part of life, or of a procedure that may park: it has its component's
    /// base, and records.
    Only,
    Ordinary,
    Piece,
    Divided,
}

/// Which procedures exist in which copies.
#[derive(Default)]
pub(super) struct Copies {
    /// There are marks in the program.
    pub(super) any: bool,
    /// Procedures from whose code a mark is reached.
    divided: BTreeSet<ProcId>,
    /// Members of `divided` that contain a mark and call themselves in the end.
    grained: BTreeSet<ProcId>,
    /// Procedures bound to a component that a copy with a base of its own calls.
    pieces: BTreeSet<ProcId>,
    /// Procedures that cannot run with another base than their component's.
    excluded: BTreeSet<ProcId>,
    /// Grains in the order of their numbers, by what they are of, with their initialisers.
    grains: RefCell<BTreeMap<String, (usize, &'static str)>>,
    /// Structs and functions of records and rounds.
    types: RefCell<String>,
    functions: RefCell<Vec<String>>,
    written: RefCell<BTreeSet<String>>,
}

impl Copies {
    pub(super) fn of(input: &crate::core::Lowered<'_>) -> Copies {
        // Probes note calls in the order of one thread.
        if input.probes.is_some() {
            return Copies::default();
        }
        let marked = |function: &Function| function.records > 0 || has_rounds(&function.body);
        let mut copies = Copies::default();
        let mut calls: BTreeMap<ProcId, BTreeSet<ProcId>> = BTreeMap::new();
        let mut beside: BTreeSet<ProcId> = BTreeSet::new();
        let mut marks: BTreeSet<ProcId> = BTreeSet::new();
        for function in &input.module.functions {
            let is_marked = marked(function);
            copies.any |= is_marked;
            if is_marked {
                beside.extend(callees(&function.body));
            }
            if let Role::Proc(proc) = function.role {
                calls.insert(proc, callees(&function.body));
                if is_marked && !function.blocks {
                    marks.insert(proc);
                }
            }
        }
        if !copies.any {
            return copies;
        }
        let mut excluded: BTreeSet<ProcId> = input
            .module
            .functions
            .iter()
            .filter_map(|function| match function.role {
                Role::Proc(proc) if needs_its_component(&function.body) => Some(proc),
                _ => None,
            })
            .collect();
        loop {
            let more: Vec<ProcId> = calls
                .iter()
                .filter(|(proc, called)| {
                    !excluded.contains(proc) && called.iter().any(|c| excluded.contains(c))
                })
                .map(|(proc, _)| *proc)
                .collect();
            if more.is_empty() {
                break;
            }
            excluded.extend(more);
        }
        let blocks = |proc: &ProcId| input.effects.of_proc(*proc).blocks || excluded.contains(proc);
        marks.retain(|proc| !excluded.contains(proc));
        beside.retain(|proc| !excluded.contains(proc));
        let is_body =
            |proc: &ProcId| matches!(input.program.procs[proc.index()].code, ProcCode::Body(_));
        copies.divided = marks.clone();
        loop {
            let more: Vec<ProcId> = calls
                .iter()
                .filter(|(proc, called)| {
                    !copies.divided.contains(proc)
                        && !blocks(proc)
                        && called.iter().any(|c| copies.divided.contains(c))
                })
                .map(|(proc, _)| *proc)
                .collect();
            if more.is_empty() {
                break;
            }
            copies.divided.extend(more);
        }
        let recursive = &input.effects.recursive;
        copies.grained = marks
            .iter()
            .copied()
            .filter(|proc| recursive[proc.index()])
            .collect();
        let mut reached: BTreeSet<ProcId> = copies.divided.clone();
        reached.extend(beside);
        let mut work: Vec<ProcId> = reached.iter().copied().collect();
        while let Some(proc) = work.pop() {
            for called in calls.get(&proc).into_iter().flatten() {
                if reached.insert(*called) {
                    work.push(*called);
                }
            }
        }
        copies.pieces = reached
            .into_iter()
            .filter(|proc| is_body(proc) && !blocks(proc))
            .filter(|proc| input.program.procs[proc.index()].bound)
            .collect();
        copies.excluded = excluded.clone();
        copies
    }

    pub(super) fn is_divided(&self, proc: ProcId) -> bool {
        self.divided.contains(&proc)
    }

    pub(super) fn is_grained(&self, proc: ProcId) -> bool {
        self.grained.contains(&proc)
    }

    /// Whether the procedure can run with a base of its own.
    pub(super) fn can_move(&self, proc: ProcId) -> bool {
        !self.excluded.contains(&proc)
    }

    /// Whether the procedure has a copy with a base of its own.
    pub(super) fn has_piece(&self, proc: ProcId) -> bool {
        self.pieces.contains(&proc)
    }

    /// The C name of a grain.
    pub(super) fn grain(&self, of: String, initial: &'static str) -> String {
        let mut grains = self.grains.borrow_mut();
        let next = grains.len();
        let (number, _) = *grains.entry(of).or_insert((next, initial));
        format!("hearth_grain_{number}")
    }

    /// The grain of a procedure.
    pub(super) fn grain_of(&self, proc: ProcId) -> String {
        self.grain(format!("proc {}", proc.0), "HEARTH_GRAIN_CALLS")
    }

    /// Adds a struct and a function, once for each name.
    pub(super) fn add(&self, name: &str, types: &str, function: String) {
        if self.written.borrow_mut().insert(name.to_owned()) {
            self.types.borrow_mut().push_str(types);
            self.functions.borrow_mut().push(function);
        }
    }

    /// Declarations, to stand before all functions.
    pub(super) fn emit_types(&self, out: &mut String) {
        if !self.any {
            return;
        }
        let grains = self.grains.borrow();
        let mut grains: Vec<_> = grains.values().collect();
        grains.sort();
        for (number, initial) in grains {
            let _ = writeln!(
                out,
                "static _Alignas(64) hearth_grain hearth_grain_{number} = {initial};"
            );
        }
        out.push_str(&self.types.borrow());
    }

    pub(super) fn take_functions(&self) -> Vec<String> {
        self.functions.take()
    }
}

/// Whether statements need the base of their component: they call procedures by value, which
/// compare it, or make what belongs to it.
pub(super) fn needs_its_component(block: &[Stmt]) -> bool {
    let mut found = false;
    look_at_each(block, &mut |stmt| {
        found |= matches!(
            stmt,
            StmtKind::Call {
                callee: Callee::Value(..),
                ..
            } | StmtKind::NewProcedure { .. }
                | StmtKind::NewComponent { .. }
                | StmtKind::NewChannel { .. }
                | StmtKind::StopOther(_)
                | StmtKind::StopSelf
        );
    });
    found
}

/// Whether there are loops whose rounds may run beside each other.
pub(super) fn has_rounds(statements: &[Stmt]) -> bool {
    let mut found = false;
    each_loop(statements, &mut |l| {
        found |= matches!(l.rounds, Rounds::Apart(_));
    });
    found
}

/// Looks at each loop, both forms of those that exist twice included.
pub(super) fn each_loop(statements: &[Stmt], look: &mut dyn FnMut(&Loop)) {
    look_at_each(statements, &mut |stmt| match stmt {
        StmtKind::Loop(l) => look(l),
        StmtKind::Versioned { fast, slow, .. } => {
            look(fast);
            look(slow);
        }
        _ => {}
    });
}

/// Procedures that statements call by name.
fn callees(block: &[Stmt]) -> BTreeSet<ProcId> {
    let mut found = BTreeSet::new();
    look_at_each(block, &mut |stmt| {
        if let StmtKind::Call {
            callee: Callee::Proc(proc),
            ..
        } = stmt
        {
            found.insert(*proc);
        }
    });
    found
}

impl Context<'_> {
    /// The C name of a copy of a procedure.
    pub(super) fn copy_name(&self, proc: ProcId, copy: Copy) -> String {
        let number = self.functions.get(&Role::Proc(proc)).copied();
        match (copy, number) {
            (Copy::Divided, Some(number)) if self.copies.is_divided(proc) => {
                format!("hearth_divided_{number}")
            }
            (Copy::Piece | Copy::Divided, Some(number)) if self.copies.has_piece(proc) => {
                format!("hearth_piece_{number}")
            }
            _ => self.names.proc(proc).to_owned(),
        }
    }

    /// The first arguments of a call of a procedure's copy with a base of its own.
    pub(super) fn first_arguments(&self, proc: ProcId, copy: Copy, depth: &str) -> String {
        let mut text = String::new();
        if self.input.program.procs[proc.index()].bound {
            text.push_str("self, ");
        }
        text.push_str("base");
        if copy == Copy::Divided && self.copies.is_divided(proc) {
            let _ = write!(text, ", {depth}");
        }
        text
    }

    /// The head of a copy's definition.
    pub(super) fn copy_signature(&self, function: &Function, copy: Copy) -> String {
        let Role::Proc(proc) = function.role else {
            return self.signature(function);
        };
        if matches!(copy, Copy::Only | Copy::Ordinary) {
            return self.signature(function);
        }
        let name = self.copy_name(proc, copy);
        let mut text = format!("static {}(", self.declare(function.result, &name));
        if let Some(owner) = self.owner(function.role) {
            let _ = write!(text, "{}_component *self, ", self.names.component(owner));
        }
        text.push_str("hearth_component *base");
        if copy == Copy::Divided {
            text.push_str(", uint32_t depth_in");
        }
        for (ty, name) in self.parameters(function) {
            let _ = write!(text, ", {}", self.declare(ty, &name));
        }
        text + ")"
    }

    /// Types and names of a function's parameters.
    pub(super) fn parameters(&self, function: &Function) -> Vec<(TypeId, String)> {
        let layout = self.layouts.of(function.role);
        let params = function.params.iter().map(|param| {
            let SlotType::Of(ty) = function.slots[param.index()].ty else {
                unreachable!("a parameter")
            };
            (ty, layout.slot_names[param.index()].clone())
        });
        params.collect()
    }

    /// The copies of a function besides its first one.
    pub(super) fn more_copies(&self, function: &Function) -> Vec<Copy> {
        let Role::Proc(proc) = function.role else {
            return Vec::new();
        };
        if function.blocks || !self.copies.any {
            return Vec::new();
        }
        let mut copies = Vec::new();
        if self.copies.has_piece(proc) {
            copies.push(Copy::Piece);
        }
        if self.copies.is_divided(proc) {
            copies.push(Copy::Divided);
        }
        copies
    }

    /// The first copy of a function.
    pub(super) fn first_copy(&self, function: &Function) -> Copy {
        match function.role {
            Role::Proc(_) if !function.blocks => Copy::Ordinary,
            _ => Copy::Only,
        }
    }

    pub(super) fn emit_copy_prototypes(&self, out: &mut String) {
        for function in &self.input.module.functions {
            for copy in self.more_copies(function) {
                let _ = writeln!(
                    out,
                    "__attribute__((unused)) {};",
                    self.copy_signature(function, copy)
                );
            }
        }
    }
}
