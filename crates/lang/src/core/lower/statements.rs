//! Typed tree to core IR: statements, and the clauses that are values through their branches.

use super::{FunctionLowering, Operand, Own};
use crate::core::effects::{Effects, walk};
use crate::core::ir::*;
use crate::symbol::Symbol;
use crate::tree::{self, BinaryOp, Expr, ExprKind};
use crate::types::{Type, TypeId};

/// Larger objects come from the heap, so that C stacks stay small.
const STACK_OBJECT_BYTES_MAX: u64 = 256;

/// The rest of a longer block is not searched for what happens to a variable: with every
/// declaration doing so, the time would grow with the square of the block.
const STATEMENTS_AHEAD_MAX: usize = 512;

impl<'p> FunctionLowering<'_, 'p> {
    /// Runs a clause for its effect.
    pub(super) fn statement(&mut self, expr: &'p Expr) {
        let span = std::mem::replace(&mut self.span, expr.span);
        self.open_scope(false);
        self.operand(expr);
        self.close_scope();
        self.span = span;
    }

    /// The rest of [`FunctionLowering::operand`]: clauses that are no plain expressions.
    pub(super) fn statement_value(&mut self, expr: &'p Expr) -> Operand {
        use ExprKind as E;
        match &expr.kind {
            E::Block(items) => return self.block(items),
            E::If {
                condition,
                then,
                otherwise,
            } => return self.conditional(expr, condition, then, otherwise.as_deref()),
            E::Case {
                scrutinee,
                arms,
                default,
            } => return self.case(expr, scrutinee, arms, default),
            E::Project {
                scrutinee,
                arms,
                default,
            } => return self.project(expr, scrutinee, arms, default),
            E::Select { arms, default } => return self.select(expr, arms, default.as_deref()),
            E::Try { body, handlers } => return self.protected(expr, body, handlers),
            E::For {
                variable,
                from,
                to,
                step,
                body,
            } => self.counting(*variable, from, to, *step, body),
            E::Let(..) => unreachable!("declarations are lowered by their block"),
            E::Assign(place, value) => self.assign(place, value),
            E::Connect(a, b) => self.connect(a, b),
            E::Disconnect(end) => {
                let end = self.end(end);
                self.blocks |= matches!(end, End::Remote(..));
                self.emit_effect(StmtKind::Disconnect(end));
            }
            E::Publish { channel, name } => {
                let operands = self.sequence(&[channel, name], |_, _, _| {});
                self.blocks = true;
                self.emit_effect(StmtKind::Publish {
                    channel: operands[0].value.clone(),
                    name: operands[1].value.clone(),
                });
            }
            E::Send { value, channel } => self.send(value, channel),
            E::Receive { local, channel } => {
                let text = channel.span;
                let channel = self.operand(channel).value;
                self.blocks = true;
                self.emit_effect(StmtKind::Receive {
                    channel,
                    held: None,
                    text,
                });
                self.receive_into(*local);
            }
            E::Acknowledge {
                local,
                channel,
                body,
            } => self.acknowledge(*local, channel, body),
            E::Stop(target) => self.stop(target.as_deref()),
            E::Return(value) => {
                if let Some(value) = value {
                    let operand = self.operand(value);
                    self.store(StorePlace::Result, operand, false);
                }
                self.emit_effect(StmtKind::Return);
            }
            E::Throw(label) => {
                let label = self.operand(label).value;
                if !self.throws_are_skipped {
                    self.raises = true;
                    self.emit_effect(StmtKind::Raise { label });
                }
            }
            E::Nothing => {}
            other => unreachable!("{other:?} is lowered elsewhere"),
        }
        Operand::nothing()
    }

    // ---- blocks and declarations --------------------------------------------------------

    pub(super) fn block(&mut self, items: &'p [Expr]) -> Operand {
        self.open_scope(true);
        let mut last = Operand::nothing();
        for (i, item) in items.iter().enumerate() {
            let span = std::mem::replace(&mut self.span, item.span);
            if let ExprKind::Let(local, init) = &item.kind {
                self.declaration(*local, init, &items[i + 1..]);
                last = Operand::nothing();
            } else if i + 1 == items.len() {
                last = self.operand(item);
            } else {
                self.statement(item);
            }
            self.span = span;
        }
        self.close_scope_with(last)
    }

    pub(super) fn declaration(&mut self, local: tree::LocalId, init: &'p Expr, rest: &'p [Expr]) {
        if self.stack_object(local, init, rest) {
            return;
        }
        self.open_scope(false);
        let operand = self.operand(init);
        let name = self.name_of(local);
        let ty = operand_type(init, &operand);
        if operand.own == Own::Borrowed
            && !self.is_assigned(local)
            && !self.may_end_objects(rest, local)
        {
            // Nothing in the rest of the block can end the object: no reference needed.
            let slot = self.new_slot(Some(name), SlotType::Of(ty), false);
            self.slots[slot.index()].borrows = slots_in(&operand.value);
            self.bind(local, slot);
            self.set(StorePlace::Slot(slot), operand.value, Mode::Plain, false);
        } else {
            let slot = self.declare(local, name, ty);
            self.store(StorePlace::Slot(slot), operand, false);
        }
        self.effects_seen += 1;
        self.close_scope();
    }

    /// Creates a small flat object that never escapes as a C local. Returns true if it did.
    pub(super) fn stack_object(
        &mut self,
        local: tree::LocalId,
        init: &'p Expr,
        rest: &'p [Expr],
    ) -> bool {
        let candidate = !self.shared.options.compat_original
            && !self.is_long
            && rest.len() <= STATEMENTS_AHEAD_MAX
            && !self.is_assigned(local)
            && self
                .stack_bytes(init)
                .is_some_and(|bytes| bytes <= STACK_OBJECT_BYTES_MAX);
        let stays = candidate
            && !self.effects_while_used(rest, local).blocks
            && !rest
                .iter()
                .any(|item| self.shared.effects.escapes(item, local));
        if !stays {
            return false;
        }
        self.open_scope(false);
        let name = self.name_of(local);
        let kind = match &init.kind {
            ExprKind::NewStruct(args) => {
                let fields = self.fields(args);
                let target = self.new_slot(Some(name), SlotType::Of(init.ty), false);
                self.bind(local, target);
                StmtKind::NewStruct {
                    target,
                    ty: init.ty,
                    fields,
                    on_stack: true,
                }
            }
            ExprKind::NewArray {
                lengths,
                init: element,
            } => {
                let operand = self.operand(element);
                let target = self.new_slot(Some(name), SlotType::Of(init.ty), false);
                self.bind(local, target);
                StmtKind::NewArray {
                    target,
                    ty: init.ty,
                    lengths: lengths.clone(),
                    init: operand.value,
                    init_type: operand.ty,
                    on_stack: true,
                }
            }
            other => unreachable!("{other:?} is no candidate"),
        };
        self.emit_effect(kind);
        self.close_scope();
        true
    }

    /// The size of a new flat object, if that is what the expression makes.
    pub(super) fn stack_bytes(&self, init: &Expr) -> Option<u64> {
        match &init.kind {
            ExprKind::NewStruct(args) => {
                let flat = args.iter().all(|arg| !self.is_reference(arg.ty));
                flat.then_some(8 * args.len() as u64)
            }
            ExprKind::NewArray { lengths, init }
                if lengths.len() == 1 && !self.is_reference(init.ty) =>
            {
                Some(4 * u64::from(lengths[0]))
            }
            _ => None,
        }
    }

    pub(super) fn may_end_objects(&self, rest: &[Expr], local: tree::LocalId) -> bool {
        if rest.len() > STATEMENTS_AHEAD_MAX {
            return true;
        }
        let effects = self.effects_while_used(rest, local);
        effects.writes_refs || effects.blocks
    }

    /// The effects of the statements that use the variable. The effect of a last `send` comes
    /// after its operands have been evaluated, and does not count.
    pub(super) fn effects_while_used(&self, rest: &[Expr], local: tree::LocalId) -> Effects {
        let Some(last) = rest.iter().rposition(|item| mentions(item, local)) else {
            return Effects::default();
        };
        let mut effects = Effects::default();
        for (i, item) in rest[..=last].iter().enumerate() {
            match &item.kind {
                ExprKind::Send { value, channel } if i == last => {
                    effects.join(self.effects_of(value));
                    effects.join(self.effects_of(channel));
                }
                _ => effects.join(self.effects_of(item)),
            }
        }
        effects
    }

    pub(super) fn effects_of(&self, expr: &Expr) -> Effects {
        self.shared.effects.of(expr, &self.shared.program.types)
    }

    /// Declares the variable of a receive and stores what came.
    pub(super) fn receive_into(&mut self, local: tree::LocalId) {
        let (name, ty) = (self.name_of(local), self.type_of(local));
        let slot = self.declare(local, name, ty);
        let mode = if self.is_reference(ty) {
            Mode::Move
        } else {
            Mode::Plain
        };
        self.set(StorePlace::Slot(slot), Value::Received(ty), mode, false);
        self.effects_seen += 1;
    }

    // ---- branches -----------------------------------------------------------------------

    /// The slot that branches store their value in, if they have one. Its default is stored first
    /// where a branch may be missing.
    pub(super) fn result_slot(&mut self, ty: TypeId) -> Option<SlotId> {
        (ty != TypeId::VOID && ty != TypeId::NEVER).then(|| self.temp(ty))
    }

    pub(super) fn result_operand(&self, result: Option<SlotId>, ty: TypeId) -> Operand {
        match result {
            None => Operand::nothing(),
            Some(slot) => {
                let own = if self.is_reference(ty) {
                    Own::Temp(slot)
                } else {
                    Own::Plain
                };
                Operand {
                    value: Value::Slot(slot),
                    ty,
                    own,
                }
            }
        }
    }

    /// One branch as a block of its own, its value stored in `result`.
    pub(super) fn branch(&mut self, expr: &'p Expr, result: Option<SlotId>) -> Block {
        self.nested(|f| f.branch_here(expr, result))
    }

    pub(super) fn branch_here(&mut self, expr: &'p Expr, result: Option<SlotId>) {
        let span = std::mem::replace(&mut self.span, expr.span);
        if let ExprKind::Let(local, init) = &expr.kind {
            self.declaration(*local, init, &[]);
        } else {
            let operand = self.operand(expr);
            if let (Some(slot), false) = (result, operand.ty == TypeId::VOID) {
                self.store(StorePlace::Slot(slot), operand, false);
                self.effects_seen += 1;
            }
        }
        self.span = span;
    }

    pub(super) fn default_of(&mut self, ty: TypeId) -> Value {
        match self.ty(ty) {
            Type::Real => Value::Real(0.0),
            Type::Bool => Value::Bool(false),
            Type::String => self.empty_string(),
            _ if self.is_reference(ty) => Value::Null,
            _ => Value::Int(0, ty),
        }
    }

    pub(super) fn conditional(
        &mut self,
        expr: &'p Expr,
        condition: &'p Expr,
        then: &'p Expr,
        otherwise: Option<&'p Expr>,
    ) -> Operand {
        let condition = self.operand(condition).value;
        let result = self.result_slot(expr.ty);
        let then = self.branch(then, result);
        let otherwise = match (otherwise, result) {
            (Some(branch), _) => self.branch(branch, result),
            (None, Some(slot)) => {
                let default = self.default_of(expr.ty);
                self.buffered(|f| f.set(StorePlace::Slot(slot), default, Mode::Plain, false))
                    .0
            }
            (None, None) => Vec::new(),
        };
        self.emit(StmtKind::If {
            condition,
            then,
            otherwise,
        });
        self.result_operand(result, expr.ty)
    }

    pub(super) fn case(
        &mut self,
        expr: &'p Expr,
        scrutinee: &'p Expr,
        arms: &'p [(Vec<Expr>, Expr)],
        default: &'p Expr,
    ) -> Operand {
        let operand = self.operand(scrutinee);
        let subject = match operand.own {
            Own::Plain => self.spill(operand),
            _ => operand,
        };
        let result = self.result_slot(expr.ty);
        self.case_arms(&subject, arms, default, result);
        self.result_operand(result, expr.ty)
    }

    pub(super) fn case_arms(
        &mut self,
        subject: &Operand,
        arms: &'p [(Vec<Expr>, Expr)],
        default: &'p Expr,
        result: Option<SlotId>,
    ) {
        let Some(((labels, body), rest)) = arms.split_first() else {
            let block = self.branch(default, result);
            self.append(block);
            return;
        };
        let mut condition: Option<Value> = None;
        for label in labels {
            let label = self.operand(label);
            let test = self.equal(subject, &label);
            condition = Some(match condition {
                None => test,
                Some(others) => {
                    Value::Binary(BinaryOp::Or, TypeId::BOOL, Box::new(others), Box::new(test))
                }
            });
        }
        let condition = condition.unwrap_or(Value::Bool(false));
        let then = self.branch(body, result);
        let otherwise = self.nested(|f| f.case_arms(subject, rest, default, result));
        self.emit(StmtKind::If {
            condition,
            then,
            otherwise,
        });
    }

    /// `==` of two operands whose numeric types may differ.
    pub(super) fn equal(&self, a: &Operand, b: &Operand) -> Value {
        let rank = |ty| {
            [
                TypeId::BYTE,
                TypeId::UNSIGNED,
                TypeId::INTEGER,
                TypeId::REAL,
            ]
            .iter()
            .position(|&t| t == ty)
        };
        let joined = match (rank(a.ty), rank(b.ty)) {
            (Some(x), Some(y)) if x < y => b.ty,
            _ => a.ty,
        };
        let convert = |operand: &Operand| {
            if operand.ty == joined {
                operand.value.clone()
            } else {
                Value::Convert(operand.ty, joined, Box::new(operand.value.clone()))
            }
        };
        Value::Binary(
            BinaryOp::Equal,
            joined,
            Box::new(convert(a)),
            Box::new(convert(b)),
        )
    }

    pub(super) fn project(
        &mut self,
        expr: &'p Expr,
        scrutinee: &'p Expr,
        arms: &'p [tree::ProjectArm],
        default: &'p Expr,
    ) -> Operand {
        let operand = self.operand(scrutinee);
        let subject = match operand.own {
            Own::Borrowed if !matches!(operand.value, Value::Slot(_)) => self.owned_temp(operand),
            _ => operand,
        };
        let result = self.result_slot(expr.ty);
        self.project_arms(&subject.value, arms, default, result);
        self.result_operand(result, expr.ty)
    }

    pub(super) fn project_arms(
        &mut self,
        subject: &Value,
        arms: &'p [tree::ProjectArm],
        default: &'p Expr,
        result: Option<SlotId>,
    ) {
        let Some((arm, rest)) = arms.split_first() else {
            let block = self.branch(default, result);
            self.append(block);
            return;
        };
        let condition = Value::BoxIs(Box::new(subject.clone()), arm.ty);
        let then = self.nested(|f| {
            let content = Value::Unboxed(Box::new(subject.clone()), arm.ty);
            let name = f.name_of(arm.local);
            let slot = f.declare(arm.local, name, arm.ty);
            let copied = matches!(f.ty(arm.ty), Type::Struct(_) | Type::Array(_))
                && !f.shared.options.compat_original;
            if copied {
                f.emit(StmtKind::Copy {
                    target: slot,
                    ty: arm.ty,
                    value: content,
                });
            } else {
                let mode = if f.is_reference(arm.ty) {
                    Mode::Retain
                } else {
                    Mode::Plain
                };
                f.set(StorePlace::Slot(slot), content, mode, false);
            }
            f.branch_here(&arm.body, result);
        });
        let otherwise = self.nested(|f| f.project_arms(subject, rest, default, result));
        self.emit(StmtKind::If {
            condition,
            then,
            otherwise,
        });
    }

    pub(super) fn protected(
        &mut self,
        expr: &'p Expr,
        body: &'p Expr,
        handlers: &'p [tree::Handler],
    ) -> Operand {
        let result = self.result_slot(expr.ty);
        let first = self.slots.len() as u32;
        let body = self.branch(body, result);
        let slots = first..self.slots.len() as u32;
        let handlers = handlers
            .iter()
            .map(|handler| Handler {
                label: handler
                    .label
                    .as_ref()
                    .map(|label| self.operand(label).value),
                body: self.branch(&handler.body, result),
            })
            .collect();
        self.emit_effect(StmtKind::Try {
            body,
            slots,
            handlers,
        });
        self.result_operand(result, expr.ty)
    }

    // ---- loops --------------------------------------------------------------------------

    pub(super) fn counting(
        &mut self,
        variable: tree::LocalId,
        from: &'p Expr,
        to: &'p Expr,
        step: i32,
        body: &'p Expr,
    ) {
        let from = self.operand(from).value;
        let name = self.name_of(variable);
        let slot = self.new_slot(Some(name), SlotType::Of(TypeId::INTEGER), false);
        self.bind(variable, slot);
        let first = self.slots.len() as u32;
        let (prepare, to) = self.buffered(|f| {
            f.open_scope(true);
            let operand = f.operand(to);
            f.close_scope_with(operand).value
        });
        let body = self.nested(|f| {
            f.open_scope(false);
            f.branch_here(body, None);
            f.close_scope();
        });
        let fresh = first..self.slots.len() as u32;
        self.emit_effect(StmtKind::Loop(Box::new(Loop {
            variable: slot,
            from,
            prepare,
            to,
            step,
            body,
            fresh,
            counted: false,
            rounds: Rounds::InOrder,
        })));
    }

    // ---- assignment -----------------------------------------------------------------------

    pub(super) fn assign(&mut self, place: &'p Expr, value: &'p Expr) {
        match &place.kind {
            ExprKind::Local(local) => {
                let operand = self.operand(value);
                let place = StorePlace::Slot(self.slot_of(*local));
                self.store(place, operand, true);
            }
            ExprKind::Member(member) => {
                let operand = self.operand(value);
                self.store(StorePlace::Member(*member), operand, true);
            }
            ExprKind::Port(port) => {
                let operand = self.operand(value);
                let name = self.port_name(*port);
                self.assign_port(None, name, operand);
            }
            ExprKind::PortOf(component, name) => {
                let operands = self.sequence(&[component, value], |_, _, _| {});
                let component = operands[0].value.clone();
                self.assign_port(Some(component), *name, operands[1].clone());
            }
            ExprKind::Index(array, index) => {
                let operands = self.sequence(&[array, index, value], |f, i, operands| {
                    if i == 1 {
                        f.check_index(operands);
                    }
                });
                if matches!(self.ty(value.ty), Type::Array(_)) {
                    self.shared.mark_ragged(array.ty);
                }
                let element = self.element_type(array.ty);
                let place = StorePlace::Element(
                    operands[0].value.clone(),
                    operands[1].value.clone(),
                    element,
                );
                self.store(place, operands[2].clone(), true);
            }
            ExprKind::Field(object, field) => {
                let operands = self.sequence(&[object, value], |_, _, _| {});
                let place = StorePlace::Field(operands[0].value.clone(), object.ty, *field);
                self.store(place, operands[1].clone(), true);
            }
            other => unreachable!("{other:?} is no place"),
        }
        self.effects_seen += 1;
    }

    pub(super) fn assign_port(&mut self, component: Option<Value>, name: Symbol, operand: Operand) {
        let owned = match operand.own {
            Own::Temp(_) => operand,
            _ => self.owned_temp(operand),
        };
        let Own::Temp(value) = owned.own else {
            unreachable!("an owned operand")
        };
        self.emit(StmtKind::PortAssign {
            component,
            name,
            value,
        });
    }

    // ---- names --------------------------------------------------------------------------------

    pub(super) fn port_name(&self, port: tree::PortId) -> Symbol {
        let component = self.component.expect("ports are named inside components");
        self.shared.program.components[component.index()].channels[port.index()].name
    }

    pub(super) fn name_of(&self, local: tree::LocalId) -> Symbol {
        self.locals[local.index()].name
    }

    pub(super) fn type_of(&self, local: tree::LocalId) -> TypeId {
        self.locals[local.index()].ty
    }
}

fn mentions(expr: &Expr, local: tree::LocalId) -> bool {
    let mut found = false;
    walk(expr, &mut |e| {
        found |= matches!(e.kind, ExprKind::Local(l) if l == local)
    });
    found
}

/// A declaration's type; an integer initialiser may have been widened to nothing else.
fn operand_type(init: &Expr, operand: &Operand) -> TypeId {
    if operand.ty == TypeId::VOID {
        init.ty
    } else {
        operand.ty
    }
}

/// The variables a value is read through.
fn slots_in(value: &Value) -> Vec<SlotId> {
    let mut found = Vec::new();
    crate::core::passes::visit_value(value, &mut |v| {
        if let Value::Slot(slot) = v {
            found.push(*slot);
        }
    });
    found
}
