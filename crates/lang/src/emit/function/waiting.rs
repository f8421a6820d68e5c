//! Operations that may park: sends, receives, selects, remote connections.

use super::Emitter;
use crate::core::ir::*;
use crate::emit::probes::OPERATION_BIT;
use crate::source::Span;
use crate::types::TypeId;
use std::fmt::Write;

impl Emitter<'_, '_> {
    // ---- waiting ------------------------------------------------------------------------------

    /// Runs an operation that may park. `after`: run as soon as it has been started.
    pub(super) fn wait(&mut self, call: &str, after: Option<&str>) {
        self.wait_noted(call, after, None);
    }

    /// [`wait`](Emitter::wait) for an operation that may have a probe.
    fn wait_noted(&mut self, call: &str, after: Option<&str>, probe: Option<&str>) {
        self.note_begin(probe);
        self.line(format!("step = {call};"));
        if let Some(after) = after {
            self.line(after);
        }
        self.park(probe);
    }

    fn note_begin(&mut self, probe: Option<&str>) {
        if let Some(probe) = probe {
            self.line(format!("is_noted = hearth_call_begins(base, {probe});"));
        }
    }

    /// Parks if the operation blocks, and leaves if it raises.
    fn park(&mut self, probe: Option<&str>) {
        self.states += 1;
        let state = self.states;
        self.line("if (step == HEARTH_BLOCKED) {");
        match probe {
            Some(_) => self.line(format!(
                "    frame->state = {state} | (uint32_t)is_noted << {OPERATION_BIT};"
            )),
            None => self.line(format!("    frame->state = {state};")),
        }
        self.line("    return HEARTH_BLOCKED;");
        let _ = writeln!(self.body, "resume_{state}:");
        if probe.is_some() {
            self.line(format!(
                "    is_noted = frame->state >> {OPERATION_BIT} & 1;"
            ));
        }
        self.line("    step = (hearth_step)base->outcome;");
        self.line("}");
        if let Some(probe) = probe {
            self.line("if (is_noted)");
            self.line(format!("    hearth_probe_ends(base, {probe});"));
        }
        self.check_step();
    }

    fn probe(&self, channel: Option<Span>, operation: &str) -> Option<String> {
        let function = self.function;
        self.context.operation_probe(function, channel, operation)
    }

    pub(super) fn check_step(&mut self) {
        let target = self.raise_target();
        self.line("if (HEARTH_UNLIKELY(step == HEARTH_RAISED))");
        self.line(format!("    goto {target};"));
    }

    pub(super) fn send(
        &mut self,
        channel: &Value,
        value: &Value,
        ty: TypeId,
        moved: Option<SlotId>,
        span: Span,
        text: Span,
    ) {
        let site = self.context.site(span, &self.context.quote(text));
        let (channel, value) = (self.bare(channel), self.slot_value(value, ty));
        let call = if self.is_reference(ty) {
            format!(
                "hearth_send(base, {channel}, {value}, {}, {site})",
                moved.is_some()
            )
        } else {
            format!("hearth_send_scalar(base, {channel}, {value}, {site})")
        };
        let after = moved.map(|slot| format!("{} = NULL;", self.slot_name(slot)));
        let probe = self.probe(Some(text), "send");
        self.wait_noted(&call, after.as_deref(), probe.as_deref());
    }

    pub(super) fn receive(
        &mut self,
        channel: &Value,
        held: Option<SlotId>,
        span: Span,
        text: Span,
    ) {
        let site = self.context.site(span, &self.context.quote(text));
        let operation = if held.is_some() {
            "hearth_acknowledge"
        } else {
            "hearth_receive_here"
        };
        let call = format!("{operation}(base, {}, {site})", self.bare(channel));
        let probe = self.probe(Some(text), "receive");
        self.wait_noted(&call, None, probe.as_deref());
        if let Some(held) = held {
            let name = self.slot_name(held);
            self.line(format!("{name} = base->held;"));
            self.line("base->held.sender = NULL;");
        }
    }

    pub(super) fn select(&mut self, arms: &[Arm], default: Option<&Block>, span: Span) {
        let probe = self.probe(None, "select");
        self.note_begin(probe.as_deref());
        self.line("{");
        self.depth += 1;
        if !arms.is_empty() {
            self.line("const hearth_arm arms[] = {");
            for arm in arms {
                let site = self.context.site(arm.text, &self.context.quote(arm.text));
                let channel = self.bare(&arm.channel);
                let channel = match &arm.open {
                    None | Some(Value::Bool(true)) => channel,
                    Some(open) => format!("{} ? {channel} : NULL", self.value(open)),
                };
                self.line(format!("    {{ {channel}, {}, {site} }},", arm.acknowledge));
            }
            self.line("};");
        }
        let site = self.context.site(span, "select");
        let list = if arms.is_empty() { "NULL" } else { "arms" };
        self.line(format!(
            "step = hearth_select_here(base, {list}, {}, {}, {site});",
            arms.len(),
            default.is_some()
        ));
        self.depth -= 1;
        self.line("}");
        self.park(probe.as_deref());
        self.line("switch (base->arm) {");
        for (i, arm) in arms.iter().enumerate() {
            self.line(format!("case {i}: {{"));
            self.inner(&arm.body);
            self.line("    break;");
            self.line("}");
        }
        self.line("default: {");
        if let Some(default) = default {
            self.inner(default);
        }
        self.line("    break;");
        self.line("}");
        self.line("}");
    }

    pub(super) fn connect_remote(&mut self, a: &End, b: &End, span: Span) {
        let site = self.context.site(span, "connect");
        let call = match (a, b) {
            (End::Remote(n, x), End::Remote(m, y)) => format!(
                "hearth_connect_remotes(base, {}, {}, {}, {}, {site})",
                self.bare(n),
                self.bare(x),
                self.bare(m),
                self.bare(y)
            ),
            (End::Local(c), End::Remote(n, x)) | (End::Remote(n, x), End::Local(c)) => format!(
                "hearth_connect_remote(base, {}, {}, {}, {site})",
                self.bare(c),
                self.bare(n),
                self.bare(x)
            ),
            (End::Local(_), End::Local(_)) => unreachable!("a local connection"),
        };
        self.wait(&call, None);
    }
}
