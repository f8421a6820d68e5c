//! Search for the highest rate that keeps a latency limit.

use crate::plan::{Gaps, Pacing, Per};
use crate::run::{Failed, Generator, Run};

/// A latency limit: `percent` of the requests take at most `ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The percentile.
    pub percent: f64,
    /// Its limit in nanoseconds.
    pub ns: u64,
}

impl std::str::FromStr for Limit {
    type Err = String;

    /// Parses `p99:500us`.
    fn from_str(text: &str) -> Result<Limit, String> {
        let (percentile, time) = text
            .split_once(':')
            .ok_or_else(|| format!("'{text}' is not a limit; write for example p99:500us"))?;
        Ok(Limit {
            percent: crate::run::percentile_of(percentile)?,
            ns: crate::units::time(time)?.as_nanos() as u64,
        })
    }
}

/// Share of a rate that must be answered for the rate to count as carried.
const ANSWERED: f64 = 0.98;
/// Relative difference below which two rates count as the same.
const NEAR: f64 = 0.02;
/// Largest number of bisections.
const STEPS: usize = 12;

impl Limit {
    /// True if a run keeps the limit and everything asked was answered.
    pub fn is_kept_by(&self, run: &Run) -> bool {
        let Pacing::Open { rate, .. } = run.pacing else {
            return false;
        };
        run.tally.unanswered == 0
            && run.rate() >= ANSWERED * rate
            && run.tally.latency().percentile(self.percent) <= self.ns
    }
}

/// Finds the highest rate that keeps the limit. What a closed loop reaches is too much; the range
/// between zero and that is halved until its ends are 2 % apart. Calls `tell` after each run.
///
/// # Errors
/// No connection.
pub fn search(
    generator: &Generator,
    limit: Limit,
    gaps: Gaps,
    per: Per,
    mut tell: impl FnMut(&Run, bool),
) -> Result<Option<Run>, Failed> {
    let closed = generator.run_paced(Pacing::Closed)?;
    tell(&closed, false);
    let (mut low, mut high) = (0.0, closed.rate());
    let mut best = None;
    let mut rate = high * 0.5;
    for _ in 0..STEPS {
        if high - low <= NEAR * high || rate < 1.0 {
            break;
        }
        let run = generator.run_paced(Pacing::Open { rate, gaps, per })?;
        if generator.is_stopped() {
            break;
        }
        let is_kept = limit.is_kept_by(&run);
        tell(&run, is_kept);
        if is_kept {
            low = rate;
            best = Some(run);
        } else {
            high = rate;
        }
        rate = (low + high) / 2.0;
    }
    Ok(best)
}

/// Parses a list of rates: `10k,20k,50k` or `10k:100k:10k` (from, to, step).
///
/// # Errors
/// It is not such a list.
pub fn rates(text: &str) -> Result<Vec<f64>, String> {
    let numbers = |text: &str, by: char| text.split(by).map(crate::units::rate).collect();
    if !text.contains(':') {
        return numbers(text, ',');
    }
    let range: Vec<f64> = numbers(text, ':')?;
    let [from, to, step] = range[..] else {
        return Err(format!(
            "'{text}' is not a range; write FROM:TO:STEP, such as 10k:100k:10k"
        ));
    };
    let count = ((to - from) / step + 1e-9).floor();
    if !(0.0..10_000.0).contains(&count) {
        return Err(format!(
            "'{text}' is not a range from low to high with a step"
        ));
    }
    Ok((0..=count as usize)
        .map(|i| from + step * i as f64)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_rates_are_read() {
        let limit: Limit = "p99.9:2ms".parse().unwrap();
        assert_eq!((limit.percent, limit.ns), (99.9, 2_000_000));
        assert!("p101:1s".parse::<Limit>().is_err() && "99:1s".parse::<Limit>().is_err());
        assert_eq!(rates("1k,3k").unwrap(), [1e3, 3e3]);
        assert_eq!(rates("1k:3k:1k").unwrap(), [1e3, 2e3, 3e3]);
        assert!(rates("3k:1k:1k").is_err() && rates("1:2").is_err() && rates("x").is_err());
    }
}
