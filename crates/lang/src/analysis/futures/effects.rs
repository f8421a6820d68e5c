//! Effects of a piece of program: the places it touches and the deeds others could notice.

use std::collections::BTreeSet;

use super::places::{Apart, Cell, How, Path, Root, Step, Ties, are_alike, join_steps};
use super::zone::{Symbol, Zone};
use crate::source::Span;

/// Something that a piece of program may do beside reading and writing its data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) enum Deed {
    Prints,
    /// Waits at a channel, for input, or for another node.
    Waits,
    /// Sets a timer or a light, moves to a core, reads a sensor.
    Acts,
    Creates,
    Connects,
    Stops,
    CallsValue,
    /// Leaves by an exception.
    Raises,
    /// A loop or a recursion of which no end is proved.
    MayNotEnd,
}

/// One place that is touched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Access {
    pub(super) path: Path,
    pub(super) cell: Cell,
    pub(super) how: How,
    /// The first statement that does it.
    pub(super) span: Span,
}

/// All that a piece of program may do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Effects {
    pub(super) accesses: Vec<Access>,
    pub(super) deeds: Vec<(Deed, Span)>,
    /// Nobody looks at the accesses: they are left out.
    pub(super) is_ignored: bool,
}

impl Effects {
    /// None yet, of a part of the piece that has these.
    pub(super) fn of_part(&self) -> Effects {
        Effects {
            is_ignored: self.is_ignored,
            ..Effects::default()
        }
    }

    pub(super) fn ignored() -> Effects {
        Effects {
            is_ignored: true,
            ..Effects::default()
        }
    }

    pub(super) fn does(&mut self, deed: Deed, span: Span) {
        if self.deed(deed).is_none() {
            self.deeds.push((deed, span));
        }
    }

    /// The place in the text where it is done.
    pub(super) fn deed(&self, deed: Deed) -> Option<Span> {
        let mut deeds = self.deeds.iter();
        deeds.find(|(done, _)| *done == deed).map(|(_, span)| *span)
    }

    pub(super) fn touch(&mut self, path: Path, cell: Cell, how: How, span: Span) {
        self.add(
            Access {
                path,
                cell,
                how,
                span,
            },
            false,
        );
    }

    /// Adds an access, joined with one of the same shape if there is one.
    fn add(&mut self, access: Access, is_late: bool) {
        if self.is_ignored {
            return;
        }
        let known = self.accesses.iter_mut().find(|known| {
            known.path.root == access.path.root
                && known.cell == access.cell
                && known.how == access.how
                && are_alike(&known.path.steps, &access.path.steps)
        });
        match known {
            Some(known) => {
                join_steps(&mut known.path.steps, &access.path.steps, is_late);
                known.span = earlier(known.span, access.span);
            }
            None => self.accesses.push(access),
        }
    }

    pub(super) fn absorb(&mut self, other: &Effects) {
        for access in &other.accesses {
            self.add(access.clone(), false);
        }
        for &(deed, span) in &other.deeds {
            self.does(deed, span);
        }
    }

    pub(super) fn absorb_deeds(&mut self, other: &Effects) {
        for &(deed, span) in &other.deeds {
            self.does(deed, span);
        }
    }

    /// These effects in the place of earlier ones, whose ranges they only make wider.
    pub(super) fn widened(&self, earlier: &Effects, is_late: bool) -> Effects {
        let mut joined = earlier.clone();
        for access in &self.accesses {
            joined.add(access.clone(), is_late);
        }
        joined.deeds = self.deeds.clone();
        for &(deed, span) in &earlier.deeds {
            joined.does(deed, span);
        }
        joined
    }
}

fn earlier(a: Span, b: Span) -> Span {
    if (b.source, b.start) < (a.source, a.start) {
        b
    } else {
        a
    }
}

/// Two accesses that may meet.
#[derive(Clone, Debug)]
pub(super) struct Conflict<'a> {
    pub(super) first: &'a Access,
    pub(super) second: &'a Access,
    /// Both start from one root, so that better known ranges might prove them apart.
    pub(super) is_of_ranges: bool,
}

/// Facts known where two pieces of program are compared.
pub(super) struct Comparison<'a> {
    pub(super) ties: &'a Ties,
    pub(super) apart: Apart<'a>,
    /// Roots that belong to one side alone.
    pub(super) is_private: &'a dyn Fn(Root) -> bool,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        ties: &'a Ties,
        shared: &'a BTreeSet<Cell>,
        zone: &'a Zone,
        is_common: &'a dyn Fn(Symbol) -> bool,
        is_private: &'a dyn Fn(Root) -> bool,
    ) -> Self {
        Comparison {
            ties,
            apart: Apart {
                shared,
                zone,
                is_common,
                rounds: None,
            },
            is_private,
        }
    }

    /// The first two accesses that are not proved to be apart, one of which writes.
    pub(super) fn conflict<'e>(&self, a: &'e Effects, b: &'e Effects) -> Option<Conflict<'e>> {
        let mut found: Vec<Conflict<'e>> = Vec::new();
        for first in &a.accesses {
            for second in &b.accesses {
                if self.may_meet(first, second) {
                    found.push(Conflict {
                        first,
                        second,
                        is_of_ranges: first.path.root == second.path.root
                            && has_range(&first.path.steps),
                    });
                }
            }
        }
        // Data before counts, which nobody sees in the text; then what is easiest to see.
        found.into_iter().min_by_key(|conflict| {
            let writes = |access: &Access| access.how == How::Write;
            (
                matches!(conflict.first.cell, Cell::Count | Cell::Life),
                !(writes(conflict.first) && writes(conflict.second)),
                !writes(conflict.first),
            )
        })
    }

    fn may_meet(&self, a: &Access, b: &Access) -> bool {
        if a.cell != b.cell || (a.how == How::Read && b.how == How::Read) {
            return false;
        }
        if (self.is_private)(a.path.root) || (self.is_private)(b.path.root) {
            return false;
        }
        if a.path.root != b.path.root {
            return self.ties.are_tied(a.path.root, b.path.root);
        }
        if a.path.root == Root::Unknown || matches!(a.cell, Cell::Variable(_)) {
            return true;
        }
        let is_object = matches!(a.cell, Cell::Count | Cell::Life);
        if is_object && !self.apart.shared.is_empty() {
            return true;
        }
        !self.apart.are_apart(&a.path.steps, &b.path.steps)
    }
}

fn has_range(steps: &[Step]) -> bool {
    steps
        .iter()
        .any(|step| matches!(step.cell, Cell::Element(_)))
}
