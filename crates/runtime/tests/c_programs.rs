//! Programs written in C against the header, linked with the static library and run.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The static library that Cargo built for these tests: the newest, should there be several.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libhearth_runtime-") && name.ends_with(".a")
    };
    std::fs::read_dir(test.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(is_library)
        .max_by_key(|path| path.metadata().unwrap().modified().unwrap())
        .expect("Cargo builds the static library next to the tests")
}

/// Compiles `tests/c/<name>.c`.
fn build(name: &str) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new("cc")
        .args([
            "-std=c11", "-O1", "-g", "-fwrapv", "-Wall", "-Wextra", "-Werror",
        ])
        .arg("-I")
        .arg(crate_folder.join("include"))
        .arg(crate_folder.join("tests/c").join(format!("{name}.c")))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("these tests need a C compiler: apt install gcc");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// Runs a program; one that does not end in time is killed and fails the test.
fn run_with(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut child = Command::new(build(name))
        .args(arguments)
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
            let mut text = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            panic!("{name} does not end: {text}");
        }
        std::thread::yield_now();
    }
    child.wait_with_output().unwrap()
}

fn check(name: &str, arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    let output = run_with(name, arguments, &[]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let found = (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    );
    assert_eq!(
        found,
        (Some(code), stdout.to_owned(), stderr.to_owned()),
        "{name} {arguments:?}"
    );
}

#[test]
fn ping_pong() {
    check("ping_pong", &[], 0, "500500\n", "");
}
