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
        format!("{}{}online 1, ", line(wide), line(1))
    };
    // What the machine has is what it has without the library.
    let configured = |output: &Output| {
        let words = text(&output.stdout);
        words
            .split_once("configured ")
            .expect("the last line")
            .1
            .to_owned()
    };
    let output = preloaded(program)
        .env("OMP_NUM_THREADS", "8")
        .output()
        .expect("it starts");
    assert!(shown(&output).starts_with(&expected(8, all.min(8))));
    let under_library = configured(&output);
    let output = preloaded(program)
        .env("OMP_NUM_THREADS", "1")
        .output()
        .expect("it starts");
    assert!(shown(&output).starts_with(&expected(1, 1)));
    // Threads that are bound to places have one each.
    let output = preloaded(program)
        .env("OMP_NUM_THREADS", "2")
        .env("OMP_PROC_BIND", "true")
        .output()
        .expect("it starts");
    assert!(shown(&output).starts_with("most 2, teams 2 2 2 2, named 3"));
    // The test can tell the difference.
    let mut without = Command::new(program);
    let output = without
        .env("OMP_NUM_THREADS", "8")
        .output()
        .expect("it starts");
    assert!(shown(&output).starts_with("most 8, teams 8 8 8 8"));
    assert_eq!(configured(&output), under_library);
}

/// A copy of GCC's runtime that the linker takes for another library: with a name of its own, which
/// is as long.
fn copied_runtime(folder: &Path, name: &str) -> PathBuf {
    let output = Command::new("gcc")
        .arg("-print-file-name=libgomp.so")
        .output();
    let original = text(&output.expect("it starts").stdout);
    let mut bytes = fs::read(original.trim()).expect("GCC's runtime");
    let usual = b"libgomp.so.1";
    assert_eq!(name.len(), usual.len());
    let places: Vec<usize> = bytes
        .windows(usual.len())
        .enumerate()
        .filter(|(_, window)| window == usual)
        .map(|(at, _)| at)
        .collect();
    for at in places {
        bytes[at..at + usual.len()].copy_from_slice(name.as_bytes());
    }
    let copy = folder.join(name);
    fs::write(&copy, bytes).expect("it is written");
    copy
}

/// Python's packages bring runtimes of their own, which only they see.
#[test]
fn each_plugin_keeps_its_own_runtime() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plugins-{}", process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let run = format!("-Wl,-rpath,{}", folder.display());
    let plugins = ["libgompA.so1", "libgompB.so1"].map(|name| {
        let runtime = copied_runtime(&folder, name);
        let plugin = folder.join(format!("plugin-{name}"));
        let mut object = Command::new("gcc");
        object.args(["-O1", "-fopenmp", "-fPIC", "-c", "-o"]);
        object
            .arg(plugin.with_extension("o"))
            .arg(source("plugin.c"));
        assert!(object.status().expect("it starts").success());
        let mut link = Command::new("gcc");
        link.args(["-shared", "-o"])
            .arg(&plugin)
            .arg(plugin.with_extension("o"));
        assert!(
            link.arg(&runtime)
                .arg(&run)
                .status()
                .expect("it starts")
                .success()
        );
        plugin
    });
    let program = compiled("gcc", "plugins.c", "plugins", &["-ldl"]).expect("it compiles");
    for mut command in [Command::new(&program), preloaded(&program)] {
        let output = command.args(&plugins).env("OMP_NUM_THREADS", "2").output();
        let said = shown(&output.expect("it starts"));
        let team = cpus().min(2);
        let is_usual = said == "499500 2\n499500 2\n";
        assert!(
            is_usual || said == format!("499500 {team}\n499500 {team}\n"),
            "{said}"
        );
    }
    fs::remove_dir_all(folder).expect("it is there");
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
    assert_eq!(
        shown(&output),
        "this process has a claim already; end it before another begins\n\
         somebody looks after this claim already\n"
    );
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
