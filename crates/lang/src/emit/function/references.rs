//! Counting: retaining, releasing, storing.

use super::Emitter;
use crate::core::ir::*;
use crate::types::{Type, TypeId};

impl Emitter<'_, '_> {
    // ---- references -------------------------------------------------------------------------

    pub(super) fn release_call(&self, ty: TypeId, what: &str) -> String {
        match self.context.ty(ty) {
            Type::Channel(..) => format!("hearth_channel_release({what})"),
            Type::Component(_) => format!("hearth_component_release({what})"),
            _ => format!(
                "hearth_release(base, {}, {what})",
                self.context.descriptor(ty)
            ),
        }
    }

    pub(super) fn retained(&self, ty: TypeId, value: &Value) -> String {
        let text = self.bare(value);
        match self.context.ty(ty) {
            Type::Channel(..) => format!("hearth_channel_retain({text})"),
            Type::Component(_) => format!("hearth_component_retain({text})"),
            _ if matches!(value, Value::String(_) | Value::Proc(_)) => text,
            _ => format!("hearth_retain({text})"),
        }
    }

    pub(super) fn release_slot(&mut self, slot: SlotId, ok: &str) {
        let name = self.slot_name(slot);
        if self.function.slots[slot.index()].ty == SlotType::Held {
            self.line(format!("hearth_release_sender(base, &{name}, {ok});"));
            self.line(format!("{name}.sender = NULL;"));
            return;
        }
        let call = self.release_call(self.slot_type(slot), &name);
        self.line(format!("{call};"));
        self.line(format!("{name} = NULL;"));
    }

    /// At the end of the function by `return` or exception; slots that hold nothing are NULL.
    pub(super) fn release_at_exit(&mut self, slot: SlotId) {
        let name = self.slot_name(slot);
        if self.function.slots[slot.index()].ty == SlotType::Held {
            self.line(format!("if ({name}.sender)"));
            self.line(format!(
                "    hearth_release_sender(base, &{name}, base->raised == 0);"
            ));
            self.line(format!("{name}.sender = NULL;"));
        } else {
            let call = self.release_call(self.slot_type(slot), &name);
            self.line(format!("{call};"));
            if self.function.slots[slot.index()].storage == Storage::Frame {
                self.line(format!("{name} = NULL;"));
            }
        }
    }

    pub(super) fn place(&self, place: &StorePlace) -> (String, TypeId) {
        match place {
            StorePlace::Slot(slot) => (self.slot_name(*slot), self.slot_type(*slot)),
            StorePlace::Member(member) => {
                let component = self
                    .context
                    .owner(self.function.role)
                    .expect("members belong to components");
                let ty = self.context.input.program.components[component.index()].members
                    [member.index()]
                .ty;
                (format!("self->{}", self.member_name(*member)), ty)
            }
            StorePlace::Global(global) => (
                self.context.names.global(*global).to_owned(),
                self.context.input.program.globals[global.index()].ty,
            ),
            StorePlace::Element(array, index, ty) => (
                format!("{}->data[{}]", self.object(array), self.index(index)),
                *ty,
            ),
            StorePlace::Field(object, ty, field) => (
                format!(
                    "{}->{}",
                    self.object(object),
                    self.context.field_name(*ty, *field)
                ),
                self.context.field_type(*ty, *field),
            ),
            StorePlace::Result => {
                let name = if self.function.blocks {
                    "frame->result"
                } else {
                    "result"
                };
                (name.into(), self.function.result)
            }
        }
    }

    pub(super) fn set(&mut self, place: &StorePlace, value: &Value, mode: Mode, replace: bool) {
        if let StorePlace::Slot(slot) = place
            && !self.layout.used[slot.index()]
        {
            return; // never read, and values have no effects
        }
        let (place, ty) = self.place(place);
        let new = match mode {
            Mode::Retain => self.retained(ty, value),
            Mode::Plain | Mode::Move => self.bare(value),
        };
        let moved = match (mode, value) {
            (Mode::Move, Value::Slot(slot)) => Some(self.slot_name(*slot)),
            _ => None,
        };
        if replace && mode != Mode::Plain {
            let old = self.context.declare(ty, "old");
            let cast = if place.contains("->data[") {
                format!("({})", self.context.c_type(ty))
            } else {
                String::new()
            };
            self.line("{");
            self.line(format!("    {old} = {cast}{place};"));
            self.line(format!("    {place} = {new};"));
            if let Some(moved) = moved {
                self.line(format!("    {moved} = NULL;"));
            }
            let call = self.release_call(ty, "old");
            self.line(format!("    {call};"));
            self.line("}");
            return;
        }
        self.line(format!("{place} = {new};"));
        if let Some(moved) = moved {
            self.line(format!("{moved} = NULL;"));
        }
    }
}
