//! A simulated pair of hardware threads: what is true is known, and samples come in the order of
//! time with everything that disturbs real ones.
#![allow(dead_code, reason = "each user takes a part")]

use hearth_probe::context::{Context, Stop};
use hearth_probe::disturbance::Batch;
use hearth_probe::pairs::{PairLatency, TRANSFERS, Transfers};
use hearth_probe::{Discards, Findings, ProbeOptions};
use hearth_sys::clock::Clock;

/// Time of a sample in transfers: three chunks and their warming up, there and back.
const TRANSFERS_OF_SAMPLE: f64 = 256.0;

/// Duration of a burst, in seconds.
const BURST_S: f64 = 1e-3;

/// A state of the pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) ns: f64,
    pub(crate) share: f64,
}

/// Disturbances within one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// Relative deviation of lines, and the ratio of a second kind of lines with its part.
    pub(crate) lines: f64,
    pub(crate) far_lines: (f64, f64),
    /// Relative deviation of visits, and of the walk of the level within one.
    pub(crate) visits: f64,
    pub(crate) walk: f64,
    /// Part of samples that are longer by a factor with a Pareto tail of exponent 1.2.
    pub(crate) outliers: f64,
    /// Part of the time in bursts of a millisecond, longer by a factor with a tail of exponent 2.
    pub(crate) bursts: f64,
}

/// Noise of virtual machines: lines differ by a third, visits by some percent, and the tails are
/// heavy.
pub(crate) const USUAL: Noise = Noise {
    lines: 0.12,
    far_lines: (1.35, 0.5),
    visits: 0.06,
    walk: 0.03,
    outliers: 0.02,
    bursts: 0.01,
};

/// Worse than any machine that was seen.
pub(crate) const ROUGH: Noise = Noise {
    lines: 0.25,
    far_lines: (1.8, 0.35),
    visits: 0.1,
    walk: 0.05,
    outliers: 0.08,
    bursts: 0.05,
};

/// A normal variate, by Box and Muller.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// The simulated pair.
pub(crate) struct Simulated {
    pub(crate) levels: Vec<Level>,
    /// Mean time for which a state holds, in seconds.
    pub(crate) dwell_s: f64,
    pub(crate) noise: Noise,
    random: fastrand::Rng,
    state: usize,
    /// Deviations of the visit and of the moment, as logarithms.
    visit: f64,
    moment: f64,
    burst_s: f64,
    burst: f64,
    /// Samples taken of each state.
    pub(crate) times: Vec<usize>,
}

impl Simulated {
    pub(crate) fn new(levels: &[Level], dwell_s: f64, noise: Noise, seed: u64) -> Simulated {
        let mut simulated = Simulated {
            levels: levels.to_vec(),
            dwell_s,
            noise,
            random: fastrand::Rng::with_seed(seed),
            state: 0,
            visit: 0.0,
            moment: 0.0,
            burst_s: 0.0,
            burst: 1.0,
            times: vec![0; levels.len()],
        };
        simulated.state = simulated.drawn();
        simulated
    }

    fn drawn(&mut self) -> usize {
        let mut at = self.random.f64();
        for (state, level) in self.levels.iter().enumerate() {
            at -= level.share;
            if at < 0.0 {
                return state;
            }
        }
        self.levels.len().saturating_sub(1)
    }

    fn normal(&mut self) -> f64 {
        normal(&mut self.random)
    }

    fn pareto(&mut self, exponent: f64) -> f64 {
        (1.0 - self.random.f64()).powf(-1.0 / exponent)
    }

    /// Lets time pass between visits.
    pub(crate) fn rest(&mut self, seconds: f64) {
        self.change(seconds);
        self.visit = self.noise.visits * self.normal();
        self.burst_s = 0.0;
    }

    /// A state is drawn anew, by the shares, after times whose mean gives the dwell.
    fn change(&mut self, seconds: f64) {
        if self.random.f64() < 1.0 - (-seconds / self.dwell_s).exp() {
            self.state = self.drawn();
        }
    }

    /// Lets a sample's time pass.
    fn pass(&mut self, seconds: f64) {
        self.change(seconds);
        self.burst_s -= seconds;
        let begins = self.noise.bursts * seconds / BURST_S;
        if self.burst_s <= 0.0 && self.random.f64() < begins {
            self.burst_s = BURST_S;
            self.burst = self.pareto(2.0);
        }
    }

    /// One sample, ns.
    pub(crate) fn sample(&mut self) -> f64 {
        self.times[self.state] += 1;
        let level = self.levels[self.state].ns;
        self.pass(level * TRANSFERS_OF_SAMPLE / 1e9);
        self.moment = 0.98 * self.moment + 0.2 * self.noise.walk * self.normal();
        let line = self.noise.lines * self.normal();
        let (far, part) = self.noise.far_lines;
        let mut ns = level * (self.visit + self.moment + line).exp();
        if self.random.f64() < part {
            ns *= far;
        }
        if self.random.f64() < self.noise.outliers {
            ns *= self.pareto(1.2);
        }
        if self.burst_s > 0.0 {
            ns *= self.burst;
        }
        ns
    }

    /// The true median over lines, relative to a state's level.
    pub(crate) fn middle(&self) -> f64 {
        let (far, part) = self.noise.far_lines;
        let mut random = fastrand::Rng::with_seed(0);
        let line = |_| {
            let is_far = random.f64() < part;
            let normal = normal(&mut random);
            let outlier = match random.f64() < self.noise.outliers {
                true => (1.0 - random.f64()).powf(-1.0 / 1.2),
                false => 1.0,
            };
            (self.noise.lines * normal).exp() * if is_far { far } else { 1.0 } * outlier
        };
        let lines: Vec<f64> = (0..20_000).map(line).collect();
        hearth_probe::statistics::median(&lines).expect("there are lines")
    }

    /// A probe's visits.
    pub(crate) fn visits(&mut self, count: usize, samples: usize) -> Vec<Vec<f64>> {
        let visit = |_| {
            self.rest(5.0);
            (0..samples).map(|_| self.sample()).collect()
        };
        (0..count).map(visit).collect()
    }
}

impl Transfers for Simulated {
    fn window(&mut self, _: &mut Context<'_>, _: [usize; 2], count: usize) -> Result<Batch, Stop> {
        let mut batch = Batch::of_chunks(TRANSFERS);
        for _ in 0..count {
            batch.add_plain(self.sample() * TRANSFERS as f64);
        }
        Ok(batch)
    }
}

/// Findings of nothing but pairs.
pub(crate) fn findings(pairs: Vec<PairLatency>) -> Findings {
    Findings {
        options: ProbeOptions::default(),
        seconds: 1.0,
        cores: vec![0, 1],
        quota: None,
        clock: Clock::monotonic(),
        offsets: Vec::new(),
        curves: Vec::new(),
        states: Vec::new(),
        pairs,
        pairs_all: 1,
        bandwidths: Vec::new(),
        distances: None,
        costs: Vec::new(),
        messages: Vec::new(),
        noise: Vec::new(),
        discards: Discards::default(),
        disturbed: 0,
        missing: Vec::new(),
    }
}
