//! Counted loops whose rounds may run beside each other.

use std::collections::{BTreeMap, BTreeSet};

use super::effects::{Comparison, Deed, Effects};
use super::places::{Cell, How, Root};
use super::sites::{Site, forbidden, is_data, of_deed, refusal};
use super::symbols::Meaning;
use super::walk::{LoopRecord, is_fixed, set_in};
use super::weights::WORTH_MIN;
use super::zone::Symbol;
use super::{Beside, Finding, Futures, Pattern, Reason, Refusal};
use crate::core::ir::*;
use crate::core::passes::beside::Independent;
use crate::core::passes::{blocks_of, look_at_each, look_at_values, statement_target, visit_value};
use crate::source::{SourceId, Span};
use crate::tree::BinaryOp;
use crate::types::TypeId;

/// The way in which the rounds of a loop put their values together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// In any order with one result.
    Free,
    /// The order matters: a sum of reals.
    Fixed,
}

impl<'a> Site<'_, 'a> {
    /// All loops of the function that are worth a look; none inside one that was found.
    pub(super) fn loops(&self, futures: &mut Futures) {
        let mut records: Vec<&LoopRecord<'_>> = self
            .walked
            .loops
            .iter()
            .filter(|record| {
                let is_worth = self.world.asked.contains(&record.stmt.span)
                    || self.weights.of(record.stmt) >= WORTH_MIN;
                record.stmt.span.source == SourceId::USER && is_worth
            })
            .collect();
        // Outer loops first.
        records.sort_by_key(|record| (record.stmt.span.start, u32::MAX - record.stmt.span.end));
        let mut covered: Vec<Span> = Vec::new();
        for record in records {
            let span = record.stmt.span;
            let mut outer = covered.iter();
            let is_covered = outer.any(|outer| outer.start <= span.start && span.end <= outer.end);
            if is_covered && !self.world.asked.contains(&span) {
                continue;
            }
            match self.one_loop(record) {
                Ok(finding) => {
                    covered.push(span);
                    futures.found.push(finding);
                }
                Err(refusal) => futures.refused.push(*refusal),
            }
        }
    }

    fn one_loop(&self, record: &LoopRecord<'a>) -> Result<Finding, Box<Refusal>> {
        let (span, inner, body) = (record.stmt.span, record.inner, &record.body);
        if let Some((deed, place)) = forbidden(body) {
            let (reason, verb) = of_deed(deed);
            return Err(refusal(
                span,
                reason,
                format!("a round {verb}"),
                vec![(place, format!("it {verb} here"))],
            ));
        }
        if let Some(place) = left_at(inner) {
            return Err(refusal(
                span,
                Reason::Leaves,
                "a round may leave the procedure, and with it the loop".into(),
                vec![(place, "it leaves here".into())],
            ));
        }
        let set = set_in(inner);
        if set.contains(&inner.variable) {
            return Err(refusal(
                span,
                Reason::Counter,
                "a round changes the loop's variable".into(),
                set_at(inner, inner.variable, "it is changed here"),
            ));
        }
        if !is_fixed(inner, &set, body) {
            return Err(refusal(
                span,
                Reason::Bound,
                "the loop's bound may change from round to round".into(),
                Vec::new(),
            ));
        }
        let reductions = self.carried(record, &set)?;
        self.apart(record, &set)?;
        self.rounds_that_raise(record)?;
        let mut notes = self.notes_of_rounds(body);
        let pattern = match reductions.is_empty() {
            true => Pattern::Rounds,
            false => {
                let names: Vec<String> =
                    reductions.iter().map(|r| self.told_slot(r.slot)).collect();
                notes.push(format!("The rounds add up to {}.", names.join(", ")));
                Pattern::Reduction
            }
        };
        Ok(Finding {
            pattern,
            span,
            callee: None,
            beside: span,
            waits: Beside::UntilEnd,
            notes,
            is_asked: self.world.asked.contains(&span),
            mark: Some(self.mark(&record.stmt.kind, Independent::Rounds(reductions))),
        })
    }

    fn told_slot(&self, slot: SlotId) -> String {
        match self.function.slots[slot.index()].name {
            Some(name) => format!("`{}`", self.world.program.names.name(name)),
            None => "a value".into(),
        }
    }

    fn notes_of_rounds(&self, body: &Effects) -> Vec<String> {
        let mut written: Vec<String> = Vec::new();
        for access in &body.accesses {
            let is_data = access.how == How::Write && is_data(access.cell);
            if is_data && !matches!(access.path.root, Root::New(_)) {
                let told = self.told(access);
                if !written.contains(&told) {
                    written.push(told);
                }
            }
        }
        match written.is_empty() {
            true => Vec::new(),
            false => vec![format!("Each round writes its own {}.", written.join(", "))],
        }
    }

    /// Variables that one round hands to the next are refused, unless the rounds only add to them.
    fn carried(
        &self,
        record: &LoopRecord<'a>,
        set: &BTreeSet<SlotId>,
    ) -> Result<Vec<Reduction>, Box<Refusal>> {
        let inner = record.inner;
        let mut reductions = Vec::new();
        for &slot in set.iter().filter(|slot| !inner.fresh.contains(&slot.0)) {
            let name = self.told_slot(slot);
            match (
                reduction_of(inner, slot),
                self.function.slots[slot.index()].ty,
            ) {
                (Some((way, Order::Free)), SlotType::Of(ty)) => {
                    reductions.push(Reduction { slot, ty, way });
                }
                (Some((_, Order::Fixed)), _) => {
                    return Err(refusal(
                        record.stmt.span,
                        Reason::OrderOfReals,
                        format!("the order in which reals are put together in {name} matters"),
                        set_at(inner, slot, "each round continues with the one before"),
                    ));
                }
                _ => {
                    return Err(refusal(
                        record.stmt.span,
                        Reason::Carried,
                        format!("a round hands {name} to the next"),
                        set_at(inner, slot, "it is set here"),
                    ));
                }
            }
        }
        Ok(reductions)
    }

    /// Refuses a loop of which one round may touch what another writes.
    fn apart(&self, record: &LoopRecord<'a>, set: &BTreeSet<SlotId>) -> Result<(), Box<Refusal>> {
        let inner = record.inner;
        let symbols = &self.world.symbols[self.index];
        let variable = symbols.get(Meaning::Slot(inner.variable));
        let is_common = |symbol: Symbol| {
            !symbols.is_among(symbol, &|slot| {
                slot == inner.variable || set.contains(&slot)
            })
        };
        let fresh = inner.fresh.clone();
        let is_private = |root: Root| match root {
            Root::New(slot) => fresh.contains(&slot.0) && !self.walked.ties.is_tied(root),
            _ => false,
        };
        let mut comparison = Comparison::new(
            &self.walked.ties,
            &self.world.shared,
            &record.entry,
            &is_common,
            &is_private,
        );
        comparison.apart.rounds = variable.map(|variable| (variable, i64::from(inner.step)));
        let Some(conflict) = comparison.conflict(&record.body, &record.body) else {
            return Ok(());
        };
        let what = self.told(conflict.first);
        let (reason, title) = match (conflict.first.cell, conflict.first.how, conflict.second.how) {
            (Cell::Count | Cell::Life, ..) => {
                (Reason::SharedCount, format!("rounds count {what} together"))
            }
            (_, How::Write, How::Write) => (
                Reason::BothWrite,
                format!("two rounds may write the same {what}"),
            ),
            _ => (
                Reason::WritesWhatIsRead,
                format!("a round may write {what} that another reads"),
            ),
        };
        let (a, b) = (conflict.first.span, conflict.second.span);
        let mut labels = vec![(a, "one round is here".to_owned())];
        if b != a {
            labels.push((b, "another is here".to_owned()));
        }
        let mut refusal = refusal(record.stmt.span, reason, title, labels);
        if conflict.is_of_ranges {
            refusal.notes.push(
                "The indices are not proved to differ from round to round: they should be the \
                 loop's variable, or that plus a constant."
                    .into(),
            );
        }
        Err(refusal)
    }

    fn rounds_that_raise(&self, record: &LoopRecord<'a>) -> Result<(), Box<Refusal>> {
        let body = &record.body;
        let Some(raised) = body.deed(Deed::Raises) else {
            return Ok(());
        };
        if record.is_caught || self.is_caught {
            return Err(refusal(
                record.stmt.span,
                Reason::Exception,
                "a round may raise, and a handler would see what later rounds did".into(),
                vec![(raised, "this may raise an exception".into())],
            ));
        }
        if let Some(endless) = body.deed(Deed::MayNotEnd) {
            return Err(refusal(
                record.stmt.span,
                Reason::Exception,
                "a round may raise, and no end of another is proved".into(),
                vec![
                    (raised, "this may raise an exception".into()),
                    (endless, "this may go on for ever".into()),
                ],
            ));
        }
        Ok(())
    }
}

/// The places where a loop's body sets a slot.
fn set_at(inner: &Loop, slot: SlotId, text: &str) -> Vec<(Span, String)> {
    fn look(block: &[Stmt], slot: SlotId, found: &mut Vec<Span>) {
        for stmt in block {
            if statement_target(&stmt.kind) == Some(slot) {
                found.push(stmt.span);
            }
            for inner in blocks_of(&stmt.kind) {
                look(inner, slot, found);
            }
        }
    }
    let mut found = Vec::new();
    look(&inner.body, slot, &mut found);
    found.truncate(1);
    found
        .into_iter()
        .map(|span| (span, text.to_owned()))
        .collect()
}

fn left_at(inner: &Loop) -> Option<Span> {
    fn look(block: &[Stmt]) -> Option<Span> {
        block.iter().find_map(|stmt| match stmt.kind {
            StmtKind::Return => Some(stmt.span),
            _ => {
                let inner = blocks_of(&stmt.kind);
                inner.into_iter().find_map(|block| look(block))
            }
        })
    }
    look(&inner.body)
}

/// The way in which all mentions of a slot in a loop put values together, if it is one.
fn reduction_of(inner: &Loop, slot: SlotId) -> Option<(Way, Order)> {
    let mut mentions = 0;
    let mut count = |value: &Value| {
        visit_value(value, &mut |v| {
            mentions += u32::from(matches!(v, Value::Slot(named) if *named == slot));
        });
    };
    for block in [&inner.prepare, &inner.body] {
        look_at_each(block, &mut |kind| {
            look_at_values(kind, &mut |value| count(value));
        });
    }
    let mut ways: BTreeMap<Way, Order> = BTreeMap::new();
    let mut inside = 0;
    let mut is_other = false;
    look_at_each(&inner.body, &mut |kind| {
        if let Some((way, order, uses)) = step_of(kind, slot) {
            ways.insert(way, order);
            inside += uses;
        } else if statement_target(kind) == Some(slot)
            && !is_part_of_choice(&inner.body, kind, slot)
        {
            is_other = true;
        }
        if matches!(kind, StmtKind::Release(released) if *released == slot) {
            is_other = true;
        }
    });
    // One way only: what is added to must not be multiplied in the next round.
    (!is_other && ways.len() == 1 && inside == mentions)
        .then(|| ways.into_iter().next())
        .flatten()
}

/// `slot := slot + value` and its kind, and `if value > slot then slot := value`: the way, whether
/// its order matters, and how often the slot is named in it.
fn step_of(kind: &StmtKind, slot: SlotId) -> Option<(Way, Order, u32)> {
    let is_slot = |value: &Value| matches!(value, Value::Slot(named) if *named == slot);
    match kind {
        StmtKind::Set {
            place: StorePlace::Slot(target),
            value: Value::Binary(op, ty, a, b),
            ..
        } if *target == slot => {
            let is_led = is_slot(a) || leads(a, *op, *ty, slot);
            let commutes = is_led || (is_slot(b) && *op != BinaryOp::Subtract);
            let way = match op {
                // Less of a number is more of its negative, and all of it wraps.
                BinaryOp::Add | BinaryOp::Subtract => Way::Sum,
                BinaryOp::Multiply => Way::Product,
                BinaryOp::BitAnd => Way::BitAnd,
                BinaryOp::BitOr => Way::BitOr,
                BinaryOp::BitXor => Way::BitXor,
                BinaryOp::And => Way::All,
                BinaryOp::Or => Way::Any,
                _ => return None,
            };
            let order = match *ty {
                TypeId::REAL => Order::Fixed,
                _ => Order::Free,
            };
            (commutes && !(is_slot(a) && is_slot(b))).then_some((way, order, 1))
        }
        StmtKind::If {
            condition: Value::Binary(op, ty, a, b),
            then,
            otherwise,
        } if otherwise.is_empty() && *ty != TypeId::REAL => {
            let is_check = |stmt: &&Stmt| matches!(stmt.kind, StmtKind::CheckIndex { .. });
            let stores: Vec<&Stmt> = then.iter().filter(|stmt| !is_check(stmt)).collect();
            let [only] = stores.as_slice() else {
                return None;
            };
            let StmtKind::Set {
                place: StorePlace::Slot(target),
                value,
                ..
            } = &only.kind
            else {
                return None;
            };
            let (candidate, kept_below) = match op {
                BinaryOp::Greater | BinaryOp::GreaterEqual if is_slot(b) => (a, true),
                BinaryOp::Less | BinaryOp::LessEqual if is_slot(a) => (b, true),
                BinaryOp::Less | BinaryOp::LessEqual if is_slot(b) => (a, false),
                BinaryOp::Greater | BinaryOp::GreaterEqual if is_slot(a) => (b, false),
                _ => return None,
            };
            let way = if kept_below {
                Way::Greatest
            } else {
                Way::Least
            };
            (*target == slot && **candidate == *value).then_some((way, Order::Free, 1))
        }
        _ => None,
    }
}

/// True for `slot + a + b` and the like, as the left side of one more operator of its kind.
fn leads(value: &Value, op: BinaryOp, ty: TypeId, slot: SlotId) -> bool {
    let is_sum = |op| matches!(op, BinaryOp::Add | BinaryOp::Subtract);
    match value {
        Value::Slot(named) => *named == slot,
        Value::Binary(inner, of, left, _) => {
            let is_alike = *inner == op || (is_sum(*inner) && is_sum(op));
            is_alike && *of == ty && leads(left, op, ty, slot)
        }
        _ => false,
    }
}

/// True if a store is the one inside a choice that [`step_of`] knows.
fn is_part_of_choice(body: &[Stmt], store: &StmtKind, slot: SlotId) -> bool {
    let mut is_found = false;
    look_at_each(body, &mut |kind| {
        if let StmtKind::If { then, .. } = kind
            && step_of(kind, slot).is_some()
        {
            is_found |= then.iter().any(|stmt| std::ptr::eq(&stmt.kind, store));
        }
    });
    is_found
}
