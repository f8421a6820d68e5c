//! Pure values as C expressions.

use super::function::Emitter;
use crate::core::ir::*;
use crate::tree::{BinaryOp, UnaryOp};
use crate::types::{Type, TypeId};

impl Emitter<'_, '_> {
    /// A C expression that can stand as an operand of anything.
    pub(super) fn value(&self, value: &Value) -> String {
        match value {
            Value::Int(n, ty) => self.integer(*n, *ty),
            Value::Real(r) => real(*r),
            Value::Bool(b) => b.to_string(),
            Value::String(n) => format!("(hearth_string *){}", self.context.text(*n)),
            Value::Null => "NULL".into(),
            Value::Slot(slot) => self.read_slot(*slot),
            Value::Member(member) => format!("self->{}", self.member_name(*member)),
            Value::Port(port) => format!("self->{}", self.port_name(*port)),
            Value::Global(global) => self.context.names.global(*global).to_owned(),
            Value::Proc(proc) => format!("&{}_value", self.context.names.proc(*proc)),
            Value::Convert(from, to, e) => self.convert(*from, *to, e),
            Value::Unary(op, ty, e) => self.unary(*op, *ty, e),
            Value::Binary(op, ty, a, b) => self.binary(*op, *ty, a, b),
            Value::Length(e) => match self.known_length(e) {
                Some(length) => length.to_string(),
                None => format!("(int32_t){}->length", self.object(e)),
            },
            Value::Element(array, index, ty) => {
                let element = format!("{}->data[{}]", self.object(array), self.index(index));
                if self.context.is_reference(*ty) {
                    format!("({}){element}", self.context.c_type(*ty))
                } else {
                    element
                }
            }
            Value::IndexOrZero(array, index, _) => {
                let index = self.value(index);
                format!(
                    "((size_t){index} < {}->length ? (size_t){index} : 0)",
                    self.object(array)
                )
            }
            Value::Field(object, ty, field) => {
                format!(
                    "{}->{}",
                    self.object(object),
                    self.context.field_name(*ty, *field)
                )
            }
            Value::Unboxed(e, ty) => {
                let slot = format!(
                    "{}->value.{}",
                    self.object(e),
                    self.context.slot_member(*ty)
                );
                self.typed_slot(*ty, slot)
            }
            Value::BoxIs(e, ty) => format!(
                "hearth_box_is({}, {})",
                self.value(e),
                self.context.descriptor(*ty)
            ),
            Value::Received(ty) => {
                let slot = format!("base->received.{}", self.context.slot_member(*ty));
                self.typed_slot(*ty, slot)
            }
        }
    }

    fn known_length(&self, array: &Value) -> Option<u32> {
        let component = self.context.owner(self.function.role)?;
        self.context
            .shapes
            .length(&self.context.input, component, array)
    }

    /// The length of an array as a `size_t`.
    pub(super) fn length(&self, array: &Value) -> String {
        match self.known_length(array) {
            Some(length) => length.to_string(),
            None => format!("{}->length", self.object(array)),
        }
    }

    /// Like [`Self::value`], without the outer parentheses.
    pub(super) fn bare(&self, value: &Value) -> String {
        let text = self.value(value);
        if matches!(value, Value::Binary(..)) && text.starts_with('(') && closes_at_end(&text) {
            text[1..text.len() - 1].to_owned()
        } else {
            text
        }
    }

    fn typed_slot(&self, ty: TypeId, slot: String) -> String {
        if self.context.is_reference(ty) {
            format!("({}){slot}", self.context.c_type(ty))
        } else {
            slot
        }
    }

    /// A value as the left side of `->`.
    pub(super) fn object(&self, value: &Value) -> String {
        let text = self.value(value);
        if text.starts_with('(') {
            format!("({text})")
        } else {
            text
        }
    }

    /// An array subscript: a counter as it is, for it cannot wrap.
    pub(super) fn index(&self, value: &Value) -> String {
        let counter = |v: &Value| match v {
            Value::Slot(slot) => self.function.slots[slot.index()].storage == Storage::Counter,
            _ => false,
        };
        let fast = |v: &Value| matches!(v, Value::Slot(slot) if Some(*slot) == self.fast_variable);
        match value {
            Value::Slot(slot) if counter(value) => self.slot_name(*slot),
            Value::Binary(op @ (BinaryOp::Add | BinaryOp::Subtract), TypeId::INTEGER, a, b)
                if fast(a) || fast(b) =>
            {
                let sign = if *op == BinaryOp::Add { '+' } else { '-' };
                format!("{} {sign} {}", self.index(a), self.index(b))
            }
            // Guarded for its whole range, so the product is the same in 64 bits.
            Value::Binary(BinaryOp::Multiply, TypeId::INTEGER, a, b) if fast(a) != fast(b) => {
                format!(
                    "(int64_t){} * {}",
                    self.index_factor(a),
                    self.index_factor(b)
                )
            }
            _ => self.bare(value),
        }
    }

    /// A factor of a subscript: a slot or a literal needs no parentheses.
    fn index_factor(&self, value: &Value) -> String {
        match value {
            Value::Slot(slot) => self.slot_name(*slot),
            _ => self.value(value),
        }
    }

    fn integer(&self, n: i64, ty: TypeId) -> String {
        match ty {
            TypeId::UNSIGNED => format!("{n}u"),
            // -2147483648 is not a literal in C.
            _ if n == i64::from(i32::MIN) => "INT32_MIN".into(),
            _ if n < 0 => format!("({n})"),
            _ => n.to_string(),
        }
    }

    fn convert(&self, from: TypeId, to: TypeId, e: &Value) -> String {
        if let Value::Int(n, _) = e {
            return match to {
                TypeId::REAL => n.to_string(),
                TypeId::INTEGER => self.integer(i64::from(*n as i32), to),
                TypeId::UNSIGNED => self.integer(i64::from(*n as u32), to),
                _ => self.integer(*n, to),
            };
        }
        let inner = self.value(e);
        match to {
            // C's own conversions do the rest: an integer meets a float as a float and a double
            // as a double.
            TypeId::REAL if from == TypeId::BYTE => format!("(int32_t){inner}"),
            TypeId::REAL => inner,
            _ => format!("({}){inner}", self.context.c_type(to)),
        }
    }

    fn unary(&self, op: UnaryOp, ty: TypeId, e: &Value) -> String {
        if let (UnaryOp::Minus | UnaryOp::Complement, Some(n)) = (op, constant(e))
            && ty != TypeId::REAL
        {
            return self.integer(wrap(if op == UnaryOp::Minus { -n } else { !n }, ty), ty);
        }
        let inner = self.value(e);
        let sign = match op {
            UnaryOp::Minus => "-",
            UnaryOp::Not => "!",
            UnaryOp::Complement => "~",
            UnaryOp::Plus => "+",
        };
        let inner = if inner.starts_with(sign) {
            format!("({inner})")
        } else {
            inner
        };
        if op == UnaryOp::Complement && ty == TypeId::BYTE {
            format!("(uint8_t)({inner} ^ 0xff)")
        } else if ty == TypeId::BYTE {
            format!("(uint8_t)({sign}{inner})")
        } else if ty == TypeId::BOOL
            || matches!(ty, TypeId::INTEGER | TypeId::UNSIGNED | TypeId::REAL)
        {
            format!("{sign}{inner}")
        } else {
            unreachable!("no sign for {ty:?}")
        }
    }

    fn binary(&self, op: BinaryOp, ty: TypeId, a: &Value, b: &Value) -> String {
        if let Some(folded) = fold(op, ty, a, b) {
            return match folded {
                Folded::Int(n) => self.integer(n, ty),
                Folded::Bool(b) => b.to_string(),
            };
        }
        if ty == TypeId::STRING {
            return self.compare_strings(op, a, b);
        }
        if matches!(op, BinaryOp::Divide | BinaryOp::Remainder) {
            return self.divide(op, ty, a, b);
        }
        let (x, y) = (self.operand(a), self.operand(b));
        let sign = match op {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::BitAnd => "&",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterEqual => ">=",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide | BinaryOp::Remainder => unreachable!("written above"),
        };
        let arithmetic = matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Subtract
                | BinaryOp::Multiply
                | BinaryOp::BitOr
                | BinaryOp::BitXor
                | BinaryOp::BitAnd
        );
        // References of different C types may meet: a struct type has one C name, but a box or a
        // component is compared as itself.
        if ty == TypeId::BYTE && arithmetic {
            format!("(uint8_t)({x} {sign} {y})")
        } else if ty == TypeId::BOOL && arithmetic {
            format!("(bool)({x} {sign} {y})")
        } else {
            format!("({x} {sign} {y})")
        }
    }

    /// A side of an operator: C compilers want parentheses around a negation there.
    fn operand(&self, value: &Value) -> String {
        let text = self.value(value);
        if text.starts_with('!') {
            format!("({text})")
        } else {
            text
        }
    }

    fn compare_strings(&self, op: BinaryOp, a: &Value, b: &Value) -> String {
        let (x, y) = (self.value(a), self.value(b));
        match op {
            BinaryOp::Equal => format!("hearth_string_equal({x}, {y})"),
            BinaryOp::NotEqual => format!("!hearth_string_equal({x}, {y})"),
            BinaryOp::Less => format!("(hearth_string_compare({x}, {y}) < 0)"),
            BinaryOp::LessEqual => format!("(hearth_string_compare({x}, {y}) <= 0)"),
            BinaryOp::Greater => format!("(hearth_string_compare({x}, {y}) > 0)"),
            BinaryOp::GreaterEqual => format!("(hearth_string_compare({x}, {y}) >= 0)"),
            _ => unreachable!("no such operator on strings"),
        }
    }

    fn divide(&self, op: BinaryOp, ty: TypeId, a: &Value, b: &Value) -> String {
        let sign = if op == BinaryOp::Divide { '/' } else { '%' };
        // Each side is written once: written twice, the text would double with each division in it.
        let plain = || format!("({} {sign} {})", self.value(a), self.value(b));
        match (ty, b) {
            // Checked before, and raised: what stands here is never reached.
            _ if ty != TypeId::REAL && constant(b) == Some(0) => self.integer(0, ty),
            (TypeId::INTEGER, Value::Int(n, _)) if *n > 0 => plain(),
            (TypeId::INTEGER, _) => {
                let function = if op == BinaryOp::Divide {
                    "hearth_divide"
                } else {
                    "hearth_remainder"
                };
                format!("{function}({}, {})", self.bare(a), self.bare(b))
            }
            (TypeId::BYTE, _) => format!("(uint8_t){}", plain()),
            _ => plain(),
        }
    }

    /// A value as a `hearth_value`.
    pub(super) fn slot_value(&self, value: &Value, ty: TypeId) -> String {
        let text = match self.context.ty(ty) {
            Type::String if matches!(value, Value::String(_)) => {
                let Value::String(n) = value else {
                    unreachable!("matched")
                };
                self.context.text(*n)
            }
            _ => self.bare(value),
        };
        format!(
            "(hearth_value){{ .{} = {text} }}",
            self.context.slot_member(ty)
        )
    }
}

/// True if the first parenthesis closes at the very end.
fn closes_at_end(text: &str) -> bool {
    let mut depth = 0;
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1 == text.len();
                }
            }
            _ => {}
        }
    }
    false
}

fn real(r: f64) -> String {
    if r.is_infinite() {
        return "__builtin_inf()".into();
    }
    let text = format!("{r:?}");
    if text.contains(['.', 'e']) {
        text
    } else {
        format!("{text}.0")
    }
}

enum Folded {
    Int(i64),
    Bool(bool),
}

/// Arithmetic of literals, wrapped as at run time; C compilers warn of overflow in constants.
fn fold(op: BinaryOp, ty: TypeId, a: &Value, b: &Value) -> Option<Folded> {
    let (x, y) = (constant(a)?, constant(b)?);
    Some(match op {
        BinaryOp::Add => Folded::Int(wrap(x + y, ty)),
        BinaryOp::Subtract => Folded::Int(wrap(x - y, ty)),
        BinaryOp::Multiply => Folded::Int(wrap(x.wrapping_mul(y), ty)),
        BinaryOp::Divide if y != 0 => Folded::Int(wrap(x / y, ty)),
        BinaryOp::Remainder if y != 0 => Folded::Int(wrap(x % y, ty)),
        BinaryOp::BitAnd => Folded::Int(wrap(x & y, ty)),
        BinaryOp::BitOr => Folded::Int(wrap(x | y, ty)),
        BinaryOp::BitXor => Folded::Int(wrap(x ^ y, ty)),
        BinaryOp::Equal => Folded::Bool(x == y),
        BinaryOp::NotEqual => Folded::Bool(x != y),
        BinaryOp::Less => Folded::Bool(x < y),
        BinaryOp::LessEqual => Folded::Bool(x <= y),
        BinaryOp::Greater => Folded::Bool(x > y),
        BinaryOp::GreaterEqual => Folded::Bool(x >= y),
        _ => return None,
    })
}

fn wrap(n: i64, ty: TypeId) -> i64 {
    match ty {
        TypeId::INTEGER => i64::from(n as i32),
        TypeId::UNSIGNED => i64::from(n as u32),
        TypeId::BYTE => i64::from(n as u8),
        _ => n,
    }
}

/// The number a value of an integer type is known to be.
fn constant(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n, _) => Some(*n),
        Value::Unary(UnaryOp::Minus, ty, e) if *ty != TypeId::REAL => {
            Some(wrap(-constant(e)?, *ty))
        }
        Value::Unary(UnaryOp::Complement, ty, e) => Some(wrap(!constant(e)?, *ty)),
        Value::Convert(_, ty, e) if *ty != TypeId::REAL => Some(wrap(constant(e)?, *ty)),
        Value::Binary(op, ty, a, b) if *ty != TypeId::REAL => match fold(*op, *ty, a, b)? {
            Folded::Int(n) => Some(n),
            Folded::Bool(_) => None,
        },
        _ => None,
    }
}
