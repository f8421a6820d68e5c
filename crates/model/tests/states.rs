//! Pairs of hardware threads with several states: what a message costs over time and in each, and
//! when another choice would be better.

use hearth_machine::profile::{Carrier, Exchange, Figure, PairState, PairTransfer, Profile};
use hearth_machine::synthetic;
use hearth_machine::topology::Thread;
use hearth_model::fitted::{Between, Buffer, Flow, Model, Placement, Question};

fn exact(ns: f64) -> Figure {
    Figure::measured(ns, 0.95 * ns, 1.05 * ns, 100, 0)
}

/// Three cores that share a cache. The first two are at times one core's siblings; lines between
/// others always take 80 ns.
fn profile(states: &[(f64, f64)]) -> Profile {
    let description = "1 package, 3 cores, l1d 32K per core, l3 32M per package";
    let mut profile = Profile::assumed(synthetic::parse(description).expect("a machine"));
    let mean = states.iter().map(|(ns, share)| ns * share).sum::<f64>();
    let state = |&(ns, share): &(f64, f64)| PairState {
        one_way_ns: exact(ns),
        time_share: exact(share),
    };
    let round_trip = Figure::measured(2.0 * mean, 2.0 * mean, 2.0 * mean, 100, 0);
    profile.pairs = vec![
        PairTransfer {
            states: states
                .iter()
                .map(state)
                .filter(|_| states.len() > 1)
                .collect(),
            ..PairTransfer::from_round_trip(Thread(0), Thread(1), round_trip)
        },
        PairTransfer::from_round_trip(Thread(0), Thread(2), exact(160.0)),
        PairTransfer::from_round_trip(Thread(1), Thread(2), exact(160.0)),
    ];
    profile
}

const STATES: [(f64, f64); 2] = [(26.0, 0.3), (124.0, 0.7)];

fn question(carrier: Carrier) -> Question {
    Question::new(64, Between::Pair(Thread(1), Thread(0)), carrier)
}

#[test]
fn a_message_costs_its_mean_over_time() {
    let model = Model::new(&profile(&STATES)).expect("sound");
    let question = question(Carrier::Worker);
    let over_time = model.predict(&question).expect("an answer");
    let by_state = model.predict_by_state(&question).expect("an answer");
    let [near, far] = by_state[..] else {
        panic!("{by_state:?}");
    };
    assert_eq!((near.state.one_way_ns, near.state.time_share), STATES[0]);
    let mean = 0.3 * near.prediction.ns + 0.7 * far.prediction.ns;
    assert!((over_time.ns / mean - 1.0).abs() < 1e-9);
    assert!((over_time.parts.total_ns() / mean - 1.0).abs() < 1e-9);
    assert!(far.prediction.ns > 3.0 * near.prediction.ns);
    assert_eq!(over_time.low_ns, near.prediction.low_ns);
    assert_eq!(over_time.high_ns, far.prediction.high_ns);
    // Each state's interval is its own: the two do not meet.
    assert!(near.prediction.high_ns < far.prediction.low_ns);
}

/// Each scenario is the model of a profile that saw only that state.
#[test]
fn a_scenario_is_the_machine_in_that_state() {
    let model = Model::new(&profile(&STATES)).expect("sound");
    let scenarios = model.scenarios();
    assert_eq!(scenarios.len(), 2);
    for (scenario, one) in scenarios.iter().zip(STATES) {
        let question = question(Carrier::Spin);
        let then = model.under(scenario);
        assert!(then.scenarios().is_empty());
        assert!(
            then.predict_by_state(&question)
                .expect("an answer")
                .is_empty()
        );
        let alone = Model::new(&profile(&[(one.0, 1.0)])).expect("sound");
        let [a, b] = [&then, &alone].map(|model| model.predict(&question).expect("there").ns);
        assert!((a / b - 1.0).abs() < 0.02, "{a} {b}");
    }
}

#[test]
fn states_that_do_not_matter_are_not_told() {
    let model = Model::new(&profile(&STATES)).expect("sound");
    // To wake a sleeping thread takes fifty times as long as a line.
    let asleep = question(Carrier::Threads);
    assert!(model.predict_by_state(&asleep).expect("there").is_empty());
    // Memory is as far in each state.
    let other = Question {
        between: Between::Pair(Thread(0), Thread(2)),
        ..question(Carrier::Spin)
    };
    assert!(model.predict_by_state(&other).expect("there").is_empty());
}

/// Two hardware threads, as in a small virtual machine: their relation stands for the one pair.
#[test]
fn a_relation_has_the_states_of_its_usual_pair() {
    let mut profile = profile(&STATES);
    profile.pairs.truncate(1);
    let relation = profile.topology.relation(Thread(0), Thread(1));
    let model = Model::new(&profile).expect("sound");
    let pair = question(Carrier::Worker);
    let any = Question {
        between: Between::Relation(relation),
        ..pair
    };
    let by_state = |question: &Question| model.predict_by_state(question).expect("there");
    assert_eq!(by_state(&any).len(), 2);
    for (a, b) in by_state(&any).iter().zip(by_state(&pair)) {
        assert!((a.prediction.ns / b.prediction.ns - 1.0).abs() < 1e-9);
    }
}

/// Samples of the two states are of one machine: the fit must not take their mixture for noise.
#[test]
fn a_fit_takes_each_sample_in_its_state() {
    let truth = Model::new(&profile(&STATES)).expect("sound");
    let mut profile = profile(&STATES);
    for (at, bytes) in (6..18).map(|log| 1 << log).enumerate() {
        let question = Question {
            bytes,
            ..question(Carrier::Spin)
        };
        let then = truth.under(&truth.scenarios()[at % 2]);
        let ns = then.predict(&question).expect("there").ns;
        profile.exchanges.push(Exchange {
            bytes,
            sender: Thread(1),
            receiver: Thread(0),
            carrier: Carrier::Spin,
            stream_depth: None,
            fresh_buffer: false,
            exchange_ns: exact(ns),
        });
    }
    let fitted = Model::fitted(&profile).expect("sound");
    let report = fitted.report().expect("enough samples");
    assert!(report.median_error_percent < 1.0, "{report:?}");
}

#[test]
fn advice_is_by_the_mean_and_names_the_other_choice() {
    let placement = Placement {
        bytes: 64,
        carrier: Carrier::Spin,
        flow: Flow::Alternating,
        buffer: Buffer::Reused,
    };
    let pairs = [(Thread(0), Thread(1)), (Thread(0), Thread(2))];
    let rank = |model: &Model| {
        model
            .advise_among(placement, pairs)
            .expect("threads")
            .clone()
    };
    let advised = |states: &[(f64, f64)]| {
        let model = Model::new(&profile(states)).expect("sound");
        let advice = rank(&model).expect("two choices");
        let others = model.other_choices(&advice, rank);
        (advice.best().pair, others)
    };
    // 26 ns in 30 % of the time and 124 ns in 70 % are 95 ns: more than 80.
    let (best, others) = advised(&STATES);
    assert_eq!(best, pairs[1]);
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].best.pair, pairs[0]);
    assert_eq!(others[0].scenario.state.one_way_ns, 26.0);
    assert!((0.3..0.9).contains(&others[0].saves), "{others:?}");
    // In 60 % of the time it is the other way round.
    let (best, others) = advised(&[(26.0, 0.6), (124.0, 0.4)]);
    assert_eq!((best, others.len()), (pairs[0], 1));
    assert_eq!(others[0].best.pair, pairs[1]);
    // With one state there is nothing to say.
    assert!(advised(&[(90.0, 1.0)]).1.is_empty());
}
