//! Values to text and text to values, as plain functions.

/// Sign, integer part, point, two digits, the rest cut off: 19.416 is `19.41`, -0.5 is `-0.50`.
///
/// The value cut off is the stored one, in single precision: 2.1 is stored as 2.0999999 and prints
/// as `2.09`. Values that are not finite print as `inf`, `-inf` and `nan`.
pub(crate) fn format_real(real: f32) -> String {
    if real.is_nan() {
        return "nan".to_owned();
    }
    if real.is_infinite() {
        return if real > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // Exact: a single has 24 significant bits, a hundred times it at most 31, a double 53.
    let hundredths = (f64::from(real).abs() * 100.0).trunc();
    let whole = (hundredths / 100.0).trunc();
    // Also exact while there are hundredths at all; beyond 2^53 a single has none.
    let rest = if whole < 9e15 {
        (hundredths - whole * 100.0) as u32
    } else {
        0
    };
    let whole = if whole < 9e15 {
        whole
    } else {
        f64::from(real).abs()
    };
    let sign = if real < 0.0 { "-" } else { "" };
    format!("{sign}{whole:.0}.{rest:02}")
}

/// Leading blanks, a sign, digits; 0 if there are none. Wraps, as integers do.
pub(crate) fn parse_int(text: &[u8]) -> i32 {
    parse_unsigned(text) as i32
}

/// Parses unsigned numbers likewise; `-1` is the largest.
pub(crate) fn parse_unsigned(text: &[u8]) -> u32 {
    let (negative, digits) = split_sign(skip_blanks(text));
    let mut number = 0u32;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        number = number
            .wrapping_mul(10)
            .wrapping_add(u32::from(digit - b'0'));
    }
    if negative {
        number.wrapping_neg()
    } else {
        number
    }
}

/// Leading blanks, a sign, digits with or without a point and an exponent; 0 if there are none.
pub(crate) fn parse_real(text: &[u8]) -> f32 {
    let text = skip_blanks(text);
    let length = real_length(text);
    // The part measured is ASCII that Rust reads as a number, or empty.
    std::str::from_utf8(&text[..length])
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0.0)
}

/// Bytes of the longest start of `text` that is a number.
fn real_length(text: &[u8]) -> usize {
    let sign = text.len() - split_sign(text).1.len();
    let whole = count_digits(&text[sign..]);
    let mut end = sign + whole;
    let mut digits = whole;
    if text.get(end) == Some(&b'.') {
        let fraction = count_digits(&text[end + 1..]);
        digits += fraction;
        // "2." is 2; "." alone is nothing.
        end += 1 + fraction;
    }
    if digits == 0 {
        return 0;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let rest = &text[end + 1..];
        let sign = rest.len() - split_sign(rest).1.len();
        let exponent = count_digits(&rest[sign..]);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    &text[blanks..]
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_prints_with_two_digits_cut_not_rounded() {
        let cases = [
            (19.416, "19.41"),
            (-0.5, "-0.50"),
            (0.0, "0.00"),
            (-0.0, "0.00"),
            (3.0, "3.00"),
            (0.999, "0.99"),
            (-19.999, "-19.99"),
            (2.1, "2.09"),
            (1.05, "1.04"),
            (1.5, "1.50"),
            (1e-10, "0.00"),
            (16777216.0, "16777216.00"),
            (1e10, "10000000000.00"),
            (f32::MAX, "340282346638528859811704183484516925440.00"),
            (f32::INFINITY, "inf"),
            (f32::NEG_INFINITY, "-inf"),
            (f32::NAN, "nan"),
        ];
        for (real, expected) in cases {
            assert_eq!(format_real(real), expected);
        }
    }

    #[test]
    fn integers_are_read_up_to_the_first_other_character() {
        let cases: [(&str, i32); 12] = [
            ("42", 42),
            ("  -7x", -7),
            ("\t+12 13", 12),
            ("", 0),
            ("-", 0),
            ("--3", 0),
            ("abc", 0),
            ("12.9", 12),
            ("2147483647", i32::MAX),
            ("2147483648", i32::MIN),
            ("-2147483648", i32::MIN),
            ("4294967297", 1),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_int(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn unsigned_numbers_use_all_their_bits() {
        assert_eq!(parse_unsigned(b"4294967295"), u32::MAX);
        assert_eq!(parse_unsigned(b"-1"), u32::MAX);
        assert_eq!(parse_unsigned(b" 5 "), 5);
    }

    #[test]
    fn reals_are_read_properly() {
        let cases = [
            ("2.1", 2.1),
            ("1.05", 1.05),
            ("-0.5", -0.5),
            (" +3", 3.0),
            ("3.", 3.0),
            (".5", 0.5),
            (".", 0.0),
            ("-.", 0.0),
            ("", 0.0),
            ("e5", 0.0),
            ("1e3", 1000.0),
            ("1.5e-2m", 0.015),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("7 8", 7.0),
            ("inf", 0.0),
            ("nan", 0.0),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_real(text.as_bytes()), expected, "{text:?}");
        }
    }
}
