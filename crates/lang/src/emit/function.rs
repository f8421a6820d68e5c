//! Function bodies: statements of the core IR as C.

use super::layout::FrameLayout;
use super::{Context, function_name};
use crate::core::ir::*;
use crate::core::passes::{each_statement, statement_target};
use crate::source::Span;
use crate::tree::{MemberId, PortId, ProcCode, ProcId};
use crate::types::{Type, TypeId};
use std::fmt::Write;

/// Emits one function.
pub(super) struct Emitter<'c, 'a> {
    pub(super) context: &'c Context<'a>,
    pub(super) function: &'c Function,
    pub(super) layout: &'c FrameLayout,
    /// In a loop whose index checks were hoisted: subscripts may be computed in 64 bits.
    pub(super) in_fast_loop: bool,
    body: String,
    depth: usize,
    labels: u32,
    /// Where an exception goes: labels of the `try`s and promoted loops around, innermost last.
    handlers: Vec<Target>,
    /// Resumption points made so far.
    states: u32,
    leaves: bool,
    last_line: Option<(bool, u32)>,
}

struct Target {
    label: String,
    used: bool,
    /// Members to write back when a `return` passes.
    promoted: Vec<(MemberId, SlotId, bool)>,
}

pub(super) fn emit(context: &Context<'_>, function: &Function, out: &mut String) {
    let layout = context.layouts.of(&context.names, function.role);
    let mut emitter = Emitter {
        context,
        function,
        layout,
        in_fast_loop: false,
        body: String::new(),
        depth: 1,
        labels: 0,
        handlers: Vec::new(),
        states: 0,
        leaves: false,
        last_line: None,
    };
    emitter.block(&function.body);
    emitter.finish(out);
}

impl Context<'_> {
    /// The head of a function's definition.
    pub(super) fn signature(&self, function: &Function) -> String {
        let name = function_name(&self.names, function.role);
        let layout = self.layouts.of(&self.names, function.role);
        let owner = self.owner(function.role);
        let this = match owner {
            Some(component) => format!("{}_component *self", self.names.component(component)),
            None if function.is_main() => "main_component *self".to_owned(),
            None => "hearth_component *base".to_owned(),
        };
        if layout.exists {
            let result = if function.blocks {
                "hearth_step "
            } else {
                "void "
            };
            return format!("static {result}{name}({this}, {name}_frame *frame)");
        }
        let mut text = format!("static {}({this}", self.declare(function.result, &name));
        for &param in &function.params {
            let SlotType::Of(ty) = function.slots[param.index()].ty else {
                unreachable!("a parameter")
            };
            let _ = write!(
                text,
                ", {}",
                self.declare(ty, &layout.slot_names[param.index()])
            );
        }
        text + ")"
    }

    pub(super) fn owner(&self, role: Role) -> Option<crate::tree::ComponentId> {
        match role {
            Role::Proc(proc) => self.input.program.procs[proc.index()].owner,
            Role::Constructor(c, _) | Role::Members(c) | Role::Behaviour(c) => Some(c),
            Role::Main => None,
        }
    }
}

impl Emitter<'_, '_> {
    // ---- the function around its body ---------------------------------------------------

    fn finish(mut self, out: &mut String) {
        let counted = self.counted_slots();
        let function = self.function;
        let has_result = function.result != TypeId::VOID;
        let plain_end = match (function.blocks, has_result) {
            (true, _) => "    return HEARTH_DONE;\n",
            (false, true) => "    return result;\n",
            (false, false) => "",
        };
        let mut tail = String::new();
        if self.leaves {
            if plain_end.is_empty() {
                if !counted.is_empty() {
                    tail.push_str("    return;\n");
                }
            } else {
                tail.push_str(plain_end);
            }
            tail.push_str("leave:\n");
            let body = std::mem::take(&mut self.body);
            for &slot in &counted {
                self.release_at_exit(slot);
            }
            tail.push_str(&std::mem::replace(&mut self.body, body));
            if self.is_reference(function.result) {
                let result = if function.blocks {
                    "frame->result"
                } else {
                    "result"
                };
                let descriptor = self.release_call(function.result, result);
                let _ = write!(
                    tail,
                    "    if (base->raised) {{\n        {descriptor};\n        {result} = NULL;\n    }}\n"
                );
            }
            match (function.blocks, has_result) {
                (true, _) if function.raises => {
                    tail.push_str("    return base->raised ? HEARTH_RAISED : HEARTH_DONE;\n");
                }
                (true, _) => tail.push_str("    return HEARTH_DONE;\n"),
                (false, true) => tail.push_str("    return result;\n"),
                (false, false) => tail.push_str("    return;\n"),
            }
        } else {
            tail.push_str(plain_end);
        }
        let text = format!("{}{}", self.body, tail);
        out.push_str(&self.context.signature(function));
        out.push_str("\n{\n");
        out.push_str(&self.head(&text));
        out.push_str(&text);
        out.push_str("}\n\n");
    }

    /// Declarations and the jump to where the function was left.
    fn head(&self, text: &str) -> String {
        let mut head = String::new();
        let function = self.function;
        let owned = self.context.owner(function.role).is_some() || function.is_main();
        if owned {
            if mentions(text, "base") {
                head.push_str("    hearth_component *const base = &self->base;\n");
            } else if !mentions(text, "self") {
                head.push_str("    (void)self;\n");
            }
        } else if !mentions(text, "base") {
            head.push_str("    (void)base;\n");
        }
        if self.layout.exists && !mentions(text, "frame") && !function.blocks {
            head.push_str("    (void)frame;\n");
        }
        if mentions(text, "step") {
            head.push_str("    hearth_step step;\n");
        }
        if function.result != TypeId::VOID && !function.blocks {
            let _ = writeln!(
                head,
                "    {} = {};",
                self.context.declare(function.result, "result"),
                self.zero(function.result)
            );
        }
        for (i, slot) in function.slots.iter().enumerate() {
            let id = SlotId(i as u32);
            let name = &self.layout.slot_names[i];
            let param = function.params.contains(&id);
            if param && !self.layout.exists && !mentions(text, name) {
                let _ = writeln!(head, "    (void){name};");
            }
            if param || slot.storage != Storage::Register || !mentions(text, name) {
                continue;
            }
            let initial = if slot.counted || function.blocks {
                Some(self.slot_zero(slot.ty))
            } else {
                None
            };
            let declaration = self.slot_declaration(slot.ty, name);
            match initial {
                Some(zero) => {
                    let _ = writeln!(head, "    {declaration} = {zero};");
                }
                None => {
                    let _ = writeln!(head, "    {declaration};");
                }
            }
        }
        self.stack_objects(&mut head);
        if function.blocks {
            head.push_str(&self.dispatch());
        }
        head
    }

    /// Storage of the objects that live in C locals.
    fn stack_objects(&self, head: &mut String) {
        let mut body = self.function.body.clone();
        let mut seen = Vec::new();
        each_statement(&mut body, &mut |stmt| {
            // A loop that exists twice makes the same object twice.
            if let Some(target) = statement_target(stmt)
                && (seen.contains(&target) || !self.layout.used[target.index()])
            {
                return;
            }
            seen.extend(statement_target(stmt));
            let _ = match stmt {
                StmtKind::NewStruct {
                    target,
                    ty,
                    on_stack: true,
                    ..
                } => {
                    writeln!(
                        head,
                        "    {} {}_object;",
                        self.context.names.structure(*ty),
                        self.slot_name(*target)
                    )
                }
                StmtKind::NewArray {
                    target,
                    ty,
                    lengths,
                    on_stack: true,
                    ..
                } => {
                    let Type::Array(element) = self.context.ty(*ty) else {
                        unreachable!("an array's type")
                    };
                    writeln!(
                        head,
                        "    _Alignas(16) char {}_object[sizeof({}) + {} * sizeof({})];",
                        self.slot_name(*target),
                        self.context.array_type(*element),
                        lengths[0],
                        self.context.c_type(*element)
                    )
                }
                _ => Ok(()),
            };
        });
    }

    fn dispatch(&self) -> String {
        let mut text = String::from("    switch (frame->state) {\n    case 0:\n");
        for &slot in &self.layout.fields {
            let data = &self.function.slots[slot.index()];
            if data.counted && !self.function.params.contains(&slot) {
                let name = &self.layout.slot_names[slot.index()];
                let _ = match data.ty {
                    SlotType::Held => writeln!(text, "        frame->{name}.sender = NULL;"),
                    _ => writeln!(text, "        frame->{name} = NULL;"),
                };
            }
        }
        if self.function.result != TypeId::VOID {
            let _ = writeln!(
                text,
                "        frame->result = {};",
                self.zero(self.function.result)
            );
        }
        text.push_str("        break;\n");
        for state in 1..=self.states {
            let _ = writeln!(text, "    case {state}:\n        goto resume_{state};");
        }
        text.push_str("    }\n");
        text
    }

    fn counted_slots(&self) -> Vec<SlotId> {
        (0..self.function.slots.len())
            .map(|i| SlotId(i as u32))
            .filter(|s| self.function.slots[s.index()].counted && self.layout.used[s.index()])
            .collect()
    }

    // ---- text -------------------------------------------------------------------------------

    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        for _ in 0..self.depth {
            self.body.push_str("    ");
        }
        self.body.push_str(text.as_ref());
        self.body.push('\n');
    }

    fn place_mark(&mut self, span: Span) {
        if span.source != crate::source::SourceId::USER {
            return;
        }
        let (line, _) = self.context.line_column(span);
        if self.last_line != Some((true, line)) {
            self.last_line = Some((true, line));
            let _ = writeln!(
                self.body,
                "#line {line} \"{}\"",
                super::escape(self.context.input.sources.name)
            );
        }
    }

    fn new_label(&mut self, kind: &str) -> String {
        self.labels += 1;
        format!("{kind}_{}", self.labels)
    }

    /// Where an exception raised here goes.
    fn raise_target(&mut self) -> String {
        match self.handlers.last_mut() {
            Some(target) => {
                target.used = true;
                target.label.clone()
            }
            None => {
                self.leaves = true;
                "leave".into()
            }
        }
    }

    fn goto_raise(&mut self) {
        let target = self.raise_target();
        self.line(format!("goto {target};"));
    }

    /// Leaves if the last call raised.
    fn check_raised(&mut self) {
        let target = self.raise_target();
        self.line("if (HEARTH_UNLIKELY(base->raised))");
        self.line(format!("    goto {target};"));
    }

    pub(super) fn slot_name(&self, slot: SlotId) -> String {
        let name = &self.layout.slot_names[slot.index()];
        match self.function.slots[slot.index()].storage {
            Storage::Frame => format!("frame->{name}"),
            _ => name.clone(),
        }
    }

    pub(super) fn read_slot(&self, slot: SlotId) -> String {
        match self.function.slots[slot.index()].storage {
            Storage::Counter => format!("(int32_t){}", self.slot_name(slot)),
            _ => self.slot_name(slot),
        }
    }

    pub(super) fn member_name(&self, member: MemberId) -> String {
        let component = self
            .context
            .owner(self.function.role)
            .expect("members belong to components");
        self.context.member_name(component, member)
    }

    pub(super) fn port_name(&self, port: PortId) -> String {
        let component = self
            .context
            .owner(self.function.role)
            .expect("ports belong to components");
        self.context.port_name(component, port)
    }

    fn is_reference(&self, ty: TypeId) -> bool {
        self.context.is_reference(ty)
    }

    fn slot_type(&self, slot: SlotId) -> TypeId {
        match self.function.slots[slot.index()].ty {
            SlotType::Of(ty) => ty,
            SlotType::Double => TypeId::REAL,
            SlotType::Held => unreachable!("a held sender has no type"),
        }
    }

    fn zero(&self, ty: TypeId) -> String {
        match self.context.ty(ty) {
            Type::Bool => "false".into(),
            _ if self.is_reference(ty) => "NULL".into(),
            _ => "0".into(),
        }
    }

    fn slot_zero(&self, ty: SlotType) -> String {
        match ty {
            SlotType::Of(ty) if self.is_reference(ty) => "NULL".into(),
            SlotType::Of(ty) => self.zero(ty),
            SlotType::Double => "0".into(),
            SlotType::Held => "{ NULL, 0 }".into(),
        }
    }

    pub(super) fn slot_declaration(&self, ty: SlotType, name: &str) -> String {
        self.context.slot_declaration(ty, name)
    }

    // ---- references -------------------------------------------------------------------------

    fn release_call(&self, ty: TypeId, what: &str) -> String {
        match self.context.ty(ty) {
            Type::Channel(..) => format!("hearth_channel_release({what})"),
            Type::Component(_) => format!("hearth_component_release({what})"),
            _ => format!(
                "hearth_release(base, {}, {what})",
                self.context.descriptor(ty)
            ),
        }
    }

    fn retained(&self, ty: TypeId, value: &Value) -> String {
        let text = self.bare(value);
        match self.context.ty(ty) {
            Type::Channel(..) => format!("hearth_channel_retain({text})"),
            Type::Component(_) => format!("hearth_component_retain({text})"),
            _ if matches!(value, Value::String(_) | Value::Proc(_)) => text,
            _ => format!("hearth_retain({text})"),
        }
    }

    fn release_slot(&mut self, slot: SlotId, ok: &str) {
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
    fn release_at_exit(&mut self, slot: SlotId) {
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

    fn place(&self, place: &Place) -> (String, TypeId) {
        match place {
            Place::Slot(slot) => (self.slot_name(*slot), self.slot_type(*slot)),
            Place::Member(member) => {
                let component = self
                    .context
                    .owner(self.function.role)
                    .expect("members belong to components");
                let ty = self.context.input.program.components[component.index()].members
                    [member.index()]
                .ty;
                (format!("self->{}", self.member_name(*member)), ty)
            }
            Place::Global(global) => (
                self.context.names.global(*global).to_owned(),
                self.context.input.program.globals[global.index()].ty,
            ),
            Place::Element(array, index, ty) => (
                format!("{}->data[{}]", self.object(array), self.index(index)),
                *ty,
            ),
            Place::Field(object, ty, field) => (
                format!(
                    "{}->{}",
                    self.object(object),
                    self.context.field_name(*ty, *field)
                ),
                self.context.field_type(*ty, *field),
            ),
            Place::Result => {
                let name = if self.function.blocks {
                    "frame->result"
                } else {
                    "result"
                };
                (name.into(), self.function.result)
            }
        }
    }

    fn set(&mut self, place: &Place, value: &Value, mode: Mode, replace: bool) {
        if let Place::Slot(slot) = place
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

    // ---- statements -------------------------------------------------------------------------

    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.statement(stmt);
        }
    }

    fn inner(&mut self, block: &Block) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn statement(&mut self, stmt: &Stmt) {
        let quiet = matches!(
            &stmt.kind,
            StmtKind::Release(_) | StmtKind::Promoted { .. } | StmtKind::Versioned { .. }
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
            return; // nobody looks at it
        }
        match &stmt.kind {
            StmtKind::Set {
                place,
                value,
                mode,
                replace,
            } => self.set(place, value, *mode, *replace),
            StmtKind::Release(slot) => self.release_slot(*slot, "true"),
            StmtKind::CheckIndex {
                array,
                index,
                index_type,
            } => self.check_index(array, index, *index_type, span),
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
                callee,
                args,
            } => self.call(*target, callee, args, span),
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
            StmtKind::AddressOf { target, bytes } => {
                let text = format!(
                    "{} = hearth_address_of_bytes({});",
                    self.slot_name(*target),
                    self.bare(bytes)
                );
                self.line(text);
            }
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
        }
    }

    fn check_index(&mut self, array: &Value, index: &Value, index_type: TypeId, span: Span) {
        let site = self.context.site(span, "index");
        let target = self.raise_target();
        let (array, index) = (self.object(array), self.value(index));
        let _ = index_type;
        self.line(format!(
            "if (HEARTH_UNLIKELY((size_t){index} >= {array}->length)) {{"
        ));
        self.line(format!(
            "    hearth_raise_index(base, {index}, {array}->length, {site});"
        ));
        self.line(format!("    goto {target};"));
        self.line("}");
    }

    fn check_zero(&mut self, value: &Value, _ty: TypeId, span: Span) {
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

    fn conditional(&mut self, condition: &Value, then: &Block, otherwise: &Block) {
        let condition = self.bare(condition);
        self.line(format!("if ({condition}) {{"));
        self.inner(then);
        if !otherwise.is_empty() {
            self.line("} else {");
            self.inner(otherwise);
        }
        self.line("}");
    }

    // ---- loops --------------------------------------------------------------------------------

    fn repeat(&mut self, l: &Loop) {
        let name = self.slot_name(l.variable);
        if l.counted {
            let (from, to) = (self.bare(&l.from), self.bare(&l.to));
            let (compare, bound, step) = match l.step {
                1 => (
                    "<",
                    format!("(int64_t){} + 1", self.value(&l.to)),
                    format!("{name}++"),
                ),
                -1 => (
                    ">",
                    format!("(int64_t){} - 1", self.value(&l.to)),
                    format!("{name}--"),
                ),
                n if n > 0 => ("<=", to, format!("{name} += {n}")),
                n => (">=", to, format!("{name} -= {}", i64::from(n).abs())),
            };
            self.line(format!("for (int64_t {name} = {from}, {name}_end = {bound}; {name} {compare} {name}_end; {step}) {{"));
            self.inner(&l.body);
            self.line("}");
            return;
        }
        // The variable may be assigned and the bound may change: both are looked at every round.
        let from = self.bare(&l.from);
        self.line(format!("{name} = {from};"));
        self.line("for (;;) {");
        self.depth += 1;
        self.block(&l.prepare);
        let to = self.value(&l.to);
        let beyond = if l.step > 0 { ">" } else { "<" };
        self.line(format!("if ({name} {beyond} {to})"));
        self.line("    break;");
        self.block(&l.body);
        let step = i64::from(l.step).abs();
        let (limit, sign) = if l.step > 0 {
            (format!("{name} > INT32_MAX - {step}"), "+=")
        } else {
            (format!("{name} < INT32_MIN + {step}"), "-=")
        };
        self.line(format!("if ({limit})"));
        self.line("    break;");
        self.line(format!("{name} {sign} {step};"));
        self.depth -= 1;
        self.line("}");
    }

    fn versioned(&mut self, guards: &[Guard], fast: &Loop, slow: &Loop) {
        let conditions: Vec<String> = guards.iter().map(|g| self.guard(g)).collect();
        let mut separator = format!(" &&\n{}    ", "    ".repeat(self.depth));
        if conditions.len() == 1 {
            separator.clear();
        }
        self.line(format!("if ({}) {{", conditions.join(&separator)));
        let outer = std::mem::replace(&mut self.in_fast_loop, true);
        self.depth += 1;
        self.repeat(fast);
        self.depth -= 1;
        self.in_fast_loop = outer;
        self.line("} else {");
        self.depth += 1;
        self.repeat(slow);
        self.depth -= 1;
        self.line("}");
    }

    fn guard(&self, guard: &Guard) -> String {
        match guard {
            Guard::Index { array, index } => format!(
                "(size_t){} < {}->length",
                self.value(index),
                self.object(array)
            ),
            Guard::Induction {
                array,
                start,
                step,
                low,
                high,
                after,
            } => {
                let (start, step) = (self.read_slot(*start), self.value(step));
                let rounds = format!("(int64_t){} - {}", self.value(high), self.value(low));
                let rounds = if *after {
                    format!("{rounds} + 1")
                } else {
                    rounds
                };
                format!(
                    "{start} >= 0 && {step} >= 0 && {start} + ({rounds}) * {step} < (int64_t){}->length",
                    self.object(array)
                )
            }
            Guard::Range {
                array,
                low,
                high,
                offset,
            } => {
                let shifted = |v: &Value| match offset {
                    0 => self.value(v),
                    n if *n > 0 => format!("(int64_t){} + {n}", self.value(v)),
                    n => format!("(int64_t){} - {}", self.value(v), -n),
                };
                let above = format!(
                    "(int64_t)({}) < (int64_t){}->length",
                    shifted(high),
                    self.object(array)
                );
                match low {
                    Value::Int(n, _) if n + offset >= 0 => above,
                    _ => format!("{} >= 0 && {above}", shifted(low)),
                }
            }
        }
    }

    fn promoted(&mut self, members: &[(MemberId, SlotId, bool)], body: &Block) {
        for (member, slot, _) in members {
            let text = format!(
                "{} = self->{};",
                self.slot_name(*slot),
                self.member_name(*member)
            );
            if self.layout.used[slot.index()] {
                self.line(text);
            }
        }
        let label = self.new_label("raised");
        self.handlers.push(Target {
            label: label.clone(),
            used: false,
            promoted: members.to_vec(),
        });
        self.block(body);
        let target = self.handlers.pop().expect("pushed above");
        self.write_back(members);
        if target.used {
            let end = self.new_label("done");
            self.line(format!("goto {end};"));
            self.body.push_str(&format!("{label}:\n"));
            self.write_back(members);
            self.goto_raise();
            self.body.push_str(&format!("{end}:;\n"));
        }
    }

    fn write_back(&mut self, members: &[(MemberId, SlotId, bool)]) {
        for (member, slot, written) in members {
            if *written {
                let text = format!(
                    "self->{} = {};",
                    self.member_name(*member),
                    self.slot_name(*slot)
                );
                self.line(text);
            }
        }
    }

    // ---- leaving ------------------------------------------------------------------------------

    fn leave(&mut self) {
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

    fn stop_self(&mut self) {
        if self.context.input.options.compat_original {
            self.line("hearth_stop(base, base);");
        } else {
            self.line("hearth_raise_stop(base);");
            self.goto_raise();
        }
    }

    fn protected(&mut self, body: &Block, slots: std::ops::Range<u32>, handlers: &[Handler]) {
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

    fn release_caught(&mut self, slot: SlotId) {
        let name = self.slot_name(slot);
        if self.function.slots[slot.index()].ty == SlotType::Held {
            self.line(format!("if ({name}.sender)"));
            self.line(format!("    hearth_release_sender(base, &{name}, false);"));
            self.line(format!("{name}.sender = NULL;"));
        } else {
            self.release_slot(slot, "true");
        }
    }

    // ---- waiting ------------------------------------------------------------------------------

    /// Runs an operation that may park. `after`: run as soon as it has been started.
    fn wait(&mut self, call: &str, after: Option<&str>) {
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

    fn check_step(&mut self) {
        let target = self.raise_target();
        self.line("if (HEARTH_UNLIKELY(step == HEARTH_RAISED))");
        self.line(format!("    goto {target};"));
    }

    fn send(
        &mut self,
        channel: &Value,
        value: &Value,
        ty: TypeId,
        moved: Option<SlotId>,
        span: Span,
        text: Span,
    ) {
        let site = self.context.site(span, &self.context.quote(text));
        let call = format!(
            "hearth_send(base, {}, {}, {}, {site})",
            self.bare(channel),
            self.slot_value(value, ty),
            moved.is_some()
        );
        let after = moved.map(|slot| format!("{} = NULL;", self.slot_name(slot)));
        self.wait(&call, after.as_deref());
    }

    fn receive(&mut self, channel: &Value, held: Option<SlotId>, span: Span, text: Span) {
        let site = self.context.site(span, &self.context.quote(text));
        let operation = if held.is_some() {
            "hearth_acknowledge"
        } else {
            "hearth_receive"
        };
        let call = format!("{operation}(base, {}, {site})", self.bare(channel));
        self.wait(&call, None);
        if let Some(held) = held {
            let name = self.slot_name(held);
            self.line(format!("{name} = base->held;"));
            self.line("base->held.sender = NULL;");
        }
    }

    fn select(&mut self, arms: &[Arm], default: Option<&Block>, span: Span) {
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
            "step = hearth_select(base, {list}, {}, {}, {site});",
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

    fn connect_remote(&mut self, a: &End, b: &End, span: Span) {
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

    // ---- making things ------------------------------------------------------------------------

    fn new_array(
        &mut self,
        target: SlotId,
        ty: TypeId,
        lengths: &[u32],
        init: &Value,
        init_type: TypeId,
    ) {
        let name = self.slot_name(target);
        let descriptor = self.context.descriptor(ty);
        let list: Vec<String> = lengths.iter().map(u32::to_string).collect();
        let value = self.slot_value(init, init_type);
        self.line(format!(
            "{name} = hearth_array_new(base, {descriptor}, (const uint32_t[]){{ {} }}, {}, {value});",
            list.join(", "),
            lengths.len()
        ));
    }

    /// A flat array as a C local; its bytes may be accessed as anything, being chars.
    fn stack_array(&mut self, target: SlotId, ty: TypeId, length: u32, init: &Value) {
        let name = self.slot_name(target);
        let Type::Array(element) = self.context.ty(ty) else {
            unreachable!("an array's type")
        };
        let array = self.context.array_type(*element);
        let init = self.bare(init);
        self.line(format!("{name} = ({array} *){name}_object;"));
        self.line(format!(
            "{name}->object = (hearth_object){{ HEARTH_IMMORTAL, 0 }};"
        ));
        self.line(format!("{name}->length = {length};"));
        self.line(format!("for (size_t n_ = 0; n_ < {length}; n_++)"));
        self.line(format!("    {name}->data[n_] = {init};"));
    }

    fn new_struct(&mut self, target: SlotId, ty: TypeId, fields: &[(Value, Mode)], on_stack: bool) {
        let name = self.slot_name(target);
        self.context.c_type(ty);
        self.line("{");
        self.depth += 1;
        let c = self.context.names.structure(ty);
        if on_stack {
            self.line(format!("{c} *made = &{name}_object;"));
            self.line("made->object = (hearth_object){ HEARTH_IMMORTAL, 0 };");
        } else {
            self.line(format!("{c} *made = hearth_alloc(base, sizeof({c}));"));
            self.line("made->object = (hearth_object){ 1, 0 };");
        }
        for (i, (value, mode)) in fields.iter().enumerate() {
            let field = self.context.field_name(ty, i as u32);
            let field_type = self.context.field_type(ty, i as u32);
            let text = match mode {
                Mode::Retain => self.retained(field_type, value),
                _ => self.bare(value),
            };
            self.line(format!("made->{field} = {text};"));
            if let (Mode::Move, Value::Slot(slot)) = (mode, value) {
                let moved = self.slot_name(*slot);
                self.line(format!("{moved} = NULL;"));
            }
        }
        self.line(format!("{name} = made;"));
        self.depth -= 1;
        self.line("}");
    }

    fn new_component(
        &mut self,
        target: SlotId,
        id: crate::tree::ComponentId,
        constructor: usize,
        args: &[Argument],
    ) {
        let name = self.slot_name(target);
        let c = self.context.names.component(id);
        self.line(format!(
            "{name} = hearth_component_new(base, &{c}_type, -1);"
        ));
        let role = Role::Constructor(id, constructor);
        let layout = self.context.layouts.of(&self.context.names, role);
        let function = self.context.function(role);
        for (argument, param) in args.iter().zip(&function.params) {
            let SlotType::Of(ty) = function.slots[param.index()].ty else {
                unreachable!("a parameter")
            };
            let place = format!(
                "(({c}_component *){name})->frame.constructor_{constructor}.{}",
                layout.slot_names[param.index()]
            );
            let text = if self.is_reference(ty) {
                let descriptor = self.context.descriptor(ty);
                let value = self.slot_value(&argument.value, ty);
                format!("hearth_copy({name}, {descriptor}, {value}).pointer")
            } else {
                self.bare(&argument.value)
            };
            self.line(format!("{place} = {text};"));
        }
        if constructor != 0 {
            self.line(format!("{name}->stage = {constructor};"));
        }
        self.line(format!("hearth_component_start({name});"));
    }

    fn new_procedure(&mut self, target: SlotId, proc: ProcId) {
        let name = self.slot_name(target);
        let code = self.context.names.proc(proc);
        self.line(format!(
            "{name} = hearth_alloc(base, sizeof(hearth_procedure));"
        ));
        self.line(format!(
            "*{name} = (hearth_procedure){{ {{ 1, 0 }}, (void (*)(void)){code}_thunk, hearth_component_retain(base) }};"
        ));
    }

    // ---- calls --------------------------------------------------------------------------------

    fn call(&mut self, target: Option<SlotId>, callee: &Callee, args: &[Argument], span: Span) {
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

    fn arguments(&self, first: &str, args: &[Argument]) -> String {
        let mut text = first.to_owned();
        for argument in args {
            let _ = write!(text, ", {}", self.bare(&argument.value));
        }
        text
    }

    fn call_native(
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

    fn assign_call(&mut self, target: Option<SlotId>, call: &str) {
        match target {
            Some(slot) => {
                let slot = self.slot_name(slot);
                self.line(format!("{slot} = {call};"));
            }
            None => self.line(format!("{call};")),
        }
    }

    fn call_proc(&mut self, target: Option<SlotId>, proc: ProcId, args: &[Argument]) {
        let name = self.context.names.proc(proc).to_owned();
        let function = self.context.function(Role::Proc(proc));
        let this = if self.context.input.program.procs[proc.index()]
            .owner
            .is_some()
        {
            "self"
        } else {
            "base"
        };
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
        let layout = self
            .context
            .layouts
            .of(&self.context.names, Role::Proc(proc));
        for (argument, param) in args.iter().zip(&function.params) {
            let text = format!(
                "{access}{} = {};",
                layout.slot_names[param.index()],
                self.bare(&argument.value)
            );
            self.line(text);
        }
        self.resumable_call(&format!("{name}({this}, {address})"));
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
    fn resumable_call(&mut self, call: &str) {
        self.states += 1;
        let state = self.states;
        let _ = writeln!(self.body, "resume_{state}:");
        self.line(format!("step = {call};"));
        self.line("if (step == HEARTH_BLOCKED) {");
        self.line(format!("    frame->state = {state};"));
        self.line("    return HEARTH_BLOCKED;");
        self.line("}");
    }

    fn call_value(
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

/// Does the text name this identifier?
fn mentions(text: &str, name: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = text.as_bytes();
    text.match_indices(name).any(|(i, _)| {
        let field = i >= 2 && &bytes[i - 2..i] == b"->" || i >= 1 && bytes[i - 1] == b'.';
        let before = i > 0 && word(bytes[i - 1]);
        let after = bytes.get(i + name.len()).is_some_and(|&b| word(b));
        !before && !after && !field
    })
}
