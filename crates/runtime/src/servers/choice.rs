//! Which of two ways a server is called by more often: a controller that is fed windows, and reads no clock.
//!
//! What a server is asked depends on its clients, who may do something else the next moment. So the ways
//! are compared in pairs of windows, one of the other way and one of the present one, in turn: a *trial*. The
//! other way is taken if it is better in so many of them that chance would hardly do it, and by [`MARGIN`] in
//! their middle: where others use the cores, windows differ by a factor. A first window that is far worse ends
//! the trial at once, and so do some that are not better. While nothing changes trials become rare: each time
//! that one comes to nothing, the next is twice as far off. Who goes to and fro must gain more each time.

use std::fmt;

/// How a server is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Asynchronous,
    Synchronous,
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::Asynchronous => Way::Synchronous,
            Way::Synchronous => Way::Asynchronous,
        }
    }
}

/// A window's length, in ns: some hundreds of calls, and far more than it takes to change the way.
pub(crate) const WINDOW_NS: u64 = 3_000_000;
/// One that lasts longer by this factor has a pause in it, and tells nothing.
const PAUSE: u64 = 4;
/// After so many pairs none may be better, or half of them at least must be.
const PAIRS_FEW: usize = 3;
/// Of so many pairs the other way must be better in so many: chance does that in one case of 30, as a coin.
const AGREE: [(usize, usize); 4] = [(5, 5), (8, 7), (12, 10), (15, 12)];
/// The other way must be better by this part, and whoever comes back soon by more, up to so much.
const MARGIN: f64 = 0.04;
const MARGIN_MAX: f64 = 0.6;
/// A first pair worse than this ends the trial.
const FAR_WORSE: f64 = 0.8;
/// Windows between two trials, at least and at most: from 30 ms to 0.8 s. In the end three windows of 260 are of
/// the other way where that is worse, or one if it is far worse. Were it rarer, nobody would notice for long
/// that the other way has become better: the present one need not show it.
const REST_MIN: u32 = 10;
const REST_MAX: u32 = 256;
/// Who has changed the way before that many windows has changed it soon.
const SOON: u32 = 3000;
/// If calls come by this factor more or less often, in some windows in a row, it is another load.
const OTHERWISE: f64 = 1.6;
const OTHERWISE_WINDOWS: u32 = 8;

/// What a trial has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) to: Way,
    /// Calls a second before, and in the way that was tried.
    pub(crate) before: f64,
    pub(crate) after: f64,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let then = match self.to {
            Way::Asynchronous => "synchronously",
            Way::Synchronous => "by message",
        };
        write!(
            f,
            "{:.0} calls a second, {then} {:.0}",
            self.after, self.before
        )
    }
}

/// What is done for the moment.
enum Doing {
    /// Windows until the next trial.
    Rests(u32),
    /// Windows of a trial so far: calls a second of the other way, then of the present one, and so on.
    Tries(Vec<f64>),
}

pub(crate) struct Chooser {
    /// What was found best.
    way: Way,
    doing: Doing,
    /// How long the last rest was.
    rest: u32,
    margin: f64,
    /// Windows since it last changed its mind.
    since: u32,
    /// Calls a second in the present way when a trial ended, and how many windows in a row were different.
    usual: Option<f64>,
    different: u32,
}

impl Chooser {
    pub(crate) fn new() -> Chooser {
        Chooser {
            way: Way::Asynchronous,
            doing: Doing::Rests(REST_MIN),
            rest: REST_MIN,
            margin: MARGIN,
            since: 0,
            usual: None,
            different: 0,
        }
    }

    /// The way for the next window.
    pub(crate) fn way(&self) -> Way {
        match &self.doing {
            Doing::Tries(windows) if windows.len().is_multiple_of(2) => self.way.other(),
            _ => self.way,
        }
    }

    /// A window is over: so many calls in so many ns, by [`Chooser::way`]. Tells when that changes for good.
    pub(crate) fn add(&mut self, calls: u64, ns: u64) -> Option<Verdict> {
        if ns > PAUSE * WINDOW_NS {
            // A trial begins anew.
            if let Doing::Tries(windows) = &mut self.doing {
                windows.clear();
            }
            return None;
        }
        let rate = calls as f64 * 1e9 / ns.max(1) as f64;
        self.since = self.since.saturating_add(1);
        match &mut self.doing {
            Doing::Rests(left) => {
                *left = left.saturating_sub(1);
                let is_over = *left == 0;
                if self.is_different(rate) || is_over {
                    self.doing = Doing::Tries(Vec::new());
                    self.different = 0;
                }
                None
            }
            Doing::Tries(windows) => {
                windows.push(rate);
                match judge(windows) {
                    Judged::Open => None,
                    Judged::Worse { before } => self.end(false, before, before),
                    Judged::Better {
                        gain,
                        before,
                        after,
                    } => self.end(gain > 1.0 + self.margin, before, after),
                }
            }
        }
    }

    /// Calls come at another rate than when the last trial ended, and have for some windows.
    fn is_different(&mut self, rate: f64) -> bool {
        let usual = *self.usual.get_or_insert(rate);
        let is_other = rate > OTHERWISE * usual || usual > OTHERWISE * rate;
        self.different = if is_other { self.different + 1 } else { 0 };
        let is_long = self.different >= OTHERWISE_WINDOWS;
        if is_long {
            // What was learnt was of another load.
            self.rest = REST_MIN;
        }
        is_long
    }

    /// A trial is over.
    fn end(&mut self, is_better: bool, before: f64, after: f64) -> Option<Verdict> {
        self.usual = Some(if is_better { after } else { before });
        self.different = 0;
        if !is_better {
            self.rest = (2 * self.rest).min(REST_MAX);
            self.doing = Doing::Rests(self.rest);
            return None;
        }
        self.margin = match self.since < SOON {
            true => (2.0 * self.margin).min(MARGIN_MAX),
            false => MARGIN,
        };
        self.since = 0;
        self.way = self.way.other();
        self.rest = 2 * REST_MIN;
        self.doing = Doing::Rests(self.rest);
        Some(Verdict {
            to: self.way,
            before,
            after,
        })
    }
}

/// What the windows of a trial tell so far.
enum Judged {
    Open,
    Worse {
        before: f64,
    },
    /// By this factor in the middle.
    Better {
        gain: f64,
        before: f64,
        after: f64,
    },
}

fn judge(windows: &[f64]) -> Judged {
    let (pairs, rest) = windows.as_chunks::<2>();
    if !rest.is_empty() {
        return Judged::Open;
    }
    let count = pairs.len();
    let better = pairs.iter().filter(|[other, own]| other > own).count();
    let [mut after, mut before] =
        [0, 1].map(|side| -> Vec<f64> { pairs.iter().map(|pair| pair[side]).collect() });
    let before = median(&mut before);
    let is_hopeless = count == 1 && windows[0] < FAR_WORSE * windows[1];
    let is_few = count >= PAIRS_FEW && (better == 0 || count > PAIRS_FEW && 2 * better <= count);
    if is_hopeless || is_few {
        return Judged::Worse { before };
    }
    let is_sure = AGREE
        .iter()
        .any(|&(of, agree)| count == of && better >= agree);
    if is_sure {
        let mut gains: Vec<f64> = pairs.iter().map(|[other, own]| other / own).collect();
        return Judged::Better {
            gain: median(&mut gains),
            before,
            after: median(&mut after),
        };
    }
    match count >= AGREE[AGREE.len() - 1].0 {
        true => Judged::Worse { before },
        false => Judged::Open,
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates that are off by chance, now and then by much.
    struct Noise(u64);

    impl Noise {
        /// From 0 to 1.
        fn next(&mut self) -> f64 {
            self.0 = crate::choices::scramble(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn factor(&mut self, part: f64) -> f64 {
            // The system takes the core now and then.
            let lost = if self.next() < 0.02 { 0.4 } else { 1.0 };
            lost * (1.0 + part * (2.0 * self.next() - 1.0))
        }
    }

    /// So many windows of a load with these calls a second by either way: calls done, and how often the
    /// way changed.
    fn run(chooser: &mut Chooser, windows: u32, rates: [f64; 2], noise: &mut Noise) -> (f64, u32) {
        let (mut done, mut changes) = (0.0, 0);
        for _ in 0..windows {
            let rate = rates[chooser.way() as usize] * noise.factor(0.08);
            let calls = rate * WINDOW_NS as f64 / 1e9;
            done += calls;
            changes += u32::from(chooser.add(calls as u64, WINDOW_NS).is_some());
        }
        (done, changes)
    }

    /// What the better way would have done, without noise.
    fn best(windows: u32, rates: [f64; 2]) -> f64 {
        let lost = 1.0 - 0.02 * 0.6;
        f64::from(windows) * rates[0].max(rates[1]) * lost * WINDOW_NS as f64 / 1e9
    }

    const TEN_SECONDS: u32 = 3333;

    #[test]
    fn the_better_way_is_found_and_little_is_lost() {
        for seed in 0..40 {
            for rates in [
                [1e6, 2e6],
                [2e6, 1e6],
                [1e6, 1.2e6],
                [1.2e6, 1e6],
                [1e5, 5e5],
                [1e6, 1e6],
            ] {
                let mut chooser = Chooser::new();
                let mut noise = Noise(seed);
                let (done, changes) = run(&mut chooser, TEN_SECONDS, rates, &mut noise);
                let part = done / best(TEN_SECONDS, rates);
                assert!(part > 0.95, "{rates:?}, seed {seed}: {part}");
                assert!(changes <= 3, "{rates:?}, seed {seed}: {changes} changes");
            }
        }
    }

    #[test]
    fn another_load_is_noticed() {
        for seed in 0..40 {
            let mut chooser = Chooser::new();
            let mut noise = Noise(seed);
            for rates in [[1e6, 2e6], [9e5, 3e5], [1e6, 2e6], [1e5, 3e5]] {
                let (done, _) = run(&mut chooser, TEN_SECONDS, rates, &mut noise);
                let part = done / best(TEN_SECONDS, rates);
                assert!(part > 0.94, "{rates:?}, seed {seed}: {part}");
            }
        }
    }

    #[test]
    fn where_others_have_the_cores_it_hardly_flaps() {
        for seed in 0..40 {
            let mut chooser = Chooser::new();
            let mut noise = Noise(seed);
            let mut changes = 0;
            for _ in 0..TEN_SECONDS {
                // Anything from a tenth to all of the time is left.
                let calls = 3000.0 * (0.1 + 0.9 * noise.next());
                changes += u32::from(chooser.add(calls as u64, WINDOW_NS).is_some());
            }
            assert!(changes <= 4, "seed {seed}: {changes} changes");
        }
    }

    #[test]
    fn a_pause_tells_nothing() {
        let mut chooser = Chooser::new();
        for _ in 0..1000 {
            assert_eq!(chooser.add(10, 10 * WINDOW_NS), None);
            assert_eq!(chooser.way(), Way::Asynchronous);
        }
    }

    #[test]
    fn what_is_far_worse_is_tried_for_one_window() {
        let mut chooser = Chooser::new();
        let mut tried = 0;
        for _ in 0..2 * REST_MIN {
            let is_tried = chooser.way() == Way::Synchronous;
            tried += u32::from(is_tried);
            assert_eq!(
                chooser.add(if is_tried { 10 } else { 100 }, WINDOW_NS),
                None
            );
        }
        assert_eq!(tried, 1);
    }
}
