//! What references can lead to: one *node* for all objects that may stand for each other.
//!
//! A node is a set of places that may hold the same objects. Storing a reference joins the nodes of
//! both places, and with them, part by part, those of what lies inside (Steensgaard's analysis). So
//! whatever may be referred to from a place was made for the place's node, and one number, the
//! largest length, says how long the arrays of a node can be.
//!
//! All boxes share a node, as their content may be anything that is boxed anywhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::Input;
use super::super::layout::{Extent, Sum, extent};
use super::{Reason, block_bytes};
use crate::source::Span;
use crate::types::{Type, TypeId};

/// A node by the number under which it was made; [`Nodes::root`] tells which one it has become.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

/// All boxes.
const BOXES: NodeId = NodeId(0);

/// `sizeof(hearth_box)`, `sizeof(hearth_procedure)`, and what an array has before its elements.
const BOX_BYTES: u64 = 24;
const PROCEDURE_BYTES: u64 = 24;
const ARRAY_HEADER_BYTES: u64 = 16;
/// `sizeof(hearth_object)`, with which a struct begins.
const OBJECT: Extent = Extent { bytes: 8, align: 4 };

struct Node {
    /// Another node with which it was joined.
    joined: Option<NodeId>,
    ty: TypeId,
    /// Something of it is made at run time: literals alone take no memory.
    is_made: bool,
    /// The longest array.
    length: u64,
    /// What lies inside: the elements, or the fields. None where that is no object.
    parts: Vec<Option<NodeId>>,
    /// Made outside the program's text, so of a size that nobody knows.
    open: Option<Reason>,
}

/// The size of all that can be reached from a reference, or why there is no bound.
pub(super) type Measure = Result<Weight, Reason>;

/// Bytes in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    /// The largest single block.
    pub(super) largest: u64,
}

impl Weight {
    pub(super) fn block(bytes: u64) -> Weight {
        let bytes = block_bytes(bytes);
        Weight {
            bytes,
            largest: bytes,
        }
    }

    pub(super) fn plus(self, other: Weight) -> Weight {
        Weight {
            bytes: self.bytes.saturating_add(other.bytes),
            largest: self.largest.max(other.largest),
        }
    }

    pub(super) fn times(self, count: u64) -> Weight {
        if count == 0 {
            return Weight::default();
        }
        Weight {
            bytes: self.bytes.saturating_mul(count),
            ..self
        }
    }

    pub(super) fn max(self, other: Weight) -> Weight {
        Weight {
            bytes: self.bytes.max(other.bytes),
            largest: self.largest.max(other.largest),
        }
    }
}

/// Which objects are counted: all, or those of some nodes.
pub(super) type Counted<'s> = Option<&'s BTreeSet<NodeId>>;

pub(super) struct Nodes<'a> {
    input: &'a Input<'a>,
    list: Vec<Node>,
    /// The types that are boxed somewhere, where, and the node of the content.
    boxed: BTreeMap<TypeId, (Span, Option<NodeId>)>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Nodes<'a> {
        let mut nodes = Nodes {
            input,
            list: Vec::new(),
            boxed: BTreeMap::new(),
        };
        nodes.add(TypeId::ANY, Vec::new());
        nodes
    }

    fn add(&mut self, ty: TypeId, parts: Vec<Option<NodeId>>) -> NodeId {
        let id = NodeId(self.list.len() as u32);
        self.list.push(Node {
            joined: None,
            ty,
            is_made: false,
            length: 0,
            parts,
            open: None,
        });
        id
    }

    /// A node for a place of a type; None if it never holds an object of a component's heap. Types
    /// are finite: only boxes lead back to themselves, and they have their node already.
    pub(super) fn of_type(&mut self, ty: TypeId) -> Option<NodeId> {
        let input = self.input;
        let parts = match input.program.types.get(ty) {
            Type::Any => return Some(BOXES),
            Type::String | Type::Proc { .. } => Vec::new(),
            Type::Array(element) => vec![self.of_type(*element)],
            Type::Struct(fields) => fields.iter().map(|(_, ty)| self.of_type(*ty)).collect(),
            _ => return None,
        };
        Some(self.add(ty, parts))
    }

    /// The node that a node has become.
    pub(super) fn root(&self, id: NodeId) -> NodeId {
        let mut id = id;
        while let Some(next) = self.list[id.0 as usize].joined {
            id = next;
        }
        id
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.list[self.root(id).0 as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        let root = self.root(id);
        &mut self.list[root.0 as usize]
    }

    /// A part of what a node stands for: element (0) or field.
    pub(super) fn part(&self, id: NodeId, index: usize) -> Option<NodeId> {
        self.node(id).parts.get(index).copied().flatten()
    }

    /// The content of boxes that hold a type.
    pub(super) fn content(&mut self, ty: TypeId, span: Span) -> Option<NodeId> {
        if let Some((_, node)) = self.boxed.get(&ty) {
            return *node;
        }
        let node = self.of_type(ty);
        self.boxed.insert(ty, (span, node));
        if let (Some(reason), Some(node)) = (self.node(BOXES).open.clone(), node) {
            self.open(node, &reason);
        }
        node
    }

    /// Both may hold the same objects.
    pub(super) fn join(&mut self, a: Option<NodeId>, b: Option<NodeId>) {
        let (Some(a), Some(b)) = (a, b) else { return };
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        // Boxes keep their number.
        let (kept, gone) = (a.min(b), a.max(b));
        let node = &mut self.list[gone.0 as usize];
        node.joined = Some(kept);
        let (is_made, length) = (node.is_made, node.length);
        let (parts, open) = (std::mem::take(&mut node.parts), node.open.take());
        let node = &mut self.list[kept.0 as usize];
        node.is_made |= is_made;
        node.length = node.length.max(length);
        node.open = node.open.take().or(open);
        let of_kept = node.parts.clone();
        debug_assert_eq!(of_kept.len(), parts.len(), "joined nodes have equal types");
        for (one, other) in of_kept.into_iter().zip(parts) {
            self.join(one, other);
        }
    }

    pub(super) fn make(&mut self, id: NodeId) {
        self.node_mut(id).is_made = true;
    }

    /// Makes arrays of so many elements.
    pub(super) fn make_array(&mut self, id: NodeId, length: u64) {
        let node = self.node_mut(id);
        node.is_made = true;
        node.length = node.length.max(length);
    }

    /// What a node stands for, and all inside, is made outside the program's text.
    pub(super) fn open(&mut self, id: NodeId, reason: &Reason) {
        let mut left = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(id) = left.pop() {
            let id = self.root(id);
            if !seen.insert(id) {
                continue;
            }
            let node = self.node_mut(id);
            node.is_made = true;
            node.open.get_or_insert_with(|| reason.clone());
            left.extend(node.parts.iter().flatten());
            if id == BOXES {
                left.extend(self.boxed.values().filter_map(|(_, node)| *node));
            }
        }
    }

    /// Adds all nodes that can be reached, the node itself included.
    pub(super) fn add_tree(&self, id: NodeId, found: &mut BTreeSet<NodeId>) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            let id = self.root(id);
            if !found.insert(id) {
                continue;
            }
            left.extend(self.node(id).parts.iter().flatten());
            if id == BOXES {
                left.extend(self.boxed.values().filter_map(|(_, node)| *node));
            }
        }
    }

    fn reaches(&self, id: NodeId, counted: Counted<'_>) -> bool {
        let Some(counted) = counted else { return true };
        let mut tree = BTreeSet::new();
        self.add_tree(id, &mut tree);
        !tree.is_disjoint(counted)
    }

    /// Where a type is boxed that has boxes inside, if anywhere: then boxes can be nested at will.
    fn nested_boxes(&self) -> Option<Span> {
        let mut boxed = self.boxed.iter();
        boxed
            .find(|(ty, _)| self.holds_boxes(**ty))
            .map(|(_, (span, _))| *span)
    }

    fn holds_boxes(&self, ty: TypeId) -> bool {
        match self.input.program.types.get(ty) {
            Type::Any => true,
            Type::Array(element) => self.holds_boxes(*element),
            Type::Struct(fields) => fields.iter().any(|(_, ty)| self.holds_boxes(*ty)),
            _ => false,
        }
    }
}

/// Sizes of nodes, each computed once.
pub(super) struct Measures<'n, 'a> {
    nodes: &'n Nodes<'a>,
    counted: Counted<'n>,
    known: HashMap<NodeId, Measure>,
}

impl<'n, 'a> Measures<'n, 'a> {
    /// Only objects of these nodes are counted; what they lie in is not, unless it is one, too.
    pub(super) fn new(nodes: &'n Nodes<'a>, counted: Counted<'n>) -> Measures<'n, 'a> {
        Measures {
            nodes,
            counted,
            known: HashMap::new(),
        }
    }

    /// All that can be reached from one reference, as if nothing was shared.
    pub(super) fn of(&mut self, id: Option<NodeId>) -> Measure {
        let Some(id) = id else {
            return Ok(Weight::default());
        };
        let id = self.nodes.root(id);
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let measure = self.measure(id);
        self.known.insert(id, measure.clone());
        measure
    }

    fn measure(&mut self, id: NodeId) -> Measure {
        let nodes = self.nodes;
        let node = nodes.node(id);
        if !node.is_made || !nodes.reaches(id, self.counted) {
            return Ok(Weight::default());
        }
        if let Some(reason) = &node.open {
            return Err(reason.clone());
        }
        if id == BOXES {
            return self.measure_boxes();
        }
        let types = &nodes.input.program.types;
        let (own, times) = match types.get(node.ty) {
            Type::Array(element) => {
                let elements = node
                    .length
                    .saturating_mul(extent(nodes.input, *element).bytes);
                (ARRAY_HEADER_BYTES.saturating_add(elements), node.length)
            }
            Type::Struct(fields) => {
                let mut sum = Sum::default();
                sum.add(OBJECT);
                for (_, ty) in fields {
                    sum.add(extent(nodes.input, *ty));
                }
                (sum.finish().bytes, 1)
            }
            Type::Proc { .. } => (PROCEDURE_BYTES, 1),
            // A string that is no literal was made outside.
            _ => (0, 0),
        };
        let mut weight = self.own(id, own);
        for part in node.parts.iter().flatten() {
            weight = weight.plus(self.of(Some(*part))?.times(times));
        }
        Ok(weight)
    }

    fn own(&self, id: NodeId, bytes: u64) -> Weight {
        if self.counted.is_none_or(|counted| counted.contains(&id)) {
            Weight::block(bytes)
        } else {
            Weight::default()
        }
    }

    fn measure_boxes(&mut self) -> Measure {
        if let Some(span) = self.nodes.nested_boxes() {
            return Err(Reason::new(
                "what is boxed here may hold boxes in turn",
                span,
            ));
        }
        let mut content = Weight::default();
        for (_, node) in self.nodes.boxed.values() {
            content = content.max(self.of(*node)?);
        }
        Ok(self.own(BOXES, BOX_BYTES).plus(content))
    }
}
