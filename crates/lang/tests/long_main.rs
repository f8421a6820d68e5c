//! Long main sequences: the time to compile them, and the C for them, must grow with their length
//! and not faster; no C function may be long, as C compilers take time that grows with its square.

use hearth_lang::compile::{CompileOptions, compile};
use std::fmt::Write;
use std::time::Instant;

/// The lines of a C function that no C compiler minds.
const FUNCTION_LINES_MAX: usize = 2000;

fn program(lines: usize) -> String {
    let mut text = String::from(
        "type IOut is interface(out integer o)
type IIn is interface(in integer i)
type Pair is struct(integer a, b)
component A presents IOut { constructor() { } ; behaviour { stop } }
component B presents IIn { k = 0 ; constructor(integer n) { k := n } ; behaviour { stop } }
",
    );
    for k in 0..lines / 8 {
        let _infallible = write!(
            text,
            "a{k} = new A()
b{k} = new B({k})
connect a{k}.o to b{k}.i
p{k} = new Pair({k}, 2)
n{k} = new integer[3] of {k}
same{k} = p{k}
n{k}[1] := same{k}.a
if n{k}[2] > p{k}.b then {{ inner = new Pair(n{k}[0], 1) ; p{k} := inner }}
"
        );
    }
    text
}

fn c_of(text: &str) -> String {
    let compiled = compile(text, "program.isf", &CompileOptions::default());
    compiled
        .c
        .unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

#[test]
fn no_c_function_is_long() {
    let (small, large) = (c_of(&program(4000)), c_of(&program(16_000)));
    for c in [&small, &large] {
        let longest = c.split("\n}\n").map(|part| {
            let body = part.split_once("\n{\n").map_or("", |(_, body)| body);
            body.lines().count()
        });
        assert!(longest.max().unwrap_or(0) < FUNCTION_LINES_MAX);
    }
    assert!(large.len() < 5 * small.len());
}

/// Components that are made and released alike cost no line each.
#[test]
fn components_without_arguments_are_made_in_loops() {
    let text = "type INone is interface()
component A presents INone { constructor() { } ; behaviour { stop } }
";
    let lines: String = (0..2000).map(|k| format!("a{k} = new A()\n")).collect();
    let c = c_of(&format!("{text}{lines}"));
    for call in ["hearth_component_new(", "hearth_component_release("] {
        assert!(c.matches(call).count() < 300, "{call}");
    }
}

#[test]
fn time_grows_with_the_length() {
    let time = |lines: usize| {
        let text = program(lines);
        let begin = Instant::now();
        c_of(&text);
        begin.elapsed().as_secs_f64()
    };
    // Other work on the machine may hold up any one try.
    let tries: Vec<(f64, f64)> = (0..3).map(|_| (time(2000), time(8000))).collect();
    let fewest =
        |each: fn(&(f64, f64)) -> f64| tries.iter().map(each).fold(f64::INFINITY, f64::min);
    let (small, large) = (fewest(|t| t.0), fewest(|t| t.1));
    assert!(large < 8.0 * small, "{large} s after {small} s");
}
