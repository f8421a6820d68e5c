//! The C that is emitted: golden files, determinism, and that the improvements happen.
//!
//! `HEARTH_BLESS=1 cargo test -p hearth-lang --test emit` rewrites the golden files.

use hearth_lang::compile::{CompileOptions, compile, sizes};
use std::fs;
use std::path::Path;

fn c_of(text: &str) -> String {
    let compiled = compile(text, "program.isf", &CompileOptions::default());
    compiled
        .c
        .unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

/// The definition of one C function.
fn function<'a>(c: &'a str, name: &str) -> &'a str {
    let head = format!("{name}(");
    let start = c
        .match_indices(&head)
        .map(|(i, _)| i)
        .find(|&i| {
            c[i..]
                .lines()
                .next()
                .is_some_and(|line| !line.ends_with(';'))
        })
        .unwrap_or_else(|| panic!("no function {name} in\n{c}"));
    let end = c[start..].find("\n}\n").expect("the function's end");
    &c[start..start + end]
}

#[test]
fn golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emit");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the folder of golden files") {
        let path = entry.expect("a readable entry").path();
        if path.extension().is_none_or(|e| e != "isf") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a program");
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let compiled = compile(&text, &name, &CompileOptions::default());
        let c = compiled
            .c
            .unwrap_or_else(|| panic!("{name}: {:#?}", compiled.diagnostics));
        let golden = path.with_extension("c");
        if std::env::var_os("HEARTH_BLESS").is_some() {
            fs::write(&golden, &c).expect("a writable golden file");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            c == expected,
            "{name}: the emitted C changed; look at it, then bless it"
        );
        seen += 1;
    }
    assert!(seen >= 3, "the golden programs are gone");
}

#[test]
fn equal_texts_give_equal_c() {
    let text = include_str!("emit/loops.isf");
    assert_eq!(c_of(text), c_of(text));
}

#[test]
fn proved_checks_leave_no_trace() {
    let c = c_of(include_str!("emit/loops.isf"));
    let bump = function(&c, "Work_bump");
    assert!(!bump.contains("hearth_raise_index"), "{bump}");
}

#[test]
fn unproved_checks_are_hoisted() {
    let c = c_of(include_str!("emit/loops.isf"));
    let sum = function(&c, "Work_sum");
    let fast = &sum[sum.find("if (").expect("a guard")..sum.find("} else {").expect("two loops")];
    assert!(!fast.contains("hearth_raise_index"), "{sum}");
    assert!(
        sum.contains("hearth_raise_index"),
        "the slow loop still checks: {sum}"
    );
}

#[test]
fn last_uses_move_and_borrowed_rows_are_not_counted() {
    let c = c_of(include_str!("emit/references.isf"));
    let maker = function(&c, "Maker_behaviour");
    assert!(
        maker.contains(".pointer = fresh }, true,"),
        "sent for good: {maker}"
    );
    assert!(!maker.contains("hearth_retain"), "{maker}");
    assert!(
        !maker.contains("hearth_alloc"),
        "the point is a C local: {maker}"
    );
}

#[test]
fn only_what_lives_across_a_wait_is_in_the_frame() {
    let text = "type IO is interface(in integer a)\n\
                component C presents IO {\n\
                constructor() { }\n\
                behaviour { x = 1 ; y = 2 ; printInt(y) ; receive v from a ; printInt(x + v) ; stop }\n\
                }\nc = new C()\n";
    let frame = &sizes(text, "program.isf", &CompileOptions::default())[0];
    let behaviour = &frame.parts.last().expect("the frame").parts[0];
    let names: Vec<&str> = behaviour.parts.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["state", "x"]);
}

#[test]
fn hostile_names_stay_apart() {
    let text = "proc main(integer int, double, t_1, frame, base, made) : integer {\n\
                return int + double + t_1 + frame + base + made\n}\n\
                component main presents INone2 { self = 1 ; base = 2 ; members = 3\n\
                constructor(integer frame) { self := frame }\n\
                behaviour { step = self + base + members ; printInt(step) ; stop } }\n\
                printInt(main(1, 2, 3, 4, 5, 6))\n";
    let text = format!(
        "type INone2 is interface()\n{}",
        text.replace("component main", "component union")
    );
    assert!(c_of(&format!("{text}u = new union(4)\n")).contains("union_component"));
}
