//! Repeatability of a program that prints a figure with an interval: over fresh processes,
//! the coefficient of variation of the figure, and how many intervals hold the grand median.

use hearth_stats::Summary;

/// Figures that one process printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reported {
    /// The figure.
    pub value: f64,
    /// The ends of its 95 % interval.
    pub low: f64,
    pub high: f64,
}

/// Over all processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeatability {
    pub runs: usize,
    /// The median of all figures.
    pub grand_median: f64,
    /// Sample standard deviation over mean.
    pub variation: f64,
    /// Number of intervals that hold the grand median.
    pub covering: usize,
}

/// None for fewer than two runs.
pub fn repeatability(reported: &[Reported]) -> Option<Repeatability> {
    let values: Vec<f64> = reported.iter().map(|run| run.value).collect();
    let count = values.len() as f64;
    if reported.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let grand_median = Summary::of(&values)?.median;
    let covers = |run: &&Reported| run.low <= grand_median && grand_median <= run.high;
    Some(Repeatability {
        runs: reported.len(),
        grand_median,
        variation: (squares / (count - 1.0)).sqrt() / mean,
        covering: reported.iter().filter(covers).count(),
    })
}

/// The latency of the first pair of a profile, one way.
pub fn hearth(profile: &str) -> Option<Reported> {
    let profile: serde_json::Value = serde_json::from_str(profile).ok()?;
    let figure = &profile["pairs"][0]["one_way_ns"];
    let number = |name: &str| figure[name].as_f64();
    Some(Reported {
        value: number("value")?,
        low: number("low")?,
        high: number("high")?,
    })
}

/// core-to-core-latency's figure for the nearest pair, which it prints in colour as
/// `Min  latency: 61.3ns ±0.2 cores: (1,0)`: a mean and the standard error of it.
pub fn core_to_core_latency(text: &str) -> Option<Reported> {
    let plain = without_colours(text);
    let line = plain.lines().find(|line| line.contains("Min  latency:"))?;
    let rest = line.split_once("latency:")?.1;
    let (value, rest) = rest.split_once("ns")?;
    let value: f64 = value.trim().parse().ok()?;
    let error = rest.trim_start().strip_prefix('±')?;
    let error: f64 = error.split_whitespace().next()?.parse().ok()?;
    Some(Reported {
        value,
        low: value - 1.96 * error,
        high: value + 1.96 * error,
    })
}

/// Without the escapes that begin with `ESC [` and end with `m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or("").to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_are_understood() {
        let ours = hearth(
            r#"{"pairs": [{"a": 0, "one_way_ns": {"value": 58.25, "low": 57.9, "high": 58.7}}]}"#,
        );
        let expected = Reported {
            value: 58.25,
            low: 57.9,
            high: 58.7,
        };
        assert_eq!(ours, Some(expected));
        assert_eq!(hearth(r#"{"pairs": []}"#), None);
        assert_eq!(hearth("0 1"), None);
        let theirs = "Num cores: 2\n    Min  latency: \u{1b}[1;37m61.3\u{1b}[0mns \
                      \u{1b}[2;37m±0.5\u{1b}[0m cores: (1,0)\n    Max  latency: …";
        let found = core_to_core_latency(theirs).expect("a line with a figure");
        assert_eq!(found.value, 61.3);
        assert!((found.low - 60.32).abs() < 1e-9 && (found.high - 62.28).abs() < 1e-9);
        assert_eq!(core_to_core_latency("nothing"), None);
    }

    #[test]
    fn variation_and_coverage() {
        let run = |value: f64, reach: f64| Reported {
            value,
            low: value - reach,
            high: value + reach,
        };
        let runs = [run(9.0, 0.5), run(10.0, 0.1), run(11.0, 1.5)];
        let found = repeatability(&runs).expect("three runs");
        assert_eq!(
            (found.runs, found.grand_median, found.covering),
            (3, 10.0, 2)
        );
        assert!((found.variation - 0.1).abs() < 1e-12);
        assert_eq!(repeatability(&runs[..1]), None);
    }
}
