//! Builds programs written in C by hand, and runs them to their end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Finds the static library that Cargo built for these tests: the newest, if there are several.
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
pub(crate) fn build(name: &str) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-fwrapv",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .arg("-I")
        .arg(crate_folder.join("../abi/include"))
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

pub(crate) fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits for the end; a program that does not end in time is killed and fails the test.
pub(crate) fn finish(mut child: Child) -> Output {
    let end = Instant::now() + Duration::from_secs(60);
    let id = child.id();
    drop(child.stdin.take());
    let (ended, watch) = std::sync::mpsc::channel();
    let guard = std::thread::spawn(move || {
        let is_late = watch.recv_timeout(end - Instant::now()).is_err();
        if is_late {
            let _ = Command::new("kill")
                .args(["-KILL", &id.to_string()])
                .status();
        }
        is_late
    });
    let output = child.wait_with_output().unwrap();
    let _ = ended.send(());
    assert!(!guard.join().unwrap(), "the program does not end");
    output
}

/// Exit code, standard output, standard error.
pub(crate) type Outcome = (Option<i32>, String, String);

pub(crate) fn outcome_of(output: &Output) -> Outcome {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}
