//! `hearth watch`: recorded calls, and probes that are switched from outside.

mod support;

use hearth_monitor::{Monitor, Options, call};
use support::{run_in, text};

fn inner() {
    call!("Shop.inner");
}

fn outer() {
    call!("Shop.outer");
    inner();
}

/// One test, as a process has one monitor at a time.
#[test]
fn calls_are_shown_converted_and_switched() {
    let folder = support::empty_folder("watching-calls");
    let file = folder.join("shop.calls");
    let monitor = Monitor::begin(Options::to_file(&file).on("*")).expect("it begins");
    (0..100).for_each(|_| outer());

    // From outside, while the program runs.
    let process = std::process::id().to_string();
    let output = run_in(&folder, &["watch", &process, "--off", "*.inner"]);
    assert_eq!(text(&output.stdout), "1 probe on, of those passed so far\n");
    let output = run_in(&folder, &["watch", &process]);
    let shown = text(&output.stdout);
    assert!(shown.contains("did not end in order"), "{shown}");
    assert!(shown.contains("400 records: 400 stored, 0 lost"), "{shown}");
    (0..100).for_each(|_| outer());
    // Rules hold in their order.
    let mut arguments = vec!["watch", &process];
    arguments.extend(["--on", "*", "--off", "*", "--on", "*.outer"]);
    let output = run_in(&folder, &arguments);
    assert_eq!(text(&output.stdout), "1 probe on, of those passed so far\n");
    monitor.finish();

    let output = run_in(&folder, &["watch", "shop.calls"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("600 records: 600 stored, 0 lost"), "{shown}");
    let output = run_in(&folder, &["watch", "shop.calls", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["emitted"], 600);
    let calls = document["probes"].as_array().expect("probes").iter();
    assert_eq!(
        calls
            .filter_map(|probe| probe["calls"].as_u64())
            .sum::<u64>(),
        300
    );

    for (form, begins) in [
        ("csv", "thread,depth,"),
        ("folded", "Shop.outer "),
        ("perfetto", "\n"),
        ("sequence", "sequenceDiagram\n"),
        ("graph", "flowchart LR\n"),
    ] {
        let output = run_in(&folder, &["watch", "shop.calls", "--as", form]);
        assert!(text(&output.stdout).starts_with(begins), "{form}");
    }
    let output = run_in(
        &folder,
        &["watch", "shop.calls", "--as", "kieker", "--to", "log"],
    );
    assert_eq!(text(&output.stderr), "hearth: 200 traces with 300 calls\n");
    assert!(folder.join("log/kieker.map").exists());
    let output = run_in(&folder, &["watch", "shop.calls", "--page", "shop.html"]);
    assert!(output.status.success());
    let page = std::fs::read_to_string(folder.join("shop.html")).expect("a page");
    assert!(page.contains("Response times") && page.contains("Shop.inner"));

    for (arguments, message) in [
        (
            ["watch", "missing.calls", "--long"].as_slice(),
            "cannot read missing.calls: there is no such",
        ),
        (&["watch", "shop.html"], "holds no records of probes"),
        (
            &["watch", "shop.calls", "--on", "*"],
            "give the number of its process",
        ),
        (
            &["watch", "shop.calls", "--as", "kieker"],
            "say where to: --as kieker --to folder",
        ),
        (&["watch", &process, "--on", "*"], "has no monitor"),
    ] {
        let output = run_in(&folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(
            error.to_lowercase().contains(message),
            "{arguments:?}: {error}"
        );
    }
}
