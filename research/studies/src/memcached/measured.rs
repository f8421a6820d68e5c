//! Evidence from results: the ratios that claims ask for.

use crate::judging::Figure;
use hearth_stats::median;

use super::kinds::{LOCK, MESSAGE, OPTIMISATIONS, PLAIN, pairs};
use super::options::Experiment;
use super::plan::{Case, OURS};
use super::ratio::{between, of_runs};
use super::results::Results;
use crate::claims::Evidence;

/// Figures of results, by what claims ask for.
pub(super) struct Measured<'a>(pub(super) &'a Results);

impl Measured<'_> {
    /// Everything that claims ask for.
    pub(super) fn put_all(&self, evidence: &mut Evidence) {
        self.gains(evidence);
        self.choice(evidence);
        self.optimisations(evidence);
        self.cycles(evidence);
        self.falls(evidence);
    }

    /// All runs of a figure; none if it was not measured.
    pub(super) fn runs(
        &self,
        experiment: Experiment,
        (reads, threads, kind, is_bound): (u32, u32, &str, bool),
        figure: &str,
    ) -> &[f64] {
        let case = Case {
            experiment,
            reads,
            load: OURS.to_owned(),
            threads,
            kind: kind.to_owned(),
            is_bound,
        };
        self.0.cell(&case).map_or(&[], |cell| cell.runs(figure))
    }

    /// The median of a figure.
    pub(super) fn median(
        &self,
        experiment: Experiment,
        which: (u32, u32, &str, bool),
        figure: &str,
    ) -> Option<f64> {
        median(self.runs(experiment, which, figure))
    }

    /// The most threads that have a core each, of those measured.
    pub(super) fn most(&self, experiment: Experiment) -> Option<u32> {
        let counts = self.0.threads(experiment);
        counts
            .into_iter()
            .filter(|&count| count as usize <= self.0.site.cores.len())
            .max()
    }

    /// The thread count with a server's best rate, among those that `is_allowed`.
    pub(super) fn peak(
        &self,
        reads: u32,
        kind: &str,
        is_allowed: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let rate = |count| self.median(Experiment::Threads, (reads, count, kind, false), "rate");
        self.0
            .threads(Experiment::Threads)
            .into_iter()
            .filter(|&count| is_allowed(count))
            .filter_map(|count| Some((count, rate(count)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(count, _)| count)
    }

    fn rates_at_peak(&self, reads: u32, kind: &str) -> &[f64] {
        match self.peak(reads, kind, |_| true) {
            Some(count) => self.runs(Experiment::Threads, (reads, count, kind, false), "rate"),
            None => &[],
        }
    }

    fn gains(&self, evidence: &mut Evidence) {
        for reads in self.0.mixes(Experiment::Threads) {
            let gain = of_runs(
                self.rates_at_peak(reads, MESSAGE),
                self.rates_at_peak(reads, LOCK),
            );
            evidence.put(&format!("gain {reads}"), gain);
            for count in self.0.threads(Experiment::Threads) {
                let of = |kind| self.runs(Experiment::Threads, (reads, count, kind, false), "rate");
                let gain = of_runs(of(MESSAGE), of(LOCK));
                evidence.put(&format!("gain {reads} with {count}"), gain);
            }
        }
        for kind in [LOCK, MESSAGE] {
            let rise = of_runs(self.rates_at_peak(80, kind), self.rates_at_peak(70, kind));
            evidence.put(&format!("{kind} 80/70"), rise);
        }
        let sides = [(70, MESSAGE), (70, LOCK), (80, MESSAGE), (80, LOCK)];
        let sides = sides.map(|(reads, kind)| self.rates_at_peak(reads, kind));
        evidence.put("gain 70/80", of_ratios(sides));
    }

    /// The case where `auto` is the farthest below the better of the two ways, of all mixes and
    /// counts.
    fn choice(&self, evidence: &mut Evidence) {
        let experiment = Experiment::Threads;
        let mut worst: Option<Figure> = None;
        for reads in self.0.mixes(experiment) {
            for count in self.0.threads(experiment) {
                let of = |kind| self.runs(experiment, (reads, count, kind, false), "rate");
                let better = match of_runs(of(MESSAGE), of(LOCK)).and_then(|gain| gain.ratio) {
                    Some((gain, ..)) if gain > 1.0 => MESSAGE,
                    Some(_) => LOCK,
                    None => continue,
                };
                let Some((value, low, high)) =
                    of_runs(of("auto"), of(better)).and_then(|figure| figure.ratio)
                else {
                    continue;
                };
                // More than the better of both is as good as can be.
                let figure = between(value.min(1.0), low.min(1.0), high);
                let is_worse = |of: &Figure| of.ratio.is_none_or(|(found, ..)| value < found);
                if worst.as_ref().is_none_or(is_worse) {
                    worst = Some(figure);
                }
            }
        }
        evidence.put("auto/better, worst of all", worst);
    }

    fn optimisations(&self, evidence: &mut Evidence) {
        let experiment = Experiment::Optimisations;
        let Some(threads) = self.most(experiment) else {
            return;
        };
        let of = |kind| self.runs(experiment, (70, threads, kind, false), "rate");
        evidence.put("plain/lock", of_runs(of(PLAIN), of(LOCK)));
        evidence.put("message/plain", of_runs(of(MESSAGE), of(PLAIN)));
        evidence.put("message/lock", of_runs(of(MESSAGE), of(LOCK)));
        for (at, optimisation) in OPTIMISATIONS.iter().enumerate() {
            let effect = effect(&pairs(at), of);
            evidence.put(&format!("effect {}", optimisation.id), effect);
        }
    }

    fn cycles(&self, evidence: &mut Evidence) {
        let experiment = Experiment::Sections;
        let counts = self.0.threads(experiment);
        let (Some(&one), Some(many)) = (counts.first(), self.most(experiment)) else {
            return;
        };
        let of = |kind, count, is_bound| {
            self.runs(experiment, (0, count, kind, is_bound), "section_ticks")
        };
        for kind in [LOCK, MESSAGE] {
            if many > one {
                let grown = of_runs(of(kind, many, false), of(kind, one, false));
                evidence.put(&format!("cycles {kind} many/one"), grown);
            }
            let bound = of_runs(of(kind, many, true), of(kind, many, false));
            evidence.put(&format!("cycles {kind} bound/unbound"), bound);
        }
        let less = of_runs(of(MESSAGE, many, false), of(LOCK, many, false));
        evidence.put("cycles message/lock", less);
    }

    /// Beyond the peak, but with a core for each thread: what comes after that is the system's.
    fn falls(&self, evidence: &mut Evidence) {
        let fits = |count: u32| count as usize <= self.0.site.cores.len();
        let Some(many) = self.most(Experiment::Threads) else {
            return;
        };
        let of = |kind, count| self.runs(Experiment::Threads, (70, count, kind, false), "rate");
        let peaks = [LOCK, MESSAGE].map(|kind| self.peak(70, kind, fits));
        for (kind, peak) in [LOCK, MESSAGE].into_iter().zip(peaks) {
            let fall = peak.and_then(|peak| of_runs(of(kind, many), of(kind, peak)));
            evidence.put(&format!("{kind} many/peak"), fall);
        }
        if let [Some(lock), Some(message)] = peaks {
            let sides = [
                of(LOCK, many),
                of(LOCK, lock),
                of(MESSAGE, many),
                of(MESSAGE, message),
            ];
            evidence.put("lock fall/message fall", of_ratios(sides));
        }
    }
}

/// The ratio of two ratios of medians, with its bootstrap interval.
fn of_ratios(sides: [&[f64]; 4]) -> Option<Figure> {
    let ratio = hearth_stats::ratio_of_ratios(sides)?;
    Some(between(ratio.value, ratio.low, ratio.high))
}

/// The effect of an optimisation: the rate with it over that without it, in all pairs that differ
/// in it alone. It is the geometric mean of the ratios of medians, with its bootstrap interval.
fn effect<'a>(
    pairs: &[(&'static str, &'static str)],
    of: impl Fn(&'static str) -> &'a [f64],
) -> Option<Figure> {
    let sides = pairs
        .iter()
        .flat_map(|&(without, with)| [of(with), of(without)]);
    let sides: Vec<&[f64]> = sides.collect();
    let ratio = hearth_stats::interval(&sides, |drawn| {
        let log = |pair: &[Vec<f64>]| Some((median(&pair[0])? / median(&pair[1])?).ln());
        let logs: Option<Vec<f64>> = drawn.chunks(2).map(log).collect();
        Some((logs?.iter().sum::<f64>() / pairs.len() as f64).exp())
    })?;
    Some(between(ratio.value, ratio.low, ratio.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_the_mean_of_its_pairs() {
        let of = |kind: &'static str| -> &'static [f64] {
            match kind {
                PLAIN | "spin" | "drain" | "spin+drain" => &[100.0, 200.0],
                _ => &[150.0, 300.0],
            }
        };
        let (value, low, high) = effect(&pairs(0), of).unwrap().ratio.unwrap();
        // Two runs that differ by a factor of two, drawn anew, say little.
        assert!((value - 1.5).abs() < 1e-9 && low < 1.5 && high > 1.5);
        let (value, ..) = effect(&pairs(2), of).unwrap().ratio.unwrap();
        assert!((value - 1.0).abs() < 1e-9);
        assert!(effect(&pairs(1), |_| &[]).is_none());
    }
}
