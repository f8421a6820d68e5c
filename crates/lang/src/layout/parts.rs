//! Components and frames part by part: their extents, and tables for people.

use super::{COMPONENT_HEADER_BYTES, Extent, Layouts, Sum, extent, slot_extent};
use crate::core::Lowered;
use crate::core::ir::*;
use crate::tree::{ComponentId, Direction};
use crate::types::{Type, TypeId};

/// A part of a component's struct or of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// The kind or type, in Insense's words.
    pub what: String,
    pub offset: u64,
    pub bytes: u64,
    /// The parts of a frame.
    pub parts: Vec<Part>,
}

/// Parts that lie one behind the other.
#[derive(Default)]
struct PartList {
    sum: Sum,
    parts: Vec<Part>,
}

impl PartList {
    fn add(&mut self, name: &str, what: &str, extent: Extent, parts: Vec<Part>) {
        let offset = self.sum.add(extent);
        self.parts.push(Part {
            name: name.to_owned(),
            what: what.to_owned(),
            offset,
            bytes: extent.bytes,
            parts,
        });
    }
}

const OVERLAID: &str = "one of these at a time";

impl Layouts {
    /// The bytes of a component's struct.
    pub(crate) fn component_bytes(&self, input: &Lowered<'_>, id: ComponentId) -> u64 {
        self.component(input, id).0
    }

    /// The bytes and parts of a component's struct, with the frame union last.
    pub(crate) fn component(&self, input: &Lowered<'_>, id: ComponentId) -> (u64, Vec<Part>) {
        let component = &input.program.components[id.index()];
        let text = |symbol| input.program.names.name(symbol);
        let header = Extent {
            bytes: COMPONENT_HEADER_BYTES,
            align: 8,
        };
        let mut list = PartList::default();
        list.add("header", "in every component", header, Vec::new());
        for channel in &component.channels {
            list.add(text(channel.name), "channel", Extent::POINTER, Vec::new());
        }
        for member in &component.members {
            let what = type_text(input, member.ty);
            list.add(
                text(member.name),
                &what,
                extent(input, member.ty),
                Vec::new(),
            );
        }
        let members = self.of(Role::Members(id));
        if members.exists {
            let parts = self.frame_parts(input, Role::Members(id));
            list.add("initialisers", "frame", members.extent, parts);
        }
        let constructors = (0..component.constructors.len())
            .map(|k| (format!("constructor {}", k + 1), Role::Constructor(id, k)));
        let behaviour = ("behaviour".to_owned(), Role::Behaviour(id));
        let frames: Vec<Part> = constructors
            .chain([behaviour])
            .filter(|(_, role)| self.of(*role).exists)
            .map(|(name, role)| self.frame(input, name, role))
            .collect();
        let roles = (0..component.constructors.len())
            .map(|k| Role::Constructor(id, k))
            .chain([Role::Behaviour(id)]);
        let extents = roles
            .map(|role| self.of(role))
            .filter(|layout| layout.exists);
        if let Some(union) = extents.map(|layout| layout.extent).reduce(Extent::overlaid) {
            list.add("frame", OVERLAID, union, frames);
        }
        if input.probes.is_some() {
            let state = Extent { bytes: 8, align: 8 };
            list.add("calls", "for probes", state, Vec::new());
        }
        (list.sum.finish().bytes, list.parts)
    }

    /// A frame as a part of a union.
    fn frame(&self, input: &Lowered<'_>, name: String, role: Role) -> Part {
        Part {
            name,
            what: "frame".into(),
            offset: 0,
            bytes: self.of(role).extent.bytes,
            parts: self.frame_parts(input, role),
        }
    }

    fn frame_parts(&self, input: &Lowered<'_>, role: Role) -> Vec<Part> {
        let Some(function) = input.module.functions.iter().find(|f| f.role == role) else {
            return Vec::new();
        };
        let layout = self.of(role);
        let mut list = PartList::default();
        if function.blocks {
            list.add("state", "where to resume", Extent::STATE, Vec::new());
        }
        for &slot in &layout.fields {
            let ty = function.slots[slot.index()].ty;
            let what = match ty {
                SlotType::Of(ty) => type_text(input, ty),
                SlotType::Double => "real".into(),
                SlotType::Held => "held sender".into(),
            };
            let name = &layout.slot_names[slot.index()];
            list.add(name, &what, slot_extent(input, ty), Vec::new());
        }
        if function.blocks && function.result != TypeId::VOID {
            let result = function.result;
            list.add(
                "result",
                &type_text(input, result),
                extent(input, result),
                Vec::new(),
            );
        }
        if layout.has_inner {
            list.add("inner", "frame on the heap", Extent::POINTER, Vec::new());
        }
        if let Some(union) = self.callee_union(input, layout) {
            let callees = layout.callees.iter().map(|&proc| {
                let name = input.program.procs[proc.index()].name;
                self.frame(
                    input,
                    input.program.names.name(name).to_owned(),
                    Role::Proc(proc),
                )
            });
            list.add("callee", OVERLAID, union, callees.collect());
        }
        list.parts
    }
}

/// A type in Insense's words, as far as sizes go.
fn type_text(input: &Lowered<'_>, ty: TypeId) -> String {
    if let Some((_, name)) = input.program.type_names.iter().find(|(t, _)| *t == ty) {
        return input.program.names.name(*name).to_owned();
    }
    match input.program.types.get(ty) {
        Type::Integer => "integer".into(),
        Type::Unsigned => "unsigned".into(),
        Type::Real => "real".into(),
        Type::Bool => "bool".into(),
        Type::Byte => "byte".into(),
        Type::String => "string".into(),
        Type::Any => "any".into(),
        Type::Enum(_) => "enum".into(),
        Type::Struct(_) => "struct".into(),
        Type::Array(e) => format!("{}[]", type_text(input, *e)),
        Type::Channel(Direction::In, p) => format!("in {}", type_text(input, *p)),
        Type::Channel(Direction::Out, p) => format!("out {}", type_text(input, *p)),
        Type::Component(_) => "component".into(),
        Type::Proc { .. } => "procedure".into(),
        Type::Void | Type::Never | Type::Error => "nothing".into(),
    }
}
