//! Calls that may run beside what follows them.

use std::collections::BTreeSet;

use super::effects::{Access, Comparison, Conflict, Deed, Effects};
use super::places::{Cell, How, Root};
use super::walk::{BlockRecord, Walked};
use super::weights::{WORTH_MIN, Weights};
use super::world::World;
use super::zone::Symbol;
use super::{Beside, Finding, Futures, Pattern, Reason, Refusal};
use crate::core::ir::*;
use crate::core::passes::beside::{Independent, Mark};
use crate::core::passes::{look_at_each, look_at_values, statement_target, visit_value};
use crate::diagnostic::Label;
use crate::source::{SourceId, Span};
use crate::tree::ProcId;
use crate::types::Type;

/// One function, with what its walk found.
pub(super) struct Site<'s, 'a> {
    pub(super) world: &'s World<'a>,
    pub(super) weights: &'s Weights,
    pub(super) function: &'a Function,
    pub(super) index: usize,
    pub(super) walked: &'s Walked<'a>,
    /// Somebody who calls the function catches what it raises.
    pub(super) is_caught: bool,
}

/// The statement at which a call must have come to its end.
enum End<'e> {
    /// Its result is used.
    Use(Span),
    Conflict(Conflict<'e>),
    Deed(Deed, Span),
    /// The block, or the way through it, ends.
    Block,
}

impl<'a> Site<'_, 'a> {
    /// All calls of the function that are worth a look.
    pub(super) fn calls(&self, futures: &mut Futures) {
        for record in &self.walked.blocks {
            for at in 0..record.pieces.len() {
                let StmtKind::Call {
                    target,
                    callee,
                    text,
                    ..
                } = &record.block[at].kind
                else {
                    continue;
                };
                let is_asked = self.world.asked.contains(text);
                let Callee::Proc(proc) = callee else {
                    if is_asked {
                        futures.refused.push(*calls_value(*text));
                    }
                    continue;
                };
                let is_worth = is_asked || self.weights.of_proc(*proc) >= WORTH_MIN;
                if text.source == SourceId::USER && is_worth {
                    match self.call(record, at, *target, *proc, *text) {
                        Ok(finding) => futures.found.push(finding),
                        Err(refusal) => futures.refused.push(*refusal),
                    }
                }
            }
        }
    }

    fn call(
        &self,
        record: &BlockRecord<'a>,
        at: usize,
        target: Option<SlotId>,
        proc: ProcId,
        text: Span,
    ) -> Result<Finding, Box<Refusal>> {
        let (called, zone) = &record.calls[&at];
        let name = self.name_of(proc);
        if let Some((deed, span)) = forbidden(called) {
            let (reason, verb) = of_deed(deed);
            return Err(refusal(
                text,
                reason,
                format!("`{name}` {verb}"),
                vec![(span, format!("it {verb} here"))],
            ));
        }
        let may_raise = called.deed(Deed::Raises);
        let may_not_return = may_raise.or(called.deed(Deed::MayNotEnd));
        let is_caught = record.is_caught || self.is_caught;
        // From the call on: its own result is another number before it.
        let mut set = BTreeSet::new();
        let call_at = at;
        let temporary = target;
        let (target, at) = copied(record, at, target);
        add_set(&record.block[call_at..=at], &mut set);
        let mut beside = Effects::default();
        let mut last = at;
        let mut end = End::Block;
        for next in at + 1..record.pieces.len() {
            let stmt = &record.block[next];
            let is_used = |slot: Option<SlotId>| slot.is_some_and(|slot| mentions(stmt, slot));
            if is_used(target) || is_used(temporary) {
                end = match stmt.kind {
                    // Its end of life: nobody looks at the value.
                    StmtKind::Release(_) => End::Block,
                    _ => End::Use(stmt.span),
                };
                break;
            }
            if matches!(stmt.kind, StmtKind::Return) || leaves(stmt) {
                break;
            }
            let piece = &record.pieces[next];
            let ends =
                |deed| ends_region(deed) || (deed == Deed::Prints && may_not_return.is_some());
            if let Some(&(deed, span)) = piece.deeds.iter().find(|(deed, _)| ends(*deed)) {
                end = End::Deed(deed, span);
                break;
            }
            add_set(std::slice::from_ref(stmt), &mut set);
            let symbols = &self.world.symbols[self.index];
            let is_common = |symbol: Symbol| !symbols.is_among(symbol, &|slot| set.contains(&slot));
            let is_private = |_| false;
            let comparison = Comparison::new(
                &self.walked.ties,
                &self.world.shared,
                zone,
                &is_common,
                &is_private,
            );
            if let Some(conflict) = comparison.conflict(called, piece) {
                end = match stmt.kind {
                    // The end of an argument's variable.
                    StmtKind::Release(_) if conflict.first.cell == Cell::Life => End::Block,
                    _ => End::Conflict(conflict),
                };
                break;
            }
            beside.absorb(piece);
            last = next;
        }
        let ending = record.block.get(last + 1);
        // A source statement waits as a whole.
        if let Some(next) = record.block.get(last + 1)
            && next.span != record.block[call_at].span
        {
            while last > at && record.block[last].span == next.span {
                last -= 1;
            }
        }
        let work = self.weights.of_block(&record.block[at + 1..=last]);
        let is_asked = self.world.asked.contains(&text);
        let is_worth = match is_asked {
            // Whoever wrote the word knows better.
            true => waited_at(record, at, last) > at + 1,
            false => work >= WORTH_MIN,
        };
        if !is_worth {
            let rest = self.weights.of_block(&record.block[last + 1..]);
            if let (End::Deed(Deed::Prints, span), Some(first)) = (&end, may_not_return)
                && rest >= WORTH_MIN
            {
                return Err(self.seen_too_early(text, &name, may_raise.is_some(), first, *span));
            }
            return Err(self.nothing_beside(text, &name, end, ending));
        }
        if let Some(raised) = may_raise {
            self.may_be_undone(text, &name, raised, &beside, is_caught)?;
        }
        let region = &record.block[at + 1..=last];
        let what = Independent::Call {
            until: waited_at(record, at, last) - call_at,
            copies: at > call_at,
        };
        Ok(Finding {
            pattern: self.pattern(proc, region, called, &beside),
            span: text,
            callee: Some(name),
            beside: region_span(region),
            waits: match end {
                End::Use(span) => Beside::UntilUse(self.use_of(target, span)),
                End::Conflict(_) | End::Deed(..) => Beside::Until(record.block[last + 1].span),
                End::Block => Beside::UntilEnd,
            },
            notes: self.notes(called, &beside),
            is_asked,
            mark: Some(self.mark(&record.block[call_at].kind, what)),
        })
    }

    pub(super) fn mark(&self, stmt: &StmtKind, what: Independent) -> Mark {
        Mark {
            function: self.index,
            statement: self.number(stmt),
            what,
        }
    }

    /// The number of a statement in the order of its function.
    fn number(&self, stmt: &StmtKind) -> u32 {
        let mut next = 0;
        let mut number = None;
        look_at_each(&self.function.body, &mut |kind| {
            if std::ptr::eq(kind, stmt) {
                number = Some(next);
            }
            next += 1;
        });
        number.expect("a statement of the function")
    }

    /// Refuses a call that may not return before something that is seen outside.
    fn seen_too_early(
        &self,
        text: Span,
        name: &str,
        may_raise: bool,
        first: Span,
        seen: Span,
    ) -> Box<Refusal> {
        let (reason, may, label) = match may_raise {
            true => (
                Reason::Exception,
                "may raise",
                "this may raise an exception",
            ),
            false => (
                Reason::Endless,
                "may go on for ever",
                "this has no proved end",
            ),
        };
        refusal(
            text,
            reason,
            format!("`{name}` {may}, and what follows is seen outside"),
            vec![
                (first, label.into()),
                (seen, "this must not happen then".into()),
            ],
        )
    }

    /// If the call raises, what runs beside it must not have happened.
    fn may_be_undone(
        &self,
        text: Span,
        name: &str,
        raised: Span,
        beside: &Effects,
        is_caught: bool,
    ) -> Result<(), Box<Refusal>> {
        let raises = (raised, "this may raise an exception".to_owned());
        if let Some(span) = beside.deed(Deed::MayNotEnd) {
            return Err(refusal(
                text,
                Reason::Exception,
                format!("`{name}` may raise, and no end of what follows is proved"),
                vec![raises, (span, "this may go on for ever".into())],
            ));
        }
        let written = beside
            .accesses
            .iter()
            .find(|access| access.how == How::Write && is_data(access.cell));
        if let (true, Some(written)) = (is_caught, written) {
            return Err(refusal(
                text,
                Reason::Exception,
                format!("`{name}` may raise, and a handler would see what follows"),
                vec![
                    raises,
                    (written.span, "this must not be written then".into()),
                ],
            ));
        }
        if is_caught {
            return Err(refusal(
                text,
                Reason::Exception,
                format!("`{name}` may raise inside a `try`"),
                vec![raises],
            ));
        }
        Ok(())
    }

    fn nothing_beside(
        &self,
        text: Span,
        name: &str,
        end: End<'_>,
        ending: Option<&Stmt>,
    ) -> Box<Refusal> {
        match end {
            End::Use(span) => refusal(
                text,
                Reason::UsedAtOnce,
                format!("the result of `{name}` is used before there is work to do beside it"),
                vec![(span, "it is used here".into())],
            ),
            End::Conflict(conflict)
                if conflict.second.how == How::Read
                    && ending.is_some_and(|stmt| self.weights.of(stmt) < WORTH_MIN) =>
            {
                let what = self.told(conflict.first);
                refusal(
                    text,
                    Reason::UsedAtOnce,
                    format!("`{name}` writes {what}, and there is no work before that is read"),
                    vec![
                        (conflict.first.span, "the call writes it here".into()),
                        (conflict.second.span, "it is read here".into()),
                    ],
                )
            }
            End::Conflict(conflict) => self.of_conflict(text, name, &conflict),
            End::Deed(deed, span) => {
                let (_, verb) = of_deed(deed);
                refusal(
                    text,
                    Reason::NothingBeside,
                    format!("no work follows `{name}` before what has to wait for it"),
                    vec![(span, format!("this {verb}"))],
                )
            }
            End::Block => refusal(
                text,
                Reason::NothingBeside,
                format!("no work follows `{name}` in its block"),
                Vec::new(),
            ),
        }
    }

    fn of_conflict(&self, text: Span, name: &str, conflict: &Conflict<'_>) -> Box<Refusal> {
        let (first, second) = (conflict.first, conflict.second);
        let what = self.told(first);
        let reason = match (first.cell, first.how, second.how) {
            (Cell::Count | Cell::Life, ..) => Reason::SharedCount,
            (_, How::Write, How::Write) => Reason::BothWrite,
            (_, How::Write, How::Read) => Reason::WritesWhatIsRead,
            (_, How::Read, _) => Reason::ReadsWhatIsWritten,
        };
        let title = match reason {
            Reason::SharedCount if first.cell == Cell::Life => {
                format!("`{name}` needs its arguments, and what follows may end one")
            }
            Reason::SharedCount => format!("`{name}` and what follows both count {what}"),
            Reason::BothWrite => format!("`{name}` and what follows both write {what}"),
            Reason::WritesWhatIsRead => format!("`{name}` writes {what}, which is read next"),
            _ => format!("`{name}` reads {what}, which is written next"),
        };
        let verb = |how| match (first.cell, how) {
            (Cell::Count, _) => "counts references to",
            (Cell::Life, How::Read) => "needs the object that was",
            (Cell::Life, How::Write) => "drops a reference to",
            (_, How::Read) => "reads",
            (_, How::Write) => "writes",
        };
        let labels = match first.span == second.span {
            true => vec![(first.span, "both meet here".to_owned())],
            false => vec![
                (first.span, format!("the call {} it here", verb(first.how))),
                (
                    second.span,
                    format!("this {} it meanwhile", verb(second.how)),
                ),
            ],
        };
        let mut refusal = refusal(text, reason, title, labels);
        if conflict.is_of_ranges {
            refusal.notes.push(
                "Both start from the same object, and their ranges are not proved to be apart."
                    .into(),
            );
        }
        refusal
    }

    /// A place in words.
    pub(super) fn told(&self, access: &Access) -> String {
        let owner = self.name_of_root(access.path.root);
        let program = self.world.program;
        match access.cell {
            Cell::Element(_) => format!("elements of {owner}"),
            Cell::Field(ty, field) => match self.world.ty(ty) {
                Type::Struct(fields) => {
                    let (name, _) = fields[field as usize];
                    format!("field `{}` of {owner}", program.names.name(name))
                }
                _ => format!("a field of {owner}"),
            },
            Cell::Variable(_) => format!("member {owner}"),
            Cell::Count | Cell::Life => format!("references to {owner}"),
        }
    }

    fn name_of_root(&self, root: Root) -> String {
        let names = &self.world.program.names;
        let of_slot = |slot: SlotId| {
            let name = self.function.slots[slot.index()].name?;
            Some(format!("`{}`", names.name(name)))
        };
        match root {
            Root::Param(param) => of_slot(self.function.params[param as usize]),
            Root::Member(member) => self.world.owner(self.function.role).map(|component| {
                let component = &self.world.program.components[component.index()];
                format!("`{}`", names.name(component.members[member.index()].name))
            }),
            Root::New(slot) => of_slot(slot),
            _ => None,
        }
        .unwrap_or_else(|| "an object without a name".into())
    }

    pub(super) fn name_of(&self, proc: ProcId) -> String {
        let names = &self.world.program.names;
        names
            .name(self.world.program.procs[proc.index()].name)
            .to_owned()
    }

    fn pattern(
        &self,
        proc: ProcId,
        region: &[Stmt],
        called: &Effects,
        beside: &Effects,
    ) -> Pattern {
        let recurses = match self.function.role {
            Role::Proc(own) => self.world.is_recursive[proc.index()] && self.reaches(proc, own),
            _ => false,
        };
        let has_call = region.iter().any(|stmt| {
            let mut is_found = false;
            look_at_each(std::slice::from_ref(stmt), &mut |kind| {
                if let StmtKind::Call {
                    callee: Callee::Proc(proc),
                    ..
                } = kind
                {
                    is_found |= self.weights.of_proc(*proc) >= WORTH_MIN;
                }
            });
            is_found
        });
        let shares = called.accesses.iter().any(|first| {
            let mut others = beside.accesses.iter();
            first.how == How::Write && others.any(|second| second.path.root == first.path.root)
        });
        match (recurses, has_call, shares) {
            (true, true, true) => Pattern::DisjointParts,
            (true, true, false) => Pattern::Recursion,
            (_, true, _) => Pattern::ConsecutiveCalls,
            (_, false, _) => Pattern::CallBesideStatements,
        }
    }

    /// True if one procedure can call the other, through others or itself.
    fn reaches(&self, from: ProcId, to: ProcId) -> bool {
        let mut seen = BTreeSet::new();
        let mut work = vec![from];
        while let Some(next) = work.pop() {
            if !seen.insert(next) {
                continue;
            }
            let Some(function) = self.world.of_proc[next.index()] else {
                continue;
            };
            look_at_each(&self.world.module.functions[function].body, &mut |kind| {
                if let StmtKind::Call {
                    callee: Callee::Proc(proc),
                    ..
                } = kind
                {
                    work.push(*proc);
                }
            });
            if work.contains(&to) {
                return true;
            }
        }
        false
    }

    /// The place where a variable is named in a statement, or the statement.
    fn use_of(&self, target: Option<SlotId>, stmt: Span) -> Span {
        let Some(name) = target.and_then(|slot| self.function.slots[slot.index()].name) else {
            return stmt;
        };
        self.world.mention(name, stmt).unwrap_or(stmt)
    }

    pub(super) fn notes(&self, called: &Effects, beside: &Effects) -> Vec<String> {
        let mut notes = Vec::new();
        let told = |effects: &Effects, how: How| {
            let mut found: Vec<String> = Vec::new();
            for access in &effects.accesses {
                let is_data = access.how == how && is_data(access.cell);
                if is_data && !matches!(access.path.root, Root::New(_)) {
                    let told = self.told(access);
                    if !found.contains(&told) {
                        found.push(told);
                    }
                }
            }
            found
        };
        for (who, effects) in [("The call", called), ("What runs beside it", beside)] {
            let writes = told(effects, How::Write);
            if !writes.is_empty() {
                notes.push(format!("{who} writes {}.", writes.join(", ")));
            }
        }
        if called.deed(Deed::Raises).is_some() {
            notes.push(
                "The call may raise; nobody catches it, so nobody sees what ran beside.".into(),
            );
        }
        notes
    }
}

/// The first deed that nothing beside something else may do, and its place.
pub(super) fn forbidden(effects: &Effects) -> Option<(Deed, Span)> {
    use Deed::*;
    [CallsValue, Waits, Prints, Acts, Creates, Connects, Stops]
        .into_iter()
        .find_map(|deed| effects.deed(deed).map(|span| (deed, span)))
}

/// Deeds before which all calls beside have come to their end.
fn ends_region(deed: Deed) -> bool {
    matches!(
        deed,
        Deed::Waits | Deed::Stops | Deed::CallsValue | Deed::Acts | Deed::Creates | Deed::Connects
    )
}

pub(super) fn of_deed(deed: Deed) -> (Reason, &'static str) {
    match deed {
        Deed::Prints => (Reason::Prints, "prints"),
        Deed::Waits => (Reason::Waits, "waits for others"),
        Deed::Acts => (Reason::Acts, "uses a device, a timer, a core or the time"),
        Deed::Creates => (Reason::Creates, "creates a component"),
        Deed::Connects => (Reason::Connects, "changes a channel or names one"),
        Deed::Stops => (Reason::Stops, "stops its component"),
        Deed::CallsValue => (Reason::CallsValue, "calls a procedure that is a value"),
        Deed::Raises => (Reason::Exception, "may raise an exception"),
        Deed::MayNotEnd => (Reason::Endless, "may go on for ever"),
    }
}

pub(super) fn refusal(
    span: Span,
    reason: Reason,
    title: String,
    labels: Vec<(Span, String)>,
) -> Box<Refusal> {
    Box::new(Refusal {
        span,
        reason,
        title,
        labels: labels
            .into_iter()
            .map(|(span, text)| Label { span, text })
            .collect(),
        notes: Vec::new(),
    })
}

fn calls_value(text: Span) -> Box<Refusal> {
    refusal(
        text,
        Reason::CallsValue,
        "the procedure is a value, which may be any".into(),
        Vec::new(),
    )
}

/// The variable that takes a call's result, and the statement that puts it there: the call, or a
/// copy from its temporary right behind it.
fn copied(record: &BlockRecord<'_>, at: usize, target: Option<SlotId>) -> (Option<SlotId>, usize) {
    let next = record.block.get(at + 1).map(|stmt| &stmt.kind);
    match (target, next) {
        (
            Some(temporary),
            Some(StmtKind::Set {
                place: StorePlace::Slot(variable),
                value: Value::Slot(from),
                mode: Mode::Plain,
                ..
            }),
        ) if *from == temporary && at + 1 < record.pieces.len() => (Some(*variable), at + 1),
        _ => (target, at),
    }
}

/// The statement before which the owner waits: whatever is released behind the last one is
/// released after the wait.
fn waited_at(record: &BlockRecord<'_>, at: usize, mut last: usize) -> usize {
    while last > at && matches!(record.block[last].kind, StmtKind::Release(_)) {
        last -= 1;
    }
    last + 1
}

/// True for what a program can see.
pub(super) fn is_data(cell: Cell) -> bool {
    !matches!(cell, Cell::Count | Cell::Life)
}

/// Adds the slots that statements set.
fn add_set(region: &[Stmt], set: &mut BTreeSet<SlotId>) {
    look_at_each(region, &mut |stmt| set.extend(statement_target(stmt)));
}

fn region_span(region: &[Stmt]) -> Span {
    let mut spans = region
        .iter()
        .filter(|stmt| !matches!(stmt.kind, StmtKind::Release(_)))
        .map(|stmt| stmt.span);
    let first = spans.next().unwrap_or_default();
    spans.fold(first, Span::to)
}

/// True if a statement, or one inside it, names a slot.
fn mentions(stmt: &Stmt, slot: SlotId) -> bool {
    let mut is_found = false;
    look_at_each(std::slice::from_ref(stmt), &mut |kind| {
        is_found |= statement_target(kind) == Some(slot);
        match kind {
            StmtKind::Release(released) => is_found |= *released == slot,
            StmtKind::Send { moved, .. } => is_found |= *moved == Some(slot),
            StmtKind::PortAssign { value, .. } => is_found |= *value == slot,
            _ => {}
        }
        look_at_values(kind, &mut |value| {
            visit_value(value, &mut |value| {
                is_found |= matches!(value, Value::Slot(named) if *named == slot);
            });
        });
    });
    is_found
}

/// True if a statement may leave the function.
fn leaves(stmt: &Stmt) -> bool {
    let mut is_found = false;
    look_at_each(std::slice::from_ref(stmt), &mut |kind| {
        is_found |= matches!(kind, StmtKind::Return);
    });
    is_found
}
