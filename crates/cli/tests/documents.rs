//! Every program that the book and the stories of the codes show.
//!
//! ```text
//! insense            is free of errors
//! insense,run        runs and ends well; a `text,output` fence right behind it is what it prints
//! insense,fails,FILE runs as FILE and ends badly; a `text,complaint` fence behind it is what it says
//! insense,error      has errors; in the story of a code, that code is among them
//! insense,warning    has warnings and no errors; in a story, its own
//! insense,fragment   is not a whole program
//! ```
//!
//! On the front page a `console` fence that begins with `$ hearth` is run from the repository's
//! root, and its other lines are what the command prints.

mod support;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use support::{Outcome, files, golden, hearth, outcome, root, same};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let documents = files("docs", &[".md"])
        .into_iter()
        .chain(files("crates/lang/explain", &[".md"]))
        .chain([root().join("README.md")]);
    for document in documents {
        let Ok(text) = fs::read_to_string(&document) else {
            continue;
        };
        for fence in fences(&text) {
            let name = document.strip_prefix(root()).unwrap_or(&document).display();
            let name = format!("{name}:{}", fence.line);
            let document = document.clone();
            trials.push(Trial::test(name, move || Ok(try_fence(&document, &fence)?)));
        }
    }
    trials.push(Trial::test("README.md: what the command prints", || {
        Ok(front_page_commands()?)
    }));
    for story in files("crates/lang/explain", &[".md"]) {
        let name = format!("shown by its story: {}", code_of(&story));
        trials.push(Trial::test(name, move || Ok(story_shows_its_code(&story)?)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A program in a document.
struct Fence {
    line: usize,
    kind: String,
    text: String,
    /// The contents of the fence right after it: the program's output, or its complaint.
    said: Option<String>,
}

fn fences(document: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    // The last line of the last fence: output belongs to a program only directly behind it.
    let mut end_of_last = usize::MAX;
    let mut lines = document.lines().enumerate();
    while let Some((i, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            continue;
        };
        let mut text = String::new();
        let mut end = i;
        for (j, line) in lines.by_ref() {
            end = j;
            if line.starts_with("```") {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        if ["text,output", "text,complaint"].contains(&kind) && i == end_of_last.saturating_add(1) {
            if let Some(program) = found.last_mut() {
                program.said = Some(text);
            }
        } else if kind == "insense" || kind.starts_with("insense,") {
            found.push(Fence {
                line: i + 1,
                kind: kind.to_owned(),
                text,
                said: None,
            });
            end_of_last = end;
        }
    }
    found
}

fn code_of(story: &Path) -> String {
    let stem = story.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn try_fence(document: &Path, fence: &Fence) -> Result<(), String> {
    match fence.kind.as_str() {
        "insense" => match errors_of(&fence.text)?.as_slice() {
            [] => Ok(()),
            errors => Err(format!("it has errors: {errors:?}")),
        },
        "insense,run" => run_fence(document, fence),
        "insense,error" => match errors_of(&fence.text)?.as_slice() {
            [] => Err("it is shown as faulty, yet has no errors".into()),
            _ => Ok(()),
        },
        "insense,warning" => {
            let found = found_in(&fence.text)?;
            match errors_of(&fence.text)?.as_slice() {
                [] if found.is_empty() => Err("it is shown as odd, yet has no warnings".into()),
                [] => Ok(()),
                errors => Err(format!("it has errors: {errors:?}")),
            }
        }
        "insense,fragment" => Ok(()),
        other if let Some(file) = other.strip_prefix("insense,fails,") => {
            fail_fence(document, fence, file)
        }
        other => Err(format!("there is no such kind of program: {other}")),
    }
}

/// Writes a fence's program to a folder of its own, and runs it there.
fn outcome_of(document: &Path, fence: &Fence, file: &str) -> Result<Outcome, String> {
    let name = document.display().to_string();
    let place = format!("{}-{}", name.replace('/', "-"), fence.line);
    let folder = support::scratch().join("documents").join(place);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    fs::write(folder.join(file), &fence.text).map_err(|error| error.to_string())?;
    outcome(hearth().args(["run", file]).current_dir(&folder), None)
}

fn fail_fence(document: &Path, fence: &Fence, file: &str) -> Result<(), String> {
    let found = outcome_of(document, fence, file)?;
    if found.code() == Some(0) {
        return Err("it is shown to fail, yet ends well".into());
    }
    let expected = fence.said.as_deref().unwrap_or(&found.stderr);
    same(expected, &found.stderr)
}

fn run_fence(document: &Path, fence: &Fence) -> Result<(), String> {
    let found = outcome_of(document, fence, "program.isf")?;
    if found.code() != Some(0) && fence.said.is_none() {
        return Err(format!("it ends with {}\n{}", found.status, found.stderr));
    }
    if let Some(expected) = &fence.said {
        // A document cannot show whether the last line has an end.
        same(
            expected.trim_end_matches('\n'),
            found.stdout.trim_end_matches('\n'),
        )
        .map_err(|difference| format!("{difference}\nstderr:\n{}", found.stderr))?;
    }
    Ok(())
}

/// Runs the commands of the front page's `console` fences. Blessing writes their answers anew.
fn front_page_commands() -> Result<(), String> {
    let path = root().join("README.md");
    let page = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let mut pieces = page.split("```console\n$ hearth ");
    let mut found = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (words, rest) = piece.split_once('\n').ok_or("a command ends its line")?;
        let (_, behind) = rest.split_once("\n```\n").ok_or("a fence ends")?;
        let answer = outcome(hearth().args(words.split(' ')).current_dir(root()), None)?.stdout;
        found += &format!("```console\n$ hearth {words}\n{answer}```\n{behind}");
    }
    golden(&path, &found)
}

/// The codes found in a program.
fn found_in(text: &str) -> Result<Vec<Value>, String> {
    let found = outcome(
        hearth().args(["check", "--json", "-"]),
        Some(text.as_bytes()),
    )?;
    Ok(found
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
        .collect())
}

fn errors_of(text: &str) -> Result<Vec<String>, String> {
    Ok(found_in(text)?
        .iter()
        .filter(|found| found["severity"] == "error")
        .map(|found| format!("{} {}", found["code"], found["title"]))
        .collect())
}

/// Checks that a story shows the mistake that it is about.
fn story_shows_its_code(story: &Path) -> Result<(), String> {
    let code = code_of(story);
    let text = fs::read_to_string(story).map_err(|error| error.to_string())?;
    let mut shown = fences(&text);
    shown.retain(|fence| ["insense,error", "insense,warning"].contains(&fence.kind.as_str()));
    for fence in &shown {
        let found = found_in(&fence.text)?;
        if found.iter().any(|found| found["code"] == code.as_str()) {
            return Ok(());
        }
    }
    if shown.is_empty() {
        // Some mistakes fill pages.
        return Ok(());
    }
    Err(format!("none of its programs has {code}"))
}
