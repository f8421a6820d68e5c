//! The source's research questions, answered by rules.
//!
//! The same rules judge our measurements and the source's figures, so that an answer
//! differs because the machine differs and for no other reason.
//!
//! A difference between placements is *noticeable* at a size if it is more than
//! [`NOTICEABLE_PERCENT`] of type 1's time, and the quarters around the medians do not overlap
//! where they are known. It is *lasting* if it is noticeable, in the same direction, at
//! [`LASTING_SIZES`] sizes in a row or at a twentieth of all sizes, whichever is more: single sizes
//! differ by chance.

use crate::judging::{Answer, JudgedClaim};
use hearth_published::cache_impact::Impact;
use hearth_published::source::{Parameters, Slope, Type};
use hearth_stats::agreement::spearman;
use hearth_stats::median;

use super::site::index;

/// Least noticeable difference, in percent of type 1's time. The source calls 5 % and less
/// practically equal.
pub const NOTICEABLE_PERCENT: f64 = 5.0;
/// Number of sizes in a row that makes a difference lasting.
pub const LASTING_SIZES: usize = 3;
/// A capacity's neighbourhood: sizes this near count as at the capacity.
const NEAR_PERCENT: f64 = 5.0;
/// A prediction within this is precise.
const PRECISE_PERCENT: f64 = 15.0;
/// The least rank correlation of a right pattern.
const PATTERN_CORRELATION: f64 = 0.9;
/// A choice that costs no more than this above the best is as good.
const REGRET_PERCENT: f64 = 5.0;
/// Share of the sizes at which a choice must be as good.
const GOOD_SHARE: f64 = 0.9;

/// A measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The buffer's size.
    pub bytes: u64,
    /// The time of an exchange.
    pub ns: f64,
    /// A quarter of the runs took less, if that is known.
    pub quarters: Option<(f64, f64)>,
}

/// Evidence that the questions are answered from.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The machine, for people.
    pub machine: String,
    /// Capacities of its caches in bytes, nearest first, with names.
    pub capacities: Vec<(String, u64)>,
    /// Measured times by type, by size. Empty for types that the machine cannot show.
    pub measured: [Vec<Point>; 3],
    /// The source's model of this machine, if its parameters are known.
    pub model: Option<Parameters>,
    /// Reasons why something cannot be shown here, in sentences.
    pub limits: Vec<String>,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedQuestion {
    /// `RQ`, `RQ1` to `RQ4`, as the source's introduction numbers them.
    pub question: &'static str,
    /// The question in words.
    pub asks: &'static str,
    /// The source's answer.
    pub published: Answer,
    /// The source's answer in words.
    pub published_words: &'static str,
    /// The answer by the data.
    pub answer: Answer,
    /// The reasons, with the figures.
    pub because: String,
    /// Points that this machine cannot show.
    pub cannot_show: Vec<String>,
}

impl JudgedQuestion {
    /// The published answer as a claim.
    #[must_use]
    pub fn claim(self) -> JudgedClaim {
        JudgedClaim {
            id: self.question,
            claim: self.asks,
            published: Some(self.published_words),
            answer: match self.agrees() {
                Some(true) => Answer::Yes,
                Some(false) => Answer::No,
                None => Answer::CannotTell,
            },
            because: format!("{}: {}", self.answer.word(), self.because),
            explained: self.cannot_show,
        }
    }

    /// True if the answer agrees with the published one; `None` if there is no answer.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        (self.answer != Answer::CannotTell).then_some(self.answer == self.published)
    }
}

/// A placement against type 1 at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The buffer's size.
    pub bytes: u64,
    /// The impact, in both normalisations.
    pub impact: Impact,
    /// See the [module's text](self).
    pub is_noticeable: bool,
}

/// A difference in one direction over a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    /// The first size of the range.
    pub from_bytes: u64,
    /// The last size of the range.
    pub to_bytes: u64,
    /// The placement is faster than type 1 there; otherwise slower.
    pub is_faster: bool,
}

/// A placement's type, predicted time and measured time, both in nanoseconds.
type Beside = (Type, f64, f64);

impl Evidence {
    /// The measured times of a type.
    #[must_use]
    pub fn of(&self, kind: Type) -> &[Point] {
        &self.measured[index(kind)]
    }

    /// A type against type 1, at each size that both have.
    #[must_use]
    pub fn differences(&self, kind: Type) -> Vec<Difference> {
        let base = self.of(Type::One);
        let pairs = self.of(kind).iter().filter_map(|own| {
            let base = base.iter().find(|point| point.bytes == own.bytes)?;
            Some((base, own))
        });
        let differences = pairs.filter(|(base, _)| base.ns > 0.0).map(|(base, own)| {
            let impact = Impact::between(base.ns, own.ns);
            let is_apart = match (base.quarters, own.quarters) {
                (Some(base), Some(own)) => base.1 < own.0 || own.1 < base.0,
                _ => true,
            };
            Difference {
                bytes: own.bytes,
                impact,
                is_noticeable: is_apart && impact.of_base_percent.abs() > NOTICEABLE_PERCENT,
            }
        });
        differences.collect()
    }

    /// The impact of a type around a capacity: the mean over the sizes near it, or the nearest
    /// size's. `None` if the type was not measured.
    #[must_use]
    pub fn impact_at(&self, kind: Type, bytes: u64) -> Option<Impact> {
        let differences = self.differences(kind);
        let off = |d: &Difference| (d.bytes as f64 - bytes as f64).abs() / bytes.max(1) as f64;
        let near: Vec<Impact> = differences
            .iter()
            .filter(|d| off(d) * 100.0 <= NEAR_PERCENT)
            .map(|d| d.impact)
            .collect();
        if near.is_empty() {
            let nearest = differences.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
            return nearest.map(|d| d.impact);
        }
        let mean = |of: fn(&Impact) -> f64| near.iter().map(of).sum::<f64>() / near.len() as f64;
        Some(Impact {
            difference_ns: mean(|i| i.difference_ns),
            of_base_percent: mean(|i| i.of_base_percent),
            of_own_percent: mean(|i| i.of_own_percent),
        })
    }

    /// Sizes at which a type differs lastingly from type 1.
    #[must_use]
    pub fn lasting(&self, kind: Type) -> Vec<Lasting> {
        let differences = self.differences(kind);
        let enough = LASTING_SIZES.max(differences.len() / 20);
        let direction = |d: &Difference| {
            d.is_noticeable
                .then_some(d.impact.difference_ns.is_sign_negative())
        };
        let stretches = differences.chunk_by(|a, b| direction(a) == direction(b));
        let kept = stretches.filter(|stretch| stretch.len() >= enough);
        let found = kept.filter_map(|stretch| {
            Some(Lasting {
                from_bytes: stretch.first()?.bytes,
                to_bytes: stretch.last()?.bytes,
                is_faster: direction(stretch.first()?)?,
            })
        });
        found.collect()
    }

    /// Predicted and measured times of a type, as the source's model has them; sizes above 0.
    #[must_use]
    pub fn predictions(&self, kind: Type) -> Vec<(u64, f64, f64)> {
        let Some(model) = &self.model else {
            return Vec::new();
        };
        let points = self.of(kind).iter().filter(|point| point.bytes > 0);
        let predicted = points.map(|point| {
            let ns = model.communication_ns(kind, point.bytes, Slope::Derived);
            (point.bytes, ns, point.ns)
        });
        predicted.collect()
    }

    /// The types that were measured.
    #[must_use]
    pub fn kinds(&self) -> Vec<Type> {
        let measured = Type::ALL.into_iter();
        measured.filter(|&kind| !self.of(kind).is_empty()).collect()
    }

    /// The answers to all questions, in order.
    #[must_use]
    pub fn verdicts(&self) -> Vec<JudgedQuestion> {
        vec![
            self.whether_to_consider(),
            self.speed_up(
                Type::Two,
                "RQ1",
                "From which size on does it speed things up that two threads which share much run \
                 on different cores of one chip?",
                "no noticeable benefit at any practical size; almost the same as one core",
            ),
            self.speed_up(
                Type::Three,
                "RQ2",
                "From which size on does it speed things up that they run on different chips?",
                "never; always slower",
            ),
            self.precision(),
            self.scheduler(),
        ]
    }

    fn verdict(
        &self,
        question: &'static str,
        asks: &'static str,
        published: (Answer, &'static str),
        (answer, because): (Answer, String),
        kinds: &[Type],
    ) -> JudgedQuestion {
        let missing = kinds.iter().filter(|&&kind| self.of(kind).is_empty());
        let missing = missing.map(|kind| {
            let what = match kind {
                Type::One => "two threads on one core",
                Type::Two => "two cores of one chip",
                Type::Three => "two chips",
            };
            format!("type {} ({what}) was not measured", kind.number())
        });
        JudgedQuestion {
            question,
            asks,
            published: published.0,
            published_words: published.1,
            answer,
            because,
            cannot_show: missing.chain(self.limits.iter().cloned()).collect(),
        }
    }

    fn whether_to_consider(&self) -> JudgedQuestion {
        let kinds = [Type::Two, Type::Three];
        let measured = kinds.into_iter().filter(|&kind| !self.of(kind).is_empty());
        let mut reasons = Vec::new();
        let mut matters = false;
        for kind in measured {
            let lasting = self.lasting(kind);
            matters |= !lasting.is_empty();
            reasons.push(format!("type {}: {}", kind.number(), describe(&lasting)));
        }
        let answer = match (reasons.is_empty() || self.of(Type::One).is_empty(), matters) {
            (true, _) => (
                Answer::CannotTell,
                "no two placements were measured".to_owned(),
            ),
            (false, true) => (Answer::Yes, reasons.join("; ")),
            // Where only some placements exist, no difference among them says nothing of others.
            (false, false) if self.kinds().len() < 3 => (
                Answer::CannotTell,
                format!(
                    "between the placements of this machine it does not matter: {}",
                    reasons.join("; ")
                ),
            ),
            (false, false) => (Answer::No, reasons.join("; ")),
        };
        self.verdict(
            "RQ",
            "Should a scheduler consider where the receiving thread runs?",
            (Answer::Yes, "yes"),
            answer,
            &Type::ALL,
        )
    }

    fn speed_up(
        &self,
        kind: Type,
        question: &'static str,
        asks: &'static str,
        published_words: &'static str,
    ) -> JudgedQuestion {
        let differences = self.differences(kind);
        let answer = if differences.len() < LASTING_SIZES {
            (
                Answer::CannotTell,
                format!("type {} was measured at too few sizes", kind.number()),
            )
        } else {
            let lasting = self.lasting(kind);
            let answer = match lasting.iter().any(|stretch| stretch.is_faster) {
                true => Answer::Yes,
                false => Answer::No,
            };
            let slower = differences.iter().filter(|d| d.impact.difference_ns > 0.0);
            let middle: Vec<f64> = differences.iter().map(|d| d.impact.difference_ns).collect();
            let because = format!(
                "{}; slower at {} of {} sizes, by {} in the middle{}",
                describe(&lasting),
                slower.count(),
                differences.len(),
                microseconds(median(&middle).unwrap_or(0.0)),
                self.at_capacities(kind),
            );
            (answer, because)
        };
        self.verdict(
            question,
            asks,
            (Answer::No, published_words),
            answer,
            &[Type::One, kind],
        )
    }

    /// The impact at each capacity, both normalisations.
    fn at_capacities(&self, kind: Type) -> String {
        let mut text = String::new();
        for (name, bytes) in &self.capacities {
            let reaches = self.of(kind).last().is_some_and(|p| p.bytes >= *bytes);
            if let Some(impact) = self.impact_at(kind, *bytes).filter(|_| reaches) {
                text += &format!(
                    "; at the size of {name} {}, {:+.0} % of type 1's time, {:+.0} % of its own",
                    microseconds(impact.difference_ns),
                    impact.of_base_percent,
                    impact.of_own_percent
                );
            }
        }
        text
    }

    fn precision(&self) -> JudgedQuestion {
        let mut pairs = Vec::new();
        let mut correlations = Vec::new();
        for kind in self.kinds() {
            let of_kind = self.predictions(kind);
            let times: Vec<(f64, f64)> = of_kind.iter().map(|&(_, p, m)| (p, m)).collect();
            correlations.extend(spearman(&times));
            pairs.extend(of_kind);
        }
        let ranking = self.ranking();
        let answer = if pairs.is_empty() || correlations.is_empty() {
            (
                Answer::CannotTell,
                "there are no parameters for the model, or no times to compare with".to_owned(),
            )
        } else {
            let errors: Vec<f64> = pairs
                .iter()
                .map(|&(_, p, m)| 100.0 * (p / m - 1.0))
                .collect();
            let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
            let error = median(&sizes).unwrap_or(f64::NAN);
            let factor = mean_factor(&pairs);
            let correlation = correlations.iter().copied().fold(f64::INFINITY, f64::min);
            let has_pattern = correlation >= PATTERN_CORRELATION
                && ranking.is_none_or(|share| share >= GOOD_SHARE);
            let answer = match (error <= PRECISE_PERCENT, has_pattern) {
                (true, true) => Answer::Yes,
                (false, false) => Answer::No,
                _ => Answer::InPart,
            };
            let bias = if factor > 1.0 {
                "too pessimistic"
            } else {
                "too optimistic"
            };
            let ranking = ranking.map_or(String::new(), |share| {
                format!(
                    "; the placements rank as predicted at {:.0} % of the sizes",
                    100.0 * share
                )
            });
            let because = format!(
                "times rise with size as predicted (rank correlation {correlation:.2} or more){ranking}; \
                 in absolute terms {bias}: predicted over measured is {factor:.2} in the geometric \
                 mean, and the median error {error:.0} %"
            );
            (answer, because)
        };
        self.verdict(
            "RQ3",
            "Is the source's model precise enough?",
            (
                Answer::InPart,
                "right patterns and ranking; absolute values too pessimistic",
            ),
            answer,
            &Type::ALL,
        )
    }

    /// The share of sizes at which the model ranks the placements as measured. Two placements that
    /// differ by no more than [`NOTICEABLE_PERCENT`], predicted or measured, rank either way. None
    /// for fewer than two placements.
    #[must_use]
    pub fn ranking(&self) -> Option<f64> {
        let at = self.by_size();
        let mut right = 0usize;
        for (_, placements) in &at {
            let is_right = placements.iter().all(|a| {
                placements.iter().all(|b| {
                    let close =
                        |x: f64, y: f64| (x - y).abs() * 100.0 <= NOTICEABLE_PERCENT * x.min(y);
                    close(a.1, b.1) || close(a.2, b.2) || (a.1 < b.1) == (a.2 < b.2)
                })
            });
            right += usize::from(is_right);
        }
        (!at.is_empty()).then(|| right as f64 / at.len() as f64)
    }

    /// Groups by size the sizes that have two placements or more.
    fn by_size(&self) -> Vec<(u64, Vec<Beside>)> {
        let Some(model) = &self.model else {
            return Vec::new();
        };
        let mut sizes: Vec<u64> = self.measured.iter().flatten().map(|p| p.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let all = sizes.into_iter().filter(|&bytes| bytes > 0).map(|bytes| {
            let placements = self.kinds().into_iter().filter_map(|kind| {
                let point = self.of(kind).iter().find(|point| point.bytes == bytes)?;
                let predicted = model.communication_ns(kind, bytes, Slope::Derived);
                Some((kind, predicted, point.ns))
            });
            (bytes, placements.collect::<Vec<_>>())
        });
        all.filter(|(_, placements)| placements.len() > 1).collect()
    }

    fn scheduler(&self) -> JudgedQuestion {
        let at = self.by_size();
        let regrets: Vec<f64> = at
            .iter()
            .filter_map(|(bytes, placements)| {
                let feasible: Vec<Type> = placements.iter().map(|&(kind, ..)| kind).collect();
                let model = self.model.as_ref()?;
                let (chosen, _) = model.cheapest(*bytes, &feasible, Slope::Derived)?;
                let time = placements.iter().find(|(kind, ..)| *kind == chosen)?.2;
                let best = placements.iter().map(|p| p.2).fold(f64::INFINITY, f64::min);
                Some(100.0 * (time / best - 1.0))
            })
            .collect();
        let answer = if regrets.len() < LASTING_SIZES {
            (
                Answer::CannotTell,
                "there is no choice to make, or no model to make it by".to_owned(),
            )
        } else {
            let good = regrets.iter().filter(|&&regret| regret <= REGRET_PERCENT);
            let share = good.count() as f64 / regrets.len() as f64;
            let worst = regrets.iter().copied().fold(0.0, f64::max);
            let answer = if share >= GOOD_SHARE {
                Answer::Yes
            } else {
                Answer::No
            };
            let because = format!(
                "the placement that the model holds for cheapest is within {REGRET_PERCENT:.0} % \
                 of the best at {:.0} % of {} sizes, and {worst:.0} % above it at worst",
                100.0 * share,
                regrets.len()
            );
            (answer, because)
        };
        self.verdict(
            "RQ4",
            "Can the model drive a scheduler that knows caches?",
            (Answer::Yes, "yes as a base, after refinement"),
            answer,
            &Type::ALL,
        )
    }
}

/// The geometric mean of predicted over measured.
fn mean_factor(pairs: &[(u64, f64, f64)]) -> f64 {
    let logs: Vec<f64> = pairs
        .iter()
        .filter(|&&(_, p, m)| p > 0.0 && m > 0.0)
        .map(|&(_, p, m)| (p / m).ln())
        .collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

fn describe(lasting: &[Lasting]) -> String {
    if lasting.is_empty() {
        return "no lasting difference from type 1 at any size".to_owned();
    }
    let stretches = lasting.iter().map(|stretch| {
        let way = if stretch.is_faster {
            "faster"
        } else {
            "slower"
        };
        format!(
            "{way} from {} to {} bytes",
            stretch.from_bytes, stretch.to_bytes
        )
    });
    stretches.collect::<Vec<_>>().join(", ")
}

fn microseconds(ns: f64) -> String {
    format!("{:+.1} µs", ns / 1000.0)
}
