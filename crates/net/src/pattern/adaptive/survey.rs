//! A survey of all ways to serve under a new load: each serves for a moment, then the better half
//! for longer, until two are left, which take turns. Careful trials follow.
//!
//! These moments are longer than the windows of trials, as the scheduler needs tens of milliseconds
//! to settle with other threads.

/// Seconds for which each way serves, in the first round, the second, and later ones.
const ROUNDS: [f64; 3] = [0.05, 0.08, 0.12];
/// Number of replies to wait for beyond that.
const REPLIES: f64 = 200.0;
/// Longest time in seconds for which a way serves.
const LONGEST: f64 = 0.12;
/// Turns of each of the last two ways.
const LAST_TURNS: u32 = 2;

pub(super) struct Survey {
    /// Remaining ways: number, weight, and sum of the rates in this round so far.
    left: Vec<(usize, f64, f64)>,
    /// Ways no longer in the survey, with their last rates, and the best.
    done: Vec<(usize, f64)>,
    at: usize,
    round: usize,
    /// Completed turns of this round.
    turns: u32,
    /// Seconds per reply when it began.
    apart: f64,
}

impl Survey {
    /// A survey of these ways, each with the weight of its replies. None if there is no choice, or
    /// replies are too rare.
    pub(super) fn new(
        ways: impl Iterator<Item = (usize, f64)>,
        replies_per_second: f64,
    ) -> Option<Survey> {
        let left: Vec<_> = ways.map(|(way, worth)| (way, worth, 0.0)).collect();
        let apart = 1.0 / replies_per_second;
        (left.len() > 1 && REPLIES * apart <= LONGEST).then_some(Survey {
            left,
            done: Vec::new(),
            at: 0,
            round: 0,
            turns: 0,
            apart,
        })
    }

    pub(super) fn way(&self) -> usize {
        self.left[self.at].0
    }

    /// Time for which this way is to serve.
    pub(super) fn seconds(&self) -> f64 {
        // Two are compared as well as possible.
        let round = match self.left.len() {
            2 => ROUNDS.len() - 1,
            _ => self.round.min(ROUNDS.len() - 1),
        };
        ROUNDS[round].max(REPLIES * self.apart).min(LONGEST)
    }

    /// Observes the rate of the present way. Returns the best way once it is known.
    pub(super) fn observe(&mut self, replies_per_second: f64) -> Option<usize> {
        self.left[self.at].2 += replies_per_second;
        self.at += 1;
        if self.at < self.left.len() {
            return None;
        }
        self.turns += 1;
        self.at = 0;
        if self.left.len() == 2 && self.turns < LAST_TURNS {
            return None;
        }
        let value = |(_, worth, rate): &(usize, f64, f64)| worth * rate;
        self.left.sort_by(|a, b| value(b).total_cmp(&value(a)));
        let turns = f64::from(self.turns);
        let worse = self.left.split_off(self.left.len().div_ceil(2));
        let seen = |(way, _, rates): &(usize, f64, f64)| (*way, rates / turns);
        self.done.extend(worse.iter().map(seen));
        if let [best] = &self.left[..] {
            self.done.push(seen(best));
        }
        for (_, _, rates) in &mut self.left {
            *rates = 0.0;
        }
        (self.turns, self.round) = (0, self.round + 1);
        match self.left[..] {
            [(way, ..)] => Some(way),
            _ => None,
        }
    }

    /// Replies of each way over the best way's, as last seen, once the best is known.
    pub(super) fn ratios(&self) -> impl Iterator<Item = (usize, f64)> + use<> {
        let best = self.done.last().map_or(1.0, |(_, rate)| *rate);
        let done = self.done.clone().into_iter();
        done.map(move |(way, rate)| (way, rate / best))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_found_by_halves() {
        let rates = [3.0, 9.0, 4.0, 8.0, 1.0, 7.0].map(|rate| 1e4 * rate);
        let mut survey = Survey::new((0..6).map(|way| (way, 1.0)), 3e4).expect("there is a choice");
        let mut gone_through = Vec::new();
        let best = loop {
            gone_through.push((survey.way(), survey.seconds()));
            if let Some(best) = survey.observe(rates[survey.way()]) {
                break best;
            }
        };
        assert_eq!(best, 1);
        let slowest = survey.ratios().find(|(way, _)| *way == 4);
        assert_eq!(slowest, Some((4, 1.0 / 9.0)));
        let later: Vec<_> = gone_through.iter().skip(6).copied().collect();
        assert_eq!(
            later,
            [1, 3, 5]
                .map(|way| (way, 0.08))
                .into_iter()
                .chain([1, 3, 1, 3].map(|way| (way, 0.12)))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_is_worth_less_must_bring_more() {
        let ways = [(0, 1.0), (1, 0.99)];
        let find = |second| {
            let mut survey = Survey::new(ways.into_iter(), 1e5).expect("there is a choice");
            for rate in [1e5, second, 1e5] {
                assert_eq!(survey.observe(rate), None);
            }
            survey.observe(second)
        };
        assert_eq!(find(1.005e5), Some(0));
        assert_eq!(find(1.02e5), Some(1));
    }

    #[test]
    fn one_way_and_few_replies_are_none() {
        assert!(Survey::new([(0, 1.0)].into_iter(), 1e5).is_none());
        assert!(Survey::new([(0, 1.0), (1, 1.0)].into_iter(), 100.0).is_none());
    }
}
