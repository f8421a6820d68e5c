//! The corpus. A folder of `tests/insense` is a test; there is nothing to register.
//!
//! ```text
//! program.isf   the program, with the diagnostics it is to give:
//!                   x = y      //~ error y
//!                   //~@3 warning after
//!               a marked line has a diagnostic of that severity that says the word, if there is
//!               one; no other line has any
//! diagnostics   how they are shown (golden)
//! stdout        what it prints; nothing if there is no such file
//! stderr        what standard error contains, a piece a line. Without it, a program that ends
//!               well must say nothing there
//! exit          its exit code, if not 0
//! stdin         what it reads
//! options       options for `hearth run`, one a line
//! real-time     why it is not simulated: its output depends on how long computing takes
//! ```
//!
//! Every program is also formatted: the layout must be stable and mean the same. Programs under
//! `examples` and `tests/workloads` have `NAME.stdout`, and `NAME.options` and `NAME.stdin` if need
//! be; those without output of their own need only be free of mistakes. Workloads also run with
//! components that are detached from their workers all the time, and all programs that end well
//! while components that nobody can wake are collected all the time.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hearth_lang::compile::{self, CompileOptions, Prelude};
use hearth_lang::format::format;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{Outcome, files, golden, hearth, is_sanitized, outcome, root, same};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for folder in folders("tests/insense") {
        let name = name_of(&folder);
        trials.push(Trial::test(name, move || Ok(corpus_case(&folder)?)));
    }
    for program in files("examples", &[".isf"])
        .into_iter()
        .chain(files("tests/workloads", &[".isf"]))
    {
        let name = name_of(&program);
        trials.push(Trial::test(name, move || Ok(single_program(&program)?)));
    }
    if trials.len() < 100 {
        trials.push(Trial::test("corpus", || {
            Err(Failed::from("there is no corpus in tests/insense"))
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn folders(parent: &str) -> Vec<PathBuf> {
    let mut folders: Vec<_> = fs::read_dir(root().join(parent))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn name_of(path: &Path) -> String {
    path.strip_prefix(root().join("tests/insense"))
        .or_else(|_| path.strip_prefix(root()))
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The description of a case.
struct Case {
    folder: PathBuf,
    program: PathBuf,
    stdout: Option<String>,
    stderr: Option<String>,
    stdin: Option<String>,
    exit: i32,
    options: Vec<String>,
    is_detached_often: bool,
    /// It ends well, and prints no number of collected components.
    is_collected_often: bool,
}

fn optional(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn words(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

fn corpus_case(folder: &Path) -> Result<(), String> {
    let known = [
        "program.isf",
        "diagnostics",
        "stdout",
        "stderr",
        "exit",
        "stdin",
        "options",
        "real-time",
    ];
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Devices read scripts; they may lie here under names of their own.
        let is_script = name.starts_with("device-");
        if !known.contains(&name.as_str()) && !is_script {
            return Err(format!("{name} has no meaning in a case"));
        }
    }
    let exit = match optional(&folder.join("exit")) {
        None => 0,
        Some(code) => code
            .trim()
            .parse()
            .map_err(|_| format!("exit holds {code:?}, which is no exit code"))?,
    };
    let case = Case {
        folder: folder.to_owned(),
        program: PathBuf::from("program.isf"),
        stdout: optional(&folder.join("stdout")),
        stderr: optional(&folder.join("stderr")),
        stdin: optional(&folder.join("stdin")),
        exit,
        options: words(optional(&folder.join("options"))),
        is_detached_often: false,
        is_collected_often: exit == 0
            && !folder.join("stderr").exists()
            && !name_of(folder).starts_with("collect-"),
    };
    let text = fs::read_to_string(folder.join("program.isf")).map_err(|error| error.to_string())?;
    let marks = marks(&text)?;
    if !marks.is_empty() {
        check_diagnostics(&case, &marks)?;
    }
    check_layout(&text, &case.options)?;
    if marks.iter().any(|mark| mark.severity == "error") {
        if case.stdout.is_some() {
            return Err("a program with errors prints nothing, yet there is stdout".into());
        }
        return Ok(());
    }
    check_run(&case, !marks.is_empty())
}

fn single_program(program: &Path) -> Result<(), String> {
    let text = fs::read_to_string(program).map_err(|error| error.to_string())?;
    let folder = program.parent().expect("a file is in a folder");
    let case = Case {
        folder: folder.to_owned(),
        program: PathBuf::from(program.file_name().expect("a file has a name")),
        stdout: optional(&program.with_extension("stdout")),
        stderr: None,
        stdin: optional(&program.with_extension("stdin")),
        exit: 0,
        options: words(optional(&program.with_extension("options"))),
        is_detached_often: folder.ends_with("tests/workloads"),
        is_collected_often: true,
    };
    check_layout(&text, &case.options)?;
    if case.stdout.is_none() {
        return check_diagnostics(&case, &[]);
    }
    check_run(&case, false)
}

/// A diagnostic that the program announces.
#[derive(Debug)]
struct Mark {
    line: u64,
    severity: String,
    word: String,
}

fn marks(text: &str) -> Result<Vec<Mark>, String> {
    let mut marks = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for mark in line.split("//~").skip(1) {
            let (at, rest) = match mark.strip_prefix('@') {
                None => (i as u64 + 1, mark),
                Some(rest) => {
                    let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                    let at = number
                        .parse()
                        .map_err(|_| format!("line {}: //~@{number} names no line", i + 1))?;
                    (at, rest)
                }
            };
            let rest = rest.trim();
            let (severity, word) = rest.split_once(' ').unwrap_or((rest, ""));
            if !["error", "warning"].contains(&severity) {
                return Err(format!("line {}: //~ {severity} is no severity", i + 1));
            }
            marks.push(Mark {
                line: at,
                severity: severity.to_owned(),
                word: word.trim().to_owned(),
            });
        }
    }
    Ok(marks)
}

/// `hearth check` knows fewer options than `hearth run`.
fn options_of_check(case: &Case) -> impl Iterator<Item = &String> {
    case.options
        .iter()
        .filter(|option| option.starts_with("--prelude"))
}

fn check_diagnostics(case: &Case, marks: &[Mark]) -> Result<(), String> {
    let check = |extra: &[&str]| {
        let mut command = hearth();
        command
            .arg("check")
            .args(options_of_check(case))
            .args(extra)
            .arg(&case.program)
            .current_dir(&case.folder);
        outcome(&mut command, None)
    };
    let Outcome { stdout, .. } = check(&["--json"])?;
    let found: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect();
    let line_of = |diagnostic: &Value| diagnostic["span"]["start"]["line"].as_u64();
    let mut complaints = Vec::new();
    for mark in marks {
        let is_there = found.iter().any(|diagnostic| {
            line_of(diagnostic) == Some(mark.line)
                && diagnostic["severity"] == mark.severity.as_str()
                && all_text(diagnostic).contains(&mark.word)
        });
        if !is_there {
            complaints.push(format!(
                "line {}: no {} that says {:?}",
                mark.line, mark.severity, mark.word
            ));
        }
    }
    for diagnostic in &found {
        let is_announced = marks.iter().any(|mark| {
            line_of(diagnostic) == Some(mark.line)
                && diagnostic["severity"] == mark.severity.as_str()
        });
        if !is_announced {
            complaints.push(format!(
                "line {}: a {} that was not announced: {} {}",
                diagnostic["span"]["start"]["line"],
                diagnostic["severity"].as_str().unwrap_or_default(),
                diagnostic["code"].as_str().unwrap_or_default(),
                diagnostic["title"].as_str().unwrap_or_default()
            ));
        }
    }
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    if marks.is_empty() {
        return Ok(());
    }
    let shown = check(&[])?;
    let has_errors = marks.iter().any(|mark| mark.severity == "error");
    let expected = i32::from(has_errors);
    if shown.code() != Some(expected) {
        return Err(format!("`hearth check` ends with {}", shown.status));
    }
    golden(&case.folder.join("diagnostics"), &shown.stderr)
}

/// Everything a diagnostic says, wherever it says it.
fn all_text(diagnostic: &Value) -> String {
    match diagnostic {
        Value::String(text) => text.clone() + "\n",
        Value::Array(parts) => parts.iter().map(all_text).collect(),
        Value::Object(fields) => fields.values().map(all_text).collect(),
        _ => String::new(),
    }
}

/// Formatting twice is formatting once, and what is found in the program stays the same.
fn check_layout(text: &str, options: &[String]) -> Result<(), String> {
    let Ok(once) = format(text) else {
        return Ok(()); // Mistakes of syntax are not formatted.
    };
    let twice = format(&once).map_err(|found| {
        format!("formatted, it is no program any more: {found:#?}\nit reads:\n{once}")
    })?;
    same(&once, &twice).map_err(|difference| format!("formatting is not stable: {difference}"))?;
    let prelude = options
        .iter()
        .find_map(|option| option.strip_prefix("--prelude="))
        .map_or(Prelude::Auto, |name| {
            Prelude::from_name(&name.to_lowercase()).expect("a generation of the prelude")
        });
    let options = CompileOptions {
        prelude,
        ..CompileOptions::default()
    };
    let codes = |text: &str| -> BTreeSet<_> {
        let found = compile::check(text, &options).diagnostics;
        found
            .iter()
            .map(|diagnostic| (diagnostic.code, diagnostic.title.clone()))
            .collect()
    };
    let (before, after) = (codes(text), codes(&once));
    if before != after {
        return Err(format!(
            "formatting changes what is found: {before:?} became {after:?}\nit reads:\n{once}"
        ));
    }
    Ok(())
}

/// The carrier makes no difference to a program's behaviour.
const CARRIERS: [&[&str]; 10] = [
    &["--carrier=workers"],
    &["--carrier=workers", "--place=spread"],
    &["--carrier=workers", "--place=steal"],
    &["--carrier=workers", "--place=talk"],
    &["--carrier=threads", "--place=talk"],
    &["--carrier=workers", "--workers=1", "--heaps=shared"],
    &["--carrier=threads"],
    &["--simulate=1"],
    &["--servers=synchronous", "--workers=2", "--place=spread"],
    &["--simulate=1", "--servers=synchronous", "--place=spread"],
];

fn check_run(case: &Case, has_warnings: bool) -> Result<(), String> {
    if case
        .options
        .iter()
        .any(|option| option.starts_with("--carrier"))
    {
        return check_run_carried(case, has_warnings, &[], &[]);
    }
    let takes_time = case.folder.join("real-time").exists();
    for carrier in CARRIERS {
        if takes_time && carrier[0].starts_with("--simulate") {
            continue;
        }
        check_run_carried(case, has_warnings, carrier, &[])
            .map_err(|complaints| format!("with {}: {complaints}", carrier.join(" ")))?;
    }
    if case.is_collected_often {
        let carrier = ["--workers=2", "--place=spread"];
        check_run_carried(case, has_warnings, &carrier, &[OFTEN])
            .map_err(|found| format!("collected: {found}"))?;
        // `collecting.rs` has the programs about collection.
        if !takes_time && std::env::var_os("HEARTH_TEST_DEEP").is_some() {
            for seed in ["--simulate=1", "--simulate=2"] {
                check_run_carried(case, has_warnings, &[seed], &[OFTEN])
                    .map_err(|found| format!("collected with {seed}: {found}"))?;
            }
        }
    }
    if case.is_detached_often {
        for carrier in [
            ["--workers=1", "--place=spread"],
            ["--workers=2", "--place=spread"],
            ["--workers=2", "--place=steal"],
            ["--workers=2", "--place=talk"],
            ["--servers=synchronous", "--place=spread"],
            ["--servers=auto", "--place=spread"],
        ] {
            check_run_carried(case, has_warnings, &carrier, &[SHORT_SLICE])
                .map_err(|found| format!("detached with {}: {found}", carrier.join(" ")))?;
        }
    }
    Ok(())
}

/// Slice in microseconds, so short that components are detached and return all the time.
const SHORT_SLICE: (&str, &str) = ("HEARTH_SLICE", "20");

/// Microseconds between collections, which must end nothing that a program still needs.
const OFTEN: (&str, &str) = ("HEARTH_COLLECT", "20");

fn check_run_carried(
    case: &Case,
    has_warnings: bool,
    carrier: &[&str],
    variables: &[(&str, &str)],
) -> Result<(), String> {
    let mut command = hearth();
    let carrier = carrier
        .iter()
        .filter(|option| !is_sanitized() || !option.starts_with("--heaps"));
    command
        .arg("run")
        .args(carrier)
        .args(&case.options)
        .arg(&case.program)
        .envs(variables.iter().copied())
        .current_dir(&case.folder);
    let stdin = case.stdin.as_deref().map(str::as_bytes);
    let found = outcome(&mut command, stdin)?;
    let mut complaints = Vec::new();
    if let Err(difference) = same(case.stdout.as_deref().unwrap_or_default(), &found.stdout) {
        complaints.push(format!("stdout: {difference}"));
    }
    if found.code() != Some(case.exit) {
        complaints.push(format!(
            "expected exit code {}, {}",
            case.exit, found.status
        ));
    }
    match &case.stderr {
        Some(pieces) => {
            for piece in pieces
                .lines()
                .map(str::trim)
                .filter(|piece| !piece.is_empty())
            {
                if !found.stderr.contains(piece) {
                    complaints.push(format!("stderr does not say {piece:?}"));
                }
            }
        }
        None if has_warnings || case.exit != 0 || found.stderr.is_empty() => {}
        None => complaints.push("there is something on stderr, but no file stderr".into()),
    }
    if complaints.is_empty() {
        return Ok(());
    }
    complaints.push(format!("stderr:\n{}", found.stderr));
    Err(complaints.join("\n"))
}
