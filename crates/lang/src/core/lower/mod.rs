//! Typed tree to core IR: values.
//!
//! An expression becomes a pure [`Value`] plus the statements that had to run before it. Operands
//! are evaluated left to right; when a later operand has an effect, the earlier values that the
//! effect could change are spilled to temporaries ([`FunctionLowering::sequence`]).

mod communication;
mod expressions;
mod statements;

use super::LoweringOptions;
use super::effects::{EffectTable, is_reference, walk};
use super::ir::*;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{self, ComponentId, Expr, ExprKind, ProcCode, Program};
use crate::types::{Type, TypeId};
use std::collections::{HashMap, HashSet};

/// The number of statements beyond which a main sequence may be emitted in parts. Then no object of
/// it is a C local, which would end with its part.
const LONG_SEQUENCE: usize = 128;

/// The state that all functions of a program share while they are lowered.
pub(super) struct Lowering<'p> {
    pub(super) program: &'p Program,
    pub(super) effects: &'p EffectTable,
    pub(super) options: LoweringOptions,
    strings: Vec<Box<str>>,
    string_numbers: HashMap<Box<str>, u32>,
    ragged: Vec<TypeId>,
}

/// Lowers everything that is used.
pub(super) fn lower(program: &Program, effects: &EffectTable, options: LoweringOptions) -> Module {
    let mut shared = Lowering {
        program,
        effects,
        options,
        strings: Vec::new(),
        string_numbers: HashMap::new(),
        ragged: Vec::new(),
    };
    let mut functions = Vec::new();
    for (i, proc) in program.procs.iter().enumerate() {
        if let (true, ProcCode::Body(body)) = (proc.used, &proc.code) {
            let role = Role::Proc(tree::ProcId(i as u32));
            functions.push(
                shared.function(role, proc.result, proc.span, proc.owner, |f| {
                    f.parameters_and_body(body, false)
                }),
            );
        }
    }
    for (i, component) in program
        .components
        .iter()
        .enumerate()
        .filter(|(_, c)| c.used)
    {
        let id = ComponentId(i as u32);
        let span = component.span;
        functions.push(
            shared.function(Role::Members(id), TypeId::VOID, span, Some(id), |f| {
                f.members(component)
            }),
        );
        for (k, constructor) in component.constructors.iter().enumerate() {
            let role = Role::Constructor(id, k);
            functions.push(shared.function(
                role,
                TypeId::VOID,
                constructor.block.span,
                Some(id),
                |f| f.parameters_and_body(constructor, true),
            ));
        }
        functions.push(shared.function(
            Role::Behaviour(id),
            TypeId::VOID,
            component.behaviour.block.span,
            Some(id),
            |f| f.parameters_and_body(&component.behaviour, false),
        ));
    }
    functions.push(shared.function(
        Role::Main,
        TypeId::VOID,
        program.main.block.span,
        None,
        |f| f.main_sequence(),
    ));
    Module {
        functions,
        strings: shared.strings,
        ragged: shared.ragged,
        valued: effects.valued.clone(),
    }
}

impl<'p> Lowering<'p> {
    fn function(
        &mut self,
        role: Role,
        result: TypeId,
        span: Span,
        component: Option<ComponentId>,
        fill: impl FnOnce(&mut FunctionLowering<'_, 'p>),
    ) -> Function {
        let throws_are_skipped = self.options.compat_original && !self.has_handler(component);
        let mut lowering = FunctionLowering {
            shared: self,
            slots: Vec::new(),
            params: Vec::new(),
            result,
            component,
            locals: &[],
            map: Vec::new(),
            assigned: Vec::new(),
            assigned_slots: HashSet::new(),
            is_long: false,
            out: vec![Vec::new()],
            scopes: Vec::new(),
            carried: None,
            effects_seen: 0,
            span,
            throws_are_skipped,
            blocks: false,
            raises: false,
        };
        fill(&mut lowering);
        let FunctionLowering {
            slots,
            params,
            mut out,
            blocks,
            raises,
            ..
        } = lowering;
        let body = out.pop().expect("the function's own buffer");
        Function {
            role,
            slots,
            params,
            result,
            body,
            parts: Vec::new(),
            blocks,
            raises: raises || blocks,
            records: 0,
            span,
        }
    }

    /// True if the text of a component, with its procedures and the global ones, holds a `try`.
    fn has_handler(&self, component: Option<ComponentId>) -> bool {
        let mut found = false;
        let mut look = |body: &'p tree::Body| {
            walk(&body.block, &mut |e| {
                found |= matches!(e.kind, ExprKind::Try { .. })
            });
        };
        for proc in &self.program.procs {
            if let (true, ProcCode::Body(body)) =
                (proc.owner.is_none() || proc.owner == component, &proc.code)
            {
                look(body);
            }
        }
        match component {
            Some(id) => {
                let component = &self.program.components[id.index()];
                component.members.iter().for_each(|m| look(&m.init));
                component.constructors.iter().for_each(&mut look);
                look(&component.behaviour);
            }
            None => look(&self.program.main),
        }
        found
    }

    fn string(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.string_numbers.get(text) {
            return number;
        }
        let number = self.strings.len() as u32;
        self.strings.push(text.into());
        self.string_numbers.insert(text.into(), number);
        number
    }

    pub(super) fn mark_ragged(&mut self, array: TypeId) {
        if !self.ragged.contains(&array) {
            self.ragged.push(array);
        }
    }
}

/// The owner of the reference behind an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Own {
    /// Not a reference.
    Plain,
    /// Another owner.
    Borrowed,
    /// This temporary, which the value names; the consumer of the operand may move from it.
    Temp(SlotId),
}

#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) ty: TypeId,
    pub(super) own: Own,
}

impl Operand {
    pub(super) fn nothing() -> Operand {
        Operand {
            value: Value::Null,
            ty: TypeId::VOID,
            own: Own::Plain,
        }
    }
}

/// Counted slots to release where a scope ends.
pub(super) struct Scope {
    counted: Vec<SlotId>,
    /// A block of the source: declarations go here. Otherwise a statement's temporaries.
    block: bool,
}

/// One function on its way from tree to IR.
pub(super) struct FunctionLowering<'l, 'p> {
    pub(super) shared: &'l mut Lowering<'p>,
    pub(super) slots: Vec<LocalSlot>,
    params: Vec<SlotId>,
    result: TypeId,
    pub(super) component: Option<ComponentId>,
    /// The locals of the current body.
    pub(super) locals: &'p [tree::Local],
    /// The storage of each.
    map: Vec<Option<SlotId>>,
    /// Locals of the current body that are assigned after their declaration.
    assigned: Vec<bool>,
    /// The slots of these locals.
    assigned_slots: HashSet<SlotId>,
    /// True for a main sequence that may be emitted in parts.
    pub(super) is_long: bool,
    out: Vec<Block>,
    scopes: Vec<Scope>,
    /// The value of the part of a chain of operators that was lowered last.
    pub(super) carried: Option<Operand>,
    /// Counts emitted statements that a value read earlier could notice.
    pub(super) effects_seen: u64,
    pub(super) span: Span,
    pub(super) throws_are_skipped: bool,
    pub(super) blocks: bool,
    pub(super) raises: bool,
}

impl<'p> FunctionLowering<'_, 'p> {
    // ---- whole functions ----------------------------------------------------------------

    fn enter(&mut self, body: &'p tree::Body) {
        self.locals = &body.locals;
        self.map = vec![None; body.locals.len()];
        self.assigned = vec![false; body.locals.len()];
        self.assigned_slots.clear();
        walk(&body.block, &mut |e| match &e.kind {
            ExprKind::Assign(place, _) => {
                if let ExprKind::Local(local) = place.kind {
                    self.assigned[local.index()] = true;
                }
            }
            ExprKind::For { variable, .. } => self.assigned[variable.index()] = true,
            _ => {}
        });
    }

    /// `owned`: the parameters hold references of their own (a constructor's do).
    fn parameters_and_body(&mut self, body: &'p tree::Body, owned: bool) {
        self.enter(body);
        self.open_scope(true);
        for i in 0..body.params {
            let local = &body.locals[i];
            let reference = self.is_reference(local.ty);
            let slot = self.new_slot(Some(local.name), SlotType::Of(local.ty), reference && owned);
            self.params.push(slot);
            self.bind(tree::LocalId(i as u32), slot);
            if reference && owned {
                self.declare_counted(slot);
            } else if reference && self.assigned[i] {
                // The caller's reference is borrowed; a parameter that changes needs its own.
                let own = self.new_slot(Some(local.name), SlotType::Of(local.ty), true);
                self.declare_counted(own);
                self.set(
                    StorePlace::Slot(own),
                    Value::Slot(slot),
                    Mode::Retain,
                    false,
                );
                self.bind(tree::LocalId(i as u32), own);
            }
        }
        if self.result == TypeId::STRING {
            // What a procedure yields that runs off its end.
            let empty = self.empty_string();
            self.set(StorePlace::Result, empty, Mode::Plain, false);
        }
        self.statement(&body.block);
        self.close_scope();
    }

    fn members(&mut self, component: &'p tree::Component) {
        for (i, member) in component.members.iter().enumerate() {
            self.enter(&member.init);
            self.span = member.span;
            self.open_scope(true);
            let operand = self.operand(&member.init.block);
            self.store(StorePlace::Member(tree::MemberId(i as u32)), operand, false);
            self.close_scope();
        }
    }

    fn main_sequence(&mut self) {
        let program = self.shared.program;
        for (i, global) in program.globals.iter().enumerate().filter(|(_, g)| g.used) {
            self.enter(&global.init);
            self.span = global.init.block.span;
            self.open_scope(true);
            let operand = self.operand(&global.init.block);
            self.store(StorePlace::Global(tree::GlobalId(i as u32)), operand, false);
            self.close_scope();
        }
        if let ExprKind::Block(items) = &program.main.block.kind {
            self.is_long = items.len() > LONG_SEQUENCE;
        }
        self.parameters_and_body(&program.main, false);
    }

    // ---- small tools ----------------------------------------------------------------------

    pub(super) fn is_reference(&self, ty: TypeId) -> bool {
        is_reference(&self.shared.program.types, ty)
    }

    pub(super) fn ty(&self, ty: TypeId) -> &'p Type {
        self.shared.program.types.get(ty)
    }

    pub(super) fn emit(&mut self, kind: StmtKind) {
        let span = self.span;
        self.out
            .last_mut()
            .expect("a buffer")
            .push(Stmt { kind, span });
    }

    /// Emits what a value read before may notice.
    pub(super) fn emit_effect(&mut self, kind: StmtKind) {
        self.effects_seen += 1;
        self.emit(kind);
    }

    pub(super) fn set(&mut self, place: StorePlace, value: Value, mode: Mode, replace: bool) {
        self.emit(StmtKind::Set {
            place,
            value,
            mode,
            replace,
        });
    }

    pub(super) fn new_slot(&mut self, name: Option<Symbol>, ty: SlotType, counted: bool) -> SlotId {
        let id = SlotId(self.slots.len() as u32);
        self.slots.push(LocalSlot {
            name,
            ty,
            counted,
            storage: Storage::Register,
            borrows: Vec::new(),
        });
        id
    }

    /// A temporary; if it holds a reference, the current statement releases it.
    pub(super) fn temp(&mut self, ty: TypeId) -> SlotId {
        let counted = self.is_reference(ty);
        let slot = self.new_slot(None, SlotType::Of(ty), counted);
        if counted {
            self.scopes.last_mut().expect("a scope").counted.push(slot);
        }
        slot
    }

    /// The variable of a declaration, released where its block ends.
    pub(super) fn declare(&mut self, local: tree::LocalId, name: Symbol, ty: TypeId) -> SlotId {
        let counted = self.is_reference(ty);
        let slot = self.new_slot(Some(name), SlotType::Of(ty), counted);
        self.bind(local, slot);
        if counted {
            self.declare_counted(slot);
        }
        slot
    }

    pub(super) fn declare_counted(&mut self, slot: SlotId) {
        let block = self
            .scopes
            .iter_mut()
            .rev()
            .find(|s| s.block)
            .expect("a block");
        block.counted.push(slot);
    }

    pub(super) fn bind(&mut self, local: tree::LocalId, slot: SlotId) {
        self.map[local.index()] = Some(slot);
        if self.assigned[local.index()] {
            self.assigned_slots.insert(slot);
        }
    }

    pub(super) fn is_assigned(&self, local: tree::LocalId) -> bool {
        self.assigned[local.index()]
    }

    pub(super) fn slot_of(&self, local: tree::LocalId) -> SlotId {
        self.map[local.index()].expect("declared before use")
    }

    pub(super) fn open_scope(&mut self, block: bool) {
        self.scopes.push(Scope {
            counted: Vec::new(),
            block,
        });
    }

    /// Emits the releases of the scope that ends.
    pub(super) fn close_scope(&mut self) {
        let scope = self.scopes.pop().expect("a scope");
        for slot in scope.counted.into_iter().rev() {
            self.emit(StmtKind::Release(slot));
        }
    }

    /// Closes a scope whose value passes to the one around it.
    pub(super) fn close_scope_with(&mut self, operand: Operand) -> Operand {
        let scope = self.scopes.last().expect("a scope");
        if scope.counted.is_empty() || is_constant(&operand.value) {
            self.close_scope();
            return operand;
        }
        let operand = match operand.own {
            Own::Plain if operand.ty == TypeId::VOID => operand,
            Own::Plain => self.spill(operand),
            Own::Borrowed | Own::Temp(_) => {
                let counted = self.new_slot(None, SlotType::Of(operand.ty), true);
                self.store(StorePlace::Slot(counted), operand.clone(), false);
                Operand {
                    value: Value::Slot(counted),
                    ty: operand.ty,
                    own: Own::Temp(counted),
                }
            }
        };
        self.close_scope();
        if let Own::Temp(slot) = operand.own {
            self.scopes
                .last_mut()
                .expect("an outer scope")
                .counted
                .push(slot);
        }
        operand
    }

    /// Collects what `fill` emits into a block of its own, with a scope of its own.
    pub(super) fn nested(&mut self, fill: impl FnOnce(&mut Self)) -> Block {
        self.out.push(Vec::new());
        self.open_scope(true);
        fill(self);
        self.close_scope();
        self.out.pop().expect("the nested buffer")
    }

    /// Like [`Self::nested`], without a scope: temporaries belong to the scope around.
    pub(super) fn buffered<T>(&mut self, fill: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        self.out.push(Vec::new());
        let result = fill(self);
        (self.out.pop().expect("the nested buffer"), result)
    }

    pub(super) fn append(&mut self, block: Block) {
        self.out.last_mut().expect("a buffer").extend(block);
    }

    // ---- owning -----------------------------------------------------------------------------

    /// Stores an operand with the reference it needs.
    pub(super) fn store(&mut self, place: StorePlace, operand: Operand, replace: bool) {
        let counted = match &place {
            StorePlace::Slot(slot) => self.slots[slot.index()].counted,
            _ => self.is_reference(operand.ty),
        };
        match operand.own {
            Own::Temp(temp) => {
                let consumed = self.consume(temp);
                if let (true, false, StorePlace::Slot(slot)) = (consumed, replace, &place)
                    && self.retarget(temp, *slot)
                {
                    return;
                }
                self.set(place, operand.value, Mode::Move, replace);
            }
            Own::Borrowed if counted => self.set(place, operand.value, Mode::Retain, replace),
            Own::Borrowed | Own::Plain => self.set(place, operand.value, Mode::Plain, false),
        }
    }

    /// The reference of a temporary goes elsewhere. True if nothing is left to release: it was
    /// made in the innermost scope, so no branch can have skipped its making.
    pub(super) fn consume(&mut self, temp: SlotId) -> bool {
        let scope = self.scopes.last_mut().expect("a scope");
        match scope.counted.iter().rposition(|&s| s == temp) {
            Some(i) => {
                scope.counted.remove(i);
                true
            }
            None => false,
        }
    }

    /// If the last statement makes `temp`, lets it make `slot` instead.
    fn retarget(&mut self, temp: SlotId, slot: SlotId) -> bool {
        let Some(last) = self.out.last_mut().and_then(|b| b.last_mut()) else {
            return false;
        };
        let target = match &mut last.kind {
            StmtKind::NewArray { target, .. }
            | StmtKind::NewStruct { target, .. }
            | StmtKind::NewChannel { target, .. }
            | StmtKind::NewComponent { target, .. }
            | StmtKind::NewBox { target, .. }
            | StmtKind::NewProcedure { target, .. }
            | StmtKind::PortOf { target, .. }
            | StmtKind::Copy { target, .. }
            | StmtKind::Call {
                target: Some(target),
                ..
            } => target,
            _ => return false,
        };
        if *target != temp {
            return false;
        }
        *target = slot;
        true
    }

    /// A plain value into a temporary.
    pub(super) fn spill(&mut self, operand: Operand) -> Operand {
        let ty = match operand.ty {
            TypeId::REAL if self.is_double(&operand.value) => SlotType::Double,
            ty => SlotType::Of(ty),
        };
        let slot = self.new_slot(None, ty, false);
        self.set(StorePlace::Slot(slot), operand.value, Mode::Plain, false);
        Operand {
            value: Value::Slot(slot),
            ..operand
        }
    }

    /// True if the C type of a real value is double.
    fn is_double(&self, value: &Value) -> bool {
        match value {
            Value::Real(_) => true,
            Value::Slot(slot) => self.slots[slot.index()].ty == SlotType::Double,
            Value::Unary(_, _, e) => self.is_double(e),
            Value::Binary(_, _, a, b) => self.is_double(a) || self.is_double(b),
            _ => false,
        }
    }

    /// Lowers operands left to right. `between` runs after operand `i` has been lowered and
    /// before the next (for checks). Earlier values that later effects could change are spilled.
    pub(super) fn sequence(
        &mut self,
        exprs: &[&'p Expr],
        mut between: impl FnMut(&mut Self, usize, &mut [Operand]),
    ) -> Vec<Operand> {
        let mut operands: Vec<Operand> = Vec::with_capacity(exprs.len());
        let mut marks = Vec::with_capacity(exprs.len());
        for (i, expr) in exprs.iter().enumerate() {
            let operand = self.operand(expr);
            operands.push(operand);
            between(self, i, &mut operands);
            marks.push((self.out.last().expect("a buffer").len(), self.effects_seen));
        }
        for i in (0..operands.len()).rev() {
            let (position, seen) = marks[i];
            if seen == self.effects_seen || self.is_stable(&operands[i].value) {
                continue;
            }
            let tail = self.out.last_mut().expect("a buffer").split_off(position);
            let operand = operands[i].clone();
            operands[i] = match operand.own {
                Own::Plain => self.spill(operand),
                Own::Temp(_) => operand,
                Own::Borrowed => self.owned_temp(operand),
            };
            self.append(tail);
        }
        operands
    }

    /// A temporary with a reference of its own to a borrowed operand.
    pub(super) fn owned_temp(&mut self, operand: Operand) -> Operand {
        let slot = self.temp(operand.ty);
        self.set(StorePlace::Slot(slot), operand.value, Mode::Retain, false);
        Operand {
            value: Value::Slot(slot),
            ty: operand.ty,
            own: Own::Temp(slot),
        }
    }

    /// True if no effect can change the value.
    fn is_stable(&self, value: &Value) -> bool {
        match value {
            Value::Slot(slot) => {
                self.slots[slot.index()].name.is_none() || !self.assigned_slots.contains(slot)
            }
            Value::Convert(_, _, e) | Value::Unary(_, _, e) => self.is_stable(e),
            Value::Binary(_, _, a, b) => self.is_stable(a) && self.is_stable(b),
            // The length of an object never changes; which object it is may.
            Value::Length(e) => self.is_stable(e),
            _ => is_constant(value),
        }
    }
}

pub(super) fn is_constant(value: &Value) -> bool {
    matches!(
        value,
        Value::Int(..)
            | Value::Real(_)
            | Value::Bool(_)
            | Value::String(_)
            | Value::Null
            | Value::Proc(_)
    )
}
