//! Our own model: from a profile alone, fitted to a simulated truth, and as an adviser.

mod truth;

use hearth_machine::profile::{Carrier, Level, Profile};
use hearth_machine::relation::{Closeness, Nodes, Relation};
use hearth_machine::synthetic;
use hearth_machine::topology::Thread;
use hearth_model::fitted::{
    Between, Buffer, FitError, FitOptions, Flow, Model, Placement, PredictError, Question, Sample,
};
use truth::Truth;

const NEAR: Between = Between::Pair(Thread(0), Thread(2));
const FAR: Between = Between::Pair(Thread(0), Thread(8));

fn assumed() -> Profile {
    let machine = synthetic::parse(
        "2 packages, 4 cores, 2 threads, l1d 32K per core, l2 1M per core, l3 16M per package",
    );
    Profile::assumed(machine.expect("a description"))
}

fn placement(bytes: u64, carrier: Carrier) -> Placement {
    Placement {
        bytes,
        carrier,
        flow: Flow::Alternating,
        buffer: Buffer::Reused,
    }
}

#[test]
fn a_fitted_model_predicts_what_it_was_not_shown() {
    for seed in 1..=3 {
        let mut truth = Truth::new(seed);
        let samples = truth.samples();
        let model = Model::new(&truth.profile()).expect("sound");
        let options = FitOptions {
            held_out: 0.25,
            seed,
        };
        let fitted = model.fit(&samples, &options).expect("samples to fit");
        let report = fitted.report().expect("fitted");
        let error = report.median_error_percent;
        assert!(error <= 15.0, "seed {seed}: {error} %");
        assert!(error < report.unfitted_error_percent, "seed {seed}");
        let kendall = report.kendall.expect("times differ");
        assert!(kendall >= 0.9, "seed {seed}: tau {kendall}");
        assert!(report.spearman >= Some(0.9), "seed {seed}");
        assert_eq!(report.fitted + report.held_out, samples.len());
        // Intervals cover the truth of pairs that were never sampled.
        let (mut inside, mut asked) = (0, 0);
        for exponent in 0..=20 {
            for between in [(4, 6), (2, 12), (5, 4)] {
                let between = Between::Pair(Thread(between.0), Thread(between.1));
                let question = Question::new(96 << exponent, between, Carrier::Spin);
                let prediction = fitted.predict(&question).expect("a pair");
                let exact = truth.exact_ns(&question);
                asked += 1;
                inside += u32::from((prediction.low_ns..=prediction.high_ns).contains(&exact));
            }
        }
        assert!(
            f64::from(inside) >= 0.8 * f64::from(asked),
            "seed {seed}: {inside} of {asked}"
        );
    }
}

#[test]
fn the_same_samples_and_seed_give_the_same_model() {
    let mut truth = Truth::new(9);
    let samples: Vec<Sample> = truth.samples().into_iter().step_by(5).collect();
    let model = Model::new(&truth.profile()).expect("sound");
    let fit = || model.fit(&samples, &FitOptions::default()).expect("fits");
    let (first, second) = (fit(), fit());
    assert_eq!(first.tuning(), second.tuning());
    assert_eq!(first.report(), second.report());
    let kept = model.clone().with_tuning(first.tuning().clone());
    let question = Question::new(4096, NEAR, Carrier::Spin);
    let ns = |model: &Model| model.predict(&question).expect("a pair").ns;
    assert_eq!(ns(&kept), ns(&first));
}

#[test]
fn a_profile_alone_is_enough() {
    let model = Model::new(&assumed()).expect("sound");
    for carrier in [Carrier::Threads, Carrier::Spin, Carrier::Worker] {
        for flow in [Flow::Alternating, Flow::Streaming { depth: 4 }] {
            let mut before = 0.0;
            for exponent in 0..=20 {
                let at = |between| {
                    let question = Question {
                        flow,
                        ..Question::new(64 << exponent, between, carrier)
                    };
                    model.predict(&question).expect("a pair")
                };
                let (near, far) = (at(NEAR), at(FAR));
                assert!(
                    near.ns <= far.ns * 1.0001,
                    "{carrier:?} {flow:?} {exponent}"
                );
                assert!(near.ns > before && near.ns.is_finite());
                before = near.ns;
                assert!(near.low_ns < near.ns && near.ns < near.high_ns);
                let rate = (64_u64 << exponent) as f64 / near.ns;
                assert!((near.bytes_per_ns - rate).abs() < 1e-9 * rate);
                assert!((near.parts.total_ns() - near.ns).abs() < 1e-9 * near.ns);
            }
        }
    }
}

#[test]
fn streams_hide_and_fresh_buffers_fault() {
    let model = Model::new(&assumed()).expect("sound");
    let one = Question::new(1 << 20, NEAR, Carrier::Spin);
    let stream = Question {
        flow: Flow::Streaming { depth: 1 },
        ..one
    };
    let fresh = Question {
        buffer: Buffer::Fresh,
        ..one
    };
    let parts = |question| model.predict(&question).expect("a pair").parts;
    assert!(parts(stream).total_ns() < parts(one).total_ns());
    assert!(parts(stream).hidden_ns > 0.0 && parts(one).hidden_ns == 0.0);
    let faults = parts(fresh).faults_ns;
    let page_fault = assumed().system.page_fault_ns.expect("assumed").value;
    assert!((faults - 256.0 * page_fault).abs() < 1e-6);
    assert_eq!(parts(one).faults_ns, 0.0);
    // On one hardware thread nothing overlaps.
    let alone = Question {
        between: Between::Pair(Thread(3), Thread(3)),
        carrier: Carrier::Worker,
        ..stream
    };
    assert_eq!(parts(alone).hidden_ns, 0.0);
    // An empty message costs its hand-over.
    let empty = parts(Question { bytes: 0, ..one });
    assert_eq!(empty.total_ns(), empty.hand_over_ns);
}

#[test]
fn reads_and_writes_are_apart() {
    let question = Question::new(64 << 20, NEAR, Carrier::Spin);
    let parts = |profile: &Profile| {
        let model = Model::new(profile).expect("sound");
        model.predict(&question).expect("a pair").parts
    };
    let before = parts(&assumed());
    let mut dear = assumed();
    for cost in &mut dear.levels {
        if cost.level == Level::Memory {
            cost.write_ns = cost.write_ns.map(|figure| figure.times(4.0));
        }
    }
    let after = parts(&dear);
    assert!(after.write_ns > 1.5 * before.write_ns);
    assert_eq!(after.read_ns, before.read_ns);
}

#[test]
fn capacities_are_no_steps() {
    let model = Model::new(&assumed()).expect("sound");
    let mut bytes = 64.0_f64;
    let at = |bytes: f64| {
        let between = Between::Pair(Thread(0), Thread(0));
        let question = Question::new(bytes as u64 / 64 * 64, between, Carrier::Worker);
        let prediction = model.predict(&question).expect("one thread");
        prediction.ns / bytes
    };
    while bytes < 1e8 {
        let next = bytes * 1.05;
        if bytes > 4096.0 {
            let jump = at(next) / at(bytes);
            assert!((0.9..1.2).contains(&jump), "{jump} at {bytes} bytes");
        }
        bytes = next;
    }
}

#[test]
fn relations_stand_for_pairs_without_figures() {
    let profile = assumed();
    let model = Model::new(&profile).expect("sound");
    let relation = profile.topology.relation(Thread(0), Thread(8));
    let ns = |between| {
        let question = Question::new(4096, between, Carrier::Worker);
        model.predict(&question).expect("known").ns
    };
    assert_eq!(ns(Between::Relation(relation)), ns(FAR));
}

#[test]
fn questions_without_an_answer_say_why() {
    let model = Model::new(&assumed()).expect("sound");
    let error = |between, carrier| {
        let question = Question::new(64, between, carrier);
        model.predict(&question).expect_err("no answer").to_string()
    };
    assert_eq!(
        error(Between::Pair(Thread(0), Thread(16)), Carrier::Spin),
        "the profile has 16 hardware threads and T16 is not among them: name one from T0 to T15"
    );
    let relation = Relation {
        closeness: Closeness::SamePackage,
        nodes: Nodes::Same,
    };
    assert_eq!(
        error(Between::Relation(relation), Carrier::Spin),
        "no two hardware threads of this machine have the relation asked for (same \
         package, same node): name a pair instead"
    );
    assert!(error(Between::Pair(Thread(1), Thread(1)), Carrier::Spin).contains("`threads`"));

    let mut profile = assumed();
    profile.levels[0].read_ns.value = f64::NAN;
    assert!(Model::new(&profile).is_err());
}

#[test]
fn samples_that_cannot_be_fitted_say_why() {
    let model = Model::new(&assumed()).expect("sound");
    let sample = |bytes, ns| Sample {
        question: Question::new(bytes, NEAR, Carrier::Spin),
        ns,
    };
    let many: Vec<Sample> = (1..=10).map(|n| sample(n * 64, n as f64)).collect();
    let options = FitOptions::default();
    let error = model.fit(&many[..7], &options).expect_err("too few");
    assert_eq!(error, FitError::TooFew { kinds: 7 });
    for ns in [0.0, -1.8e18, f64::NAN, f64::INFINITY] {
        let mut bad = many.clone();
        bad[3].ns = ns;
        let error = model.fit(&bad, &options).expect_err("no time");
        assert!(matches!(error, FitError::NotATime { sample: 3, .. }));
    }
    let mut bad = many.clone();
    bad[5].question.between = Between::Pair(Thread(99), Thread(0));
    let error = model.fit(&bad, &options).expect_err("no such thread");
    assert!(matches!(
        error,
        FitError::Question {
            sample: 5,
            error: PredictError::NoSuchThread { .. }
        }
    ));
    for held_out in [0.0, 1.0, f64::NAN] {
        let options = FitOptions { held_out, seed: 0 };
        assert!(matches!(
            model.fit(&many, &options),
            Err(FitError::Share { .. })
        ));
    }
}

#[test]
fn advice_ranks_and_knows_when_nothing_is_at_stake() {
    let mut truth = Truth::new(2);
    let samples = truth.samples();
    let model = Model::new(&truth.profile()).expect("sound");
    let fitted = model.fit(&samples, &FitOptions::default()).expect("fits");

    let small = fitted
        .advise(placement(64, Carrier::Spin))
        .expect("relations");
    let times = small.ranked.iter().map(|ranked| ranked.prediction.ns);
    assert!(times.is_sorted());
    assert!(small.matters());
    assert_eq!(small.best().relation.closeness, Closeness::SmtSibling);
    assert!(
        small
            .to_string()
            .starts_with("sender on T0, receiver on T1")
    );

    // A wake-up costs the same wherever the receiver sleeps, save on the sender's own thread.
    let others = (1..16).map(|receiver| (Thread(0), Thread(receiver)));
    let advice = fitted.advise_among(placement(64, Carrier::Threads), others);
    let advice = advice.expect("threads").expect("pairs");
    assert!(!advice.matters(), "{advice}");
    assert!(
        advice
            .to_string()
            .starts_with("placement does not matter here")
    );

    let receivers = fitted.advise_receiver(placement(16384, Carrier::Spin), Thread(5));
    let receivers = receivers.expect("threads").expect("pairs");
    assert_eq!(receivers.ranked.len(), 15);
    assert_eq!(receivers.best().pair, (Thread(5), Thread(4)));
    // The model's order is the truth's, by relation.
    let last = receivers.ranked.last().expect("fifteen");
    assert_eq!(last.relation.closeness, Closeness::OtherPackage);
}

#[test]
fn one_cpu_has_one_placement() {
    let alone = Profile::assumed(synthetic::parse("1 packages").expect("a description"));
    let model = Model::new(&alone).expect("sound");
    assert_eq!(model.advise(placement(64, Carrier::Spin)), None);
    let advice = model.advise(placement(64, Carrier::Worker)).expect("one");
    assert!(!advice.matters());
    assert_eq!(advice.to_string(), "there is only one placement here");
}
