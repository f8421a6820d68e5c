//! Function bodies: statements of the core IR as C.

mod beside;
mod calls;
mod loops;
mod making;
mod mentions;
mod parts;
mod references;
mod statements;
mod waiting;

use super::Context;
use super::beside::{Copy, has_rounds};
use super::probes::OPERATION_BIT;
use crate::core::ir::*;
use crate::core::passes::{look_at_each, statement_target};
use crate::layout::FrameLayout;
use crate::source::Span;
use crate::tree::{MemberId, PortId, ProcId};
use crate::types::{Type, TypeId};
use mentions::Mentions;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// Emits one C function: a function of the IR, or a part of one.
pub(super) struct Emitter<'c, 'a> {
    pub(super) context: &'c Context<'a>,
    pub(super) function: &'c Function,
    /// Its statements.
    statements: &'c [Stmt],
    /// The slots that it declares and releases.
    slots: Vec<SlotId>,
    pub(super) layout: &'c FrameLayout,
    /// The variable of a loop all of whose index checks were hoisted: subscripts that were guarded
    /// for its whole range may be computed in 64 bits.
    pub(super) fast_variable: Option<SlotId>,
    body: String,
    depth: usize,
    labels: u32,
    /// Targets of exceptions: labels of the `try`s and promoted loops around, innermost last.
    handlers: Vec<Target>,
    /// Resumption points made so far.
    states: u32,
    /// Those in calls whose frames are nested in this one.
    calls: Vec<(u32, ProcId)>,
    leaves: bool,
    last_line: Option<(bool, u32)>,
    /// The copy of the function.
    pub(super) copy: Copy,
    /// The copy has records or loops whose rounds run beside each other.
    has_marks: bool,
    /// It is the body of such a loop.
    is_of_rounds: bool,
    /// Records: the C name of the type, and the slot of the result.
    records: BTreeMap<RecordId, (String, Option<SlotId>)>,
    /// Reductions of such a loop: its function has copies of them in C locals.
    sums: Vec<SlotId>,
    /// Loops whose rounds run beside each other so far.
    loops: u32,
}

struct Target {
    label: String,
    used: bool,
    /// Members to write back when a `return` passes.
    promoted: Vec<(MemberId, SlotId, bool)>,
}

/// The definition of a copy of one function, or of the parts of a long one.
pub(super) fn emit(context: &Context<'_>, function: &Function, copy: Copy) -> String {
    if !function.parts.is_empty() {
        return parts::emit(context, function);
    }
    let slots = (0..function.slots.len()).map(|i| SlotId(i as u32));
    let mut emitter = Emitter::new(context, function, &function.body, slots.collect());
    emitter.copy = copy;
    emitter.piece_first();
    emitter.block(&function.body);
    if copy == context.first_copy(function) {
        let calls = std::mem::take(&mut emitter.calls);
        context.calls.borrow_mut().insert(function.role, calls);
    }
    emitter.finish(&context.copy_signature(function, copy))
}

impl Context<'_> {
    /// The head of a function's definition.
    pub(super) fn signature(&self, function: &Function) -> String {
        let name = self.names.function(function.role);
        let layout = self.layouts.of(function.role);
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

    /// The component whose struct a function is given.
    pub(super) fn owner(&self, role: Role) -> Option<crate::tree::ComponentId> {
        match role {
            Role::Proc(proc) => {
                let proc = &self.input.program.procs[proc.index()];
                proc.owner.filter(|_| proc.bound)
            }
            Role::Constructor(c, _) | Role::Members(c) | Role::Behaviour(c) => Some(c),
            Role::Main => None,
        }
    }
}

impl<'c, 'a> Emitter<'c, 'a> {
    fn new(
        context: &'c Context<'a>,
        function: &'c Function,
        statements: &'c [Stmt],
        slots: Vec<SlotId>,
    ) -> Self {
        Emitter {
            context,
            function,
            statements,
            slots,
            layout: context.layouts.of(function.role),
            fast_variable: None,
            body: String::new(),
            depth: 1,
            labels: 0,
            handlers: Vec::new(),
            states: 0,
            calls: Vec::new(),
            leaves: false,
            last_line: None,
            copy: context.first_copy(function),
            has_marks: function.records > 0 || has_rounds(statements),
            is_of_rounds: false,
            records: BTreeMap::new(),
            sums: Vec::new(),
            loops: 0,
        }
    }
}

impl Emitter<'_, '_> {
    // ---- the function around its body ---------------------------------------------------

    fn finish(mut self, signature: &str) -> String {
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
            self.await_all();
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
        // File names are no mentions.
        let code: String = text
            .split_inclusive('\n')
            .filter(|l| !l.starts_with('#'))
            .collect();
        let head = self.head(&Mentions::of(&code));
        format!("{signature}\n{{\n{head}{text}}}\n\n")
    }

    /// Declarations and the jump to where the function was left.
    fn head(&self, mentions: &Mentions<'_>) -> String {
        let mut head = String::new();
        let function = self.function;
        let owned = self.context.owner(function.role).is_some() || function.is_main();
        if matches!(self.copy, Copy::Piece | Copy::Divided) {
            head.push_str(match owned {
                true => "    (void)self;\n    (void)base;\n",
                false => "    (void)base;\n",
            });
            if self.copy == Copy::Divided {
                head.push_str("    (void)depth_in;\n");
            }
        } else if owned {
            if mentions.any_of("base") {
                head.push_str("    hearth_component *const base = &self->base;\n");
            } else if !mentions.any_of("self") {
                head.push_str("    (void)self;\n");
            }
        } else if !mentions.any_of("base") {
            head.push_str("    (void)base;\n");
        }
        if self.layout.exists && !mentions.any_of("frame") && !function.blocks {
            head.push_str("    (void)frame;\n");
        }
        if mentions.any_of("step") {
            head.push_str("    hearth_step step;\n");
        }
        let notes = mentions.any_of("is_noted");
        if notes {
            head.push_str("    bool is_noted;\n");
        }
        if function.result != TypeId::VOID && !function.blocks {
            let _ = writeln!(
                head,
                "    {} = {};",
                self.context.declare(function.result, "result"),
                self.zero(function.result)
            );
        }
        for &id in &self.slots {
            let slot = &function.slots[id.index()];
            let name = &self.layout.slot_names[id.index()];
            let param = function.params.contains(&id);
            if param && !self.layout.exists && !mentions.is_read(name) {
                let _ = writeln!(head, "    (void){name};");
            }
            if param || slot.storage != Storage::Register || !mentions.any_of(name) {
                continue;
            }
            let is_awaited = self.records.values().any(|(_, target)| *target == Some(id));
            let initial = if slot.counted || function.blocks || is_awaited {
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
            if !mentions.is_read(name) {
                let _ = writeln!(head, "    (void){name};");
            }
        }
        self.stack_objects(mentions, &mut head);
        head.push_str(&self.record_declarations());
        if function.blocks {
            head.push_str(&self.dispatch(notes));
        }
        head
    }

    /// Storage of the objects that live in C locals.
    fn stack_objects(&self, mentions: &Mentions<'_>, head: &mut String) {
        let mut seen = HashSet::new();
        look_at_each(self.statements, &mut |stmt| {
            // A loop that exists twice makes the same object twice.
            if let Some(target) = statement_target(stmt)
                && (!mentions.any_of(&format!("{}_object", self.slot_name(target)))
                    || !self.layout.used[target.index()]
                    || !seen.insert(target))
            {
                return;
            }
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

    fn dispatch(&self, notes: bool) -> String {
        let state = match notes {
            true => format!("frame->state & ~(1u << {OPERATION_BIT})"),
            false => "frame->state".to_owned(),
        };
        let mut text = format!("    switch ({state}) {{\n    case 0:\n");
        // A main sequence runs once, in a frame that begins as zeros.
        let is_part = !self.function.parts.is_empty();
        for &slot in self.layout.fields.iter().filter(|_| !is_part) {
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
        let slots = self.slots.iter().copied();
        slots
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

    /// The target of an exception raised here.
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
            Storage::Frame if !self.sums.contains(&slot) => format!("frame->{name}"),
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
}
