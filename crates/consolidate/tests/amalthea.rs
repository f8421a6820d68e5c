//! AMALTHEA in and out: the subset is understood, and nothing else changes.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use hearth_consolidate::amalthea::read;
use hearth_consolidate::model::{Asil, ModeSet};
use hearth_consolidate::search::{Goals, search};

const MODEL: &str = include_str!("models/engine.amxmi");

#[test]
fn the_subset_is_read() {
    let model = read(MODEL, "engine.amxmi").expect("a model");
    let system = &model.system;
    let [ten, charge] = system.components.as_slice() else {
        panic!("two tasks");
    };
    assert_eq!(
        (ten.name.as_str(), charge.name.as_str()),
        ("Task 10ms", "Task_Charge")
    );
    assert_eq!((ten.asil, charge.asil), (Asil::D, Asil::Qm));
    // 200,000 and, on this kind of unit, 50,000 ticks at 200 MHz.
    assert_eq!(ten.times[0].ns, 1_250_000);
    assert_eq!(ten.period_ns, 10_000_000);
    assert_eq!((ten.modes, charge.modes), (ModeSet(3), ModeSet(2)));
    assert_eq!(system.units.len(), 2);
    assert_eq!(system.memories[0].bytes, 2 << 20);
    let message = &system.messages[0];
    assert_eq!((message.from, message.to, message.bytes), (1, 0, 4));
    assert_eq!(message.period_ns, 20_000_000);
}

#[test]
fn only_the_mapping_changes() {
    let model = read(MODEL, "engine.amxmi").expect("a model");
    let found = search(&model.system, &Goals::default(), 1, &mut |_| 0.0).expect("a mapping");
    assert!(support::checked(&model.system, &found.mapping).is_valid());
    // ASIL D is on the unit in lock-step, and so is everything.
    assert_eq!(found.value.units, 1);
    let written = model.with_mapping(&found.mapping);
    let wanted = MODEL
        .replace(
            "scheduler=\"S1?type=TaskScheduler\" affinity=\"Core1?type=ProcessingUnit\"",
            "scheduler=\"S0?type=TaskScheduler\" affinity=\"Core%200?type=ProcessingUnit\"",
        )
        .replace(
            "  <mappingModel>",
            "  <mappingModel>\n    <taskAllocation task=\"Task_Charge?type=Task\" \
             scheduler=\"S0?type=TaskScheduler\" affinity=\"Core%200?type=ProcessingUnit\"/>",
        );
    assert_eq!(written, wanted, "every other byte stays");
    let again = read(&written, "again").expect("it is read again");
    assert_eq!(
        again.with_mapping(&found.mapping),
        written,
        "and nothing more to change"
    );
}

/// Another reader of XML finds the same elements, and the new allocation.
#[test]
fn python_reads_what_was_written() {
    let model = read(MODEL, "engine.amxmi").expect("a model");
    let found = search(&model.system, &Goals::default(), 1, &mut |_| 0.0).expect("a mapping");
    let written = model.with_mapping(&found.mapping);
    let count = |text: &str| -> Vec<usize> {
        const SCRIPT: &str = "import sys, xml.etree.ElementTree as e\n\
            r = e.fromstring(sys.stdin.buffer.read())\n\
            print(len(list(r.iter())), len(r.findall('mappingModel/taskAllocation')))";
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect()
    };
    let (before, after) = (count(MODEL), count(&written));
    assert_eq!(before[0] + 1, after[0]);
    assert_eq!((before[1], after[1]), (1, 2));
}

#[test]
fn mistakes_have_a_line_and_a_next_step() {
    let cases = [
        (
            "<a/>",
            "f:1: a: the outermost element is `a` and not `Amalthea`: name an AMALTHEA model",
        ),
        (
            "",
            "f:1: the document: there is no element: name an AMALTHEA model",
        ),
        (
            "<Amalthea>",
            "f:1: the document: the text ends inside an element: close it",
        ),
    ];
    for (text, wanted) in cases {
        let error = read(text, "f").err().expect("a mistake").to_string();
        assert_eq!(error, wanted);
    }
    let without = MODEL.replace("stimuli=\"p20?type=PeriodicStimulus\"", "");
    let error = read(&without, "f").err().expect("a mistake").to_string();
    assert!(
        error.starts_with("f:13: tasks `Task_Charge`: the task has no stimulus"),
        "{error}"
    );
    // No text makes it panic: each prefix, and each with a byte missing.
    for end in (0..MODEL.len()).step_by(37) {
        drop(read(&MODEL[..end], "f"));
        let mut cut = MODEL.to_owned();
        cut.remove(end.min(cut.len() - 1));
        drop(read(&cut, "f"));
    }
}
