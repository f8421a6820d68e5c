//! Builds the library and the programs, and runs them with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use hearth_testing::toolchain::{End, Ran, run};

/// A build of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The shipped build.
    Release,
    /// With assertions.
    Development,
}

/// A program that takes longer hangs. Busy machines are slow, and children may be many.
const PATIENCE: Duration = Duration::from_secs(900);

/// The library, built once.
pub(crate) fn library(profile: Profile) -> &'static Path {
    static BUILT: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    let (name, folder, place) = match profile {
        Profile::Release => ("release", "release", 0),
        Profile::Development => ("dev", "debug", 1),
    };
    BUILT[place].get_or_init(|| {
        // Test programs lie in the folder `deps` of their profile, in the target folder.
        let this = std::env::current_exe().expect("a test has a path");
        let target = this
            .ancestors()
            .nth(3)
            .expect("a test lies in the target folder");
        let output = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "hearth-malloc", "--lib"])
            .args(["--profile", name, "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo can be started");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        target.join(folder).join("libhearth_malloc.so")
    })
}

/// The program or library of a source file, built once with the flags it needs.
pub(crate) fn built(source: &str) -> PathBuf {
    built_with(source, &[])
}

/// The same with more flags.
pub(crate) fn built_with(source: &str, flags: &[&str]) -> PathBuf {
    static LOCK: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preload/c");
    let name = [&[source], flags].concat().concat();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.replace(['.', '=', ','], "-"));
    let mut all = LOCK.lock().expect("no test panics while it builds");
    if all.contains(&name) {
        return path;
    }
    let (compiler, standard) = if source.ends_with(".cc") {
        ("c++", "-std=c++17")
    } else {
        ("cc", "-std=gnu11")
    };
    let shared: &[&str] = match source {
        // Before the program, and before all other libraries.
        "early.c" => &["-shared", "-fPIC", "-Wl,-z,initfirst"],
        // Its functions come before the C library's.
        "faults.c" => &["-rdynamic"],
        _ => &[],
    };
    let output = Command::new(compiler)
        .args([standard, "-O1", "-g", "-Wall", "-Wextra", "-pthread"])
        // The compiler's knowledge of malloc must not hide what is tested.
        .args([
            "-fno-builtin",
            "-Wno-use-after-free",
            "-Wno-unknown-warning-option",
        ])
        .args(["-Wno-free-nonheap-object"])
        .args(shared)
        .args(flags)
        .arg("-o")
        .arg(&path)
        .arg(folder.join(source))
        .arg("-ldl")
        .env("LC_ALL", "C")
        .output()
        .unwrap_or_else(|error| panic!("{compiler} cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source}: {said}");
    all.push(name);
    path
}

/// A case of a program, with the library or the system's malloc.
pub(crate) fn command(source: &str, case: &str, with: Option<Profile>) -> Command {
    let mut command = Command::new(built(source));
    command.arg(case).env_remove("LD_PRELOAD");
    if let Some(profile) = with {
        command.env("LD_PRELOAD", library(profile));
    }
    command
}

/// Runs it to its end.
pub(crate) fn finish(command: &mut Command) -> Ran {
    run(command, PATIENCE).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs it; it must pass.
pub(crate) fn passes(command: &mut Command) {
    passes_within(command, PATIENCE);
}

/// Runs it; it must pass, and is killed if it takes longer.
pub(crate) fn passes_within(command: &mut Command, limit: Duration) {
    let ran = run(command, limit).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let passed = ran.end == End::Exit(0) && ran.stdout.ends_with("passed\n");
    assert!(passed, "{command:?}\n{ran:?}");
}

/// Whether `./x test --deep` asks for more and longer tests.
pub(crate) fn is_deep() -> bool {
    std::env::var_os("HEARTH_TEST_DEEP").is_some()
}

/// Tests of a program's cases: they pass with the shipped library, the development build, and the
/// system's malloc.
macro_rules! cases_pass {
    ($source:literal: $($name:ident = $case:literal;)*) => { $(
        #[test]
        fn $name() {
            use $crate::support::{Profile, command, passes};
            for with in [None, Some(Profile::Release), Some(Profile::Development)] {
                passes(&mut command($source, $case, with));
            }
        }
    )* };
}
pub(crate) use cases_pass;
