//! A controller that finds, by trying and at a bounded price, the better of several ways of doing
//! the same.
//!
//! Pure: no clock and no threads. The caller counts its work in [`Window`]s and passes each to
//! [`Controller::observe`], which answers with the mode for the next window and its length.
//!
//! The measure is calls per tick. One mode is *home*; from time to time the controller tries
//! another, in windows that alternate with windows at home, so that a drifting load affects both.
//! It judges the ratios of neighbouring windows by their median and its confidence. A trial ends as
//! soon as it is decided, and at once if it is clearly worse.
//!
//! What keeps it calm and cheap:
//! - another mode must be better by a margin, and one of a lower number (which by convention needs
//!   less, such as no core of its own) may be worse by a smaller one; between the two nothing
//!   changes;
//! - each return to a mode left under the same load needs more confidence than the one before;
//! - trials of a mode are twice as far apart after each that changes nothing, and near again once
//!   the load differs;
//! - the losses of trials are paid from a credit that grows by a fiftieth of the time.

mod explain;
mod figures;
mod load;
mod trial;

#[cfg(test)]
mod tests;

pub use figures::Window;

use figures::{Recent, Seen};
use load::Load;
use trial::{Trial, TrialVerdict};

/// Shortest window in seconds; longer if fewer than [`CALLS_MIN`] calls would fall into it. Long
/// compared with a change of modes, short enough that a window in a bad mode costs little.
const WINDOW: f64 = 0.005;
const WINDOW_MAX: f64 = 0.08;
const CALLS_MIN: f64 = 64.0;
/// First part of a stay in a mode, in which caches fill and sleepers wake: not judged.
const SETTLE: f64 = 0.001;
/// Windows at home before the first trial: they give the noise.
const KNOWN_MIN: usize = 8;
/// Time between two trials of a mode, in seconds: at first, and at most.
const APART_MIN: f64 = 0.1;
const APART_MAX: f64 = 4.0;
/// Share of the time that trials may lose, and the most that may be saved up for them, in seconds.
const LOSS_SHARE: f64 = 0.02;
const CREDIT_MAX: f64 = 0.05;
/// Assumed loss of the first windows in an unknown mode.
const LOSS_UNKNOWN: f64 = 0.5;
/// Ratio to home's calls below which a mode is seldom tried.
const WORSE: f64 = 0.85;

/// The action until the next window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The mode to be in.
    pub mode: usize,
    /// Length of the next window in ticks; it may last somewhat longer.
    pub ticks: u64,
}

/// Knowledge about a mode.
#[derive(Clone, Debug)]
struct Known {
    name: String,
    /// Its last figures.
    seen: Option<Seen>,
    /// Its calls per tick over home's, in the last trial under this load.
    ratio: Option<f64>,
    /// Time between two trials, in ticks.
    apart: f64,
    /// Earliest time of the next trial.
    due: f64,
    /// Whether it may be tried at all.
    allowed: bool,
}

/// The last change of home.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: f64,
    from: usize,
    /// New over old, in calls per tick.
    ratio: f64,
}

/// Chooses among modes numbered from 0. See the [module](self).
///
/// ```
/// use hearth_sync::auto::{Controller, Window};
///
/// // A tick is a nanosecond here; by message a thousand calls take half as long.
/// let mut controller = Controller::new(["under the lock", "by message"], 1e9);
/// for _ in 0..200 {
///     let step = controller.step();
///     let ticks_per_call = [500, 250][step.mode];
///     let calls = step.ticks / ticks_per_call;
///     controller.observe(&Window { ticks: step.ticks, calls, callers: 4, ..Window::default() });
/// }
/// assert_eq!(controller.home(), 1);
/// assert!(controller.explain().starts_with("by message: 4 M calls/s"));
/// ```
#[derive(Clone, Debug)]
pub struct Controller {
    modes: Vec<Known>,
    ticks_per_second: f64,
    /// Cost of loading a line that another core has changed, if known: for explanations.
    ticks_per_line: Option<f64>,
    /// Factor of all times above.
    pace: f64,
    home: usize,
    /// The time: ticks observed so far, in all windows.
    now: f64,
    /// Windows at home since it became home.
    recent: Recent,
    load: Load,
    trial: Option<Trial>,
    /// True while home settles again.
    settling: bool,
    credit: f64,
    /// Changes of home under the same load.
    reversals: u32,
    switches: u64,
    loads: u64,
    change: Option<Change>,
    /// Home was found by other means than trials, under this load.
    is_found: bool,
}

impl Controller {
    /// A controller that begins in mode 0. The names are for explanations: "under the lock", "by
    /// message".
    ///
    /// # Panics
    /// There are no modes, or the ticks per second are not a positive number.
    pub fn new<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
        ticks_per_second: f64,
    ) -> Controller {
        assert!(
            ticks_per_second > 0.0 && ticks_per_second.is_finite(),
            "{ticks_per_second} ticks per second"
        );
        let modes: Vec<Known> = names
            .into_iter()
            .map(|name| Known {
                name: name.into(),
                seen: None,
                ratio: None,
                apart: APART_MIN * ticks_per_second,
                due: 0.0,
                allowed: true,
            })
            .collect();
        assert!(!modes.is_empty(), "a controller of no modes");
        Controller {
            modes,
            ticks_per_second,
            ticks_per_line: None,
            pace: 1.0,
            home: 0,
            now: 0.0,
            recent: Recent::default(),
            load: Load::default(),
            trial: None,
            settling: true,
            credit: CREDIT_MAX * ticks_per_second,
            reversals: 0,
            switches: 0,
            loads: 0,
            change: None,
            is_found: false,
        }
    }

    /// Multiplies the length of windows and all other times, for uses in which a change of modes
    /// takes longer than a fraction of a millisecond. Call it before anything is observed.
    ///
    /// # Panics
    /// It is not a positive number.
    #[must_use]
    pub fn paced(mut self, times: f64) -> Controller {
        assert!(times > 0.0 && times.is_finite(), "{times} times as long");
        self.pace = times;
        self.credit = self.ticks(CREDIT_MAX);
        for mode in &mut self.modes {
            mode.apart *= times;
        }
        self
    }

    /// Sets the cost, in seconds, of loading a line that another core has changed, so that
    /// explanations can count lines.
    ///
    /// # Panics
    /// It is not a positive number.
    #[must_use]
    pub fn line_takes(mut self, seconds: f64) -> Controller {
        assert!(seconds > 0.0 && seconds.is_finite(), "{seconds} s a line");
        self.ticks_per_line = Some(seconds * self.ticks_per_second);
        self
    }

    fn ticks(&self, seconds: f64) -> f64 {
        seconds * self.pace * self.ticks_per_second
    }

    /// Begins in this mode instead of 0. Call it before anything is observed.
    ///
    /// # Panics
    /// There is no such mode.
    #[must_use]
    pub fn starting_in(mut self, mode: usize) -> Controller {
        assert!(
            mode < self.modes.len(),
            "mode {mode} of {}",
            self.modes.len()
        );
        self.home = mode;
        self
    }

    /// Allows or forbids trials of a mode, for callers who know beforehand that it is of no use. At
    /// first all are allowed. Home and a mode under trial stay as they are.
    ///
    /// # Panics
    /// There is no such mode.
    pub fn allow(&mut self, mode: usize, allowed: bool) {
        self.modes[mode].allowed = allowed;
    }

    /// True during a trial.
    pub fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// The present step, until the next window is observed.
    pub fn step(&self) -> Step {
        let (mode, settling) = match &self.trial {
            Some(trial) => (trial.mode_now(self.home), trial.is_settling()),
            None => (self.home, self.settling),
        };
        let seconds = if settling { SETTLE } else { WINDOW };
        let mut ticks = self.ticks(seconds);
        if let Some(rate) = self.recent.rate() {
            let enough = CALLS_MIN / rate;
            let most = self.ticks(WINDOW_MAX);
            ticks = ticks.max(enough.min(most) * if settling { 0.25 } else { 1.0 });
        }
        Step {
            mode,
            ticks: (ticks as u64).max(1),
        }
    }

    /// The mode held to be better; differs from [`step`](Controller::step)'s during trials.
    pub fn home(&self) -> usize {
        self.home
    }

    /// Number of changes of home.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// Number of changes of the load.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// True if the credit for trials is full.
    pub fn is_rich(&self) -> bool {
        self.credit >= self.ticks(CREDIT_MAX)
    }

    /// Makes a mode home and goes there, for callers who have found by other means that it is
    /// better, and who have looked longer than a window. `ratios` are those of the modes they have
    /// seen: calls per tick over those of the new home. While the load stays the same, a mode of a
    /// lower number has to be better by as much as one of a higher number.
    ///
    /// # Panics
    /// There is no such mode.
    pub fn move_to(&mut self, mode: usize, ratios: impl IntoIterator<Item = (usize, f64)>) {
        assert!(
            mode < self.modes.len(),
            "mode {mode} of {}",
            self.modes.len()
        );
        self.trial = None;
        if mode != self.home {
            self.move_home(mode, 1.0);
        }
        for known in &mut self.modes {
            known.ratio = None;
        }
        let far = self.ticks(APART_MAX);
        for (seen, ratio) in ratios {
            let known = &mut self.modes[seen];
            known.ratio = Some(ratio);
            if ratio < WORSE {
                known.apart = far;
            }
        }
        for known in &mut self.modes {
            known.due = self.now + known.apart;
        }
        self.change = None;
        self.is_found = true;
        // Forgives a negative credit: a load that changes soon must be followed, too.
        self.credit = self.credit.max(0.0);
    }

    /// Observes the window that has just ended, in the last step's mode, and returns the next step.
    /// A window without calls says nothing and is skipped.
    pub fn observe(&mut self, window: &Window) -> Step {
        let ticks = window.ticks as f64;
        self.now += ticks;
        self.credit = (self.credit + LOSS_SHARE * ticks).min(self.ticks(CREDIT_MAX));
        if let Some(seen) = window.seen() {
            if self.trial.is_some() {
                self.observe_trial(&seen, ticks);
            } else {
                self.observe_home(&seen);
            }
        } else if window.ticks > 0 && self.trial.as_ref().is_some_and(Trial::is_away) {
            // Nobody called, or no call ended: at home there is no such risk.
            self.end_trial(TrialVerdict::Nothing, true);
        }
        self.step()
    }

    /// Observes time in which one mode gives way to another: not judged, but its loss is paid like
    /// that of trials.
    pub fn pass(&mut self, window: &Window) {
        let ticks = window.ticks as f64;
        self.now += ticks;
        self.credit = (self.credit + LOSS_SHARE * ticks).min(self.ticks(CREDIT_MAX));
        if let Some(rate) = self.recent.rate() {
            let seen = window.seen().map_or(0.0, |seen| seen.rate);
            self.credit -= ticks * (1.0 - seen / rate).max(0.0);
        }
    }

    fn observe_home(&mut self, seen: &Seen) {
        if self.settling {
            self.settling = false;
            return;
        }
        self.recent.push(*seen);
        if let Some(median) = self.recent.median() {
            self.modes[self.home].seen = Some(median);
        }
        if self.load.differs(&self.recent) {
            self.load_differs();
        }
        if self.recent.len() >= KNOWN_MIN {
            self.load.refer_to(&self.recent);
            self.begin_trial();
        }
    }

    /// Handles a new load: findings under the old one no longer count against a mode.
    fn load_differs(&mut self) {
        self.load = Load::default();
        self.is_found = false;
        self.loads += 1;
        // More than half of the compared windows are of the new load, so the last of them are.
        self.recent.keep_last(4);
        self.reversals = self.reversals.saturating_sub(1);
        let near = self.ticks(APART_MIN);
        for mode in &mut self.modes {
            mode.apart = near;
            mode.due = self.now;
            mode.ratio = None;
        }
    }

    /// Tries the mode that has been due longest, if the credit pays for it.
    fn begin_trial(&mut self) {
        let due = (0..self.modes.len())
            .filter(|&mode| mode != self.home && self.modes[mode].allowed)
            .filter(|&mode| self.modes[mode].due <= self.now)
            .min_by(|&a, &b| self.modes[a].due.total_cmp(&self.modes[b].due));
        let (Some(mode), Some(rate)) = (due, self.recent.rate()) else {
            return;
        };
        let loss = self.modes[mode]
            .ratio
            .map_or(LOSS_UNKNOWN, |ratio| (1.0 - ratio).max(0.0));
        let first = self.ticks(WINDOW + SETTLE);
        if loss * first.max(CALLS_MIN / rate) <= self.credit.max(0.0) {
            let margin = trial::margin(mode > self.home || self.is_found);
            let noise = self.recent.noise();
            self.trial = Some(Trial::new(mode, rate.ln(), noise, margin, self.reversals));
        }
    }

    fn observe_trial(&mut self, seen: &Seen, ticks: f64) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        let rate = self.recent.rate().unwrap_or(seen.rate);
        if trial.is_away() || trial.is_settling() {
            self.credit -= ticks * (1.0 - seen.rate / rate).max(0.0);
        }
        let (mode, is_away, is_settling) = (trial.mode, trial.is_away(), trial.is_settling());
        let verdict = trial.observe(seen);
        if !is_settling {
            if is_away {
                self.modes[mode].seen = Some(*seen);
            } else {
                self.recent.push(*seen);
            }
        }
        match verdict {
            None if self.credit < 0.0 => self.end_trial(TrialVerdict::Nothing, is_away),
            None => {}
            Some(verdict) => self.end_trial(verdict, is_away),
        }
    }

    /// Ends the trial, and settles at home if the last window was away.
    fn end_trial(&mut self, verdict: TrialVerdict, was_away: bool) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        self.settling = was_away;
        let rate = self.recent.rate();
        let far = self.ticks(APART_MAX);
        let tried = &mut self.modes[trial.mode];
        if let Some(ratio) = trial.ratio() {
            tried.ratio = Some(ratio);
            if let (Some(seen), Some(rate)) = (&mut tried.seen, rate) {
                // As steady as home's figure beside it.
                seen.rate = rate * ratio;
            }
        }
        match verdict {
            TrialVerdict::Better => self.move_home(trial.mode, trial.ratio().unwrap_or(1.0)),
            TrialVerdict::NotBetter => {
                tried.apart = (2.0 * tried.apart).min(far);
                tried.due = self.now + tried.apart;
            }
            // Undecided, because the load did not hold still or the credit ended.
            TrialVerdict::Nothing => tried.due = self.now + tried.apart,
        }
    }

    fn move_home(&mut self, mode: usize, ratio: f64) {
        let from = self.home;
        self.change = Some(Change {
            at: self.now,
            from,
            ratio,
        });
        self.switches += 1;
        self.reversals += 1;
        self.home = mode;
        self.settling = true;
        self.recent = Recent::default();
        self.load = Load::default();
        let (near, far) = (self.ticks(APART_MIN), self.ticks(APART_MAX));
        for (other, known) in self.modes.iter_mut().enumerate() {
            // Relative to the new home. The old home was just seen; the others were not seen beside
            // the new one.
            known.ratio = known.ratio.map(|old| old / ratio);
            known.apart = near;
            if other == from {
                known.ratio = Some(1.0 / ratio);
                known.apart = (4.0 * known.apart * f64::from(self.reversals)).min(far);
            }
            known.due = self.now + known.apart;
        }
    }
}
