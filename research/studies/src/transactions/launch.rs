//! One run, in a process of its own: a tool of the study's program makes it and prints figures.
//!
//! | figure | what |
//! |---|---|
//! | `rate` | transactions a second |
//! | `aborts` | attempts that met a conflict, a transaction |
//! | `seconds`, `commits` | the length of the run, and its transactions |
//! | `bytes`, `bytes_a_txn` | bytes of the trace |
//! | `lost` | events that are missing in it |
//! | `grown_kib` | the most memory of the process, less what it had before the program was made |

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hearth_transactions::contender::{Load, Task, Tracing, measure};
use hearth_transactions::kernels::{Name, Size};

use super::options::{Experiment, TransactionsOptions};
use super::plan::{BANK, Case};
use crate::StudyError;
use crate::study::Ended;

/// A run, as it is asked of the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// A way to trace.
    pub tracing: String,
    /// [`BANK`], or a kernel's name.
    pub program: String,
    /// Its threads.
    pub threads: usize,
    /// The seed of its input.
    pub seed: u64,
    /// Length of a run of the bank.
    pub milliseconds: u32,
    /// Kernels have their small inputs.
    pub is_small: bool,
    /// Folder for the trace's files; nowhere if there is none.
    pub folder: Option<PathBuf>,
}

/// Makes a run and gives its figures by name.
///
/// # Errors
/// There is no such way or program; the run failed. In words.
pub fn figures(asked: &Asked) -> Result<BTreeMap<String, f64>, String> {
    let tracing = Tracing::named(&asked.tracing)
        .ok_or_else(|| format!("there is no way to trace called {}", asked.tracing))?;
    let load = if asked.program == BANK {
        Load::Bank(Duration::from_millis(asked.milliseconds.into()))
    } else {
        let name = Name::named(&asked.program)
            .ok_or_else(|| format!("there is no program called {}", asked.program))?;
        let size = match asked.is_small {
            true => Size::Small,
            false => Size::Published,
        };
        Load::Kernel(name, size)
    };
    let task = Task {
        load,
        threads: asked.threads,
        seed: asked.seed,
        folder: asked.folder.clone(),
    };
    let outcome = measure(tracing, &task)?;
    let commits = outcome.ran.commits as f64;
    let figures = [
        ("rate", outcome.ran.rate()),
        ("aborts", outcome.ran.aborts()),
        ("seconds", outcome.ran.seconds),
        ("commits", commits),
        ("bytes", outcome.bytes as f64),
        ("bytes_a_txn", outcome.bytes as f64 / commits.max(1.0)),
        ("lost", outcome.lost as f64),
        ("grown_kib", outcome.grown_kib as f64),
    ];
    let named = figures.map(|(name, value)| (name.to_owned(), value));
    Ok(named.into_iter().collect())
}

/// Lets the program's tool make a run of a case, the one of that number.
///
/// # Errors
/// The program cannot be started.
pub fn run(
    program: &Path,
    case: &Case,
    run: u32,
    options: &TransactionsOptions,
    folder: &Path,
) -> Result<Ended, StudyError> {
    let mut command = Command::new(program);
    command.args(["tool", "transactions", &case.tracing, &case.program]);
    command.args(["--threads", &case.threads.to_string()]);
    // All ways have the same input in the same run.
    command.args(["--seed", &(run + 1).to_string()]);
    command.args(["--milliseconds", &options.measure_ms().to_string()]);
    if options.quick {
        command.arg("--small");
    }
    let files = (case.experiment == Experiment::Kernels).then(|| folder.join("traces"));
    if let Some(files) = &files {
        std::fs::create_dir_all(files).map_err(|error| StudyError::File {
            action: "make",
            file: files.clone(),
            error,
        })?;
        command.arg("--folder").arg(files);
    }
    let found = command.stdin(Stdio::null()).output();
    if let Some(files) = &files {
        // Traces are measured, not kept. What stays is in nobody's way.
        let _ = std::fs::remove_dir_all(files);
    }
    let found = found.map_err(|error| StudyError::Program {
        program: program.to_owned(),
        error,
    })?;
    let figures: io::Result<BTreeMap<String, f64>> =
        serde_json::from_slice(&found.stdout).map_err(io::Error::from);
    Ok(match figures {
        Ok(figures) if found.status.success() => Ended::Well(figures.into_iter().collect()),
        _ => Ended::Failed(said(&found.stderr)),
    })
}

/// The words of a process that failed, in one line.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    match lines.join(" ").trim() {
        "" => "it ended without figures".to_owned(),
        words => words.trim_start_matches("hearth: ").to_owned(),
    }
}
