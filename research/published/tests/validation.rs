//! Compares predictions with measurements they have not seen, on a simulated truth.

#[path = "../../../crates/model/tests/truth/mod.rs"]
mod truth;

use std::collections::BTreeSet;

use hearth_machine::profile::{Carrier, Exchange, Figure, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::Thread;
use hearth_model::fitted::{Between, Buffer, FitError, Flow, Model, Question, Sample};
use hearth_published::validation::Validation;
use truth::Truth;

#[test]
fn held_out_points_are_predicted_well_and_covered() {
    let (mut inside, mut points) = (0.0, 0.0);
    for seed in 21..=22 {
        let mut truth = Truth::new(seed);
        let samples = truth.samples();
        let profile = truth.profile();
        let model = Model::new(&profile).expect("sound");
        let found = Validation::held_out(&profile, &model, &samples, 2, seed).expect("samples");
        assert!(found.meets_goals(), "seed {seed}: {:?}", found.all);
        assert!(found.all.ours.spearman >= Some(0.9));
        // One and the same latency for a line and for a thousand, and no transfer between cores:
        // the source's model ranks well and is far off.
        let (ours, source) = (found.all.ours, found.all.source);
        assert!(source.median_error_percent > 2.0 * ours.median_error_percent);

        assert_eq!(found.checks.len(), samples.len());
        for (check, sample) in found.checks.iter().zip(&samples) {
            assert_eq!(
                (check.question, check.measured_ns),
                (sample.question, sample.ns)
            );
            assert!(check.source_ns > 0.0);
        }
        assert_eq!(found.all.points, samples.len());
        let in_slices: usize = found.slices.iter().map(|s| s.comparison.points).sum();
        assert_eq!(in_slices, samples.len());
        for slice in &found.slices {
            assert_eq!((slice.bytes_min, slice.bytes_max), (64, 64 << 20));
        }
        inside += found.all.covered * samples.len() as f64;
        points += samples.len() as f64;
    }
    let covered = inside / points;
    assert!((0.92..=0.995).contains(&covered), "{covered}");
}

#[test]
fn an_unfitted_models_interval_covers_too() {
    let (mut inside, mut points) = (0.0, 0.0);
    for seed in 31..=36 {
        let mut truth = Truth::new(seed);
        let samples = truth.samples();
        let profile = truth.profile();
        let model = Model::new(&profile).expect("sound");
        let found = Validation::of(&profile, &model, &samples).expect("samples");
        inside += found.all.covered * samples.len() as f64;
        points += samples.len() as f64;
        assert!(found.all.ours.kendall >= Some(0.85), "seed {seed}");
    }
    let covered = inside / points;
    assert!(covered >= 0.9, "{covered}");
}

#[test]
fn the_same_seed_gives_the_same_parts() {
    let mut truth = Truth::new(5);
    let samples: Vec<Sample> = truth.samples().into_iter().step_by(10).collect();
    let profile = truth.profile();
    let model = Model::new(&profile).expect("sound");
    let at = |seed| Validation::held_out(&profile, &model, &samples, 2, seed).expect("samples");
    // Fewer than two parts are two.
    let one = Validation::held_out(&profile, &model, &samples, 0, 1).expect("samples");
    assert_eq!(one, at(1));
}

#[test]
fn a_profile_with_exchanges_fits_its_own_model() {
    let mut truth = Truth::new(8);
    let samples: Vec<Sample> = truth.samples().into_iter().step_by(4).collect();
    let mut profile = truth.profile();
    assert!(Model::fitted(&profile).expect("sound").report().is_none());
    profile.exchanges = samples
        .iter()
        .map(|sample| {
            let Between::Pair(sender, receiver) = sample.question.between else {
                panic!("the truth is about pairs");
            };
            Exchange {
                bytes: sample.question.bytes,
                sender,
                receiver,
                carrier: sample.question.carrier,
                stream_depth: match sample.question.flow {
                    Flow::Alternating => None,
                    Flow::Streaming { depth } => Some(depth),
                },
                fresh_buffer: sample.question.buffer == Buffer::Fresh,
                exchange_ns: Figure::measured(sample.ns, sample.ns, sample.ns, 9, 0),
            }
        })
        .collect();
    for (exchange, sample) in profile.exchanges.iter().zip(&samples) {
        assert_eq!(Sample::of(exchange), *sample);
    }
    // No receiver spins on the sender's own thread: such a figure must not prevent a model.
    let mut impossible = profile.exchanges[0];
    impossible.receiver = impossible.sender;
    impossible.carrier = Carrier::Spin;
    profile.exchanges.push(impossible);
    let text = profile.to_json().expect("sound");
    let read = Profile::from_json(&text).expect("ours");
    let fitted = Model::fitted(&read).expect("sound");
    let report = fitted.report().expect("enough exchanges");
    assert_eq!(report.fitted + report.held_out, samples.len());
    assert!(report.median_error_percent < report.unfitted_error_percent);
    let by_hand = Model::new(&profile).expect("sound");
    let by_hand = by_hand.fit(&samples, &Default::default()).expect("fits");
    assert_eq!(fitted.tuning(), by_hand.tuning());
}

#[test]
fn points_that_cannot_be_judged_say_why() {
    let profile = Profile::assumed(synthetic::parse("2 cores").expect("a description"));
    let model = Model::new(&profile).expect("sound");
    let sample = |bytes, between, ns| Sample {
        question: Question::new(bytes, between, Carrier::Spin),
        ns,
    };
    let pair = Between::Pair(Thread(0), Thread(1));
    let samples: Vec<Sample> = (1..=9).map(|n| sample(64 * n, pair, 100.0)).collect();
    let none = Validation::of(&profile, &model, &[]);
    assert_eq!(none, Err(FitError::TooFew { kinds: 0 }));
    let few = Validation::held_out(&profile, &model, &samples, 3, 0);
    assert_eq!(few, Err(FitError::TooFew { kinds: 6 }));
    let mut bad = samples.clone();
    bad[4].ns = -1.8e18;
    let error = Validation::of(&profile, &model, &bad);
    assert!(matches!(error, Err(FitError::NotATime { sample: 4, .. })));
    let alone = Between::Pair(Thread(0), Thread(0));
    let error = Validation::of(&profile, &model, &[sample(64, alone, 10.0)]);
    assert!(matches!(error, Err(FitError::Question { sample: 0, .. })));
    // All equal: an error, and no ranks.
    let found = Validation::of(&profile, &model, &samples[..1]).expect("one point");
    assert_eq!(found.all.ours.kendall, None);
    assert!(!found.meets_goals());
    let sizes: BTreeSet<u64> = found.checks.iter().map(|c| c.question.bytes).collect();
    assert_eq!(sizes, BTreeSet::from([64]));
}
