//! Times as people write them: `250us`, `1.5ms`, `2 s`.

use super::{Range, TIME_NS_MAX};

/// Units, the longest names first, with their nanoseconds.
const UNITS: [(&str, u64); 5] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// Reads a time such as `250us` or `1.5ms` as nanoseconds; none if it is not a whole number of
/// them, or above [`TIME_NS_MAX`].
pub fn parse_ns(text: &str) -> Option<u64> {
    let text = text.trim();
    let split =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '_');
    let (number, unit) = match split {
        Some(at) => text.split_at(at),
        None if text == "0" => return Some(0),
        None => return None,
    };
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim())?.1;
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut ns = whole.checked_mul(factor)?;
    if !fraction.is_empty() {
        let digits: u64 = fraction.parse().ok()?;
        let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let part = digits.checked_mul(factor)?;
        if part % scale != 0 {
            return None;
        }
        ns = ns.checked_add(part / scale)?;
    }
    (ns <= TIME_NS_MAX).then_some(ns)
}

/// Reads a range such as `1ms..2ms`, or a single time.
pub(super) fn parse_range(text: &str) -> Option<Range> {
    match text.split_once("..") {
        None => parse_ns(text).map(Range::exactly),
        Some((from, to)) => {
            let (from_ns, to_ns) = (parse_ns(from)?, parse_ns(to)?);
            (from_ns <= to_ns).then_some(Range { from_ns, to_ns })
        }
    }
}

/// A time in the longest unit that writes it without loss: `1500us`, `2ms`.
pub fn format_ns(ns: u64) -> String {
    let fits = |factor: u64| ns.is_multiple_of(factor);
    match ns {
        0 => "0s".into(),
        _ if fits(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if fits(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if fits(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

/// A range as [`parse_range`] reads it.
pub(super) fn format_range(range: Range) -> String {
    match range.is_fixed() {
        true => format_ns(range.from_ns),
        false => format!("{}..{}", format_ns(range.from_ns), format_ns(range.to_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_without_loss() {
        assert_eq!(parse_ns("250us"), Some(250_000));
        assert_eq!(parse_ns("1.5ms"), Some(1_500_000));
        assert_eq!(parse_ns("2 s"), Some(2_000_000_000));
        assert_eq!(parse_ns("1_000ns"), Some(1_000));
        assert_eq!(parse_ns("0"), Some(0));
        for wrong in [
            "",
            "5",
            "ms",
            "1.5ns",
            "-1ms",
            "1e3ms",
            "2 h",
            "99999999s",
            "1.2.3ms",
        ] {
            assert_eq!(parse_ns(wrong), None, "{wrong}");
        }
        assert_eq!(parse_range("2ms..1ms"), None);
        for ns in [0, 1, 999, 1_000, 1_500, 2_000_000, 3_000_000_000] {
            assert_eq!(parse_ns(&format_ns(ns)), Some(ns));
        }
    }
}
