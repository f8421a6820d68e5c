//! C and C++ programs under the library: counts, names, nesting, threads, forks, kills.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use hearth_calls::{Recorded, Step};
use hearth_testing::library;
use hearth_watch::stream::Law;

/// The folder with the library, built once.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| library::build("hearth-monitor-c"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An instrumented program, and a folder for its files, deleted at the end of the test.
struct Program {
    folder: PathBuf,
    preload: Option<PathBuf>,
}

impl Program {
    /// Builds a source file for a test, to be run with the library preloaded.
    fn new(source: &str, test: &str, flags: &[&str]) -> Program {
        let name = format!("monitor-{}-{test}", process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
        let output = Command::new(compiler)
            .args([
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-finstrument-functions",
                "-pthread",
            ])
            // Functions of the standard library are counted by nobody here.
            .arg("-finstrument-functions-exclude-file-list=/usr/include,/usr/lib")
            .args(["-fno-builtin-malloc", "-o"])
            .arg(folder.join("program"))
            .arg(sources.join(source))
            .args(flags)
            .output()
            .expect("a C compiler");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let preload = Some(built().join("libhearth_monitor.so"));
        Program { folder, preload }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("calls")
    }

    /// The program with more choices behind the file.
    fn command(&self, choices: &str) -> Command {
        let mut command = Command::new(self.folder.join("program"));
        let variable = format!("file={},{choices}", self.file().display());
        command.env("HEARTH_MONITOR", variable.trim_end_matches(','));
        if let Some(preload) = &self.preload {
            command.env("LD_PRELOAD", preload);
        }
        command
    }

    /// Runs it to a good end and reads its file.
    fn run(&self, choices: &str) -> Calls {
        let output = self.command(choices).output().expect("it starts");
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{:?} {errors}", output.status);
        assert_eq!(errors, "");
        Calls::of(&self.file())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Content of a file.
struct Calls {
    /// Numbers of calls, by the names of the calls around and their own.
    paths: BTreeMap<String, u64>,
    /// Calls whose beginning or end is not known.
    unknown: u64,
    threads: usize,
    emitted: u64,
    lost: u64,
    has_ended: bool,
}

impl Calls {
    fn of(file: &Path) -> Calls {
        let recorded = Recorded::open(file).expect("records");
        let mut calls = Calls {
            paths: BTreeMap::new(),
            unknown: 0,
            threads: recorded.accounts().len(),
            emitted: 0,
            lost: 0,
            has_ended: recorded.has_ended(),
        };
        for account in recorded.accounts() {
            assert_eq!(
                account.emitted,
                account.stored + account.lost(),
                "{account:?}"
            );
            calls.emitted += account.emitted;
            calls.lost += account.lost();
        }
        let visited = recorded.visit(|step| {
            if let Step::Ends { call, around } = step {
                let names = around.iter().chain([&call.name]);
                let names: Vec<&str> = names
                    .map(|name| name.map_or("?", |name| recorded.name(name)))
                    .collect();
                *calls.paths.entry(names.join(">")).or_default() += 1;
                calls.unknown += u64::from(call.length().is_none());
            }
        });
        visited.expect("it can be read");
        calls
    }

    fn assert_are(&self, expected: &[(&str, u64)]) {
        let expected = expected
            .iter()
            .map(|&(path, count)| (path.to_owned(), count));
        assert_eq!(self.paths, expected.collect());
    }
}

#[test]
fn calls_of_threads_are_counted_by_every_law() {
    let program = Program::new("calls.c", "laws", &[]);
    for law in Law::ALL {
        for mode in ["async", "sync"] {
            let rounds = 20_000;
            let mut command = program.command(&format!("law={law},buffer=1M,mode={mode},off=deep"));
            let output = command.arg(rounds.to_string()).output().expect("it starts");
            assert!(output.status.success(), "{law} {mode}: {output:?}");
            let calls = Calls::of(&program.file());
            assert!(calls.has_ended, "{law} {mode}");
            assert_eq!(calls.threads, 3, "{law} {mode}");
            assert_eq!(calls.emitted, 2 * (3 * 3 * rounds + 3 + 1), "{law} {mode}");
            if law == Law::Block {
                assert_eq!(calls.lost, 0, "{mode}");
                calls.assert_are(&[
                    ("main", 1),
                    ("main>work", 1),
                    ("main>work>outer", rounds),
                    ("main>work>outer>inner", 2 * rounds),
                    ("work", 2),
                    ("work>outer", 2 * rounds),
                    ("work>outer>inner", 4 * rounds),
                ]);
            }
        }
    }
}

#[test]
fn rules_choose_functions() {
    let program = Program::new("calls.c", "rules", &[]);
    let calls = program.run("on=o*,on=deep");
    assert_eq!(calls.emitted, 2 * (3 * 1000 + 101));
    assert_eq!(calls.paths["outer"], 3000);
    assert_eq!(calls.paths[&vec!["deep"; 101].join(">")], 1);
}

#[test]
fn jumps_end_the_calls_that_they_leave() {
    for flags in [["-O0"], ["-O2"]] {
        let calls = Program::new("jumps.c", &flags[0][1..], &flags).run("");
        assert_eq!(calls.unknown, 0, "{flags:?}");
        assert_eq!(calls.paths["main"], 1);
        // Each round begins at the same place, so nothing grows.
        assert_eq!(calls.paths["main>between"], 100);
        assert_eq!(calls.paths["main>between>leave"], 100);
        // Calls behind the last jump may lie deeper than those it left, and seem to be within them.
        let of = |name: &str| -> u64 {
            let calls = calls.paths.iter();
            calls
                .filter(|(path, _)| path.ends_with(name))
                .map(|(_, count)| count)
                .sum()
        };
        assert_eq!((of("varied"), of("last")), (11, 1), "{flags:?}");
        assert_eq!(calls.emitted, 2 * (1 + 200 + 11 + 1), "{flags:?}");
    }
}

#[test]
fn names_of_cpp_have_no_parameters_and_exceptions_end_calls() {
    let program = Program::new("server.cc", "cpp", &[]);
    let calls = program.run("law=block,on=net::*");
    assert_eq!(calls.unknown, 0);
    calls.assert_are(&[
        ("net::Queue<int>::Queue", 1),
        ("net::Queue<int>::push", 200),
        ("net::Queue<int>::~Queue", 1),
        ("net::Server::Server", 1),
        ("net::Server::Server>net::Server::start", 1),
        ("net::Server::handle", 301),
        ("net::Server::handle>net::Server::handle", 1),
        (
            "net::Server::handle>net::Server::handle>net::Server::parse",
            1,
        ),
        ("net::Server::handle>net::Server::parse", 300),
        ("net::Server::~Server", 1),
        ("net::Server::~Server>net::Server::stop", 1),
    ]);
}

#[test]
fn a_child_does_not_write_into_its_parents_journal() {
    let program = Program::new("forks.c", "forks", &[]);
    let calls = program.run("law=block,off=in_thread");
    let names: Vec<&str> = calls.paths.keys().map(String::as_str).collect();
    assert_eq!(names, ["main", "main>in_parent", "work"]);
    assert_eq!(calls.paths["main>in_parent"], 20_000);
    assert_eq!((calls.lost, calls.has_ended), (0, true));
}

#[test]
fn children_are_followed_into_files_of_their_own() {
    let program = Program::new("forks.c", "follow", &[]);
    let calls = program.run("law=block,off=in_thread,children=follow");
    assert_eq!(calls.paths["main>in_parent"], 20_000);
    let (mut ended, mut killed) = (0, 0);
    for entry in fs::read_dir(&program.folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none() {
            continue;
        }
        let calls = Calls::of(&path);
        if calls.has_ended {
            ended += 1;
            calls.assert_are(&[("child", 1), ("child>in_child", 2_000)]);
        } else {
            // `_exit` ends it without leave: the rest is in its journal.
            killed += 1;
            calls.assert_are(&[("in_grandchild", 10)]);
            remove_journal(&path);
        }
    }
    assert_eq!((ended, killed), (20, 20));
}

fn remove_journal(file: &Path) {
    if let Ok(log) = hearth_watch::stream::Log::open(file) {
        let _ = fs::remove_file(&log.head().journal);
    }
}

#[test]
fn a_killed_program_leaves_a_right_account() {
    for (round, law) in Law::ALL.into_iter().enumerate() {
        let program = Program::new("calls.c", &format!("killed-{round}"), &[]);
        let mut command = program.command(&format!("law={law},buffer=1M"));
        let mut child = command.arg("2000000000").spawn().expect("it starts");
        let begin = Instant::now();
        while fs::metadata(program.file()).map_or(0, |data| data.len()) < 100_000 {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "it writes nothing"
            );
            thread::yield_now();
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let calls = Calls::of(&program.file());
        assert!(!calls.has_ended && calls.emitted > 10_000, "{law}");
        remove_journal(&program.file());
    }
}

#[test]
fn an_instrumented_malloc_does_not_recurse() {
    let program = Program::new("own_malloc.c", "malloc", &[]);
    let calls = program.run("law=block");
    assert_eq!(calls.unknown, 0);
    assert_eq!(calls.paths["work>malloc>rounded"], 8 * 10_000);
}

#[test]
fn threads_end_and_signals_are_the_programs() {
    let calls = Program::new("threads.c", "threads", &[]).run("law=block,buffer=1M");
    assert_eq!(calls.paths["work>step"], 30_000);
    assert_eq!(calls.paths["keep_errno>step"], 100_000);
    // A thread may be cancelled before its first call.
    assert!((302..=602).contains(&calls.threads), "{}", calls.threads);
}

#[test]
fn a_program_may_link_the_archive() {
    let archive = built().join("libhearth_monitor.a");
    let flags = [archive.to_str().expect("text"), "-ldl", "-lm"];
    let mut program = Program::new("calls.c", "static", &flags);
    program.preload = None;
    let calls = program.run("law=block");
    assert_eq!(calls.paths["main>work>outer>inner"], 2000);
    assert!(calls.has_ended);
}

#[test]
fn clang_instruments_too() {
    let program = Program::new("calls.c", "clang", &[]);
    let has_clang = Command::new("clang").arg("--version").output().is_ok();
    if has_clang {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/calls.c");
        let mut clang = Command::new("clang");
        clang.args(["-O1", "-finstrument-functions", "-pthread", "-o"]);
        let status = clang
            .arg(program.folder.join("program"))
            .arg(source)
            .status();
        assert!(status.expect("it starts").success());
        assert_eq!(
            program.run("law=block").paths["main>work>outer>inner"],
            2000
        );
    }
}

fn errors(output: &Output) -> String {
    assert!(output.status.success());
    text(&output.stderr)
}

#[test]
fn a_wrong_variable_is_told_and_harms_nobody() {
    let program = Program::new("calls.c", "wrong", &[]);
    let output = program.command("lwa=block").output().expect("it starts");
    assert!(errors(&output).contains("did you mean law?"), "{output:?}");
    assert!(!program.file().exists());
    let mut command = program.command("");
    command.env("HEARTH_MONITOR", "/no such folder/calls");
    let output = command.output().expect("it starts");
    assert!(errors(&output).contains("name another file; nothing is recorded"));
    let output = command
        .env_remove("HEARTH_MONITOR")
        .output()
        .expect("it starts");
    assert_eq!(errors(&output), "");
}

#[test]
fn a_second_program_with_the_same_variable_takes_another_file() {
    let program = Program::new("calls.c", "second", &[]);
    let mut command = program.command("law=block");
    let mut first = command.arg("2000000000").spawn().expect("it starts");
    while !fs::metadata(program.file()).is_ok_and(|data| data.len() > 0) {
        thread::yield_now();
    }
    let second = program.command("law=block").spawn().expect("it starts");
    let id = second.id();
    let output = second.wait_with_output().expect("it ends");
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    assert!(output.status.success());
    remove_journal(&program.file());
    let calls = Calls::of(&program.folder.join(format!("calls.{id}")));
    assert_eq!(calls.paths["work>outer"], 2000);
}
