//! Statements of the core IR, one by one, and leaving early.

use super::{Emitter, Target};
use crate::core::ir::*;
use crate::source::Span;
use crate::types::TypeId;
use std::fmt::Write;

impl Emitter<'_, '_> {
    pub(super) fn block(&mut self, block: &[Stmt]) {
        for stmt in block {
            self.statement(stmt);
        }
    }

    pub(super) fn inner(&mut self, block: &Block) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    pub(super) fn statement(&mut self, stmt: &Stmt) {
        let quiet = matches!(
            &stmt.kind,
            StmtKind::Release(_)
                | StmtKind::Promoted { .. }
                | StmtKind::Versioned { .. }
                | StmtKind::Await(_)
        );
        if !quiet {
            self.place_mark(stmt.span);
        }
        let span = stmt.span;
        if let StmtKind::NewStruct {
            target,
            on_stack: true,
            ..
        }
        | StmtKind::NewArray {
            target,
            on_stack: true,
            ..
        } = &stmt.kind
            && !self.layout.used[target.index()]
        {
            return; // it is never read
        }
        match &stmt.kind {
            StmtKind::Set {
                place,
                value,
                mode,
                replace,
            } => self.set(place, value, *mode, *replace),
            StmtKind::Release(slot) => self.release_slot(*slot, "true"),
            StmtKind::CheckIndex { array, index, .. } => self.check_index(array, index, span),
            StmtKind::CheckZero { value, ty } => self.check_zero(value, *ty, span),
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => self.conditional(condition, then, otherwise),
            StmtKind::Loop(l) => self.repeat(l),
            StmtKind::Versioned { guards, fast, slow } => self.versioned(guards, fast, slow),
            StmtKind::Promoted { members, body } => self.promoted(members, body),
            StmtKind::Call {
                target,
                callee: Callee::Proc(proc),
                args,
                turn: Turn::Beside(record),
                ..
            } if self.can_be_record(*proc) => {
                let target = target.filter(|slot| self.layout.used[slot.index()]);
                self.call_beside(*record, target, *proc, args);
            }
            StmtKind::Call {
                target,
                callee,
                args,
                ..
            } => self.call(*target, callee, args, span),
            StmtKind::Await(record) => self.await_call(*record),
            StmtKind::StopOther(component) => {
                let component = self.bare(component);
                self.line(format!("hearth_stop(base, {component});"));
            }
            StmtKind::StopSelf => self.stop_self(),
            StmtKind::Raise { label } => {
                let site = self.context.site(span, "throw");
                let label = self.bare(label);
                self.line(format!(
                    "hearth_raise(base, (uint32_t){label}, {site}, NULL);"
                ));
                self.goto_raise();
            }
            StmtKind::Return => self.leave(),
            StmtKind::Try {
                body,
                slots,
                handlers,
            } => self.protected(body, slots.clone(), handlers),
            StmtKind::NewArray { .. }
            | StmtKind::NewStruct { .. }
            | StmtKind::NewChannel { .. }
            | StmtKind::NewComponent { .. }
            | StmtKind::NewBox { .. }
            | StmtKind::NewProcedure { .. }
            | StmtKind::Copy { .. } => self.creation(stmt),
            StmtKind::PortOf { .. }
            | StmtKind::PortAssign { .. }
            | StmtKind::Send { .. }
            | StmtKind::Receive { .. }
            | StmtKind::Select { .. }
            | StmtKind::TakeHeld(_)
            | StmtKind::Connect(..)
            | StmtKind::Disconnect(_)
            | StmtKind::Publish { .. }
            | StmtKind::AddressOf { .. } => self.communication(stmt),
        }
    }

    /// A statement that creates a value.
    fn creation(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::NewArray {
                target,
                ty,
                lengths,
                init,
                on_stack: true,
                ..
            } => self.stack_array(*target, *ty, lengths[0], init),
            StmtKind::NewArray {
                target,
                ty,
                lengths,
                init,
                init_type,
                on_stack: false,
            } => self.new_array(*target, *ty, lengths, init, *init_type),
            StmtKind::NewStruct {
                target,
                ty,
                fields,
                on_stack,
            } => self.new_struct(*target, *ty, fields, *on_stack),
            StmtKind::NewChannel {
                target,
                direction,
                payload,
            } => {
                let name = self.slot_name(*target);
                let descriptor = self.context.descriptor(*payload);
                let direction = *direction as u32;
                self.line(format!(
                    "{name} = hearth_channel_new(base, {descriptor}, {direction});"
                ));
            }
            StmtKind::NewComponent {
                target,
                component,
                constructor,
                args,
            } => {
                self.new_component(*target, *component, *constructor, args);
            }
            StmtKind::NewBox { target, ty, value } => {
                let name = self.slot_name(*target);
                let descriptor = self.context.descriptor(*ty);
                let value = self.slot_value(value, *ty);
                self.line(format!(
                    "{name} = hearth_box_new(base, {descriptor}, {value});"
                ));
            }
            StmtKind::NewProcedure { target, proc } => self.new_procedure(*target, *proc),
            StmtKind::Copy { target, ty, value } => {
                let name = self.slot_name(*target);
                let descriptor = self.context.descriptor(*ty);
                let value = self.slot_value(value, *ty);
                self.line(format!(
                    "{name} = hearth_copy(base, {descriptor}, {value}).pointer;"
                ));
            }
            other => unreachable!("{other:?}"),
        }
    }

    /// A statement about channels and ports.
    fn communication(&mut self, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::PortOf {
                target,
                component,
                name,
            } => {
                let target = self.slot_name(*target);
                let component = self.bare(component);
                let name = self.context.input.program.names.name(*name);
                self.line(format!(
                    "{target} = hearth_port_of({component}, \"{name}\");"
                ));
            }
            StmtKind::PortAssign {
                component,
                name,
                value,
            } => {
                let component = component
                    .as_ref()
                    .map_or("base".to_owned(), |c| self.bare(c));
                let name = self.context.input.program.names.name(*name);
                let value = self.slot_name(*value);
                self.line(format!(
                    "hearth_port_assign(base, {component}, \"{name}\", {value});"
                ));
                self.line(format!("{value} = NULL;"));
            }
            StmtKind::Send {
                channel,
                value,
                ty,
                moved,
                text,
            } => self.send(channel, value, *ty, *moved, span, *text),
            StmtKind::Receive {
                channel,
                held,
                text,
            } => self.receive(channel, *held, span, *text),
            StmtKind::Select { arms, default } => self.select(arms, default.as_ref(), span),
            StmtKind::TakeHeld(slot) => {
                let name = self.slot_name(*slot);
                self.line(format!("{name} = base->held;"));
                self.line("base->held.sender = NULL;");
            }
            StmtKind::Connect(..) | StmtKind::Disconnect(_) | StmtKind::Publish { .. } => {
                self.connection(stmt);
            }
            StmtKind::AddressOf { target, bytes } => {
                let text = format!(
                    "{} = hearth_address_of_bytes({});",
                    self.slot_name(*target),
                    self.bare(bytes)
                );
                self.line(text);
            }
            other => unreachable!("{other:?}"),
        }
    }

    /// A statement that connects, disconnects or publishes.
    fn connection(&mut self, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Connect(End::Local(a), End::Local(b)) => {
                let site = self.context.site(span, "connect");
                let (a, b) = (self.bare(a), self.bare(b));
                self.line(format!("hearth_connect(base, {a}, {b}, {site});"));
            }
            StmtKind::Connect(a, b) => self.connect_remote(a, b, span),
            StmtKind::Disconnect(End::Local(a)) => {
                let site = self.context.site(span, "disconnect");
                let a = self.bare(a);
                self.line(format!("hearth_disconnect(base, {a}, {site});"));
            }
            StmtKind::Disconnect(End::Remote(name, address)) => {
                let site = self.context.site(span, "disconnect");
                let call = format!(
                    "hearth_disconnect_remote(base, {}, {}, {site})",
                    self.bare(name),
                    self.bare(address)
                );
                self.wait(&call, None);
            }
            StmtKind::Publish { channel, name } => {
                let site = self.context.site(span, "publish");
                let call = format!(
                    "hearth_publish(base, {}, {}, {site})",
                    self.bare(channel),
                    self.bare(name)
                );
                self.wait(&call, None);
            }
            other => unreachable!("{other:?}"),
        }
    }

    pub(super) fn check_index(&mut self, array: &Value, index: &Value, span: Span) {
        let site = self.context.site(span, "index");
        let target = self.raise_target();
        let (length, index) = (self.length(array), self.value(index));
        self.line(format!(
            "if (HEARTH_UNLIKELY((size_t){index} >= {length})) {{"
        ));
        self.line(format!(
            "    hearth_raise_index(base, {index}, {length}, {site});"
        ));
        self.line(format!("    goto {target};"));
        self.line("}");
    }

    pub(super) fn check_zero(&mut self, value: &Value, _ty: TypeId, span: Span) {
        let site = self.context.site(span, "division");
        let target = self.raise_target();
        let condition = match value {
            Value::Int(0, _) => "true".to_owned(),
            _ => format!("HEARTH_UNLIKELY({} == 0)", self.value(value)),
        };
        self.line(format!("if ({condition}) {{"));
        self.line(format!(
            "    hearth_raise(base, HEARTH_DIVISION_BY_ZERO, {site}, NULL);"
        ));
        self.line(format!("    goto {target};"));
        self.line("}");
    }

    pub(super) fn conditional(&mut self, condition: &Value, then: &Block, otherwise: &Block) {
        let condition = self.bare(condition);
        self.line(format!("if ({condition}) {{"));
        self.inner(then);
        if !otherwise.is_empty() {
            self.line("} else {");
            self.inner(otherwise);
        }
        self.line("}");
    }

    // ---- leaving ------------------------------------------------------------------------------

    pub(super) fn leave(&mut self) {
        let promoted: Vec<_> = self
            .handlers
            .iter()
            .flat_map(|t| t.promoted.clone())
            .collect();
        self.write_back(&promoted);
        let has_result = self.function.result != TypeId::VOID;
        if self.counted_slots().is_empty() {
            self.line(match (self.function.blocks, has_result) {
                (true, _) => "return HEARTH_DONE;",
                (false, true) => "return result;",
                (false, false) => "return;",
            });
        } else {
            self.leaves = true;
            self.line("goto leave;");
        }
    }

    pub(super) fn stop_self(&mut self) {
        if self.context.input.options.compat_original {
            self.line("hearth_stop(base, base);");
        } else {
            self.line("hearth_raise_stop(base);");
            self.goto_raise();
        }
    }

    pub(super) fn protected(
        &mut self,
        body: &Block,
        slots: std::ops::Range<u32>,
        handlers: &[Handler],
    ) {
        let label = self.new_label("catch");
        self.handlers.push(Target {
            label: label.clone(),
            used: false,
            promoted: Vec::new(),
        });
        self.block(body);
        let target = self.handlers.pop().expect("pushed above");
        if !target.used {
            return;
        }
        let end = self.new_label("caught");
        self.line(format!("goto {end};"));
        let _ = writeln!(self.body, "{label}:;");
        self.await_all();
        for slot in slots
            .map(SlotId)
            .filter(|s| self.function.slots[s.index()].counted && self.layout.used[s.index()])
        {
            self.release_caught(slot);
        }
        let mut catches_all = false;
        for handler in handlers {
            let condition = match &handler.label {
                Some(label) => format!("base->raised == 1 + (uint32_t){}", self.bare(label)),
                None => {
                    catches_all = true;
                    "base->raised != HEARTH_STOPPED".into()
                }
            };
            self.line(format!("if ({condition}) {{"));
            self.line("    base->raised = 0;");
            self.inner(&handler.body);
            self.line(format!("    goto {end};"));
            self.line("}");
            if catches_all {
                break;
            }
        }
        self.goto_raise();
        let _ = writeln!(self.body, "{end}:;");
    }

    pub(super) fn release_caught(&mut self, slot: SlotId) {
        let name = self.slot_name(slot);
        if self.function.slots[slot.index()].ty == SlotType::Held {
            self.line(format!("if ({name}.sender)"));
            self.line(format!("    hearth_release_sender(base, &{name}, false);"));
            self.line(format!("{name}.sender = NULL;"));
        } else {
            self.release_slot(slot, "true");
        }
    }
}
