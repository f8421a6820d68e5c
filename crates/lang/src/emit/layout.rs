//! Which variable lies where: frames, component structs and their sizes.
//!
//! A frame is the part of a function's variables that outlives a blocking point. The frames of the
//! blocking procedures it calls are nested in it, overlaid in a union, since only one call is under
//! way at a time. A component's constructors and its behaviour are overlaid likewise.

use super::heap_bound::{HeapBound, HeapBounds};
use super::names::{LocalNames, Names};
use super::{Input, function_name};
use crate::core::ir::*;
use crate::core::passes::{each_statement, statement_target};
use crate::source::Span;
use crate::tree::{ComponentId, ProcCode, ProcId};
use crate::types::{Type, TypeId};
use std::collections::HashMap;

/// `sizeof(hearth_component)`; asserted in the emitted C.
pub const COMPONENT_HEADER_BYTES: u64 = 72;

/// The size of a component, part by part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentSize {
    pub name: String,
    pub span: Span,
    pub bytes: u64,
    pub parts: Vec<Part>,
    pub heap: HeapBound,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    /// What it is, in Insense's words.
    pub what: String,
    pub offset: u64,
    pub bytes: u64,
    /// What a frame is made of.
    pub parts: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) bytes: u64,
    pub(super) align: u64,
}

/// How a function keeps its variables.
pub(super) struct FrameLayout {
    /// C names of all slots.
    pub(super) slot_names: Vec<String>,
    /// Whether a value of the slot is ever read (or released).
    pub(super) used: Vec<bool>,
    /// Slots in the frame, in order.
    pub(super) fields: Vec<SlotId>,
    /// Blocking procedures called, whose frames are nested here.
    pub(super) callees: Vec<ProcId>,
    /// Blocking procedure types called by value.
    pub(super) value_types: Vec<TypeId>,
    /// A frame on the heap, for recursion.
    pub(super) has_inner: bool,
    pub(super) exists: bool,
    pub(super) extent: Extent,
}

pub(super) struct Layouts {
    pub(super) by_role: HashMap<String, FrameLayout>,
    /// Functions in an order in which nested frames come first.
    pub(super) order: Vec<usize>,
}

impl Layouts {
    pub(super) fn new(input: &Input<'_>, names: &Names) -> Layouts {
        let mut layouts = Layouts {
            by_role: HashMap::new(),
            order: Vec::new(),
        };
        let mut done = vec![false; input.module.functions.len()];
        for i in 0..done.len() {
            layouts.add(input, names, i, &mut done);
        }
        layouts
    }

    fn add(&mut self, input: &Input<'_>, names: &Names, index: usize, done: &mut [bool]) {
        if std::mem::replace(&mut done[index], true) {
            return;
        }
        let function = &input.module.functions[index];
        let mut layout = frame_of(input, function);
        for &callee in &layout.callees {
            let position = input
                .module
                .functions
                .iter()
                .position(|f| f.role == Role::Proc(callee));
            self.add(input, names, position.expect("a used procedure"), done);
        }
        layout.extent = self.extent(input, names, function, &layout);
        self.order.push(index);
        self.by_role
            .insert(function_name(names, function.role), layout);
    }

    pub(super) fn of(&self, names: &Names, role: Role) -> &FrameLayout {
        &self.by_role[&function_name(names, role)]
    }

    fn extent(
        &self,
        input: &Input<'_>,
        names: &Names,
        function: &Function,
        layout: &FrameLayout,
    ) -> Extent {
        let mut sum = Sum::default();
        if function.blocks {
            sum.add(Extent { bytes: 4, align: 4 });
        }
        for &slot in &layout.fields {
            sum.add(slot_extent(input, function.slots[slot.index()].ty));
        }
        let result = function.result;
        if function.blocks && result != TypeId::VOID {
            sum.add(extent(input, result));
        }
        if layout.has_inner {
            sum.add(Extent { bytes: 8, align: 8 });
        }
        if let Some(union) = self.callee_union(input, names, layout) {
            sum.add(union);
        }
        sum.finish()
    }

    fn callee_union(
        &self,
        input: &Input<'_>,
        names: &Names,
        layout: &FrameLayout,
    ) -> Option<Extent> {
        let nested = layout
            .callees
            .iter()
            .map(|&p| self.of(names, Role::Proc(p)).extent);
        let valued = layout
            .value_types
            .iter()
            .map(|&ty| value_frame_extent(input, ty));
        nested.chain(valued).reduce(|a, b| {
            let align = a.align.max(b.align);
            Extent {
                bytes: a.bytes.max(b.bytes).next_multiple_of(align),
                align,
            }
        })
    }

    /// The parts of a component's struct, with the frame union last.
    fn component(&self, input: &Input<'_>, names: &Names, id: ComponentId) -> (Sum, Vec<Part>) {
        let component = &input.program.components[id.index()];
        let text = |s| input.program.names.name(s).to_owned();
        let mut sum = Sum::default();
        let mut parts = Vec::new();
        let mut add =
            |sum: &mut Sum, name: String, what: String, extent: Extent, inner: Vec<Part>| {
                let offset = sum.add(extent);
                parts.push(Part {
                    name,
                    what,
                    offset,
                    bytes: extent.bytes,
                    parts: inner,
                });
            };
        let header = Extent {
            bytes: COMPONENT_HEADER_BYTES,
            align: 8,
        };
        add(
            &mut sum,
            "header".into(),
            "what every component has".into(),
            header,
            Vec::new(),
        );
        let pointer = Extent { bytes: 8, align: 8 };
        for channel in &component.channels {
            add(
                &mut sum,
                text(channel.name),
                "channel".into(),
                pointer,
                Vec::new(),
            );
        }
        for member in &component.members {
            let what = type_text(input, member.ty);
            add(
                &mut sum,
                text(member.name),
                what,
                extent(input, member.ty),
                Vec::new(),
            );
        }
        let members = self.of(names, Role::Members(id));
        if members.exists {
            add(
                &mut sum,
                "initialisers".into(),
                "frame".into(),
                members.extent,
                self.frame_parts(input, names, Role::Members(id)),
            );
        }
        let mut frames: Vec<(String, Role)> = (0..component.constructors.len())
            .map(|k| (format!("constructor {}", k + 1), Role::Constructor(id, k)))
            .collect();
        frames.push(("behaviour".into(), Role::Behaviour(id)));
        let mut union: Option<Extent> = None;
        let mut inner = Vec::new();
        for (name, role) in frames {
            let layout = self.of(names, role);
            if !layout.exists {
                continue;
            }
            let e = layout.extent;
            inner.push(Part {
                name,
                what: "frame".into(),
                offset: 0,
                bytes: e.bytes,
                parts: self.frame_parts(input, names, role),
            });
            union = Some(match union {
                None => e,
                Some(u) => {
                    let align = u.align.max(e.align);
                    Extent {
                        bytes: u.bytes.max(e.bytes).next_multiple_of(align),
                        align,
                    }
                }
            });
        }
        if let Some(union) = union {
            add(
                &mut sum,
                "frame".into(),
                "one of these at a time".into(),
                union,
                inner,
            );
        }
        (sum, parts)
    }

    fn frame_parts(&self, input: &Input<'_>, names: &Names, role: Role) -> Vec<Part> {
        let Some(function) = input.module.functions.iter().find(|f| f.role == role) else {
            return Vec::new();
        };
        let layout = self.of(names, role);
        let mut sum = Sum::default();
        let mut parts = Vec::new();
        let mut add =
            |sum: &mut Sum, name: String, what: String, extent: Extent, inner: Vec<Part>| {
                let offset = sum.add(extent);
                parts.push(Part {
                    name,
                    what,
                    offset,
                    bytes: extent.bytes,
                    parts: inner,
                });
            };
        if function.blocks {
            add(
                &mut sum,
                "state".into(),
                "where to go on".into(),
                Extent { bytes: 4, align: 4 },
                Vec::new(),
            );
        }
        for &slot in &layout.fields {
            let slot_data = &function.slots[slot.index()];
            let what = match slot_data.ty {
                SlotType::Of(ty) => type_text(input, ty),
                SlotType::Double => "real".into(),
                SlotType::Held => "held sender".into(),
            };
            add(
                &mut sum,
                layout.slot_names[slot.index()].clone(),
                what,
                slot_extent(input, slot_data.ty),
                Vec::new(),
            );
        }
        if function.blocks && function.result != TypeId::VOID {
            let what = type_text(input, function.result);
            add(
                &mut sum,
                "result".into(),
                what,
                extent(input, function.result),
                Vec::new(),
            );
        }
        if layout.has_inner {
            add(
                &mut sum,
                "inner".into(),
                "frame on the heap".into(),
                Extent { bytes: 8, align: 8 },
                Vec::new(),
            );
        }
        if let Some(union) = self.callee_union(input, names, layout) {
            let inner = layout
                .callees
                .iter()
                .map(|&proc| {
                    let name = input
                        .program
                        .names
                        .name(input.program.procs[proc.index()].name)
                        .to_owned();
                    let bytes = self.of(names, Role::Proc(proc)).extent.bytes;
                    Part {
                        name,
                        what: "frame".into(),
                        offset: 0,
                        bytes,
                        parts: self.frame_parts(input, names, Role::Proc(proc)),
                    }
                })
                .collect();
            add(
                &mut sum,
                "callee".into(),
                "one of these at a time".into(),
                union,
                inner,
            );
        }
        parts
    }

    pub(super) fn component_bytes(&self, input: &Input<'_>, names: &Names, id: ComponentId) -> u64 {
        self.component(input, names, id).0.finish().bytes
    }

    pub(super) fn component_sizes(&self, input: &Input<'_>) -> Vec<ComponentSize> {
        let names = Names::new(input.program);
        let heaps = HeapBounds::new(input, self, &names);
        let components = input.program.components.iter().enumerate();
        components
            .filter(|(_, c)| c.used && !c.service)
            .map(|(i, c)| {
                let id = ComponentId(i as u32);
                let (sum, parts) = self.component(input, &names, id);
                ComponentSize {
                    name: input.program.names.name(c.name).to_owned(),
                    span: c.span,
                    bytes: sum.finish().bytes,
                    parts,
                    heap: heaps.of(id).clone(),
                }
            })
            .collect()
    }
}

/// Lays fields one behind the other as C does.
#[derive(Default, Clone, Copy)]
pub(super) struct Sum {
    bytes: u64,
    align: u64,
}

impl Sum {
    pub(super) fn add(&mut self, extent: Extent) -> u64 {
        let offset = self.bytes.next_multiple_of(extent.align);
        self.bytes = offset + extent.bytes;
        self.align = self.align.max(extent.align);
        offset
    }

    pub(super) fn finish(self) -> Extent {
        let align = self.align.max(1);
        Extent {
            bytes: self.bytes.next_multiple_of(align),
            align,
        }
    }
}

pub(super) fn extent(input: &Input<'_>, ty: TypeId) -> Extent {
    let bytes = match input.program.types.get(ty) {
        Type::Integer | Type::Unsigned | Type::Real | Type::Enum(_) => 4,
        Type::Bool | Type::Byte => 1,
        _ => 8,
    };
    Extent {
        bytes,
        align: bytes,
    }
}

fn slot_extent(input: &Input<'_>, ty: SlotType) -> Extent {
    match ty {
        SlotType::Of(ty) => extent(input, ty),
        SlotType::Double => Extent { bytes: 8, align: 8 },
        SlotType::Held => Extent {
            bytes: 16,
            align: 8,
        },
    }
}

/// The frame through which a blocking procedure value is called: state, arguments, result, and
/// the procedure's own frame on the heap.
fn value_frame_extent(input: &Input<'_>, ty: TypeId) -> Extent {
    let Type::Proc { params, result } = input.program.types.get(ty) else {
        unreachable!("a procedure type")
    };
    let mut sum = Sum::default();
    sum.add(Extent { bytes: 4, align: 4 });
    params.iter().for_each(|&p| {
        sum.add(extent(input, p));
    });
    if *result != TypeId::VOID {
        sum.add(extent(input, *result));
    }
    sum.add(Extent { bytes: 8, align: 8 });
    sum.finish()
}

fn frame_of(input: &Input<'_>, function: &Function) -> FrameLayout {
    let mut names = LocalNames::new();
    let slot_names = function
        .slots
        .iter()
        .map(|slot| match slot.name {
            Some(name) => names.named(input.program.names.name(name)),
            None => names.temporary(),
        })
        .collect();
    let mut used = vec![false; function.slots.len()];
    function
        .params
        .iter()
        .for_each(|p| used[p.index()] = function.slots[p.index()].counted);
    let mut callees = Vec::new();
    let mut value_types = Vec::new();
    let mut has_inner = false;
    let mut body = function.body.clone();
    each_statement(&mut body, &mut |stmt| {
        if let StmtKind::Promoted { members, .. } = stmt {
            members
                .iter()
                .filter(|m| m.2)
                .for_each(|m| used[m.1.index()] = true);
        }
        if let Some(target) = statement_target(stmt) {
            used[target.index()] |= function.slots[target.index()].counted;
        }
        if let StmtKind::Loop(l) = stmt {
            used[l.variable.index()] = true;
        }
        if let StmtKind::Call { callee, .. } = stmt {
            match callee {
                Callee::Proc(proc) => {
                    let native = matches!(
                        input.program.procs[proc.index()].code,
                        ProcCode::Native { .. }
                    );
                    if input.effects.of_proc(*proc).blocks && !native {
                        if input.effects.recursive[proc.index()] {
                            has_inner = true;
                        } else if !callees.contains(proc) {
                            callees.push(*proc);
                        }
                    }
                }
                Callee::Value(_, ty) => {
                    if input.effects.of_value(*ty).blocks && !value_types.contains(ty) {
                        value_types.push(*ty);
                    }
                }
            }
        }
        crate::core::passes::statement_values(stmt, &mut |value| {
            crate::core::passes::visit_value(value, &mut |v| {
                if let Value::Slot(slot) = v {
                    used[slot.index()] = true;
                }
            });
        });
    });
    let fields: Vec<SlotId> = (0..function.slots.len())
        .map(|i| SlotId(i as u32))
        .filter(|s| function.slots[s.index()].storage == Storage::Frame)
        .filter(|s| used[s.index()] || function.params.contains(s))
        .collect();
    let exists = function.blocks || !fields.is_empty();
    FrameLayout {
        slot_names,
        used,
        fields,
        callees,
        value_types,
        has_inner,
        exists,
        extent: Extent { bytes: 0, align: 1 },
    }
}

/// A type in Insense's words, as far as sizes go.
pub(super) fn type_text(input: &Input<'_>, ty: TypeId) -> String {
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
        Type::Channel(crate::tree::Direction::In, p) => format!("in {}", type_text(input, *p)),
        Type::Channel(crate::tree::Direction::Out, p) => format!("out {}", type_text(input, *p)),
        Type::Component(_) => "component".into(),
        Type::Proc { .. } => "procedure".into(),
        Type::Void | Type::Never | Type::Error => "nothing".into(),
    }
}
