//! The memory of each component: its struct, part by part, and the bound of its heap.

use super::heap_bound::{HeapBound, HeapBounds};
use crate::core::Lowered;
use crate::layout::{Layouts, Part};
use crate::source::Span;
use crate::tree::ComponentId;

/// The size of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentSize {
    pub name: String,
    pub span: Span,
    pub bytes: u64,
    pub parts: Vec<Part>,
    pub heap: HeapBound,
}

/// The size of every used component of the user's, in order.
pub(crate) fn sizes(input: &Lowered<'_>) -> Vec<ComponentSize> {
    let layouts = Layouts::new(input);
    let heaps = HeapBounds::new(input, &layouts);
    let components = input.program.components.iter().enumerate();
    components
        .filter(|(_, component)| component.used && !component.service)
        .map(|(index, component)| {
            let id = ComponentId(index as u32);
            let (bytes, parts) = layouts.component(input, id);
            ComponentSize {
                name: input.program.names.name(component.name).to_owned(),
                span: component.span,
                bytes,
                parts,
                heap: heaps.of(id).clone(),
            }
        })
        .collect()
}
