//! What is known of a value before the program runs, and what operators make of it.

use super::world::ObjectId;
use super::{ChannelId, InstanceId};
use crate::tree::{BinaryOp, ProcId, UnaryOp};
use crate::types::TypeId;

/// A value as far as it is known. Everything but [`Known::Unknown`], [`Known::About`],
/// [`Known::Counter`] and [`Known::Among`] is exact.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Known {
    Unknown,
    /// A number that is not known, but expected to be about this: the middle of a loop's range, say.
    About(f64),
    /// `start` in the first pass of a behaviour, and `step` more in each that follows.
    Counter {
        start: i64,
        step: i32,
    },
    /// Integers of all kinds, bytes and labels.
    Int(i64),
    Real(f64),
    Bool(bool),
    /// A literal, by its number in the module.
    Text(u32),
    Null,
    Object(ObjectId),
    Channel(ChannelId),
    Component(InstanceId),
    Proc(ProcId, InstanceId),
    /// Some element of this array.
    Among(ObjectId),
}

use Known::*;

impl Known {
    /// The number that it is, or is expected to be, and whether it is exactly that.
    pub(super) fn number(self) -> Option<(f64, bool)> {
        match self {
            Int(n) => Some((n as f64, true)),
            Real(x) => Some((x, true)),
            About(x) => Some((x, false)),
            _ => None,
        }
    }

    /// What is known where either of two ways may have come.
    pub(super) fn join(self, other: Known) -> Known {
        if self == other {
            return self;
        }
        match (self.number(), other.number()) {
            (Some((a, _)), Some((b, _))) => About((a + b) / 2.0),
            _ => Unknown,
        }
    }
}

/// An integer as the type stores it; arithmetic wraps around.
pub(super) fn wrapped(n: i64, ty: TypeId) -> i64 {
    match ty {
        TypeId::UNSIGNED => i64::from(n as u32),
        TypeId::BYTE => i64::from(n as u8),
        _ => i64::from(n as i32),
    }
}

pub(super) fn convert(value: Known, from: TypeId, to: TypeId) -> Known {
    match value {
        Int(n) if to == TypeId::REAL => Real(n as f64),
        Int(n) => Int(wrapped(n, to)),
        Counter { .. } if from != to => Unknown,
        Bool(_) | Real(_) | About(_) | Counter { .. } => value,
        _ => Unknown,
    }
}

pub(super) fn unary(op: UnaryOp, ty: TypeId, value: Known) -> Known {
    match (op, value) {
        (UnaryOp::Plus, value) => value,
        (UnaryOp::Minus, Int(n)) => Int(wrapped(-n, ty)),
        (UnaryOp::Minus, Real(x)) => Real(-x),
        (UnaryOp::Minus, About(x)) => About(-x),
        (UnaryOp::Not, Bool(b)) => Bool(!b),
        (UnaryOp::Complement, Int(n)) => Int(wrapped(!n, ty)),
        _ => Unknown,
    }
}

/// `ty` is the operands'.
pub(super) fn binary(op: BinaryOp, ty: TypeId, a: Known, b: Known) -> Known {
    match (op, a, b) {
        (BinaryOp::And, Bool(false), _) | (BinaryOp::And, _, Bool(false)) => Bool(false),
        (BinaryOp::Or, Bool(true), _) | (BinaryOp::Or, _, Bool(true)) => Bool(true),
        (BinaryOp::And, Bool(true), x) | (BinaryOp::And, x, Bool(true)) => x,
        (BinaryOp::Or, Bool(false), x) | (BinaryOp::Or, x, Bool(false)) => x,
        (_, Int(a), Int(b)) => integers(op, ty, a, b),
        (BinaryOp::Equal, Bool(a), Bool(b)) => Bool(a == b),
        (BinaryOp::NotEqual, Bool(a), Bool(b)) => Bool(a != b),
        // Texts that are the same literal are equal; others may still be.
        (BinaryOp::Equal, Text(a), Text(b)) if a == b => Bool(true),
        (BinaryOp::NotEqual, Text(a), Text(b)) if a == b => Bool(false),
        (BinaryOp::Equal, a, b) if is_identity(a) && is_identity(b) => Bool(a == b),
        (BinaryOp::NotEqual, a, b) if is_identity(a) && is_identity(b) => Bool(a != b),
        (op, Counter { start, step }, Int(n)) => counter(op, start, step, n),
        (BinaryOp::Add, Int(n), Counter { start, step }) => counter(BinaryOp::Add, start, step, n),
        // What is left over lies between nothing and the divisor.
        (BinaryOp::Remainder, _, Int(n)) if n > 0 => About((n - 1) as f64 / 2.0),
        (BinaryOp::BitAnd, _, Int(n)) | (BinaryOp::BitAnd, Int(n), _) if n > 0 => {
            About(n as f64 / 2.0)
        }
        _ => match (a.number(), b.number()) {
            (Some((x, true)), Some((y, true))) if ty == TypeId::REAL => reals(op, x, y),
            (Some((x, _)), Some((y, _))) => about(op, ty, x, y),
            _ => Unknown,
        },
    }
}

/// Channels and components, which are the same or are not.
fn is_identity(value: Known) -> bool {
    matches!(value, Channel(_) | Component(_))
}

fn counter(op: BinaryOp, start: i64, step: i32, n: i64) -> Known {
    let start = match op {
        BinaryOp::Add => start.checked_add(n),
        BinaryOp::Subtract => start.checked_sub(n),
        _ => None,
    };
    match start {
        Some(start) => Counter { start, step },
        None if op == BinaryOp::Remainder && n > 0 => About((n - 1) as f64 / 2.0),
        None => Unknown,
    }
}

fn integers(op: BinaryOp, ty: TypeId, a: i64, b: i64) -> Known {
    let number = |n: i64| Int(wrapped(n, ty));
    match op {
        BinaryOp::Or | BinaryOp::And => Unknown,
        BinaryOp::BitOr => number(a | b),
        BinaryOp::BitXor => number(a ^ b),
        BinaryOp::BitAnd => number(a & b),
        BinaryOp::Add => number(a.wrapping_add(b)),
        BinaryOp::Subtract => number(a.wrapping_sub(b)),
        BinaryOp::Multiply => number(a.wrapping_mul(b)),
        // Raises; the check before it has said so.
        BinaryOp::Divide | BinaryOp::Remainder if b == 0 => Unknown,
        BinaryOp::Divide => number(a.wrapping_div(b)),
        BinaryOp::Remainder => number(a.wrapping_rem(b)),
        _ => Bool(compare(op, a, b)),
    }
}

fn reals(op: BinaryOp, a: f64, b: f64) -> Known {
    match op {
        BinaryOp::Add => Real(a + b),
        BinaryOp::Subtract => Real(a - b),
        BinaryOp::Multiply => Real(a * b),
        BinaryOp::Divide => Real(a / b),
        BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual => Bool(compare(op, a, b)),
        _ => Unknown,
    }
}

/// Numbers of which one is only expected. A comparison of such is not known.
fn about(op: BinaryOp, ty: TypeId, a: f64, b: f64) -> Known {
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide if b != 0.0 && ty == TypeId::REAL => a / b,
        BinaryOp::Divide if b != 0.0 => (a / b).trunc(),
        _ => return Unknown,
    };
    if result.is_finite() {
        About(result)
    } else {
        Unknown
    }
}

fn compare<T: PartialOrd>(op: BinaryOp, a: T, b: T) -> bool {
    match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Less => a < b,
        BinaryOp::LessEqual => a <= b,
        BinaryOp::Greater => a > b,
        _ => a >= b,
    }
}
