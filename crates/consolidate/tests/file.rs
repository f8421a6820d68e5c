//! The file: the book's example, and every kind of mistake with its line, field and next step.

mod support;

use hearth_consolidate::file::{read, read_mapping, write_mapping};
use hearth_consolidate::report;
use hearth_consolidate::result::{consolidate, document, text};
use hearth_consolidate::search::Goals;

fn book() -> String {
    let book = include_str!("../../../docs/consolidate.md");
    let block = book.split("```toml\n").nth(1).expect("an example");
    block.split("```").next().expect("its end").to_owned()
}

#[test]
fn the_books_example_is_consolidated_and_shown() {
    let system = read(&book(), "book").expect("the book's example is right");
    let result = consolidate(&system, &Goals::default(), 1, &mut |_| 0.0).expect("a mapping");
    assert_eq!(result.figures.units, 1);
    let shown = text(&system, &result);
    assert!(shown.contains("no valid mapping has fewer"), "{shown}");
    let page = report::page(&system, &result);
    for part in [
        "inverter",
        "Timeline: driving",
        "one cable of",
        "Mode switches",
    ] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    assert_eq!(document(&system, &result)["after"]["units"], 1);
    let kept = write_mapping(&system, &result.found.mapping);
    assert_eq!(
        read_mapping(&kept, "kept", &system),
        Ok(result.found.mapping)
    );
}

#[test]
fn mistakes_have_a_line_a_field_and_a_next_step() {
    let cases = [
        (
            "period_us = 1000\n",
            "period_us = 0\n",
            "component 1, period_us: 0 is not a number of µs above 0",
        ),
        (
            "asil = \"C\"",
            "asil = \"E\"",
            "component 1, asil: `E` is none of",
        ),
        (
            "from = \"inverter\"",
            "from = \"invertor\"",
            "there is no component `invertor`; `inverter` is near it",
        ),
        (
            "name = \"charger\"",
            "name = \"inverter\"",
            "component 2, name: `inverter` is the name of another component",
        ),
        (
            "deadline_us = 1000",
            "deadline_us = 2000",
            "longer than the period",
        ),
        (
            "share = 0.1",
            "share = 0.5",
            "the shares of the modes add up to 1.4",
        ),
        ("kib = 64", "kibi = 64", "unknown field `kibi`"),
        ("kib = 64", "kib = \"64\"", "component 1"),
        (
            "wcet_us = 400",
            "",
            "component 2, name: the component has no time",
        ),
        (
            "to = \"watchdog\"\nbytes",
            "to = \"inverter\"\nbytes",
            "to itself",
        ),
        (
            "sleep_w = 0.2",
            "sleep_w = 20",
            "at most the power in each mode",
        ),
        ("[[mode]]", "[[mode", "the file"),
    ];
    for (old, new, wanted) in cases {
        let text = book();
        assert!(text.contains(old), "{old}");
        let wrong = text.replacen(old, new, 1);
        let error = read(&wrong, "car.toml").expect_err(new).to_string();
        assert!(error.contains(wanted) || wanted == "the file", "{error}");
        assert!(
            error.starts_with("car.toml:") && error.contains(": "),
            "{error}"
        );
    }
    let error = read("", "f").expect_err("empty").to_string();
    assert_eq!(
        error,
        "f:1: the file: there is no component: add a table [[component]]"
    );
}

#[test]
fn no_text_makes_it_panic() {
    let text = book();
    let mut random = fastrand::Rng::with_seed(1);
    let marks: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    for _ in 0..2000 {
        let (a, b) = (random.usize(..marks.len()), random.usize(..marks.len()));
        let (a, b) = (marks[a.min(b)], marks[a.max(b)]);
        let b = b.min(a + random.usize(..40));
        let b = (a..=b)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(a);
        let cut = format!("{}{}", &text[..a], &text[b..]);
        drop(read(&cut, "f"));
    }
}
