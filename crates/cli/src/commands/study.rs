//! `hearth study`: another program, `hearth-study`, runs the studies. It is found beside this one
//! or on the PATH, as Cargo finds its subcommands.

use std::env;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hearth_terminal::Failure;
use hearth_text::cause;

const PROGRAM: &str = "hearth-study";

/// Becomes `hearth-study`, with the words behind `study`, which have been checked.
pub(crate) fn study() -> Result<(), Failure> {
    let words = env::args_os().skip(2);
    Err(missing(&program().args(words).exec()))
}

/// The answer of `hearth-study` to these words, with `input` as its standard input. It reports its
/// own errors.
pub(crate) fn answer(words: &[String], input: &str) -> Result<String, Failure> {
    let started = program()
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|error| missing(&error))?;
    if let Some(mut pipe) = child.stdin.take() {
        // If it ends before it has read everything, its exit code says why.
        let _ = pipe.write_all(input.as_bytes());
    }
    let ended = child.wait_with_output().map_err(|error| missing(&error))?;
    match ended.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&ended.stdout).into_owned()),
        Some(code) => Err(Failure::Ended(u8::try_from(code).unwrap_or(1))),
        None => Err(Failure::environment(format!("{PROGRAM}: {}", ended.status))),
    }
}

fn program() -> Command {
    let beside = env::current_exe()
        .ok()
        .map(|here| here.with_file_name(PROGRAM));
    Command::new(
        beside
            .filter(|path| path.is_file())
            .unwrap_or(PathBuf::from(PROGRAM)),
    )
}

fn missing(error: &io::Error) -> Failure {
    Failure::environment(format!(
        "cannot start {PROGRAM}, which runs the studies: {}; `./x install` installs it beside hearth, \
         and `cargo build --release --package {PROGRAM}` builds it",
        cause(error)
    ))
}
