//! The checker's rules, one by one: a program, and which codes it must bring at which lines.

mod support;

use hearth_lang::compile::{self, CompileOptions, Prelude};
use hearth_lang::tree::ProcCode;
use support::{check, found, prose};

/// Checks tables of programs and expectations, `"line code"` separated by commas.
fn table(rows: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (text, expected) in rows {
        let expected: Vec<&str> = expected.split(", ").filter(|e| !e.is_empty()).collect();
        let found = found(text);
        if found != expected {
            let said: Vec<_> = check(text).diagnostics.iter().map(prose).collect();
            wrong.push_str(&format!(
                "{text}\n  expected {expected:?}\n  found    {found:?}\n  {}\n\n",
                said.join("\n  ")
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A program with one component, whose members, constructor and behaviour are given.
fn component(members: &str, constructor: &str, behaviour: &str) -> String {
    format!(
        "type IPorts is interface(in integer i ; out integer o ; in real r)\n\
         component C presents IPorts {{\n{members}\nconstructor() {{ {constructor} }}\n\
         behaviour {{\n{behaviour}\n}}\n}}\nc = new C()\n"
    )
}

#[test]
fn names() {
    table(&[
        ("x = y", "1 E0301"),
        ("x := 1", "1 E0301"),
        ("x := 1\nprintInt(x)\nx = \"a\"", "1 E0306"),
        ("x = 1\nx = 2", "2 E0302"),
        ("x = 1\nif true then { x = 2 ; printInt(x) }", ""),
        ("if true then { x = 2 }\nprintInt(x)", "2 E0301"),
        ("printInt(x)\nx = 2", "1 E0306"),
        ("proc f(integer a, a) { }\nf(1, 2)", "1 E0302"),
        ("proc f(integer a) { a = 3 }\nf(1)", "1 E0302"),
        ("type P is struct(integer x, x)\n", "1 E0302"),
        ("type E is enum(a, b)\ntype F is enum(b, c)", "2 E0302"),
        ("type T is integer\nx = T", "2 E0303"),
        ("x = 1\ny = new x(3)", "2 E0505"),
        ("proc f() { g() }\nproc g() { }\nf()", "1 E0306"),
        ("proc f() { f() }\nf()", "1 E0305"),
        ("proc f() { printInt(n) }\nn = 1\nf()", "1 E0307"),
        ("type T is Thing\n", "1 E0301"),
        ("printInt = 3\nprintReal(1.5)\nprintInt(3)", "3 E0504"),
        (
            "proc printInt(integer n) { printString(\"x\") }\nprintInt(3)",
            "",
        ),
        ("x = { y = 2 ; y }\nprintInt(x)", ""),
        ("x = 1\nif true then { x = x + 1 ; printInt(x) }", ""),
        ("for i = 0 .. 3 do { i := 9 }", ""),
    ]);
}

#[test]
fn near_names_are_suggested() {
    let help = |text: &str| check(text).diagnostics[0].help.clone().unwrap_or_default();
    assert!(help("prinInt(3)").contains("printInt"));
    assert!(help("counter = 1\nprintInt(countre)").contains("counter"));
    assert!(help("proc f(integr n) { }\nf(1)").contains("integer"));
    assert!(
        help("type P is struct(integer width)\np = new P(1)\nprintInt(p.widht)").contains("width")
    );
    assert!(help("type P is struct(integer a)\np = new Q(1)").contains("component"));
    assert!(help("x = null").contains("null"));
    assert!(help("proc f(int n) { }\nf(1)").contains("integer"));
    assert!(
        help("try { printInt(1) } except DivisionByZero { }").contains("DivisionByZeroException")
    );
}

#[test]
fn assignability() {
    table(&[
        ("r = 1.5\nr := 3", ""),
        ("r = 1.5\nr := $3", ""),
        ("i = 1\ni := #3", ""),
        ("i = 1\ni := $3", "2 E0403"),
        ("u = $1\nu := 3", "2 E0403"),
        ("i = 1\ni := 1.5", "2 E0403"),
        ("b = #1\nb := 1", "2 E0403"),
        ("s = \"a\"\ns := 1", "2 E0403"),
        ("a = new integer[2] of 0\na := new real[2] of 0", "2 E0403"),
        ("a = new real[2] of 0", ""),
        (
            "a = new integer[2][2] of 0\na[0] := new integer[2] of 1\na[1, 1] := 3",
            "",
        ),
        ("a = new integer[2][2] of 0\na[0] := 1", "2 E0403"),
        (
            "type P is struct(integer x)\ntype Q is struct(integer y)\np = new P(1)\np := new Q(1)",
            "4 E0403",
        ),
        (
            "type P is struct(integer x)\ntype Q is struct(integer x)\np = new P(1)\np := new Q(1)",
            "",
        ),
        ("type P is struct(integer x)\np = new P()", "2 E0501"),
        ("type P is struct(integer x)\np = new P(\"x\")", "2 E0502"),
        ("printInt(1, 2)", "1 E0501"),
        ("printInt(1.5)", "1 E0502"),
        ("proc f(integer a) { }\ng = f\ng(\"x\")", "3 E0502"),
    ]);
}

#[test]
fn components_fit_by_their_channels() {
    let text = |asked: &str| {
        format!(
            "type IBoth is interface(in integer i ; out integer o)\ntype IIn is interface({asked})\n\
             component C presents IBoth {{ constructor() {{ }} ; behaviour {{ stop }} }}\n\
             proc use(IIn x) {{ connect x.i to new out integer }}\nuse(new C())\n"
        )
    };
    assert_eq!(found(&text("in integer i")), [""; 0]);
    assert_eq!(found(&text("out integer o ; in integer i")), [""; 0]);
    assert_eq!(found(&text("in integer i ; in bool b")), ["5 E0502"]);
    let said = prose(&check(&text("in integer i ; in bool b")).diagnostics[0]);
    assert!(said.contains("`in bool b` is missing"), "{said}");
}

#[test]
fn operators() {
    table(&[
        ("x = 1 + 2.5\nx := 3.5", ""),
        ("x = #1 + $2\nx := 3", "2 E0403"),
        ("x = 5 % 2.0", "1 E0402"),
        ("x = 5 & true", "1 E0402"),
        ("x = true and 1", "1 E0402"),
        ("x = !3", "1 E0402"),
        ("x = -true", "1 E0402"),
        ("x = ~1.5", "1 E0402"),
        ("x = \"a\" + \"b\"", "1 E0402"),
        ("x = \"a\" < \"b\"", "1 E0402"),
        ("x = \"a\" == \"b\"\nx := true", ""),
        ("x = 1 == \"b\"", "1 E0402"),
        ("x = 1 == 1.0", ""),
        ("x = any(1) == any(1)", ""),
        ("x = any(1) == 1", "1 E0402"),
        ("x = (1 == \"a\") and true", "1 E0402"),
        ("x = ~#1\nx := #3", ""),
    ]);
}

#[test]
fn values_and_statements() {
    table(&[
        ("3", "1 E0404"),
        ("x = 1\nx == 2", "2 E0404"),
        ("if true then 3", "1 E0404"),
        ("if true then { printInt(1)\n3 }", "2 E0404"),
        ("{ y = 2\ny }", "2 E0404"),
        ("x = printInt(3)", "1 E0405"),
        ("x = if true then 1 else \"a\"", "1 E0406"),
        ("x = if true then 1 else 2.0", "1 E0406"),
        ("x = if true then 1 else printInt(1)", "1 E0406"),
        ("x = if true then 1", ""),
        ("x = if true then new integer[1] of 0", "1 E0407"),
        ("x = if true then any(1)", "1 E0407"),
        ("x = case 1 of 1: 2 default: 3.0", "1 E0406"),
        ("if 1 then printInt(1)", "1 E0401"),
        ("x = { try { 1 } except { \"a\" } }", "1 E0406"),
        ("for i = 0 .. 3 do i", "1 E0404"),
        ("x = stop", "1 E0809, 1 E0405"),
    ]);
}

#[test]
fn procedures() {
    table(&[
        ("proc f() : integer { }\nprintInt(f())", "1 E0804"),
        (
            "proc f() : integer { return \"a\" }\nprintInt(f())",
            "1 E0419",
        ),
        ("proc f() : integer { return }\nprintInt(f())", "1 E0805"),
        (
            "proc f() : integer { if true then { return 1 } }\nprintInt(f())",
            "",
        ),
        (
            "proc f() : any { if true then { return any(1) } }\nprintAny(f())",
            "1 E0407",
        ),
        (
            "proc f() : any { if true then { return any(1) } else { return any(2) } }\nprintAny(f())",
            "",
        ),
        (
            "proc f() : any { throw OperationFailedException ; return any(1) }\nprintAny(f())",
            "1 W0904",
        ),
        ("return", "1 E0803"),
        ("x = 3\nx(1)", "2 E0504"),
        ("b = any(printInt)", "1 E0416"),
        (
            "b = any(1)\nproject b as f onto proc() : integer : f() default: 1",
            "2 E0416, 2 E0404, 2 E0404",
        ),
    ]);
}

#[test]
fn forward_procedures() {
    let program = |members: &str| {
        format!(
            "type visit is proc(integer) : integer\n{}",
            component(members, "", "printInt(start()) ; stop")
        )
    };
    let start = "proc start() : integer { return visit(3) }";
    let visit = "proc visit(integer n) : integer { return if n == 0 then 0 else visit(n - 1) }";
    assert_eq!(found(&program(&format!("{start}\n{visit}"))), [""; 0]);
    assert_eq!(found(&program(&format!("{visit}\n{start}"))), [""; 0]);
    assert_eq!(found(&program(start)), ["4 E0507"]);
    let other = "proc visit(real x) : integer { return 1 }";
    assert_eq!(found(&program(&format!("{start}\n{other}"))), ["4 E0507"]);
}

#[test]
fn procedures_that_leave() {
    let program = |body: &str| {
        format!(
            "type IOut is interface(out proc() : integer o)\ncomponent C presents IOut {{\nn = 1\n\
             proc f() : integer {{ {body} }}\nproc g() : integer {{ return f() }}\n\
             constructor() {{ }}\nbehaviour {{\nh = f\nsend f on o\nsend g on o\nsend h on o\n}}\n}}\nc = new C()\n"
        )
    };
    assert_eq!(found(&program("return 1")), [""; 0]);
    assert_eq!(found(&program("return n")), ["9 E0506", "10 E0506"]);
}

#[test]
fn components() {
    table(&[
        (&component("", "", "send 1 on o"), ""),
        (&component("", "", "send 1 on i"), "6 E0409"),
        (
            &component("", "", "receive x from o ; printInt(x)"),
            "6 E0409",
        ),
        (&component("", "", "send 1.5 on o"), "6 E0408"),
        (
            &component("", "", "receive x from i\nreceive x from i"),
            "7 E0302",
        ),
        (&component("i = 3", "", "stop"), "3 E0302"),
        (&component("a = b\nb = 1", "", "stop"), "3 E0306"),
        (&component("a = new C()", "", "stop"), "3 E0305"),
        (&component("", "send 1 on o", "stop"), "4 W0901"),
        (&component("", "printInt(1)", "stop"), "4 W0902"),
        (&component("", "stop", "stop"), "4 W0903"),
        (&component("", "", "stop\nprintInt(1)"), "7 W0904"),
        (&component("", "", "return"), "6 E0803"),
        (
            &component("", "", "throw OperationFailedException"),
            "6 E0806",
        ),
        (
            &component("", "", "try throw OperationFailedException except { }"),
            "",
        ),
        (
            "type P is struct(integer a)\ncomponent C presents P { constructor() { } ; behaviour { stop } }\nc = new C()",
            "2 E0601",
        ),
        (
            "component C presents IWhat { constructor() { } ; behaviour { send 1 on what } }\nc = new C()",
            "1 E0301",
        ),
        (
            "type I is interface()\ncomponent C presents I { constructor(integer a) { } ; constructor(real a) { } ; behaviour { stop } }\nc = new C(#1)\nd = new C($1)\ne = new C(\"a\")",
            "5 E0503",
        ),
        ("x = 3\nstop x", "2 E0414"),
        ("stop", "1 E0809"),
    ]);
}

/// The compiler reaches a service while it checks a heading; the heading's check must continue
/// undisturbed.
#[test]
fn a_heading_may_name_a_service() {
    table(&[(
        "component C presents storage { constructor() { } ; behaviour { stop } }\n\
         c = new C()\nsend true on storage.erase",
        "1 E0601, 3 E0409",
    )]);
}

#[test]
fn channels() {
    table(&[
        (
            "a = new out integer\nb = new in integer\nconnect a to b\nconnect b to a\ndisconnect a",
            "",
        ),
        ("a = new out integer\nconnect a to a", "2 E0411"),
        (
            "a = new out integer\nb = new in real\nconnect a to b",
            "3 E0412",
        ),
        ("a = new out integer\nconnect a to 3", "2 E0410"),
        (
            "a = new out integer\nconnect a to \"x\" on $1\nconnect \"x\" on $1 to \"y\" on new byte[2] of #0\ndisconnect \"x\" on $1\npublish a as \"x\"",
            "",
        ),
        ("a = new out integer\nconnect a to \"x\" on 1", "2 E0413"),
        ("a = new out integer\nconnect a to 3 on $1", "2 E0413"),
        ("a = new out integer\npublish a as 3", "2 E0413"),
        ("a = new out integer\nsend \"a\" on a", "2 E0408"),
        ("a = new out real\nsend 1 on a", ""),
        ("a = 3\nsend 1 on a", "2 E0410"),
        (
            "a = new in integer\nselect { receive x from a when x > 1: printInt(x) }",
            "2 E0308",
        ),
        (
            "a = new in integer\nselect { receive x from a when 1: printInt(x) }",
            "2 E0401",
        ),
        (
            "a = new in integer\nacknowledge x from a after printInt(x)\nprintInt(x)",
            "",
        ),
        (
            "a = new in integer\nacknowledge x from a after x",
            "2 E0404",
        ),
    ]);
}

#[test]
fn members_and_elements() {
    table(&[
        (
            "type P is struct(integer x)\np = new P(1)\np.y := 2",
            "3 E0701",
        ),
        (
            &component("", "", "stop").replace("c = new C()", "c = new C()\nsend 1 on c.q"),
            "10 E0702",
        ),
        ("x = 3\nprintInt(x.y)", "2 E0703"),
        ("x = 3\nprintInt(x[0])", "2 E0704"),
        ("x = 3\nprintInt(x.length)", "2 E0705"),
        ("a = new integer[2] of 0\nprintInt(a[\"x\"])", "2 E0421"),
        (
            "a = new integer[2] of 0\nprintInt(a[#1] + a[$1] + a.length)",
            "",
        ),
        ("a = new integer[2] of 0\na.length := 3", "2 E0808"),
    ]);
}

#[test]
fn structure() {
    table(&[
        (
            "type P is struct(integer x)\ntype Q is struct(P p)",
            "2 E0801",
        ),
        ("type P is struct(integer x)\ntype Q is struct(P[] p)", ""),
        ("a = new integer[0] of 1", "1 E0802"),
        ("a = new integer[1][0] of 1", "1 E0802"),
        ("proc f() { throw Nothing }\nf()", "1 E0807"),
        ("try { printInt(1) } except Off { }", "1 E0807"),
        ("proc f() { }\nf := f", "2 E0808"),
        ("sensors2 = 1\ntype T is integer\nT := 3", "3 E0808"),
        ("type E is enum(a, b)\na := b", "2 E0808"),
        ("case 1 of \"a\": { } default: { }", "1 E0418"),
        ("case #1 of 300: { } default: { }", ""),
    ]);
}

#[test]
fn mistakes_do_not_cascade() {
    table(&[
        (
            "x = nothing\nx := 3\nprintString(x)\ny = x + 1\ny := \"a\"\nprintInt(x.a[3](4))",
            "1 E0301",
        ),
        (
            "proc f(Nothing a) : Other { return a.b }\nx = f(1)\nprintInt(x)",
            "1 E0301, 1 E0301",
        ),
        ("x = 1 + \"a\"\ny = x * 2\nif x then printInt(y)", "1 E0402"),
        (
            "a = new Nothing(1, 2)\nconnect a.x to a.y\nsend a on a.z",
            "1 E0301",
        ),
        (
            "type T is struct(Nothing n)\nt = new T(1, 2)\nprintInt(t.n.m)",
            "1 E0301",
        ),
    ]);
}

#[test]
fn every_generation_of_the_prelude_is_sound() {
    for prelude in [Prelude::G3, Prelude::G2, Prelude::G1, Prelude::G0] {
        let checked = compile::check_prelude(prelude);
        let said: Vec<_> = checked.diagnostics.iter().map(prose).collect();
        assert!(said.is_empty(), "{}: {said:#?}", prelude.name());
    }
}

#[test]
fn older_preludes_are_tried_in_turn() {
    let old = "p = new RadioPacket(new byte[2] of #0, any(1))\nprintAny(p.payload)";
    assert_eq!(check(old).prelude, Prelude::G1);
    assert!(check(old).program.is_some());
    let new = "p = new RadioPacket($1, any(1))\nprintAny(p.payload)";
    assert_eq!(check(new).prelude, Prelude::G3);
    let fixed = CompileOptions {
        prelude: Prelude::G3,
        ..CompileOptions::default()
    };
    let refused = compile::check(old, &fixed);
    assert!(refused.program.is_none());
    assert_eq!(refused.prelude, Prelude::G3);
}

/// The reason why an older prelude that has a missing name was not taken.
#[test]
fn a_refused_prelude_has_a_reason() {
    let checked = check("o = new out any\nconnect o to standardOut\nx = y\n");
    assert_eq!(checked.prelude, Prelude::G3);
    let notes: Vec<&[String]> = checked.diagnostics.iter().map(|d| &d.notes[..]).collect();
    let reason = "The older environment `g1` has this name, but under it the program has other \
                  mistakes. The first is in line 3: `y` is not declared. `hearth check --prelude \
                  g1` shows them all.";
    assert_eq!(notes, [&[reason.to_owned()][..], &[]]);
}

/// No reference may be left without a value if control may return from `stop` and `throw`.
#[test]
fn departures_come_back_under_compat_original() {
    let compat = CompileOptions {
        compat_original: true,
        ..CompileOptions::default()
    };
    let program = |branch: &str| {
        component(
            "",
            "",
            &format!("a = if true then new integer[1] of 0 else {branch}\nprintInt(a[0])"),
        )
    };
    for branch in [
        "stop",
        "{ try throw OperationFailedException except { stop } }",
    ] {
        let text = program(branch);
        assert_eq!(found(&text), [""; 0]);
        let refused = compile::check(&text, &compat);
        assert_eq!(refused.diagnostics[0].code.0, "E0406", "{text}");
    }
    let after = component("", "", "stop\nprintInt(1)");
    assert_eq!(found(&after), ["7 W0904"]);
    assert!(compile::check(&after, &compat).diagnostics.is_empty());
}

#[test]
fn only_what_is_named_comes_from_the_prelude() {
    let checked = check("printInt(3)");
    let program = checked.program.expect("no mistakes");
    assert_eq!(program.procs.len(), 1);
    assert!(program.components.is_empty());
    let proc = &program.procs[0];
    assert!(proc.used);
    let ProcCode::Native { symbol, blocks, .. } = &proc.code else {
        panic!("{:?}", proc.code);
    };
    assert_eq!(program.names.name(*symbol), "hearth_print_int");
    assert!(!blocks);
}

/// The parser bounds how deep a tree may be; the checker must fit that into a small stack.
#[test]
fn the_deepest_trees_fit_a_small_stack() {
    let depth = hearth_lang::syntax::DEPTH_LIMIT as usize - 8;
    let nested = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let programs = [
        nested("if true then ", "printInt(1)", "", depth),
        nested("{ ", "printInt(1)", " }", depth / 2),
        format!("x = {}", nested("(1 + ", "1", ")", depth / 2)),
        format!("x = {}", nested("-", "1", "", depth)),
        format!("x = 1{}", " + 1".repeat(depth)),
        format!("x = {}", nested("any(", "1", ")", depth / 2)),
        nested("for i = 0 .. 1 do ", "{ }", "", depth),
        nested("{ try ", "{ }", " except { } }", depth / 3),
    ];
    let check_all = move || {
        for text in &programs {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    thread.spawn(check_all).unwrap().join().unwrap();
}
