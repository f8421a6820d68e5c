//! Numbers: wrapping integers of three widths, and reals as C computes them.

use super::value::Value;
use super::{DIVISION, Escape};
use crate::tree::{Binary, Type, Unary};
use std::cmp::Ordering;
use std::rc::Rc;

/// Widens to a numeric type. All other values stay as they are.
pub(super) fn widen(value: Value, to: &Type) -> Value {
    match (to, &value) {
        (Type::Unsigned, Value::Byte(byte)) => Value::Unsigned(u32::from(*byte)),
        (Type::Integer, Value::Byte(byte)) => Value::Integer(i32::from(*byte)),
        // Only where an integer and an unsigned meet in an operator.
        (Type::Integer, Value::Unsigned(number)) => Value::Integer(*number as i32),
        (Type::Real, Value::Byte(byte)) => Value::Single(f32::from(*byte)),
        (Type::Real, Value::Unsigned(number)) => Value::Single(*number as f32),
        (Type::Real, Value::Integer(number)) => Value::Single(*number as f32),
        _ => value,
    }
}

/// The value of a variable of type `to` after the store: reals lose their double precision.
pub(super) fn store(value: Value, to: &Type) -> Value {
    match widen(value, to) {
        Value::Double(number) => Value::Single(number as f32),
        value => value,
    }
}

pub(super) fn unary(op: Unary, value: Value) -> Value {
    match (op, value) {
        (Unary::Not, Value::Bool(value)) => Value::Bool(!value),
        (Unary::Minus, Value::Integer(value)) => Value::Integer(value.wrapping_neg()),
        (Unary::Minus, Value::Unsigned(value)) => Value::Unsigned(value.wrapping_neg()),
        (Unary::Minus, Value::Byte(value)) => Value::Byte(value.wrapping_neg()),
        (Unary::Minus, Value::Single(value)) => Value::Single(-value),
        (Unary::Minus, Value::Double(value)) => Value::Double(-value),
        (Unary::Complement, Value::Integer(value)) => Value::Integer(!value),
        (Unary::Complement, Value::Unsigned(value)) => Value::Unsigned(!value),
        (Unary::Complement, Value::Byte(value)) => Value::Byte(!value),
        (op, value) => unreachable!("{op:?} of {value:?}"),
    }
}

/// Every operator except `and` and `or`, on operands of their own types.
pub(super) fn binary(op: Binary, left: Value, right: Value) -> Result<Value, Escape> {
    let (left, right) = meet(left, right);
    if let Some(ordering) = comparison(op) {
        return Ok(Value::Bool(ordering(compare(&left, &right))));
    }
    match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => integer(op, a, b).map(Value::Integer),
        (Value::Unsigned(a), Value::Unsigned(b)) => {
            natural(op, u64::from(a), u64::from(b)).map(|value| Value::Unsigned(value as u32))
        }
        (Value::Byte(a), Value::Byte(b)) => {
            natural(op, u64::from(a), u64::from(b)).map(|value| Value::Byte(value as u8))
        }
        (Value::Single(a), Value::Single(b)) => Ok(Value::Single(match op {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => a / b,
            _ => unreachable!("{op:?} of reals"),
        })),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(match op {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => a / b,
            _ => unreachable!("{op:?} of reals"),
        })),
        (left, right) => unreachable!("{left:?} {op:?} {right:?}"),
    }
}

/// Converts two numbers to the joined type, and two reals to one precision.
fn meet(left: Value, right: Value) -> (Value, Value) {
    let (Some(from_left), Some(from_right)) = (numeric(&left), numeric(&right)) else {
        return (left, right);
    };
    let joined = from_left.join(&from_right);
    // An integer beside a double is converted to double at once, as in C.
    let double = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    if double {
        return (
            Value::Double(double_of(&left)),
            Value::Double(double_of(&right)),
        );
    }
    (widen(left, &joined), widen(right, &joined))
}

fn double_of(value: &Value) -> f64 {
    match value {
        Value::Single(value) => f64::from(*value),
        Value::Double(value) => *value,
        other => other.integral() as f64,
    }
}

fn numeric(value: &Value) -> Option<Type> {
    match value {
        Value::Byte(_) => Some(Type::Byte),
        Value::Unsigned(_) => Some(Type::Unsigned),
        Value::Integer(_) => Some(Type::Integer),
        Value::Single(_) | Value::Double(_) => Some(Type::Real),
        _ => None,
    }
}

fn comparison(op: Binary) -> Option<fn(Option<Ordering>) -> bool> {
    Some(match op {
        Binary::Equal => |o| o == Some(Ordering::Equal),
        Binary::NotEqual => |o| o != Some(Ordering::Equal),
        Binary::Less => |o| o == Some(Ordering::Less),
        Binary::LessEqual => |o| matches!(o, Some(Ordering::Less | Ordering::Equal)),
        Binary::Greater => |o| o == Some(Ordering::Greater),
        Binary::GreaterEqual => |o| matches!(o, Some(Ordering::Greater | Ordering::Equal)),
        _ => return None,
    })
}

/// None where the two have no order: unequal references, NaN.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    let identity = |same: bool| same.then_some(Ordering::Equal);
    match (left, right) {
        (Value::Single(a), Value::Single(b)) => a.partial_cmp(b),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Bool(a), Value::Bool(b)) => identity(a == b),
        (Value::Text(a), Value::Text(b)) => identity(a == b),
        (Value::Cells(a), Value::Cells(b)) => identity(Rc::ptr_eq(a, b)),
        (Value::Box(a), Value::Box(b)) => identity(Rc::ptr_eq(a, b)),
        (Value::Channel(a), Value::Channel(b)) => identity(Rc::ptr_eq(a, b)),
        (Value::Component(a), Value::Component(b)) => identity(Rc::ptr_eq(a, b)),
        (a, b) => Some(a.integral().cmp(&b.integral())),
    }
}

fn integer(op: Binary, a: i32, b: i32) -> Result<i32, Escape> {
    let divides = matches!(op, Binary::Divide | Binary::Remainder);
    if divides && b == 0 {
        return Err(DIVISION);
    }
    Ok(match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide => a.wrapping_div(b),
        Binary::Remainder => a.wrapping_rem(b),
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        _ => unreachable!("{op:?} of integers"),
    })
}

/// Unsigned and byte arithmetic; the caller truncates the result to its width.
fn natural(op: Binary, a: u64, b: u64) -> Result<u64, Escape> {
    let divides = matches!(op, Binary::Divide | Binary::Remainder);
    if divides && b == 0 {
        return Err(DIVISION);
    }
    Ok(match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide => a / b,
        Binary::Remainder => a % b,
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        _ => unreachable!("{op:?} of naturals"),
    })
}
