//! Fit of the model to measured exchanges, and its error on others.
//!
//! Least squares on the logarithms of times, so errors are relative: the sum of Huber's loss over
//! `ln predicted − ln measured`, plus a prior that draws each number of the tuning to its default.
//! Levenberg and Marquardt's damped Gauss–Newton steps, with a numeric Jacobian: some twenty
//! unknowns do not warrant a library.

use std::collections::BTreeMap;

use hearth_machine::profile::{Carrier, Exchange as Measured};
use thiserror::Error;

use super::{Between, Exchange, Model, PredictError, Question, Tuning};
use hearth_stats::agreement::{kendall, median_absolute_percentage_error, spearman};
use hearth_stats::quantile;

/// Residual above which the loss is linear: outliers of 30 % or more.
const HUBER: f64 = 0.3;
/// Spread of the samples that the prior is weighed against, as a logarithm.
const SAMPLE_SPREAD: f64 = 0.1;
/// A step for the numeric Jacobian, as a logarithm.
const STEP: f64 = 1e-4;
const ITERATIONS_MAX: u32 = 40;
/// Least number of kinds of exchange that can be split and fitted.
const KINDS_MIN: usize = 8;
/// Least number of misses whose largest bounds 95 %.
const COVERING_MIN: usize = 19;

/// A measured exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The measured question.
    pub question: Question,
    /// Its time, ns.
    pub ns: f64,
}

impl Sample {
    /// A measured exchange from a profile.
    #[must_use]
    pub fn of(exchange: &Measured) -> Self {
        Self {
            question: Question::of(exchange),
            ns: exchange.exchange_ns.value,
        }
    }
}

/// Options of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitOptions {
    /// Share of kinds of exchange held out to report errors on, between 0 and 1.
    pub held_out: f64,
    /// Seed of their choice.
    pub seed: u64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            held_out: 0.25,
            seed: 0,
        }
    }
}

/// Quality of a fit. Errors and correlations are those on exchanges held out of it: samples of the
/// same size, pair, carrier, flow and buffer are held out together.
#[derive(Clone, Debug, PartialEq)]
pub struct FitReport {
    /// Samples fitted while the others were held out.
    pub fitted: usize,
    /// Samples held out.
    pub held_out: usize,
    /// The median of `|predicted − measured| / measured` on the held out, percent.
    pub median_error_percent: f64,
    /// The same before the fit, percent.
    pub unfitted_error_percent: f64,
    /// Kendall's τ on the held out; `None` if all are equal.
    pub kendall: Option<f64>,
    /// Spearman's correlation on the held out.
    pub spearman: Option<f64>,
    /// Held-out samples as predicted and measured, ns.
    pub pairs: Vec<(f64, f64)>,
    /// Bound on the error of 95 % of further exchanges, as a logarithm either way: that quantile of
    /// the held-out errors, taken a little higher because they are few.
    pub log_spread: f64,
    /// The same by carrier, of those with at least 19 held-out samples: waking a thread is less
    /// regular than spinning.
    pub log_spreads: BTreeMap<Carrier, f64>,
}

/// Reason why samples could not be fitted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FitError {
    /// Too few kinds of exchange.
    #[error("{kinds} kinds of exchange are too few to fit and check a model: measure at least {least} sizes or pairs", least = KINDS_MIN)]
    TooFew {
        /// Number of kinds.
        kinds: usize,
    },
    /// A sample whose time no model can predict.
    #[error("sample {sample} took {ns} ns, which no exchange takes: leave it out or measure again")]
    NotATime {
        /// Its position.
        sample: usize,
        /// Its time.
        ns: f64,
    },
    /// A sample of an exchange that the profile's machine cannot have.
    #[error("sample {sample}: {error}")]
    Question {
        /// Its position.
        sample: usize,
        /// The reason.
        error: PredictError,
    },
    /// The held-out share leaves nothing on one side.
    #[error("a share of {held_out} cannot be held out: give one between 0 and 1")]
    Share {
        /// The share asked for.
        held_out: f64,
    },
}

/// A sample in the terms of the model.
struct Point {
    exchange: Exchange,
    ln_ns: f64,
}

impl Model {
    /// The model fitted to `samples`, with its [report](Model::report). Fitted twice: without the
    /// held out, for the report, and then with all.
    ///
    /// # Errors
    /// [`FitError`] if the samples are too few, not times, or not of this machine.
    pub fn fit(&self, samples: &[Sample], options: &FitOptions) -> Result<Self, FitError> {
        if !(options.held_out > 0.0 && options.held_out < 1.0) {
            return Err(FitError::Share {
                held_out: options.held_out,
            });
        }
        let points = self.points(samples)?;
        let held = held_out(samples, options)?;
        let (mut kept, mut others) = (Vec::new(), Vec::new());
        for (point, held) in points.iter().zip(held) {
            if held { &mut others } else { &mut kept }.push(point);
        }
        let start = Tuning::for_relations(self.terms.relations());
        let partial = self.minimise(&start, &kept);
        let pairs: Vec<(f64, f64)> = others
            .iter()
            .map(|point| (self.ln_ns(point, &partial).exp(), point.ln_ns.exp()))
            .collect();
        let before: Vec<(f64, f64)> = others
            .iter()
            .map(|point| (self.ln_ns(point, &start).exp(), point.ln_ns.exp()))
            .collect();
        let misses: Vec<f64> = pairs.iter().map(|(p, m)| (p / m).ln().abs()).collect();
        let mut by_carrier: BTreeMap<Carrier, Vec<f64>> = BTreeMap::new();
        for (point, miss) in others.iter().zip(&misses) {
            let carrier = point.exchange.carrier;
            by_carrier.entry(carrier).or_default().push(*miss);
        }
        by_carrier.retain(|_, misses| misses.len() >= COVERING_MIN);
        let all: Vec<&Point> = points.iter().collect();
        let error = |pairs| median_absolute_percentage_error(pairs).unwrap_or(0.0);
        let report = FitReport {
            fitted: kept.len(),
            held_out: others.len(),
            median_error_percent: error(&pairs),
            unfitted_error_percent: error(&before),
            kendall: kendall(&pairs),
            spearman: spearman(&pairs),
            log_spread: covering(&misses),
            log_spreads: by_carrier
                .into_iter()
                .map(|(carrier, misses)| (carrier, covering(&misses)))
                .collect(),
            pairs,
        };
        let mut fitted = self.clone();
        fitted.tuning = self.minimise(&start, &all);
        fitted.report = Some(report);
        Ok(fitted)
    }

    fn points(&self, samples: &[Sample]) -> Result<Vec<Point>, FitError> {
        let point = |(at, sample): (usize, &Sample)| {
            if !(sample.ns.is_finite() && sample.ns > 0.0) {
                return Err(FitError::NotATime {
                    sample: at,
                    ns: sample.ns,
                });
            }
            let refused = |error| FitError::Question { sample: at, error };
            let exchange = self.exchange(&sample.question).map_err(refused)?;
            self.parts(&exchange, &self.tuning).map_err(refused)?;
            let exchange = self.in_nearest_state(exchange, sample);
            Ok(Point {
                exchange,
                ln_ns: sample.ns.ln(),
            })
        };
        samples.iter().enumerate().map(point).collect()
    }

    /// The exchange in the state of its pair that the sample is nearest to: a sample is the median
    /// of some rounds, and so of the state that held in most of them.
    fn in_nearest_state(&self, exchange: Exchange, sample: &Sample) -> Exchange {
        let Between::Pair(a, b) = sample.question.between else {
            return exchange;
        };
        let states = self.pair_states(a, b).iter();
        let exchanges = states.map(|state| Exchange {
            pair_ratio: state.ratio,
            ..exchange
        });
        let off = |exchange: &Exchange| {
            let parts = self.terms.parts(exchange, &self.tuning);
            parts.map_or(f64::INFINITY, |parts| {
                (parts.total_ns() / sample.ns).ln().abs()
            })
        };
        let nearest = exchanges.min_by(|a, b| off(a).total_cmp(&off(b)));
        nearest.unwrap_or(exchange)
    }

    /// The logarithm of a prediction. Every point was predicted before, so it can be again.
    fn ln_ns(&self, point: &Point, tuning: &Tuning) -> f64 {
        let parts = self.terms.parts(&point.exchange, tuning);
        parts.map_or(point.ln_ns, |parts| parts.total_ns().max(1e-3).ln())
    }

    fn residuals(&self, points: &[&Point], tuning: &Tuning) -> Vec<f64> {
        points
            .iter()
            .map(|point| self.ln_ns(point, tuning) - point.ln_ns)
            .collect()
    }

    fn minimise(&self, start: &Tuning, points: &[&Point]) -> Tuning {
        let priors: Vec<f64> = start
            .spreads()
            .into_iter()
            .map(|spread| (SAMPLE_SPREAD / spread).powi(2))
            .collect();
        let count = priors.len();
        let mut logs = vec![0.0; count];
        let mut residuals = self.residuals(points, start);
        let mut loss = total_loss(&residuals, &logs, &priors);
        let mut damping = 1e-2;
        for _ in 0..ITERATIONS_MAX {
            let jacobian: Vec<Vec<f64>> = (0..count)
                .map(|at| {
                    let mut shifted = logs.clone();
                    shifted[at] += STEP;
                    let moved = self.residuals(points, &start.moved(&shifted));
                    let pairs = moved.iter().zip(&residuals);
                    pairs.map(|(moved, here)| (moved - here) / STEP).collect()
                })
                .collect();
            let (normal, gradient) = normal_equations(&jacobian, &residuals, &logs, &priors);
            let mut improved = false;
            // Shorten a step that does not help, fourfold each time.
            for _ in 0..8 {
                let mut damped = normal.clone();
                for (at, row) in damped.iter_mut().enumerate() {
                    row[at] *= 1.0 + damping;
                }
                let Some(step) = solve(damped, gradient.clone()) else {
                    damping *= 4.0;
                    continue;
                };
                let tried: Vec<f64> = logs.iter().zip(&step).map(|(x, s)| x - s).collect();
                let new = self.residuals(points, &start.moved(&tried));
                let new_loss = total_loss(&new, &tried, &priors);
                if new_loss < loss {
                    improved = loss - new_loss > 1e-4 * loss;
                    (logs, residuals, loss) = (tried, new, new_loss);
                    damping = (damping / 3.0).max(1e-9);
                    break;
                }
                damping *= 4.0;
            }
            if !improved {
                break;
            }
        }
        start.moved(&logs)
    }
}

/// Chooses the samples to hold out: a share of the kinds of exchange, spread over the sizes by
/// holding out one of each run of kinds in order of size.
fn held_out(samples: &[Sample], options: &FitOptions) -> Result<Vec<bool>, FitError> {
    let mut kinds: BTreeMap<Question, bool> = samples
        .iter()
        .map(|sample| (sample.question, false))
        .collect();
    let count = kinds.len();
    if count < KINDS_MIN {
        return Err(FitError::TooFew { kinds: count });
    }
    let wanted = ((count as f64 * options.held_out).round() as usize).clamp(1, count - 1);
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut flags: Vec<&mut bool> = kinds.values_mut().collect();
    for run in 0..wanted {
        let (from, to) = (run * count / wanted, (run + 1) * count / wanted);
        *flags[random.usize(from..to)] = true;
    }
    Ok(samples
        .iter()
        .map(|sample| kinds[&sample.question])
        .collect())
}

/// The bound that the next one of equally many misses keeps with a chance of 95 %: of n, the ⌈0.95
/// (n + 1)⌉th in order. Below [`COVERING_MIN`] the largest must do.
fn covering(misses: &[f64]) -> f64 {
    let count = misses.len() as f64;
    let share = (0.95 * (count + 1.0)).ceil() - 1.0;
    quantile(misses, (share / (count - 1.0).max(1.0)).min(1.0)).unwrap_or(0.0)
}

fn huber(residual: f64) -> f64 {
    let size = residual.abs();
    if size <= HUBER {
        residual * residual
    } else {
        HUBER * (2.0 * size - HUBER)
    }
}

fn total_loss(residuals: &[f64], logs: &[f64], priors: &[f64]) -> f64 {
    let samples: f64 = residuals.iter().copied().map(huber).sum();
    let prior: f64 = logs.iter().zip(priors).map(|(x, p)| p * x * x).sum();
    samples + prior
}

/// `JᵀWJ + P` and `JᵀWr + Px`, where W weighs outliers down as Huber's loss does.
fn normal_equations(
    jacobian: &[Vec<f64>],
    residuals: &[f64],
    logs: &[f64],
    priors: &[f64],
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let weights: Vec<f64> = residuals
        .iter()
        .map(|residual| (HUBER / residual.abs().max(HUBER)).min(1.0))
        .collect();
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let terms = a.iter().zip(b).zip(&weights);
        terms.map(|((a, b), w)| a * b * w).sum()
    };
    let count = priors.len();
    let mut normal = vec![vec![0.0; count]; count];
    let mut gradient = vec![0.0; count];
    for row in 0..count {
        for column in 0..=row {
            let value = product(&jacobian[row], &jacobian[column]);
            normal[row][column] = value;
            normal[column][row] = value;
        }
        normal[row][row] += priors[row];
        gradient[row] = product(&jacobian[row], residuals) + priors[row] * logs[row];
    }
    (normal, gradient)
}

/// Solves a symmetric positive definite system by Cholesky's factors. `None` if it is not one.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let count = right.len();
    for row in 0..count {
        for column in 0..=row {
            let known: f64 = (0..column)
                .map(|k| matrix[row][k] * matrix[column][k])
                .sum();
            let rest = matrix[row][column] - known;
            if row == column {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                matrix[row][row] = rest.sqrt();
            } else {
                matrix[row][column] = rest / matrix[column][column];
            }
        }
    }
    for row in 0..count {
        let known: f64 = (0..row).map(|k| matrix[row][k] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|k| matrix[k][row] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}

impl FitReport {
    /// Bound on the error of 95 % of further exchanges by a carrier, as a logarithm either way.
    #[must_use]
    pub fn log_spread_of(&self, carrier: Carrier) -> f64 {
        let own = self.log_spreads.get(&carrier);
        own.copied().unwrap_or(self.log_spread)
    }
}
