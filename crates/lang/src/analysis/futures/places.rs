//! Places in memory as the analysis names them: an object it starts from, and steps into it.

use std::collections::{BTreeMap, BTreeSet};

use super::zone::{Linear, Symbol, Zone};
use crate::core::ir::SlotId;
use crate::tree::{GlobalId, MemberId};
use crate::types::TypeId;

/// An object that a path starts from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) enum Root {
    /// The object that an argument refers to.
    Param(u32),
    /// The object that a member refers to; with [`Cell::Variable`], the member itself.
    Member(MemberId),
    Global(GlobalId),
    /// An object made, received or returned into this slot. One of several rounds.
    New(SlotId),
    /// The result of a procedure, in its summary.
    Result,
    /// Any object.
    Unknown,
}

/// The bounds of an index, each a symbol plus a constant; all of them hold. No bound: any index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Range {
    pub(super) lower: Vec<Linear>,
    pub(super) upper: Vec<Linear>,
    /// The same index as a row and a place in it, if it is one.
    pub(super) rows: Option<Box<Rows>>,
}

/// Indices `row * width + place` with `0 <= place < width` that do not wrap: where the rows differ,
/// or the places, so do the indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    pub(super) width: Linear,
    pub(super) row: Range,
    pub(super) place: Range,
}

impl Range {
    /// Keeps the bounds that hold in both. With `is_late`, a bound that differs is dropped, so
    /// that joins come to an end.
    pub(super) fn join(&mut self, other: &Range, is_late: bool) {
        let kept = |mine: &mut Vec<Linear>, theirs: &[Linear], weaker: fn(i64, i64) -> i64| {
            mine.retain_mut(|(symbol, offset)| {
                let Some((_, theirs)) = theirs.iter().find(|(other, _)| other == symbol) else {
                    return false;
                };
                let joined = weaker(*offset, *theirs);
                let is_kept = joined == *offset || !is_late;
                *offset = joined;
                is_kept
            });
        };
        kept(&mut self.lower, &other.lower, i64::min);
        kept(&mut self.upper, &other.upper, i64::max);
        self.rows = match (self.rows.take(), &other.rows) {
            (Some(mut mine), Some(theirs)) if mine.width == theirs.width => {
                mine.row.join(&theirs.row, is_late);
                mine.place.join(&theirs.place, is_late);
                Some(mine)
            }
            _ => None,
        };
    }

    /// Keeps only the bounds by symbols that `is_kept` names.
    pub(super) fn only(&self, is_kept: &dyn Fn(Symbol) -> bool) -> Range {
        let kept = |bounds: &[Linear]| {
            let bounds = bounds.iter().filter(|(symbol, _)| is_kept(*symbol));
            bounds.copied().collect()
        };
        Range {
            lower: kept(&self.lower),
            upper: kept(&self.upper),
            rows: self
                .rows
                .as_ref()
                .filter(|rows| is_kept(rows.width.0))
                .map(|rows| {
                    Box::new(Rows {
                        width: rows.width,
                        row: rows.row.only(is_kept),
                        place: rows.place.only(is_kept),
                    })
                }),
        }
    }

    /// The range of numbers that are so much greater.
    pub(super) fn plus(mut self, more: i64) -> Range {
        let ends = self.lower.iter_mut().chain(&mut self.upper);
        ends.for_each(|(_, offset)| *offset += more);
        self.rows = None;
        self
    }

    /// True if no index is in both.
    fn is_apart(&self, other: &Range, zone: &Zone) -> bool {
        let ends_before = |a: &Range, b: &Range| {
            a.upper.iter().any(|&high| {
                let mut lows = b.lower.iter();
                lows.any(|&low| zone.is_at_most(high, 1, low))
            })
        };
        ends_before(self, other) || ends_before(other, self)
    }

    /// First and last distance from a symbol.
    pub(super) fn around(&self, symbol: Symbol) -> Option<(i64, i64)> {
        let of = |bounds: &[Linear]| bounds.iter().find(|(s, _)| *s == symbol).map(|(_, c)| *c);
        Some((of(&self.lower)?, of(&self.upper)?))
    }
}

/// A step from an object to one of its cells, and to what that refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) cell: Cell,
    /// The index of an element.
    pub(super) range: Range,
}

/// A place: where to start, and the steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) steps: Vec<Step>,
}

impl Path {
    pub(super) fn of(root: Root) -> Path {
        Path {
            root,
            steps: Vec::new(),
        }
    }

    pub(super) fn then(&self, step: Step) -> Path {
        let mut path = self.clone();
        path.steps.push(step);
        path
    }
}

/// A kind of memory. Types never lie, so places of different kinds are different places.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) enum Cell {
    /// An element of arrays with elements of this type.
    Element(TypeId),
    Field(TypeId, u32),
    /// A member.
    Variable(MemberId),
    /// The count of references in an object's header.
    Count,
    /// The object as long as it lives: whatever drops a reference to it may end it, and a call
    /// needs its arguments up to its end.
    Life,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) enum How {
    Read,
    Write,
}

/// True for two step lists of one shape, whatever their ranges are.
pub(super) fn are_alike(a: &[Step], b: &[Step]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.cell == b.cell)
}

/// Joins the ranges of one list of steps into those of another of the same shape.
pub(super) fn join_steps(mine: &mut [Step], theirs: &[Step], is_late: bool) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.range.join(&theirs.range, is_late);
    }
}

/// Proves that two places of one root and one kind are never the same.
pub(super) struct Apart<'a> {
    /// The kinds of cells of which several may refer to one object.
    pub(super) shared: &'a BTreeSet<Cell>,
    pub(super) zone: &'a Zone,
    /// The symbols that mean the same on both sides.
    pub(super) is_common: &'a dyn Fn(Symbol) -> bool,
    /// The variable of a loop, and its step: the two places are those of different rounds.
    pub(super) rounds: Option<(Symbol, i64)>,
}

impl Apart<'_> {
    /// Two cells differ if the objects that hold them differ, or their indices do. So where a step
    /// differs, what comes after leads to different cells, unless a cell on the way may refer to
    /// an object to which another refers too.
    pub(super) fn are_apart(&self, a: &[Step], b: &[Step]) -> bool {
        let common = a.len().min(b.len());
        let longest = if a.len() > b.len() { a } else { b };
        (0..common).any(|at| {
            if longest[at..longest.len() - 1]
                .iter()
                .any(|step| self.shared.contains(&step.cell))
            {
                return false;
            }
            match (a[at].cell, b[at].cell) {
                (Cell::Element(x), Cell::Element(y)) if x == y => {
                    self.ranges(&a[at].range, &b[at].range)
                }
                (Cell::Field(x, i), Cell::Field(y, k)) => x == y && i != k,
                _ => false,
            }
        })
    }

    fn ranges(&self, a: &Range, b: &Range) -> bool {
        if let Some((variable, step)) = self.rounds
            && let (Some(a), Some(b)) = (a.around(variable), b.around(variable))
            && a.1.max(b.1) - a.0.min(b.0) < step.abs()
        {
            return true;
        }
        if let (Some(a), Some(b)) = (&a.rows, &b.rows)
            && a.width == b.width
            && (self.is_common)(a.width.0)
            && (self.ranges(&a.row, &b.row) || self.ranges(&a.place, &b.place))
        {
            return true;
        }
        let (a, b) = (a.only(self.is_common), b.only(self.is_common));
        a.is_apart(&b, self.zone)
    }
}

/// Roots that may be one object, or reach one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ties {
    above: BTreeMap<Root, Root>,
}

impl Ties {
    fn top(&self, mut root: Root) -> Root {
        while let Some(&above) = self.above.get(&root) {
            root = above;
        }
        root
    }

    pub(super) fn tie(&mut self, a: Root, b: Root) {
        let (a, b) = (self.top(a), self.top(b));
        if a != b {
            self.above.insert(a.min(b), a.max(b));
        }
    }

    /// True if the two may reach one object.
    pub(super) fn are_tied(&self, a: Root, b: Root) -> bool {
        let (a, b) = (self.top(a), self.top(b));
        a == b || a == Root::Unknown || b == Root::Unknown
    }

    /// True if the root was tied to what is unknown.
    pub(super) fn is_unknown(&self, root: Root) -> bool {
        self.top(root) == Root::Unknown
    }

    /// True if the root is tied to any other.
    pub(super) fn is_tied(&self, root: Root) -> bool {
        self.above.contains_key(&root) || self.above.values().any(|&above| above == root)
    }

    /// All pairs of roots that are tied, each root with its representative.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (Root, Root)> + '_ {
        self.above.keys().map(|&root| (root, self.top(root)))
    }
}
