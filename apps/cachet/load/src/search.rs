//! The highest rate at which latency keeps within a limit.

use crate::plan::{Gaps, Pacing, Per};
use crate::run::{Failed, Generator, Run};

/// What has to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// So many percent of the requests …
    pub percent: f64,
    /// … take at most this.
    pub ns: u64,
}

impl std::str::FromStr for Limit {
    type Err = String;

    /// `p99:500us`.
    fn from_str(text: &str) -> Result<Limit, String> {
        let (percentile, time) = text
            .split_once(':')
            .ok_or_else(|| format!("'{text}' is no limit; write for example p99:500us"))?;
        Ok(Limit {
            percent: crate::run::percentile_of(percentile)?,
            ns: crate::units::time(time)?.as_nanos() as u64,
        })
    }
}

/// A share of the rate that has to be answered for it to be carried.
const ANSWERED: f64 = 0.98;
/// Rates nearer to each other than this are not told apart.
const NEAR: f64 = 0.02;
/// Halvings at the most.
const STEPS: usize = 12;

impl Limit {
    /// Does a run keep it, with all it was asked answered?
    pub fn is_kept_by(&self, run: &Run) -> bool {
        let Pacing::Open { rate, .. } = run.pacing else {
            return false;
        };
        run.tally.unanswered == 0
            && run.rate() >= ANSWERED * rate
            && run.tally.latency().percentile(self.percent) <= self.ns
    }
}

/// Finds the highest rate that keeps the limit: what a closed loop reaches is too much, and between
/// nothing and that the range is halved until its ends are 2 % apart. Calls `tell` after each run.
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

/// Rates to try one after the other: `10k,20k,50k` or `10k:100k:10k` (from, to, step).
///
/// # Errors
/// They are no such rates.
pub fn rates(text: &str) -> Result<Vec<f64>, String> {
    let numbers = |text: &str, by: char| text.split(by).map(crate::units::rate).collect();
    if !text.contains(':') {
        return numbers(text, ',');
    }
    let range: Vec<f64> = numbers(text, ':')?;
    let [from, to, step] = range[..] else {
        return Err(format!(
            "'{text}' is no range; write FROM:TO:STEP, as 10k:100k:10k"
        ));
    };
    let count = ((to - from) / step + 1e-9).floor();
    if !(0.0..10_000.0).contains(&count) {
        return Err(format!(
            "'{text}' is no range that goes from low to high in steps"
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
