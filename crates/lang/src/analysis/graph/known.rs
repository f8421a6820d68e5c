//! Knowledge about values before the program runs, and operators on it.

use super::world::{ObjectId, PoolId};
use super::{ChannelId, InstanceId};
use crate::tree::{BinaryOp, ProcId, UnaryOp};
use crate::types::TypeId;

/// A value as far as it is known. Those that differ from pass to pass say how.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Known {
    Unknown,
    /// A number that is not known, but expected to be about this: the middle of a loop's range,
    /// say.
    About(f64),
    /// `start` in the first pass of a behaviour, and `step` more in each that follows.
    Counter {
        start: i64,
        step: i32,
    },
    /// A counter's remainder: `first`, `first + gap` and so on, `count` of them, in turns.
    Cycle {
        first: u32,
        gap: u32,
        count: u32,
    },
    /// A bool that is true in this pass, counted from 0, and in no other.
    Once(u32),
    /// A bool that becomes `to` in pass `at`, and was the contrary before.
    Turns {
        at: u32,
        to: bool,
    },
    /// A bool that is true in this part of all passes.
    Chance(f64),
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
    /// One of these channels.
    OneOf(PoolId),
}

use Known::*;

/// Longer cycles are numbers of which only the middle is known.
const CYCLE_MAX: u32 = 1024;

impl Known {
    /// The number that it is, or is expected to be, and whether it is exactly that.
    pub(super) fn number(self) -> Option<(f64, bool)> {
        match self {
            Int(n) => Some((n as f64, true)),
            Real(x) => Some((x, true)),
            About(x) => Some((x, false)),
            Cycle { first, gap, count } => {
                let last = f64::from(first) + f64::from(gap) * f64::from(count - 1);
                Some(((f64::from(first) + last) / 2.0, false))
            }
            _ => None,
        }
    }

    /// The knowledge where two paths join.
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
        Counter { .. } | Cycle { .. } if from != to => {
            value.number().map_or(Unknown, |n| About(n.0))
        }
        Bool(_) | Real(_) | About(_) | Counter { .. } | Cycle { .. } => value,
        Once(_) | Turns { .. } | Chance(_) => value,
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
        (UnaryOp::Not, Turns { at, to }) => Turns { at, to: !to },
        (UnaryOp::Not, Chance(p)) => Chance(1.0 - p),
        // All passes but one.
        (UnaryOp::Not, Once(_)) => Chance(1.0),
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
        // What is rarely true is as rare with another condition, or rarer.
        (BinaryOp::And, Once(at), _) | (BinaryOp::And, _, Once(at)) => Once(at),
        (BinaryOp::Or, Once(_), x) | (BinaryOp::Or, x, Once(_)) => x,
        (BinaryOp::And, Chance(p), Chance(q)) => Chance(p * q),
        (BinaryOp::Or, Chance(p), Chance(q)) => Chance(p + q - p * q),
        (op, Counter { start, step }, Int(n)) => counter(op, start, step, n),
        (op, Cycle { first, gap, count }, Int(n)) if is_comparison(op) => {
            let values = (0..count).map(|k| i64::from(first) + i64::from(k) * i64::from(gap));
            let hits = values.filter(|&value| compare(op, value, n)).count();
            share(hits as f64 / f64::from(count))
        }
        (op, Int(n), Counter { start, step }) => match op {
            BinaryOp::Add | BinaryOp::Multiply => counter(op, start, step, n),
            _ if is_comparison(op) => counter(turned(op), start, step, n),
            _ => Unknown,
        },
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

/// A counter and a constant.
fn counter(op: BinaryOp, start: i64, step: i32, n: i64) -> Known {
    // Beyond these it would wrap around.
    let is_small = |start: i64| start.unsigned_abs() <= u64::from(u32::MAX);
    let moved = |start: Option<i64>| match start {
        Some(start) if is_small(start) => Counter { start, step },
        _ => Unknown,
    };
    match op {
        BinaryOp::Add => moved(start.checked_add(n)),
        BinaryOp::Subtract => moved(start.checked_sub(n)),
        BinaryOp::Multiply => match (start.checked_mul(n), i64::from(step).checked_mul(n)) {
            (_, Some(0)) => Int(0),
            (Some(start), Some(step)) if is_small(start) => match i32::try_from(step) {
                Ok(step) => Counter { start, step },
                Err(_) => Unknown,
            },
            _ => Unknown,
        },
        BinaryOp::Remainder if n > 0 => cycle(start, step, n),
        BinaryOp::Equal => once(start, step, n),
        BinaryOp::NotEqual => unary(UnaryOp::Not, TypeId::BOOL, once(start, step, n)),
        BinaryOp::GreaterEqual => turns(start, step, n),
        BinaryOp::Greater => turns(start, step, n.saturating_add(1)),
        BinaryOp::Less => unary(UnaryOp::Not, TypeId::BOOL, turns(start, step, n)),
        BinaryOp::LessEqual => {
            let above = turns(start, step, n.saturating_add(1));
            unary(UnaryOp::Not, TypeId::BOOL, above)
        }
        _ => Unknown,
    }
}

/// `start + step·p == n`
fn once(start: i64, step: i32, n: i64) -> Known {
    let (way, step) = (n - start, i64::from(step));
    match (way % step, u32::try_from(way / step)) {
        (0, Ok(pass)) => Once(pass),
        _ => Bool(false),
    }
}

/// `start + step·p >= n`
fn turns(start: i64, step: i32, n: i64) -> Known {
    let (way, step) = (n.saturating_sub(start), i64::from(step));
    let is_rising = step > 0;
    let at = match is_rising {
        true => way.max(0).div_euclid(step) + i64::from(way.max(0) % step != 0),
        false if way > 0 => 0,
        false => (-way) / (-step) + 1,
    };
    match u32::try_from(at) {
        Ok(0) => Bool(is_rising),
        Ok(at) => Turns { at, to: is_rising },
        Err(_) => Bool(!is_rising),
    }
}

/// The remainder of a counter that does not fall below zero.
fn cycle(start: i64, step: i32, n: i64) -> Known {
    let middle = About((n - 1) as f64 / 2.0);
    let (Ok(step), Ok(modulus), true) = (u32::try_from(step), u32::try_from(n), start >= 0) else {
        return middle;
    };
    let (mut gap, mut rest) = (modulus, step % modulus);
    while rest != 0 {
        (gap, rest) = (rest, gap % rest);
    }
    // Nobody is interested in long cycles, and their values are counted one by one.
    if modulus / gap > CYCLE_MAX {
        return middle;
    }
    Cycle {
        first: (start % i64::from(gap)) as u32,
        gap,
        count: modulus / gap,
    }
}

fn share(part: f64) -> Known {
    match part {
        0.0 => Bool(false),
        1.0 => Bool(true),
        part => Chance(part),
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual
    )
}

/// The comparison with its sides exchanged.
fn turned(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessEqual => BinaryOp::GreaterEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterEqual => BinaryOp::LessEqual,
        op => op,
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

#[cfg(test)]
mod tests {
    use super::*;

    const C: Known = Counter { start: 1, step: 1 };

    fn with(op: BinaryOp, a: Known, b: Known) -> Known {
        binary(op, TypeId::INTEGER, a, b)
    }

    #[test]
    fn counters_move_and_grow() {
        assert_eq!(
            with(BinaryOp::Add, C, Int(2)),
            Counter { start: 3, step: 1 }
        );
        assert_eq!(
            with(BinaryOp::Multiply, Int(2), C),
            Counter { start: 2, step: 2 }
        );
        assert_eq!(with(BinaryOp::Multiply, C, Int(0)), Int(0));
    }

    #[test]
    fn counters_reach_a_limit_in_a_pass() {
        // 1, 2, 3, …: 4 in the fourth.
        assert_eq!(with(BinaryOp::Equal, C, Int(4)), Once(3));
        assert_eq!(
            with(BinaryOp::GreaterEqual, C, Int(4)),
            Turns { at: 3, to: true }
        );
        assert_eq!(
            with(BinaryOp::Greater, C, Int(4)),
            Turns { at: 4, to: true }
        );
        assert_eq!(with(BinaryOp::Less, C, Int(4)), Turns { at: 3, to: false });
        assert_eq!(with(BinaryOp::Less, Int(4), C), Turns { at: 4, to: true });
        assert_eq!(with(BinaryOp::GreaterEqual, C, Int(1)), Bool(true));
        assert_eq!(with(BinaryOp::Equal, C, Int(0)), Bool(false));
        // 5, 3, 1, -1: below 1 in the fourth.
        let falling = Counter { start: 5, step: -2 };
        assert_eq!(
            with(BinaryOp::Less, falling, Int(1)),
            Turns { at: 3, to: true }
        );
        assert_eq!(with(BinaryOp::GreaterEqual, falling, Int(6)), Bool(false));
        assert_eq!(with(BinaryOp::Equal, falling, Int(2)), Bool(false));
    }

    #[test]
    fn remainders_of_counters_go_round() {
        let cycle = with(BinaryOp::Remainder, C, Int(4));
        assert_eq!(
            cycle,
            Cycle {
                first: 0,
                gap: 1,
                count: 4
            }
        );
        assert_eq!(with(BinaryOp::Equal, cycle, Int(0)), Chance(0.25));
        assert_eq!(with(BinaryOp::Less, cycle, Int(3)), Chance(0.75));
        let even = with(BinaryOp::Remainder, Counter { start: 3, step: 2 }, Int(6));
        assert_eq!(
            even,
            Cycle {
                first: 1,
                gap: 2,
                count: 3
            }
        );
        assert_eq!(with(BinaryOp::Equal, even, Int(2)), Bool(false));
        assert_eq!(even.number(), Some((3.0, false)));
    }

    #[test]
    fn integers_wrap_as_they_do_in_c() {
        assert_eq!(
            with(BinaryOp::Add, Int(i64::from(i32::MAX)), Int(1)),
            Int(i64::from(i32::MIN))
        );
        let unsigned = binary(BinaryOp::Subtract, TypeId::UNSIGNED, Int(0), Int(1));
        assert_eq!(unsigned, Int(i64::from(u32::MAX)));
        assert_eq!(with(BinaryOp::Remainder, Int(-7), Int(3)), Int(-1));
    }
}
