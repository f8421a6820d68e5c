//! Making arrays, structs, components and procedure objects.

use super::Emitter;
use crate::core::ir::*;
use crate::tree::ProcId;
use crate::types::{Type, TypeId};

impl Emitter<'_, '_> {
    // ---- making things ------------------------------------------------------------------------

    pub(super) fn new_array(
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
    pub(super) fn stack_array(&mut self, target: SlotId, ty: TypeId, length: u32, init: &Value) {
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

    pub(super) fn new_struct(
        &mut self,
        target: SlotId,
        ty: TypeId,
        fields: &[(Value, Mode)],
        on_stack: bool,
    ) {
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

    pub(super) fn new_component(
        &mut self,
        target: SlotId,
        id: crate::tree::ComponentId,
        constructor: usize,
        args: &[Argument],
    ) {
        let name = self.slot_name(target);
        self.new_component_in(&name, id, constructor, args);
    }

    /// Makes a component and stores it in a C variable.
    pub(super) fn new_component_in(
        &mut self,
        name: &str,
        id: crate::tree::ComponentId,
        constructor: usize,
        args: &[Argument],
    ) {
        let c = self.context.names.component(id);
        self.line(format!(
            "{name} = hearth_component_new(base, &{c}_type, -1);"
        ));
        let role = Role::Constructor(id, constructor);
        let layout = self.context.layouts.of(role);
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

    pub(super) fn new_procedure(&mut self, target: SlotId, proc: ProcId) {
        let name = self.slot_name(target);
        let code = self.context.names.proc(proc);
        self.line(format!(
            "{name} = hearth_alloc(base, sizeof(hearth_procedure));"
        ));
        self.line(format!(
            "*{name} = (hearth_procedure){{ {{ 1, 0 }}, (void (*)(void)){code}_thunk, hearth_component_retain(base) }};"
        ));
    }
}
