//! Mapping of values to positions, and the values that an axis names.

use hearth_machine::topology::Bytes;

/// Mapping of values to positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are equally far apart, and powers of two are named. Only for values above 0.
    Log2,
    /// The same with powers of ten.
    Log10,
}

/// Unit of values, which determines how they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    #[default]
    Number,
    /// Bytes, written with powers of 1024: `4 KiB`.
    Bytes,
    /// Nanoseconds, written as ns, µs, ms or s.
    Nanoseconds,
    /// Bytes a nanosecond, written as GB/s, which is the same number.
    BytesPerNanosecond,
    /// Per cent, `12 %`: the value 12.
    Percent,
}

impl Unit {
    /// A value for people: three significant digits, with its unit.
    ///
    /// ```
    /// use hearth_draw::scale::Unit;
    /// assert_eq!(Unit::Nanoseconds.show(1_234.0), "1.23 µs");
    /// assert_eq!(Unit::Bytes.show(49_152.0), "48 KiB");
    /// assert_eq!(Unit::Number.show(0.5), "0.5");
    /// ```
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "?".into();
        }
        match self {
            Unit::Number => digits(value),
            Unit::Bytes if value >= 0.0 => Bytes(value.round() as u64).to_string(),
            Unit::Bytes => format!("{} B", digits(value)),
            Unit::Nanoseconds => {
                let (factor, unit) = unit_of_time(value);
                format!("{} {unit}", digits(value / factor))
            }
            Unit::BytesPerNanosecond => format!("{} GB/s", digits(value)),
            Unit::Percent => format!("{} %", digits(value)),
        }
    }
}

/// The unit in which such a time is written: its length in nanoseconds, and its name.
fn unit_of_time(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        size if size >= 0.999_5e9 => (1e9, "s"),
        size if size >= 0.999_5e6 => (1e6, "ms"),
        size if size >= 999.5 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

/// Names of ascending, evenly spaced ticks in nanoseconds: all in the unit of the last, with enough
/// digits to tell them apart, however far from zero they are.
pub(crate) fn moments(ticks: &[f64]) -> Vec<String> {
    let [first, .., last] = ticks else {
        return ticks.iter().map(|&ns| Unit::Nanoseconds.show(ns)).collect();
    };
    let (factor, unit) = unit_of_time(*last);
    let step = (last - first) / (ticks.len() - 1) as f64 / factor;
    // A step is 1, 2 or 5 times some power of ten; a little slack allows for rounding.
    let decimals = (-(step.log10() + 1e-6).floor()).clamp(0.0, 9.0) as usize;
    let name = |ns: &f64| {
        let text = format!("{:.decimals$}", ns / factor);
        let short = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        format!("{short} {unit}")
    };
    ticks.iter().map(name).collect()
}

/// A number with three significant digits, and no trailing zeros.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    let before = size.log10().floor() as i32 + 1;
    let decimals = usize::try_from(3 - before).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A range of values mapped onto a range of positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Span {
    /// Whether the scale has a position for a value.
    pub(crate) fn takes(scale: Scale, value: f64) -> bool {
        value.is_finite() && (scale == Scale::Linear || value > 0.0)
    }

    /// The span of all values that the scale takes, with a margin; `None` if there are none.
    pub(crate) fn around(
        scale: Scale,
        values: impl IntoIterator<Item = f64>,
        places: (f64, f64),
    ) -> Option<Span> {
        let mut ends: Option<(f64, f64)> = None;
        for value in values {
            if Span::takes(scale, value) {
                ends = Some(ends.map_or((value, value), |(low, high)| {
                    (low.min(value), high.max(value))
                }));
            }
        }
        let (low, high) = ends?;
        let (low, high) = match scale {
            Scale::Linear => {
                // From zero, if that does not squeeze the data.
                let low = if low > 0.0 && low < 0.6 * high {
                    0.0
                } else {
                    low
                };
                let room = if low == high {
                    1.0
                } else {
                    0.04 * (high - low)
                };
                let low = if low == 0.0 { 0.0 } else { low - room };
                (low, high + room)
            }
            Scale::Log2 | Scale::Log10 => {
                let room = if high / low < 1.01 {
                    2.0
                } else {
                    (high / low).powf(0.03)
                };
                // The margin must stay inside the range of numbers.
                (
                    (low / room).max(f64::MIN_POSITIVE),
                    (high * room).min(f64::MAX),
                )
            }
        };
        Some(Span::of(scale, (low, high), places))
    }

    pub(crate) fn of(scale: Scale, values: (f64, f64), places: (f64, f64)) -> Span {
        Span {
            scale,
            low: values.0,
            high: values.1,
            from: places.0,
            to: places.1,
        }
    }

    fn turned(self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log2 | Scale::Log10 => value.max(f64::MIN_POSITIVE).ln(),
        }
    }

    /// The position of a value that the scale takes.
    pub(crate) fn place(self, value: f64) -> f64 {
        let (low, high) = (self.turned(self.low), self.turned(self.high));
        let width = high - low;
        let share = if width == 0.0 {
            0.5
        } else {
            (self.turned(value) - low) / width
        };
        self.from + share * (self.to - self.from)
    }

    /// The value at a position.
    pub(crate) fn value(self, place: f64) -> f64 {
        let (low, high) = (self.turned(self.low), self.turned(self.high));
        let turned = low + (place - self.from) / (self.to - self.from) * (high - low);
        match self.scale {
            Scale::Linear => turned,
            Scale::Log2 | Scale::Log10 => turned.exp(),
        }
    }

    /// Whether a value lies inside.
    pub(crate) fn holds(self, value: f64) -> bool {
        // A little slack allows for rounding at the ends.
        let slack = match self.scale {
            Scale::Linear => 1e-9 * (self.high - self.low),
            Scale::Log2 | Scale::Log10 => 1e-9 * self.low,
        };
        Span::takes(self.scale, value) && (self.low - slack..=self.high + slack).contains(&value)
    }

    /// The nearest value inside.
    pub(crate) fn clamp(self, value: f64) -> f64 {
        value.max(self.low).min(self.high)
    }

    /// Values to name, about `count` of them, ascending.
    pub(crate) fn ticks(self, count: usize) -> Vec<f64> {
        let ticks = match self.scale {
            Scale::Linear => self.linear_ticks(count),
            Scale::Log2 => self.power_ticks(2.0, count),
            Scale::Log10 => {
                let decades = (self.high / self.low).log10();
                if decades < 2.5 {
                    self.decimal_ticks()
                } else {
                    self.power_ticks(10.0, count)
                }
            }
        };
        ticks.into_iter().filter(|&tick| self.holds(tick)).collect()
    }

    fn linear_ticks(self, count: usize) -> Vec<f64> {
        let width = self.high - self.low;
        if width <= 0.0 || !width.is_finite() {
            return vec![self.low];
        }
        let rough = width / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        let first = (self.low / step).ceil();
        let last = (self.high / step).floor();
        let steps = (last - first).clamp(0.0, 1000.0) as u32;
        (0..=steps).map(|i| (first + f64::from(i)) * step).collect()
    }

    fn power_ticks(self, base: f64, count: usize) -> Vec<f64> {
        // A little slack, so that an end that is a power counts in spite of rounding.
        let first = (self.low.ln() / base.ln() - 1e-9).ceil() as i32;
        let last = (self.high.ln() / base.ln() + 1e-9).floor() as i32;
        let powers = usize::try_from(last - first + 1).unwrap_or(0);
        let step = powers.div_ceil(count.max(1)).max(1);
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        (first..=last)
            .filter(|power| power.rem_euclid(step) == 0)
            .map(|power| base.powi(power))
            .collect()
    }

    /// 1, 2 and 5 times the powers of ten; or even steps where that gives hardly any.
    fn decimal_ticks(self) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let ticks: Vec<f64> = (first..=last)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)))
            .filter(|&tick| self.holds(tick))
            .collect();
        if ticks.len() >= 3 {
            ticks
        } else {
            self.linear_ticks(5)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let span = Span::of(Scale::Log2, (64.0, 65536.0), (0.0, 100.0));
        assert_eq!(
            span.ticks(6),
            [64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0]
        );
        let span = Span::of(Scale::Linear, (0.0, 97.0), (0.0, 100.0));
        assert_eq!(span.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let span = Span::of(Scale::Log10, (1.5, 80.0), (0.0, 100.0));
        assert_eq!(span.ticks(5), [2.0, 5.0, 10.0, 20.0, 50.0]);
        let span = Span::of(Scale::Log10, (60.0, 75.0), (0.0, 100.0));
        assert!(span.ticks(5).len() >= 3);
    }

    #[test]
    fn moments_are_round_and_told_apart() {
        let names = |from: f64, to: f64| {
            let span = Span::of(Scale::Linear, (from, to), (0.0, 100.0));
            moments(&span.ticks(5)).join(", ")
        };
        assert_eq!(names(481e3, 2.3e6), "0.5 ms, 1 ms, 1.5 ms, 2 ms");
        assert_eq!(names(0.0, 90e3), "0 µs, 20 µs, 40 µs, 60 µs, 80 µs");
        assert_eq!(
            names(100.000_1e9, 100.003e9),
            "100.001 s, 100.002 s, 100.003 s"
        );
        assert_eq!(names(7e9, 7e9), "7 s");
        assert_eq!(moments(&[]), [""; 0]);
    }

    #[test]
    fn places_are_in_proportion() {
        let span = Span::of(Scale::Log2, (1.0, 16.0), (100.0, 0.0));
        assert!((span.place(4.0) - 50.0).abs() < 1e-9);
        assert!(Span::around(Scale::Log2, [0.0, -1.0, f64::NAN], (0.0, 1.0)).is_none());
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(digits(0.012345), "0.0123");
        assert_eq!(digits(99.96), "100");
        assert_eq!(digits(1234.0), "1234");
        assert_eq!(digits(-2.5), "-2.5");
        assert_eq!(Unit::Nanoseconds.show(999.6), "1 µs");
        assert_eq!(Unit::Nanoseconds.show(2.5e9), "2.5 s");
    }
}
