//! The place of each variable in C: frames, component structs and their sizes; and C's [`names`].
//!
//! A frame is the part of a function's variables that outlives a blocking point. The frames of the
//! blocking procedures it calls are nested in it, overlaid in a union, since only one call is under
//! way at a time. A component's constructors and its behaviour are overlaid likewise.

pub(crate) mod names;
mod parts;

use crate::core::Lowered;
use crate::core::ir::*;
use crate::core::passes::{each_statement, statement_target};
use crate::tree::{ProcCode, ProcId};
use crate::types::{Type, TypeId};
use names::LocalNames;
pub use parts::Part;
use std::collections::HashMap;

/// `sizeof(hearth_component)`; asserted in the emitted C.
pub const COMPONENT_HEADER_BYTES: u64 = 72;

/// Bytes and alignment of a C object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) bytes: u64,
    pub(crate) align: u64,
}

impl Extent {
    const POINTER: Extent = Extent { bytes: 8, align: 8 };
    /// The number of the point at which a parked function resumes.
    const STATE: Extent = Extent { bytes: 4, align: 4 };

    /// A union of the two.
    fn overlaid(self, other: Extent) -> Extent {
        let align = self.align.max(other.align);
        Extent {
            bytes: self.bytes.max(other.bytes).next_multiple_of(align),
            align,
        }
    }
}

/// The variables of a function.
pub(crate) struct FrameLayout {
    /// C names of all slots.
    pub(crate) slot_names: Vec<String>,
    /// By slot: true if its value is ever read or released.
    pub(crate) used: Vec<bool>,
    /// Slots in the frame, in order.
    pub(crate) fields: Vec<SlotId>,
    /// Blocking procedures called, whose frames are nested here.
    pub(crate) callees: Vec<ProcId>,
    /// Blocking procedure types called by value.
    pub(crate) value_types: Vec<TypeId>,
    /// A frame on the heap, for recursion.
    pub(crate) has_inner: bool,
    pub(crate) exists: bool,
    pub(crate) extent: Extent,
}

/// The layouts of all functions of a program.
pub(crate) struct Layouts {
    pub(crate) by_role: HashMap<Role, FrameLayout>,
    /// Functions, nested frames first.
    pub(crate) order: Vec<usize>,
}

impl Layouts {
    pub(crate) fn new(input: &Lowered<'_>) -> Layouts {
        let mut layouts = Layouts {
            by_role: HashMap::new(),
            order: Vec::new(),
        };
        let mut done = vec![false; input.module.functions.len()];
        for i in 0..done.len() {
            layouts.add(input, i, &mut done);
        }
        layouts
    }

    fn add(&mut self, input: &Lowered<'_>, index: usize, done: &mut [bool]) {
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
            self.add(input, position.expect("a used procedure"), done);
        }
        layout.extent = self.extent(input, function, &layout);
        self.order.push(index);
        self.by_role.insert(function.role, layout);
    }

    pub(crate) fn of(&self, role: Role) -> &FrameLayout {
        &self.by_role[&role]
    }

    fn extent(&self, input: &Lowered<'_>, function: &Function, layout: &FrameLayout) -> Extent {
        let mut sum = Sum::default();
        if function.blocks {
            sum.add(Extent::STATE);
        }
        if !function.parts.is_empty() {
            sum.add(Extent::STATE);
        }
        for &slot in &layout.fields {
            sum.add(slot_extent(input, function.slots[slot.index()].ty));
        }
        let result = function.result;
        if function.blocks && result != TypeId::VOID {
            sum.add(extent(input, result));
        }
        if layout.has_inner {
            sum.add(Extent::POINTER);
        }
        if let Some(union) = self.callee_union(input, layout) {
            sum.add(union);
        }
        sum.finish()
    }

    fn callee_union(&self, input: &Lowered<'_>, layout: &FrameLayout) -> Option<Extent> {
        let nested = layout
            .callees
            .iter()
            .map(|&p| self.of(Role::Proc(p)).extent);
        let valued = layout
            .value_types
            .iter()
            .map(|&ty| value_frame_extent(input, ty));
        nested.chain(valued).reduce(Extent::overlaid)
    }
}

/// Lays fields one behind the other as C does.
#[derive(Default, Clone, Copy)]
pub(crate) struct Sum {
    bytes: u64,
    align: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, extent: Extent) -> u64 {
        let offset = self.bytes.next_multiple_of(extent.align);
        self.bytes = offset + extent.bytes;
        self.align = self.align.max(extent.align);
        offset
    }

    pub(crate) fn finish(self) -> Extent {
        let align = self.align.max(1);
        Extent {
            bytes: self.bytes.next_multiple_of(align),
            align,
        }
    }
}

pub(crate) fn extent(input: &Lowered<'_>, ty: TypeId) -> Extent {
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

fn slot_extent(input: &Lowered<'_>, ty: SlotType) -> Extent {
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
fn value_frame_extent(input: &Lowered<'_>, ty: TypeId) -> Extent {
    let Type::Proc { params, result } = input.program.types.get(ty) else {
        unreachable!("a procedure type")
    };
    let mut sum = Sum::default();
    sum.add(Extent::STATE);
    params.iter().for_each(|&p| {
        sum.add(extent(input, p));
    });
    if *result != TypeId::VOID {
        sum.add(extent(input, *result));
    }
    sum.add(Extent::POINTER);
    sum.finish()
}

fn frame_of(input: &Lowered<'_>, function: &Function) -> FrameLayout {
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
    let mut fields: Vec<SlotId> = (0..function.slots.len())
        .map(|i| SlotId(i as u32))
        .filter(|s| function.slots[s.index()].storage == Storage::Frame)
        .filter(|s| used[s.index()] || function.params.contains(s))
        .collect();
    if !function.parts.is_empty() {
        // Side by side those that are released alike.
        fields.sort_by_key(|slot| match function.slots[slot.index()].ty {
            SlotType::Of(ty) => (0, ty.0, function.slots[slot.index()].counted),
            SlotType::Double => (1, 0, false),
            SlotType::Held => (2, 0, true),
        });
    }
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
