//! Chains of operators of any length: no stage may walk them by recursion, nor may the C nest.

use hearth_lang::compile::{CompileOptions, compile};
use hearth_lang::format::format;
use hearth_lang::source::SourceId;
use hearth_lang::symbol::Interner;
use hearth_lang::syntax::{Dialect, parse, print};

mod support;

const LONG: usize = 100_000;
/// The depth of parentheses that every C compiler reads: clang's default is 256.
const PARENTHESES_MAX: usize = 200;

/// Runs on a stack of 2 MiB, which is what threads have by default.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(run).unwrap().join().unwrap();
}

fn deepest(c: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in c.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn c_of(text: &str) -> String {
    let compiled = compile(text, "program.isf", &CompileOptions::default());
    let shown = &text[..text.len().min(100)];
    compiled
        .c
        .unwrap_or_else(|| panic!("{shown}: {:#?}", compiled.diagnostics))
}

fn programs(count: usize) -> Vec<String> {
    let head = "proc f(integer n) : integer { return n }\na = 1\nb = true\nr = 0.5\n";
    let some = count / 5;
    let chains = [
        format!("x = 1{}\n", " + 1".repeat(count)),
        format!("x = a{}\n", " - a".repeat(some)),
        format!("x = a{}\n", " * 3 + a".repeat(some / 2)),
        format!("x = a{}\n", " / a".repeat(some)),
        format!("x = f(1){}\n", " + f(a)".repeat(some / 2)),
        format!("x = r{}\n", " + r * 2.0".repeat(some / 2)),
        format!("x = #1{}\n", " + #1 + $1 + a".repeat(some / 3)),
        format!("x = b{}\n", " and b or b".repeat(some / 2)),
        format!("x = b{}\n", " and f(a) == 1".repeat(some / 2)),
        format!("if b{} then printInt(1)\n", " == b".repeat(some)),
        format!("for i = 0 .. a{} do printInt(i)\n", " + a".repeat(some)),
    ];
    chains
        .iter()
        .map(|chain| format!("{head}{chain}"))
        .collect()
}

#[test]
fn long_chains_are_read_printed_and_laid_out() {
    on_small_stack(|| {
        for text in programs(LONG) {
            let mut names = Interner::default();
            let parsed = parse(&text, SourceId::USER, &mut names, Dialect::Program);
            assert!(!parsed.has_errors(), "{:#?}", parsed.diagnostics);
            assert!(print::unit(&parsed.unit, &names).len() > text.len());
            assert!(format(&text).is_ok());
        }
    });
}

#[test]
fn long_chains_are_checked() {
    on_small_stack(|| {
        for text in programs(LONG) {
            assert!(support::check(&text).program.is_some());
        }
    });
}

#[test]
fn long_chains_become_flat_c() {
    on_small_stack(|| {
        for text in programs(LONG) {
            let depth = deepest(&c_of(&text));
            assert!(depth < PARENTHESES_MAX, "{depth}: {}", &text[..100]);
        }
    });
}

/// A mistake in a chain is one mistake.
#[test]
fn mistakes_in_long_chains_are_reported_once() {
    on_small_stack(|| {
        let text = format!("x = 1{} + true{}\n", " + 1".repeat(300), " + 1".repeat(300));
        assert_eq!(support::found(&text), ["1 E0402"]);
    });
}

/// Long chains inside one another: each costs as much depth as any other operand.
#[test]
fn long_chains_nest_like_anything_else() {
    on_small_stack(|| {
        let chain = |inner: &str| format!("({inner}{} + {inner})", " + 1".repeat(100));
        let text = (0..8).fold("1".to_owned(), |inner, _| chain(&inner));
        c_of(&format!("x = {text}\n"));
        let right = (0..40).fold("1".to_owned(), |inner, _| {
            format!("(1{} + {inner}{})", " + 1".repeat(100), " + 1".repeat(100))
        });
        c_of(&format!("x = {right}\n"));
        let left = (0..40).fold("1".to_owned(), |inner, _| {
            format!("({inner}{})", " + 1".repeat(200))
        });
        c_of(&format!("x = {left}\n"));
    });
}
