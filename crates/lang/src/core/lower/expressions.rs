//! Expressions: a pure value, and the statements that had to run before it.

use super::{FunctionLowering, Operand, Own};
use crate::core::ir::*;
use crate::tree::{BinaryOp, Callee as TreeCallee, Expr, ExprKind, UnaryOp};
use crate::types::{Type, TypeId};

impl<'p> FunctionLowering<'_, 'p> {
    /// Evaluates an expression; the statements it needs first are emitted.
    pub(super) fn operand(&mut self, expr: &'p Expr) -> Operand {
        use ExprKind as E;
        let ty = expr.ty;
        let own = if self.is_reference(ty) {
            Own::Borrowed
        } else {
            Own::Plain
        };
        let plain = |value| Operand { value, ty, own };
        if let Some(value) = self.simple(expr) {
            return plain(value);
        }
        match &expr.kind {
            E::Proc(proc) if self.shared.program.procs[proc.index()].bound => {
                self.make(ty, |target| StmtKind::NewProcedure {
                    target,
                    proc: *proc,
                })
            }
            E::Proc(proc) => plain(Value::Proc(*proc)),
            E::Convert(e) => {
                let operand = self.operand(e);
                plain(Value::Convert(operand.ty, ty, Box::new(operand.value)))
            }
            E::Unary(UnaryOp::Plus, e) => self.operand(e),
            E::Unary(op, e) => {
                let operand = self.operand(e);
                plain(Value::Unary(*op, ty, Box::new(operand.value)))
            }
            E::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => self.short_circuit(*op, a, b),
            E::Binary(op, a, b) => self.binary(*op, a, b, ty),
            E::Chain(parts) => self.chain(parts),
            E::Carried => self.carried.take().expect("the part before"),
            E::Length(e) => {
                let operand = self.operand(e);
                plain(Value::Length(Box::new(operand.value)))
            }
            E::Index(array, index) => {
                let element = self.element(array, index);
                plain(element)
            }
            E::Field(object, field) => {
                let operand = self.operand(object);
                plain(Value::Field(Box::new(operand.value), object.ty, *field))
            }
            E::PortOf(component, name) => {
                let operand = self.operand(component);
                let name = *name;
                self.make(ty, |target| StmtKind::PortOf {
                    target,
                    component: operand.value,
                    name,
                })
            }
            E::Call(callee, args) => self.call(callee, args, expr),
            E::Box(_)
            | E::NewArray { .. }
            | E::NewStruct(_)
            | E::NewChannel
            | E::NewComponent { .. } => self.creation(expr),
            E::Error => unreachable!("only programs without errors are lowered"),
            _ => self.statement_value(expr),
        }
    }

    /// The value of a literal or a variable.
    fn simple(&mut self, expr: &Expr) -> Option<Value> {
        use ExprKind as E;
        Some(match &expr.kind {
            E::Int(n) => Value::Int(*n, expr.ty),
            E::Real(r) => Value::Real(*r),
            E::Bool(b) => Value::Bool(*b),
            E::Label(n) => Value::Int(i64::from(*n), expr.ty),
            E::String(text) => {
                let number = self.shared.string(text);
                Value::String(number)
            }
            E::Local(local) => Value::Slot(self.slot_of(*local)),
            E::Member(member) => Value::Member(*member),
            E::Port(port) => Value::Port(*port),
            E::Global(global) => Value::Global(*global),
            _ => return None,
        })
    }

    /// A new box, array, struct, channel or component.
    fn creation(&mut self, expr: &'p Expr) -> Operand {
        use ExprKind as E;
        let ty = expr.ty;
        match &expr.kind {
            E::Box(e) => {
                let operand = self.operand(e);
                self.make(ty, |target| StmtKind::NewBox {
                    target,
                    ty: operand.ty,
                    value: operand.value,
                })
            }
            E::NewArray { lengths, init } => {
                let operand = self.operand(init);
                self.make(ty, |target| StmtKind::NewArray {
                    target,
                    ty,
                    lengths: lengths.clone(),
                    init: operand.value,
                    init_type: operand.ty,
                    on_stack: false,
                })
            }
            E::NewStruct(args) => self.new_struct(args, ty),
            E::NewChannel => {
                let Type::Channel(direction, payload) = self.ty(ty) else {
                    unreachable!("a channel's type")
                };
                self.make(ty, |target| StmtKind::NewChannel {
                    target,
                    direction: *direction,
                    payload: *payload,
                })
            }
            E::NewComponent {
                component,
                constructor,
                args,
            } => {
                let refs: Vec<&Expr> = args.iter().collect();
                let operands = self.sequence(&refs, |_, _, _| {});
                let args = operands
                    .into_iter()
                    .map(|o| Argument {
                        value: o.value,
                        ty: o.ty,
                    })
                    .collect();
                self.effects_seen += 1;
                self.make(ty, |target| StmtKind::NewComponent {
                    target,
                    component: *component,
                    constructor: *constructor,
                    args,
                })
            }
            other => unreachable!("{other:?}"),
        }
    }

    pub(super) fn empty_string(&mut self) -> Value {
        Value::String(self.shared.string(""))
    }

    /// A new object in a temporary that owns it.
    pub(super) fn make(&mut self, ty: TypeId, kind: impl FnOnce(SlotId) -> StmtKind) -> Operand {
        let target = self.temp(ty);
        self.emit(kind(target));
        Operand {
            value: Value::Slot(target),
            ty,
            own: Own::Temp(target),
        }
    }

    /// A chain of operators, part by part. Only the value of a part, which nothing that comes later
    /// can change, goes to the next one, and no value is as deep as the chain is long.
    fn chain(&mut self, parts: &'p [Expr]) -> Operand {
        let mut value: Option<Operand> = None;
        for part in parts {
            self.carried = value.map(|operand| match operand.own {
                Own::Plain => self.spill(operand),
                _ => operand,
            });
            value = Some(self.operand(part));
        }
        value.expect("a chain has parts")
    }

    pub(super) fn short_circuit(&mut self, op: BinaryOp, a: &'p Expr, b: &'p Expr) -> Operand {
        let left = self.operand(a);
        self.out.push(Vec::new());
        self.open_scope(false);
        let before = self.effects_seen;
        let right = self.operand(b);
        let right = self.close_scope_with(right);
        let buffer = self.out.pop().expect("the right side's buffer");
        if buffer.is_empty() && before == self.effects_seen {
            let value = Value::Binary(
                op,
                TypeId::BOOL,
                Box::new(left.value),
                Box::new(right.value),
            );
            return Operand {
                value,
                ty: TypeId::BOOL,
                own: Own::Plain,
            };
        }
        let result = self.spill(left);
        let Value::Slot(slot) = result.value else {
            unreachable!("a spilled operand is a slot")
        };
        let then = {
            self.out.push(buffer);
            self.set(StorePlace::Slot(slot), right.value, Mode::Plain, false);
            self.out.pop().expect("the branch")
        };
        let condition = match op {
            BinaryOp::And => result.value.clone(),
            _ => Value::Unary(UnaryOp::Not, TypeId::BOOL, Box::new(result.value.clone())),
        };
        self.emit(StmtKind::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
        result
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: &'p Expr, b: &'p Expr, ty: TypeId) -> Operand {
        let operands = self.sequence(&[a, b], |_, _, _| {});
        let [left, right] = <[Operand; 2]>::try_from(operands).expect("two operands");
        let mut operand_type = left.ty;
        let (mut left, mut right) = (left.value, right.value);
        let divides =
            matches!(op, BinaryOp::Divide | BinaryOp::Remainder) && operand_type != TypeId::REAL;
        if divides && !matches!(right, Value::Int(n, _) if n != 0) {
            self.raises = true;
            self.emit(StmtKind::CheckZero {
                value: right.clone(),
                ty: operand_type,
            });
        }
        let compares = matches!(
            op,
            BinaryOp::Less
                | BinaryOp::LessEqual
                | BinaryOp::Greater
                | BinaryOp::GreaterEqual
                | BinaryOp::Equal
                | BinaryOp::NotEqual
        );
        if self.shared.options.compat_original && compares && operand_type == TypeId::INTEGER {
            // As C compares: if one side is unsigned, both are.
            let is_unsigned = |v: &Value| matches!(v, Value::Convert(TypeId::UNSIGNED, _, _));
            if is_unsigned(&left) || is_unsigned(&right) {
                let recast = |v| match v {
                    Value::Convert(TypeId::UNSIGNED, _, inner) => *inner,
                    v => Value::Convert(TypeId::INTEGER, TypeId::UNSIGNED, Box::new(v)),
                };
                (left, right) = (recast(left), recast(right));
                operand_type = TypeId::UNSIGNED;
            }
        }
        let value = Value::Binary(op, operand_type, Box::new(left), Box::new(right));
        Operand {
            value,
            ty,
            own: Own::Plain,
        }
    }

    /// Array and index evaluated and checked; the element as a value.
    pub(super) fn element(&mut self, array: &'p Expr, index: &'p Expr) -> Value {
        let operands = self.sequence(&[array, index], |f, i, operands| {
            if i == 1 {
                f.check_index(operands);
            }
        });
        let [array_operand, index] = <[Operand; 2]>::try_from(operands).expect("two operands");
        Value::Element(
            Box::new(array_operand.value),
            Box::new(index.value),
            self.element_type(array.ty),
        )
    }

    pub(super) fn element_type(&self, array: TypeId) -> TypeId {
        match self.ty(array) {
            Type::Array(element) => *element,
            other => unreachable!("{other:?} is no array"),
        }
    }

    /// Operands 0 and 1 are an array and an index: emits their check.
    pub(super) fn check_index(&mut self, operands: &mut [Operand]) {
        let (array, index) = (operands[0].value.clone(), operands[1].clone());
        if self.shared.options.compat_original {
            operands[1].value =
                Value::IndexOrZero(Box::new(array), Box::new(index.value), index.ty);
            return;
        }
        if size_of_value(&index.value) > 4 {
            operands[1] = self.spill(index);
        }
        self.raises = true;
        let index = &operands[1];
        self.emit(StmtKind::CheckIndex {
            array,
            index: index.value.clone(),
            index_type: index.ty,
        });
    }

    pub(super) fn new_struct(&mut self, args: &'p [Expr], ty: TypeId) -> Operand {
        let fields = self.fields(args);
        self.make(ty, |target| StmtKind::NewStruct {
            target,
            ty,
            fields,
            on_stack: false,
        })
    }

    /// The values of a new struct's fields, with the references they take.
    pub(super) fn fields(&mut self, args: &'p [Expr]) -> Vec<(Value, Mode)> {
        let refs: Vec<&Expr> = args.iter().collect();
        let operands = self.sequence(&refs, |_, _, _| {});
        operands
            .into_iter()
            .map(|operand| match operand.own {
                Own::Plain => (operand.value, Mode::Plain),
                Own::Borrowed => (operand.value, Mode::Retain),
                Own::Temp(temp) => {
                    self.consume(temp);
                    (operand.value, Mode::Move)
                }
            })
            .collect()
    }

    pub(super) fn call(
        &mut self,
        callee: &'p TreeCallee,
        args: &'p [Expr],
        expr: &'p Expr,
    ) -> Operand {
        let (ty, text) = (expr.ty, expr.span);
        let mut exprs: Vec<&Expr> = Vec::with_capacity(args.len() + 1);
        let effects = match callee {
            TreeCallee::Proc(proc) => self.shared.effects.of_proc(*proc),
            TreeCallee::Value(value) => {
                exprs.push(value);
                self.shared.effects.of_value(value.ty)
            }
        };
        exprs.extend(args);
        let mut operands = self.sequence(&exprs, |_, _, _| {});
        if effects.writes_refs {
            // The callee may overwrite what an argument was read from.
            for operand in &mut operands {
                let rooted = matches!(
                    operand.value,
                    Value::Slot(_) | Value::String(_) | Value::Global(_) | Value::Proc(_)
                );
                if operand.own == Own::Borrowed && !rooted {
                    *operand = self.owned_temp(operand.clone());
                }
            }
        }
        let mut arguments: Vec<Argument> = operands
            .into_iter()
            .map(|o| Argument {
                value: o.value,
                ty: o.ty,
            })
            .collect();
        let callee = match callee {
            TreeCallee::Proc(proc) => Callee::Proc(*proc),
            TreeCallee::Value(value) => Callee::Value(arguments.remove(0).value, value.ty),
        };
        self.blocks |= effects.blocks;
        self.raises |= effects.raises;
        if effects.writes || effects.blocks {
            self.effects_seen += 1;
        }
        if ty == TypeId::VOID || ty == TypeId::NEVER {
            self.emit(StmtKind::Call {
                target: None,
                callee,
                args: arguments,
                text,
                turn: Turn::InOrder,
            });
            return Operand::nothing();
        }
        if self.is_reference(ty) {
            return self.make(ty, |target| StmtKind::Call {
                target: Some(target),
                callee,
                args: arguments,
                text,
                turn: Turn::InOrder,
            });
        }
        let target = self.temp(ty);
        self.emit(StmtKind::Call {
            target: Some(target),
            callee,
            args: arguments,
            text,
            turn: Turn::InOrder,
        });
        Operand {
            value: Value::Slot(target),
            ty,
            own: Own::Plain,
        }
    }
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Convert(_, _, e) | Value::Unary(_, _, e) | Value::Length(e) => 1 + size_of_value(e),
        Value::Binary(_, _, a, b) | Value::Element(a, b, _) => {
            1 + size_of_value(a) + size_of_value(b)
        }
        Value::Field(e, _, _) | Value::Unboxed(e, _) => 1 + size_of_value(e),
        _ => 1,
    }
}
