//! The model of the paper on oversubscription: CPUs that a program gets among others, and what
//! that makes of a section with static parts.
//!
//! Christmann, Hebisch, Weisbecker: *Oversubscription of Computational Resources on Multicore
//! Desktop Systems*, MSEPT 2012, equations (1) to (6). A machine has N CPUs; r threads of others
//! were there first; the program runs x threads. All are always ready and of one priority, spread
//! evenly over the CPUs, and stay where they are.

/// Share of the machine that the program gets once it is full: `x / (r + x)`, equation (1).
#[must_use]
pub fn share(threads: u32, foreign: u32) -> f64 {
    f64::from(threads) / f64::from((foreign + threads).max(1))
}

/// Fewest threads that take turns on a CPU, `max(⌊(r + x) / N⌋, 1)`, equation (2). `cpus` of 0
/// count as 1, here and below.
#[must_use]
pub fn contention_min(threads: u32, foreign: u32, cpus: u32) -> u32 {
    ((foreign + threads) / cpus.max(1)).max(1)
}

/// Most threads that take turns on a CPU, `⌈(r + x) / N⌉`, equation (3). One of the program's is
/// among them, as the others' were there first.
#[must_use]
pub fn contention_max(threads: u32, foreign: u32, cpus: u32) -> u32 {
    (foreign + threads).div_ceil(cpus.max(1))
}

/// CPUs' worth of time that the program's x threads get at a contention δ: `min(x / δ, N)`,
/// equation (5).
#[must_use]
pub fn obtained(threads: u32, contention: f64, cpus: u32) -> f64 {
    (f64::from(threads) / contention).min(f64::from(cpus.max(1)))
}

/// Both bounds of a section's time without its scale, `1 / n(x, δ)` of equation (6): with the least
/// and the most contention.
#[must_use]
pub fn bounds(threads: u32, foreign: u32, cpus: u32) -> (f64, f64) {
    let time = |contention: u32| 1.0 / obtained(threads, f64::from(contention), cpus);
    (
        time(contention_min(threads, foreign, cpus)),
        time(contention_max(threads, foreign, cpus)),
    )
}

/// The linear transformation of equation (6): a scale, which the work gives, and a constant, the
/// part that no thread shortens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Time that the parallel part takes on one CPU.
    pub scale: f64,
    /// Time beside it.
    pub constant: f64,
}

impl Line {
    /// The line with the least squares of what is left, through pairs of `1 / n` and a time; `None`
    /// for fewer than two different values of `1 / n`.
    #[must_use]
    pub fn fit(pairs: &[(f64, f64)]) -> Option<Line> {
        let count = pairs.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
        let across = mean(&|pair| (pair.0 - x).powi(2));
        let scale = mean(&|pair| (pair.0 - x) * (pair.1 - y)) / across;
        let line = Line {
            scale,
            constant: y - scale * x,
        };
        (across > 0.0 && scale.is_finite()).then_some(line)
    }

    /// Time of a section that obtains `1 / inverse` CPUs.
    #[must_use]
    pub fn time(&self, inverse: f64) -> f64 {
        self.constant + self.scale * inverse
    }
}

/// Number of threads at which the section's time jumps: the first at which r + x exceeds N; `None`
/// if that is so from one thread on.
#[must_use]
pub fn jump(foreign: u32, cpus: u32) -> Option<u32> {
    (foreign < cpus).then(|| cpus - foreign + 1)
}
