//! Lengths known to the compiler.
//!
//! A member that is made with literal lengths and never assigned keeps its length for life, and so
//! do its rows if no statement of the program replaces a row of that type. Loops over such arrays
//! get constant bounds.

use crate::core::Lowered;
use crate::core::effects::walk;
use crate::core::ir::Value;
use crate::tree::{Component, ComponentId, ExprKind, MemberId};
use crate::types::{Type, TypeId};

/// By component and member: the lengths, outermost first.
pub(super) struct Shapes {
    lengths: Vec<Vec<Option<Vec<u32>>>>,
}

impl Shapes {
    pub(super) fn new(input: &Lowered<'_>) -> Shapes {
        let program = input.program;
        let lengths = program
            .components
            .iter()
            .map(|c| c.members.iter().map(literal).collect());
        let mut shapes = Shapes {
            lengths: lengths.collect(),
        };
        for (i, component) in program.components.iter().enumerate() {
            shapes.forget_assigned(input, ComponentId(i as u32), component);
        }
        shapes
    }

    fn forget_assigned(&mut self, input: &Lowered<'_>, id: ComponentId, component: &Component) {
        let lengths = &mut self.lengths[id.index()];
        let mut look = |body: &crate::tree::Body| {
            walk(&body.block, &mut |e| {
                if let ExprKind::Assign(place, _) = &e.kind
                    && let ExprKind::Member(member) = place.kind
                {
                    lengths[member.index()] = None;
                }
            });
        };
        component.constructors.iter().for_each(&mut look);
        look(&component.behaviour);
        component.members.iter().for_each(|m| look(&m.init));
        for proc in input.program.procs.iter().filter(|p| p.owner == Some(id)) {
            if let crate::tree::ProcCode::Body(body) = &proc.code {
                look(body);
            }
        }
    }

    /// The length of an array read through a member, if it is known.
    pub(super) fn length(
        &self,
        input: &Lowered<'_>,
        component: ComponentId,
        array: &Value,
    ) -> Option<u32> {
        let (member, depth) = rooted(array)?;
        let lengths = self.lengths[component.index()][member.index()].as_ref()?;
        let mut ty = input.program.components[component.index()].members[member.index()].ty;
        for _ in 0..depth {
            if input.module.ragged.contains(&ty) {
                return None;
            }
            ty = element(input, ty)?;
        }
        lengths.get(depth).copied()
    }
}

fn element(input: &Lowered<'_>, ty: TypeId) -> Option<TypeId> {
    match input.program.types.get(ty) {
        Type::Array(element) => Some(*element),
        _ => None,
    }
}

fn literal(member: &crate::tree::Member) -> Option<Vec<u32>> {
    match &member.init.block.kind {
        ExprKind::NewArray { lengths, .. } => Some(lengths.clone()),
        _ => None,
    }
}

/// The member a path of elements begins at, and how many elements deep it goes.
fn rooted(array: &Value) -> Option<(MemberId, usize)> {
    match array {
        Value::Member(member) => Some((*member, 0)),
        Value::Element(outer, _, _) => rooted(outer).map(|(member, depth)| (member, depth + 1)),
        _ => None,
    }
}
