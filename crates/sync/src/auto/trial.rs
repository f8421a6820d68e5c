//! A trial of another mode: windows there alternate with windows at home until one is known to be
//! better.

use hearth_stats::median;

use super::figures::{Seen, spread};

/// Gain that makes another mode home.
const MARGIN_UP: f64 = 0.03;
/// Loss up to which a mode of a lower number becomes home.
const MARGIN_DOWN: f64 = 0.01;
/// Fewest ratios that prove a mode better: one disturbed window at home spoils the two beside it.
/// One ratio may prove it worse.
const BETTER_MIN: usize = 5;
/// Largest number of ratios.
const RATIOS_MAX: usize = 24;
/// Change of home between two windows (beyond noise) that makes their ratio worthless, and the
/// number of such ratios after which the trial is given up.
const HOME_STEP: f64 = 0.25;
const DROPPED_MAX: u32 = 2;
/// Ratio below which a mode is left after its first moments.
const DISASTER: f64 = 0.3;
/// Weight of the noise known beforehand, in ratios.
const PRIOR: f64 = 4.0;
/// Upper bound of the standard errors by which a gain must exceed zero to move home.
const SURE_MAX: f64 = 6.0;
/// Standard error of a median over that of a mean.
const OF_MEDIAN: f64 = 1.2533;

/// The logarithmic gain that a mode needs over home: more if home is to be preferred.
pub(super) fn margin(prefers_home: bool) -> f64 {
    if prefers_home {
        (1.0 + MARGIN_UP).ln()
    } else {
        (1.0 - MARGIN_DOWN).ln()
    }
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialVerdict {
    Better,
    NotBetter,
    /// Undecided.
    Nothing,
}

/// Part of a trial: two away, two at home, and again.
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
    /// Logarithm of home's last rate.
    before: f64,
    away: f64,
    /// Noise of a window at home.
    noise: f64,
    margin: f64,
    /// Returns to a mode that was left; each demands more confidence.
    reversals: u32,
    /// Logarithms of rates away over those at home before and after.
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

    /// Rate away over rate at home, as far as known.
    pub(super) fn ratio(&self) -> Option<f64> {
        median(&self.ratios).map(f64::exp)
    }

    /// Takes the window that has ended in the present part. Some if that decides the trial.
    pub(super) fn observe(&mut self, seen: &Seen) -> Option<TrialVerdict> {
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

    /// Factor by which a single window must be lower to be believed.
    fn worse_by(&self) -> f64 {
        (5.0 * self.noise).max(0.15)
    }

    fn give_up(&mut self, log: f64) -> TrialVerdict {
        self.ratios.push(log - self.before);
        TrialVerdict::NotBetter
    }

    /// Completes the ratio of a window away with its second neighbour at home.
    fn pair(&mut self, home_log: f64) -> Option<TrialVerdict> {
        let step = home_log - self.before;
        let middle = home_log - step / 2.0;
        self.before = home_log;
        if step.abs() > HOME_STEP.max(6.0 * self.noise) {
            self.dropped += 1;
            return (self.dropped > DROPPED_MAX).then_some(TrialVerdict::Nothing);
        }
        self.ratios.push(self.away - middle);
        self.judge()
    }

    fn judge(&self) -> Option<TrialVerdict> {
        let count = self.ratios.len();
        let gain = median(&self.ratios)? - self.margin;
        let error = self.error();
        // The spread of few ratios says little.
        let sure = [4.0, 3.0, 3.0, 2.5, 2.5]
            .get(count - 1)
            .copied()
            .unwrap_or(2.0);
        let surer = (sure + 0.5 + 0.5 * f64::from(self.reversals)).min(SURE_MAX);
        if count >= BETTER_MIN && gain > surer * error {
            return Some(TrialVerdict::Better);
        }
        if gain < -sure * error {
            return Some(TrialVerdict::NotBetter);
        }
        match count {
            RATIOS_MAX.. if gain > 0.0 => Some(TrialVerdict::Nothing),
            RATIOS_MAX.. => Some(TrialVerdict::NotBetter),
            _ => None,
        }
    }

    /// Standard error of the ratios' median.
    fn error(&self) -> f64 {
        let count = self.ratios.len() as f64;
        // A window over the mean of two.
        let prior = 1.5 * self.noise * self.noise;
        let own = spread(&self.ratios).powi(2);
        let variance = (PRIOR * prior + count * own) / (PRIOR + count);
        OF_MEDIAN * (variance / count).sqrt()
    }
}
