//! Programs under the library: what they see of the machine, sizes of their teams, and claims
//! from C.
#![allow(clippy::print_stdout, reason = "a test says why it is skipped")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{fs, process};

use hearth_testing::library;

/// The folder with the library, built once.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| library::build("hearth-claim-c"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/c")
        .join(name)
}

/// A program for a test. None if the compiler is missing or lacks what it needs.
fn compiled(compiler: &str, name: &str, test: &str, flags: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("claim-{}", process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join(test);
    let mut command = Command::new(compiler);
    command
        .args(["-O1", "-Wall", "-Wextra"])
        .arg(source(name))
        .arg("-o")
        .arg(&program);
    let output = command.args(flags).output().ok()?;
    output.status.success().then_some(program)
}

fn preloaded(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", built().join("libhearth_claim.so"));
    command
}

fn cpus() -> usize {
    hearth_sys::affinity::allowed().len()
}

fn shown(output: &Output) -> String {
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && error.is_empty(),
        "{}: {out}{error}",
        output.status
    );
    out
}

/// Regions run as many threads as there are CPUs, but never more than the program may know of.
fn regions_follow_the_cpus(program: &Path) {
    let all = cpus();
    let expected = |most: usize, wide: usize| {
        let line =
            |team: usize| format!("most {most}, teams {team} {team} {team} {team}, named 3\n");
        format!("{}{}online 1, configured 1, page 1\n", line(wide), line(1))
    };
    let output = preloaded(program)
        .env("OMP_NUM_THREADS", "8")
        .output()
        .expect("it starts");
    assert_eq!(shown(&output), expected(8, all.min(8)));
    let output = preloaded(program)
        .env("OMP_NUM_THREADS", "1")
        .output()
        .expect("it starts");
    assert_eq!(shown(&output), expected(1, 1));
    // The test can tell the difference.
    let mut without = Command::new(program);
    let output = without
        .env("OMP_NUM_THREADS", "8")
        .output()
        .expect("it starts");
    assert!(shown(&output).starts_with("most 8, teams 8 8 8 8"));
}

#[test]
fn regions_of_gcc_follow_the_cpus() {
    let program = compiled("gcc", "regions.c", "gcc", &["-fopenmp"]).expect("GCC has OpenMP");
    regions_follow_the_cpus(&program);
}

#[test]
fn regions_of_clang_follow_the_cpus() {
    match compiled("clang", "regions.c", "clang", &["-fopenmp"]) {
        Some(program) => regions_follow_the_cpus(&program),
        None => println!("skipped: no clang with OpenMP; install clang and libomp-dev"),
    }
}

#[test]
fn programs_count_their_own_cpus() {
    let Ok(output) = preloaded(Path::new("python3"))
        .args(["-c", "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); print(os.cpu_count())"])
        .output()
    else {
        println!("skipped: no python3");
        return;
    };
    assert_eq!(shown(&output), "1\n");
}

#[test]
fn claims_from_c() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let (include, folder) = (
        format!("-I{}", include.display()),
        built().display().to_string(),
    );
    let (search, run) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    let flags = [
        "-Werror",
        &include,
        &search,
        &run,
        "-lhearth_claim",
        "-pthread",
    ];
    let program = compiled("cc", "claims.c", "claims", &flags).expect("it compiles");
    let registry = program.with_extension("registry");
    fs::create_dir_all(&registry).expect("a folder");
    let output = Command::new(&program)
        .env("HEARTH_CLAIMS", &registry)
        .output();
    let output = output.expect("it starts");
    assert_eq!(shown(&output), "somebody looks after this claim already\n");
    let output = Command::new(&program)
        .env("HEARTH_CLAIMS", "/dev/null")
        .output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stdout).contains("is no folder"),
        "{}",
        text(&output.stdout)
    );
}
