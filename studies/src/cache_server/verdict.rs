//! What the source claims, judged by rules.
//!
//! The same rules judge what is measured here and what the source published. Everything compared is a ratio: *alike* is
//! within [`ALIKE`], *more* an interval above 1; a gain's size is met within [`SIZE`]. What the source saw
//! on 64 cores and fewer than [`MANY`] do not show is no refutation: it *cannot be shown here*, and the figures are
//! told with what was measured of the cause.

use std::collections::BTreeMap;

use hearth_model::stats::quantile;

use super::explain::explained;
use super::kinds::{LOCK, MESSAGE, OPTIMISATIONS, PLAIN, pairs};
use super::options::Experiment;
use super::plan::{Case, OURS};
use super::published;
use super::results::Results;
use crate::cache_impact::verdict::Answer;
use crate::insense_multicore::verdict::{Figure, Relation};

/// Ratios this near to 1 are alike. Gains of some percent are what this study is about.
pub const ALIKE: f64 = 0.05;
/// A gain this near to the published one has its size.
pub const SIZE: f64 = 0.1;
/// Fewer cores than this do not contend for a section as the source's did.
pub const MANY: usize = 8;

/// What claims are judged from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    figures: BTreeMap<String, Figure>,
    cores: usize,
    /// Sentences for each claim that say why it came out so.
    explained: BTreeMap<&'static str, Vec<String>>,
}

/// A claim and what is said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Its name in tables.
    pub id: &'static str,
    /// What the source claims.
    pub claim: &'static str,
    /// Its figures, in words.
    pub published: &'static str,
    /// What the evidence says.
    pub answer: Answer,
    /// Why, with figures.
    pub because: String,
    /// What was measured of the cause, in sentences.
    pub explained: Vec<String>,
}

/// A ratio with its interval.
#[must_use]
pub fn between(value: f64, low: f64, high: f64) -> Figure {
    let is_near = (1.0 - ALIKE..=1.0 + ALIKE).contains(&value);
    let relation = if is_near && low <= 1.0 + ALIKE && high >= 1.0 - ALIKE {
        Relation::Alike
    } else if low > 1.0 {
        Relation::More
    } else if high < 1.0 {
        Relation::Less
    } else {
        Relation::Unclear
    };
    Figure {
        relation,
        ratio: Some((value, low, high)),
    }
}

/// Of the medians of runs; the interval is of their quarters.
#[must_use]
pub fn of_runs(of: &[f64], to: &[f64]) -> Option<Figure> {
    let (value, low, high) = Figure::of_runs(of, to)?.ratio?;
    Some(between(value, low, high))
}

/// The word for an answer to "does the claim come again?".
#[must_use]
pub const fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "reproduced",
        Answer::InPart => "reproduced in part",
        Answer::No => "refuted",
        Answer::CannotTell => "cannot be shown here",
    }
}

struct Claim {
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    /// Relations that must hold.
    terms: &'static [(&'static str, Relation)],
    /// Of the first ratio, if the source gives one.
    size: Option<f64>,
    /// Does it take many cores to see it?
    needs_cores: bool,
}

const fn claim(
    id: &'static str,
    claim: &'static str,
    published: &'static str,
    terms: &'static [(&'static str, Relation)],
    needs_cores: bool,
) -> Claim {
    Claim {
        id,
        claim,
        published,
        terms,
        size: None,
        needs_cores,
    }
}

const fn sized(claim: Claim, size: f64) -> Claim {
    Claim {
        size: Some(size),
        ..claim
    }
}

use Relation::{Alike, Less, More};

const CLAIMS: [Claim; 14] = [
    sized(
        claim(
            "gain-30",
            "with 30 % writes the section by message, optimised, gives more throughput than under a lock",
            "32 % more",
            &[("gain 70", More)],
            true,
        ),
        1.32,
    ),
    sized(
        claim(
            "gain-25",
            "the same with 25 % writes",
            "13 % more",
            &[("gain 75", More)],
            true,
        ),
        1.13,
    ),
    sized(
        claim(
            "gain-20",
            "with 20 % writes there is hardly a gain, as hardly anybody waits for the lock",
            "1 % more",
            &[("gain 80", Alike)],
            true,
        ),
        1.01,
    ),
    claim(
        "gain-grows",
        "the gain grows with the share of writes",
        "1, 13 and 32 %",
        &[("gain 70/80", More)],
        true,
    ),
    claim(
        "plain-loses",
        "without optimisations the section by message loses throughput",
        "in words",
        &[("plain/lock", Less)],
        false,
    ),
    claim(
        "optimised-wins",
        "the three optimisations together make it better than the plain one",
        "in words",
        &[("message/plain", More)],
        true,
    ),
    claim(
        "zero-copy",
        "a queue of pointers is better than one of copies",
        "in words; not measured alone",
        &[("effect zero", More)],
        false,
    ),
    claim(
        "spinning",
        "clients that spin before they block are better",
        "in words; not measured alone",
        &[("effect spin", More)],
        true,
    ),
    claim(
        "draining",
        "a server that takes all requests at once is better",
        "in words; not measured alone",
        &[("effect drain", More)],
        true,
    ),
    claim(
        "cycles-lock",
        "under a lock the section takes more cycles the more threads there are",
        "a curve that is lost",
        &[("cycles lock many/one", More)],
        true,
    ),
    claim(
        "cycles-message",
        "by message it takes as many cycles with many threads as with few, and fewer than under a lock",
        "a curve that is lost",
        &[
            ("cycles message many/one", Alike),
            ("cycles message/lock", Less),
        ],
        true,
    ),
    claim(
        "thrashing",
        "both lose throughput beyond some number of threads, and the one under a lock loses more",
        "curves that are lost",
        &[
            ("lock many/peak", Less),
            ("message many/peak", Less),
            ("lock fall/message fall", Less),
        ],
        true,
    ),
    claim(
        "mix",
        "under a lock throughput rises with the share of reads; by message it hardly changes",
        "in words",
        &[("lock 80/70", More), ("message 80/70", Alike)],
        true,
    ),
    claim(
        "bound",
        "cycles of the section are the same whether workers are bound to cores or not",
        "curves of the same pattern",
        &[
            ("cycles lock bound/unbound", Alike),
            ("cycles message bound/unbound", Alike),
        ],
        false,
    ),
];

impl Evidence {
    /// Nothing yet, of a machine of so many cores.
    #[must_use]
    pub fn new(cores: usize) -> Evidence {
        Evidence {
            cores,
            ..Evidence::default()
        }
    }

    /// What the source published.
    #[must_use]
    pub fn published() -> Evidence {
        published::evidence()
    }

    /// What was measured.
    #[must_use]
    pub fn measured(results: &Results) -> Evidence {
        let mut evidence = Evidence::new(results.cores.len());
        let measured = Measured(results);
        measured.gains(&mut evidence);
        measured.optimisations(&mut evidence);
        measured.cycles(&mut evidence);
        measured.falls(&mut evidence);
        evidence.explained = explained(results);
        evidence
    }

    /// Notes a figure.
    pub fn put(&mut self, name: &str, figure: Figure) {
        self.figures.insert(name.to_owned(), figure);
    }

    fn put_some(&mut self, name: &str, figure: Option<Figure>) {
        if let Some(figure) = figure {
            self.put(name, figure);
        }
    }

    /// A figure.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)
    }

    /// All claims.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        CLAIMS.iter().map(|claim| self.judge(claim)).collect()
    }

    fn judge(&self, claim: &Claim) -> Verdict {
        let found: Vec<(&str, &Figure, Relation)> = claim
            .terms
            .iter()
            .filter_map(|(name, wanted)| Some((*name, self.figures.get(*name)?, *wanted)))
            .collect();
        let told: Vec<String> = found
            .iter()
            .map(|(name, figure, _)| format!("{name} {}", figure.words()))
            .collect();
        let mut because = told.join(", ");
        let held = found
            .iter()
            .filter(|(_, figure, wanted)| figure.relation == *wanted);
        let is_unclear = found
            .iter()
            .any(|(_, figure, _)| figure.relation == Relation::Unclear);
        let answer = if found.len() < claim.terms.len() {
            because = "not measured".into();
            Answer::CannotTell
        } else if held.count() == claim.terms.len() {
            match (claim.size, found[0].1.ratio) {
                (Some(size), Some((value, ..))) if (value - size).abs() > SIZE => {
                    because += &format!(", where the source has {size}");
                    Answer::InPart
                }
                _ => Answer::Yes,
            }
        } else if claim.needs_cores && self.cores < MANY {
            because += &format!(
                "; {} cores contend too little for one section, and servers share them with their clients",
                self.cores
            );
            Answer::CannotTell
        } else if is_unclear {
            because += "; the runs differ by more than that";
            Answer::CannotTell
        } else if found
            .iter()
            .any(|(_, figure, wanted)| figure.relation == *wanted)
        {
            Answer::InPart
        } else {
            Answer::No
        };
        Verdict {
            id: claim.id,
            claim: claim.claim,
            published: claim.published,
            answer,
            because,
            explained: self.explained.get(claim.id).cloned().unwrap_or_default(),
        }
    }
}

/// Figures of results, by what claims ask for.
pub(super) struct Measured<'a>(pub(super) &'a Results);

impl Measured<'_> {
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
        quantile(self.runs(experiment, which, figure), 0.5)
    }

    /// The most threads that have a core each, of those measured.
    pub(super) fn most(&self, experiment: Experiment) -> Option<u32> {
        let counts = self.0.threads(experiment);
        counts
            .into_iter()
            .filter(|&count| count as usize <= self.0.cores.len())
            .max()
    }

    /// Where a server has its best rate, of counts that `is_allowed`.
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
            evidence.put_some(&format!("gain {reads}"), gain);
            for count in self.0.threads(Experiment::Threads) {
                let of = |kind| self.runs(Experiment::Threads, (reads, count, kind, false), "rate");
                let gain = of_runs(of(MESSAGE), of(LOCK));
                evidence.put_some(&format!("gain {reads} with {count}"), gain);
            }
        }
        for kind in [LOCK, MESSAGE] {
            let rise = of_runs(self.rates_at_peak(80, kind), self.rates_at_peak(70, kind));
            evidence.put_some(&format!("{kind} 80/70"), rise);
        }
        let ratio = |reads: u32| evidence.figure(&format!("gain {reads}"))?.ratio;
        let grows = ratio(70)
            .zip(ratio(80))
            .map(|(of, to)| between(of.0 / to.0, of.1 / to.2, of.2 / to.1));
        evidence.put_some("gain 70/80", grows);
    }

    fn optimisations(&self, evidence: &mut Evidence) {
        let experiment = Experiment::Optimisations;
        let Some(threads) = self.most(experiment) else {
            return;
        };
        let of = |kind| self.runs(experiment, (70, threads, kind, false), "rate");
        evidence.put_some("plain/lock", of_runs(of(PLAIN), of(LOCK)));
        evidence.put_some("message/plain", of_runs(of(MESSAGE), of(PLAIN)));
        evidence.put_some("message/lock", of_runs(of(MESSAGE), of(LOCK)));
        for (at, optimisation) in OPTIMISATIONS.iter().enumerate() {
            let effect = effect(&pairs(at), of);
            evidence.put_some(&format!("effect {}", optimisation.id), effect);
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
                evidence.put_some(&format!("cycles {kind} many/one"), grown);
            }
            let bound = of_runs(of(kind, many, true), of(kind, many, false));
            evidence.put_some(&format!("cycles {kind} bound/unbound"), bound);
        }
        let less = of_runs(of(MESSAGE, many, false), of(LOCK, many, false));
        evidence.put_some("cycles message/lock", less);
    }

    /// Beyond the peak, but with a core for each thread: what comes after that is the system's.
    fn falls(&self, evidence: &mut Evidence) {
        let fits = |count: u32| count as usize <= self.0.cores.len();
        let Some(many) = self.most(Experiment::Threads) else {
            return;
        };
        for kind in [LOCK, MESSAGE] {
            let Some(peak) = self.peak(70, kind, fits) else {
                continue;
            };
            let of = |count| self.runs(Experiment::Threads, (70, count, kind, false), "rate");
            evidence.put_some(&format!("{kind} many/peak"), of_runs(of(many), of(peak)));
        }
        let ratio = |kind: &str| evidence.figure(&format!("{kind} many/peak"))?.ratio;
        let falls = ratio(LOCK)
            .zip(ratio(MESSAGE))
            .map(|(of, to)| between(of.0 / to.0, of.1 / to.2, of.2 / to.1));
        evidence.put_some("lock fall/message fall", falls);
    }
}

/// With an optimisation over without it, in all pairs that differ in it alone: the geometric mean of each
/// turn's runs, and of these the median and the quarters.
fn effect<'a>(
    pairs: &[(&'static str, &'static str)],
    of: impl Fn(&'static str) -> &'a [f64],
) -> Option<Figure> {
    let sides: Vec<(&[f64], &[f64])> = pairs
        .iter()
        .map(|&(without, with)| (of(with), of(without)))
        .collect();
    let turns = sides
        .iter()
        .map(|(with, without)| with.len().min(without.len()));
    let turns = turns.min()?;
    let means: Vec<f64> = (0..turns)
        .map(|turn| {
            let logs = sides
                .iter()
                .map(|(with, without)| (with[turn] / without[turn]).ln());
            (logs.sum::<f64>() / sides.len() as f64).exp()
        })
        .collect();
    let at = |share| quantile(&means, share);
    Some(between(at(0.5)?, at(0.25)?, at(0.75)?))
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
        assert!((value - 1.5).abs() < 1e-9 && (low - 1.5).abs() < 1e-9 && high < 1.500_001);
        let (value, ..) = effect(&pairs(2), of).unwrap().ratio.unwrap();
        assert!((value - 1.0).abs() < 1e-9);
        assert!(effect(&pairs(1), |_| &[]).is_none());
    }
}
