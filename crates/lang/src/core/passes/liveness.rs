//! Liveness: last uses become moves, and what lives across a blocking point gets a frame field.
//!
//! One walk from the end of the function to its start keeps two sets of slots: `uses`, read later
//! as a value, and `holds`, released later. At a point where the component may be parked, whatever
//! is in either set must survive in the frame; everything else stays a C local. Where a reference
//! is taken from a slot that is not in `uses`, the slot's own reference goes instead.
//!
//! Loops are treated without iterating: at the end of a round everything the loop mentions and
//! did not make itself in the round counts as live. Where a function is left early, everything it
//! may hold by then is released, so it counts as held; a walk forward finds out what that is.
//! Exceptions are edges from every statement of a
//! `try` body to its handlers, so what the handlers need is live all through the body.

use super::super::effects::EffectTable;
use super::super::ir::*;
use super::{each_statement, nested_blocks, statement_target, statement_values, visit_value};
use std::collections::HashSet;
use std::ops::Range;

pub fn run(function: &mut Function, effects: &EffectTable) {
    walk_back(function, effects, Goal::Moves);
    drop_empty_releases(&mut function.body);
    walk_back(function, effects, Goal::Frames);
    if function.blocks || matches!(function.role, Role::Constructor(..)) {
        // Whoever starts the function writes its arguments into its frame.
        for &param in &function.params {
            function.slots[param.index()].storage = Storage::Frame;
        }
    }
}

/// The purpose of a walk. Moves come first: a slot moved from needs no frame any more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Moves,
    Frames,
}

fn walk_back(function: &mut Function, effects: &EffectTable, goal: Goal) {
    let count = function.slots.len();
    let mut exits = Exits {
        slots: &function.slots,
        found: Vec::new(),
    };
    let mut held = Set::new(count);
    let counted = |p: &&SlotId| function.slots[p.index()].counted;
    function
        .params
        .iter()
        .filter(counted)
        .for_each(|&param| held.insert(param));
    exits.block(&mut function.body, &mut held);
    let mut pass = Liveness {
        goal,
        exits: exits.found,
        slots: &function.slots,
        effects,
        handlers: Set::new(count),
        parked: Set::new(count),
    };
    let mut live = Live {
        uses: Set::new(count),
        holds: Set::new(count),
    };
    pass.block(&mut function.body, &mut live);
    let parked = pass.parked;
    for slot in parked.iter() {
        function.slots[slot.index()].storage = Storage::Frame;
    }
}

/// The slots whose reference a statement takes away.
fn moved_from(stmt: &StmtKind) -> Vec<SlotId> {
    match stmt {
        StmtKind::Set {
            value: Value::Slot(slot),
            mode: Mode::Move,
            ..
        }
        | StmtKind::Send {
            moved: Some(slot), ..
        }
        | StmtKind::PortAssign { value: slot, .. } => vec![*slot],
        StmtKind::NewStruct { fields, .. } => fields
            .iter()
            .filter_map(|field| match field {
                (Value::Slot(slot), Mode::Move) => Some(*slot),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Removes releases of slots that have been moved from in the same block, and not filled since.
fn drop_empty_releases(block: &mut Block) {
    let mut empty: HashSet<SlotId> = HashSet::new();
    block.retain_mut(|stmt| {
        for inner in nested_blocks(&mut stmt.kind) {
            each_statement(inner, &mut |s| {
                if let Some(target) = statement_target(s) {
                    empty.remove(&target);
                }
            });
            drop_empty_releases(inner);
        }
        if let StmtKind::Release(slot) = &stmt.kind
            && empty.contains(slot)
        {
            return false;
        }
        if let Some(target) = statement_target(&stmt.kind) {
            empty.remove(&target);
        }
        empty.extend(moved_from(&stmt.kind));
        true
    });
}

/// A set of slots.
#[derive(Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn new(count: usize) -> Set {
        Set(vec![0; count.div_ceil(64)])
    }
    fn insert(&mut self, slot: SlotId) {
        self.0[slot.index() / 64] |= 1 << (slot.index() % 64);
    }
    fn remove(&mut self, slot: SlotId) {
        self.0[slot.index() / 64] &= !(1 << (slot.index() % 64));
    }
    fn contains(&self, slot: SlotId) -> bool {
        self.0[slot.index() / 64] >> (slot.index() % 64) & 1 == 1
    }
    fn add(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
    fn clear(&mut self) {
        self.0.fill(0);
    }
    fn iter(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            (0..64)
                .filter(move |i| bits >> i & 1 == 1)
                .map(move |i| SlotId((word * 64 + i) as u32))
        })
    }
}

#[derive(Clone)]
struct Live {
    uses: Set,
    holds: Set,
}

impl Live {
    fn add(&mut self, other: &Live) {
        self.uses.add(&other.uses);
        self.holds.add(&other.holds);
    }
}

/// The walk forward: which counted slots may hold something where a function is left early.
struct Exits<'a> {
    slots: &'a [LocalSlot],
    found: Vec<Set>,
}

impl Exits<'_> {
    fn block(&mut self, block: &mut Block, held: &mut Set) {
        for stmt in block {
            self.statement(&mut stmt.kind, held);
        }
    }

    fn statement(&mut self, stmt: &mut StmtKind, held: &mut Set) {
        match stmt {
            StmtKind::Return | StmtKind::Raise { .. } | StmtKind::StopSelf => {
                self.found.push(held.clone());
                held.clear();
            }
            StmtKind::Release(slot) => held.remove(*slot),
            StmtKind::Loop(l) => {
                let before = held.clone();
                self.block(&mut l.prepare, held);
                self.block(&mut l.body, held);
                held.add(&before);
            }
            StmtKind::If { .. } | StmtKind::Try { .. } | StmtKind::Select { .. } => {
                let whole = matches!(stmt, StmtKind::Try { .. });
                let before = held.clone();
                if !whole {
                    held.clear();
                }
                for inner in nested_blocks(stmt) {
                    let mut here = before.clone();
                    self.block(inner, &mut here);
                    held.add(&here);
                }
            }
            _ => {
                moved_from(stmt)
                    .into_iter()
                    .for_each(|slot| held.remove(slot));
                let target = statement_target(stmt).filter(|t| self.slots[t.index()].counted);
                if let Some(target) = target {
                    held.insert(target);
                }
            }
        }
    }
}

struct Liveness<'a> {
    goal: Goal,
    /// The slots that each early exit still holds, in the order of the text; taken from the end.
    exits: Vec<Set>,
    slots: &'a [LocalSlot],
    effects: &'a EffectTable,
    /// The slots that the handlers around the current statement need.
    handlers: Set,
    /// The slots that live across a point where the component may be parked.
    parked: Set,
}

impl Liveness<'_> {
    fn block(&mut self, block: &mut Block, live: &mut Live) {
        for stmt in block.iter_mut().rev() {
            self.statement(&mut stmt.kind, live);
        }
    }

    fn statement(&mut self, stmt: &mut StmtKind, live: &mut Live) {
        match stmt {
            StmtKind::If {
                then, otherwise, ..
            } => {
                let mut other = live.clone();
                self.block(otherwise, &mut other);
                self.block(then, live);
                live.add(&other);
                self.read(stmt, live);
            }
            StmtKind::Loop(_) => self.repeat(stmt, live),
            StmtKind::Try { body, handlers, .. } => {
                let after = live.clone();
                let mut caught = Live {
                    uses: Set::new(self.slots.len()),
                    holds: Set::new(self.slots.len()),
                };
                for handler in handlers.iter_mut().rev() {
                    let mut here = after.clone();
                    self.block(&mut handler.body, &mut here);
                    caught.add(&here);
                }
                let outer = self.handlers.clone();
                self.handlers.add(&caught.uses);
                self.handlers.add(&caught.holds);
                self.block(body, live);
                self.handlers = outer;
                live.add(&caught);
                self.read(stmt, live);
            }
            StmtKind::Select { arms, default } => {
                let after = live.clone();
                live.uses.clear();
                live.holds.clear();
                if let Some(default) = default {
                    let mut here = after.clone();
                    self.block(default, &mut here);
                    live.add(&here);
                }
                for arm in arms.iter_mut().rev() {
                    let mut here = after.clone();
                    self.block(&mut arm.body, &mut here);
                    live.add(&here);
                }
                self.park(live);
                self.read(stmt, live);
            }
            StmtKind::Return => {
                live.uses.clear();
                live.holds = self.exits.pop().expect("found on the way forward");
            }
            StmtKind::Raise { .. } | StmtKind::StopSelf => {
                live.uses = self.handlers.clone();
                live.holds = self.handlers.clone();
                live.holds
                    .add(&self.exits.pop().expect("found on the way forward"));
                self.read(stmt, live);
            }
            StmtKind::Release(slot) => live.holds.insert(*slot),
            StmtKind::Promoted { .. } | StmtKind::Versioned { .. } => {
                unreachable!("made by a later pass")
            }
            _ => self.simple(stmt, live),
        }
    }

    fn simple(&mut self, stmt: &mut StmtKind, live: &mut Live) {
        if let Some(target) = statement_target(stmt) {
            live.uses.remove(target);
            live.holds.remove(target);
            if let StmtKind::Set { replace: true, .. } = stmt {
                live.holds.insert(target);
            }
        }
        self.take_last_uses(stmt, live);
        moved_from(stmt)
            .into_iter()
            .for_each(|slot| live.holds.remove(slot));
        if self.may_park(stmt) {
            if let StmtKind::Call {
                callee: Callee::Value(value, _),
                ..
            } = stmt
            {
                self.read_value(value, live); // looked up again at every resumption
            }
            self.park(live);
            if let StmtKind::Send { value, .. } = stmt {
                // The value stays readable while the sender is parked: what it was read through
                // is released later, and so in `holds`.
                self.read_value(value, live);
            }
        }
        self.read(stmt, live);
    }

    /// Turns `Retain` of a slot that is not read again into `Move`.
    fn take_last_uses(&mut self, stmt: &mut StmtKind, live: &mut Live) {
        match stmt {
            StmtKind::Set {
                value: Value::Slot(slot),
                mode: mode @ Mode::Retain,
                place,
                ..
            } if *place != StorePlace::Slot(*slot) && self.is_last_use(*slot, live) => {
                *mode = Mode::Move;
                live.holds.remove(*slot);
            }
            StmtKind::Send {
                value: Value::Slot(slot),
                moved: moved @ None,
                ..
            } if self.is_last_use(*slot, live) => {
                *moved = Some(*slot);
                live.holds.remove(*slot);
            }
            StmtKind::NewStruct { fields, .. } => {
                for i in 0..fields.len() {
                    let (Value::Slot(slot), Mode::Retain) = &fields[i] else {
                        continue;
                    };
                    let slot = *slot;
                    let elsewhere = fields
                        .iter()
                        .enumerate()
                        .any(|(k, (value, _))| k != i && mentions(value, slot));
                    if !elsewhere && self.is_last_use(slot, live) {
                        fields[i].1 = Mode::Move;
                        live.holds.remove(slot);
                    }
                }
            }
            _ => {}
        }
    }

    fn is_last_use(&self, slot: SlotId, live: &Live) -> bool {
        self.slots[slot.index()].counted
            && self.slots[slot.index()].ty != SlotType::Held
            && !live.uses.contains(slot)
            && !self.handlers.contains(slot)
    }

    fn repeat(&mut self, stmt: &mut StmtKind, live: &mut Live) {
        let StmtKind::Loop(l) = stmt else {
            unreachable!("called for loops")
        };
        let mut mentioned = mentioned_outside(l, self.slots.len());
        let roots: Vec<SlotId> = mentioned
            .uses
            .iter()
            .flat_map(|slot| self.slots[slot.index()].borrows.clone())
            .collect();
        roots
            .into_iter()
            .for_each(|root| self.read_slot(root, &mut mentioned));
        let variable = l.variable;
        let mut end = live.clone();
        end.add(&mentioned);
        end.uses.insert(variable);
        self.block(&mut l.body, &mut end);
        end.add(&*live);
        self.read_value(&l.to, &mut end);
        end.uses.insert(variable);
        self.block(&mut l.prepare, &mut end);
        *live = end;
        live.add(&mentioned);
        live.uses.remove(variable);
        live.holds.remove(variable);
        let from = l.from.clone();
        self.read_value(&from, live);
    }

    fn may_park(&self, stmt: &StmtKind) -> bool {
        match stmt {
            StmtKind::Send { .. } | StmtKind::Receive { .. } | StmtKind::Publish { .. } => true,
            StmtKind::Connect(a, b) => matches!(a, End::Remote(..)) || matches!(b, End::Remote(..)),
            StmtKind::Disconnect(a) => matches!(a, End::Remote(..)),
            StmtKind::Call {
                callee: Callee::Proc(proc),
                ..
            } => self.effects.of_proc(*proc).blocks,
            StmtKind::Call {
                callee: Callee::Value(_, ty),
                ..
            } => self.effects.of_value(*ty).blocks,
            _ => false,
        }
    }

    /// Everything that matters later goes into the frame.
    fn park(&mut self, live: &Live) {
        if self.goal == Goal::Moves {
            return;
        }
        for set in [&live.uses, &live.holds, &self.handlers] {
            self.parked.add(set);
        }
    }

    fn read(&self, stmt: &mut StmtKind, live: &mut Live) {
        if let StmtKind::PortAssign { value, .. } = stmt {
            live.uses.insert(*value);
        }
        if let StmtKind::Send {
            moved: Some(slot), ..
        } = stmt
        {
            live.uses.insert(*slot);
        }
        statement_values(stmt, &mut |value| self.read_value(value, live));
    }

    fn read_value(&self, value: &Value, live: &mut Live) {
        visit_value(value, &mut |v| {
            if let Value::Slot(slot) = v {
                self.read_slot(*slot, live);
            }
        });
    }

    fn read_slot(&self, slot: SlotId, live: &mut Live) {
        if !live.uses.contains(slot) {
            live.uses.insert(slot);
            for &root in &self.slots[slot.index()].borrows {
                self.read_slot(root, live);
            }
        }
    }
}

fn mentions(value: &Value, slot: SlotId) -> bool {
    let mut found = false;
    visit_value(value, &mut |v| found |= *v == Value::Slot(slot));
    found
}

/// The slots that a loop reads or releases without setting them anew in each round.
fn mentioned_outside(l: &mut Loop, count: usize) -> Live {
    let mut live = Live {
        uses: Set::new(count),
        holds: Set::new(count),
    };
    let fresh: Range<u32> = l.fresh.clone();
    let note = |slot: SlotId, set: &mut Set| {
        if !fresh.contains(&slot.0) {
            set.insert(slot);
        }
    };
    let read = |value: &Value, uses: &mut Set| {
        visit_value(value, &mut |v| {
            if let Value::Slot(slot) = v {
                note(*slot, uses);
            }
        });
    };
    read(&l.to, &mut live.uses);
    for block in [&mut l.prepare, &mut l.body] {
        each_statement(block, &mut |stmt| {
            match stmt {
                StmtKind::Release(slot) if !fresh.contains(&slot.0) => live.holds.insert(*slot),
                StmtKind::PortAssign { value, .. } if !fresh.contains(&value.0) => {
                    live.uses.insert(*value)
                }
                StmtKind::Set {
                    place: StorePlace::Slot(slot),
                    replace: true,
                    ..
                } if !fresh.contains(&slot.0) => {
                    live.holds.insert(*slot);
                }
                _ => {}
            }
            statement_values(stmt, &mut |value| read(value, &mut live.uses));
        });
    }
    live
}
