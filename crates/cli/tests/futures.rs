//! The words of `hearth futures` about the programs in `tests/futures/shown`, in each of its
//! forms, and the truth of what it finds in `tests/futures/found`.

mod support;

use std::path::Path;

use hearth_lang::compile::CompileOptions;
use hearth_lang::patch;
use serde_json::Value;
use support::{files, golden, hearth, outcome, root};

/// Text that the command prints with these options, called in the program's folder.
fn said(program: &Path, options: &[&str]) -> String {
    let mut command = hearth();
    command.arg("futures");
    command.arg(program.file_name().expect("a file has a name"));
    command.args(options);
    command.current_dir(program.parent().expect("a file is in a folder"));
    let found = outcome(&mut command, None).expect("the command starts");
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    found.stdout
}

#[test]
fn each_form_is_as_kept() {
    let programs = files("tests/futures/shown", &[".isf"]);
    assert!(!programs.is_empty());
    for program in programs {
        for (ending, options) in [
            ("txt", &[][..]),
            ("found.txt", &["--found"]),
            ("json", &["--json"]),
            ("sarif", &["--sarif"]),
        ] {
            let text = said(&program, options).replace(env!("CARGO_PKG_VERSION"), "VERSION");
            golden(&program.with_extension(ending), &text)
                .unwrap_or_else(|complaint| panic!("{complaint}"));
        }
    }
}

#[test]
fn a_program_with_mistakes_is_told_them() {
    let mut command = hearth();
    command.args(["futures", "-"]);
    let found = outcome(&mut command, Some(b"x = y\n")).expect("the command starts");
    assert_eq!(found.code(), Some(1));
    assert!(
        found.stdout.is_empty() && found.stderr.contains("E0301"),
        "{}",
        found.stderr
    );
}

/// The book shows the first of these programs with what the command says of it.
#[test]
fn the_page_shows_what_the_command_says() {
    let page = std::fs::read_to_string(root().join("docs/futures.md")).expect("the page");
    let shown = root().join("tests/futures/shown/two-calls.isf");
    let program = std::fs::read_to_string(&shown).expect("the program");
    assert!(page.contains(&format!("```insense\n{program}```\n")));
    let said = said(&shown, &[]);
    assert!(page.contains(&format!(
        "```text\n$ hearth futures two-calls.isf\n{said}```\n"
    )));
    let patch = self::said(&shown, &["--patch"]);
    assert!(page.contains(&format!(
        "```text\n$ hearth futures two-calls.isf --patch\n{patch}```\n"
    )));
}

/// A call that may run beside what follows may as well run after it, and independent rounds may run
/// from the last to the first. So each finding makes another program, which must print the same: of
/// each fourth program, or of all with `HEARTH_TEST_DEEP=1`.
#[test]
fn the_order_of_what_is_found_does_not_matter() {
    let mut tried = 0;
    let (step, least) = match std::env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => (1, 20),
        None => (4, 5),
    };
    for program in files("tests/futures/found", &[".isf"])
        .into_iter()
        .step_by(step)
    {
        let text = std::fs::read_to_string(&program).expect("the program can be read");
        let mut command = hearth();
        command.args(["futures", "--json"]).arg(&program);
        let said = outcome(&mut command, None).expect("the command starts");
        let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
        let printed = printed(&text);
        for found in document["found"].as_array().expect("a list") {
            let other = match found["callee"].is_null() {
                true => backwards(&text, found),
                false => later(&text, found),
            };
            if let Some(other) = other {
                tried += 1;
                let name = program.display();
                assert_eq!(printed, self::printed(&other), "{name}\n{found:#}\n{other}");
            }
        }
    }
    assert!(tried >= least, "only {tried} findings were tried");
}

fn printed(text: &str) -> String {
    let mut command = hearth();
    // Some programs wait for ever for what nobody sends; they print before.
    command.args(["run", "-"]).env("HEARTH_PASSES", "1");
    let found = outcome(&mut command, Some(text.as_bytes())).expect("the command starts");
    assert!(found.code().is_some(), "{}", found.stderr);
    found.stdout
}

fn offset(span: &Value, end: &str) -> usize {
    span[end]["offset"].as_u64().expect("an offset") as usize
}

/// The program with a call's line behind the statements beside it; none if the call is not a line.
fn later(text: &str, found: &Value) -> Option<String> {
    let call = offset(&found["span"], "start");
    let start = text[..call].rfind('\n').map_or(0, |end| end + 1);
    let line_end = start + text[start..].find('\n')? + 1;
    let beside_start = offset(&found["beside"], "start");
    let before_call = text[start..call].trim_start();
    let is_line = before_call.is_empty() || before_call.ends_with("= ");
    if !is_line || beside_start < line_end {
        return None;
    }
    let after = offset(&found["beside"], "end");
    let after = after + text[after..].find('\n')? + 1;
    Some(format!(
        "{}{}{}{}",
        &text[..start],
        &text[line_end..after],
        &text[start..line_end],
        &text[after..]
    ))
}

/// The program with a loop that counts by one the other way; none for other steps.
fn backwards(text: &str, found: &Value) -> Option<String> {
    let start = offset(&found["span"], "start");
    let (head, body) = text[start..].split_once(" do ")?;
    let (variable, bounds) = head.strip_prefix("for ")?.split_once(" = ")?;
    let (from, to) = bounds.split_once(" .. ")?;
    let (to, step) = match to.split_once(" : ") {
        None => (to, ""),
        Some((to, "-1")) => (to, " "),
        Some(_) => return None,
    };
    let step = if step.is_empty() { " : -1" } else { "" };
    let before = &text[..start];
    Some(format!(
        "{before}for {variable} = {to} .. {from}{step} do {body}"
    ))
}

/// The patch adds the word and nothing else, git takes it, and then what was found is what the text
/// says.
#[test]
fn git_takes_the_patch() {
    let folder = support::empty_folder("futures-patch");
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(&folder)
            .env("GIT_CEILING_DIRECTORIES", support::scratch())
            .output()
            .expect("git is there");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
    };
    let mut odd = std::fs::read_to_string(root().join("tests/futures/shown/two-calls.isf"))
        .expect("the program can be read");
    odd.truncate(odd.trim_end().len());
    let mut programs: Vec<(String, String)> = vec![
        ("without an end of line.isf".into(), odd.clone()),
        ("größe \"1\".isf".into(), odd.replace('\n', "\r\n")),
        ("below/it.isf".into(), odd),
    ];
    let mut all = files("tests/futures/found", &[".isf"]);
    all.extend(files("tests/futures/extracted", &[".isf"]));
    for program in all.into_iter().filter(|file| !file.ends_with("none.isf")) {
        let text = std::fs::read_to_string(&program).expect("the program can be read");
        let name = program.file_name().expect("a file has a name");
        programs.push((name.to_string_lossy().into_owned(), text));
    }
    std::fs::create_dir(folder.join("below")).expect("a folder can be made");
    for (name, text) in programs {
        let file = folder.join(&name);
        std::fs::write(&file, &text).expect("a scratch file can be written");
        let said = |options: &[&str]| {
            let mut command = hearth();
            command.arg("futures").arg(&name).args(options);
            let found = outcome(command.current_dir(&folder), None).expect("it starts");
            assert_eq!(found.code(), Some(0), "{name}: {}", found.stderr);
            found.stdout
        };
        let found = |said: &str| -> Vec<Value> {
            let document: Value = serde_json::from_str(said).expect("it is JSON");
            document["found"].as_array().expect("a list").clone()
        };
        let before = found(&said(&["--json"]));
        let patch = said(&["--patch"]);
        assert!(!patch.is_empty(), "{name}");
        assert_eq!(said(&["--patch", "kept.patch"]), "");
        let kept = std::fs::read_to_string(folder.join("kept.patch")).expect("the patch");
        assert_eq!(kept, patch);
        git(&["apply", "--check", "kept.patch"]);
        git(&["apply", "kept.patch"]);
        let patched = std::fs::read_to_string(&file).expect("the program is still there");
        let by_itself = patch::patched(&text, &CompileOptions::default()).expect("no errors");
        assert_eq!(patched, by_itself.text, "{name}");
        if by_itself.places.iter().any(|place| place.is_extracted) {
            continue;
        }
        assert_eq!(patched.replace("beside ", ""), text, "{name}");
        let after = found(&said(&["--json"]));
        let patterns = |found: &[Value]| -> Vec<String> {
            found
                .iter()
                .map(|found| found["pattern"].to_string())
                .collect()
        };
        assert_eq!(patterns(&before), patterns(&after), "{name}");
        assert!(after.iter().all(|found| found["marked"] == true), "{name}");
        assert!(
            before.iter().all(|found| found["marked"] == false),
            "{name}"
        );
        assert_eq!(said(&["--patch"]), "", "{name}");
    }
}

/// Statements that compute a value of their own become a procedure in the patch, which is kept, and
/// the program prints the same.
#[test]
fn statements_become_procedures() {
    let programs = files("tests/futures/extracted", &[".isf"]);
    assert!(programs.len() > 3);
    for program in programs {
        let text = std::fs::read_to_string(&program).expect("the program can be read");
        let patch = said(&program, &["--patch"]);
        golden(&program.with_extension("patch"), &patch)
            .unwrap_or_else(|complaint| panic!("{complaint}"));
        let remarks = said(&program, &["--found"]);
        golden(&program.with_extension("txt"), &remarks)
            .unwrap_or_else(|complaint| panic!("{complaint}"));
        let patched = patch::patched(&text, &CompileOptions::default()).expect("no errors");
        let is_extracted = patched.places.iter().any(|place| place.is_extracted);
        assert_eq!(
            is_extracted,
            !program.ends_with("none.isf"),
            "{}",
            program.display()
        );
        assert_eq!(printed(&text), printed(&patched.text), "{}", patched.text);
    }
}
