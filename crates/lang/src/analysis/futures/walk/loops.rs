//! Loops: what holds in every round.

use std::collections::BTreeSet;

use super::{LoopRecord, State, Walker};
use crate::analysis::futures::effects::{Deed, Effects};
use crate::analysis::futures::places::{Cell, How};
use crate::analysis::futures::symbols::Meaning;
use crate::core::ir::*;
use crate::core::passes::{look_at_each, statement_target, visit_value};
use crate::source::Span;
use crate::types::TypeId;

/// Rounds after which bounds are widened.
const EXACT_ROUNDS: u32 = 2;
/// Rounds after which all that the loop sets is forgotten.
const ROUNDS_MAX: u32 = 8;
/// Loops inside so many others are not searched for what holds.
const DEPTH_MAX: u32 = 4;

impl<'a> Walker<'_, 'a> {
    pub(super) fn counting(
        &mut self,
        stmt: &'a Stmt,
        inner: &'a Loop,
        state: &mut State,
        out: &mut Effects,
    ) {
        let span = stmt.span;
        self.read(&inner.from, span, state, out);
        if let Some(symbol) = self.symbols.get(Meaning::Slot(inner.variable)) {
            self.store_number(symbol, TypeId::INTEGER, &inner.from, state);
        }
        state
            .values
            .retain(|slot, _| !inner.fresh.contains(&slot.0));
        let entry = state.zone.clone();
        let set = set_in(inner);
        let records = std::mem::replace(&mut self.records, false);
        self.loops_around += 1;
        let mut head = state.clone();
        let mut is_found = false;
        if self.loops_around <= DEPTH_MAX {
            for round in 0..ROUNDS_MAX {
                let mut end = head.clone();
                end.zone.close();
                self.round((inner, &set), &mut end, &mut Effects::ignored());
                let mut joined = head.clone();
                joined.join(&end);
                joined.facts.clear();
                let same_values = joined.values == head.values;
                if head.zone.covers(&joined.zone) && same_values {
                    is_found = true;
                    break;
                }
                if round >= EXACT_ROUNDS {
                    let mut zone = head.zone.clone();
                    zone.widen(&joined.zone);
                    joined.zone = zone;
                }
                head = joined;
            }
        }
        if !is_found {
            head = state.clone();
            self.forget_set(&inner.prepare, &mut head);
            self.forget_set(&inner.body, &mut head);
            self.unknown_number(inner.variable, &mut head);
        }
        head.zone.close();
        head.facts.clear();
        self.records = records;
        let mut body = out.of_part();
        let mut last = head.clone();
        self.round((inner, &set), &mut last, &mut body);
        self.loops_around -= 1;
        // The way out: from the head, when the test fails.
        let mut test = out.of_part();
        self.records = false;
        self.block(&inner.prepare, &mut head, &mut test);
        self.records = records;
        self.read(&inner.to, span, &head, &mut test);
        self.test(inner, false, &mut head);
        out.absorb(&test);
        out.absorb(&body);
        if !is_counted(inner, &body) {
            out.does(Deed::MayNotEnd, span);
        }
        if self.records {
            self.found.loops.push(LoopRecord {
                stmt,
                inner,
                body,
                entry,
                is_caught: self.is_caught(),
            });
        }
        *state = head;
    }

    /// One round, with the test before and the step after it.
    fn round(
        &mut self,
        (inner, set): (&'a Loop, &BTreeSet<SlotId>),
        state: &mut State,
        out: &mut Effects,
    ) {
        self.block(&inner.prepare, state, out);
        self.read(&inner.to, out_span(inner), state, out);
        self.test(inner, true, state);
        self.block(&inner.body, state, out);
        if let Some(symbol) = self.symbols.get(Meaning::Slot(inner.variable)) {
            // The counter stops behind its bound and does not wrap.
            state.zone.assign(symbol, (symbol, i64::from(inner.step)));
        }
        state
            .values
            .retain(|slot, _| !inner.fresh.contains(&slot.0));
        // In the next round these are other numbers.
        let symbols = self.symbols;
        let keeps = |symbol| {
            !symbols.is_among(symbol, &|slot| {
                slot == inner.variable || set.contains(&slot)
            })
        };
        for step in state
            .values
            .values_mut()
            .flatten()
            .flat_map(|path| &mut path.steps)
        {
            step.range = step.range.only(&keeps);
        }
    }

    fn test(&self, inner: &Loop, goes_on: bool, state: &mut State) {
        let (Some(symbol), Some(to)) = (
            self.symbols.get(Meaning::Slot(inner.variable)),
            self.linear(&inner.to, state),
        ) else {
            return;
        };
        let variable = (symbol, 0);
        match (inner.step > 0, goes_on) {
            (true, true) => state.zone.learn_at_most(variable, 0, to),
            (true, false) => state.zone.learn_at_most(to, 1, variable),
            (false, true) => state.zone.learn_at_most(to, 0, variable),
            (false, false) => state.zone.learn_at_most(variable, 1, to),
        }
    }
}

fn out_span(inner: &Loop) -> Span {
    inner
        .body
        .first()
        .map_or_else(Default::default, |stmt| stmt.span)
}

/// The slots that a loop's body sets, its variable aside.
pub(in super::super) fn set_in(inner: &Loop) -> BTreeSet<SlotId> {
    let mut set = BTreeSet::new();
    for block in [&inner.prepare, &inner.body] {
        look_at_each(block, &mut |stmt| set.extend(statement_target(stmt)));
    }
    set
}

/// True if a loop has a fixed number of rounds: nothing changes its variable or its bound.
fn is_counted(inner: &Loop, body: &Effects) -> bool {
    let set = set_in(inner);
    !set.contains(&inner.variable) && is_fixed(inner, &set, body)
}

/// True if a loop's bound is the same in every round.
pub(in super::super) fn is_fixed(inner: &Loop, set: &BTreeSet<SlotId>, body: &Effects) -> bool {
    let mut is_fixed = true;
    let fresh_in_prepare = {
        let mut made = BTreeSet::new();
        look_at_each(&inner.prepare, &mut |stmt| {
            made.extend(statement_target(stmt))
        });
        made
    };
    let written = |cell: Cell| {
        let mut accesses = body.accesses.iter();
        accesses.any(|access| access.cell == cell && access.how == How::Write)
    };
    visit_value(&inner.to, &mut |value| match value {
        Value::Slot(slot) => is_fixed &= !set.contains(slot) && !fresh_in_prepare.contains(slot),
        Value::Member(member) => is_fixed &= !written(Cell::Variable(*member)),
        Value::Element(_, _, element) => is_fixed &= !written(Cell::Element(*element)),
        Value::Field(_, ty, field) => is_fixed &= !written(Cell::Field(*ty, *field)),
        Value::Unboxed(..) => is_fixed = false,
        _ => {}
    });
    let only_checks = inner.prepare.iter().all(|stmt| {
        matches!(
            stmt.kind,
            StmtKind::CheckIndex { .. } | StmtKind::CheckZero { .. }
        )
    });
    is_fixed && only_checks
}
