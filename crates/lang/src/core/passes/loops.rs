//! Loops at the speed of C: members in registers, bounds evaluated once, index checks hoisted.
//!
//! 1. *Promotion.* In an outermost loop that neither parks nor calls anything that could see
//!    members, scalar members are kept in slots and written back where the loop is left. Stores to
//!    array elements then cannot alias them.
//! 2. *Counting.* A loop whose variable is never assigned and whose bound cannot change gets a
//!    64-bit counter and a bound evaluated once: it cannot wrap, and the C compiler knows its trip
//!    count.
//! 3. *Checks.* A check of `a[i + c]` in a counted loop over `lo .. a.length - d` is proved away
//!    when the constants allow it. In an innermost loop, what cannot be proved is tested once in
//!    front of the loop, for the whole range, and the loop exists twice: without those checks and
//!    as it was. A program that fails a check so still fails at the very same element.
//!
//! Arrays of arrays whose rows are never replaced anywhere in the program are rectangular, so a
//! row that changes with the loop is tested by the length of row 0.

use super::super::effects::{EffectTable, is_reference};
use super::super::ir::*;
use super::{
    each_statement, each_value, nested_blocks, rewrite_value, statement_target, visit_value,
};
use crate::tree::{BinaryOp, MemberId, ProcCode, Program};
use crate::types::{Type, TypeId};

/// Beyond this many conditions a second copy of the loop is not worth its tests.
const GUARDS_MAX: usize = 12;

pub fn run(function: &mut Function, program: &Program, effects: &EffectTable, ragged: &[TypeId]) {
    let mut body = std::mem::take(&mut function.body);
    let mut pass = Loops {
        slots: &mut function.slots,
        role: function.role,
        program,
        effects,
        ragged,
    };
    pass.promote_in(&mut body);
    pass.optimise_in(&mut body);
    function.body = body;
}

struct Loops<'a> {
    slots: &'a mut Vec<LocalSlot>,
    role: Role,
    program: &'a Program,
    effects: &'a EffectTable,
    ragged: &'a [TypeId],
}

/// The variables that a loop's body may change.
#[derive(Default)]
struct Changes {
    slots: Vec<SlotId>,
    members: Vec<MemberId>,
    /// Element types stored into.
    elements: Vec<TypeId>,
    fields: Vec<(TypeId, u32)>,
    /// Calls something that may store anywhere but in our slots.
    calls: bool,
    ports: bool,
    /// May be left and resumed in the middle.
    parks: bool,
    loops: bool,
}

impl Loops<'_> {
    // ---- promotion ----------------------------------------------------------------------

    fn promote_in(&mut self, block: &mut Block) {
        for stmt in block {
            if matches!(stmt.kind, StmtKind::Loop(_)) && self.promote(stmt) {
                continue;
            }
            for inner in nested_blocks(&mut stmt.kind) {
                self.promote_in(inner);
            }
        }
    }

    fn promote(&mut self, stmt: &mut Stmt) -> bool {
        let Some(component) = self.component() else {
            return false;
        };
        let mut whole = vec![stmt.clone()];
        let changes = self.changes(&mut whole);
        if changes.parks
            || changes.calls
            || changes.members.is_empty() && changes.elements.is_empty()
        {
            return false;
        }
        let members = self.members_in(&mut whole);
        let members: Vec<(MemberId, SlotId, bool)> = members
            .into_iter()
            .filter(|m| {
                let ty = self.program.components[component].members[m.index()].ty;
                !is_reference(&self.program.types, ty)
            })
            .map(|m| {
                let member = &self.program.components[component].members[m.index()];
                let slot = SlotId(self.slots.len() as u32);
                self.slots.push(LocalSlot {
                    name: Some(member.name),
                    ty: SlotType::Of(member.ty),
                    counted: false,
                    storage: Storage::Register,
                    borrows: Vec::new(),
                });
                (m, slot, changes.members.contains(&m))
            })
            .collect();
        if members.is_empty() {
            return false;
        }
        let slot_of = |m: MemberId| {
            members
                .iter()
                .find(|(id, ..)| *id == m)
                .map(|(_, slot, _)| *slot)
        };
        each_value(&mut whole, &mut |value| {
            rewrite_value(value, &mut |v| {
                if let Value::Member(m) = v
                    && let Some(slot) = slot_of(*m)
                {
                    *v = Value::Slot(slot);
                }
            });
        });
        each_statement(&mut whole, &mut |s| {
            if let StmtKind::Set { place, .. } = s
                && let StorePlace::Member(m) = place
                && let Some(slot) = slot_of(*m)
            {
                *place = StorePlace::Slot(slot);
            }
        });
        stmt.kind = StmtKind::Promoted {
            members,
            body: whole,
        };
        true
    }

    fn component(&self) -> Option<usize> {
        match self.role {
            Role::Members(c) | Role::Constructor(c, _) | Role::Behaviour(c) => Some(c.index()),
            Role::Proc(proc) => self.program.procs[proc.index()].owner.map(|c| c.index()),
            Role::Main => None,
        }
    }

    fn members_in(&self, block: &mut Block) -> Vec<MemberId> {
        let mut found = Vec::new();
        let mut note = |m: MemberId| {
            if !found.contains(&m) {
                found.push(m);
            }
        };
        each_value(block, &mut |value| {
            visit_value(value, &mut |v| {
                if let Value::Member(m) = v {
                    note(*m);
                }
            });
        });
        each_statement(block, &mut |s| {
            if let StmtKind::Set {
                place: StorePlace::Member(m),
                ..
            } = s
            {
                note(*m);
            }
        });
        found
    }

    // ---- what a body changes ----------------------------------------------------------------

    fn changes(&self, block: &mut Block) -> Changes {
        let mut changes = Changes::default();
        each_statement(block, &mut |stmt| {
            changes.slots.extend(statement_target(stmt));
            match stmt {
                StmtKind::Set { place, .. } => match place {
                    StorePlace::Member(m) => changes.members.push(*m),
                    StorePlace::Element(_, _, ty) => changes.elements.push(*ty),
                    StorePlace::Field(_, ty, field) => changes.fields.push((*ty, *field)),
                    _ => {}
                },
                StmtKind::Release(slot) => changes.slots.push(*slot),
                StmtKind::Loop(l) => {
                    changes.loops = true;
                    changes.slots.push(l.variable);
                }
                StmtKind::Versioned { fast, .. } => {
                    changes.loops = true;
                    changes.slots.push(fast.variable);
                }
                StmtKind::Promoted { members, .. } => {
                    changes
                        .members
                        .extend(members.iter().filter(|m| m.2).map(|m| m.0));
                    changes.slots.extend(members.iter().map(|m| m.1));
                }
                StmtKind::PortAssign { .. } => changes.ports = true,
                StmtKind::Call { callee, .. } => self.note_call(callee, &mut changes),
                StmtKind::Send { .. }
                | StmtKind::Receive { .. }
                | StmtKind::Select { .. }
                | StmtKind::Publish { .. }
                | StmtKind::Connect(..)
                | StmtKind::Disconnect(_) => changes.parks = true,
                _ => {}
            }
        });
        changes
    }

    fn note_call(&self, callee: &Callee, changes: &mut Changes) {
        let Callee::Proc(proc) = callee else {
            changes.calls = true;
            changes.parks = true;
            return;
        };
        let effects = self.effects.of_proc(*proc);
        changes.parks |= effects.blocks;
        if let ProcCode::Native { .. } = self.program.procs[proc.index()].code {
            // The runtime stores nothing but elements of arrays it is handed.
            changes
                .elements
                .extend([TypeId::INTEGER, TypeId::BYTE, TypeId::REAL]);
        } else {
            changes.calls = true;
        }
    }

    /// True if the value stays the same while the body runs.
    fn is_invariant(&self, value: &Value, changes: &Changes) -> bool {
        match value {
            Value::Slot(slot) => !changes.slots.contains(slot),
            Value::Member(m) => !changes.members.contains(m) && !changes.calls,
            Value::Port(_) => !changes.ports && !changes.calls,
            Value::Convert(_, _, e) | Value::Unary(_, _, e) | Value::Length(e) => {
                self.is_invariant(e, changes)
            }
            Value::Unboxed(e, _) | Value::BoxIs(e, _) => self.is_invariant(e, changes),
            Value::Binary(_, _, a, b) => {
                self.is_invariant(a, changes) && self.is_invariant(b, changes)
            }
            Value::Element(array, index, ty) => {
                !changes.calls
                    && !changes.elements.contains(ty)
                    && self.is_invariant(array, changes)
                    && self.is_invariant(index, changes)
            }
            Value::Field(object, ty, field) => {
                !changes.calls
                    && !changes.fields.contains(&(*ty, *field))
                    && self.is_invariant(object, changes)
            }
            Value::Received(_) | Value::IndexOrZero(..) => false,
            _ => true,
        }
    }

    // ---- counting and checks --------------------------------------------------------------

    /// Inner loops first.
    fn optimise_in(&mut self, block: &mut Block) {
        for mut stmt in std::mem::take(block) {
            for inner in nested_blocks(&mut stmt.kind) {
                self.optimise_in(inner);
            }
            if let StmtKind::Loop(mut l) = stmt.kind {
                let versions = self.optimise(&mut l);
                if l.counted {
                    // What the bound needs is invariant too: once is enough.
                    block.append(&mut l.prepare);
                }
                stmt.kind = match versions {
                    Some((guards, mut fast)) => {
                        fast.prepare.clear();
                        StmtKind::Versioned {
                            guards,
                            fast: Box::new(fast),
                            slow: l,
                        }
                    }
                    None => StmtKind::Loop(l),
                };
            }
            block.push(stmt);
        }
    }

    fn optimise(&mut self, l: &mut Loop) -> Option<(Vec<Guard>, Loop)> {
        let changes = self.changes(&mut l.body);
        let counted = !changes.parks
            && self.is_invariant_block(&l.prepare, l.variable, &changes)
            && self.slots[l.variable.index()].storage == Storage::Register
            && !changes.slots.contains(&l.variable)
            && self.is_invariant(&l.to, &changes)
            && !reads(&l.to, l.variable);
        if !counted {
            return None;
        }
        l.counted = true;
        self.slots[l.variable.index()].storage = Storage::Counter;
        self.prove(l, &changes);
        if changes.loops {
            None
        } else {
            self.version(l, &changes)
        }
    }

    /// True if running the block again changes nothing, as it only checks.
    fn is_invariant_block(&self, block: &Block, variable: SlotId, changes: &Changes) -> bool {
        let fixed = |value: &Value| self.is_invariant(value, changes) && !reads(value, variable);
        block.iter().all(|stmt| match &stmt.kind {
            StmtKind::CheckIndex { array, index, .. } => fixed(array) && fixed(index),
            StmtKind::CheckZero { value, .. } => fixed(value),
            _ => false,
        })
    }

    /// Drops the checks that the loop's bounds prove.
    fn prove(&self, l: &mut Loop, changes: &Changes) {
        let (low, high) = bounds(l);
        let (low, high, variable) = (low.clone(), high.clone(), l.variable);
        retain_statements(&mut l.body, &mut |stmt| {
            let StmtKind::CheckIndex { array, index, .. } = stmt else {
                return true;
            };
            let Some(offset) = offset_from(index, variable) else {
                return true;
            };
            let from_zero = matches!(low, Value::Int(n, _) if n + offset >= 0);
            let below_length = match &high {
                Value::Binary(BinaryOp::Subtract, TypeId::INTEGER, length, d) => {
                    match (&**length, &**d) {
                        (Value::Length(of), Value::Int(d, _)) => **of == *array && offset < *d,
                        _ => false,
                    }
                }
                _ => false,
            };
            !(from_zero && below_length && self.is_invariant(array, changes))
        });
    }

    /// The loop without the checks that guards in front of it make needless.
    fn version(&self, l: &Loop, changes: &Changes) -> Option<(Vec<Guard>, Loop)> {
        let (low, high) = bounds(l);
        let mut fast = l.clone();
        let mut guards: Vec<Guard> = Vec::new();
        retain_statements(&mut fast.body, &mut |stmt| {
            let StmtKind::CheckIndex { array, index, .. } = stmt else {
                return true;
            };
            let Some(array) = self.representative(array, l.variable, changes) else {
                return true;
            };
            let guard = if self.is_invariant(index, changes) && !reads(index, l.variable) {
                Guard::Index {
                    array,
                    index: index.clone(),
                }
            } else if let Some(guard) = self.induction_guard(l, &array, index, changes) {
                guard
            } else if let Some(factor) = self.factor_of(index, l.variable, changes) {
                Guard::Scaled {
                    array,
                    factor,
                    low: low.clone(),
                    high: high.clone(),
                }
            } else if let Some(offset) = offset_from(index, l.variable) {
                Guard::Range {
                    array,
                    low: low.clone(),
                    high: high.clone(),
                    offset,
                }
            } else {
                return true;
            };
            if !guards.contains(&guard) {
                guards.push(guard);
            }
            false
        });
        (!guards.is_empty() && guards.len() <= GUARDS_MAX).then_some((guards, fast))
    }

    /// `f` if the value is `f` times the variable and `f` does not change with the loop.
    fn factor_of(&self, value: &Value, variable: SlotId, changes: &Changes) -> Option<Value> {
        let Value::Binary(BinaryOp::Multiply, TypeId::INTEGER, a, b) = value else {
            return None;
        };
        let factor = match (&**a, &**b) {
            (Value::Slot(slot), factor) | (factor, Value::Slot(slot)) if *slot == variable => {
                factor
            }
            _ => return None,
        };
        let fixed = self.is_invariant(factor, changes) && !reads(factor, variable);
        fixed.then(|| factor.clone())
    }

    /// For `a[j]` where each round ends with, or begins with, `j := j + step`.
    fn induction_guard(
        &self,
        l: &Loop,
        array: &Value,
        index: &Value,
        changes: &Changes,
    ) -> Option<Guard> {
        let Value::Slot(j) = index else { return None };
        if l.step != 1 || changes.slots.iter().filter(|&s| s == j).count() != 1 {
            return None;
        }
        let advance = l
            .body
            .iter()
            .position(|stmt| self.step_of(stmt, *j, l, changes).is_some())?;
        let step = self.step_of(&l.body[advance], *j, l, changes)?;
        let mentions_check = |stmt: &Stmt| {
            let mut found = false;
            each_statement(&mut vec![stmt.clone()], &mut |s| {
                found |= matches!(s, StmtKind::CheckIndex { index: Value::Slot(i), .. } if i == j);
            });
            found
        };
        Some(Guard::Induction {
            array: array.clone(),
            start: *j,
            step,
            low: l.from.clone(),
            high: l.to.clone(),
            after: l.body[advance..].iter().any(mentions_check),
        })
    }

    /// `step` if the statement is `j := j + step` with a step the loop leaves alone.
    fn step_of(&self, stmt: &Stmt, j: SlotId, l: &Loop, changes: &Changes) -> Option<Value> {
        let StmtKind::Set {
            place: StorePlace::Slot(place),
            value,
            ..
        } = &stmt.kind
        else {
            return None;
        };
        let Value::Binary(BinaryOp::Add, TypeId::INTEGER, a, b) = value else {
            return None;
        };
        let fits = *place == j
            && **a == Value::Slot(j)
            && self.is_invariant(b, changes)
            && !reads(b, l.variable);
        fits.then(|| (**b).clone())
    }

    /// An array that does not change with the loop and has the length of `array`.
    fn representative(&self, array: &Value, variable: SlotId, changes: &Changes) -> Option<Value> {
        if self.is_invariant(array, changes) && !reads(array, variable) {
            return Some(array.clone());
        }
        let Value::Element(outer, _, row) = array else {
            return None;
        };
        let Type::Array(_) = self.program.types.get(*row) else {
            return None;
        };
        let rows_are_equal = !changes.calls
            && !self
                .ragged
                .iter()
                .any(|&ty| *self.program.types.get(ty) == Type::Array(*row));
        if !rows_are_equal {
            return None;
        }
        let outer = self.representative(outer, variable, changes)?;
        Some(Value::Element(
            Box::new(outer),
            Box::new(Value::Int(0, TypeId::INTEGER)),
            *row,
        ))
    }
}

/// The least and the greatest value the variable takes.
fn bounds(l: &Loop) -> (&Value, &Value) {
    if l.step > 0 {
        (&l.from, &l.to)
    } else {
        (&l.to, &l.from)
    }
}

fn reads(value: &Value, slot: SlotId) -> bool {
    let mut found = false;
    visit_value(value, &mut |v| found |= *v == Value::Slot(slot));
    found
}

/// `c` if the value is `variable + c`.
fn offset_from(value: &Value, variable: SlotId) -> Option<i64> {
    match value {
        Value::Slot(slot) if *slot == variable => Some(0),
        Value::Binary(op @ (BinaryOp::Add | BinaryOp::Subtract), TypeId::INTEGER, a, b) => {
            match (op, &**a, &**b) {
                (BinaryOp::Add, Value::Slot(slot), Value::Int(c, _)) if *slot == variable => {
                    Some(*c)
                }
                (BinaryOp::Add, Value::Int(c, _), Value::Slot(slot)) if *slot == variable => {
                    Some(*c)
                }
                (BinaryOp::Subtract, Value::Slot(slot), Value::Int(c, _)) if *slot == variable => {
                    Some(-*c)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Keeps the statements `keep` answers true for, in the block and inside it.
fn retain_statements(block: &mut Block, keep: &mut dyn FnMut(&StmtKind) -> bool) {
    block.retain_mut(|stmt| {
        if !keep(&stmt.kind) {
            return false;
        }
        for inner in nested_blocks(&mut stmt.kind) {
            retain_statements(inner, keep);
        }
        true
    });
}
