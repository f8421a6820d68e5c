//! States of a pair on simulated machines: none is invented where there is one, and those that are
//! there are found, with their latencies and shares of time. `cargo run --release -p hearth-probe
//! --example pair_states` prints the figures of many more probes than are run here.

mod simulated;

use std::sync::atomic::AtomicBool;

use hearth_machine::synthetic;
use hearth_machine::topology::OsThread;
use hearth_probe::context::Context;
use hearth_probe::pair_states::{PairState, states};
use hearth_probe::pairs::{Matrix, Pair, TRANSFERS};
use hearth_sys::Fake;
use simulated::{Level, Noise, ROUGH, Simulated, USUAL};

const NEAR_NS: f64 = 26.0;
const FAR_NS: f64 = 124.0;

/// Siblings at times, and two cores otherwise.
fn two(far_share: f64) -> [Level; 2] {
    [(NEAR_NS, 1.0 - far_share), (FAR_NS, far_share)].map(|(ns, share)| Level { ns, share })
}

fn one(ns: f64) -> [Level; 1] {
    [Level { ns, share: 1.0 }]
}

fn probed(levels: &[Level], dwell_s: f64, noise: Noise, seed: u64) -> Vec<PairState> {
    let mut pair = Simulated::new(levels, dwell_s, noise, seed);
    states(&pair.visits(12, 2048), TRANSFERS)
}

#[test]
fn none_is_invented() {
    for noise in [USUAL, ROUGH] {
        for (visits, samples) in [(7, 2048), (12, 2048), (12, 512), (30, 64), (12, 16)] {
            for seed in 0..20 {
                let level = one(if seed % 2 == 0 { NEAR_NS } else { FAR_NS });
                let mut pair = Simulated::new(&level, 1.0, noise, seed);
                let found = states(&pair.visits(visits, samples), TRANSFERS);
                assert_eq!(found, [], "seed {seed}, {visits} visits of {samples}");
            }
        }
    }
}

/// The canary: the same samples in any order but that of time show states, were lines levels.
#[test]
fn kinds_of_lines_are_no_states() {
    let kinds = Noise {
        far_lines: (FAR_NS / NEAR_NS, 0.5),
        ..USUAL
    };
    let mut pair = Simulated::new(&one(NEAR_NS), 1.0, kinds, 1);
    let mut visits = pair.visits(12, 2048);
    assert_eq!(states(&visits, TRANSFERS), []);
    for visit in &mut visits {
        visit.sort_by(f64::total_cmp);
    }
    assert_eq!(states(&visits, TRANSFERS).len(), 2);
}

#[test]
fn both_states_are_found_and_covered() {
    let middle = Simulated::new(&[], 1.0, USUAL, 0).middle();
    let (mut covered, mut shares, mut all) = (0, 0, 0);
    for far_share in [0.1, 0.3, 0.5, 0.9] {
        for dwell_s in [0.01, 1.0, 5.0] {
            for seed in 0..5 {
                let levels = two(far_share);
                let mut pair = Simulated::new(&levels, dwell_s, USUAL, seed);
                let visits = pair.visits(12, 2048);
                let found = states(&visits, TRANSFERS);
                // A state that a probe meets for an instant cannot be told from a disturbance.
                if found.is_empty() {
                    let least = pair.times.iter().min();
                    let few = least.is_some_and(|times| *times < 12 * 2048 / 10);
                    assert!(
                        few,
                        "share {far_share}, {dwell_s} s, seed {seed}: {:?}",
                        pair.times
                    );
                    continue;
                }
                assert_eq!(
                    found.len(),
                    2,
                    "share {far_share}, {dwell_s} s, seed {seed}: {found:?}"
                );
                all += 2;
                for (state, level) in found.iter().zip(&levels) {
                    covered += usize::from(state.one_way_ns.covers(level.ns * middle));
                    shares += usize::from(state.time_share.covers(level.share));
                }
                let sum: f64 = found.iter().map(|state| state.time_share.value).sum();
                assert!((sum - 1.0).abs() < 1e-9);
            }
        }
    }
    assert!(all >= 80, "{all} states");
    assert!(
        covered * 10 >= all * 9,
        "{covered} of {all} latencies are covered"
    );
    assert!(
        shares * 10 >= all * 8,
        "{shares} of {all} shares are covered"
    );
}

#[test]
fn three_states_are_three() {
    let levels = [(26.0, 0.3), (60.0, 0.4), (140.0, 0.3)].map(|(ns, share)| Level { ns, share });
    let found = probed(&levels, 0.02, USUAL, 3);
    let ns: Vec<f64> = found.iter().map(|state| state.one_way_ns.value).collect();
    assert_eq!(ns.len(), 3, "{ns:?}");
    assert!(ns.windows(2).all(|pair| pair[0] * 1.8 < pair[1]), "{ns:?}");
}

/// Samples of a slow state last longer: in each visit they are fewer than their share of time.
#[test]
fn shares_are_of_time() {
    let level = |ns: f64| vec![ns; 1024];
    let mixed = [level(20.0), level(80.0)].concat();
    let found = states(&vec![mixed; 8], TRANSFERS);
    let shares: Vec<f64> = found.iter().map(|state| state.time_share.value).collect();
    assert!((shares[0] - 0.2).abs() < 1e-9 && (shares[1] - 0.8).abs() < 1e-9);
    // Few visits say nothing about shares.
    let few = states(&[level(20.0), level(80.0)], TRANSFERS);
    let share = few[0].time_share;
    assert_eq!((share.low, share.value, share.high), (0.0, 0.5, 1.0));
}

fn measured(levels: &[Level], dwell_s: f64) -> (Matrix, u64) {
    let system = Fake::with_cores(&[0, 1]).with_slow_clock(1_000);
    let cancel = AtomicBool::new(false);
    let mut context = Context::new(&system, 1, &cancel);
    let mut matrix = Matrix::new(&[0, 1], None);
    let mut pair = Simulated::new(levels, dwell_s, USUAL, 7);
    for _ in 0..12 {
        pair.rest(5.0);
        let mut refused = |why| panic!("{why}");
        let visit = matrix.visit(&mut context, &mut pair, 0.1, &mut refused);
        visit.expect("a simulated pair cannot be refused");
    }
    (matrix, context.discards.gap)
}

/// The way from samples to the profile.
#[test]
fn a_probe_tells_states_apart() {
    let (matrix, gaps) = measured(&two(0.3), 0.01);
    let (pairs, regained) = matrix.sum_up();
    let pair = &pairs[0];
    let [near, far] = pair.states[..] else {
        panic!("{pair:?}");
    };
    assert!(near.one_way_ns.high * 3.0 < far.one_way_ns.low, "{pair:?}");
    // The figure is the mean over time, and its interval holds both states.
    let mean = [near, far].map(|s| s.time_share.value * s.one_way_ns.value);
    assert_eq!(pair.one_way_ns.value, mean.iter().sum::<f64>());
    assert_eq!(pair.one_way_ns.low, near.one_way_ns.low);
    assert_eq!(pair.one_way_ns.high, far.one_way_ns.high);
    // In a visit that is mostly near, samples of the far state pass for gaps, and are none.
    assert!(regained > 0 && regained <= gaps, "{regained} of {gaps}");
}

#[test]
fn a_pair_with_one_state_is_as_it_was() {
    let (matrix, _) = measured(&one(FAR_NS), 2.0);
    let (pairs, regained) = matrix.sum_up();
    assert_eq!((pairs[0].states.len(), regained), (0, 0));

    let system = Fake::with_cores(&[0, 1]).with_slow_clock(1_000);
    let cancel = AtomicBool::new(false);
    let mut context = Context::new(&system, 1, &cancel);
    let mut simulated = Simulated::new(&one(FAR_NS), 2.0, USUAL, 7);
    let mut pair = Pair::new([0, 1]);
    for _ in 0..7 {
        let visit = pair.visit(&mut context, &mut simulated, 0.1);
        visit.expect("a simulated pair cannot be refused");
    }
    let whole = hearth_probe::statistics::across_rounds(pair.rounds());
    assert_eq!(pair.sum_up().map(|found| found.one_way_ns), whole);
}

#[test]
fn the_profile_has_the_states() {
    let (matrix, _) = measured(&two(0.5), 2.0);
    let machine = synthetic::parse("1 package, 2 cores, l3 8M per package").expect("a machine");
    let [a, b] = [0, 1].map(|os| machine.thread_of(OsThread(os)).expect("there"));
    let (pairs, _) = matrix.sum_up();
    let findings = simulated::findings(pairs.clone());
    let profile = hearth_probe::convert::profile(
        &findings,
        machine,
        hearth_machine::profile::Host::default(),
        &hearth_probe::convert::About::default(),
    );
    let stored = profile.pair(a, b).expect("measured");
    assert_eq!(stored.states.len(), 2);
    for (stored, found) in stored.states.iter().zip(&pairs[0].states) {
        assert_eq!(stored.one_way_ns.value, found.one_way_ns.value);
        assert_eq!(stored.time_share.value, found.time_share.value);
    }
    let text = profile.to_json().expect("sound");
    assert_eq!(
        hearth_machine::profile::Profile::from_json(&text),
        Ok(profile)
    );
}
