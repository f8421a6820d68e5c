//! C types, struct definitions and the runtime's type descriptors.

use super::{Context, escape};
use crate::tree::Direction;
use crate::types::{Type, TypeId};
use std::fmt::Write;

impl Context<'_> {
    pub(super) fn ty(&self, ty: TypeId) -> &Type {
        self.input.program.types.get(ty)
    }

    pub(super) fn is_reference(&self, ty: TypeId) -> bool {
        crate::core::effects::is_reference(&self.input.program.types, ty)
    }

    /// The C type of a variable, with a trailing `*` for references.
    pub(super) fn c_type(&self, ty: TypeId) -> String {
        match self.ty(ty) {
            Type::Integer | Type::Enum(_) => "int32_t".into(),
            Type::Unsigned => "uint32_t".into(),
            Type::Real => "float".into(),
            Type::Bool => "bool".into(),
            Type::Byte => "uint8_t".into(),
            Type::String => "hearth_string *".into(),
            Type::Any => "hearth_box *".into(),
            Type::Struct(_) => {
                self.used_structs.borrow_mut().insert(ty);
                format!("{} *", self.names.structure(ty))
            }
            Type::Array(element) => format!("{} *", self.array_type(*element)),
            Type::Channel(..) => "hearth_channel *".into(),
            Type::Component(_) => "hearth_component *".into(),
            Type::Proc { .. } => "hearth_procedure *".into(),
            Type::Void | Type::Never | Type::Error => "void".into(),
        }
    }

    /// A declaration of `name` with this type.
    pub(super) fn declare(&self, ty: TypeId, name: &str) -> String {
        let c = self.c_type(ty);
        if c.ends_with('*') {
            format!("{c}{name}")
        } else {
            format!("{c} {name}")
        }
    }

    pub(super) fn array_type(&self, element: TypeId) -> &'static str {
        match self.ty(element) {
            Type::Integer | Type::Enum(_) => "hearth_integer_array",
            Type::Unsigned => "hearth_unsigned_array",
            Type::Real => "hearth_real_array",
            Type::Bool => "hearth_bool_array",
            Type::Byte => "hearth_byte_array",
            _ => "hearth_pointer_array",
        }
    }

    /// The member of `hearth_value` that holds this type.
    pub(super) fn slot_member(&self, ty: TypeId) -> &'static str {
        match self.ty(ty) {
            Type::Integer | Type::Enum(_) => "integer",
            Type::Unsigned => "unsigned_",
            Type::Real => "real",
            Type::Bool => "boolean",
            Type::Byte => "byte",
            _ => "pointer",
        }
    }

    /// The address of a type's descriptor, which is emitted from now on.
    pub(super) fn descriptor(&self, ty: TypeId) -> String {
        self.need(ty);
        format!("&{}", self.names.descriptor(ty))
    }

    fn need(&self, ty: TypeId) {
        if !self.used_types.borrow_mut().insert(ty) {
            return;
        }
        match self.ty(ty) {
            Type::Array(element) => self.need(*element),
            Type::Channel(_, payload) => self.need(*payload),
            Type::Struct(fields) => {
                self.used_structs.borrow_mut().insert(ty);
                fields.iter().for_each(|(_, t)| self.need(*t));
            }
            _ => {}
        }
    }

    pub(super) fn emit_types(&self, out: &mut String) {
        let structs: Vec<TypeId> = self.used_structs.borrow().iter().copied().collect();
        for &ty in &structs {
            let name = self.names.structure(ty);
            let _ = writeln!(out, "typedef struct {name} {name};");
        }
        for &ty in &structs {
            let Type::Struct(fields) = self.ty(ty) else {
                unreachable!("filtered")
            };
            let _ = writeln!(
                out,
                "struct {} {{\n    hearth_object object;",
                self.names.structure(ty)
            );
            for (i, (_, field)) in fields.iter().enumerate() {
                let _ = writeln!(
                    out,
                    "    {};",
                    self.declare(*field, &self.field_name(ty, i as u32))
                );
            }
            out.push_str("};\n");
        }
        if !structs.is_empty() {
            out.push('\n');
        }
        // Parts come before wholes in the table, so no forward declarations are needed.
        let used: Vec<TypeId> = self.used_types.borrow().iter().copied().collect();
        for ty in used {
            self.emit_descriptor(ty, out);
        }
        out.push('\n');
    }

    fn emit_descriptor(&self, ty: TypeId, out: &mut String) {
        let name = self.names.descriptor(ty);
        let (kind, size) = match self.ty(ty) {
            Type::Integer => ("INTEGER", 4),
            Type::Unsigned => ("UNSIGNED", 4),
            Type::Real => ("REAL", 4),
            Type::Bool => ("BOOL", 1),
            Type::Byte => ("BYTE", 1),
            Type::Enum(_) => ("ENUM", 4),
            Type::String => ("STRING", 8),
            Type::Any => ("ANY", 8),
            Type::Struct(_) => ("STRUCT", 8),
            Type::Array(_) => ("ARRAY", 8),
            Type::Channel(Direction::In, _) => ("IN", 8),
            Type::Channel(Direction::Out, _) => ("OUT", 8),
            Type::Component(_) => ("COMPONENT", 8),
            Type::Proc { .. } => ("PROCEDURE", 8),
            Type::Void | Type::Never | Type::Error => return,
        };
        let mut extra = String::new();
        match self.ty(ty) {
            Type::Array(element) => {
                let _ = write!(
                    extra,
                    ", .flat = {}, .element = &{}",
                    !self.is_reference(*element),
                    self.names.descriptor(*element)
                );
            }
            Type::Channel(_, payload) => {
                let _ = write!(extra, ", .element = &{}", self.names.descriptor(*payload));
            }
            Type::Struct(fields) => {
                let c = self.names.structure(ty);
                let _ = writeln!(out, "static const hearth_field {name}_fields[] = {{");
                for (i, (field, field_type)) in fields.iter().enumerate() {
                    let _ = writeln!(
                        out,
                        "    {{ \"{}\", &{}, offsetof({c}, {}) }},",
                        escape(self.input.program.names.name(*field)),
                        self.names.descriptor(*field_type),
                        self.field_name(ty, i as u32)
                    );
                }
                out.push_str("};\n");
                let flat = fields.iter().all(|(_, t)| !self.is_reference(*t));
                let _ = write!(
                    extra,
                    ", .flat = {flat},\n    .field_count = {}, .fields = {name}_fields, .object_size = sizeof({c})",
                    fields.len()
                );
            }
            _ => {}
        }
        let _ = writeln!(
            out,
            "static const hearth_type {name} = {{ .code = \"{}\", .kind = HEARTH_KIND_{kind}, .size = {size}{extra} }};",
            escape(self.names.code(ty))
        );
    }

    /// The C name of a struct's field.
    pub(super) fn field_name(&self, ty: TypeId, field: u32) -> String {
        let Type::Struct(fields) = self.ty(ty) else {
            unreachable!("a struct's field")
        };
        let mut names = crate::layout::names::LocalNames::new();
        let mut last = String::new();
        for (name, _) in &fields[..=field as usize] {
            last = names.named(self.input.program.names.name(*name));
        }
        last
    }

    pub(super) fn field_type(&self, ty: TypeId, field: u32) -> TypeId {
        let Type::Struct(fields) = self.ty(ty) else {
            unreachable!("a struct's field")
        };
        fields[field as usize].1
    }
}
