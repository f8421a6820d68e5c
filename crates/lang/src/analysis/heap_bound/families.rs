//! Families: one for all objects that may stand for each other behind a reference.
//!
//! A family is a set of places that may hold the same objects. Storing a reference joins the
//! families of both places, and with them, part by part, those of what lies inside (Steensgaard's
//! analysis). So whatever may be referred to from a place was made for the place's family, and one
//! number, the largest length, says how long the arrays of a family can be.
//!
//! All boxes share a family, as their content may be anything that is boxed anywhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Reason, block_bytes};
use crate::core::Lowered;
use crate::layout::{Extent, Sum, extent};
use crate::source::Span;
use crate::types::{Type, TypeId};

/// A family by the number under which it was made; [`Families::root`] tells which one it has
/// become.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct FamilyId(u32);

/// All boxes.
const BOXES: FamilyId = FamilyId(0);

/// `sizeof(hearth_box)`, `sizeof(hearth_procedure)`, and what an array has before its elements.
const BOX_BYTES: u64 = 24;
const PROCEDURE_BYTES: u64 = 24;
const ARRAY_HEADER_BYTES: u64 = 16;
/// `sizeof(hearth_object)`, with which a struct begins.
const OBJECT: Extent = Extent { bytes: 8, align: 4 };

struct Family {
    /// Another family with which it was joined.
    joined: Option<FamilyId>,
    ty: TypeId,
    /// True if objects of it are created at run time: literals alone take no memory.
    is_made: bool,
    /// The longest array.
    length: u64,
    /// The families inside: of the elements, or the fields; `None` where that is not an object.
    parts: Vec<Option<FamilyId>>,
    /// True if created outside the program's text, so of unknown size.
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

/// The objects that are counted: all, or those of some families.
pub(super) type Counted<'s> = Option<&'s BTreeSet<FamilyId>>;

pub(super) struct Families<'a> {
    input: &'a Lowered<'a>,
    list: Vec<Family>,
    /// The types that are boxed somewhere, where, and the family of the content.
    boxed: BTreeMap<TypeId, (Span, Option<FamilyId>)>,
}

impl<'a> Families<'a> {
    pub(super) fn new(input: &'a Lowered<'a>) -> Families<'a> {
        let mut families = Families {
            input,
            list: Vec::new(),
            boxed: BTreeMap::new(),
        };
        families.add(TypeId::ANY, Vec::new());
        families
    }

    fn add(&mut self, ty: TypeId, parts: Vec<Option<FamilyId>>) -> FamilyId {
        let id = FamilyId(self.list.len() as u32);
        self.list.push(Family {
            joined: None,
            ty,
            is_made: false,
            length: 0,
            parts,
            open: None,
        });
        id
    }

    /// A family for a place of a type; None if it never holds an object of a component's heap.
    /// Types are finite: only boxes lead back to themselves, and they have their family already.
    pub(super) fn of_type(&mut self, ty: TypeId) -> Option<FamilyId> {
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

    /// The family that a family has become.
    pub(super) fn root(&self, id: FamilyId) -> FamilyId {
        let mut id = id;
        while let Some(next) = self.list[id.0 as usize].joined {
            id = next;
        }
        id
    }

    fn family(&self, id: FamilyId) -> &Family {
        &self.list[self.root(id).0 as usize]
    }

    fn family_mut(&mut self, id: FamilyId) -> &mut Family {
        let root = self.root(id);
        &mut self.list[root.0 as usize]
    }

    /// A part of what a family stands for: element (0) or field.
    pub(super) fn part(&self, id: FamilyId, index: usize) -> Option<FamilyId> {
        self.family(id).parts.get(index).copied().flatten()
    }

    /// The content of boxes that hold a type.
    pub(super) fn content(&mut self, ty: TypeId, span: Span) -> Option<FamilyId> {
        if let Some((_, family)) = self.boxed.get(&ty) {
            return *family;
        }
        let family = self.of_type(ty);
        self.boxed.insert(ty, (span, family));
        if let (Some(reason), Some(family)) = (self.family(BOXES).open.clone(), family) {
            self.open(family, &reason);
        }
        family
    }

    /// Both may hold the same objects.
    pub(super) fn join(&mut self, a: Option<FamilyId>, b: Option<FamilyId>) {
        let (Some(a), Some(b)) = (a, b) else { return };
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        // Boxes keep their number.
        let (kept, gone) = (a.min(b), a.max(b));
        let family = &mut self.list[gone.0 as usize];
        family.joined = Some(kept);
        let (is_made, length) = (family.is_made, family.length);
        let (parts, open) = (std::mem::take(&mut family.parts), family.open.take());
        let family = &mut self.list[kept.0 as usize];
        family.is_made |= is_made;
        family.length = family.length.max(length);
        family.open = family.open.take().or(open);
        let of_kept = family.parts.clone();
        debug_assert_eq!(
            of_kept.len(),
            parts.len(),
            "joined families have equal types"
        );
        for (one, other) in of_kept.into_iter().zip(parts) {
            self.join(one, other);
        }
    }

    pub(super) fn make(&mut self, id: FamilyId) {
        self.family_mut(id).is_made = true;
    }

    /// Records the creation of arrays of a length.
    pub(super) fn make_array(&mut self, id: FamilyId, length: u64) {
        let family = self.family_mut(id);
        family.is_made = true;
        family.length = family.length.max(length);
    }

    /// Marks a family, and all inside, as created outside the program's text.
    pub(super) fn open(&mut self, id: FamilyId, reason: &Reason) {
        let mut left = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(id) = left.pop() {
            let id = self.root(id);
            if !seen.insert(id) {
                continue;
            }
            let family = self.family_mut(id);
            family.is_made = true;
            family.open.get_or_insert_with(|| reason.clone());
            left.extend(family.parts.iter().flatten());
            if id == BOXES {
                left.extend(self.boxed.values().filter_map(|(_, family)| *family));
            }
        }
    }

    /// Adds all families that can be reached, the family itself included.
    pub(super) fn add_tree(&self, id: FamilyId, found: &mut BTreeSet<FamilyId>) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            let id = self.root(id);
            if !found.insert(id) {
                continue;
            }
            left.extend(self.family(id).parts.iter().flatten());
            if id == BOXES {
                left.extend(self.boxed.values().filter_map(|(_, family)| *family));
            }
        }
    }

    fn reaches(&self, id: FamilyId, counted: Counted<'_>) -> bool {
        let Some(counted) = counted else { return true };
        let mut tree = BTreeSet::new();
        self.add_tree(id, &mut tree);
        !tree.is_disjoint(counted)
    }

    /// A place that boxes a type with boxes inside, if there is one: then boxes can nest without
    /// bound.
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

/// Sizes of families, each computed once.
pub(super) struct Measures<'n, 'a> {
    families: &'n Families<'a>,
    counted: Counted<'n>,
    known: HashMap<FamilyId, Measure>,
}

impl<'n, 'a> Measures<'n, 'a> {
    /// Only objects of these families are counted; what they lie in is not, unless it is one, too.
    pub(super) fn new(families: &'n Families<'a>, counted: Counted<'n>) -> Measures<'n, 'a> {
        Measures {
            families,
            counted,
            known: HashMap::new(),
        }
    }

    /// All that can be reached from one reference, as if nothing was shared.
    pub(super) fn of(&mut self, id: Option<FamilyId>) -> Measure {
        let Some(id) = id else {
            return Ok(Weight::default());
        };
        let id = self.families.root(id);
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let measure = self.measure(id);
        self.known.insert(id, measure.clone());
        measure
    }

    fn measure(&mut self, id: FamilyId) -> Measure {
        let families = self.families;
        let family = families.family(id);
        if !family.is_made || !families.reaches(id, self.counted) {
            return Ok(Weight::default());
        }
        if let Some(reason) = &family.open {
            return Err(reason.clone());
        }
        if id == BOXES {
            return self.measure_boxes();
        }
        let types = &families.input.program.types;
        let (own, times) = match types.get(family.ty) {
            Type::Array(element) => {
                let elements = family
                    .length
                    .saturating_mul(extent(families.input, *element).bytes);
                (ARRAY_HEADER_BYTES.saturating_add(elements), family.length)
            }
            Type::Struct(fields) => {
                let mut sum = Sum::default();
                sum.add(OBJECT);
                for (_, ty) in fields {
                    sum.add(extent(families.input, *ty));
                }
                (sum.finish().bytes, 1)
            }
            Type::Proc { .. } => (PROCEDURE_BYTES, 1),
            // A string that is no literal was made outside.
            _ => (0, 0),
        };
        let mut weight = self.own(id, own);
        for part in family.parts.iter().flatten() {
            weight = weight.plus(self.of(Some(*part))?.times(times));
        }
        Ok(weight)
    }

    fn own(&self, id: FamilyId, bytes: u64) -> Weight {
        if self.counted.is_none_or(|counted| counted.contains(&id)) {
            Weight::block(bytes)
        } else {
            Weight::default()
        }
    }

    fn measure_boxes(&mut self) -> Measure {
        if let Some(span) = self.families.nested_boxes() {
            return Err(Reason::new("the boxed value may hold boxes in turn", span));
        }
        let mut content = Weight::default();
        for (_, family) in self.families.boxed.values() {
            content = content.max(self.of(*family)?);
        }
        Ok(self.own(BOXES, BOX_BYTES).plus(content))
    }
}
