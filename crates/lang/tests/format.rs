//! The formatter: one layout, every comment, the same meaning.

use std::path::{Path, PathBuf};

use hearth_lang::format::format;

fn formatted(text: &str) -> String {
    format(text).unwrap_or_else(|diagnostics| panic!("{text}\n{diagnostics:#?}"))
}

/// Formats, and holds that formatting again changes nothing and no comment is lost. (That the
/// tree stays the same `format` itself holds.)
fn stable(text: &str) -> String {
    let once = formatted(text);
    assert_eq!(formatted(&once), once, "not stable:\n{text}");
    assert_eq!(comments(&once), comments(text), "comments of\n{text}");
    for line in once.lines() {
        assert_eq!(
            line.trim_end(),
            line,
            "blanks at the end of a line:\n{once}"
        );
    }
    once
}

/// The comments of a text in order, without the layout inside them.
fn comments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        rest = &rest[at..];
        let length = if rest.starts_with('"') {
            string_length(rest)
        } else if rest.starts_with("//") {
            rest.find(['\n', '\r', '\x0c']).unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else {
            1
        };
        if rest.starts_with("//") || rest.starts_with("/*") {
            found.push(rest[..length].trim_end().replace("\r\n", "\n"));
        }
        rest = &rest[length..];
    }
    found
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Pairs of a text and its layout.
fn layouts(pairs: &[(&str, &str)]) {
    for (text, expected) in pairs {
        assert_eq!(stable(text), *expected, "of\n{text}");
    }
}

#[test]
fn statements() {
    layouts(&[
        ("", ""),
        ("\n\n  a=1;b=2 ;\n\n\n c :=3", "a = 1\nb = 2\n\nc := 3\n"),
        ("x=-a+b*( c-1 )", "x = -a + b * (c - 1)\n"),
        ("x = - -a - -b ; y = !~a", "x = - -a - -b\ny = !~a\n"),
        (
            "f (1,2) ; a [ 0 ] := b . c ( ) . length",
            "f(1, 2)\na[0] := b.c().length\n",
        ),
        (
            "send 1+2 on c;receive x from c",
            "send 1 + 2 on c\nreceive x from c\n",
        ),
        (
            "connect a to b ; disconnect \"a\" on $1",
            "connect a to b\ndisconnect \"a\" on $1\n",
        ),
        ("for i=0..9:-2 do f(i)", "for i = 0 .. 9 : -2 do f(i)\n"),
        ("for i = 0 .. 9\ndo\nf(i)", "for i = 0 .. 9 do\n    f(i)\n"),
        (
            "c=new in integer [];a=new integer[2][3]of 0",
            "c = new in integer[]\na = new integer[2][3] of 0\n",
        ),
        ("stop ; x", "stop\nx\n"),
        (
            "acknowledge x from c after{stop}",
            "acknowledge x from c after { stop }\n",
        ),
        ("x = 1\n}\n", "x = 1\n}\n"),
    ]);
}

#[test]
fn blocks() {
    layouts(&[
        ("{}", "{ }\n"),
        ("{\n\n}", "{ }\n"),
        ("{ a }", "{ a }\n"),
        ("{ a ; b }", "{\n    a\n    b\n}\n"),
        ("{\n\n a\n\n\n b\n\n}", "{\n    a\n\n    b\n}\n"),
        ("if a then{b}else{c}", "if a then { b } else { c }\n"),
        (
            "if a then\n{\nb\n}\nelse\n{\nc\n}",
            "if a then {\n    b\n} else {\n    c\n}\n",
        ),
        ("if a\nthen b\nelse c", "if a then b\nelse c\n"),
        (
            "if a then\nb\nelse if c then\nd",
            "if a then\n    b\nelse if c then\n    d\n",
        ),
        (
            "try{a}except E{b}\nexcept{c}",
            "try { a } except E { b } except { c }\n",
        ),
        ("x = if a then 1 else 2", "x = if a then 1 else 2\n"),
    ]);
}

#[test]
fn arms() {
    layouts(&[
        (
            "case n of 1:a 2,3:{b} default:c",
            "case n of 1: a 2, 3: { b } default: c\n",
        ),
        (
            "case n of\n1:a ; 2:\nb\ndefault:{ }",
            "case n of\n    1: a\n    2:\n        b\n    default: { }\n",
        ),
        (
            "project e as x onto integer:f(x);real:g(x) default:{}",
            "project e as x onto\n    integer: f(x)\n    real: g(x)\n    default: { }\n",
        ),
        (
            "select{receive a from b when c:d;acknowledge e from f after:g default:h}",
            "select {\n    receive a from b when c: d\n    acknowledge e from f after: g\n    default: h\n}\n",
        ),
        (
            "select { receive a from b : c }",
            "select { receive a from b: c }\n",
        ),
        // Inside parentheses the semicolon keeps the arms apart.
        (
            "x = (case n of 1: f; (2): g default: h)",
            "x = (case n of\n    1: f;\n    (2): g\n    default: h)\n",
        ),
    ]);
}

#[test]
fn semicolons_that_matter() {
    layouts(&[
        (
            "proc f() : integer { return ; g() }",
            "proc f() : integer {\n    return;\n    g()\n}\n",
        ),
        ("try a except b ; c := 1", "try a except b;\nc := 1\n"),
        ("try a except b ;", "try a except b\n"),
    ]);
}

#[test]
fn declarations() {
    layouts(&[
        (
            "type T is struct(integer x,y;string s)",
            "type T is struct(integer x, y; string s)\n",
        ),
        (
            "type T is struct(integer x,y\nstring s;\nbool b;)",
            "type T is struct(\n    integer x, y\n    string s;\n    bool b\n)\n",
        ),
        (
            "type T is interface(in integer a,b;out bool c;)",
            "type T is interface(in integer a, b; out bool c)\n",
        ),
        ("type T is enum(a,b)", "type T is enum(a, b)\n"),
        (
            "type T is proc(integer;bool[]):any",
            "type T is proc(integer; bool[]) : any\n",
        ),
        (
            "proc f(integer a;real b):bool{return a<b}",
            "proc f(integer a; real b) : bool { return a < b }\n",
        ),
        (
            "component C presents I,J { n=0;constructor(){}\n\nconstructor(integer a){n:=a} ; behaviour{stop} }",
            "component C presents I, J {\n    n = 0\n    constructor() { }\n\n    constructor(integer a) { n := a }\n    behaviour { stop }\n}\n",
        ),
    ]);
}

#[test]
fn long_lines() {
    let name = "quiteALongNameForSomeVariable";
    layouts(&[
        (
            &format!("x = {name}1 + {name}2 * {name}3 - {name}4"),
            &format!("x = {name}1 + {name}2 *\n    {name}3 - {name}4\n"),
        ),
        (
            &format!("procedure({name}1, {name}2, {name}3, {name}4)"),
            &format!("procedure(\n    {name}1,\n    {name}2,\n    {name}3,\n    {name}4\n)\n"),
        ),
        (
            &format!("proc f(integer {name}1; real {name}2; bool {name}3) {{ }}"),
            &format!(
                "proc f(\n    integer {name}1;\n    real {name}2;\n    bool {name}3\n) {{ }}\n"
            ),
        ),
        (
            &format!("if {name}1 == {name}2 then {{ {name}3 := {name}4 }}"),
            &format!("if {name}1 == {name}2 then {{\n    {name}3 := {name}4\n}}\n"),
        ),
    ]);
}

#[test]
fn comments_stay_where_they_are() {
    layouts(&[
        (
            "// first\nx = 1 // second\n// third",
            "// first\nx = 1 // second\n// third\n",
        ),
        ("x = 1;// c\ny = 2", "x = 1 // c\ny = 2\n"),
        ("x = 1 /* c */ ; y = 2", "x = 1 /* c */\ny = 2\n"),
        (
            "f(/* a */1,/* b */ 2/* c */)",
            "f(/* a */1,/* b */ 2/* c */)\n",
        ),
        ("{ // c\n\na\n// d\n\n}", "{ // c\n    a\n    // d\n}\n"),
        ("{\n// c\n}", "{\n    // c\n}\n"),
        ("{ /* c */ }", "{ /* c */ }\n"),
        (
            "f(a, // first\nb) // second",
            "f(\n    a, // first\n    b\n) // second\n",
        ),
        (
            "x = a + // first\n b // second",
            "x = a + // first\n    b // second\n",
        ),
        ("a\n\n// c\n\n\n// d\nb", "a\n\n// c\n\n// d\nb\n"),
        (
            "if a then { b } // c\nelse { d }",
            "if a then { b } // c\nelse { d }\n",
        ),
        (
            "case n of // c\n// d\n1: a // e\ndefault: b // f",
            "case n of // c\n    // d\n    1: a // e\n    default: b // f\n",
        ),
        (
            "type T is struct( // c\ninteger a // d\n// e\nbool b)",
            "type T is struct( // c\n    integer a // d\n    // e\n    bool b\n)\n",
        ),
        (
            "/* several\r\n   lines */ x = 1\r\n",
            "/* several\n   lines */ x = 1\n",
        ),
        ("x = 1 // blanks   \n", "x = 1 // blanks\n"),
        ("{ a } // c\nb", "{ a } // c\nb\n"),
    ]);
}

#[test]
fn faulty_programs_are_refused() {
    let Err(diagnostics) = format("x = (1\ny = 2 3\n") else {
        panic!("formatted");
    };
    assert_eq!(diagnostics.len(), 2);
}

/// Every program of the repository that is without syntax errors.
#[test]
fn programs_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    collect(&root.join("tests"), &mut texts);
    collect(&root.join("examples"), &mut texts);
    let mut count = 0;
    for path in texts {
        let text = std::fs::read_to_string(&path).expect("a readable program");
        if format(&text).is_ok() {
            stable(&text);
            // Nothing but tokens and comments matters.
            let mut squeezed: Vec<&str> = text.lines().map(str::trim).collect();
            squeezed.retain(|line| !line.is_empty());
            stable(&squeezed.join("\n"));
            stable(&text.replace('\r', "").replace('\n', "\r\n"));
            count += 1;
        }
    }
    assert!(count > 100, "only {count} programs found");
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "isf") {
            found.push(path);
        }
    }
}
