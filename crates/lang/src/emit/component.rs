//! Components as C: structs, frames, life, and the tables the runtime reads.

use super::{Context, escape};
use crate::analysis::heap_bound::{HeapBound, Room};
use crate::core::effects::Effects;
use crate::core::ir::*;
use crate::layout::names::LocalNames;
use crate::tree::{Component, ComponentId, MemberId, PortId, ProcCode, ProcId};
use crate::types::{Type, TypeId};
use std::fmt::Write;

impl Context<'_> {
    pub(super) fn function(&self, role: Role) -> &Function {
        &self.input.module.functions[self.functions[&role]]
    }

    fn components(&self) -> impl Iterator<Item = (ComponentId, &Component)> {
        let all = self.input.program.components.iter().enumerate();
        all.filter(|(_, c)| c.used)
            .map(|(i, c)| (ComponentId(i as u32), c))
    }

    /// The C names of a component's ports, then of its members.
    pub(super) fn field_names(&self, component: ComponentId) -> Vec<String> {
        let component = &self.input.program.components[component.index()];
        let mut names = LocalNames::new();
        names.named("members");
        let text = |s| self.input.program.names.name(s);
        let ports = component.channels.iter().map(|c| text(c.name));
        ports
            .chain(component.members.iter().map(|m| text(m.name)))
            .map(|n| names.named(n))
            .collect()
    }

    pub(super) fn port_name(&self, component: ComponentId, port: PortId) -> String {
        self.field_names(component).swap_remove(port.index())
    }

    pub(super) fn member_name(&self, component: ComponentId, member: MemberId) -> String {
        let ports = self.input.program.components[component.index()]
            .channels
            .len();
        self.field_names(component)
            .swap_remove(ports + member.index())
    }

    pub(super) fn slot_declaration(&self, ty: SlotType, name: &str) -> String {
        match ty {
            SlotType::Of(ty) => self.declare(ty, name),
            SlotType::Double => format!("double {name}"),
            SlotType::Held => format!("hearth_held {name}"),
        }
    }

    // ---- structs ----------------------------------------------------------------------------

    pub(super) fn emit_frames(&self, out: &mut String) {
        for &ty in &self.blocking_value_types() {
            self.emit_value_frame(ty, out);
        }
        for &index in &self.layouts.order {
            let function = &self.input.module.functions[index];
            self.emit_frame(function, out);
        }
        for (id, component) in self.components() {
            self.emit_struct(id, component, out);
        }
        let main = if self.layouts.of(Role::Main).exists {
            "    main_sequence_frame frame;\n"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "typedef struct {{\n    hearth_component base;\n{main}{}}} main_component;",
            self.calls_field()
        );
        out.push_str(&self.calls_end("main_component"));
        let _ = writeln!(
            out,
            "_Static_assert(sizeof(hearth_component) == {}, \"the compiler and hearth.h disagree\");\n",
            crate::layout::COMPONENT_HEADER_BYTES
        );
    }

    fn emit_frame(&self, function: &Function, out: &mut String) {
        let layout = self.layouts.of(function.role);
        if !layout.exists {
            return;
        }
        let name = self.names.function(function.role);
        out.push_str("typedef struct {\n");
        if function.blocks {
            out.push_str("    uint32_t state;\n");
        }
        if !function.parts.is_empty() {
            out.push_str("    uint32_t next_part;\n");
        }
        for &slot in &layout.fields {
            let data = &function.slots[slot.index()];
            let _ = writeln!(
                out,
                "    {};",
                self.slot_declaration(data.ty, &layout.slot_names[slot.index()])
            );
        }
        if function.blocks && function.result != TypeId::VOID {
            let _ = writeln!(out, "    {};", self.declare(function.result, "result"));
        }
        if layout.has_inner {
            out.push_str("    void *inner;\n");
        }
        if !layout.callees.is_empty() || !layout.value_types.is_empty() {
            out.push_str("    union {\n");
            for &callee in &layout.callees {
                let callee = self.names.proc(callee);
                let _ = writeln!(out, "        {callee}_frame {callee};");
            }
            for &ty in &layout.value_types {
                let frame = self.value_frame(ty);
                let _ = writeln!(out, "        {frame} {frame};");
            }
            out.push_str("    } callee;\n");
        }
        let _ = writeln!(out, "}} {name}_frame;\n");
    }

    fn emit_struct(&self, id: ComponentId, component: &Component, out: &mut String) {
        let name = self.names.component(id);
        let fields = self.field_names(id);
        out.push_str("typedef struct {\n    hearth_component base;\n");
        for field in &fields[..component.channels.len()] {
            let _ = writeln!(out, "    hearth_channel *{field};");
        }
        for (member, field) in component
            .members
            .iter()
            .zip(&fields[component.channels.len()..])
        {
            let _ = writeln!(out, "    {};", self.declare(member.ty, field));
        }
        if self.layouts.of(Role::Members(id)).exists {
            let _ = writeln!(out, "    {name}_members_frame members;");
        }
        let parts = self.frame_union(id, component);
        if !parts.is_empty() {
            out.push_str("    union {\n");
            for (part, frame) in parts {
                let _ = writeln!(out, "        {frame} {part};");
            }
            out.push_str("    } frame;\n");
        }
        out.push_str(self.calls_field());
        let _ = writeln!(out, "}} {name}_component;");
        out.push_str(&self.calls_end(&format!("{name}_component")));
        let bytes = self.layouts.component_bytes(&self.input, id);
        let _ = writeln!(
            out,
            "_Static_assert(sizeof({name}_component) == {bytes}, \"{name} has a different size than was computed\");\n"
        );
    }

    /// The last field of a component's struct in a program with probes.
    fn calls_field(&self) -> &'static str {
        match self.input.probes {
            Some(_) => "    hearth_calls noted_calls;\n",
            None => "",
        }
    }

    /// The assertion that this field is where the runtime looks for it.
    fn calls_end(&self, ty: &str) -> String {
        match self.input.probes {
            Some(_) => format!(
                "_Static_assert(offsetof({ty}, noted_calls) + sizeof(hearth_calls) == sizeof({ty}), \
                 \"hearth_calls is last\");\n"
            ),
            None => String::new(),
        }
    }

    /// The parts of life that have a frame: name and C type.
    fn frame_union(&self, id: ComponentId, component: &Component) -> Vec<(String, String)> {
        let name = self.names.component(id);
        let mut parts = Vec::new();
        for k in 0..component.constructors.len() {
            if self.layouts.of(Role::Constructor(id, k)).exists {
                parts.push((
                    format!("constructor_{k}"),
                    format!("{name}_constructor_{k}_frame"),
                ));
            }
        }
        if self.layouts.of(Role::Behaviour(id)).exists {
            parts.push(("behaviour".into(), format!("{name}_behaviour_frame")));
        }
        parts
    }

    pub(super) fn emit_globals(&self, out: &mut String) {
        let globals = self
            .input
            .program
            .globals
            .iter()
            .enumerate()
            .filter(|(_, g)| g.used);
        for (i, global) in globals {
            let name = self.names.global(crate::tree::GlobalId(i as u32));
            let _ = writeln!(out, "static {};", self.declare(global.ty, name));
        }
    }

    pub(super) fn emit_prototypes(&self, out: &mut String) {
        for (i, proc) in self
            .input
            .program
            .procs
            .iter()
            .enumerate()
            .filter(|(_, p)| p.used)
        {
            if let ProcCode::Native { params, blocks, .. } = &proc.code {
                let name = self.names.proc(ProcId(i as u32));
                let head = if *blocks {
                    format!("hearth_step {name}")
                } else {
                    self.declare(proc.result, name)
                };
                let mut text = format!("extern {head}(hearth_component *base");
                for &param in params {
                    let _ = write!(text, ", {}", self.c_type(param).trim_end());
                }
                if *blocks {
                    text.push_str(", const hearth_site *site");
                }
                let _ = writeln!(out, "{text});");
            }
        }
        for function in &self.input.module.functions {
            let name = self.names.function(function.role);
            let _ = writeln!(
                out,
                "{}{};",
                self.unused_mark(&name),
                self.signature(function)
            );
        }
        for (id, _) in self.components() {
            let name = self.names.component(id);
            let _ = writeln!(
                out,
                "{}static const hearth_component_type {name}_type;",
                self.unused_mark(&format!("{name}_type"))
            );
        }
        out.push_str("static const hearth_component_type main_type;\n");
        self.emit_procedure_objects(out);
        out.push('\n');
    }

    // ---- life -------------------------------------------------------------------------------

    pub(super) fn emit_components(&self, out: &mut String) {
        for (id, component) in self.components() {
            self.emit_resume(id, component, out);
            self.emit_destroy(id, component, out);
            self.emit_trace(id, component, out);
            self.emit_table(id, component, out);
        }
        let call = self.life_call(Role::Main, "self", "&self->frame");
        let heap = self.heap_fields(self.heaps.of_main());
        let _ = writeln!(
            out,
            "static hearth_step main_resume(hearth_component *base)\n{{\n    \
             main_component *self = (main_component *)base;\n    return {call};\n}}\n\n\
             static void main_destroy(hearth_component *base)\n{{\n    (void)base;\n}}\n\n\
             static const hearth_component_type main_type = {{\n    \
             .name = \"main\", .size = sizeof(main_component), .resume = main_resume, .destroy = main_destroy,\n    \
             .declared = {{ \"{}\", 1, 1, \"main\" }},{heap}\n}};",
            escape(self.input.sources.name)
        );
    }

    /// A call of one part of life as an expression of type `hearth_step`.
    fn life_call(&self, role: Role, this: &str, frame: &str) -> String {
        let name = self.names.function(role);
        let function = self.function(role);
        let arguments = if self.layouts.of(role).exists {
            format!("{this}, {frame}")
        } else {
            this.to_owned()
        };
        match (function.blocks, function.raises) {
            (true, _) => format!("{name}({arguments})"),
            (false, true) => {
                format!("({name}({arguments}), base->raised ? HEARTH_RAISED : HEARTH_DONE)")
            }
            (false, false) => format!("({name}({arguments}), HEARTH_DONE)"),
        }
    }

    fn emit_resume(&self, id: ComponentId, component: &Component, out: &mut String) {
        let name = self.names.component(id);
        let n = component.constructors.len();
        let _ = writeln!(
            out,
            "/* Stages of {name}: below {n}, about to begin by that constructor; below {}, in it; then the\n   \
             behaviour, again and again. */\n\
             static hearth_step {name}_resume(hearth_component *base)\n{{\n    \
             {name}_component *self = ({name}_component *)base;\n    hearth_step step = HEARTH_DONE;",
            2 * n
        );
        let members = self.life_call(Role::Members(id), "self", "&self->members");
        let _ = writeln!(
            out,
            "    if (base->stage < {n}) {{\n        step = {members};\n        \
             if (step != HEARTH_DONE)\n            return step;\n        base->stage += {n};\n    }}"
        );
        let _ = writeln!(
            out,
            "    if (base->stage < {}) {{\n        switch (base->stage - {n}) {{",
            2 * n
        );
        for k in 0..n {
            let call = self.life_call(
                Role::Constructor(id, k),
                "self",
                &format!("&self->frame.constructor_{k}"),
            );
            let _ = writeln!(
                out,
                "        case {k}:\n            step = {call};\n            break;"
            );
        }
        let begin = if self.function(Role::Behaviour(id)).blocks {
            "        self->frame.behaviour.state = 0;\n"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "        }}\n        if (step != HEARTH_DONE)\n            return step;\n        \
             base->stage = {};\n{begin}    }}",
            2 * n
        );
        let behaviour = self.life_call(Role::Behaviour(id), "self", "&self->frame.behaviour");
        let _ = writeln!(
            out,
            "    for (;;) {{\n        step = {behaviour};\n        if (step != HEARTH_DONE)\n            \
             return step;\n{begin}        if (!hearth_next_pass(base))\n            return HEARTH_RAISED;\n    }}\n}}\n"
        );
    }

    fn emit_destroy(&self, id: ComponentId, component: &Component, out: &mut String) {
        let name = self.names.component(id);
        let _ = writeln!(
            out,
            "static void {name}_destroy(hearth_component *base)\n{{"
        );
        let fields = self.field_names(id);
        let fields = &fields[component.channels.len()..];
        let references: Vec<(TypeId, &String)> = component
            .members
            .iter()
            .zip(fields)
            .filter(|(m, _)| self.is_reference(m.ty))
            .map(|(m, field)| (m.ty, field))
            .collect();
        if references.is_empty() {
            out.push_str("    (void)base;\n");
        } else {
            let _ = writeln!(
                out,
                "    {name}_component *self = ({name}_component *)base;"
            );
        }
        for (ty, field) in references {
            let release = match self.ty(ty) {
                Type::Channel(..) => format!("hearth_channel_release(self->{field})"),
                Type::Component(_) => format!("hearth_component_release(self->{field})"),
                _ => format!(
                    "hearth_release(base, {}, self->{field})",
                    self.descriptor(ty)
                ),
            };
            let _ = writeln!(out, "    {release};\n    self->{field} = NULL;");
        }
        out.push_str("}\n\n");
    }

    fn emit_table(&self, id: ComponentId, component: &Component, out: &mut String) {
        let name = self.names.component(id);
        let fields = self.field_names(id);
        let source = |s| escape(self.input.program.names.name(s));
        if !component.channels.is_empty() {
            let _ = writeln!(out, "static const hearth_port {name}_ports[] = {{");
            for (channel, field) in component.channels.iter().zip(&fields) {
                let _ = writeln!(
                    out,
                    "    {{ \"{}\", {}, {}, offsetof({name}_component, {field}) }},",
                    source(channel.name),
                    channel.direction as u32,
                    self.descriptor(channel.payload)
                );
            }
            out.push_str("};\n\n");
        }
        let ports = if component.channels.is_empty() {
            "NULL".into()
        } else {
            format!("{name}_ports")
        };
        let (line, column) = self.line_column(component.span);
        let (file, _) = self.input.sources.get(component.span.source);
        let heap = self.heap_fields(self.heaps.of(id));
        let _ = writeln!(
            out,
            "static const hearth_component_type {name}_type = {{\n    .name = \"{0}\", .size = \
             sizeof({name}_component), .resume = {name}_resume, .destroy = {name}_destroy,\n    \
             .trace = {name}_trace,\n    \
             .port_count = {1}, .ports = {ports}, .service = {2}, .declared = {{ \"{3}\", {line}, {column}, \
             \"{0}\" }},{heap}\n}};\n",
            source(component.name),
            component.channels.len(),
            component.service,
            escape(file),
        );
    }

    // ---- procedures as values ---------------------------------------------------------------

    fn value_effects(&self, proc: ProcId) -> Effects {
        self.input
            .effects
            .of_value(self.input.program.procs[proc.index()].ty)
    }

    fn blocking_value_types(&self) -> Vec<TypeId> {
        let mut types: Vec<TypeId> = self
            .input
            .module
            .valued
            .iter()
            .map(|p| self.input.program.procs[p.index()].ty)
            .collect();
        types.sort();
        types.dedup();
        types.retain(|&ty| self.input.effects.of_value(ty).blocks);
        types
    }

    /// The C type of the frame through which blocking procedures of a type are called.
    pub(super) fn value_frame(&self, ty: TypeId) -> String {
        format!("value_{}_frame", self.names.descriptor(ty))
    }

    fn emit_value_frame(&self, ty: TypeId, out: &mut String) {
        let Type::Proc { params, result } = self.ty(ty) else {
            unreachable!("a procedure type")
        };
        out.push_str("typedef struct {\n    uint32_t state;\n");
        for (i, &param) in params.iter().enumerate() {
            let _ = writeln!(
                out,
                "    {};",
                self.declare(param, &format!("argument_{i}"))
            );
        }
        if *result != TypeId::VOID {
            let _ = writeln!(out, "    {};", self.declare(*result, "result"));
        }
        let _ = writeln!(out, "    void *inner;\n}} {};\n", self.value_frame(ty));
    }

    /// Whether a call of a procedure through a value needs a thunk; otherwise it uses the
    /// procedure's own function.
    fn needs_thunk(&self, proc: ProcId) -> bool {
        self.input.program.procs[proc.index()].bound || self.value_effects(proc).blocks
    }

    fn thunk_signature(&self, proc: ProcId) -> String {
        let data = &self.input.program.procs[proc.index()];
        let name = self.names.proc(proc);
        if self.value_effects(proc).blocks {
            return format!(
                "static hearth_step {name}_thunk(hearth_component *base, {} *frame)",
                self.value_frame(data.ty)
            );
        }
        let Type::Proc { params, .. } = self.ty(data.ty) else {
            unreachable!("a procedure type")
        };
        let mut text = format!(
            "static {}(hearth_component *base",
            self.declare(data.result, &format!("{name}_thunk"))
        );
        for (i, &param) in params.iter().enumerate() {
            let _ = write!(text, ", {}", self.declare(param, &format!("argument_{i}")));
        }
        text + ")"
    }

    fn emit_procedure_objects(&self, out: &mut String) {
        for &proc in &self.input.module.valued {
            let data = &self.input.program.procs[proc.index()];
            let name = self.names.proc(proc);
            if self.needs_thunk(proc) {
                let _ = writeln!(
                    out,
                    "{}{};",
                    self.unused_mark(&format!("{name}_thunk")),
                    self.thunk_signature(proc)
                );
            }
            if !data.bound {
                let mark = self.unused_mark(&format!("{name}_value"));
                let code = if self.needs_thunk(proc) {
                    format!("{name}_thunk")
                } else {
                    name.to_owned()
                };
                let _ = writeln!(
                    out,
                    "{mark}static hearth_procedure {name}_value = {{ {{ HEARTH_IMMORTAL, 0 }}, (void (*)(void)){code}, NULL }};"
                );
            }
        }
    }

    pub(super) fn emit_value_thunks(&self, out: &mut Vec<String>) {
        let thunks = self
            .input
            .module
            .valued
            .iter()
            .filter(|&&proc| self.needs_thunk(proc));
        out.extend(thunks.map(|&proc| {
            format!(
                "{}\n{{\n{}}}\n\n",
                self.thunk_signature(proc),
                self.thunk_body(proc)
            )
        }));
    }

    fn thunk_body(&self, proc: ProcId) -> String {
        let data = &self.input.program.procs[proc.index()];
        let name = self.names.proc(proc);
        let Type::Proc { params, .. } = self.ty(data.ty) else {
            unreachable!("a procedure type")
        };
        let this = match data.owner.filter(|_| data.bound) {
            Some(owner) => format!("({}_component *)base", self.names.component(owner)),
            None => "base".into(),
        };
        let has_result = data.result != TypeId::VOID;
        if !self.value_effects(proc).blocks {
            let list: String = (0..params.len())
                .map(|i| format!(", argument_{i}"))
                .collect();
            let keyword = if has_result { "return " } else { "" };
            return format!("    {keyword}{name}({this}{list});\n");
        }
        let list: String = (0..params.len())
            .map(|i| format!(", frame->argument_{i}"))
            .collect();
        if let ProcCode::Native { blocks: true, .. } = data.code {
            let store = if has_result {
                let member = self.slot_member(data.result);
                format!(
                    "    if (step == HEARTH_DONE)\n        frame->result = base->received.{member};\n"
                )
            } else {
                String::new()
            };
            let site = self.site(data.span, self.input.program.names.name(data.name));
            return format!(
                "    hearth_step step = (hearth_step)base->outcome;\n    if (frame->state == 0) {{\n        \
                 frame->state = 1;\n        step = {name}({this}{list}, {site});\n    }}\n{store}    return step;\n"
            );
        }
        let blocks = self.input.effects.of_proc(proc).blocks;
        if !blocks {
            let store = if has_result { "frame->result = " } else { "" };
            return format!(
                "    {store}{name}({this}{list});\n    return base->raised ? HEARTH_RAISED : HEARTH_DONE;\n"
            );
        }
        let layout = self.layouts.of(Role::Proc(proc));
        let function = self.function(Role::Proc(proc));
        let mut text = format!(
            "    if (frame->state == 0) {{\n        {name}_frame *inner = hearth_alloc_zeroed(base, sizeof *inner);\n"
        );
        for (i, param) in function.params.iter().enumerate() {
            let _ = writeln!(
                text,
                "        inner->{} = frame->argument_{i};",
                layout.slot_names[param.index()]
            );
        }
        let _ = writeln!(
            text,
            "        frame->inner = inner;\n        frame->state = 1;\n    }}"
        );
        let _ = writeln!(
            text,
            "    hearth_step step = {name}({this}, frame->inner);\n    if (step == HEARTH_BLOCKED)\n        return step;"
        );
        if has_result {
            let _ = writeln!(
                text,
                "    frame->result = (({name}_frame *)frame->inner)->result;"
            );
        }
        text.push_str("    hearth_free(base, frame->inner);\n    return step;\n");
        text
    }
}

impl Context<'_> {
    /// The fields that tell the runtime a heap's bound, if it has one.
    fn heap_fields(&self, bound: &HeapBound) -> String {
        match bound {
            // A host may send values of any size.
            _ if self.input.hosted => String::new(),
            HeapBound::Bounded(Room { bytes, largest }) if *bytes > 0 => {
                match (u32::try_from(*bytes), u32::try_from(*largest)) {
                    (Ok(bytes), Ok(largest)) => {
                        format!("\n    .heap_bytes = {bytes}, .heap_largest = {largest},")
                    }
                    _ => String::new(),
                }
            }
            HeapBound::Bounded(_) | HeapBound::Unbounded(_) => String::new(),
        }
    }
}
