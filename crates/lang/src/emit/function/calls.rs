//! Calls: plain, resumable, of the runtime's functions, by value.

use super::Emitter;
use crate::core::ir::*;
use crate::source::Span;
use crate::tree::{ProcCode, ProcId};
use crate::types::{Type, TypeId};
use std::fmt::Write;

impl Emitter<'_, '_> {
    // ---- calls --------------------------------------------------------------------------------

    pub(super) fn call(
        &mut self,
        target: Option<SlotId>,
        callee: &Callee,
        args: &[Argument],
        span: Span,
    ) {
        let target = target.filter(|slot| self.layout.used[slot.index()]);
        match callee {
            Callee::Proc(proc) => match &self.context.input.program.procs[proc.index()].code {
                ProcCode::Native { blocks, raises, .. } => {
                    self.call_native(target, *proc, args, *blocks, *raises, span)
                }
                ProcCode::Body(_) => self.call_proc(target, *proc, args),
            },
            Callee::Value(value, ty) => self.call_value(target, value, *ty, args, span),
        }
    }

    pub(super) fn arguments(&self, first: &str, args: &[Argument]) -> String {
        let mut text = first.to_owned();
        for argument in args {
            let _ = write!(text, ", {}", self.bare(&argument.value));
        }
        text
    }

    pub(super) fn call_native(
        &mut self,
        target: Option<SlotId>,
        proc: ProcId,
        args: &[Argument],
        blocks: bool,
        raises: bool,
        span: Span,
    ) {
        let name = self.context.names.proc(proc).to_owned();
        let arguments = self.arguments("base", args);
        if blocks {
            let source_name = self
                .context
                .input
                .program
                .names
                .name(self.context.input.program.procs[proc.index()].name);
            let site = self.context.site(span, source_name);
            self.wait(&format!("{name}({arguments}, {site})"), None);
            if let Some(slot) = target {
                let received = self.bare(&Value::Received(self.slot_type(slot)));
                let slot = self.slot_name(slot);
                self.line(format!("{slot} = {received};"));
            }
            return;
        }
        self.assign_call(target, &format!("{name}({arguments})"));
        if raises {
            self.check_raised();
        }
    }

    pub(super) fn assign_call(&mut self, target: Option<SlotId>, call: &str) {
        match target {
            Some(slot) => {
                let slot = self.slot_name(slot);
                self.line(format!("{slot} = {call};"));
            }
            None => self.line(format!("{call};")),
        }
    }

    pub(super) fn call_proc(&mut self, target: Option<SlotId>, proc: ProcId, args: &[Argument]) {
        let name = self.context.names.proc(proc).to_owned();
        let function = self.context.function(Role::Proc(proc));
        let this = if self.context.input.program.procs[proc.index()].bound {
            "self"
        } else {
            "base"
        };
        if !function.blocks && self.calls_copies(proc) {
            self.call_in_order(target, proc, args);
            return;
        }
        if !function.blocks {
            let arguments = self.arguments(this, args);
            self.assign_call(target, &format!("{name}({arguments})"));
            if function.raises {
                self.check_raised();
            }
            return;
        }
        let recursive = self.context.input.effects.recursive[proc.index()];
        let callee = if recursive {
            format!("(({name}_frame *)frame->inner)")
        } else {
            format!("frame->callee.{name}")
        };
        let (access, address) = if recursive {
            (format!("{callee}->"), "frame->inner".to_owned())
        } else {
            (format!("{callee}."), format!("&{callee}"))
        };
        if recursive {
            self.line(format!(
                "frame->inner = hearth_alloc_zeroed(base, sizeof({name}_frame));"
            ));
        }
        self.line(format!("{access}state = 0;"));
        let layout = self.context.layouts.of(Role::Proc(proc));
        for (argument, param) in args.iter().zip(&function.params) {
            let text = format!(
                "{access}{} = {};",
                layout.slot_names[param.index()],
                self.bare(&argument.value)
            );
            self.line(text);
        }
        self.resumable_call(&format!("{name}({this}, {address})"));
        if !recursive {
            self.calls.push((self.states, proc));
        }
        if let Some(slot) = target {
            let text = format!("{} = {access}result;", self.slot_name(slot));
            self.line(text);
        }
        if recursive {
            self.line("hearth_free(base, frame->inner);");
        }
        if function.raises {
            self.check_step();
        }
    }

    /// Calls a resumable function again and again until it is done.
    pub(super) fn resumable_call(&mut self, call: &str) {
        self.states += 1;
        let state = self.states;
        let _ = writeln!(self.body, "resume_{state}:");
        self.line(format!("step = {call};"));
        self.line("if (step == HEARTH_BLOCKED) {");
        self.line(format!("    frame->state = {state};"));
        self.line("    return HEARTH_BLOCKED;");
        self.line("}");
    }

    pub(super) fn call_value(
        &mut self,
        target: Option<SlotId>,
        value: &Value,
        ty: TypeId,
        args: &[Argument],
        span: Span,
    ) {
        let Type::Proc { params, result } = self.context.ty(ty) else {
            unreachable!("a procedure type")
        };
        let (params, result) = (params.clone(), *result);
        let procedure = self.object(value);
        let site = self.context.site(span, "call");
        let raise_target = self.raise_target();
        self.line(format!(
            "if (HEARTH_UNLIKELY({procedure}->owner && {procedure}->owner != base)) {{"
        ));
        self.line(format!(
            "    hearth_raise(base, HEARTH_OPERATION_FAILED, {site}, \
             \"a procedure that uses its component's members was called in another component\");"
        ));
        self.line(format!("    goto {raise_target};"));
        self.line("}");
        if !self.context.input.effects.of_value(ty).blocks {
            let mut types = String::from("hearth_component *");
            for &param in params.iter() {
                let _ = write!(types, ", {}", self.context.c_type(param));
            }
            let arguments = self.arguments("base", args);
            let result = self.context.c_type(result);
            self.assign_call(
                target,
                &format!("(({result} (*)({types})){procedure}->code)({arguments})"),
            );
            self.check_raised();
            return;
        }
        let frame = self.context.value_frame(ty);
        self.line(format!("frame->callee.{frame}.state = 0;"));
        for (i, argument) in args.iter().enumerate() {
            let text = format!(
                "frame->callee.{frame}.argument_{i} = {};",
                self.bare(&argument.value)
            );
            self.line(text);
        }
        // The procedure value lives in a slot or a member; it is looked up again on resumption.
        self.resumable_call(&format!(
            "((hearth_step (*)(hearth_component *, {frame} *)){procedure}->code)(base, &frame->callee.{frame})"
        ));
        if let Some(slot) = target {
            let text = format!("{} = frame->callee.{frame}.result;", self.slot_name(slot));
            self.line(text);
        }
        self.check_step();
    }
}
