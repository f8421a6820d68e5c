//! The workloads for allocators, at their smallest: they end, their answers are right, and they
//! notice an allocator that is wrong.
//!
//! `HEARTH_MALLOC_LIBRARY` may name a library to run them under as well.

use std::path::Path;
use std::process::Command;

use hearth_benches::heap::allocators::{Allocator, HEARTH};
use hearth_benches::heap::programs::Programs;
use hearth_benches::heap::session::{check, measure};
use hearth_benches::heap::workloads::{Group, Size};
use hearth_benches::heap::{Request, report};
use hearth_testing::toolchain::Workshop;

#[test]
fn everything_runs_under_the_systems_allocator() {
    check(&Allocator::system()).expect("the answers are right");
}

#[test]
fn everything_runs_under_the_library_that_the_environment_names() {
    if let Some(library) = std::env::var_os("HEARTH_MALLOC_LIBRARY") {
        let library = Path::new(&library)
            .canonicalize()
            .expect("HEARTH_MALLOC_LIBRARY is there");
        check(&Allocator::of_library(HEARTH, &library)).expect("the answers are right");
    }
}

#[test]
fn tables_have_what_was_asked_for() {
    let request = Request {
        size: Size::Small,
        repeats: 2,
        groups: vec![Group::Fast, Group::Latency, Group::Burst],
    };
    let system = Allocator::system();
    // The same again in Hearth's place.
    let ours = Allocator {
        name: HEARTH.to_owned(),
        ..system.clone()
    };
    let mut told = Vec::new();
    let found = measure(&request, &[system, ours], &mut |what| {
        told.push(what.to_owned());
    });
    let table = found.expect("all runs").table;
    let text = report::text(&table);
    for row in [
        "pair-16, ns",
        "mix-1 malloc max, ticks",
        "rt-2 remote free mean, ticks",
    ] {
        assert!(text.contains(row), "{text}");
    }
    assert!(text.contains("lat mix-1 malloc max"), "no goal in {text}");
    assert!(!text.contains("FAILED"), "{text}");
    assert!(told.iter().any(|what| what.contains("turn 2 of 2")));
    // Reading the clock twice takes time, and no more than a malloc in between.
    let null = table.row(Group::Latency, "null malloc p50").expect("a row");
    let some = table.row(Group::Latency, "rt-1 malloc p50").expect("a row");
    let median = |row| table.median(row, "glibc").expect("measured");
    assert!(median(null) > 0.0 && median(null) <= median(some), "{text}");
}

/// Blocks that are handed out twice are found by all workloads that can have any of those sizes.
#[test]
fn an_allocator_that_is_wrong_is_noticed() {
    let workshop = Workshop::new("heap-canary").expect("a folder");
    let library = workshop.path().join("canary.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/heap/canary.c");
    let built = Command::new("cc")
        .args(["-O1", "-std=c11", "-fno-builtin", "-fPIC", "-shared", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cc builds it");
    let canary = Allocator::of_library("canary", &library);
    let programs = Programs::new().expect("the workloads build");
    let ticks = programs.file("ticks").display().to_string();
    for words in [
        &format!("latency mix 1 20000 1000 0 1 {ticks}"),
        &format!("latency mix 2 20000 1000 3 1 {ticks}"),
        &format!("burst 1000 many 3 1 {ticks}"),
        "fragment 1 42 0",
        "larson 2 3 2000 100 1",
        "short-lives 10 100 1",
        "random-pool 2 8000 100 1",
        "replace 1 50000 1000 1",
        "in-runs 1 1000 4",
        "in-shifts 2 1000 12 1",
    ] {
        let found = programs.workload(&canary, words);
        let error = found.expect_err(words);
        assert!(error.contains("is not as it was left"), "{words}: {error}");
    }
}
