//! Intervals that cover: on invented machines whose truth is known.

use hearth_probe::disturbance::{Batch, Before, Disturbed};
use hearth_probe::statistics::{
    Measured, Round, across_rounds, drift, median, median_with_interval,
};

/// A normal variate, as the sum of twelve uniform ones.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

#[test]
fn medians_of_numbers_alone() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[f64::NAN, 3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
}

#[test]
fn few_values_give_wide_intervals() {
    assert_eq!(median_with_interval(&[], 3), None);
    let one = median_with_interval(&[7.0], 3).unwrap();
    assert_eq!(
        (one.low, one.value, one.high, one.discarded),
        (3.5, 7.0, 14.0, 3)
    );
    let two = median_with_interval(&[7.0, 9.0], 0).unwrap();
    assert!(two.low > 0.0 && two.low < 2.0, "{two:?}");
    assert!(two.high > 17.0, "{two:?}");
    let signed = median_with_interval(&[-1.0, 1.0], 0).unwrap();
    assert!(signed.low < -12.0 && signed.high > 12.0, "{signed:?}");
    let scaled = two.scaled(-1.0);
    assert!(scaled.low < scaled.value && scaled.covers(-8.0));
}

/// Lines differ by 8 %, rounds by `drift`, chunks by 3 %: how often does the interval contain the
/// median over all lines that there could be?
fn coverage(drift: f64, rounds: usize, lines: usize, seed: u64) -> f64 {
    const TRIALS: usize = 400;
    let mut random = fastrand::Rng::with_seed(seed);
    let truth = 60.0;
    let mut covered = 0;
    for _ in 0..TRIALS {
        let rounds: Vec<Round> = (0..rounds)
            .map(|_| {
                let moment = 1.0 + drift * normal(&mut random);
                let mut batch = Batch::of_chunks(80);
                for _ in 0..lines {
                    let line = truth * moment * (1.0 + 0.08 * normal(&mut random));
                    let ns = line * (1.0 + 0.03 * normal(&mut random));
                    batch.add_plain(ns * 80.0);
                }
                batch.finish().unwrap().round
            })
            .collect();
        covered += usize::from(across_rounds(&rounds).unwrap().covers(truth));
    }
    covered as f64 / TRIALS as f64
}

#[test]
fn intervals_cover_line_effects_and_drift() {
    for (index, drift) in [0.0, 0.01, 0.05].into_iter().enumerate() {
        for rounds in [3, 7, 12, 30] {
            let seed = 100 * index as u64 + rounds as u64;
            let share = coverage(drift, rounds, 64, seed);
            assert!(share >= 0.9, "drift {drift}, {rounds} rounds: {share}");
        }
    }
}

/// The canary: an interval from the chunks of a single line does not cover.
#[test]
fn one_line_misleads() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut covered = 0;
    for _ in 0..200 {
        let line = 60.0 * (1.0 + 0.08 * normal(&mut random));
        let chunks: Vec<f64> = (0..300)
            .map(|_| line * (1.0 + 0.03 * normal(&mut random)))
            .collect();
        covered += usize::from(median_with_interval(&chunks, 0).unwrap().covers(60.0));
    }
    assert!(covered < 60, "{covered} of 200");
}

#[test]
fn gaps_are_discarded_and_counted() {
    let mut batch = Batch::of_chunks(100);
    for index in 0..50 {
        // Chunks of 10 µs, every tenth with a gap of 20 µs in it.
        let gap = if index % 10 == 0 { 20_000.0 } else { 0.0 };
        batch.add_plain(10_000.0 + gap + f64::from(index));
    }
    let outcome = batch.finish().unwrap();
    assert_eq!(outcome.discards.gap, 5);
    assert_eq!(outcome.round.inner.samples, 45);
    assert_eq!(outcome.round.inner.discarded, 5);
    assert!(outcome.round.inner.covers(100.25));
    assert!(!outcome.is_disturbed);
}

#[test]
fn disturbed_windows_serve_only_when_nothing_else_is_there() {
    let window = |ns: f64| {
        let mut batch = Batch::of_chunks(1);
        (0..20).for_each(|_| batch.add_plain(ns));
        batch
    };
    let mut batch = Batch::default();
    batch.add_window(window(50.0), Disturbed::Steal);
    batch.add_window(window(10.0), Disturbed::No);
    batch.add_window(window(70.0), Disturbed::Interrupts);
    let outcome = batch.finish().unwrap();
    assert_eq!(outcome.round.inner.value, 10.0);
    assert_eq!(
        (outcome.discards.steal, outcome.discards.interrupted),
        (20, 20)
    );
    let mut batch = Batch::default();
    batch.add_window(window(50.0), Disturbed::Steal);
    let outcome = batch.finish().unwrap();
    assert!(outcome.is_disturbed);
    assert_eq!(
        (outcome.round.inner.value, outcome.discards.total()),
        (50.0, 0)
    );
    assert!(Batch::default().finish().is_none());
}

#[test]
fn a_switched_chunk_is_discarded() {
    let mut batch = Batch::of_chunks(1);
    let before = Before::now();
    // Waiting for another thread gives the core up.
    std::thread::spawn(|| std::thread::park_timeout(std::time::Duration::from_millis(2)))
        .join()
        .unwrap();
    batch.add_chunk(1.0, &before);
    batch.add_plain(2.0);
    let outcome = batch.finish().unwrap();
    assert_eq!(outcome.discards.switched + outcome.discards.migrated, 1);
    assert_eq!(outcome.round.inner.samples, 1);
}

/// The machine wanders: each round's truth is near that of the round before. The interval must hold
/// the long run's median nearly as often as promised, and oftener than without regard to it.
#[test]
fn intervals_know_of_rounds_that_resemble_their_neighbours() {
    const TRIALS: usize = 2000;
    const STICKING: f64 = 0.5;
    let mut random = fastrand::Rng::with_seed(11);
    let (mut covered, mut covered_plainly) = (0, 0);
    for _ in 0..TRIALS {
        let mut state = normal(&mut random);
        let values: Vec<f64> = (0..24)
            .map(|_| {
                let fresh = (1.0 - STICKING * STICKING).sqrt() * normal(&mut random);
                state = STICKING * state + fresh;
                60.0 + state
            })
            .collect();
        let rounds: Vec<Round> = values
            .iter()
            .map(|&value| Round {
                inner: Measured {
                    value,
                    low: value,
                    high: value,
                    samples: 1,
                    discarded: 0,
                },
            })
            .collect();
        covered += usize::from(across_rounds(&rounds).unwrap().covers(60.0));
        let plain = median_with_interval(&values, 0).unwrap();
        covered_plainly += usize::from(plain.covers(60.0));
    }
    let share = covered as f64 / TRIALS as f64;
    assert!(share > 0.9, "{share}");
    assert!(covered_plainly < covered - TRIALS / 20, "{covered_plainly}");
}

#[test]
fn drift_is_seen_by_ranks() {
    let rising: Vec<f64> = (0..20).map(f64::from).collect();
    assert!(drift(&rising) > 0.8);
    let swinging: Vec<f64> = (0..20).map(|n| f64::from(n % 2)).collect();
    assert_eq!(drift(&swinging), 0.0);
    let mut outlier = swinging.clone();
    outlier[7] = 1e9;
    assert_eq!(drift(&outlier), 0.0);
    assert_eq!(drift(&rising[..5]), 0.0);
}
