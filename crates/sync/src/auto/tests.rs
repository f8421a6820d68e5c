//! The controller on simulated loads: seeded, with noise, and with phases.

use super::{Controller, Window};

/// Ticks are nanoseconds.
const SECOND: f64 = 1e9;

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A sample of the standard normal distribution, approximately.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// From a given time on: each mode's calls per second, and the number of callers.
#[derive(Clone)]
struct Phase {
    begins: f64,
    rates: Vec<f64>,
    callers: u32,
}

struct Noise {
    /// The standard deviation of a window's rate, as a share.
    window: f64,
    /// The share of windows in which another program takes half of the machine.
    stolen: f64,
}

const CALM: Noise = Noise {
    window: 0.01,
    stolen: 0.0,
};
const ROUGH: Noise = Noise {
    window: 0.06,
    stolen: 0.05,
};

struct Outcome {
    controller: Controller,
    /// For each window its end, its calls, and the mean calls of the best mode.
    windows: Vec<(f64, f64, f64)>,
    /// Ticks in modes other than the home mode.
    away: f64,
}

fn phase(begins: f64, rates: &[f64], callers: u32) -> Phase {
    Phase {
        begins,
        rates: rates.to_vec(),
        callers,
    }
}

fn run(seconds: f64, phases: &[Phase], noise: &Noise, seed: u64) -> Outcome {
    let names: Vec<String> = (0..phases[0].rates.len())
        .map(|mode| format!("mode {mode}"))
        .collect();
    let mut controller = Controller::new(names, SECOND);
    let (mut random, mut windows, mut now, mut away) = (Random(seed), Vec::new(), 0.0, 0.0);
    while now < seconds {
        let step = controller.step();
        let length = step.ticks as f64 / SECOND;
        let phase = phases
            .iter()
            .rev()
            .find(|phase| phase.begins <= now)
            .unwrap();
        let mut factor = (noise.window * random.normal()).exp();
        if random.next() < noise.stolen {
            factor *= 0.5;
        }
        let calls = (phase.rates[step.mode] * length * factor).round();
        let best = phase.rates.iter().copied().fold(0.0, f64::max) * length * factor;
        now += length;
        windows.push((now, calls, best));
        if step.mode != controller.home() {
            away += length;
        }
        controller.observe(&Window {
            ticks: step.ticks,
            calls: calls as u64,
            callers: phase.callers,
            ..Window::default()
        });
    }
    Outcome {
        controller,
        windows,
        away,
    }
}

/// The least share of the best mode's calls over any ten seconds.
fn worst_ten_seconds(outcome: &Outcome) -> f64 {
    let (mut first, mut calls, mut best, mut worst) = (0, 0.0, 0.0, f64::INFINITY);
    for &(end, made, possible) in &outcome.windows {
        calls += made;
        best += possible;
        while end - outcome.windows[first].0 > 10.0 {
            worst = f64::min(worst, calls / best);
            calls -= outcome.windows[first].1;
            best -= outcome.windows[first].2;
            first += 1;
        }
    }
    worst
}

/// Two modes, the second so many times as fast as the first.
fn two(ratio: f64) -> Vec<Phase> {
    vec![phase(0.0, &[2e6, 2e6 * ratio], 4)]
}

#[test]
fn any_ten_seconds_are_within_a_twentieth_of_the_better_mode() {
    for noise in [&CALM, &ROUGH] {
        for ratio in [
            0.001, 0.1, 0.5, 0.8, 0.95, 0.99, 1.0, 1.02, 1.05, 1.1, 1.5, 3.0, 100.0,
        ] {
            for seed in 0..2 {
                let outcome = run(25.0, &two(ratio), noise, seed);
                let worst = worst_ten_seconds(&outcome);
                assert!(
                    worst > 0.95,
                    "ratio {ratio}, noise {}, seed {seed}: {worst:.3}, {}",
                    noise.window,
                    outcome.controller.explain()
                );
            }
        }
    }
}

#[test]
fn a_load_that_stays_sees_few_switches() {
    for ratio in [0.5, 0.97, 1.0, 1.03, 1.5] {
        for seed in 0..8 {
            let outcome = run(120.0, &two(ratio), &ROUGH, seed);
            let switches = outcome.controller.switches();
            assert!(switches <= 3, "ratio {ratio}, seed {seed}: {switches}");
        }
    }
}

#[test]
fn where_one_mode_is_clearly_better_it_is_found_once() {
    for (ratio, home, switches) in [(0.6, 0, 0), (1.6, 1, 1)] {
        for seed in 0..8 {
            let controller = run(60.0, &two(ratio), &ROUGH, seed).controller;
            assert_eq!((controller.home(), controller.switches()), (home, switches));
        }
    }
}

#[test]
fn trials_become_rare_while_nothing_changes() {
    let outcome = run(60.0, &two(0.7), &CALM, 7);
    assert!(outcome.away < 0.005 * 60.0 * 1.0, "{}", outcome.away);
}

#[test]
fn a_change_of_phase_is_followed() {
    let phases = [
        phase(0.0, &[2e6, 1e6], 2),
        phase(20.0, &[5e5, 1.5e6], 8),
        phase(40.0, &[3e6, 1e6], 2),
    ];
    for noise in [&CALM, &ROUGH] {
        for seed in 0..5 {
            let outcome = run(60.0, &phases, noise, seed);
            let worst = worst_ten_seconds(&outcome);
            assert!(worst > 0.95, "seed {seed}: {worst:.3}");
            let switches = outcome.controller.switches();
            assert_eq!(switches, 2, "seed {seed}");
        }
    }
}

/// The home mode is as fast as before and another has become better: only a trial can show it.
#[test]
fn what_cannot_be_seen_at_home_is_found_by_the_next_trial() {
    let phases = [phase(0.0, &[2e6, 1e6], 4), phase(30.0, &[2e6, 3e6], 4)];
    let outcome = run(40.0, &phases, &CALM, 3);
    assert_eq!(outcome.controller.home(), 1);
}

#[test]
fn a_load_that_never_holds_still_costs_no_more() {
    // Every half second the number of callers changes, and with it the rate.
    let phases: Vec<Phase> = (0..80)
        .map(|half| {
            let rate = if half % 2 == 0 { 1e6 } else { 4e6 };
            phase(f64::from(half) / 2.0, &[rate, 0.5 * rate], 2)
        })
        .collect();
    let outcome = run(40.0, &phases, &CALM, 1);
    assert!(worst_ten_seconds(&outcome) > 0.97);
    assert_eq!(outcome.controller.switches(), 0);
}

#[test]
fn the_best_of_three_is_found() {
    for best in 0..3 {
        let mut rates = [1e6, 1.1e6, 0.9e6];
        rates[best] = 2e6;
        let outcome = run(20.0, &[phase(0.0, &rates, 4)], &ROUGH, best as u64);
        assert_eq!(
            outcome.controller.home(),
            best,
            "{}",
            outcome.controller.explain()
        );
        assert!(worst_ten_seconds(&outcome) > 0.95);
    }
}

/// Message mode is as fast but takes a core: the controller goes home again.
#[test]
fn of_two_that_are_as_fast_the_first_is_taken() {
    let phases = [phase(0.0, &[1e6, 2e6], 4), phase(10.0, &[2e6, 2.01e6], 1)];
    let outcome = run(40.0, &phases, &CALM, 2);
    assert_eq!(
        outcome.controller.home(),
        0,
        "{}",
        outcome.controller.explain()
    );
}

#[test]
fn few_calls_make_longer_windows_and_none_are_no_news() {
    let mut controller = Controller::new(["a", "b"], SECOND);
    let short = controller.step().ticks;
    for _ in 0..20 {
        controller.observe(&Window {
            ticks: controller.step().ticks,
            ..Window::default()
        });
    }
    assert_eq!(controller.step().mode, 0);
    let outcome = run(20.0, &[phase(0.0, &[2e3, 6e3], 4)], &CALM, 2);
    assert!(outcome.controller.step().ticks > short);
    assert_eq!(outcome.controller.home(), 1);
}

/// A mode in which no call succeeds is left at the end of the first window.
#[test]
fn a_mode_that_serves_nobody_is_left() {
    let outcome = run(30.0, &two(0.0), &CALM, 2);
    assert_eq!(outcome.controller.home(), 0);
    assert!(outcome.away < 0.01 * 30.0, "{}", outcome.away);
}

#[test]
fn it_explains_itself() {
    let mut controller = Controller::new(["under the lock", "by message"], SECOND);
    assert_eq!(controller.explain(), "under the lock: nothing measured yet");
    let mut seconds = 0.0;
    while seconds < 12.0 {
        let step = controller.step();
        let section = [410, 110][step.mode];
        let calls = step.ticks / [526, 385][step.mode];
        controller.observe(&Window {
            ticks: step.ticks,
            calls,
            samples: calls / 64,
            section_ticks: calls / 64 * section,
            contended: if step.mode == 0 { calls / 2 } else { 0 },
            wait_ticks: calls / 2 * 700,
            callers: 4,
        });
        seconds += step.ticks as f64 / SECOND;
    }
    assert_eq!(
        controller.explain(),
        "by message: 2.6 M calls/s, a section takes 110 ns; under the lock 1.9 M; switched 12 s ago from \
         under the lock, for 37 % more calls"
    );
    let back = controller.starting_in(0);
    assert!(
        back.explain().starts_with(
            "under the lock: 1.9 M calls/s, a section takes 410 ns of which about 300 ns are fetching lines \
             from other cores, 50 % of the calls wait, 700 ns each"
        ),
        "{}",
        back.explain()
    );
    // With 38 ns a line; ticks are those of the test above.
    let told = back.line_takes(38e-9).explain();
    let words = "about 300 ns are fetching lines from other cores (8 lines or more), 50 %";
    assert!(told.contains(words), "{told}");
}
