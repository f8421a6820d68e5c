//! Windows, and statistics over them.

use std::collections::VecDeque;

use hearth_stats::median;

/// Number of windows at home in the statistics.
const RECENT: usize = 15;
/// Lower bound of the noise: clocks and window ends alone make as much.
const NOISE_MIN: f64 = 0.003;
/// Ratio of standard deviation to median deviation in a normal distribution.
const DEVIATIONS: f64 = 1.4826;

/// Counts of a stretch of time in one mode. Ticks are of any steady clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Length.
    pub ticks: u64,
    /// Calls that ended in it.
    pub calls: u64,
    /// Calls whose section was timed.
    pub samples: u64,
    /// Time in the timed sections, waiting excluded.
    pub section_ticks: u64,
    /// Calls that had to wait before their section.
    pub contended: u64,
    /// Time that those calls waited.
    pub wait_ticks: u64,
    /// Number of different callers, as far as known.
    pub callers: u32,
}

impl Window {
    pub(super) fn seen(&self) -> Option<Seen> {
        (self.ticks > 0 && self.calls > 0).then(|| Seen {
            rate: self.calls as f64 / self.ticks as f64,
            calls: self.calls as f64,
            section: (self.samples > 0).then(|| self.section_ticks as f64 / self.samples as f64),
            contended: (self.contended as f64 / self.calls as f64).min(1.0),
            wait: self.wait_ticks as f64 / self.calls as f64,
            callers: f64::from(self.callers),
        })
    }
}

/// A window's figures, independent of its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Calls per tick.
    pub(super) rate: f64,
    pub(super) calls: f64,
    /// Ticks per section.
    pub(super) section: Option<f64>,
    /// Share of calls that waited.
    pub(super) contended: f64,
    /// Ticks of waiting per call.
    pub(super) wait: f64,
    pub(super) callers: f64,
}

/// The last windows at home.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    windows: VecDeque<Seen>,
}

impl Recent {
    pub(super) fn push(&mut self, seen: Seen) {
        if self.windows.len() == RECENT {
            self.windows.pop_front();
        }
        self.windows.push_back(seen);
    }

    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    /// Forgets all but the last windows.
    pub(super) fn keep_last(&mut self, count: usize) {
        let old = self.windows.len().saturating_sub(count);
        self.windows.drain(..old);
    }

    /// Median of calls per tick.
    pub(super) fn rate(&self) -> Option<f64> {
        self.median_of(self.windows.len(), |seen| Some(seen.rate))
    }

    /// Medians of all figures.
    pub(super) fn median(&self) -> Option<Seen> {
        let all = self.windows.len();
        Some(Seen {
            rate: self.rate()?,
            calls: self.median_of(all, |seen| Some(seen.calls))?,
            section: self.median_of(all, |seen| seen.section),
            contended: self.median_of(all, |seen| Some(seen.contended))?,
            wait: self.median_of(all, |seen| Some(seen.wait))?,
            callers: self.median_of(all, |seen| Some(seen.callers))?,
        })
    }

    /// Median of a figure over the last windows that have it.
    pub(super) fn median_of(
        &self,
        last: usize,
        figure: impl Fn(&Seen) -> Option<f64>,
    ) -> Option<f64> {
        let values = self.windows.iter().rev().take(last).filter_map(figure);
        median(&values.collect::<Vec<_>>())
    }

    /// Standard deviation of a window's logarithmic rate, from the differences of neighbours, so
    /// that drift does not count as noise.
    pub(super) fn noise(&self) -> f64 {
        let log = |seen: &Seen| seen.rate.ln();
        let steps: Vec<f64> = self
            .windows
            .iter()
            .zip(self.windows.iter().skip(1))
            .map(|(a, b)| (log(b) - log(a)).abs())
            .collect();
        let measured = median(&steps).map_or(0.1, |step| DEVIATIONS * step / 2f64.sqrt());
        measured.max(NOISE_MIN)
    }
}

/// Standard deviation, by the median deviation from the median.
pub(super) fn spread(values: &[f64]) -> f64 {
    let Some(middle) = median(values) else {
        return 0.0;
    };
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    DEVIATIONS * median(&away).unwrap_or(0.0)
}
