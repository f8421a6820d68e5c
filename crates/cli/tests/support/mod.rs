//! Shared parts of the command's tests: paths, calling the command, golden files.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod workspace;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Time for which a test waits for another process: no program of ours takes a hundredth of this on
/// an idle machine, and a busy one has been seen thirty times slower.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        std::fs::canonicalize(here.join("../..")).expect("the repository has a root")
    })
}

/// The command as a user calls it, away from the user's own settings. Programs are built without
/// a warning or not at all, or as `HEARTH_TEST_CC` says.
pub(crate) fn hearth() -> Command {
    let mut command = plain_hearth();
    if is_sanitized() {
        command.env("HEARTH_HEAPS", "system");
    }
    command.env("CC", test_compiler());
    command
}

fn test_compiler() -> OsString {
    std::env::var_os("HEARTH_TEST_CC").unwrap_or("cc -Werror".into())
}

/// Is there a sanitizer in the programs? It knows the blocks of its own allocator alone: what is
/// referred to in a heap of Hearth's is lost to it.
pub(crate) fn is_sanitized() -> bool {
    test_compiler().to_string_lossy().contains("-fsanitize")
}

/// The same without a say in the C compiler.
pub(crate) fn plain_hearth() -> Command {
    let mut command = Command::new(program());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HEARTH_") {
            command.env_remove(name);
        }
    }
    command
        .env("HEARTH_LIB", library_folder())
        .env("XDG_CACHE_HOME", scratch().join("cache"))
        .env("NO_COLOR", "1")
        // Lights would mix with what programs say on standard error.
        .env("HEARTH_DEVICE_LEDS", "off")
        // What it finds depends on the machine.
        .env("HEARTH_PROFILE_CHECK", "off")
        .env_remove("CC");
    command
}

/// A folder that tests may fill; it outlives them.
pub(crate) fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// An empty folder of a test's own.
pub(crate) fn empty_folder(name: &str) -> PathBuf {
    let folder = scratch().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a scratch folder can be made");
    folder
}

/// The command. Cargo builds it for this crate's own tests; those of other crates ask for it.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| match option_env!("CARGO_BIN_EXE_hearth") {
        Some(path) => path.into(),
        None => built(&["--package", "hearth-cli"]).join("hearth"),
    })
}

/// The folder of the library that programs are linked with. Cargo builds it only on request.
fn library_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = built(&["--package", "hearth-runtime", "--lib"]);
        without_debugging(&folder).unwrap_or(folder)
    })
}

/// Builds something in the profile of this test, and says where Cargo puts it.
pub(crate) fn built(what: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its file");
    let folder = test.ancestors().nth(2).expect("a test is in deps");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["build", "--quiet", "--profile", profile])
        .args(what)
        .arg("--target-dir")
        .arg(folder.parent().expect("a profile has a folder"))
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "{what:?} does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder.to_owned()
}

/// A folder with a copy of the library in `folder` that has nothing for debuggers: most of what a
/// linker reads of it, hundreds of times. None if it cannot be made.
fn without_debugging(folder: &Path) -> Option<PathBuf> {
    let name = "libhearth_runtime.a";
    let lean = scratch().join("library");
    std::fs::create_dir_all(&lean).ok()?;
    // Test programs may run side by side: each makes its own, and the last one stays.
    let copy = lean.join(format!("{}.a", std::process::id()));
    let stripped = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .args([&copy, &folder.join(name)])
        .status();
    stripped.ok().filter(ExitStatus::success)?;
    std::fs::rename(&copy, lean.join(name)).ok()?;
    Some(lean)
}

/// Runs the command in a folder, without the choices of a monitor.
pub(crate) fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = hearth();
    command.args(arguments).current_dir(folder);
    command.output().expect("the command starts")
}

/// Bytes that a program printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program that does not outlive its test.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }
}

/// Runs a command to its end, or kills it when patience ends.
pub(crate) fn outcome(command: &mut Command, stdin: Option<&[u8]>) -> Result<Outcome, String> {
    let mut child = command
        .stdin(match stdin {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    if let (Some(mut pipe), Some(text)) = (child.stdin.take(), stdin) {
        let text = text.to_owned();
        // A program need not read what it is given.
        std::thread::spawn(move || pipe.write_all(&text));
    }
    let (sender, texts) = channel();
    let read = |what: usize, pipe: Option<Box<dyn Read + Send>>| {
        let sender = sender.clone();
        let mut pipe = pipe.expect("it is piped");
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            // Nobody listens any more if patience has ended.
            let _ = sender.send((what, bytes));
        });
    };
    read(0, child.stdout.take().map(|pipe| Box::new(pipe) as _));
    read(1, child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let mut found = [String::new(), String::new()];
    for _ in 0..2 {
        match texts.recv_timeout(PATIENCE) {
            Ok((what, bytes)) => found[what] = String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "it was killed: it did not end within {} s",
                    PATIENCE.as_secs()
                ));
            }
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let [stdout, stderr] = found;
    Ok(Outcome {
        status,
        stdout,
        stderr,
    })
}

/// Are golden files to be written instead of compared?
pub(crate) fn blessing() -> bool {
    std::env::var_os("HEARTH_BLESS").is_some_and(|value| value == "1")
}

/// Compares with a golden file, or makes it.
pub(crate) fn golden(path: &Path, actual: &str) -> Result<(), String> {
    if blessing() {
        if std::fs::read_to_string(path).ok().as_deref() != Some(actual) {
            std::fs::create_dir_all(path.parent().expect("a file is in a folder"))
                .and_then(|()| std::fs::write(path, actual))
                .map_err(|error| format!("cannot bless {}: {error}", path.display()))?;
        }
        return Ok(());
    }
    let name = path.strip_prefix(root()).unwrap_or(path).display();
    let expected = std::fs::read_to_string(path)
        .map_err(|error| format!("{name}: {error}; `./x bless` makes it"))?;
    same(&expected, actual).map_err(|difference| {
        format!("{name} differs; `./x bless` accepts what is there now\n{difference}")
    })
}

/// Says where two texts part, with the lines from there on.
pub(crate) fn same(expected: &str, actual: &str) -> Result<(), String> {
    if expected == actual {
        return Ok(());
    }
    let alike = expected
        .lines()
        .zip(actual.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let rest = |text: &str| {
        let lines: Vec<_> = text.lines().skip(alike).take(12).collect();
        if lines.is_empty() {
            return "    (nothing more)".to_owned();
        }
        lines
            .iter()
            .map(|line| format!("    {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    Err(format!(
        "from line {}, expected:\n{}\n  found:\n{}",
        alike + 1,
        rest(expected),
        rest(actual)
    ))
}

/// All files under a folder of the repository with one of these endings, in order; what git
/// ignores is not ours.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), endings, &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}
