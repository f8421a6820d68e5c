//! `hearth heap`: programs that hold what is known, and what is told of them from outside.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use support::{Outcome, empty_folder, golden, hearth, outcome, root};

/// Holds 16 MB of small blocks, and two large ones, until its input ends. The last case says that
/// it has a heap of another layout.
const HOLDER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int count, char **words) {
    (void)words;
    static char *blocks[16000];
    if (count > 1) {
        char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(page, "hearth/D\x63\0\0\0\0\0\0", 16);
        mprotect(page, 4096, PROT_READ);
    } else {
        for (int i = 0; i < 16000; i++) memset(blocks[i] = malloc(1000), 1, 1000);
    }
    // Nothing is allocated any more by whoever waits for input.
    setvbuf(stdin, 0, _IONBF, 0);
    void *volatile large = malloc(3 << 20), *volatile mapped = malloc(300l << 20);
    puts("ready");
    fflush(stdout);
    getchar();
    return large == mapped;
}
"#;

/// Three components, each with 4 MB of its own, of which one waits for input that never comes.
const PROGRAM: &str = r#"type INone is interface()

component Keeper presents INone {
  grid = new integer[1000][1000] of 1

  constructor(integer which) {
    if which == 3 then { printString("ready\n") }
  }

  behaviour {
    printString(getString())
    grid[0][0] := 2
  }
}

a = new Keeper(1)
b = new Keeper(2)
c = new Keeper(3)
"#;

/// A program that has said that it is ready, and ends with this.
struct Running(Child);

impl Running {
    #[track_caller]
    fn start(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it is text");
        assert_eq!(line, "ready\n", "{command:?}");
        Running(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// The command's answer about it.
    fn told(&self, words: &[&str]) -> Outcome {
        let pid = self.pid();
        let (action, rest) = words.split_first().expect("an action");
        let mut command = hearth();
        command.args(["heap", action, &pid]).args(rest);
        outcome(&mut command, None).expect("it ends")
    }

    #[track_caller]
    fn document(&self) -> Value {
        let said = self.told(&["show", "--json"]);
        assert_eq!(said.code(), Some(0), "{}", said.stderr);
        serde_json::from_str(&said.stdout).expect("it is JSON")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `libhearth_malloc.so`. Cargo makes it only if it is asked to.
fn library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_hearth"));
        let target = folder.ancestors().nth(2).expect("a profile has a folder");
        let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
            .args(["build", "--quiet", "--package", "hearth-malloc", "--lib"])
            .arg("--target-dir")
            .arg(target)
            .current_dir(root())
            .output()
            .expect("cargo can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        target.join("debug/libhearth_malloc.so")
    })
}

/// The holder of blocks, compiled in a folder of the test's own.
fn holder(name: &str) -> PathBuf {
    let folder = empty_folder(&format!("heaps-{name}"));
    fs::write(folder.join("holder.c"), HOLDER).expect("it can be written");
    let status = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-o", "holder", "holder.c"])
        .current_dir(&folder)
        .status()
        .expect("there is a C compiler");
    assert!(status.success());
    folder.join("holder")
}

fn program(name: &str) -> PathBuf {
    let folder = empty_folder(&format!("heaps-{name}"));
    fs::write(folder.join("keepers.isf"), PROGRAM).expect("it can be written");
    let mut command = hearth();
    command.args(["build", "keepers.isf"]).current_dir(&folder);
    let built = outcome(&mut command, None).expect("it ends");
    assert_eq!(built.code(), Some(0), "{}", built.stderr);
    folder.join("keepers")
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[track_caller]
fn is_about(value: &Value, wanted: u64, more: u64) {
    let found = number(value);
    assert!(
        (wanted..wanted + more).contains(&found),
        "{found}, not {wanted}"
    );
}

#[track_caller]
fn says(name: &str, found: &Outcome, pid: &str, exit: i32) {
    let text = format!("exit code {exit}\n\n{}{}", found.stdout, found.stderr);
    let text = text.replace(pid, "PID");
    let path = root().join("crates/cli/tests/messages/heaps").join(name);
    golden(&path.with_extension("txt"), &text).unwrap_or_else(|complaint| panic!("{complaint}"));
    assert_eq!(found.code(), Some(exit), "{text}");
}

#[test]
fn a_program_with_the_library() {
    let path = holder("library");
    let running = Running::start(Command::new(&path).env("LD_PRELOAD", library()));
    let document = running.document();
    assert_eq!(document["process"]["name"], "holder");
    let [space] = list(&document["spaces"]) else {
        panic!("one space: {document}");
    };
    assert_eq!(number(&space["large"]["count"]), 1);
    is_about(&space["large"]["bytes"], 3 << 20, 64 << 10);
    assert_eq!(number(&space["mapped"]["count"]), 1);
    is_about(&space["mapped"]["bytes"], 300 << 20, 256 << 10);
    let largest = &space["heaps"][0];
    assert_eq!(largest["kind"], "thread");
    // Of 1000 bytes, 1024.
    is_about(&largest["live_bytes"], 16000 * 1024, 200 << 10);
    is_about(&largest["resident_bytes"], 16000 * 1024, 1 << 20);
    let small = 16000 * 1024 + (303 << 20);
    is_about(&space["live_bytes"], small, 600 << 10);
    is_about(&space["held_bytes"], 18 << 20, 3 << 20);
    let level = &space["levels"][1];
    is_about(&level["taken_bytes"], 16000 * 1024, 200 << 10);
    assert!(number(&level["bytes"]) >= number(&level["taken_bytes"]));
    // Looking changes nothing.
    assert_eq!(running.document(), document);
}

#[test]
fn a_program_of_components() {
    let path = program("components");
    let running = Running::start(&mut Command::new(&path));
    let document = running.document();
    let [space] = list(&document["spaces"]) else {
        panic!("one space: {document}");
    };
    let components = || {
        let heaps = list(&space["heaps"]).iter();
        heaps.filter(|heap| heap["kind"] == "component")
    };
    let large = components().filter(|heap| number(&heap["live_bytes"]) > 3_900_000);
    assert_eq!(large.count(), 3, "{document}");
    for heap in components() {
        assert!(
            number(&heap["resident_bytes"]) >= number(&heap["live_bytes"]),
            "{heap}"
        );
    }
}

#[test]
fn two_spaces_in_one_process() {
    let path = program("two");
    let running = Running::start(Command::new(&path).env("LD_PRELOAD", library()));
    let document = running.document();
    assert_eq!(list(&document["spaces"]).len(), 2, "{document}");
    let said = running.told(&["show"]);
    assert!(said.stdout.contains("space 2 of 2"), "{}", said.stdout);
}

#[test]
fn pictures_and_lines() {
    let path = holder("shown");
    let running = Running::start(Command::new(&path).env("LD_PRELOAD", library()));
    let map = path.with_file_name("map.svg");
    let said = running.told(&["show", "--map", &map.display().to_string()]);
    assert_eq!(said.code(), Some(0), "{}", said.stderr);
    let picture = fs::read_to_string(&map).expect("it was written");
    assert!(
        picture.starts_with("<?xml") && picture.contains("large blocks"),
        "{picture}"
    );
    for words in [&["show", "--heaps", "0"][..], &["top", "--count", "1"]] {
        let said = running.told(words);
        assert_eq!(said.code(), Some(0), "{}", said.stderr);
        assert!(said.stdout.contains("300"), "{}", said.stdout);
    }
}

#[test]
fn programs_without_a_heap() {
    let path = holder("without");
    let running = Running::start(&mut Command::new(&path));
    says("without", &running.told(&["show"]), &running.pid(), 2);
    says("without-top", &running.told(&["top"]), &running.pid(), 2);
    let other = Running::start(Command::new(&path).arg("other"));
    says("version", &other.told(&["show"]), &other.pid(), 2);
    let nobody = i32::MAX.to_string();
    let mut command = hearth();
    let found = outcome(command.args(["heap", "show", &nobody]), None).expect("it ends");
    says("nobody", &found, &nobody, 2);
}

#[test]
fn help_is_good_reading() {
    for (name, words) in [
        ("help", &["heap", "--help"][..]),
        ("help-show", &["heap", "show", "--help"]),
        ("help-top", &["heap", "top", "--help"]),
    ] {
        let found = outcome(hearth().args(words), None).expect("it ends");
        says(name, &found, "PID", 0);
    }
}
