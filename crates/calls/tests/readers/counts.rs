//! Each form of one recording has the same calls and the same losses.

use std::fs;

use hearth_calls::formats::{csv, ctf, folded, kieker, perfetto};
use hearth_calls::{Recorded, Tree};

use crate::fixture::{Counts, Temporary, lossy, whole};
use crate::{ctf as by_babeltrace, otlp, perfetto as by_perfetto};

fn of_csv(recorded: &Recorded) -> Counts {
    let mut text = Vec::new();
    csv(recorded, &mut text).expect("it is written");
    let text = String::from_utf8(text).expect("text");
    let mut counts = Counts::default();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[4] {
            "gap" => {
                counts.gaps += 1;
                counts.lost += fields[5].parse::<u64>().expect("a number");
            }
            _ => {
                counts.calls += 1;
                counts.begins += u64::from(!fields[2].is_empty());
            }
        }
    }
    counts
}

fn check(recorded: &Recorded, directory: &Temporary) {
    let counts = Counts::of(recorded);
    // A line does not say whether an end is known if the beginning is not.
    let ends = counts.ends;
    assert_eq!(
        Counts {
            ends,
            ..of_csv(recorded)
        },
        counts,
        "CSV"
    );
    assert_eq!(otlp::counted(recorded), counts, "OTLP");

    let path = directory.path("counts.pftrace");
    let mut bytes = Vec::new();
    perfetto(recorded, &mut bytes).expect("it is written");
    fs::write(&path, bytes).expect("it is written");
    if let Some((slices, lost)) = by_perfetto::read(&path) {
        let of = |category| slices.iter().filter(|slice| slice.3 == category).count() as u64;
        let read = (of("call"), of("lost"), lost);
        assert_eq!(read, (counts.calls, counts.gaps, counts.lost), "Perfetto");
    }

    let path = directory.path("counts-ctf");
    ctf(recorded, &path).expect("it is written");
    if let Some(read) = by_babeltrace::counted(&path) {
        let Counts { begins, ends, .. } = counts;
        assert_eq!((read.begins, read.ends), (begins, ends), "CTF");
        assert_eq!((read.gaps, read.lost), (counts.gaps, counts.lost), "CTF");
    }

    let (mut map, mut log) = (Vec::new(), Vec::new());
    let written = kieker(recorded, &mut map, &mut log).expect("it is written");
    assert_eq!(
        written.records + written.calls_left_out,
        counts.calls,
        "Kieker"
    );
    let log = String::from_utf8(log).expect("text");
    let records = log.lines().filter(|line| line.starts_with("$1;")).count();
    assert_eq!(written.records, records as u64, "Kieker");

    let tree = Tree::of(recorded).expect("it is read");
    assert_eq!(
        tree.nodes.iter().map(|node| node.calls).sum::<u64>(),
        counts.calls
    );
    assert_eq!(tree.gaps, (counts.gaps, counts.lost));
    let mut text = Vec::new();
    folded(recorded, &tree, &mut text).expect("it is written");
    let lines = String::from_utf8(text).expect("text").lines().count();
    let stacks = tree.nodes.iter().filter(|node| node.own > 0).count();
    assert_eq!(lines, stacks, "folded stacks");
    eprintln!("all forms have {counts:?}");
}

#[test]
fn forms_agree_on_whole_recordings() {
    let directory = Temporary::new();
    let recorded = whole(&directory);
    assert_eq!(Counts::of(&recorded).lost, 0);
    check(&recorded, &directory);
}

#[test]
fn forms_agree_on_losses() {
    let directory = Temporary::new();
    let recorded = lossy(&directory);
    assert!(Counts::of(&recorded).lost > 0);
    check(&recorded, &directory);
}
