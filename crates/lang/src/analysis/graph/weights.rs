//! The costs of core IR operations, in nanoseconds.
//!
//! An estimate for the optimised C, on a core of about 3 GHz, with data in the
//! caches next to it. What an operation costs depends on what surrounds it, by a factor of fifty:
//! in a loop over an array with nothing carried from round to round, compilers work on many
//! elements at once, and what does not change is read once for all rounds; where each round needs
//! the result of the one before, it takes the full time of every operation on that way. So there is
//! a table for each *pace*, and [`Pace::of`] tells a loop's from its body.
//! `docs/internals/graph.md` shows the runs from which the figures were taken.
//!
//! The costs of messages are not here: the communication model has them, by size and distance.

use crate::core::ir::*;
use crate::core::passes::visit_value;
use crate::tree::{BinaryOp, MemberId};
use crate::types::TypeId;

/// The costs of one pace.
pub(super) struct Weights {
    /// An addition, comparison or the like of integers.
    pub(super) operation: f64,
    pub(super) multiplication: f64,
    /// A division or remainder of integers; by a literal it is a multiplication and a shift.
    pub(super) division: f64,
    pub(super) division_by_literal: f64,
    /// An operation of reals: single precision is stored, double precision computed with.
    pub(super) real: f64,
    /// An element or field that is read or written.
    pub(super) element: f64,
    /// A member or a length.
    pub(super) member: f64,
    /// An index check.
    pub(super) check: f64,
    /// The beginning of a round.
    pub(super) round: f64,
}

/// The order of operations in a piece of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Pace {
    /// Every other operation.
    #[default]
    Plain,
    /// Rounds independent of each other, over elements in a row.
    Stream,
    /// The same over elements that are not in a row, or a sum of integers.
    Scattered,
    /// Each round needs the one before.
    Chain,
}

const PLAIN: Weights = Weights {
    operation: 0.25,
    multiplication: 0.3,
    division: 1.7,
    division_by_literal: 0.8,
    real: 0.5,
    element: 0.25,
    member: 0.15,
    check: 0.05,
    round: 0.2,
};
const STREAM: Weights = Weights {
    operation: 0.015,
    multiplication: 0.03,
    division: 1.0,
    division_by_literal: 0.1,
    real: 0.05,
    element: 0.02,
    member: 0.0,
    check: 0.0,
    round: 0.005,
};
const SCATTERED: Weights = Weights {
    operation: 0.06,
    multiplication: 0.1,
    division: 1.2,
    division_by_literal: 0.3,
    real: 0.15,
    element: 0.12,
    member: 0.0,
    check: 0.0,
    round: 0.05,
};
const CHAIN: Weights = Weights {
    operation: 0.25,
    multiplication: 0.8,
    division: 2.6,
    division_by_literal: 2.3,
    real: 1.5,
    element: 0.05,
    member: 0.0,
    check: 0.0,
    round: 0.02,
};

/// A condition, where it is not known which way it goes: the core guesses wrong now and then.
pub(super) const BRANCH: f64 = 0.8;
/// One that always goes the same way.
pub(super) const BRANCH_KNOWN: f64 = 0.2;
pub(super) const CALL: f64 = 0.3;
/// A block taken from the heap and given back, and each byte of it written.
pub(super) const BLOCK: f64 = 18.0;
pub(super) const BYTE: f64 = 0.014;
/// A native of the runtime that computes.
pub(super) const NATIVE: f64 = 3.0;
/// A native that prints: the text goes into a buffer of the process.
pub(super) const PRINT: f64 = 30.0;
/// The beginning of a pass.
pub(super) const PASS: f64 = 1.5;
/// A native that may wait for the outside world, for an unknown time. This value only
/// keeps rates from being those of components that need not wait.
pub(super) const OUTSIDE: f64 = 1e6;
/// The cost of a message for either side, for comparing rates only: half of a hand-over
/// between two components of one worker, which was measured at 7 to 9 ns.
pub(super) const MESSAGE: f64 = 4.0;

impl Pace {
    pub(super) fn weights(self) -> &'static Weights {
        match self {
            Pace::Plain => &PLAIN,
            Pace::Stream => &STREAM,
            Pace::Scattered => &SCATTERED,
            Pace::Chain => &CHAIN,
        }
    }

    /// A loop's pace. One whose body does more than compute and store is plain.
    pub(super) fn of(l: &Loop) -> Pace {
        let mut carried = Vec::new();
        let mut is_in_a_row = true;
        let written: Vec<Variable> = l.body.iter().filter_map(|s| target(&s.kind)).collect();
        let mut written_yet: Vec<Variable> = Vec::new();
        for stmt in &l.body {
            let StmtKind::Set { place, value, .. } = &stmt.kind else {
                match stmt.kind {
                    StmtKind::CheckIndex { .. }
                    | StmtKind::CheckZero { .. }
                    | StmtKind::Release(_) => continue,
                    _ => return Pace::Plain,
                }
            };
            if let StorePlace::Element(array, index, _) = place {
                is_in_a_row &= steps_by_one(array, index, l.variable);
            }
            let mut look = |value: &Value| {
                if let Some(variable) = variable(value)
                    && written.contains(&variable)
                    && !written_yet.contains(&variable)
                {
                    carried.push(variable);
                }
                if let Value::Element(array, index, _) = value {
                    is_in_a_row &= steps_by_one(array, index, l.variable);
                }
            };
            visit_value(value, &mut look);
            if let StorePlace::Element(array, index, _) = place {
                visit_value(array, &mut look);
                visit_value(index, &mut look);
            }
            written_yet.extend(target(&stmt.kind));
        }
        match carried.is_empty() {
            true if is_in_a_row => Pace::Stream,
            true => Pace::Scattered,
            false if carried.iter().all(|v| is_sum(l, v, &carried)) => Pace::Scattered,
            false => Pace::Chain,
        }
    }
}

/// A variable that may live in a register.
#[derive(Clone, PartialEq, Debug)]
enum Variable {
    Slot(SlotId),
    Member(MemberId),
    /// A field, by the value that denotes it.
    Field(Value),
}

fn variable(value: &Value) -> Option<Variable> {
    match value {
        Value::Slot(slot) => Some(Variable::Slot(*slot)),
        Value::Member(member) => Some(Variable::Member(*member)),
        Value::Field(..) => Some(Variable::Field(value.clone())),
        _ => None,
    }
}

fn target(stmt: &StmtKind) -> Option<Variable> {
    match stmt {
        StmtKind::Set { place, .. } => match place {
            StorePlace::Slot(slot) => Some(Variable::Slot(*slot)),
            StorePlace::Member(member) => Some(Variable::Member(*member)),
            StorePlace::Field(object, ty, field) => Some(Variable::Field(Value::Field(
                Box::new(object.clone()),
                *ty,
                *field,
            ))),
            _ => None,
        },
        _ => None,
    }
}

/// True if each round takes the next element, or always the same one.
fn steps_by_one(array: &Value, index: &Value, variable: SlotId) -> bool {
    let is_variable = |value: &Value| matches!(value, Value::Slot(slot) if *slot == variable);
    let mut mentions = false;
    visit_value(array, &mut |v| mentions |= is_variable(v));
    if mentions {
        return false;
    }
    match index {
        index if is_variable(index) => true,
        Value::Binary(BinaryOp::Add | BinaryOp::Subtract, _, a, b) => {
            is_variable(a) && !matches!(**b, Value::Binary(..))
        }
        index => {
            let mut mentions = false;
            visit_value(index, &mut |v| mentions |= is_variable(v));
            !mentions
        }
    }
}

/// True if a variable is only added to: then parts of the sum can be computed side by side.
fn is_sum(l: &Loop, sum: &Variable, carried: &[Variable]) -> bool {
    let is_it = |value: &Value| variable(value).as_ref() == Some(sum);
    let stores = l
        .body
        .iter()
        .filter(|s| target(&s.kind).as_ref() == Some(sum));
    let is_added_to = stores.clone().all(|stmt| match &stmt.kind {
        StmtKind::Set {
            value: Value::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::BitXor, ty, a, b),
            ..
        } => *ty != TypeId::REAL && is_it(a) && !is_it(b),
        _ => false,
    });
    is_added_to && stores.count() == 1 && carried.iter().filter(|v| *v == sum).count() == 1
}
