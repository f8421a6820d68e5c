//! Probes: calls that a monitor can note.
//!
//! A function with a probe gets another name, and one of its own name calls it and notes the
//! beginning and the end. A channel operation is noted in line. Whether the beginning was noted is
//! kept in the two highest bits of the frame's state while the component waits: one for the
//! function, one for the operation in which it waits.

use super::{Context, escape};
use crate::core::ir::*;
use crate::source::{SourceId, Span};
use crate::types::TypeId;
use std::fmt::Write;

/// Bit of a frame's state: the beginning of the operation that waits was noted.
pub(super) const OPERATION_BIT: u32 = 30;
/// Bit of a frame's state: the beginning of the call was noted.
const CALL_BIT: u32 = 31;

impl Context<'_> {
    /// The C expression for a probe, if the program is to have one of this name.
    fn probe(&self, name: &str) -> Option<String> {
        let choose = self.input.probes?;
        if !choose(name) {
            return None;
        }
        let mut probes = self.probes.borrow_mut();
        let next = probes.len();
        let number = *probes.entry(name.to_owned()).or_insert(next);
        Some(format!("&probe_{number}"))
    }

    /// The component or the procedure that a function belongs to, and its own name within that.
    /// None for the prelude's, and for what has no name.
    fn owner_and_name(&self, function: &Function) -> Option<(String, Option<String>)> {
        let program = self.input.program;
        let text = |symbol| program.names.name(symbol).to_owned();
        let of_component = |id: crate::tree::ComponentId| {
            let component = &program.components[id.index()];
            let is_ours = component.span.source == SourceId::USER;
            is_ours.then(|| text(component.name))
        };
        match function.role {
            Role::Proc(id) => {
                let proc = &program.procs[id.index()];
                let is_ours = proc.span.source == SourceId::USER;
                let owner = match proc.owner {
                    Some(owner) => of_component(owner)?,
                    None => return is_ours.then(|| (text(proc.name), None)),
                };
                Some((owner, Some(text(proc.name))))
            }
            Role::Constructor(id, _) => Some((of_component(id)?, Some("constructor".into()))),
            Role::Behaviour(id) => Some((of_component(id)?, Some("behaviour".into()))),
            Role::Members(_) => None,
            Role::Main => Some(("main".into(), None)),
        }
    }

    /// The probe of an operation of a function at a channel, written as in the text.
    pub(super) fn operation_probe(
        &self,
        function: &Function,
        channel: Option<Span>,
        operation: &str,
    ) -> Option<String> {
        self.input.probes?;
        let (owner, _) = self.owner_and_name(function)?;
        self.probe(&match channel {
            Some(span) => format!("{owner}.{}.{operation}", self.quote(span).replace(' ', "")),
            None => format!("{owner}.{operation}"),
        })
    }

    /// The definition of a function, and with a probe that of the one which notes its calls.
    pub(super) fn with_probe(&self, function: &Function, text: String) -> Vec<String> {
        let name = self
            .owner_and_name(function)
            .map(|(owner, name)| match name {
                Some(name) => format!("{owner}.{name}"),
                None => owner,
            });
        let Some(probe) = name.and_then(|name| self.probe(&name)) else {
            return vec![text];
        };
        let signature = self.signature(function);
        let c_name = self.names.function(function.role);
        // No name from the text has digits alone behind its first underscore.
        let inner = format!("probed_{}", self.functions[&function.role]);
        let renamed = signature.replacen(&format!("{c_name}("), &format!("{inner}("), 1);
        let text = text.replacen(&signature, &renamed, 1);
        let around = self.around(function, &signature, &inner, &probe);
        vec![text, around]
    }

    fn around(&self, function: &Function, signature: &str, inner: &str, probe: &str) -> String {
        let layout = self.layouts.of(function.role);
        let owned = self.owner(function.role).is_some() || function.is_main();
        let mut arguments = if owned { "self" } else { "base" }.to_owned();
        if layout.exists {
            arguments.push_str(", frame");
        } else {
            for &param in &function.params {
                let _ = write!(arguments, ", {}", layout.slot_names[param.index()]);
            }
        }
        let mut text = format!("{signature}\n{{\n");
        if owned {
            text.push_str("    hearth_component *const base = &self->base;\n");
        }
        if function.blocks {
            let _ = write!(
                text,
                "    bool is_noted = frame->state >> {CALL_BIT};\n    hearth_step step;\n    \
                 if (frame->state == 0)\n        is_noted = hearth_call_begins(base, {probe});\n    \
                 frame->state &= ~(1u << {CALL_BIT});\n    step = {inner}({arguments});\n    \
                 if (step == HEARTH_BLOCKED)\n        \
                 frame->state |= (uint32_t)is_noted << {CALL_BIT};\n    \
                 else if (is_noted)\n        hearth_probe_ends(base, {probe});\n    return step;\n"
            );
        } else {
            let has_result = function.result != TypeId::VOID && !layout.exists;
            let _ = writeln!(
                text,
                "    bool is_noted = hearth_call_begins(base, {probe});"
            );
            let call = format!("{inner}({arguments})");
            let _ = match has_result {
                true => writeln!(
                    text,
                    "    {} = {call};",
                    self.declare(function.result, "result")
                ),
                false => writeln!(text, "    {call};"),
            };
            let _ = writeln!(
                text,
                "    if (is_noted)\n        hearth_probe_ends(base, {probe});"
            );
            if has_result {
                text.push_str("    return result;\n");
            }
        }
        text.push_str("}\n\n");
        text
    }

    pub(super) fn emit_probes(&self, out: &mut String) {
        let mut probes: Vec<_> = self.probes.borrow().clone().into_iter().collect();
        probes.sort_by_key(|(_, number)| *number);
        for (name, number) in probes {
            let _ = writeln!(
                out,
                "static hearth_probe probe_{number} = {{ NULL, \"{}\" }};",
                escape(&name)
            );
        }
    }

    /// Names of all probes.
    pub(super) fn probe_names(&self) -> Vec<String> {
        self.probes.borrow().keys().cloned().collect()
    }
}
