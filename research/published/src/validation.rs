//! Compares predictions with measurements: ours, and the source's model on the same machine.
//!
//! Points are measured [`Sample`]s. [`Validation::held_out`] cuts them into parts and predicts each
//! by a model fitted to the others, so that no point is judged by a model that has seen it;
//! [`Validation::of`] judges a model as it is. The source's model is evaluated with this profile's
//! figures ([`Parameters::from_profile`]), in its intended form: nothing of it is fitted, as the
//! source fits nothing.

use std::collections::BTreeMap;

use hearth_machine::profile::{Carrier, Profile};
use hearth_machine::relation::Relation;

use crate::source::{Parameters, Slope, Type};
use hearth_model::fitted::{Between, FitError, FitOptions, Model, Prediction, Question, Sample};
use hearth_stats::agreement::{kendall, median_absolute_percentage_error, spearman};

/// One point, measured and predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// The quantity measured.
    pub question: Question,
    /// Nearness of sender and receiver.
    pub relation: Relation,
    /// Measured, ns.
    pub measured_ns: f64,
    /// Our model's answer.
    pub ours: Prediction,
    /// The source's model's answer, ns.
    pub source_ns: f64,
}

/// Agreement of predictions with measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// The median of `|predicted − measured| / measured`, percent.
    pub median_error_percent: f64,
    /// Kendall's τ-b; `None` if either side is constant.
    pub kendall: Option<f64>,
    /// Spearman's rank correlation, likewise.
    pub spearman: Option<f64>,
}

/// Both models on the same points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Number of points.
    pub points: usize,
    /// Our model.
    pub ours: Agreement,
    /// The source's.
    pub source: Agreement,
    /// The share of points inside our model's 95 % intervals, 0 to 1.
    pub covered: f64,
}

/// The points of one carrier and relation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Carrier of the hand-over.
    pub carrier: Carrier,
    /// Nearness of sender and receiver.
    pub relation: Relation,
    /// The smallest message, bytes.
    pub bytes_min: u64,
    /// The largest, bytes.
    pub bytes_max: u64,
    /// Both models there.
    pub comparison: Comparison,
}

/// Predictions and measurements. See the [module's text](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Every point, in the order of the samples.
    pub checks: Vec<Check>,
    /// All points together.
    pub all: Comparison,
    /// The same by carrier, then relation.
    pub slices: Vec<Slice>,
}

impl Validation {
    /// The median absolute error that the project asks for, percent.
    pub const ERROR_GOAL_PERCENT: f64 = 15.0;
    /// The rank correlation that it asks for, as Kendall's τ, the stricter of the two.
    pub const RANK_GOAL: f64 = 0.9;

    /// Judges a model as it is. Its points should be others than those it was fitted to.
    ///
    /// # Errors
    /// [`FitError`] if there are no samples, or some are not times or not of this machine.
    pub fn of(profile: &Profile, model: &Model, samples: &[Sample]) -> Result<Self, FitError> {
        let sources = Sources::new(profile);
        let checks = samples.iter().enumerate();
        let checks: Result<Vec<Check>, FitError> = checks
            .map(|(at, sample)| sources.check(model, at, sample))
            .collect();
        Self::from_checks(checks?)
    }

    /// Predicts each of `parts` parts of the samples by `model` fitted to the other parts. Samples
    /// of the same question are in the same part, and every part has questions of all sizes.
    /// Fewer than two parts count as two.
    ///
    /// # Errors
    /// [`FitError`] if the samples are too few for that, not times, or not of this machine.
    pub fn held_out(
        profile: &Profile,
        model: &Model,
        samples: &[Sample],
        parts: usize,
        seed: u64,
    ) -> Result<Self, FitError> {
        let sources = Sources::new(profile);
        let parts = parts.max(2);
        let part_of = parts_of(samples, parts, seed);
        let mut checks: Vec<Option<Check>> = vec![None; samples.len()];
        for part in 0..parts {
            let others = samples.iter().zip(&part_of).filter(|(_, of)| **of != part);
            let others: Vec<Sample> = others.map(|(sample, _)| *sample).collect();
            let options = FitOptions {
                seed,
                ..FitOptions::default()
            };
            let fitted = model.fit(&others, &options)?;
            for (at, sample) in samples.iter().enumerate() {
                if part_of[at] == part {
                    checks[at] = Some(sources.check(&fitted, at, sample)?);
                }
            }
        }
        Self::from_checks(checks.into_iter().flatten().collect())
    }

    fn from_checks(checks: Vec<Check>) -> Result<Self, FitError> {
        if checks.is_empty() {
            return Err(FitError::TooFew { kinds: 0 });
        }
        let mut slices: BTreeMap<(Carrier, Relation), Vec<Check>> = BTreeMap::new();
        for check in &checks {
            let key = (check.question.carrier, check.relation);
            slices.entry(key).or_default().push(*check);
        }
        let slice = |((carrier, relation), checks): ((Carrier, Relation), Vec<Check>)| {
            let sizes = || checks.iter().map(|check| check.question.bytes);
            Slice {
                carrier,
                relation,
                bytes_min: sizes().min().unwrap_or(0),
                bytes_max: sizes().max().unwrap_or(0),
                comparison: comparison(&checks),
            }
        };
        Ok(Self {
            all: comparison(&checks),
            slices: slices.into_iter().map(slice).collect(),
            checks,
        })
    }

    /// Whether our model meets both goals on all points together.
    #[must_use]
    pub fn meets_goals(&self) -> bool {
        let ours = &self.all.ours;
        ours.median_error_percent <= Self::ERROR_GOAL_PERCENT
            && ours.kendall.is_some_and(|tau| tau >= Self::RANK_GOAL)
    }
}

/// The source's model for each carrier.
struct Sources(BTreeMap<Carrier, Parameters>);

impl Sources {
    fn new(profile: &Profile) -> Self {
        let carriers = [Carrier::Threads, Carrier::Spin, Carrier::Worker];
        let parameters = carriers.map(|carrier| {
            let parameters = Parameters::from_profile(profile, carrier);
            (carrier, parameters)
        });
        Self(parameters.into_iter().collect())
    }

    fn check(&self, model: &Model, at: usize, sample: &Sample) -> Result<Check, FitError> {
        if !(sample.ns.is_finite() && sample.ns > 0.0) {
            return Err(FitError::NotATime {
                sample: at,
                ns: sample.ns,
            });
        }
        let question = sample.question;
        let refused = |error| FitError::Question { sample: at, error };
        let ours = model.predict(&question).map_err(refused)?;
        let relation = match question.between {
            Between::Relation(relation) => relation,
            Between::Pair(a, b) => model.topology().relation(a, b),
        };
        let kind = Type::from(relation.source_type());
        let source = self
            .0
            .get(&question.carrier)
            .map_or(f64::NAN, |parameters| {
                parameters.communication_ns(kind, question.bytes, Slope::Derived)
            });
        Ok(Check {
            question,
            relation,
            measured_ns: sample.ns,
            ours,
            source_ns: source,
        })
    }
}

/// The part each sample is in: questions in order of size, and of each run of as many questions
/// as there are parts, one in each part.
fn parts_of(samples: &[Sample], parts: usize, seed: u64) -> Vec<usize> {
    let mut kinds: BTreeMap<Question, usize> =
        samples.iter().map(|sample| (sample.question, 0)).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut order: Vec<usize> = (0..parts).collect();
    for (at, part) in kinds.values_mut().enumerate() {
        if at.is_multiple_of(parts) {
            random.shuffle(&mut order);
        }
        *part = order[at % parts];
    }
    let part = |sample: &Sample| kinds[&sample.question];
    samples.iter().map(part).collect()
}

fn comparison(checks: &[Check]) -> Comparison {
    let pairs = |predicted: fn(&Check) -> f64| -> Vec<(f64, f64)> {
        let pairs = checks.iter();
        pairs.map(|c| (predicted(c), c.measured_ns)).collect()
    };
    let inside = checks
        .iter()
        .filter(|check| (check.ours.low_ns..=check.ours.high_ns).contains(&check.measured_ns));
    Comparison {
        points: checks.len(),
        ours: agreement(&pairs(|check| check.ours.ns)),
        source: agreement(&pairs(|check| check.source_ns)),
        covered: inside.count() as f64 / checks.len().max(1) as f64,
    }
}

fn agreement(pairs: &[(f64, f64)]) -> Agreement {
    Agreement {
        // Times are above zero, so that every pair counts.
        median_error_percent: median_absolute_percentage_error(pairs).unwrap_or(0.0),
        kendall: kendall(pairs),
        spearman: spearman(pairs),
    }
}
