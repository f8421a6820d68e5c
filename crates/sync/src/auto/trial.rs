//! A trial of another mode: windows there take turns with windows at home, until it is told which is better.

use super::figures::{Seen, median, spread};

/// Another mode must be better by so much to become home.
const MARGIN_UP: f64 = 0.03;
/// One of a lower number only must not be worse by more than so much.
const MARGIN_DOWN: f64 = 0.01;
/// So many ratios tell that a mode is better, at least: one window at home that something else disturbed spoils
/// the two beside it. That a mode is worse one may tell.
const BETTER_MIN: usize = 5;
/// So many ratios and no more.
const RATIOS_MAX: usize = 24;
/// Ratios of windows between which home itself changed by so much (and more than by noise) tell nothing;
/// so many of those, and the trial is given up.
const HOME_STEP: f64 = 0.25;
const DROPPED_MAX: u32 = 2;
/// A mode in whose first moments so little gets done is left at once.
const DISASTER: f64 = 0.3;
/// What is known of the noise beforehand counts as much as so many ratios.
const PRIOR: f64 = 4.0;
/// To move home the gain is to be so many standard errors, at most.
const SURE_MAX: f64 = 6.0;
/// A median is so much less sure than a mean.
const OF_MEDIAN: f64 = 1.2533;

/// By how much, as a logarithm, a mode is to be better than home: by more if home is to be preferred.
pub(super) fn margin(prefers_home: bool) -> f64 {
    if prefers_home {
        (1.0 + MARGIN_UP).ln()
    } else {
        (1.0 - MARGIN_DOWN).ln()
    }
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Better,
    NotBetter,
    /// It was not found out.
    Nothing,
}

/// Where a trial is: two parts there, two at home, and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    SettleAway,
    Away,
    SettleHome,
    Home,
}

#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) mode: usize,
    part: Part,
    /// The logarithm of home's last rate.
    before: f64,
    away: f64,
    /// A window's noise at home.
    noise: f64,
    margin: f64,
    /// Returns to a mode that was left, which make it harder to be sure.
    reversals: u32,
    /// Logarithms of rates there over those at home before and after.
    ratios: Vec<f64>,
    dropped: u32,
}

impl Trial {
    pub(super) fn new(
        mode: usize,
        home_log: f64,
        noise: f64,
        margin: f64,
        reversals: u32,
    ) -> Trial {
        Trial {
            mode,
            part: Part::SettleAway,
            before: home_log,
            away: home_log,
            noise,
            margin,
            reversals,
            ratios: Vec::with_capacity(RATIOS_MAX),
            dropped: 0,
        }
    }

    /// The mode of the present part.
    pub(super) fn mode_now(&self, home: usize) -> usize {
        if self.is_away() { self.mode } else { home }
    }

    pub(super) fn is_away(&self) -> bool {
        matches!(self.part, Part::SettleAway | Part::Away)
    }

    pub(super) fn is_settling(&self) -> bool {
        matches!(self.part, Part::SettleAway | Part::SettleHome)
    }

    /// There over at home, as far as it is known.
    pub(super) fn ratio(&self) -> Option<f64> {
        median(self.ratios.clone()).map(f64::exp)
    }

    /// Takes the window that has ended in the present part. Some if that decides.
    pub(super) fn observe(&mut self, seen: &Seen) -> Option<Verdict> {
        let log = seen.rate.ln();
        match self.part {
            Part::SettleAway => {
                self.part = Part::Away;
                let is_disaster = self.ratios.is_empty() && log < self.before + DISASTER.ln();
                is_disaster.then(|| self.give_up(log))
            }
            Part::Away => {
                self.part = Part::SettleHome;
                self.away = log;
                // Clearly worse needs no second look at home.
                let is_worse = self.ratios.is_empty() && log < self.before - self.worse_by();
                is_worse.then(|| {
                    self.part = Part::Away;
                    self.give_up(log)
                })
            }
            Part::SettleHome => {
                self.part = Part::Home;
                None
            }
            Part::Home => {
                self.part = Part::SettleAway;
                self.pair(log)
            }
        }
    }

    /// A single window is believed if it is this much below.
    fn worse_by(&self) -> f64 {
        (5.0 * self.noise).max(0.15)
    }

    fn give_up(&mut self, log: f64) -> Verdict {
        self.ratios.push(log - self.before);
        Verdict::NotBetter
    }

    /// A window there has its second neighbour at home.
    fn pair(&mut self, home_log: f64) -> Option<Verdict> {
        let step = home_log - self.before;
        let middle = home_log - step / 2.0;
        self.before = home_log;
        if step.abs() > HOME_STEP.max(6.0 * self.noise) {
            self.dropped += 1;
            return (self.dropped > DROPPED_MAX).then_some(Verdict::Nothing);
        }
        self.ratios.push(self.away - middle);
        self.judge()
    }

    fn judge(&self) -> Option<Verdict> {
        let count = self.ratios.len();
        let gain = median(self.ratios.clone())? - self.margin;
        let error = self.error();
        // With few ratios their own spread says little.
        let sure = [4.0, 3.0, 3.0, 2.5, 2.5]
            .get(count - 1)
            .copied()
            .unwrap_or(2.0);
        let surer = (sure + 0.5 + 0.5 * f64::from(self.reversals)).min(SURE_MAX);
        if count >= BETTER_MIN && gain > surer * error {
            return Some(Verdict::Better);
        }
        if gain < -sure * error {
            return Some(Verdict::NotBetter);
        }
        match count {
            RATIOS_MAX.. if gain > 0.0 => Some(Verdict::Nothing),
            RATIOS_MAX.. => Some(Verdict::NotBetter),
            _ => None,
        }
    }

    /// The standard error of the ratios' median.
    fn error(&self) -> f64 {
        let count = self.ratios.len() as f64;
        // A window over the mean of two.
        let prior = 1.5 * self.noise * self.noise;
        let own = spread(&self.ratios).powi(2);
        let variance = (PRIOR * prior + count * own) / (PRIOR + count);
        OF_MEDIAN * (variance / count).sqrt()
    }
}
