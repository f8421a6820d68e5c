//! Weighs explanations of a section's times against each other.
//!
//! With r foreign threads on N CPUs, a section of x ≤ N threads with static parts takes, after the
//! paper's equations (2) to (6) with r < N,
//!
//! ```text
//! t(x) = s · (ρ + (1 − ρ) · (1 + λ(x)) / x)    λ(x) = 0                     for x ≤ N − r
//!                                              λ(x) between ¼ and 1 or so   for x > N − r
//! ```
//!
//! with a scale s and a serial share ρ. λ = 1 is the paper's upper bound δmax = 2: a thread
//! shares a CPU to the end. As others of the section end earlier, the system moves it to a free
//! CPU, and λ is less; λ = 0 is the lower bound. Other explanations are a section that stops
//! scaling at y threads, t(x) = s · max(ρ + (1 − ρ) / x, ρ + (1 − ρ) / y), and none of all these.
//!
//! Each explanation's probability is its prior times its likelihood, with what it leaves open (s,
//! ρ, λ of each x, y) averaged over a grid. So an explanation that could fit much is not better
//! for it, which is the guard against noise: a jump has to be there, where the bare 1 / x does not
//! do. The difference between a median and the curve, in logarithms, has a Student distribution,
//! so that one bad point does not decide.

use super::Point;

/// Errors of the model itself: clocks, caches and parts of unequal size change a time by this much.
const MODEL: f64 = 0.03;
/// Least spread of runs; the middle of few runs can show none.
const SPREAD_MIN: f64 = 0.002;
/// Bounds of λ, and values between them.
const LAMBDA: (f64, f64, usize) = (0.25, 1.1, 12);
/// Values of ρ.
const SERIAL: usize = 6;
/// Values of s, within so many errors of the time with one thread.
const SCALES: usize = 17;
const SCALE_ERRORS: f64 = 3.0;
/// Degrees of freedom of the Student distribution: tails as heavy as those of times on busy
/// machines.
const FREEDOM: f64 = 4.0;
/// Prior probabilities: no foreign thread, any number of them, a section that stops scaling, none
/// of these. The paper's method is for sections that only CPUs limit.
const PRIOR: (f64, f64, f64, f64) = (0.45, 0.49, 0.05, 0.01);
/// For what has no shape: each logarithm of a time is anywhere within a range so wide.
const SHAPELESS_RANGE: f64 = 3.0;

/// Probabilities of explanations; they add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// By the number of foreign threads, from 0 to N − 1.
    pub foreign: Vec<f64>,
    /// The section stops scaling.
    pub scaling: f64,
    /// The same by the number of threads that are enough, from 1 to N.
    enough: Vec<f64>,
    /// None of all these.
    pub shapeless: f64,
}

impl Weights {
    /// The likeliest number of foreign threads, and its probability.
    #[must_use]
    pub fn likeliest(&self) -> (usize, f64) {
        let all = self.foreign.iter().copied().enumerate();
        all.max_by(|one, other| one.1.total_cmp(&other.1))
            .unwrap_or((0, 0.0))
    }

    /// The largest number of threads, 1 at least, for which there is room with this probability.
    #[must_use]
    pub fn room(&self, confidence: f64) -> usize {
        let cpus = self.foreign.len();
        let has_room = |threads: &usize| {
            let foreign: f64 = self.foreign[..=cpus - threads].iter().sum();
            let enough: f64 = self.enough[threads - 1..].iter().sum();
            foreign + enough >= confidence
        };
        (1..=cpus).rev().find(has_room).unwrap_or(1)
    }
}

/// A point's logarithm with its error.
struct Observed {
    threads: f64,
    log: f64,
    error: f64,
}

impl Observed {
    /// Logarithm of the density of the observed median, if the time should be this.
    fn density(&self, expected: f64) -> f64 {
        let off = (self.log - expected.ln()) / self.error;
        -0.5 * (FREEDOM + 1.0) * (off * off / FREEDOM).ln_1p() - self.error.ln() - STUDENT
    }
}

/// Logarithm of the integral of the Student density with [`FREEDOM`] degrees, 8 / 3.
const STUDENT: f64 = 0.980_829_253_011_726_2;

fn observed(points: &[Point]) -> Vec<Observed> {
    let mut spreads: Vec<f64> = points.iter().map(|point| point.spread).collect();
    let pooled = super::middle(&mut spreads).unwrap_or(0.0);
    points
        .iter()
        .map(|point| {
            // A few runs say little of their own spread; those of other points say something.
            let spread = f64::midpoint(point.spread.powi(2), pooled.powi(2)).sqrt();
            let spread = spread.max(SPREAD_MIN);
            // Standard error of a median.
            let error = 1.2533 * spread / (point.runs as f64).sqrt();
            Observed {
                threads: point.threads as f64,
                log: point.median.ln(),
                error: error.hypot(MODEL),
            }
        })
        .collect()
}

/// Evenly spaced values.
fn grid(from: f64, to: f64, count: usize) -> impl Iterator<Item = f64> + Clone {
    let step = (to - from) / (count.max(2) - 1) as f64;
    (0..count).map(move |at| from + step * at as f64)
}

/// Weighs all explanations of points with 1 to N threads, each with a median above 0. Without
/// points nothing is known, and no foreign thread the answer.
#[must_use]
pub fn weigh(points: &[Point], serial_max: f64) -> Weights {
    let cpus = points.len();
    let observed = observed(points);
    let Some(first) = observed.first() else {
        return Weights {
            foreign: vec![1.0],
            scaling: 0.0,
            enough: vec![0.0],
            shapeless: 0.0,
        };
    };
    // Points where a section that has stopped scaling could have done so, between two.
    let limits: Vec<f64> = match cpus {
        1 => Vec::new(),
        _ => grid(1.05, cpus as f64 - 0.02, (2 * cpus).max(24)).collect(),
    };
    let mut foreign = vec![Sum::default(); cpus];
    let mut stops = vec![Sum::default(); limits.len()];
    for serial in grid(0.0, serial_max.clamp(0.0, 1.0), SERIAL) {
        let off = SCALE_ERRORS * first.error;
        for scale in grid(first.log - off, first.log + off, SCALES) {
            let time = |share: f64| scale.exp() * (serial + (1.0 - serial) * share);
            add_foreign(&observed, &time, &mut foreign);
            for (limit, sum) in limits.iter().zip(&mut stops) {
                let density = observed
                    .iter()
                    .map(|one| one.density(time((1.0 / one.threads).max(1.0 / limit))));
                sum.add(density.sum());
            }
        }
    }
    let values = (SERIAL * SCALES) as f64;
    let (none, some, stop, shapeless) = PRIOR;
    let others = (cpus.max(2) - 1) as f64;
    let logs: Vec<f64> = foreign
        .iter()
        .enumerate()
        .map(|(r, sum)| {
            sum.log(values)
                + if r == 0 {
                    none.ln()
                } else {
                    (some / others).ln()
                }
        })
        .collect();
    let stop = (stop / limits.len().max(1) as f64).ln();
    let stops: Vec<f64> = stops.iter().map(|sum| sum.log(values) + stop).collect();
    // The first point carries the scale, as in the other explanations.
    let free = -SHAPELESS_RANGE.ln() * (cpus - 1) as f64;
    let width = 2.0 * SCALE_ERRORS * first.error;
    let shapeless = shapeless.ln() + free - width.ln();
    normalised(&logs, &limits, &stops, shapeless)
}

/// Adds the densities of all numbers of foreign threads, for one scale and serial share.
fn add_foreign(observed: &[Observed], time: &dyn Fn(f64) -> f64, sums: &mut [Sum]) {
    let (low, high, count) = LAMBDA;
    let alone: Vec<f64> = observed
        .iter()
        .map(|one| one.density(time(1.0 / one.threads)))
        .collect();
    let shared: Vec<f64> = observed
        .iter()
        .map(|one| {
            let mut sum = Sum::default();
            for lambda in grid(low, high, count) {
                sum.add(one.density(time((1.0 + lambda) / one.threads)));
            }
            sum.log(count as f64)
        })
        .collect();
    let cpus = observed.len();
    for (r, sum) in sums.iter_mut().enumerate() {
        let room = cpus - r;
        sum.add(alone[..room].iter().sum::<f64>() + shared[room..].iter().sum::<f64>());
    }
}

fn normalised(foreign: &[f64], limits: &[f64], stops: &[f64], shapeless: f64) -> Weights {
    let cpus = foreign.len();
    let all = foreign.iter().chain(stops).chain([&shapeless]);
    let most = all.clone().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = all.map(|log| (log - most).exp()).sum();
    let share = |log: &f64| (log - most).exp() / total;
    let mut enough = vec![0.0; cpus];
    for (limit, log) in limits.iter().zip(stops) {
        // A fifth of a thread is not worth another one.
        let threads = (limit - 0.2).ceil() as usize;
        enough[threads.clamp(1, cpus) - 1] += share(log);
    }
    Weights {
        foreign: foreign.iter().map(share).collect(),
        scaling: stops.iter().map(share).sum(),
        enough,
        shapeless: share(&shapeless),
    }
}

/// A sum of numbers that are too small for themselves, by their logarithms.
#[derive(Clone, Copy, Debug)]
struct Sum {
    most: f64,
    sum: f64,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum {
            most: f64::NEG_INFINITY,
            sum: 0.0,
        }
    }
}

impl Sum {
    fn add(&mut self, log: f64) {
        if log > self.most {
            self.sum = self.sum * (self.most - log).exp() + 1.0;
            self.most = log;
        } else if log.is_finite() {
            self.sum += (log - self.most).exp();
        }
    }

    /// Logarithm of the mean of `count` of them.
    fn log(&self, count: f64) -> f64 {
        self.most + (self.sum / count).ln()
    }
}
