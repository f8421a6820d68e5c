//! Communication: sends, receives, selects, connections, stops.

use super::{FunctionLowering, Operand, Own};
use crate::core::ir::*;
use crate::tree::{self, BinaryOp, Expr, UnaryOp};
use crate::types::TypeId;

/// The label of OperationFailedException, which is the first.
const OPERATION_FAILED: i64 = 0;

impl<'p> FunctionLowering<'_, 'p> {
    // ---- communication ------------------------------------------------------------------------

    pub(super) fn send(&mut self, value: &'p Expr, channel: &'p Expr) {
        let operands = self.sequence(&[value, channel], |_, _, _| {});
        let [value, target] = <[Operand; 2]>::try_from(operands).expect("two operands");
        let moved = match value.own {
            Own::Temp(temp) => {
                self.consume(temp);
                Some(temp)
            }
            _ => None,
        };
        self.blocks = true;
        self.emit_effect(StmtKind::Send {
            channel: target.value,
            value: value.value,
            ty: value.ty,
            moved,
            text: channel.span,
        });
    }

    pub(super) fn held_slot(&mut self) -> SlotId {
        let slot = self.new_slot(None, SlotType::Held, true);
        self.declare_counted(slot);
        slot
    }

    pub(super) fn acknowledge(&mut self, local: tree::LocalId, channel: &'p Expr, body: &'p Expr) {
        let text = channel.span;
        let channel = self.operand(channel).value;
        self.blocks = true;
        let held = self.new_slot(None, SlotType::Held, true);
        self.emit_effect(StmtKind::Receive {
            channel,
            held: Some(held),
            text,
        });
        self.receive_into(local);
        let block = self.nested(|f| {
            f.declare_counted(held);
            f.branch_here(body, None);
        });
        self.append(block);
    }

    pub(super) fn select(
        &mut self,
        expr: &'p Expr,
        arms: &'p [tree::SelectArm],
        default: Option<&'p Expr>,
    ) -> Operand {
        self.blocks = true;
        let mut lowered = Vec::new();
        for arm in arms {
            let open = arm.guard.as_ref().map(|guard| {
                let operand = self.operand(guard);
                match operand.value {
                    Value::Bool(_) => operand.value,
                    _ => self.spill(operand).value,
                }
            });
            let channel = self.arm_channel(&arm.channel, open.as_ref());
            lowered.push((open, channel));
        }
        let guarded: Option<Vec<Value>> = lowered.iter().map(|(open, _)| open.clone()).collect();
        if let (Some(guards), None) = (guarded, default) {
            self.raise_if_closed(guards);
        }
        self.effects_seen += 1;
        let result = self.result_slot(expr.ty);
        let arms = arms
            .iter()
            .zip(lowered)
            .map(|(arm, (open, channel))| Arm {
                open,
                channel,
                acknowledge: arm.acknowledge,
                text: arm.channel.span,
                body: self.arm_body(arm, result),
            })
            .collect();
        let default = default.map(|e| self.branch(e, result));
        self.emit_effect(StmtKind::Select { arms, default });
        self.result_operand(result, expr.ty)
    }

    /// The channel of an arm; a place that takes work is only evaluated if the arm is open.
    pub(super) fn arm_channel(&mut self, channel: &'p Expr, open: Option<&Value>) -> Value {
        self.effects_seen += 1;
        let (block, operand) = self.buffered(|f| {
            f.open_scope(true);
            let operand = f.operand(channel);
            f.close_scope_with(operand)
        });
        if block.is_empty() && matches!(operand.value, Value::Port(_) | Value::Global(_)) {
            return operand.value;
        }
        let slot = self.temp(channel.ty);
        let (mut work, ()) = self.buffered(|f| f.store(StorePlace::Slot(slot), operand, false));
        let mut then = block;
        then.append(&mut work);
        match open {
            Some(open) => self.emit(StmtKind::If {
                condition: open.clone(),
                then,
                otherwise: Vec::new(),
            }),
            None => self.append(then),
        }
        Value::Slot(slot)
    }

    pub(super) fn raise_if_closed(&mut self, guards: Vec<Value>) {
        let any = guards
            .into_iter()
            .reduce(|a, b| Value::Binary(BinaryOp::Or, TypeId::BOOL, Box::new(a), Box::new(b)));
        let Some(any) = any else { return };
        self.raises = true;
        let label = Value::Int(OPERATION_FAILED, self.shared.program.exception_type);
        let (then, ()) = self.buffered(|f| f.emit(StmtKind::Raise { label }));
        let condition = Value::Unary(UnaryOp::Not, TypeId::BOOL, Box::new(any));
        self.emit(StmtKind::If {
            condition,
            then,
            otherwise: Vec::new(),
        });
    }

    pub(super) fn arm_body(&mut self, arm: &'p tree::SelectArm, result: Option<SlotId>) -> Block {
        self.nested(|f| {
            f.span = arm.span;
            if arm.acknowledge {
                let held = f.held_slot();
                f.emit(StmtKind::TakeHeld(held));
            }
            f.receive_into(arm.local);
            f.branch_here(&arm.body, result);
        })
    }

    pub(super) fn connect(&mut self, a: &'p tree::End, b: &'p tree::End) {
        if let (tree::End::Local(a), tree::End::Local(b)) = (a, b) {
            let operands = self.sequence(&[a, b], |_, _, _| {});
            let (a, b) = (operands[0].value.clone(), operands[1].value.clone());
            self.emit_effect(StmtKind::Connect(End::Local(a), End::Local(b)));
            return;
        }
        self.blocks = true;
        let a = self.end(a);
        let b = self.end(b);
        self.emit_effect(StmtKind::Connect(a, b));
    }

    pub(super) fn end(&mut self, end: &'p tree::End) -> End {
        match end {
            tree::End::Local(channel) => End::Local(self.operand(channel).value),
            tree::End::Remote { name, address } => {
                let operands = self.sequence(&[name, address], |_, _, _| {});
                let name = operands[0].value.clone();
                if address.ty == TypeId::UNSIGNED {
                    return End::Remote(name, operands[1].value.clone());
                }
                let target = self.new_slot(None, SlotType::Of(TypeId::UNSIGNED), false);
                self.emit(StmtKind::AddressOf {
                    target,
                    bytes: operands[1].value.clone(),
                });
                End::Remote(name, Value::Slot(target))
            }
        }
    }

    pub(super) fn stop(&mut self, target: Option<&'p Expr>) {
        match target {
            Some(component) => {
                let component = self.operand(component).value;
                self.emit_effect(StmtKind::StopOther(component));
            }
            None => {
                self.raises = true;
                self.emit_effect(StmtKind::StopSelf);
            }
        }
    }
}
