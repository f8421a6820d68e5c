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

/// Least factor between figures of one state and of the next: half-way, by factors, to the 1.5 from
/// which the probe tells states apart.
const STATES_APART: f64 = 1.22;

/// Repeatability in each state that the processes met, the fastest first. Where each printed one
/// figure for one state, this is [`repeatability`] of all.
#[derive(Clone, Debug, PartialEq)]
pub struct ByState {
    /// Figures of each state that two processes or more printed.
    pub states: Vec<Repeatability>,
    /// Figures near no other: a mixture of states that was not told apart, or a state met once.
    /// Their intervals hold no grand median.
    pub alone: usize,
}

impl ByState {
    /// Number of printed intervals, and of those that hold their state's grand median.
    pub fn intervals(&self) -> (usize, usize) {
        let runs: usize = self.states.iter().map(|state| state.runs).sum();
        let covering = self.states.iter().map(|state| state.covering).sum();
        (runs + self.alone, covering)
    }

    /// The largest variation of a state.
    pub fn variation(&self) -> f64 {
        self.states
            .iter()
            .map(|state| state.variation)
            .fold(0.0, f64::max)
    }
}

/// The figures of all processes by state: those that follow each other without a gap of
/// [`STATES_APART`] are of one, since a process prints a figure for each state that it met. None
/// if no two are alike.
pub fn by_state(reported: &[Vec<Reported>]) -> Option<ByState> {
    let mut all: Vec<Reported> = reported.iter().flatten().copied().collect();
    // Without states nothing is cut, however much the figures differ.
    if reported.iter().all(|run| run.len() == 1) {
        let states = vec![repeatability(&all)?];
        return Some(ByState { states, alone: 0 });
    }
    all.sort_by(|a, b| a.value.total_cmp(&b.value));
    let groups = all.chunk_by(|a, b| b.value < a.value * STATES_APART);
    let groups: Vec<&[Reported]> = groups.collect();
    let states: Vec<Repeatability> = groups.iter().filter_map(|g| repeatability(g)).collect();
    (!states.is_empty()).then(|| ByState {
        alone: groups.iter().filter(|group| group.len() == 1).count(),
        states,
    })
}

/// The latency of the first pair of a profile, one way: by state if it has several.
pub fn hearth(profile: &str) -> Option<Vec<Reported>> {
    let profile: serde_json::Value = serde_json::from_str(profile).ok()?;
    let pair = &profile["pairs"][0];
    let figure = |of: &serde_json::Value| {
        let number = |name: &str| of["one_way_ns"][name].as_f64();
        Some(Reported {
            value: number("value")?,
            low: number("low")?,
            high: number("high")?,
        })
    };
    match pair["states"].as_array() {
        None => Some(vec![figure(pair)?]),
        Some(states) => states.iter().map(figure).collect(),
    }
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
        assert_eq!(ours, Some(vec![expected]));
        let states = hearth(
            r#"{"pairs": [{"one_way_ns": {"value": 95, "low": 25, "high": 130}, "states": [
                {"one_way_ns": {"value": 26, "low": 25, "high": 27}},
                {"one_way_ns": {"value": 124, "low": 118, "high": 130}}]}]}"#,
        );
        let values: Option<Vec<f64>> =
            states.map(|states| states.iter().map(|state| state.value).collect());
        assert_eq!(values, Some(vec![26.0, 124.0]));
        assert_eq!(hearth(r#"{"pairs": []}"#), None);
        assert_eq!(hearth("0 1"), None);
        let theirs = "Num cores: 2\n    Min  latency: \u{1b}[1;37m61.3\u{1b}[0mns \
                      \u{1b}[2;37m±0.5\u{1b}[0m cores: (1,0)\n    Max  latency: …";
        let found = core_to_core_latency(theirs).expect("a line with a figure");
        assert_eq!(found.value, 61.3);
        assert!((found.low - 60.32).abs() < 1e-9 && (found.high - 62.28).abs() < 1e-9);
        assert_eq!(core_to_core_latency("nothing"), None);
    }

    fn run(value: f64, reach: f64) -> Reported {
        Reported {
            value,
            low: value - reach,
            high: value + reach,
        }
    }

    #[test]
    fn states_have_their_own_coverage() {
        let runs = [
            vec![run(26.0, 1.0), run(124.0, 5.0)],
            vec![run(26.4, 1.0)],
            vec![run(123.0, 0.1)],
            vec![run(25.8, 1.0), run(125.0, 5.0)],
            // Both states in one figure.
            vec![run(70.0, 50.0)],
        ];
        let found = by_state(&runs).expect("two states");
        let medians: Vec<f64> = found
            .states
            .iter()
            .map(|state| state.grand_median)
            .collect();
        assert_eq!(medians, [26.0, 124.0]);
        // Of seven, the one of 123 is too sure, and the mixture counts for nothing.
        assert_eq!((found.intervals(), found.alone), ((7, 5), 1));
        assert!(found.variation() < 0.02, "{found:?}");
        assert_eq!(by_state(&[vec![run(1.0, 0.1), run(2.0, 0.1)]]), None);
    }

    #[test]
    fn without_states_all_figures_are_of_one() {
        let runs = [run(26.0, 1.0), run(124.0, 5.0), run(25.0, 1.5)];
        let alone = runs.map(|run| vec![run]);
        let found = by_state(&alone).expect("three runs");
        assert_eq!(found.states, [repeatability(&runs).expect("three runs")]);
        assert_eq!(found.alone, 0);
    }

    #[test]
    fn variation_and_coverage() {
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
