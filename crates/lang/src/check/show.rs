//! Types as messages print them: in Insense, and by their declared name where they have one.

use super::Checker;
use crate::syntax::ast::Direction;
use crate::types::{Type, TypeId};
use std::fmt::Write;

impl Checker<'_> {
    /// `integer`, `Point`, `in Point[]`.
    pub(super) fn show(&self, ty: TypeId) -> String {
        let mut text = String::new();
        self.write_type(&mut text, ty, true);
        text
    }

    /// In back quotes, and with its structure when it goes by a name: `` `Point`, a
    /// `struct(integer x; integer y)` ``.
    pub(super) fn show_full(&self, ty: TypeId) -> String {
        if self.type_name(ty).is_none() {
            return format!("`{}`", self.show(ty));
        }
        let mut text = format!("`{}`, ", self.show(ty));
        let mut structure = String::new();
        self.write_type(&mut structure, ty, false);
        let article = match self.types.get(ty) {
            Type::Enum(_) | Type::Component(_) => "an",
            _ => "a",
        };
        let _ = write!(text, "{article} `{structure}`");
        text
    }

    fn type_name(&self, ty: TypeId) -> Option<&str> {
        let named = matches!(
            self.types.get(ty),
            Type::Enum(_) | Type::Struct(_) | Type::Component(_)
        );
        let symbol = self.declared_names.get(ty.index()).copied().flatten();
        symbol.filter(|_| named).map(|symbol| self.name(symbol))
    }

    fn write_type(&self, out: &mut String, ty: TypeId, by_name: bool) {
        if let Some(name) = self.type_name(ty).filter(|_| by_name) {
            out.push_str(name);
            return;
        }
        match self.types.get(ty) {
            Type::Error => out.push('?'),
            Type::Void => out.push_str("no value"),
            Type::Never => out.push_str("no return"),
            Type::Integer => out.push_str("integer"),
            Type::Unsigned => out.push_str("unsigned"),
            Type::Real => out.push_str("real"),
            Type::Bool => out.push_str("bool"),
            Type::Byte => out.push_str("byte"),
            Type::String => out.push_str("string"),
            Type::Any => out.push_str("any"),
            Type::Enum(labels) => {
                out.push_str("enum(");
                for (i, &label) in labels.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    out.push_str(self.name(label));
                }
                out.push(')');
            }
            Type::Struct(fields) => {
                out.push_str("struct(");
                for (i, &(name, ty)) in fields.iter().enumerate() {
                    out.push_str(if i > 0 { " ; " } else { "" });
                    self.write_type(out, ty, true);
                    let _ = write!(out, " {}", self.name(name));
                }
                out.push(')');
            }
            Type::Array(element) => self.write_array(out, *element),
            Type::Channel(direction, payload) => {
                let _ = write!(out, "{} ", word(*direction));
                self.write_type(out, *payload, true);
            }
            Type::Component(ports) => {
                out.push_str("interface(");
                for (i, port) in ports.iter().enumerate() {
                    out.push_str(if i > 0 { " ; " } else { "" });
                    let _ = write!(out, "{} ", word(port.direction));
                    self.write_type(out, port.payload, true);
                    let _ = write!(out, " {}", self.name(port.name));
                }
                out.push(')');
            }
            Type::Proc { params, result } => {
                out.push_str("proc(");
                for (i, &param) in params.iter().enumerate() {
                    out.push_str(if i > 0 { " ; " } else { "" });
                    self.write_type(out, param, true);
                }
                out.push(')');
                if *result != TypeId::VOID {
                    out.push_str(" : ");
                    self.write_type(out, *result, true);
                }
            }
        }
    }

    /// Brackets bind tighter than `in`, `out` and a procedure's result, so those elements are
    /// set in parentheses. Insense itself has no such form; it needs a named type there.
    fn write_array(&self, out: &mut String, element: TypeId) {
        let loose = matches!(
            self.types.get(element),
            Type::Channel(..) | Type::Proc { .. }
        );
        out.push_str(if loose { "(" } else { "" });
        self.write_type(out, element, true);
        out.push_str(if loose { ")[]" } else { "[]" });
    }
}

/// `in` or `out`.
pub(super) fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}
