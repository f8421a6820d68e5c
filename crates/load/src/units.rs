//! Quantities as people write them: `500us`, `10k`, `64-1024`.

use std::time::Duration;

/// Parses a count, which may end in `k`, `m` or `g` for powers of 1,000.
///
/// # Errors
/// It is not a count; the text shows valid ones.
pub fn count(text: &str) -> Result<u64, String> {
    scaled(text, &[("k", 1e3), ("m", 1e6), ("g", 1e9)])
        .filter(|number| *number <= 1e18)
        .map(|number| number.round() as u64)
        .ok_or_else(|| format!("'{text}' is not a count; write for example 500, 20k or 1.5m"))
}

/// Parses a rate in events a second, as [`count`] does, with an optional fraction.
///
/// # Errors
/// It is not a rate above zero.
pub fn rate(text: &str) -> Result<f64, String> {
    scaled(text, &[("k", 1e3), ("m", 1e6), ("g", 1e9)])
        .filter(|number| *number > 0.0)
        .ok_or_else(|| format!("'{text}' is not a rate; write requests a second, such as 20k"))
}

/// Parses bytes, which may end in `k` or `m` for 1,024 and its square.
///
/// # Errors
/// It is not a size.
pub fn bytes(text: &str) -> Result<u64, String> {
    scaled(text, &[("k", 1024.0), ("m", 1024.0 * 1024.0)])
        .filter(|number| *number <= 1e15)
        .map(|number| number.round() as u64)
        .ok_or_else(|| format!("'{text}' is not a size; write bytes, such as 64, 1k or 2m"))
}

/// Parses a length of time: `10s`, `500us`, `2m`; seconds without a unit.
///
/// # Errors
/// It is not a time.
pub fn time(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    scaled(text, &units)
        .filter(|seconds| *seconds <= 1e8)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("'{text}' is not a time; write for example 10s, 500us or 2m"))
}

/// Parses a number of at least 0 followed by a unit.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let lower = text.trim().to_lowercase();
    let (digits, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((lower.strip_suffix(unit)?, *scale)))
        .unwrap_or((&lower, 1.0));
    let number: f64 = digits.trim().replace('_', "").parse().ok()?;
    let number = number * scale;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// Formats nanoseconds with three digits and a unit.
pub fn show_ns(ns: f64) -> String {
    let (number, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let places = match number {
        number if number >= 99.95 => 0,
        number if number >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.places$} {unit}")
}

/// Formats a whole number with commas.
pub fn show_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_written() {
        assert_eq!(count("20k"), Ok(20_000));
        assert_eq!(count("1.5m"), Ok(1_500_000));
        assert_eq!(bytes("2k"), Ok(2048));
        assert_eq!(rate("0.5"), Ok(0.5));
        assert_eq!(time("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(time("10"), Ok(Duration::from_secs(10)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "-1", "k", "1x", "inf", "nan", "1e300s"] {
            assert!(count(bad).is_err() || time(bad).is_err(), "{bad}");
        }
        assert!(rate("0").is_err());
    }

    #[test]
    fn and_shown_shortly() {
        assert_eq!(show_ns(950.0), "950 ns");
        assert_eq!(show_ns(12_345.0), "12.3 µs");
        assert_eq!(show_ns(1_234_567.0), "1.23 ms");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_count(12), "12");
    }
}
