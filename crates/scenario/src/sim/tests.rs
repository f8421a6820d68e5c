use super::*;
use crate::model::{Arrival, Policy, Range, Scheduler, Scope, Step, Task};
use crate::scenario::JobChoices;

fn model(text: &str) -> Model {
    Model::from_toml(&format!("format = 1\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

/// The events as lines such as `3us low lock bus`.
fn lines(model: &Model, run: &Run) -> Vec<String> {
    let core = |core: CoreId| model.cores[core.0].clone();
    let resource = |id: ResourceId| model.resources[id.0].name.clone();
    let queue = |id: QueueId| model.queues[id.0].name.clone();
    let what = |what: What| match what {
        What::Arrive => "arrives".into(),
        What::Run(id) => format!("runs on {}", core(id)),
        What::Preempt(id) => format!("preempted on {}", core(id)),
        What::Wait(_, Wait::Resource(id)) => format!("waits for {}", resource(id)),
        What::Wait(_, Wait::Room(id)) => format!("waits for room in {}", queue(id)),
        What::Wait(_, Wait::Item(id)) => format!("waits for an item in {}", queue(id)),
        What::Ready => "ready".into(),
        What::Lock(id) => format!("locks {}", resource(id)),
        What::Unlock(id) => format!("unlocks {}", resource(id)),
        What::Push(id) => format!("pushes {}", queue(id)),
        What::Pop(id) => format!("pops {}", queue(id)),
        What::Lose(id) => format!("loses {}", queue(id)),
        What::End(_) => "ends".into(),
        What::Deadlock => "deadlock".into(),
    };
    let line = |event: &Event| {
        let name = &model.task(event.task).name;
        format!("{} {name} {}", event.at_ns / 1000, what(event.what))
    };
    run.events.iter().map(line).collect()
}

fn fullest(model: &Model) -> Run {
    simulate(model, &Scenario::fullest(model, 0))
}

const PREEMPTED: &str = r#"
horizon = "20us"
[[task]]
name = "high"
arrival = { period = "20us", offset = "2us" }
duration = "3us"
deadline = "4us"
priority = 2
[[task]]
name = "low"
arrival = { period = "20us" }
duration = "4us"
deadline = "5us"
priority = 1
"#;

#[test]
fn the_more_urgent_task_interrupts() {
    let model = model(PREEMPTED);
    let run = fullest(&model);
    let expected = [
        "0 low arrives",
        "0 low runs on core0",
        "2 high arrives",
        "2 low preempted on core0",
        "2 high runs on core0",
        "5 high ends",
        "5 low runs on core0",
        "7 low ends",
    ];
    assert_eq!(lines(&model, &run), expected);
    assert_eq!(run.tasks[1].lateness_ns_max, Some(2_000));
    assert_eq!(run.tasks[1].misses, 1);
    assert_eq!(run.tasks[1].starvation_ns, 3_000);
    assert_eq!(run.lateness_ns_max(), Some((2_000, TaskId(1))));
    assert_eq!(run.busy_ns, [7_000]);
    assert_eq!((run.peak_ns, run.peak_at_ns), (7_000, 0));
}

#[test]
fn without_preemption_it_waits() {
    let text = format!("{PREEMPTED}\n[scheduler]\npreemptive = false\n");
    let run = fullest(&model(&text));
    assert_eq!(run.tasks[0].response_ns_max, Some(5_000));
    assert_eq!(run.tasks[1].response_ns_max, Some(4_000));
}

#[test]
fn the_earliest_deadline_goes_first() {
    let text = format!("{PREEMPTED}\n[scheduler]\npolicy = \"edf\"\n");
    let run = fullest(&model(&text));
    // low is due at 5 us and high at 6 us.
    assert_eq!(run.tasks[1].response_ns_max, Some(4_000));
    assert_eq!(run.tasks[0].response_ns_max, Some(5_000));
}

/// Three tasks: the middle one keeps the low one from giving back what the high one wants.
fn inversion(protocol: &str) -> Model {
    model(&format!(
        r#"
horizon = "100us"
[[resource]]
name = "bus"
protocol = "{protocol}"
[[task]]
name = "high"
arrival = {{ period = "100us", offset = "2us" }}
steps = [{{ run = "1us" }}, {{ lock = "bus" }}, {{ run = "1us" }}, {{ unlock = "bus" }}]
priority = 3
[[task]]
name = "middle"
arrival = {{ period = "100us", offset = "3us" }}
duration = "50us"
priority = 2
[[task]]
name = "low"
arrival = {{ period = "100us" }}
steps = [{{ lock = "bus" }}, {{ run = "5us" }}, {{ unlock = "bus" }}, {{ run = "1us" }}]
priority = 1
"#
    ))
}

#[test]
fn inheritance_ends_the_inversion_of_priorities() {
    let response = |protocol: &str| fullest(&inversion(protocol)).tasks[0].response_ns_max;
    // 1 alone, then 50 of the middle one, 3 of the low one, 1 with the resource.
    assert_eq!(response("none"), Some(55_000));
    assert_eq!(response("inheritance"), Some(5_000));
    assert_eq!(response("ceiling"), Some(5_000));
    let model = inversion("inheritance");
    let run = fullest(&model);
    let expected = [
        "0 low arrives",
        "0 low runs on core0",
        "0 low locks bus",
        "2 high arrives",
        "2 low preempted on core0",
        "2 high runs on core0",
        "3 high waits for bus",
        "3 middle arrives",
        "3 low runs on core0",
        "6 low unlocks bus",
        "6 high ready",
        "6 high locks bus",
        "6 low preempted on core0",
        "6 high runs on core0",
        "7 high unlocks bus",
        "7 high ends",
        "7 middle runs on core0",
        "57 middle ends",
        "57 low runs on core0",
        "58 low ends",
    ];
    assert_eq!(lines(&model, &run), expected);
}

#[test]
fn a_circle_of_locks_is_named() {
    let model = model(
        r#"
horizon = "20us"
[[core]]
name = "left"
[[core]]
name = "right"
[[resource]]
name = "a"
[[resource]]
name = "b"
[[task]]
name = "one"
cores = ["left"]
arrival = { period = "20us" }
deadline = "10us"
steps = [{ lock = "a" }, { run = "5us" }, { lock = "b" }, { run = "1us" }, { unlock = "b" }, { unlock = "a" }]
[[task]]
name = "two"
cores = ["right"]
arrival = { period = "20us", offset = "1us..10us" }
steps = [{ lock = "b" }, { run = "5us" }, { lock = "a" }, { run = "1us" }, { unlock = "a" }, { unlock = "b" }]
"#,
    );
    let run = fullest(&model);
    let deadlock = run.deadlock.clone().expect("they wait for each other");
    assert_eq!(deadlock.at_ns, 6_000);
    let circle: Vec<_> = deadlock
        .circle
        .iter()
        .map(|one| (one.task.0, one.since_ns))
        .collect();
    assert_eq!(circle, [(1, 6_000), (0, 5_000)]);
    assert_eq!(deadlock.circle[0].wait, Wait::Resource(ResourceId(0)));
    assert_eq!(deadlock.circle[0].holds, [(ResourceId(1), 1_000)]);
    assert_eq!(run.tasks[0].stuck, 1);
    assert_eq!(
        run.tasks[0].lateness_ns_max,
        Some(10_000),
        "as if it ended at the end"
    );
    let mut later = Scenario::fullest(&model, 0);
    later.tasks[1].jobs[0].due_ns = 7_000;
    later.check(&model).expect("it is within the range");
    assert_eq!(simulate(&model, &later).deadlock, None);
}

#[test]
fn queues_lose_or_hold_back() {
    let text = |rule: &str| {
        format!(
            r#"
horizon = "10us"
[scheduler]
policy = "fixed-priority"
[[queue]]
name = "frames"
capacity = 2
when-full = "{rule}"
[[task]]
name = "sender"
arrival = {{ period = "10us" }}
priority = 2
steps = [{{ push = "frames" }}, {{ run = "1us" }}, {{ push = "frames" }}, {{ run = "1us" }}, {{ push = "frames" }}]
[[task]]
name = "taker"
arrival = {{ push = "frames", delay = "500ns" }}
priority = 1
steps = [{{ pop = "frames" }}, {{ run = "2us" }}]
"#
        )
    };
    let lossy = fullest(&model(&text("lose")));
    assert_eq!(lossy.queues[0].lost, 1);
    assert_eq!(lossy.queues[0].first_loss_ns, Some(2_000));
    assert_eq!((lossy.queues[0].fill_max, lossy.tasks[1].jobs), (2, 2));
    let patient = fullest(&model(&text("wait")));
    assert_eq!((patient.queues[0].lost, patient.tasks[1].jobs), (0, 3));
    assert_eq!(patient.tasks[0].stuck + patient.tasks[1].stuck, 0);
}

#[test]
fn tasks_follow_others() {
    let model = model(
        r#"
horizon = "10us"
[[task]]
name = "first"
arrival = { period = "5us" }
duration = "1us..2us"
[[task]]
name = "then"
arrival = { after = "first", delay = "0us..1us" }
duration = "1us"
deadline = "2us"
"#,
    );
    let run = fullest(&model);
    assert_eq!(run.tasks[1].jobs, 2);
    // Unnamed choices are the longest: 2 us, a delay of 1 us, 1 us.
    assert_eq!(run.jobs[1].arrival_ns, 3_000);
    assert_eq!(run.jobs[1].end_ns, Some(4_000));
}

#[test]
fn workers_run_in_order_and_steal() {
    let text = |steal: bool| {
        format!(
            r#"
horizon = "10us"
[scheduler]
policy = "workers"
scope = "global"
steal = {steal}
[[core]]
name = "core0"
[[core]]
name = "core1"
[[task]]
name = "maker"
cores = ["core0", "core1"]
arrival = {{ period = "10us" }}
duration = "1us"
[[task]]
name = "a"
arrival = {{ after = "maker" }}
duration = "4us"
[[task]]
name = "b"
arrival = {{ after = "maker" }}
duration = "4us"
"#
        )
    };
    let ends = |steal| {
        let run = fullest(&model(&text(steal)));
        run.jobs
            .iter()
            .map(|job| job.end_ns.unwrap_or(0) / 1000)
            .collect::<Vec<_>>()
    };
    assert_eq!(ends(false), [1, 5, 9], "both on the worker that woke them");
    assert_eq!(ends(true), [1, 5, 5]);
}

#[test]
fn fair_shares_follow_weights() {
    let model = model(
        r#"
horizon = "1s"
[scheduler]
policy = "fair"
slice = "1ms"
[[task]]
name = "heavy"
arrival = { period = "1s" }
duration = "300ms"
weight = 3072
[[task]]
name = "light"
arrival = { period = "1s" }
duration = "300ms"
weight = 1024
"#,
    );
    let run = fullest(&model);
    // When the heavy one has had its 300 ms, the light one has had 100.
    let end = run.tasks[0].response_ns_max.expect("it ended");
    assert!((398_000_000..=402_000_000).contains(&end), "{end}");
    assert_eq!(run.tasks[1].response_ns_max, Some(600_000_000));
}

/// A set of independent tasks without locks, with what is needed to simulate it in another way.
fn random_model(random: &mut fastrand::Rng) -> Model {
    let cores = random.usize(1..=3);
    let scope = [Scope::Partitioned, Scope::Global][random.usize(0..2)];
    let policy = [
        Policy::FixedPriority { preemptive: true },
        Policy::FixedPriority { preemptive: false },
        Policy::Edf,
    ][random.usize(0..3)];
    let count = random.usize(1..=6);
    let mut priorities: Vec<u32> = (0..).take(count).collect();
    random.shuffle(&mut priorities);
    let tasks = (0..count).map(|nth| {
        let short = random.u64(0..4);
        Task {
            name: format!("t{nth}"),
            arrival: match random.bool() {
                true => Arrival::Periodic {
                    period_ns: random.u64(5..30),
                    offset: Range {
                        from_ns: 0,
                        to_ns: random.u64(0..9),
                    },
                    jitter_ns: random.u64(0..6),
                },
                false => Arrival::Sporadic {
                    between: Range {
                        from_ns: random.u64(5..20),
                        to_ns: random.u64(20..40),
                    },
                    first: Range {
                        from_ns: 0,
                        to_ns: 20,
                    },
                },
            },
            steps: vec![Step::Run(Range {
                from_ns: short,
                to_ns: short + random.u64(1..5),
            })],
            deadline_ns: Some(random.u64(5..30)),
            priority: priorities[nth],
            weight: 1024,
            cores: match scope {
                Scope::Partitioned => vec![CoreId(random.usize(0..cores))],
                Scope::Global => (0..cores).map(CoreId).collect(),
            },
            modes: Vec::new(),
        }
    });
    let tasks = tasks.collect();
    Model {
        horizon_ns: 100,
        window_ns: 10,
        scheduler: Scheduler { policy, scope },
        modes: vec![String::new()],
        cores: (0..cores).map(|nth| format!("core{nth}")).collect(),
        resources: Vec::new(),
        queues: Vec::new(),
        tasks,
    }
}

fn random_scenario(model: &Model, random: &mut fastrand::Rng) -> Scenario {
    let mut scenario = Scenario::fullest(model, 0);
    for (choices, task) in scenario.tasks.iter_mut().zip(&model.tasks) {
        choices.jobs.clear();
        let (first, between, jitter_ns) = match &task.arrival {
            Arrival::Periodic {
                period_ns,
                offset,
                jitter_ns,
            } => (*offset, Range::exactly(*period_ns), *jitter_ns),
            Arrival::Sporadic { between, first } => (*first, *between, 0),
            _ => continue,
        };
        let mut due_ns = random.u64(first.from_ns..=first.to_ns);
        while due_ns < model.horizon_ns {
            let range = task.duration();
            choices.jobs.push(JobChoices {
                due_ns,
                after_ns: random.u64(0..=jitter_ns),
                runs_ns: vec![random.u64(range.from_ns..=range.to_ns)],
                tie: random.u32(0..3),
            });
            due_ns += random.u64(between.from_ns..=between.to_ns);
        }
    }
    scenario
}

/// Ends of all jobs by `(task, number)`, by looking at each nanosecond: no events, no queues, no
/// incremental state. Written from the rules of the schedulers alone.
fn ends_by_ticks(model: &Model, scenario: &Scenario) -> Vec<((usize, usize), u64)> {
    struct Waiting {
        key: (usize, usize),
        arrival: u64,
        tie: u32,
        deadline: u64,
        left: u64,
        core: Option<usize>,
        ready: Option<u64>,
    }
    let mut jobs: Vec<Waiting> = Vec::new();
    for (task, choices) in scenario.tasks.iter().enumerate() {
        for (number, job) in choices.jobs.iter().enumerate() {
            jobs.push(Waiting {
                key: (task, number),
                arrival: job.due_ns + job.after_ns,
                tie: job.tie,
                deadline: job.due_ns + model.tasks[task].deadline_ns.unwrap_or(0),
                left: job.runs_ns[0],
                core: None,
                ready: None,
            });
        }
    }
    jobs.sort_by_key(|job| (job.arrival, job.tie, job.key));
    let mut ends = Vec::new();
    let mut now = 0;
    while !jobs.is_empty() {
        // Several rounds an instant, since jobs of no length end as soon as they have a core.
        loop {
            let before = jobs.len();
            for core in 0..model.cores.len() {
                if let Some(at) = jobs
                    .iter()
                    .position(|job| job.core == Some(core) && job.left == 0)
                {
                    ends.push((jobs.remove(at).key, now));
                }
            }
            let mut first = vec![true; model.tasks.len()];
            let mut order = Vec::new();
            for (at, job) in jobs.iter_mut().enumerate() {
                if job.arrival <= now && std::mem::take(&mut first[job.key.0]) {
                    job.ready.get_or_insert(now);
                    order.push(at);
                }
            }
            order.sort_by_key(|at| {
                let job = &jobs[*at];
                let runs = job.core.is_some();
                let urgency = u64::from(u32::MAX - model.tasks[job.key.0].priority);
                match model.scheduler.policy {
                    Policy::Edf => (true, job.deadline, !runs, job.tie, *at),
                    Policy::FixedPriority { preemptive: false } if runs => {
                        (false, 0, false, 0, *at)
                    }
                    _ => (true, urgency, false, 0, *at),
                }
            });
            let mut free: Vec<usize> = (0..model.cores.len()).collect();
            let mut given = Vec::new();
            for at in order {
                let mine = &model.tasks[jobs[at].key.0].cores;
                if let Some(place) = free.iter().position(|core| mine.contains(&CoreId(*core))) {
                    given.push((at, free.remove(place)));
                }
            }
            for job in &mut jobs {
                job.core = None;
            }
            for (at, core) in given {
                jobs[at].core = Some(core);
            }
            let none_over = jobs.iter().all(|job| job.core.is_none() || job.left > 0);
            if none_over && jobs.len() == before {
                break;
            }
        }
        now += 1;
        for job in jobs.iter_mut().filter(|job| job.core.is_some()) {
            job.left -= 1;
        }
    }
    ends.sort();
    ends
}

#[test]
fn a_simulation_by_ticks_gives_the_same_ends() {
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let model = random_model(&mut random).checked().expect("it is sound");
        let scenario = random_scenario(&model, &mut random);
        scenario
            .check(&model)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        // Ties of equal deadlines depend on who became ready first behind an earlier job of its
        // task, which the ticks do not track: such sets are compared by the set of ends.
        let run = simulate(&model, &scenario);
        let mut ends: Vec<_> = run
            .jobs
            .iter()
            .map(|job| ((job.task.0, job.number), job.end_ns.expect("nothing waits")))
            .collect();
        ends.sort();
        let expected = ends_by_ticks(&model, &scenario);
        assert_eq!(ends.len(), expected.len(), "seed {seed}");
        let busiest = |ends: &[((usize, usize), u64)]| ends.iter().map(|end| end.1).max();
        match model.scheduler.policy {
            Policy::Edf => assert_eq!(busiest(&ends), busiest(&expected), "seed {seed}"),
            _ => assert_eq!(ends, expected, "seed {seed}: {}", model.to_toml()),
        }
        assert_eq!(
            run,
            simulate(&model, &scenario),
            "seed {seed}: the same again"
        );
        let mut silent = run.clone();
        silent.events.clear();
        assert_eq!(
            silent,
            evaluate(&model, &scenario),
            "seed {seed}: without events"
        );
        let text = scenario.to_json();
        assert_eq!(
            Scenario::from_json(&text, &model),
            Ok(scenario),
            "seed {seed}"
        );
        assert_eq!(Model::from_toml(&model.to_toml()), Ok(model), "seed {seed}");
    }
}
