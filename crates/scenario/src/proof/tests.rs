use super::exact::{EVERYTHING_MAX, Exact, Way, worst_lateness};
use super::*;
use crate::genes::Layout;
use crate::random;
use crate::scenario::Scenario;
use crate::sim::{evaluate, simulate};

fn model(text: &str) -> Model {
    Model::from_toml(&format!("format = 1\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

fn response(model: &Model, task: usize) -> Option<u64> {
    bounds(model, 0)[task].clone()?.ok()?.response_ns
}

/// Lehoczky's example of deadlines beyond periods: the fifth of seven jobs takes longest.
#[test]
fn the_longest_response_may_be_a_later_jobs() {
    let model = model(
        r#"
horizon = "700us"
[[task]]
name = "one"
arrival = { period = "70us" }
duration = "26us"
priority = 2
[[task]]
name = "two"
arrival = { period = "100us" }
duration = "62us"
priority = 1
"#,
    );
    assert_eq!(response(&model, 0), Some(26_000));
    assert_eq!(response(&model, 1), Some(118_000));
    let run = simulate(&model, &Scenario::fullest(&model, 0));
    assert_eq!(run.tasks[1].response_ns_max, Some(118_000));
}

/// The set that showed that the first analysis of a car's bus was wrong: the second message of the
/// least urgent kind takes longer than the first.
#[test]
fn without_preemption_a_later_job_may_take_longest() {
    let model = model(
        r#"
horizon = "35ms"
[scheduler]
preemptive = false
[[task]]
name = "a"
arrival = { period = "2.5ms" }
duration = "1ms"
deadline = "2.5ms"
priority = 3
[[task]]
name = "b"
arrival = { period = "3.5ms" }
duration = "1ms"
deadline = "3.25ms"
priority = 2
[[task]]
name = "c"
arrival = { period = "3.5ms" }
duration = "1ms"
deadline = "3.25ms"
priority = 1
"#,
    );
    assert_eq!(response(&model, 2), Some(3_500_000));
    assert_eq!(
        response(&model, 0),
        Some(2_000_000 - 1),
        "b or c begins a nanosecond before"
    );
    let run = simulate(&model, &Scenario::fullest(&model, 0));
    assert_eq!(run.tasks[2].response_ns_max, Some(3_500_000));
}

#[test]
fn reasons_are_given_where_nothing_is_proved() {
    let reason = |text: &str| {
        let model = model(text);
        let found = bounds(&model, 0)[0].clone().expect("it exists");
        found.expect_err("nothing is proved").to_string()
    };
    let task = "[[task]]\nname = \"a\"\narrival = { period = \"2us\" }\n";
    assert_eq!(
        reason(&format!("horizon = \"9us\"\n{task}duration = \"3us\"\n")),
        "its core is overloaded: no bound was found"
    );
    assert_eq!(
        reason(&format!(
            "horizon = \"9us\"\n[scheduler]\npolicy = \"fair\"\n{task}duration = \"1us\"\n"
        )),
        "nothing is proved of this scheduler"
    );
    assert_eq!(
        reason(&format!(
            "horizon = \"9us\"\n[[queue]]\nname = \"q\"\ncapacity = 1\n{task}steps = [{{ pop = \"q\" }}, {{ run = \"1us\" }}]\n"
        )),
        "`a`, on its core, may wait for a queue"
    );
}

/// The bounds hold in every scenario that was tried, of sets with all kinds of tasks: what is
/// called safe is. That they are not idle is seen by how near the runs come.
#[test]
fn no_run_exceeds_a_bound() {
    let (mut checked, mut reached) = (0, 0);
    for seed in 0..600 {
        let mut random = fastrand::Rng::with_seed(seed);
        let model = random::rich(&mut random);
        let model = match model.checked() {
            Ok(model) => model,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        for mode in 0..model.modes.len() {
            let bounds = bounds(&model, mode);
            let in_order = locks_in_order(&model, mode);
            let can_queue = model.tasks.iter().flat_map(|task| &task.steps).any(|step| {
                matches!(
                    step,
                    crate::model::Step::Pop(_) | crate::model::Step::Push(_)
                )
            });
            let mut most = vec![0; model.tasks.len()];
            for _ in 0..30 {
                let scenario = random::scenario(&mut random, &model, mode);
                let run = evaluate(&model, &scenario);
                assert!(
                    run.deadlock.is_none() || !in_order || can_queue,
                    "seed {seed}: locks in one order, and a deadlock"
                );
                for (nth, bound) in bounds.iter().enumerate() {
                    let Some(Ok(bound)) = bound else { continue };
                    let told = || format!("seed {seed}, task {nth}: {}", model.to_toml());
                    let result = &run.tasks[nth];
                    assert_eq!(result.stuck, 0, "{}", told());
                    if let (Some(most_ns), Some(found)) =
                        (bound.response_ns, result.response_ns_max)
                    {
                        assert!(found <= most_ns, "{found} > {most_ns}: {}", told());
                        most[nth] = most[nth].max(found);
                    }
                    if let (Some(most), Some(found)) = (bound.lateness_ns, result.lateness_ns_max) {
                        assert!(found <= most, "{found} > {most}: {}", told());
                    }
                }
            }
            for (nth, bound) in bounds.iter().enumerate() {
                if let Some(Ok(bound)) = bound {
                    checked += 1;
                    reached += usize::from(bound.response_ns == Some(most[nth]));
                }
            }
        }
    }
    assert!(checked > 400, "{checked} bounds");
    assert!(
        reached * 3 > checked,
        "{reached} of {checked} bounds were reached"
    );
}

/// The solver's answer is that of simulating every scenario.
#[test]
fn the_solver_finds_what_trying_everything_finds() {
    let mut compared = 0;
    for seed in 0..4_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(1..=4);
        let model = random::plain(&mut random, count, 30)
            .checked()
            .expect("it is sound");
        if Layout::new(&model, 0, true).count() > 3_000 {
            continue;
        }
        let by_all = worst_lateness(&model, 0, &mut || true).expect("it is small");
        assert_eq!(by_all.way, Way::Everything);
        let by_solver = solver::worst_lateness(&model, 0, &mut || true).expect("it suits");
        assert_eq!(
            by_solver.lateness_ns,
            by_all.lateness_ns,
            "seed {seed}: {}",
            model.to_toml()
        );
        by_solver
            .scenario
            .check(&model)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        compared += 1;
        if compared == 60 {
            break;
        }
    }
    assert_eq!(compared, 60);
}

/// Sets with far too many scenarios to try: the proved worst is within the bound, and is the bound
/// where nothing but the outside decides on arrivals.
#[test]
fn the_solver_meets_the_analysis() {
    let mut equal = 0;
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let model = random::plain(&mut random, 5, 120)
            .checked()
            .expect("it is sound");
        assert!(Layout::new(&model, 0, true).count() > EVERYTHING_MAX);
        let Exact {
            lateness_ns,
            scenario,
            way,
        } = worst_lateness(&model, 0, &mut || true).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(way, Way::Constraints);
        assert_eq!(scenario.check(&model), Ok(()), "seed {seed}");
        let found = evaluate(&model, &scenario).lateness_ns_max();
        assert_eq!(found.map(|late| late.0), Some(lateness_ns), "seed {seed}");
        let all: Vec<_> = bounds(&model, 0).into_iter().flatten().collect();
        if all.iter().all(|bound| bound.is_ok()) {
            let most = all
                .iter()
                .flatten()
                .filter_map(|bound| bound.lateness_ns)
                .max();
            assert!(
                Some(lateness_ns) <= most,
                "seed {seed}: {lateness_ns} beyond {most:?}"
            );
            equal += usize::from(Some(lateness_ns) == most);
        }
        for _ in 0..300 {
            let scenario = random::scenario(&mut random, &model, 0);
            let found = evaluate(&model, &scenario).lateness_ns_max();
            assert!(found.map(|late| late.0) <= Some(lateness_ns), "seed {seed}");
        }
    }
    assert!(equal > 2, "{equal} sets reach their bound");
}

#[test]
fn a_proof_can_be_ended() {
    let mut random = fastrand::Rng::with_seed(4);
    let model = random::plain(&mut random, 5, 120)
        .checked()
        .expect("it is sound");
    let ended = worst_lateness(&model, 0, &mut || false);
    assert_eq!(ended, Err(exact::NotExact::Ended));
}
