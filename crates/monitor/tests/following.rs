//! Calls that are read while the program runs: its own, here.

use std::collections::BTreeMap;
use std::{env, fs, process};

use hearth_calls::{Following, Recorded, Step};
use hearth_monitor::{Monitor, Options, call};

fn inner() {
    call!("Shop.inner");
}

fn outer() {
    call!("Shop.outer");
    inner();
}

type Calls = BTreeMap<String, u64>;

fn count(calls: &mut Calls, recorded: &Recorded, step: Step<'_>) {
    match step {
        Step::Ends { call, .. } => {
            assert!(call.length().is_some(), "{call:?}");
            let name = call.name.map_or("?", |name| recorded.name(name));
            *calls.entry(name.to_owned()).or_default() += 1;
        }
        Step::Gap { .. } => panic!("{step:?}"),
        _ => {}
    }
}

#[test]
fn calls_come_while_the_program_runs_and_each_once() {
    let file = env::temp_dir().join(format!("hearth-following-{}.calls", process::id()));
    let options = Options::to_file(&file)
        .on("*")
        .law(hearth_watch::stream::Law::Block);
    let monitor = Monitor::begin(options).expect("it begins");
    let mut following = Following::open(&file).expect("a stream");
    let (mut calls, mut called) = (Calls::new(), 0);
    // Few, so that they are in an open block, and many, so that blocks are stored meanwhile.
    for round in [1, 10, 10_000, 3, 0, 50_000, 7] {
        (0..round).for_each(|_| outer());
        called += round;
        following.go_on(|recorded, step| count(&mut calls, recorded, step));
        let expected = ["Shop.inner", "Shop.outer"].map(|name| (name.to_owned(), called));
        assert_eq!(calls, Calls::from(expected));
    }
    monitor.finish();
    following.go_on(|recorded, step| count(&mut calls, recorded, step));
    following.end(|recorded, step| count(&mut calls, recorded, step));
    assert_eq!(calls["Shop.outer"], called);
    assert!(following.recorded().has_ended());
    fs::remove_file(&file).expect("it is there");
}
