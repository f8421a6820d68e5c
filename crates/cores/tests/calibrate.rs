//! Calibration on simulated sections: the model's times with noise of several kinds, with counted
//! errors. Seeds are fixed, so counts are, too.
#![allow(clippy::print_stdout, reason = "the counts are what one wants to see")]

use std::time::Duration;

use fastrand::Rng;
use hearth_cores::calibrate::{Calibrated, Calibration, Clocks, Doubt, calibrate_by, judge};

/// A machine with its others, and a section on it.
#[derive(Clone, Copy, Debug)]
struct Scene {
    cpus: usize,
    foreign: usize,
    /// Share of the section that no thread shortens.
    serial: f64,
    noise: Noise,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    /// Normal in logarithms, with this standard deviation.
    Normal(f64),
    /// The same, and a tenth of the runs take half as long again on average, some many times.
    Tails(f64),
    /// The same, and all times grow by this over the calibration.
    Drift(f64, f64),
    /// The same, and in a share of the runs one foreign thread is missing.
    Flicker(f64, f64),
}

fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

impl Scene {
    /// Time of a run, in seconds, at some part of the calibration from 0 to 1. The contention is
    /// another one in every run: between a bit and all of what the paper's upper bound says.
    fn time(&self, threads: usize, part: f64, random: &mut Rng) -> f64 {
        let missing = match self.noise {
            Noise::Flicker(_, share) => usize::from(random.f64() < share),
            _ => 0,
        };
        let foreign = self.foreign.saturating_sub(missing);
        let contention = match threads + foreign > self.cpus {
            true => 1.0 + 0.4 + 0.6 * random.f64(),
            false => 1.0,
        };
        let parallel = contention / threads as f64;
        let time = 0.01 * (self.serial + (1.0 - self.serial) * parallel);
        let (spread, factor) = match self.noise {
            Noise::Normal(spread) | Noise::Flicker(spread, _) => (spread, 1.0),
            Noise::Tails(spread) => match random.f64() < 0.1 {
                true => (spread, 1.0 - 0.5 * (1.0 - random.f64()).ln()),
                false => (spread, 1.0),
            },
            Noise::Drift(spread, growth) => (spread, 1.0 + growth * part),
        };
        time * factor * (spread * normal(random)).exp()
    }

    fn calibrated(&self, how: &Calibration, seed: u64) -> Calibrated {
        let mut random = Rng::with_seed(seed);
        let mut times = vec![Vec::new(); self.cpus];
        for round in 0..how.runs {
            for turn in 0..self.cpus {
                let at = if round % 2 == 0 {
                    turn
                } else {
                    self.cpus - 1 - turn
                };
                let part = (round * self.cpus + turn) as f64 / (how.runs * self.cpus) as f64;
                times[at].push(self.time(at + 1, part, &mut random));
            }
        }
        judge(how, &times, &[1.0; 9])
    }
}

/// Counts of calibrations.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u32,
    /// Told, and right.
    right: u32,
    /// Told, and wrong.
    wrong: u32,
    /// Chose more threads than there is room for.
    harmful: u32,
}

/// Every number of foreign threads below N, on 2, 4 and 8 CPUs, with a few serial shares.
fn count(noise: Noise, seeds: u64) -> Counts {
    let mut counts = Counts::default();
    let how = Calibration::default();
    for cpus in [2, 4, 8] {
        for foreign in 0..cpus {
            for serial in [0.0, 0.02, 0.08] {
                let scene = Scene {
                    cpus,
                    foreign,
                    serial,
                    noise,
                };
                for seed in 0..seeds {
                    let found = scene.calibrated(&how, seed);
                    counts.all += 1;
                    match found.foreign {
                        Some(told) if told == foreign as f64 => counts.right += 1,
                        Some(_) => counts.wrong += 1,
                        None => assert!(found.doubt.is_some()),
                    }
                    counts.harmful += u32::from(found.threads > cpus - foreign);
                    assert!((1..=cpus).contains(&found.threads));
                }
            }
        }
    }
    counts
}

#[track_caller]
fn assert_good(noise: Noise, right_least: f64, wrong_most: f64, harmful_most: f64) {
    let seeds = match std::env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => 200,
        None => 5,
    };
    let counts = count(noise, seeds);
    let share = |count: u32| f64::from(count) / f64::from(counts.all);
    let (right, wrong, harmful) = (
        share(counts.right),
        share(counts.wrong),
        share(counts.harmful),
    );
    let words = format!(
        "{noise:?}: right {right:.3}, wrong {wrong:.3}, harmful {harmful:.3} of {}",
        counts.all
    );
    let is_good = right >= right_least && wrong <= wrong_most && harmful <= harmful_most;
    assert!(is_good, "{words}");
    // Seen with --nocapture.
    println!("{words}");
}

#[test]
fn little_noise_is_no_obstacle() {
    assert_good(Noise::Normal(0.01), 0.98, 0.01, 0.01);
    assert_good(Noise::Normal(0.05), 0.95, 0.01, 0.01);
}

#[test]
fn with_more_noise_less_is_told_and_little_is_wrong() {
    assert_good(Noise::Normal(0.1), 0.85, 0.02, 0.02);
    assert_good(Noise::Normal(0.3), 0.2, 0.05, 0.05);
}

#[test]
fn outliers_do_not_decide() {
    assert_good(Noise::Tails(0.02), 0.95, 0.01, 0.01);
    assert_good(Noise::Tails(0.1), 0.8, 0.02, 0.02);
}

#[test]
fn a_slow_change_meets_all_numbers_of_threads() {
    assert_good(Noise::Drift(0.02, 0.2), 0.95, 0.01, 0.01);
    // Twice as slow at the end as at the begin: less is told, and still nothing wrong.
    assert_good(Noise::Drift(0.02, 1.0), 0.2, 0.01, 0.01);
}

/// One less is found where it is missing in most runs of a point by chance.
#[test]
fn a_thread_that_is_seldom_missing_counts() {
    assert_good(Noise::Flicker(0.02, 0.2), 0.85, 0.06, 0.06);
}

fn by_curve(cpus: usize, time: impl Fn(f64) -> f64, shares: &[f64]) -> Calibrated {
    let mut random = Rng::with_seed(7);
    let mut run = |threads: usize| time(threads as f64) * (0.01 * normal(&mut random)).exp();
    let times: Vec<Vec<f64>> = (1..=cpus)
        .map(|threads| (0..9).map(|_| run(threads)).collect())
        .collect();
    judge(&Calibration::default(), &times, shares)
}

#[test]
fn a_section_that_memory_limits_is_no_jump() {
    for (cpus, enough) in [(8, 3.5), (8, 4.0), (16, 6.0)] {
        let found = by_curve(cpus, |x| 1.0 / x.min(enough), &[1.0]);
        assert_eq!(found.doubt, Some(Doubt::StopsScaling), "{found:?}");
        assert_eq!(found.threads, enough.ceil() as usize);
        assert_eq!(found.foreign, None);
    }
}

#[test]
fn one_bad_point_does_not_decide() {
    let found = by_curve(8, |x| if x == 3.0 { 9.0 } else { 1.0 / x }, &[1.0]);
    assert_eq!((found.foreign, found.threads), (Some(0.0), 8), "{found:?}");
}

#[test]
fn times_without_shape_tell_nothing() {
    for curve in [|x: f64| x, |_| 1.0] {
        let found = by_curve(8, curve, &[1.0]);
        assert_eq!(found.foreign, None, "{found:?}");
        assert!(found.doubt.is_some());
    }
}

/// With N foreign threads and more every number of threads is slowed alike: the curve has no jump,
/// and only the section's own CPU time shows it.
#[test]
fn more_foreign_threads_than_cpus_show_in_cpu_time() {
    for (cpus, foreign) in [(1, 1), (2, 2), (4, 6)] {
        let share = cpus as f64 / f64::from(foreign + 1);
        let found = by_curve(cpus, |x| 2.0 / x, &[share; 9]);
        assert!((found.foreign.unwrap() - f64::from(foreign)).abs() < 0.01);
        assert_eq!((found.threads, found.doubt), (1, None));
        let without = by_curve(cpus, |x| 2.0 / x, &[]);
        assert_eq!(without.foreign, if cpus == 1 { None } else { Some(0.0) });
    }
}

#[test]
fn time_is_bounded_and_too_little_of_it_tells_nothing() {
    let scene = Scene {
        cpus: 4,
        foreign: 0,
        serial: 0.0,
        noise: Noise::Normal(0.01),
    };
    for (time_max, is_told) in [(10, false), (1000, true)] {
        let (mut random, now) = (Rng::with_seed(3), std::cell::Cell::new(Duration::ZERO));
        let how = Calibration {
            cpus: Some(4),
            time_max: Duration::from_millis(time_max),
            ..Calibration::default()
        };
        let clocks = &mut Clocks {
            elapsed: &mut || now.get(),
            used: &mut || None,
        };
        let mut calls = 0;
        let found = calibrate_by(&how, clocks, &mut |threads| {
            let time = Duration::from_secs_f64(scene.time(threads, 0.0, &mut random));
            now.set(now.get() + time);
            calls += 1;
            time
        });
        assert_eq!(found.foreign.is_some(), is_told, "{found:?}");
        assert!(now.get() < how.time_max + Duration::from_millis(15));
        assert!(calls <= 1 + 9 * 4);
        if !is_told {
            assert_eq!((found.doubt, found.threads), (Some(Doubt::TooFewRuns), 1));
        }
    }
}

#[test]
fn a_real_section_is_calibrated() {
    let how = Calibration {
        time_max: Duration::from_millis(200),
        ..Calibration::default()
    };
    let found = hearth_cores::calibrate::calibrate(&how, &mut |threads| {
        let begin = std::time::Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    (0..200_000 / threads).fold(1u64, |a, b| std::hint::black_box(a ^ b as u64))
                });
            }
        });
        begin.elapsed()
    });
    assert!((1..=found.cpus).contains(&found.threads), "{found:?}");
    assert!(found.points.len() <= found.cpus);
}
