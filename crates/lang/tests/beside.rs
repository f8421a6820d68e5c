//! The word `beside` in the text: it may stand where the analysis finds that it may, is refused
//! elsewhere with the analysis's reason, and changes nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hearth_lang::compile::{self, CompileOptions};
use hearth_lang::diagnostic::Diagnostic;
use hearth_lang::format::format;

const WORD: &str = "beside ";

fn programs(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/futures")
        .join(folder);
    let files = fs::read_dir(folder).expect("the programs are there");
    let mut programs: Vec<(PathBuf, String)> = files
        .map(|file| {
            let path = file.expect("the folder can be read").path();
            let text = fs::read_to_string(&path).expect("the program can be read");
            (path, text)
        })
        .collect();
    programs.sort();
    programs
}

fn with_words(text: &str, at: &BTreeSet<u32>) -> String {
    let mut text = text.to_owned();
    for &at in at.iter().rev() {
        text.insert_str(at as usize, WORD);
    }
    text
}

fn mistakes(text: &str) -> Vec<Diagnostic> {
    let found = compile::check(text, &CompileOptions::default()).diagnostics;
    found.into_iter().filter(Diagnostic::is_error).collect()
}

/// The reason that a refusal's note names.
fn reason(diagnostic: &Diagnostic) -> Option<&str> {
    let mut notes = diagnostic.notes.iter();
    notes.find_map(|note| note.strip_prefix("The reason is `")?.strip_suffix("`."))
}

#[test]
fn it_may_stand_before_all_that_is_found() {
    let options = CompileOptions::default();
    for (path, text) in programs("found") {
        let name = path.display();
        let before = compile::futures(&text, &options).expect("it has no errors");
        let places: BTreeSet<u32> = before.found.iter().map(|found| found.span.start).collect();
        let marked = with_words(&text, &places);
        assert!(mistakes(&marked).is_empty(), "{name}\n{marked}");
        let after = compile::futures(&marked, &options).expect("it has no errors");
        assert_eq!(before.marks(true), after.marks(true), "{name}");
        assert_eq!(after.marks(false), after.marks(true), "{name}");
        assert!(before.marks(false).is_empty(), "{name}");
        let formatted = format(&marked).expect("it is a program");
        assert_eq!(formatted.matches(WORD).count(), places.len(), "{formatted}");
        let without = formatted.replace(WORD, "");
        assert_eq!(without, format(&text).expect("it is a program"), "{name}");
    }
}

/// A call that is refused because nothing worth the while stands beside it may have the word, if
/// anything does.
#[test]
fn it_is_refused_before_what_is_refused() {
    let options = CompileOptions::default();
    let mut reasons = BTreeSet::new();
    for (path, text) in programs("refused") {
        let name = path.display();
        let futures = compile::futures(&text, &options).expect("it has no errors");
        for refused in &futures.refused {
            let at = refused.span.start;
            let id = refused.reason.id();
            let marked = with_words(&text, &BTreeSet::from([at]));
            let mistakes = mistakes(&marked);
            if let [mistake] = mistakes.as_slice() {
                assert_eq!(mistake.code.0, "E0810", "{name}\n{marked}");
                assert_eq!(mistake.primary.span.start, at, "{name}\n{marked}");
                let reason = reason(mistake).expect("a reason");
                assert!(
                    reason == id || id == "nothing-beside",
                    "{name}: {reason}, not {id}"
                );
                reasons.insert(id);
                continue;
            }
            let may_be_taken = matches!(
                id,
                "used-at-once"
                    | "nothing-beside"
                    | "both-write"
                    | "writes-what-is-read"
                    | "reads-what-is-written"
                    | "shared-count"
                    | "exception"
                    | "endless"
            );
            let is_loop = text[at as usize..].starts_with("for ");
            assert!(
                mistakes.is_empty() && may_be_taken && !is_loop,
                "{name}: {id}\n{mistakes:#?}\n{marked}"
            );
        }
    }
    assert!(reasons.len() >= 15, "{reasons:?}");
}

/// Programs written before the word had a meaning keep theirs.
#[test]
fn it_is_a_name_elsewhere() {
    let text = "\
proc beside(integer n) : integer { return n + 1 }

a = beside(1)
b = {
    beside = 3
    beside := beside + a
    beside
}
printInt(b)
";
    assert!(mistakes(text).is_empty(), "{:?}", mistakes(text));
    let futures = compile::futures(text, &CompileOptions::default());
    assert!(futures.is_some_and(|futures| futures.found.is_empty()));
}

#[test]
fn it_belongs_to_the_call_behind_it() {
    let text = "\
proc make(integer n) : integer[] {
    a = new integer[100] of n
    for i = 0 .. 99 do { a[i] := a[i] * 31 % 1009 }
    return a
}

x = beside make(3).length + make(4).length
printInt(x)
";
    assert!(mistakes(text).is_empty(), "{:?}", mistakes(text));
}

#[test]
fn it_stands_before_calls_and_loops_only() {
    for text in ["x = beside y", "y = 3\nx = beside y + 1"] {
        let found = mistakes(text);
        assert!(
            found.iter().any(|found| found.code.0 == "E0810"),
            "{found:?}"
        );
    }
    // The end of a line ends the word's reach.
    let found = mistakes("beside = 3\nx = beside\nprintInt(x)");
    assert!(found.is_empty(), "{found:?}");
}

/// A procedure that is a value may be any; in what nobody reaches nothing is proved or needed.
#[test]
fn it_is_refused_before_values_and_taken_where_nobody_comes() {
    let heads = "proc work(integer n) : integer { return n * 31 }\n";
    let value = format!("{heads}w = work\nx = beside w(1)\ny = work(2)\nprintInt(x + y)\n");
    let found = mistakes(&value);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(reason(&found[0]), Some("calls-value"));
    let unused = format!(
        "{heads}proc other(integer n) : integer {{\n    x = beside work(n)\n    return x\n}}\nprintInt(work(1))\n"
    );
    assert!(mistakes(&unused).is_empty(), "{:?}", mistakes(&unused));
}

/// Little work is enough for the word.
#[test]
fn it_needs_no_work() {
    let text = "\
proc work(integer n) : integer { return n * 31 }
x = beside work(1)
y = work(2)
printInt(x + y)
";
    assert!(mistakes(text).is_empty(), "{:?}", mistakes(text));
}
