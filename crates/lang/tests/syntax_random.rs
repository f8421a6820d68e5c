//! Texts nobody wrote: the parser neither panics nor hangs, and what it says stays in the text.

mod random;

use hearth_lang::source::{SourceId, Span};
use hearth_lang::symbol::Interner;
use hearth_lang::syntax::{DEPTH_LIMIT, Dialect, Parsed, parse, print};
use hearth_testing::random::Random;
use random::{PROGRAM, WORDS};

fn parsed(text: &str, dialect: Dialect) -> Parsed {
    let mut names = Interner::default();
    let parsed = parse(text, SourceId::USER, &mut names, dialect);
    for diagnostic in &parsed.diagnostics {
        for label in std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary) {
            assert!(inside(label.span, text), "{diagnostic:?} in {text:?}");
        }
    }
    // What is refused says why.
    let refused = print::unit(&parsed.unit, &names).contains("<error>");
    assert!(
        !refused || parsed.has_errors(),
        "a silent error in {text:?}"
    );
    parsed
}

fn inside(span: Span, text: &str) -> bool {
    text.get(span.start as usize..span.end as usize).is_some()
}

fn check(text: &str) {
    parsed(text, Dialect::Program);
    parsed(text, Dialect::Prelude);
}

#[test]
fn any_bytes() {
    let mut random = Random::new(1);
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..random.below(200))
            .map(|_| random.bits() as u8)
            .collect();
        check(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn any_tokens() {
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..random.below(60) {
            text.push_str(random.pick::<&str>(WORDS));
            if random.below(8) != 0 {
                text.push(' ');
            }
        }
        check(&text);
    }
}

#[test]
fn damaged_programs() {
    let mut random = Random::new(3);
    assert!(parsed(PROGRAM, Dialect::Program).diagnostics.is_empty());
    for _ in 0..10_000 {
        let mut text = PROGRAM.to_owned();
        for _ in 0..=random.below(4) {
            let from = random.below(text.len());
            let to = (from + random.below(12)).min(text.len());
            let with = match random.below(3) {
                0 => "",
                _ => *random.pick(WORDS),
            };
            if text.is_char_boundary(from) && text.is_char_boundary(to) {
                text.replace_range(from..to, with);
            }
        }
        check(&text);
    }
}

/// Every prefix of a program, cut anywhere.
#[test]
fn cut_programs() {
    for end in 0..PROGRAM.len() {
        check(&PROGRAM[..end]);
    }
}

/// Runs on a stack of 2 MiB, which is what threads have by default.
fn on_small_stack(texts: Vec<String>) {
    let thread = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            for text in texts {
                let parsed = parsed(&text, Dialect::Program);
                let shown = &text[..text.len().min(60)];
                let codes: Vec<_> = parsed.diagnostics.iter().map(|d| d.code.0).collect();
                assert_eq!(codes, ["E0230"], "{shown} …");
            }
        });
    thread.unwrap().join().unwrap();
}

#[test]
fn deep_nesting_is_refused_once() {
    const DEEP: usize = 20_000;
    let nested = |open: &str, inner: &str, close: &str| {
        format!("x = {}{inner}{}\n", open.repeat(DEEP), close.repeat(DEEP))
    };
    on_small_stack(vec![
        nested("(", "1", ")"),
        nested("{", "1", "}"),
        nested("{ ", "", ""),
        nested("(", "", ""),
        nested("- ", "1", ""),
        nested("1 + (", "1", ")"),
        nested("a or b and c | d ^ e & f == g + h * (", "1", ")"),
        nested("f(", "1", ")"),
        nested("a[", "1", "]"),
        nested("a", "", "[0]"),
        nested("a", "", ".b"),
        nested("any(", "1", ")"),
        nested("new integer[1] of ", "1", ""),
        nested("if a then ", "1", ""),
        nested("if ", "1", " then 1"),
        nested("y = ", "1", ""),
        nested("case 1 of 1: ", "1", " default: 1"),
        nested("project 1 as a onto integer: ", "1", " default: 1"),
        nested("{ try ", "1", " except 1 }"),
        nested("select { default: ", "1", "}"),
        nested("for i = 0 .. 1 do ", "1", ""),
        format!("type T is {}integer\n", "in ".repeat(DEEP)),
        format!("type T is integer{}\n", "[]".repeat(DEEP)),
        format!("type T is {}\n", "proc(".repeat(DEEP)),
        format!("type T is {}\n", "struct(".repeat(DEEP)),
        nested("new C(", "1", ")"),
    ]);
}

/// Declarations inside one another, each further to the right: mistakes, all of them.
#[test]
fn deep_declarations_are_refused() {
    for head in ["proc f() {", "component C presents I {"] {
        let text = (0..2000).fold(String::from("{\n"), |text, depth| {
            text + &" ".repeat(depth + 1) + head + "\n"
        });
        let thread = std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || parsed(&text, Dialect::Program).diagnostics.len());
        let count = thread.unwrap().join().unwrap();
        assert!((2..=4001).contains(&count), "{count}");
    }
}

#[test]
fn nesting_up_to_the_limit_is_fine() {
    let depth = DEPTH_LIMIT as usize - 3;
    for (open, close) in [("(", ")"), ("- ", ""), ("{", "}"), ("", ".b")] {
        let text = format!("x = {}a{}\n", open.repeat(depth), close.repeat(depth));
        assert!(!parsed(&text, Dialect::Program).has_errors(), "{open}");
    }
}

/// The cost of mistakes grows with the text, not with its square.
#[test]
fn many_mistakes_are_cheap() {
    for mistake in [
        "case n of 1: { }\n",
        "x = (1 +\n",
        "f(1\n",
        "{ }}\n",
        "select { receive }\n",
        "while a { }\n",
        "case a of 1: b := 2 c := 3\n",
        "project a as b onto integer c\n",
        "proc f(integer {\n",
    ] {
        parsed(&mistake.repeat(20_000), Dialect::Program);
    }
}
