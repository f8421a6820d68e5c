//! The command as a user meets it, wrong turns above all. What it says is kept in `messages/`,
//! to be read as prose.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use support::{Outcome, empty_folder, golden, hearth, outcome, plain_hearth, root};

const HELLO: &str = "printString(\"hello\\n\")\n";
/// The part of a profile that a run reads.
const PROFILE: &str =
    r#"{"format": 1, "system": {"futex_wake_other_core_ns": {"value": 51200.0}}}"#;

/// A folder with programs, and the command called in it.
struct ProgramFolder {
    folder: PathBuf,
}

impl ProgramFolder {
    fn new(name: &str) -> Self {
        ProgramFolder {
            folder: empty_folder(name),
        }
    }

    fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.folder.join(name), text).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = hearth();
        command.args(words).current_dir(&self.folder);
        command
    }

    fn call(&self, words: &[&str]) -> Outcome {
        outcome(&mut self.command(words), None).unwrap()
    }
}

/// Compares what a command says with what is kept, and its exit code.
#[track_caller]
fn says(name: &str, place: &ProgramFolder, command: &mut Command, exit: i32) {
    let found = outcome(command, None).unwrap();
    let words: Vec<_> = command
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let text = format!(
        "$ hearth {}\nexit code {}\n\n{}{}",
        words.join(" "),
        found.code().unwrap_or(-1),
        found.stdout,
        found.stderr
    );
    let text = text.replace(&place.folder.display().to_string(), "FOLDER");
    let path = root().join("crates/cli/tests/messages").join(name);
    golden(&path.with_extension("txt"), &text).unwrap_or_else(|complaint| panic!("{complaint}"));
    assert_eq!(found.code(), Some(exit), "{text}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|facts| {
        use std::os::unix::fs::MetadataExt;
        facts.uid() == 0
    })
}

#[test]
fn help_is_good_reading() {
    let place = ProgramFolder::new("help");
    for words in [
        &["--help"][..],
        &["run", "--help"],
        &["build", "--help"],
        &["check", "--help"],
        &["fmt", "--help"],
        &["new", "--help"],
        &["explain", "--help"],
    ] {
        let name = format!("help-{}", words[0].trim_start_matches('-'));
        says(&name, &place, &mut place.command(words), 0);
    }
}

#[test]
fn help_can_be_asked_for_by_a_word() {
    let place = ProgramFolder::new("help-word");
    for (word, option) in [
        (&["help", "run"][..], &["run", "--help"][..]),
        (&["help", "heap", "top"], &["heap", "top", "--help"]),
        (&["help"], &["--help"]),
    ] {
        let (word, option) = (place.call(word), place.call(option));
        assert_eq!((word.code(), &word.stdout), (Some(0), &option.stdout));
    }
}

#[test]
fn wrong_command_lines() {
    let place = ProgramFolder::new("usage").with("a.isf", HELLO);
    let cases: &[(&str, &[&str])] = &[
        ("usage-nothing", &[]),
        ("usage-unknown-command", &["rnu", "a.isf"]),
        ("usage-no-file", &["run"]),
        ("usage-unknown-option", &["run", "a.isf", "--pases", "3"]),
        ("usage-seed", &["run", "a.isf", "--seed", "x"]),
        ("usage-report", &["run", "a.isf", "--report", "-"]),
        ("usage-no-passes", &["run", "a.isf", "--passes", "0"]),
        ("usage-prelude", &["run", "a.isf", "--prelude", "G7"]),
        ("usage-device", &["run", "a.isf", "--device", "tmp=x"]),
        ("usage-device-name", &["run", "a.isf", "--device", "=x"]),
        (
            "usage-device-without-script",
            &["run", "a.isf", "--device", "temp"],
        ),
    ];
    for (name, words) in cases {
        says(name, &place, &mut place.command(words), 2);
    }
}

#[test]
fn files_that_are_no_programs() {
    let place = ProgramFolder::new("inputs")
        .with("hello.isf", HELLO)
        .with("empty.isf", "")
        .with("blank.isf", " \n\t\n")
        .with("latin1.isf", b"// gr\xFCn\nprintInt(1)\n")
        .with("utf16.isf", b"\xFF\xFEp\0r\0")
        .with("binary.isf", b"\x7fELF\x02\x01\x01\0\xFF\xFF");
    fs::create_dir_all(place.path("folder/sub")).unwrap();
    fs::write(place.path("folder/main.isf"), HELLO).unwrap();
    let cases: &[(&str, &[&str])] = &[
        ("input-directory", &["run", "folder"]),
        ("input-directory-without-program", &["run", "folder/sub"]),
        ("input-missing", &["run", "nothing-like-it.isf"]),
        ("input-missing-near-name", &["run", "helo.isf"]),
        ("input-missing-ending", &["run", "hello"]),
        ("input-missing-directory", &["run", "nowhere/hello.isf"]),
        ("input-part-is-a-file", &["run", "hello.isf/a.isf"]),
        ("input-empty", &["run", "empty.isf"]),
        ("input-blank", &["build", "blank.isf"]),
        ("input-latin1", &["check", "latin1.isf"]),
        ("input-utf16", &["check", "utf16.isf"]),
        ("input-binary", &["check", "binary.isf"]),
        (
            "input-several",
            &["check", "latin1.isf", "hello.isf", "helo.isf"],
        ),
    ];
    for (name, words) in cases {
        says(name, &place, &mut place.command(words), 2);
    }
    assert_eq!(place.call(&["check", "empty.isf"]).code(), Some(0));
}

#[test]
fn a_file_that_may_not_be_read() {
    if is_root() {
        // Nothing is unreadable to root; a file that is no file comes near.
        let place = ProgramFolder::new("unreadable");
        symlink("loop.isf", place.path("loop.isf")).unwrap();
        let found = place.call(&["run", "loop.isf"]);
        assert_eq!(found.code(), Some(2));
        assert!(
            found.stderr.starts_with("hearth: cannot read loop.isf: "),
            "{found:?}"
        );
        return;
    }
    let place = ProgramFolder::new("unreadable").with("secret.isf", HELLO);
    fs::set_permissions(place.path("secret.isf"), fs::Permissions::from_mode(0o000)).unwrap();
    let found = place.call(&["run", "secret.isf"]);
    assert_eq!(
        found.stderr,
        "hearth: cannot read secret.isf: permission denied\n"
    );
    assert_eq!(found.code(), Some(2));
}

#[test]
fn a_line_of_a_megabyte() {
    let mut text = String::new();
    for i in 0..62_000 {
        text.push_str(&format!("x{i} = {i} ; "));
    }
    assert!(text.len() > 1_000_000);
    text.push_str("y = absent\n");
    let place = ProgramFolder::new("long-line").with("long.isf", &text);
    let found = place.call(&["check", "long.isf"]);
    assert_eq!(found.code(), Some(1));
    assert!(
        found.stderr.contains("`absent` is not declared"),
        "{}",
        found.stderr
    );
    assert!(found.stderr.len() < 2000, "{}", found.stderr.len());
}

#[test]
fn mistakes_in_programs_end_with_1() {
    let place = ProgramFolder::new("mistakes").with("bad.isf", "x = 3\ny := x + z\n");
    says(
        "program-errors",
        &place,
        &mut place.command(&["run", "bad.isf"]),
        1,
    );
    says(
        "program-errors-build",
        &place,
        &mut place.command(&["build", "bad.isf"]),
        1,
    );
    assert!(!place.path("bad").exists());
}

#[test]
fn json_is_for_editors() {
    let place = ProgramFolder::new("json").with("bad.isf", "é = 3\ns = \"é\" ; y = z\n");
    says(
        "json",
        &place,
        &mut place.command(&["check", "--json", "bad.isf"]),
        1,
    );
}

#[test]
fn json_can_be_read_from_standard_input() {
    let place = ProgramFolder::new("json-stdin");
    let found = outcome(
        &mut place.command(&["check", "--json", "-"]),
        Some(b"y = z\n"),
    )
    .unwrap();
    assert_eq!(found.code(), Some(1));
    assert!(
        found.stdout.contains("\"file\":\"<stdin>\""),
        "{}",
        found.stdout
    );
}

#[test]
fn sizes_are_told_member_by_member() {
    let place = ProgramFolder::new("sizes");
    let program = root().join("examples/03-ping-pong.isf");
    fs::copy(program, place.path("ping.isf")).unwrap();
    says(
        "sizes",
        &place,
        &mut place.command(&["check", "--sizes", "ping.isf"]),
        0,
    );
}

#[test]
fn exit_codes_and_arguments_are_the_programs_own() {
    let place = ProgramFolder::new("own").with("boom.isf", "n = 0\nprintInt(1 / n)\n");
    let found = place.call(&["run", "boom.isf"]);
    assert_eq!(found.code(), Some(1), "{found:?}");
    assert!(
        found.stderr.contains("DivisionByZeroException"),
        "{found:?}"
    );
}

#[test]
fn standard_input_reaches_the_program() {
    let place = ProgramFolder::new("stdin").with("echo.isf", "s = getString()\nprintString(s)\n");
    let found = outcome(&mut place.command(&["run", "echo.isf"]), Some(b"a word\n")).unwrap();
    assert_eq!(found.stdout, "a word");
}

#[test]
fn a_program_from_standard_input_runs() {
    let place = ProgramFolder::new("piped");
    let found = outcome(&mut place.command(&["run", "-"]), Some(HELLO.as_bytes())).unwrap();
    assert_eq!(
        (found.stdout.as_str(), found.code()),
        ("hello\n", Some(0)),
        "{found:?}"
    );
    let found = outcome(&mut place.command(&["build", "-"]), Some(HELLO.as_bytes())).unwrap();
    assert_eq!(found.code(), Some(2), "{found:?}");
}

#[test]
fn a_signal_ends_the_program_itself() {
    let place = ProgramFolder::new("signal").with(
        "wait.isf",
        "printString(\"ready\\n\")\ntick = new in bool\nsetTimer(tick, 3600.0, false)\nreceive t from tick\n",
    );
    let place = place.with("p.json", PROFILE);
    let child = place
        .command(&["run", "wait.isf"])
        .env("HEARTH_PROFILE", "p.json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Killed by the number that was started: if the program were a child, it would live on and
    // hold the pipe open for an hour.
    let mut process = Command::new("sh");
    let id = child.id();
    let script = format!(
        "while ! tr '\\0' ' ' < /proc/{id}/cmdline | grep -q '^wait '; do :; done; \
         grep -qzx HEARTH_PATIENCE=52 /proc/{id}/environ; told=$?; kill -KILL {id}; exit $told"
    );
    assert!(process.arg("-c").arg(script).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(9));
}

#[test]
fn an_unchanged_program_is_not_built_again() {
    let place = ProgramFolder::new("unchanged").with("hello.isf", HELLO);
    let cache = place.path("cache");
    let run = |cc: &str| {
        let mut command = plain_hearth();
        command
            .args(["run", "hello.isf"])
            .current_dir(&place.folder)
            .env("XDG_CACHE_HOME", &cache)
            .env("CC", cc);
        outcome(&mut command, None).unwrap()
    };
    // A compiler that counts how often it is called.
    let counter = place.path("counter");
    fs::write(
        place.path("counting-cc"),
        format!(
            "#!/bin/sh\necho called >> {}\nexec cc \"$@\"\n",
            counter.display()
        ),
    )
    .unwrap();
    fs::set_permissions(place.path("counting-cc"), fs::Permissions::from_mode(0o755)).unwrap();
    let cc = place.path("counting-cc").display().to_string();
    let calls = || {
        fs::read_to_string(&counter)
            .unwrap_or_default()
            .lines()
            .count()
    };
    for _ in 0..3 {
        assert_eq!(run(&cc).stdout, "hello\n");
    }
    assert_eq!(calls(), 1);
    fs::write(place.path("hello.isf"), "printString(\"other\\n\")\n").unwrap();
    assert_eq!(run(&cc).stdout, "other\n");
    assert_eq!(calls(), 2);
    fs::write(place.path("hello.isf"), HELLO).unwrap();
    assert_eq!(run(&cc).stdout, "hello\n");
    assert_eq!(calls(), 2, "the earlier build is still there");
    assert_eq!(fs::read_dir(cache.join("hearth/work")).unwrap().count(), 0);
}

#[test]
fn warnings_come_again_with_a_kept_build() {
    let place = ProgramFolder::new("warnings").with(
        "warn.isf",
        "type I is interface()\ncomponent C presents I {\n  constructor() { }\n  \
         behaviour { stop ; printInt(1) }\n}\nc = new C()\n",
    );
    let first = place.call(&["run", "warn.isf"]);
    let second = place.call(&["run", "warn.isf"]);
    assert!(first.stderr.contains("1 warning"), "{first:?}");
    assert_eq!(first.stderr, second.stderr);
}

#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    let place = ProgramFolder::new("together").with("hello.isf", HELLO);
    let cache = place.path("cache");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut command = place.command(&["run", "hello.isf"]);
                    outcome(command.env("XDG_CACHE_HOME", &cache), None).unwrap()
                })
            })
            .collect();
        for run in runs {
            let found = run.join().unwrap();
            assert_eq!(
                (found.stdout.as_str(), found.stderr.as_str()),
                ("hello\n", "")
            );
        }
    });
}

#[test]
fn a_damaged_cache_is_mended() {
    let place = ProgramFolder::new("damaged").with("hello.isf", HELLO);
    let cache = place.path("cache");
    let run = || {
        let mut command = place.command(&["run", "hello.isf"]);
        outcome(command.env("XDG_CACHE_HOME", &cache), None).unwrap()
    };
    run();
    let entry = fs::read_dir(cache.join("hearth/programs"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    fs::remove_file(entry.path().join("program")).unwrap();
    assert_eq!(run().stdout, "hello\n");
    fs::write(entry.path().join("record"), "something else").unwrap();
    assert_eq!(run().stdout, "hello\n");
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let place = ProgramFolder::new("no-cache")
        .with("hello.isf", HELLO)
        .with("file", "");
    let temporary = empty_folder("no-cache-temporary");
    let mut command = place.command(&["run", "hello.isf"]);
    command
        .env("XDG_CACHE_HOME", place.path("file"))
        .env("TMPDIR", &temporary);
    says("cache-unfit", &place, &mut command, 0);
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "nothing stays behind"
    );
    if !is_root() {
        let cache = place.path("cache");
        fs::create_dir(&cache).unwrap();
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o555)).unwrap();
        let mut command = place.command(&["run", "hello.isf"]);
        command.env("XDG_CACHE_HOME", &cache);
        says("cache-read-only", &place, &mut command, 0);
    }
}

#[test]
fn without_a_home_there_is_no_cache_and_no_complaint() {
    let place = ProgramFolder::new("homeless").with("hello.isf", HELLO);
    let mut command = place.command(&["run", "hello.isf"]);
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    let found = outcome(&mut command, None).unwrap();
    assert_eq!(
        (found.stdout.as_str(), found.stderr.as_str()),
        ("hello\n", "")
    );
}

/// A C compiler that says something and fails.
fn failing_compiler(place: &ProgramFolder, says: &str) -> String {
    let path = place.path("failing-cc");
    fs::write(&path, format!("#!/bin/sh\necho '{says}' >&2\nexit 1\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_full_disk() {
    let place = ProgramFolder::new("full").with("hello.isf", HELLO);
    let cc = failing_compiler(
        &place,
        "fatal error: error writing to x.s: No space left on device",
    );
    let temporary = empty_folder("full-temporary");
    let mut command = place.command(&["run", "hello.isf"]);
    command
        .env("CC", cc)
        .env("XDG_CACHE_HOME", place.path("cache"))
        .env("TMPDIR", &temporary);
    let found = outcome(&mut command, None).unwrap();
    assert_eq!(
        found.stderr,
        format!(
            "hearth: note: cannot keep the build in {}: the disk is full; using a temporary \
             directory\nhearth: cannot build in {}: the disk is full; set TMPDIR to a directory \
             with some room\n",
            place.path("cache/hearth").display(),
            temporary.display()
        )
    );
    assert_eq!(found.code(), Some(3));
}

#[test]
fn no_c_compiler() {
    let place = ProgramFolder::new("no-cc")
        .with("hello.isf", HELLO)
        .with("bad.isf", "x = y\n");
    let without = |words: &[&str]| {
        let mut command = place.command(words);
        command.env_remove("CC").env("PATH", &place.folder);
        command
    };
    says("no-cc", &place, &mut without(&["run", "hello.isf"]), 3);
    says(
        "no-cc-named",
        &place,
        without(&["run", "hello.isf"]).env("CC", "mycc"),
        3,
    );
    // What is wrong with the program can be said all the same.
    assert_eq!(
        outcome(&mut without(&["run", "bad.isf"]), None)
            .unwrap()
            .code(),
        Some(1)
    );
}

#[test]
fn a_c_compiler_that_cannot_do_anything() {
    let place = ProgramFolder::new("poor-cc").with("hello.isf", HELLO);
    let cc = failing_compiler(
        &place,
        "x.c:1:10: fatal error: stdint.h: No such file or directory",
    );
    let mut command = place.command(&["run", "hello.isf"]);
    says("poor-cc", &place, command.env("CC", cc), 3);
}

#[test]
fn c_that_is_refused_is_our_fault() {
    let place = ProgramFolder::new("our-fault").with("hello.isf", HELLO);
    // Fails on everything but the probe.
    let path = place.path("picky-cc");
    fs::write(
        &path,
        "#!/bin/sh\ncase \"$*\" in *probe.c*) exit 0 ;; esac\necho 'program.c: error: odd' >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = place.command(&["run", "hello.isf"]);
    command.env("CC", &path).env("TMPDIR", &place.folder);
    let found = outcome(&mut command, None).unwrap();
    assert_eq!(found.code(), Some(4));
    for piece in [
        "our fault",
        "version  hearth ",
        "program.c: error: odd",
        "Please report it",
    ] {
        assert!(found.stderr.contains(piece), "{}", found.stderr);
    }
    let kept = fs::read_dir(&place.folder).unwrap().flatten().any(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("hearth-report-")
    });
    assert!(kept, "the C is kept to be sent");
}

#[test]
fn no_runtime_library() {
    let place = ProgramFolder::new("no-library").with("hello.isf", HELLO);
    let mut command = place.command(&["run", "hello.isf"]);
    says(
        "no-library",
        &place,
        command.env("HEARTH_LIB", &place.folder),
        3,
    );
}

#[test]
fn build_writes_where_it_is_told() {
    let place = ProgramFolder::new("build").with("hello.isf", HELLO);
    assert_eq!(place.call(&["build", "hello.isf"]).code(), Some(0));
    let found = outcome(&mut Command::new(place.path("hello")), None).unwrap();
    assert_eq!(found.stdout, "hello\n");
    assert_eq!(
        place
            .call(&["build", "hello.isf", "-o", "other", "--debug"])
            .code(),
        Some(0)
    );
    let found = outcome(&mut Command::new(place.path("other")), None).unwrap();
    assert_eq!(found.stdout, "hello\n");
    let c = place.call(&["build", "hello.isf", "--emit", "c"]).stdout;
    assert!(c.contains("hearth_main"), "{c}");
    assert_eq!(
        place
            .call(&["build", "hello.isf", "--emit", "c", "-o", "h.c"])
            .code(),
        Some(0)
    );
    assert_eq!(fs::read_to_string(place.path("h.c")).unwrap(), c);
    let left: Vec<_> = fs::read_dir(&place.folder)
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A pipe stands for `/dev/null` here, which a failure would replace.
#[test]
fn a_pipe_stays_a_pipe_when_it_is_written_to() {
    let place = ProgramFolder::new("build-special").with("hello.isf", HELLO);
    let pipe = place.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo starts").success());
    for words in [
        &["build", "hello.isf", "-o", "pipe"][..],
        &["build", "--emit=c", "hello.isf", "-o", "pipe"],
    ] {
        let mut command = place.command(words);
        let mut child = command.spawn().expect("the command starts");
        let written = fs::read(&pipe).expect("it is read");
        assert!(child.wait().expect("it ends").success());
        assert!(!written.is_empty());
        let kind = fs::symlink_metadata(&pipe)
            .expect("it is there")
            .file_type();
        assert!(!kind.is_file(), "{words:?}");
    }
}

#[test]
fn build_refuses_unfit_places() {
    let place = ProgramFolder::new("build-unfit")
        .with("hello.isf", HELLO)
        .with("program", HELLO);
    fs::create_dir(place.path("folder")).unwrap();
    let cases: &[(&str, &[&str], i32)] = &[
        ("build-onto-itself", &["build", "program"], 2),
        (
            "build-onto-directory",
            &["build", "hello.isf", "-o", "folder"],
            2,
        ),
        (
            "build-no-directory",
            &["build", "hello.isf", "-o", "nowhere/hello"],
            3,
        ),
    ];
    for (name, words, exit) in cases {
        says(name, &place, &mut place.command(words), *exit);
    }
    assert_eq!(fs::read_to_string(place.path("program")).unwrap(), HELLO);
}

#[test]
fn a_closed_pipe_is_no_mistake() {
    let mut child = hearth()
        .arg("explain")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn output_that_cannot_be_written_is_told() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = hearth().arg("explain").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "hearth: cannot write the output: the disk is full\n"
    );
}

#[test]
fn fmt_rewrites_checks_and_filters() {
    let place = ProgramFolder::new("fmt")
        .with("a.isf", "x   =   3\n")
        .with("bad.isf", "x = = 3\n");
    fs::set_permissions(place.path("a.isf"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("a.isf", place.path("link.isf")).unwrap();
    says(
        "fmt-check",
        &place,
        &mut place.command(&["fmt", "--check", "a.isf"]),
        1,
    );
    assert_eq!(
        fs::read_to_string(place.path("a.isf")).unwrap(),
        "x   =   3\n"
    );
    let piped = outcome(&mut place.command(&["fmt", "-"]), Some(b"x   =   3\n")).unwrap();
    assert_eq!(piped.stdout, "x = 3\n");
    assert_eq!(place.call(&["fmt", "link.isf"]).code(), Some(0));
    assert_eq!(fs::read_to_string(place.path("a.isf")).unwrap(), "x = 3\n");
    assert!(
        fs::symlink_metadata(place.path("link.isf"))
            .unwrap()
            .is_symlink()
    );
    let mode = fs::metadata(place.path("a.isf"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(place.call(&["fmt", "--check", "a.isf"]).code(), Some(0));
    says(
        "fmt-errors",
        &place,
        &mut place.command(&["fmt", "bad.isf"]),
        1,
    );
    assert_eq!(
        fs::read_to_string(place.path("bad.isf")).unwrap(),
        "x = = 3\n"
    );
}

#[test]
fn new_makes_a_project_that_runs() {
    let place = ProgramFolder::new("new");
    says("new", &place, &mut place.command(&["new", "play"]), 0);
    let found = place.call(&["run", "play/main.isf"]);
    assert_eq!(
        (found.stdout.as_str(), found.code()),
        ("1\n2\n3\n", Some(0)),
        "{found:?}"
    );
    assert_eq!(place.call(&["fmt", "--check", "play/main.isf"]).stdout, "");
    says(
        "new-occupied",
        &place,
        &mut place.command(&["new", "play"]),
        2,
    );
    fs::create_dir(place.path("ready")).unwrap();
    assert_eq!(place.call(&["new", "ready"]).code(), Some(0));
}

#[test]
fn explain_knows_every_code() {
    let place = ProgramFolder::new("explain");
    let list = place.call(&["explain"]).stdout;
    assert!(list.lines().count() > 30, "{list}");
    for line in list.lines() {
        let code = line.split(' ').next().unwrap();
        let story = place.call(&["explain", &code.to_lowercase()]).stdout;
        assert!(story.starts_with(code), "{story}");
        assert!(
            story.lines().count() > 3,
            "{code} has no story worth telling: {story}"
        );
    }
    says(
        "explain-unknown",
        &place,
        &mut place.command(&["explain", "E9999"]),
        2,
    );
}

#[test]
fn completions_and_manual_pages_come_from_the_definition() {
    let place = ProgramFolder::new("manual");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.call(&["completions", shell]).stdout;
        assert!(script.contains("explain"), "{shell}: {script}");
    }
    assert!(place.call(&["man"]).stdout.contains(".TH hearth"));
    assert_eq!(place.call(&["man", "man1"]).code(), Some(0));
    for page in [
        "hearth.1",
        "hearth-run.1",
        "hearth-check.1",
        "hearth-explain.1",
    ] {
        let text = fs::read_to_string(place.path("man1").join(page)).unwrap();
        assert!(text.contains("hearth"), "{page}");
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let place = ProgramFolder::new("colours").with("bad.isf", "x = y\n");
    // `script` gives the command a terminal; without it there is nothing to see.
    let terminal = |environment: &[(&str, &str)]| {
        let mut command = Command::new("script");
        command
            .args(["--quiet", "--return", "--command"])
            .arg(format!("{} check bad.isf", env!("CARGO_BIN_EXE_hearth")))
            .arg("/dev/null")
            .current_dir(&place.folder)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm");
        for (name, value) in environment {
            command.env(name, value);
        }
        outcome(&mut command, None)
    };
    if let Ok(found) = terminal(&[]) {
        assert!(found.stdout.contains("\u{1b}["), "{found:?}");
        assert!(
            !terminal(&[("NO_COLOR", "1")])
                .unwrap()
                .stdout
                .contains("\u{1b}[")
        );
    }
    let mut piped = place.command(&["check", "bad.isf"]);
    let found = outcome(piped.env_remove("NO_COLOR"), None).unwrap();
    assert!(!found.stderr.contains("\u{1b}["), "{found:?}");
}

#[test]
fn many_files_are_all_checked() {
    let mut place = ProgramFolder::new("many");
    let mut words = vec!["check".to_owned()];
    for i in 0..20 {
        place = place.with(&format!("{i}.isf"), format!("x = y{i}\n"));
        words.push(format!("{i}.isf"));
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let found = place.call(&words);
    assert_eq!(found.code(), Some(1));
    assert!(found.stderr.ends_with("\n20 errors\n"), "{}", found.stderr);
}
