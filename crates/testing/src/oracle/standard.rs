//! The standard procedures.

use super::Machine;
use super::arithmetic::store;
use super::value::Value;
use crate::tree::Standard;

impl Machine<'_> {
    /// `args` already have the values of the procedure's parameters.
    pub(super) fn standard(&self, standard: Standard, args: &[Value]) -> Value {
        let real = |value: f32| Value::Single(value);
        match standard {
            Standard::PrintString => self.show(&args[0].text()),
            Standard::PrintInt | Standard::PrintUnsignedInt | Standard::PrintByte => {
                self.show(&args[0].integral().to_string())
            }
            Standard::PrintReal => self.show(&real_text(args[0].single())),
            Standard::PrintAny => {
                let Value::Box(boxed) = &args[0] else {
                    unreachable!("printAny takes a box")
                };
                self.show(&match &boxed.1 {
                    Value::Text(text) => text.to_string(),
                    Value::Bool(value) => value.to_string(),
                    Value::Single(_) | Value::Double(_) => real_text(boxed.1.single()),
                    other => other.integral().to_string(),
                })
            }
            Standard::StringEquals => Value::Bool(args[0].text() == args[1].text()),
            Standard::StringStartsWith => Value::Bool(args[0].text().starts_with(&*args[1].text())),
            Standard::CharAt => {
                let text = args[0].text();
                let index = args[1].integral() as usize;
                let code = text.as_bytes().get(index).copied().unwrap_or(0);
                Value::Unsigned(u32::from(code))
            }
            Standard::ParseInt => Value::Integer(integer(&args[0].text()) as i32),
            Standard::ParseUnsignedInt => Value::Unsigned(integer(&args[0].text()) as u32),
            Standard::ParseReal => {
                let text = args[0].text();
                real(text.trim_start().parse::<f64>().unwrap_or(0.0) as f32)
            }
            Standard::IntToByte => Value::Byte(args[0].integer() as u8),
            Standard::IntToUnsigned => Value::Unsigned(args[0].integer() as u32),
            Standard::RealToInt => Value::Integer(real_to_int(args[0].single())),
            Standard::AbsInt => Value::Integer(args[0].integer().wrapping_abs()),
            Standard::SquareInt => {
                let value = args[0].integer();
                Value::Integer(value.wrapping_mul(value))
            }
            Standard::AbsReal => real(args[0].single().abs()),
            Standard::SquareReal => real(args[0].single() * args[0].single()),
            Standard::SquareRoot => {
                let value = args[0].single();
                real(if value > 0.0 { value.sqrt() } else { 0.0 })
            }
            Standard::ByteArrayEqual => {
                let (a, b) = (args[0].contents(), args[1].contents());
                let bytes =
                    |cells: &[Value]| -> Vec<i64> { cells.iter().map(Value::integral).collect() };
                Value::Bool(bytes(&a.borrow()) == bytes(&b.borrow()))
            }
        }
    }

    fn show(&self, text: &str) -> Value {
        self.print(text);
        Value::Void
    }

    /// Values of the parameters.
    pub(super) fn standard_args(standard: Standard, args: Vec<Value>) -> Vec<Value> {
        let params = standard.params();
        let pairs = args.into_iter().zip(&params);
        pairs.map(|(value, ty)| store(value, ty)).collect()
    }
}

/// Leading blanks, a sign, digits; 0 if there are none.
fn integer(text: &str) -> i64 {
    let text = text.trim_start();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = digits
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(digits.len());
    let value: i64 = digits[..end].parse().unwrap_or(0);
    if negative { -value } else { value }
}

/// Sign, integer part, point, two digits truncated. Exact: a single has 24 significant bits, so
/// a hundred times one fits a double.
pub(super) fn real_text(value: f32) -> String {
    let hundredths = (f64::from(value.abs()) * 100.0).trunc();
    let whole = (hundredths / 100.0).trunc();
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{whole}.{:02}", hundredths - whole * 100.0)
}

/// Truncates, but adds 1 if the fraction exceeds a half.
fn real_to_int(value: f32) -> i32 {
    let whole = value as i32;
    if f64::from(value) - f64::from(whole) > 0.5 {
        whole.wrapping_add(1)
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_print_with_two_truncated_digits() {
        assert_eq!(real_text(19.416), "19.41");
        assert_eq!(real_text(-0.5), "-0.50");
        assert_eq!(real_text(0.29), "0.28");
        assert_eq!(real_text(1000.0), "1000.00");
    }

    #[test]
    fn halves_round_down() {
        assert_eq!(real_to_int(2.5), 2);
        assert_eq!(real_to_int(2.6), 3);
        assert_eq!(real_to_int(-2.6), -2);
    }
}
