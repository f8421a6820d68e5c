//! The genetic search against proofs and against chance, on sets after published statistics of
//! cars. `HEARTH_TEST_DEEP=1` takes as many sets as the goals name.

use hearth_scenario::generate::Automotive;
use hearth_scenario::model::Model;
use hearth_scenario::proof::exact::{NotExact, worst_lateness};
use hearth_scenario::search::{Method, Objective, Options, Verdict, search};

fn is_deep() -> bool {
    std::env::var_os("HEARTH_TEST_DEEP").is_some()
}

fn score(model: &Model, method: Method, seed: u64, evaluations: u64, enough: i64) -> i64 {
    let options = Options {
        objective: Objective::Lateness,
        method,
        seed,
        evaluations: Some(evaluations),
    };
    let outcome = search(model, &options, &mut |progress| {
        progress.worst.is_none_or(|worst| worst < enough)
    });
    outcome.unwrap_or_else(|error| panic!("{error}")).score
}

/// On sets of up to ten tasks on up to four cores the genetic search finds the proved worst
/// lateness in at least 95 % of its runs.
#[test]
fn the_genetic_search_finds_the_proved_worst() {
    let (sets, evaluations) = if is_deep() { (200, 20_000) } else { (8, 3_000) };
    let (mut proved, mut found, mut seed) = (0, 0, 0);
    while proved < sets {
        seed += 1;
        let model = Automotive {
            tasks: 3 + seed as usize % 8,
            cores: 1 + seed as usize % 4,
            load_permille: 600 + 50 * (seed % 7),
            horizon_ns: 40_000_000,
            tight_permille: None,
            seed,
        }
        .model()
        .checked()
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        // A proof that takes too long is no proof: the set does not count.
        let mut questions = 0;
        let exact = worst_lateness(&model, 0, &mut || {
            questions += 1;
            questions < 200_000
        });
        let exact = match exact {
            Ok(exact) => exact,
            Err(NotExact::Ended | NotExact::Large { .. }) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        proved += 1;
        let score = score(
            &model,
            Method::Genetic,
            seed,
            evaluations,
            exact.lateness_ns,
        );
        assert!(
            score <= exact.lateness_ns,
            "seed {seed}: worse than the proved worst"
        );
        found += u64::from(score == exact.lateness_ns);
    }
    assert!(found * 100 >= sets * 95, "{found} of {sets}");
    assert!(
        seed <= 2 * sets,
        "{} of {seed} sets had no proof in time",
        seed - sets
    );
}

/// With a hundred tasks it beats chance with as many runs, by 5 % or more.
#[test]
fn the_genetic_search_beats_chance() {
    let (pairs, evaluations) = if is_deep() { (40, 300) } else { (2, 100) };
    let (mut wins, mut told) = (0, Vec::new());
    for seed in 0..pairs {
        let model = Automotive {
            tasks: 100,
            cores: 4,
            load_permille: 850,
            horizon_ns: if is_deep() { 200_000_000 } else { 60_000_000 },
            tight_permille: Some(700),
            seed,
        };
        let model = model
            .model()
            .checked()
            .unwrap_or_else(|error| panic!("{error}"));
        let by = |method| score(&model, method, seed, evaluations, i64::MAX);
        let (genetic, random) = (by(Method::Genetic), by(Method::Random));
        told.push(format!("seed {seed}: {genetic} and {random}"));
        wins += u64::from((genetic - random) * 20 >= random.abs().max(1));
    }
    assert!(
        wins * 100 >= pairs * 90,
        "{wins} of {pairs}: {}",
        told.join(", ")
    );
}

/// A verdict `proved` needs no luck: the bound is the analysis's.
#[test]
fn a_light_set_is_proved_safe() {
    let model = Automotive {
        tasks: 12,
        cores: 4,
        load_permille: 300,
        horizon_ns: 100_000_000,
        tight_permille: None,
        seed: 5,
    };
    let model = model
        .model()
        .checked()
        .unwrap_or_else(|error| panic!("{error}"));
    let options = Options {
        objective: Objective::Lateness,
        method: Method::Random,
        seed: 1,
        evaluations: Some(50),
    };
    let outcome = search(&model, &options, &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(outcome.verdict, Verdict::ProvedSafe { bound } if bound <= 0));
}
