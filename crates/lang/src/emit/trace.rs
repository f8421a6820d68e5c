//! Functions that tell which components and half-channels a parked component refers to.
//!
//! Each counted variable in a frame is NULL or holds a reference wherever the function may park,
//! since an exception or a stop releases them all there. Not told are the frames of recursive
//! procedures, which would take stack, and of those called through a value, which only the value
//! knows: what they hold counts as held by somebody alive.

use super::Context;
use super::probes::OPERATION_BIT;
use crate::core::ir::{Role, SlotType};
use crate::tree::{Component, ComponentId};
use crate::types::{Type, TypeId};
use std::fmt::Write;

impl Context<'_> {
    /// Whether a value of this type can refer to a component or a half-channel.
    fn can_refer(&self, ty: TypeId) -> bool {
        match self.ty(ty) {
            Type::Channel(..) | Type::Component(_) | Type::Any | Type::Proc { .. } => true,
            Type::Array(element) => self.can_refer(*element),
            Type::Struct(fields) => fields.iter().any(|(_, ty)| self.can_refer(*ty)),
            _ => false,
        }
    }

    /// Emits the function `trace` of a component type, with those of frames that it needs.
    pub(super) fn emit_trace(&self, id: ComponentId, component: &Component, out: &mut String) {
        let name = self.names.component(id);
        let constructors = component.constructors.len();
        let fields = self.field_names(id);
        let mut text = String::new();
        for (member, field) in component
            .members
            .iter()
            .zip(&fields[component.channels.len()..])
        {
            if self.can_refer(member.ty) {
                let descriptor = self.descriptor(member.ty);
                let _ = writeln!(
                    text,
                    "    hearth_trace(tracer, {descriptor}, self->{field});"
                );
            }
        }
        if self.emit_trace_of_frame(Role::Members(id), out) {
            let _ = writeln!(
                text,
                "    if (base->stage < {constructors})\n        \
                 {name}_members_trace(&self->members, tracer);"
            );
        }
        for k in 0..constructors {
            if self.emit_trace_of_frame(Role::Constructor(id, k), out) {
                let _ = writeln!(
                    text,
                    "    if (base->stage == {})\n        \
                     {name}_constructor_{k}_trace(&self->frame.constructor_{k}, tracer);",
                    constructors + k
                );
            }
        }
        if self.emit_trace_of_frame(Role::Behaviour(id), out) {
            let _ = writeln!(
                text,
                "    if (base->stage == {})\n        \
                 {name}_behaviour_trace(&self->frame.behaviour, tracer);",
                2 * constructors
            );
        }
        let head = if text.is_empty() {
            "    (void)base;\n    (void)tracer;\n".to_owned()
        } else {
            format!("    {name}_component *self = ({name}_component *)base;\n")
        };
        let _ = writeln!(
            out,
            "static void {name}_trace(hearth_component *base, hearth_tracer *tracer)\n{{\n\
             {head}{text}}}\n"
        );
    }

    /// Emits the function for a frame, after those of the frames nested in it. False if it would
    /// tell nothing: then there is none.
    fn emit_trace_of_frame(&self, role: Role, out: &mut String) -> bool {
        if let Some(&known) = self.traced.borrow().get(&role) {
            return known;
        }
        let text = self.trace_of_frame(role, out);
        let tells = !text.is_empty();
        if tells {
            let name = self.names.function(role);
            let _ = writeln!(
                out,
                "static void {name}_trace(const {name}_frame *frame, hearth_tracer *tracer)\n{{\n\
                 {text}}}\n"
            );
        }
        self.traced.borrow_mut().insert(role, tells);
        tells
    }

    fn trace_of_frame(&self, role: Role, out: &mut String) -> String {
        let function = self.function(role);
        let layout = self.layouts.of(role);
        let mut text = String::new();
        if !layout.exists || !function.blocks {
            return text;
        }
        for &slot in &layout.fields {
            let data = &function.slots[slot.index()];
            if !data.counted || !layout.used[slot.index()] {
                continue;
            }
            let name = &layout.slot_names[slot.index()];
            match data.ty {
                SlotType::Held => {
                    let _ = writeln!(text, "    hearth_trace_held(tracer, &frame->{name});");
                }
                SlotType::Of(ty) if self.can_refer(ty) => {
                    let descriptor = self.descriptor(ty);
                    let _ = writeln!(
                        text,
                        "    hearth_trace(tracer, {descriptor}, frame->{name});"
                    );
                }
                _ => {}
            }
        }
        if self.can_refer(function.result) {
            let descriptor = self.descriptor(function.result);
            let _ = writeln!(
                text,
                "    hearth_trace(tracer, {descriptor}, frame->result);"
            );
        }
        let calls = self.calls.borrow();
        let mut cases = String::new();
        for &(state, proc) in calls.get(&role).into_iter().flatten() {
            if self.emit_trace_of_frame(Role::Proc(proc), out) {
                let callee = self.names.proc(proc);
                let _ = writeln!(
                    cases,
                    "    case {state}:\n        {callee}_trace(&frame->callee.{callee}, tracer);\n        \
                     break;"
                );
            }
        }
        if !cases.is_empty() {
            let state = match self.input.probes {
                Some(_) => format!("frame->state & ~(1u << {OPERATION_BIT})"),
                None => "frame->state".to_owned(),
            };
            let _ = writeln!(text, "    switch ({state}) {{\n{cases}    }}");
        }
        text
    }
}
