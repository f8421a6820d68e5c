//! Simulations: seeds that repeat, schedules that are searched and made plain, virtual time, and
//! the canaries, faults planted in the runtime that a simulation must find.

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use support::{Outcome, empty_folder, hearth, outcome, root};

fn program(name: &str) -> PathBuf {
    root().join("crates/cli/tests/simulated").join(name)
}

/// Runs a program of ours; the settings go to the environment.
fn run(name: &str, options: &[&str], settings: &[(&str, &str)], stdin: Option<&str>) -> Outcome {
    let mut command = hearth();
    command
        .arg("run")
        .args(options)
        .arg(program(name))
        .envs(settings.iter().copied());
    outcome(&mut command, stdin.map(str::as_bytes)).expect("it ends")
}

/// The course of a run, as the runtime writes it.
fn record_of(name: &str, seed: &str, stdin: Option<&str>) -> String {
    let file = empty_folder(&format!("record-{name}-{seed}")).join("record");
    let settings = [
        ("HEARTH_SIMULATE", seed),
        (
            "HEARTH_RECORD",
            file.to_str().expect("a path of ours is text"),
        ),
    ];
    run(name, &[], &settings, stdin);
    std::fs::read_to_string(file).expect("a simulation writes its record")
}

#[test]
fn a_seed_repeats_whatever_happens() {
    for (name, stdin) in [
        ("messages.isf", None),
        ("judge.isf", None),
        ("hour.isf", None),
        ("echo.isf", Some("a\nb\nc\nd\n")),
    ] {
        let mut different = std::collections::HashSet::new();
        for seed in ["1", "2", "3", "4", "5"] {
            let first = record_of(name, seed, stdin);
            assert_eq!(first, record_of(name, seed, stdin), "{name}, seed {seed}");
            assert!(first.starts_with("hearth schedule 1\n"), "{first}");
            different.insert(first);
        }
        assert!(different.len() > 1, "{name}: the seeds make no difference");
    }
}

#[test]
fn a_bug_of_a_schedule_is_found_made_plain_and_repeated() {
    let file = empty_folder("plain-schedule").join("judge.schedule");
    let path = file.to_str().expect("a path of ours is text");
    let found = run(
        "judge.isf",
        &["--simulate=1..200", "--schedule", path],
        &[],
        None,
    );
    assert_eq!(found.code(), Some(1), "{}", found.stderr);
    assert!(found.stderr.contains("fails: deadlock"), "{}", found.stderr);
    assert!(found.stderr.contains("\n* worker "), "{}", found.stderr);
    for again in [path, &seed_in(&found.stderr)] {
        let repeated = run("judge.isf", &["--simulate", again], &[], None);
        assert_eq!(repeated.code(), Some(1));
        assert!(repeated.stderr.contains("deadlock"), "{}", repeated.stderr);
        let how = format!("--simulate {again}");
        assert!(repeated.stderr.contains(&how), "{}", repeated.stderr);
    }
    let plain = run("judge.isf", &["--simulate=0"], &[], None);
    assert_eq!((plain.code(), plain.stdout.as_str()), (Some(0), "fine\n"));
}

/// `hearth: seed 25 fails: …`
fn seed_in(stderr: &str) -> String {
    let line = stderr
        .lines()
        .find_map(|line| line.strip_prefix("hearth: seed "));
    let seed = line.and_then(|line| line.split(' ').next());
    seed.expect("the seed is told").to_owned()
}

/// The page about simulating shows a search; it must find just that.
#[test]
fn the_book_shows_what_is_found() {
    let page = root().join("docs/simulate.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let fence = |opening: &str| {
        let from = text.find(opening).expect("the fence is there") + opening.len();
        let to = from + text[from..].find("```").expect("a fence ends");
        from..to
    };
    let folder = empty_folder("book-race");
    std::fs::write(folder.join("race.isf"), &text[fence("```insense\n")])
        .expect("a scratch folder can be written");
    let call = "--simulate 1..1000 --schedule race.schedule race.isf";
    let mut command = hearth();
    command
        .arg("run")
        .args(call.split(' '))
        .current_dir(&folder);
    let found = outcome(&mut command, None).expect("it ends");
    let shown = fence(&format!("$ hearth run {call}\n"));
    if support::blessing() {
        let blessed = [&text[..shown.start], &found.stderr, &text[shown.end..]].concat();
        std::fs::write(page, blessed).expect("the page can be written");
        return;
    }
    support::same(&text[shown], &found.stderr)
        .expect("`./x bless` has the page show what is found");
}

#[test]
fn an_hour_costs_nothing_and_who_looks_sees_time_pass() {
    let start = Instant::now();
    let found = run("hour.isf", &["--simulate=3"], &[], None);
    assert_eq!(found.stdout, "a moment\nan hour\n", "{}", found.stderr);
    assert!(start.elapsed() < Duration::from_secs(1800));
}

#[test]
fn seeds_that_pass_are_counted() {
    let found = run("hour.isf", &["--simulate=1..5"], &[], None);
    assert_eq!(found.stdout, "5 seeds have passed\n", "{}", found.stderr);
    let found = run(
        "messages.isf",
        &["--simulate=1..3", "--steps=50"],
        &[],
        None,
    );
    assert_eq!(
        found.stdout, "3 seeds have passed; 3 had not ended after 50 steps (--steps)\n",
        "{}",
        found.stderr
    );
    let found = run("messages.isf", &["--simulate=1", "--steps=50"], &[], None);
    assert_eq!(found.code(), Some(0));
    assert!(found.stderr.contains("ends here"), "{}", found.stderr);
}

#[test]
fn what_is_no_schedule_is_refused() {
    let file = empty_folder("no-schedule").join("bad");
    std::fs::write(&file, "hearth schedule 1\nlunch\n").expect("a scratch folder can be written");
    let path = file.to_str().expect("a path of ours is text");
    let found = run("judge.isf", &["--simulate", path], &[], None);
    assert_eq!(found.code(), Some(2));
    assert!(found.stderr.contains("line 2"), "{}", found.stderr);
    let found = run("judge.isf", &["--simulate=5..2"], &[], None);
    assert_eq!(found.code(), Some(2));
}

/// The planted fault is found from a seed in a small range, the seed repeats it, and a schedule
/// that is no longer than the seed's shows it too. Without it the same seeds find nothing.
fn canary(name: &str, kind: &str) {
    if !cfg!(debug_assertions) {
        // Releases have no canaries.
        return;
    }
    let settings = [("HEARTH_CANARY", name)];
    let file = empty_folder(&format!("canary-{name}")).join("schedule");
    let path = file.to_str().expect("a path of ours is text");
    let options = ["--simulate=1..60", "--schedule", path];
    let found = run("messages.isf", &options, &settings, None);
    assert_eq!(found.code(), Some(1), "{}", found.stderr);
    let told = format!("fails: {kind}");
    assert!(found.stderr.contains(&told), "{}", found.stderr);
    let story = format!("hearth: {kind}: ");
    let seed = seed_in(&found.stderr);
    for again in [path, &seed] {
        let repeated = run("messages.isf", &["--simulate", again], &settings, None);
        assert_eq!(repeated.code(), Some(4), "{}", repeated.stderr);
        assert!(repeated.stderr.contains(&story), "{}", repeated.stderr);
    }
    let choices = |text: &str| {
        let schedule = text.split("\n\n").next().unwrap_or_default();
        schedule
            .lines()
            .filter(|line| line.split(' ').count() == 4)
            .count()
    };
    let plain = std::fs::read_to_string(&file).expect("the schedule was written");
    let record = empty_folder(&format!("canary-{name}-whole")).join("record");
    let settings = [
        ("HEARTH_CANARY", name),
        ("HEARTH_SIMULATE", &seed),
        (
            "HEARTH_RECORD",
            record.to_str().expect("a path of ours is text"),
        ),
    ];
    run("messages.isf", &[], &settings, None);
    let whole = std::fs::read_to_string(record).expect("a simulation writes its record");
    assert!(choices(&plain) <= choices(&whole), "{plain}\nof\n{whole}");
    let healthy = run("messages.isf", &["--simulate", &seed], &[], None);
    assert_eq!(healthy.code(), Some(0), "{}", healthy.stderr);
}

#[test]
fn a_lost_wake_up_is_found() {
    canary("lost-wake-up", "lost wake-up");
}

#[test]
fn a_double_delivery_is_found() {
    canary("double-delivery", "double delivery");
}

#[test]
fn starvation_is_found() {
    canary("starvation", "starvation");
}
