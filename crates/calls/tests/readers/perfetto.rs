//! A trace for Perfetto, read by its trace processor, or by its schema where that is missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use hearth_calls::formats::perfetto;
use hearth_calls::{Recorded, Step};
use serde_json::Value;

use crate::fixture::{Counts, Temporary, lossy, script, whole};

/// A slice: thread, depth, name, category, beginning, length.
pub(crate) type Slice = (String, u64, String, String, u64, i64);

/// Slices, and records lost by the counters.
pub(crate) fn read(path: &Path) -> Option<(Vec<Slice>, u64)> {
    let output = Command::new("python3")
        .arg(script("read.py"))
        .arg(path)
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no Python; install it: apt-get install python3");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    match read["reader"].as_str() {
        None => {
            eprintln!("skipped: Python lacks Perfetto's package; install it: pip install perfetto");
            return None;
        }
        Some("the schema") => eprintln!(
            "read by Perfetto's schema only: there is no trace processor; put \
             trace_processor_shell on the path, or name it in TRACE_PROCESSOR"
        ),
        Some(reader) => eprintln!("read by {reader}"),
    }
    let slices = read["slices"].as_array().expect("slices");
    let slices = slices.iter().map(|slice| {
        let text = |at: usize| slice[at].as_str().expect("a text").to_owned();
        let number = |at: usize| slice[at].as_u64().expect("a number");
        let length = slice[5].as_i64().expect("a number");
        (text(0), number(1), text(2), text(3), number(4), length)
    });
    Some((
        slices.collect(),
        read["lost"].as_f64().expect("a number") as u64,
    ))
}

/// Slices as they should be, in the order in which they end.
fn expected(recorded: &Recorded) -> Vec<Slice> {
    let mut slices = Vec::new();
    let visit = |step: Step<'_>| {
        let account = recorded.account(step.thread()).expect("an account");
        let thread = account.name.clone();
        match step {
            Step::Ends { call, .. } => slices.push((
                thread,
                u64::from(call.depth),
                call.name.map_or("?", |name| recorded.name(name)).to_owned(),
                "call".to_owned(),
                call.open_from,
                (call.open_until - call.open_from) as i64,
            )),
            Step::Gap {
                from, to, records, ..
            } => slices.push((
                thread,
                // Its depth is that of the calls that are open.
                u64::MAX,
                format!("{records} records lost"),
                "lost".to_owned(),
                from,
                (to - from) as i64,
            )),
            Step::Begins { .. } | Step::Appears { .. } => {}
        }
    };
    recorded.visit(visit).expect("it is read");
    slices.sort();
    slices
}

fn check(recorded: &Recorded, directory: &Temporary) {
    let path = directory.path("test.pftrace");
    let mut bytes = Vec::new();
    perfetto(recorded, &mut bytes).expect("it is written");
    fs::write(&path, &bytes).expect("it is written");
    let Some((mut slices, lost)) = read(&path) else {
        return;
    };
    assert_eq!(lost, Counts::of(recorded).lost);
    for slice in slices.iter_mut().filter(|slice| slice.3 == "lost") {
        slice.1 = u64::MAX;
    }
    slices.sort();
    assert_eq!(slices, expected(recorded));
}

#[test]
fn perfetto_reads_whole_recordings() {
    let directory = Temporary::new();
    check(&whole(&directory), &directory);
}

#[test]
fn perfetto_shows_losses() {
    let directory = Temporary::new();
    check(&lossy(&directory), &directory);
}

/// The project's own reader of such traces knows it too.
#[test]
fn names_are_numbered_in_each_sequence() {
    let directory = Temporary::new();
    let mut bytes = Vec::new();
    perfetto(&lossy(&directory), &mut bytes).expect("it is written");
    let trace = hearth_watch::trace::read(&bytes).expect("it is a trace");
    let events = trace.packet.iter().filter_map(|packet| {
        let event = packet.track_event.as_ref()?;
        assert!(event.name_iid.is_none(), "{event:?}");
        event.name.clone()
    });
    let names: Vec<String> = events.collect();
    assert!(names.iter().any(|name| name == "Shop::find"));
    assert!(
        names.iter().any(|name| name == "4 records lost"),
        "{names:?}"
    );
}
