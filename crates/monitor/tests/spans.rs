//! Spans of the crate `tracing` as calls. Each test is a process of its own, as a monitor and a
//! subscriber are its only ones: this program runs itself again as a child.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::{env, fs, process};

use hearth_calls::{Recorded, Step};
use hearth_monitor::{Monitor, Options, Rule, tracing as spans};
use tracing::{Level, event, info_span, span};
use tracing_subscriber::prelude::*;

const FILE: &str = "HEARTH_TEST_FILE";

/// Runs a role of this program as a child, with a file for its records; returns the numbers of
/// calls whose beginnings and ends are known, by name, with the names around.
fn calls_of(role: &str, variable: &str) -> BTreeMap<String, u64> {
    let name = format!("hearth-spans-{}-{role}.calls", process::id());
    let file = env::temp_dir().join(name);
    let status = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", role, "--nocapture"])
        .env(FILE, &file)
        .env(
            "HEARTH_MONITOR",
            variable.replace("FILE", &file.display().to_string()),
        )
        .status();
    assert!(status.expect("it starts").success(), "{role}");
    let calls = calls(&file);
    let _ = fs::remove_file(&file);
    calls
}

fn calls(file: &Path) -> BTreeMap<String, u64> {
    let recorded = Recorded::open(file).expect("records");
    assert!(recorded.has_ended());
    for account in recorded.accounts() {
        assert_eq!(account.emitted, account.stored, "{account:?}");
    }
    let mut calls = BTreeMap::new();
    let visited = recorded.visit(|step| {
        if let Step::Ends { call, around } = step {
            assert!(call.length().is_some(), "{call:?}");
            let names = around.iter().chain([&call.name]).map(|name| {
                let name = recorded.name(name.expect("a known call"));
                name.split(' ').next().unwrap_or_default()
            });
            let path: Vec<&str> = names.collect();
            *calls.entry(path.join(">")).or_default() += 1;
        }
    });
    visited.expect("it can be read");
    calls
}

/// The file, if this process is a child.
fn role() -> Option<PathBuf> {
    env::var_os(FILE).map(PathBuf::from)
}

fn expected(calls: &[(&str, u64)]) -> BTreeMap<String, u64> {
    calls
        .iter()
        .map(|&(name, count)| (name.to_owned(), count))
        .collect()
}

fn handle(number: u64) -> u64 {
    let _span = info_span!("handle", number).entered();
    read(number) + read(number + 1)
}

fn read(number: u64) -> u64 {
    let _span = span!(target: "store", Level::TRACE, "read").entered();
    event!(target: "store", Level::INFO, number, "an event");
    number
}

/// A future that waits once.
async fn wait_once() {
    let mut is_ready = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut is_ready, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

fn spans_are_passed() {
    for number in 0..100 {
        handle(number);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| handle(7));
    });
    // Left in another order.
    let (one, two) = (info_span!("one"), info_span!("two"));
    let (first, second) = (one.enter(), two.enter());
    drop(first);
    drop(second);
    handle(1);
    let polled = tracing::Instrument::instrument(wait_once(), info_span!("polled"));
    let mut polled = pin!(polled);
    let mut context = Context::from_waker(Waker::noop());
    assert!(polled.as_mut().poll(&mut context).is_pending());
    assert!(polled.as_mut().poll(&mut context).is_ready());
}

const ALL: &[(&str, u64)] = &[
    ("spans::handle", 102),
    ("spans::handle>store::read", 204),
    ("spans::handle>store::read>store::event", 204),
    ("spans::one", 1),
    ("spans::one>spans::two", 1),
    // Two polls, and the drop.
    ("spans::polled", 3),
];

#[test]
fn child_with_a_subscriber() {
    let Some(_) = role() else { return };
    let monitor = spans::init_of_env().expect("it begins");
    spans_are_passed();
    drop(monitor);
}

#[test]
fn a_subscriber_notes_each_entering() {
    let calls = calls_of("child_with_a_subscriber", "FILE");
    assert_eq!(calls, expected(ALL));
    let calls = calls_of(
        "child_with_a_subscriber",
        "FILE,off=*::event *,off=spans::*",
    );
    assert_eq!(calls, expected(&[("store::read", 204)]));
}

#[test]
fn child_with_a_layer() {
    let Some(file) = role() else { return };
    tracing_subscriber::registry().with(spans::Layer).init();
    let monitor = Monitor::begin(Options::to_file(&file).on("*")).expect("it begins");
    spans_are_passed();
    drop(monitor);
}

#[test]
fn a_layer_notes_each_entering() {
    assert_eq!(calls_of("child_with_a_layer", "FILE"), expected(ALL));
}

#[test]
fn child_that_switches() {
    let Some(file) = role() else { return };
    handle(0);
    let monitor = spans::init(Options::to_file(&file)).expect("it begins");
    handle(0);
    assert!(info_span!("other").is_disabled());
    assert_eq!(monitor.rule(Rule::on("store::read")), 1);
    handle(0);
    assert_eq!(monitor.rule(Rule::off("*")), 0);
    handle(0);
    assert_eq!(monitor.rule(Rule::on("*::handle")), 1);
    handle(0);
    drop(monitor);
    handle(0);
}

#[test]
fn rules_reach_call_sites_that_tracing_has_cached() {
    let calls = calls_of("child_that_switches", "FILE");
    assert_eq!(calls, expected(&[("store::read", 2), ("spans::handle", 1)]));
}

#[test]
fn child_with_two() {
    let Some(file) = role() else { return };
    let monitor = spans::init(Options::to_file(&file).on("*")).expect("it begins");
    let error = spans::init(Options::to_file(&file))
        .err()
        .expect("a second");
    assert!(
        error
            .to_string()
            .contains("add hearth_monitor::tracing::Layer")
    );
    drop(monitor);
}

#[test]
fn a_second_subscriber_is_refused() {
    assert_eq!(calls_of("child_with_two", "FILE"), expected(&[]));
}
