use super::*;
use crate::random;
use crate::sim::simulate;

fn model(text: &str) -> Model {
    Model::from_toml(&format!("format = 1\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

fn options(objective: Objective, method: Method, evaluations: u64) -> Options {
    Options {
        objective,
        method,
        seed: 1,
        evaluations: Some(evaluations),
    }
}

fn found(model: &Model, options: &Options) -> Outcome {
    search(model, options, &mut |_| true).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..20 {
        let model = random::rich(&mut random).checked().expect("it is sound");
        for method in [Method::Genetic, Method::Random] {
            for objective in Objective::ALL {
                let options = options(objective, method, 40);
                let Ok(outcome) = search(&model, &options, &mut |_| true) else {
                    continue;
                };
                assert_eq!(outcome, found(&model, &options));
                assert_eq!(outcome.scenario.check(&model), Ok(()));
                let run = simulate(&model, &outcome.scenario);
                assert_eq!(objective.score(&model, &run), outcome.score, "it replays");
                let again = Scenario::from_json(&outcome.scenario.to_json(), &model);
                assert_eq!(again.as_ref(), Ok(&outcome.scenario));
            }
        }
    }
}

/// A set that is called safe has no scenario against it, and one whose worst is proved none that
/// is worse.
#[test]
fn no_set_called_safe_has_a_scenario_against_it() {
    let (mut safe, mut worst) = (0, 0);
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let model = random::rich(&mut random).checked().expect("it is sound");
        for objective in Objective::ALL {
            let options = options(objective, Method::Genetic, 60);
            let Ok(outcome) = search(&model, &options, &mut |_| true) else {
                continue;
            };
            let most = match outcome.verdict {
                Verdict::ProvedSafe { bound } => {
                    safe += 1;
                    match objective {
                        // Nothing is lost, and nothing waits for ever: nearness is no harm.
                        Objective::Overflow => Objective::LOST - 1,
                        Objective::Deadlock => Objective::DEADLOCKED - 1,
                        _ => bound,
                    }
                }
                Verdict::ProvedWorst => {
                    worst += 1;
                    outcome.score
                }
                _ => continue,
            };
            for round in 0..20 {
                let mode = round % model.modes.len();
                let scenario = random::scenario(&mut random, &model, mode);
                let score = objective.score(&model, &evaluate(&model, &scenario));
                let text = || format!("seed {seed}, {}: {}", objective.name(), model.to_toml());
                assert!(score <= most, "{score} > {most}: {}", text());
            }
        }
    }
    assert!(safe > 30 && worst > 30, "{safe} and {worst}");
}

#[test]
fn a_planted_deadlock_is_found() {
    let model = model(
        r#"
horizon = "100ms"
[[core]]
name = "left"
[[core]]
name = "right"
[[resource]]
name = "log"
[[resource]]
name = "store"
[[task]]
name = "write"
cores = ["left"]
arrival = { between = "9ms..30ms" }
steps = [{ run = "1ms..3ms" }, { lock = "log" }, { run = "20us" }, { lock = "store" }, { run = "20us" }, { unlock = "store" }, { unlock = "log" }]
[[task]]
name = "clean"
cores = ["right"]
arrival = { period = "40ms", offset = "0ms..40ms" }
steps = [{ run = "1ms..2ms" }, { lock = "store" }, { run = "20us" }, { lock = "log" }, { run = "20us" }, { unlock = "log" }, { unlock = "store" }]
"#,
    );
    let outcome = found(
        &model,
        &options(Objective::Deadlock, Method::Genetic, 20_000),
    );
    assert_eq!(
        (outcome.score, outcome.verdict),
        (Objective::DEADLOCKED, Verdict::Found)
    );
    let circle = simulate(&model, &outcome.scenario)
        .deadlock
        .expect("it replays")
        .circle;
    let mut tasks: Vec<usize> = circle.iter().map(|one| one.task.0).collect();
    tasks.sort();
    assert_eq!(tasks, [0, 1]);
}

#[test]
fn an_overflow_and_a_miss_are_found() {
    let model = model(
        r#"
horizon = "100ms"
window = "5ms"
[[queue]]
name = "frames"
capacity = 2
[[task]]
name = "camera"
arrival = { between = "4ms..9ms" }
steps = [{ run = "100us" }, { push = "frames" }]
priority = 3
[[task]]
name = "filter"
arrival = { push = "frames" }
steps = [{ run = "1ms..3ms" }, { pop = "frames" }]
priority = 1
[[task]]
name = "burst"
arrival = { between = "30ms..60ms" }
duration = "1ms..7ms"
deadline = "7ms"
priority = 2
"#,
    );
    let overflow = found(
        &model,
        &options(Objective::Overflow, Method::Genetic, 4_000),
    );
    assert_eq!(overflow.verdict, Verdict::Found);
    assert!(overflow.score >= Objective::LOST);
    let late = found(
        &model,
        &options(Objective::Lateness, Method::Genetic, 4_000),
    );
    assert_eq!(
        (late.score, late.verdict),
        (200_000, Verdict::ProvedWorst),
        "behind two frames"
    );
    let peak = found(&model, &options(Objective::CpuPeak, Method::Genetic, 4_000));
    assert_eq!(
        (peak.score, peak.verdict),
        (5_000_000, Verdict::ProvedWorst)
    );
}

#[test]
fn the_caller_ends_it_and_keeps_the_worst() {
    let mut random = fastrand::Rng::with_seed(2);
    let model = random::plain(&mut random, 5, 100)
        .checked()
        .expect("it is sound");
    let options = Options {
        evaluations: None,
        ..options(Objective::Lateness, Method::Random, 0)
    };
    let mut last = None;
    let outcome = search(&model, &options, &mut |progress| {
        last = Some(*progress);
        progress.evaluations < 17
    });
    let outcome = outcome.expect("something was tried");
    assert!(outcome.was_ended && outcome.evaluations == 17);
    assert_eq!(
        last.and_then(|progress| progress.worst),
        Some(outcome.score)
    );
}

#[test]
fn what_cannot_be_searched_is_said() {
    let model = model(
        "horizon = \"1ms\"\n[[task]]\nname = \"a\"\narrival = { period = \"1ms\" }\nduration = \"1us\"\n",
    );
    let error = |objective, method| {
        let options = options(objective, method, 10);
        search(&model, &options, &mut |_| true)
            .expect_err("it cannot")
            .to_string()
    };
    assert_eq!(
        error(Objective::Lateness, Method::Genetic),
        "lateness cannot occur: the model has no deadline; choose another `--objective`"
    );
    assert_eq!(
        error(Objective::Deadlock, Method::Genetic),
        "deadlock cannot occur: the model has no resource and no queue; choose another `--objective`"
    );
    assert_eq!(
        error(Objective::Starvation, Method::Exact),
        "the exact search knows lateness only: choose `--search genetic`"
    );
}
