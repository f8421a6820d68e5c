//! Internal thrashing: throughput that falls once threads exceed a number.

use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// Rate of false reports of a fall.
pub const LEVEL: f64 = 0.01;

/// The runs with one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// Number of threads.
    pub threads: u32,
    /// The throughput of each run, in any unit.
    pub throughputs: Vec<f64>,
}

/// Reason why a series cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SeriesError {
    /// Fewer than two numbers of threads.
    #[error("a fall needs runs with at least two numbers of threads")]
    TooFewPoints,
    /// A number of threads with fewer than two runs, so its spread is unknown.
    #[error("there are fewer than two runs with {}, so their spread is not known; repeat them", counted(*.0))]
    TooFewRuns(u32),
    /// A throughput that is negative or not a number.
    #[error("a throughput with {} is negative or not a number; measure it again", counted(*.0))]
    NotAThroughput(u32),
    /// A number of threads given twice.
    #[error("{} appears twice; put its runs into one point", counted(*.0))]
    Twice(u32),
}

fn counted(threads: u32) -> String {
    match threads {
        1 => "1 thread".to_owned(),
        _ => format!("{threads} threads"),
    }
}

/// A line of a text that is not a run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}: {what}")]
pub struct RunError {
    /// The line, from 1.
    pub line: usize,
    /// The fault.
    pub what: String,
}

/// Reads runs from a text: one a line, threads and then throughput, separated by a comma, a
/// semicolon or blanks. A first line of words is a heading, `#` begins a remark, and further
/// columns are ignored.
///
/// ```
/// use hearth_model::locality::thrashing::read;
///
/// let series = read("threads,throughput\n2,100\n2,101\n4,90\n4,91\n").unwrap();
/// assert_eq!(series[1].threads, 4);
/// assert_eq!(series[1].throughputs, [90.0, 91.0]);
/// ```
///
/// # Errors
///
/// The first line that is not a run.
pub fn read(text: &str) -> Result<Vec<Runs>, RunError> {
    let mut series: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut is_first = true;
    for (number, line) in (1..).zip(text.lines()) {
        let run = line.split('#').next().unwrap_or_default();
        let mut words = run
            .split(|c: char| matches!(c, ',' | ';') || c.is_whitespace())
            .filter(|word| !word.is_empty());
        let Some(threads) = words.next() else {
            continue;
        };
        let is_heading = is_first && threads.parse::<f64>().is_err();
        is_first = false;
        if is_heading {
            continue;
        }
        let wrong = |what: String| RunError { line: number, what };
        let threads = threads.parse().ok().filter(|threads| *threads > 0);
        let threads =
            threads.ok_or_else(|| wrong("a number of threads is wanted first".to_owned()))?;
        let throughput = words
            .next()
            .ok_or_else(|| wrong("a throughput is wanted behind the threads".to_owned()))?;
        let throughput = throughput
            .parse()
            .map_err(|_| wrong(format!("`{throughput}` is not a throughput")))?;
        series.entry(threads).or_default().push(throughput);
    }
    let runs = series.into_iter();
    Ok(runs
        .map(|(threads, throughputs)| Runs {
            threads,
            throughputs,
        })
        .collect())
}

/// A fall that is unlikely to be chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thrashing {
    /// Number of threads with the highest throughput.
    pub threads_best: u32,
    /// The mean there.
    pub throughput_best: f64,
    /// The first number of threads with a significant fall.
    pub threads_first: u32,
    /// Number of threads with the deepest significant fall.
    pub threads_worst: u32,
    /// The mean there.
    pub throughput_worst: f64,
    /// The chance of such a difference without a fall, corrected for all comparisons.
    pub chance: f64,
}

impl fmt::Display for Thrashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "internal thrashing: throughput is highest with {} ({:.4}) and falls from {} threads \
             on, to {:.4} with {} threads, {:.1} % below (by chance in less than {:.2} % of cases)",
            counted(self.threads_best),
            self.throughput_best,
            self.threads_first,
            self.throughput_worst,
            self.threads_worst,
            100.0 * (1.0 - self.throughput_worst / self.throughput_best),
            // Rounded up, so that "less than" is true.
            (100.0 * self.chance * 100.0).ceil().max(1.0) / 100.0
        )
    }
}

/// Tests whether throughput falls as threads are added. `None` if no fall is significant at
/// [`LEVEL`].
///
/// Compares the best point with each that has more threads by Welch's one-sided test. Since the
/// best was chosen by its figures, the chances are multiplied by the number of all pairs of points
/// among which it could have been chosen.
///
/// # Errors
///
/// If the series has too few points or runs, or figures that are not throughputs.
pub fn detect(series: &[Runs]) -> Result<Option<Thrashing>, SeriesError> {
    let mut points = series
        .iter()
        .map(Point::new)
        .collect::<Result<Vec<_>, _>>()?;
    points.sort_by_key(|point| point.threads);
    if points.len() < 2 {
        return Err(SeriesError::TooFewPoints);
    }
    if let Some(pair) = points.windows(2).find(|w| w[0].threads == w[1].threads) {
        return Err(SeriesError::Twice(pair[0].threads));
    }
    let mut best = &points[0];
    for point in &points {
        if point.mean > best.mean {
            best = point;
        }
    }
    let comparisons = (points.len() * (points.len() - 1) / 2) as f64;
    let mut found: Option<Thrashing> = None;
    for point in points.iter().filter(|point| point.threads > best.threads) {
        let chance = (chance_of_fall(best, point) * comparisons).min(1.0);
        if chance > LEVEL {
            continue;
        }
        let fall = found.get_or_insert(Thrashing {
            threads_best: best.threads,
            throughput_best: best.mean,
            threads_first: point.threads,
            threads_worst: point.threads,
            throughput_worst: point.mean,
            chance,
        });
        if point.mean < fall.throughput_worst {
            fall.threads_worst = point.threads;
            fall.throughput_worst = point.mean;
            fall.chance = chance;
        }
    }
    Ok(found)
}

struct Point {
    threads: u32,
    runs: f64,
    mean: f64,
    variance: f64,
}

impl Point {
    fn new(runs: &Runs) -> Result<Self, SeriesError> {
        let throughputs = &runs.throughputs;
        if throughputs.len() < 2 {
            return Err(SeriesError::TooFewRuns(runs.threads));
        }
        if throughputs.iter().any(|&t| !t.is_finite() || t < 0.0) {
            return Err(SeriesError::NotAThroughput(runs.threads));
        }
        let count = throughputs.len() as f64;
        let mean = throughputs.iter().sum::<f64>() / count;
        let squares: f64 = throughputs.iter().map(|t| (t - mean).powi(2)).sum();
        Ok(Point {
            threads: runs.threads,
            runs: count,
            mean,
            variance: squares / (count - 1.0),
        })
    }
}

/// The chance of means at least this far apart if the second is no lower than the first.
fn chance_of_fall(first: &Point, second: &Point) -> f64 {
    let difference = first.mean - second.mean;
    let (a, b) = (first.variance / first.runs, second.variance / second.runs);
    let error = (a + b).sqrt();
    if difference <= 0.0 {
        return 1.0;
    }
    if error == 0.0 {
        // Runs without any spread cannot explain a difference.
        return 0.0;
    }
    let freedom = (a + b).powi(2) / (a * a / (first.runs - 1.0) + b * b / (second.runs - 1.0));
    tail(difference / error, freedom)
}

/// The upper tail of Student's distribution beyond `t ≥ 0`: ½ I(ν/(ν+t²); ν/2, ½).
fn tail(t: f64, freedom: f64) -> f64 {
    let x = freedom / (freedom + t * t);
    0.5 * incomplete_beta(x, freedom / 2.0, 0.5)
}

/// The regularised incomplete beta function, by its continued fraction on the side where that
/// converges fast.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function, evaluated from its far end: its terms
/// converge, and 400 are more than the arguments here need.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let mut value = 0.0;
    for term in (1..=400_u32).rev() {
        let m = f64::from(term / 2);
        let coefficient = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        value = coefficient / (1.0 + value);
    }
    1.0 / (1.0 + value)
}

/// The logarithm of the gamma function for positive arguments: Stirling's series, after moving the
/// argument above 10, where four terms give 13 digits.
fn ln_gamma(argument: f64) -> f64 {
    let (mut x, mut shift) = (argument, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square)
        / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_agree_with_tables() {
        // Student's distribution as printed in tables: t, degrees of freedom, upper tail.
        for (t, freedom, expected) in [
            (6.314, 1.0, 0.05),
            (2.920, 2.0, 0.05),
            (2.015, 5.0, 0.05),
            (3.365, 5.0, 0.01),
            (2.764, 10.0, 0.01),
            (1.697, 30.0, 0.05),
            (2.358, 120.0, 0.01),
        ] {
            let tail = tail(t, freedom);
            assert!(
                (tail / expected - 1.0).abs() < 0.01,
                "{t} {freedom}: {tail}"
            );
        }
        assert!((tail(0.0, 7.0) - 0.5).abs() < 1e-12);
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-10);
    }
}
