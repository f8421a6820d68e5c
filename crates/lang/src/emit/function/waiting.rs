//! Operations that may park: sends, receives, selects, remote connections.

use super::Emitter;
use crate::core::ir::*;
use crate::source::Span;
use crate::types::TypeId;
use std::fmt::Write;

impl Emitter<'_, '_> {
    // ---- waiting ------------------------------------------------------------------------------

    /// Runs an operation that may park. `after`: run as soon as it has been started.
    pub(super) fn wait(&mut self, call: &str, after: Option<&str>) {
        self.states += 1;
        let state = self.states;
        self.line(format!("step = {call};"));
        if let Some(after) = after {
            self.line(after);
        }
        self.line("if (step == HEARTH_BLOCKED) {");
        self.line(format!("    frame->state = {state};"));
        self.line("    return HEARTH_BLOCKED;");
        let _ = writeln!(self.body, "resume_{state}:");
        self.line("    step = (hearth_step)base->outcome;");
        self.line("}");
        self.check_step();
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
        self.wait(&call, after.as_deref());
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
        self.wait(&call, None);
        if let Some(held) = held {
            let name = self.slot_name(held);
            self.line(format!("{name} = base->held;"));
            self.line("base->held.sender = NULL;");
        }
    }

    pub(super) fn select(&mut self, arms: &[Arm], default: Option<&Block>, span: Span) {
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
        self.states += 1;
        let state = self.states;
        self.line("if (step == HEARTH_BLOCKED) {");
        self.line(format!("    frame->state = {state};"));
        self.line("    return HEARTH_BLOCKED;");
        let _ = writeln!(self.body, "resume_{state}:");
        self.line("    step = (hearth_step)base->outcome;");
        self.line("}");
        self.check_step();
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
