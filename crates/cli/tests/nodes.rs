//! Programs that talk to each other. A folder of `tests/nodes` is a test; there is nothing to
//! register.
//!
//! ```text
//! N.isf       the program that runs as node N, from 1 up
//! N.ready     paths in the network's folder, one a line: the next program starts when all are
//!             there; PORT is the radio's base
//! N.options   options for its `hearth run`, one a line; PORT is the radio's base
//! N.stdout    what it prints
//! N.stderr    what standard error contains, a piece a line; if it is not there, nothing is said
//! N.exit      its exit code, if not 0
//! ```

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use support::{Outcome, PATIENCE, empty_folder, hearth, outcome, root, same};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let folders = fs::read_dir(root().join("tests/nodes"))
        .into_iter()
        .flatten()
        .flatten();
    for folder in folders
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        let name = folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into());
        trials.push(Trial::test(name, move || Ok(case(&folder)?)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// One program of a case.
struct Node {
    number: u32,
    folder: PathBuf,
}

impl Node {
    /// The lines of one of its files; none if there is no such file.
    fn lines(&self, what: &str) -> Vec<String> {
        let text = fs::read_to_string(self.file(what)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn file(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{}.{what}", self.number))
    }
}

fn case(folder: &Path) -> Result<(), String> {
    let nodes: Vec<Node> = (1..)
        .map(|number| Node {
            number,
            folder: folder.to_owned(),
        })
        .take_while(|node| node.file("isf").exists())
        .collect();
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let network = empty_folder(&format!("network-{name}"));
    let port = base_port();
    let mut running = Vec::new();
    for node in &nodes {
        running.push(start(node, &network, port));
        wait_for(&node.lines("ready"), &network, port, &mut running)?;
    }
    for (node, program) in nodes.iter().zip(running) {
        let outcome = program
            .join()
            .unwrap_or_else(|_| Err("its thread ended".to_owned()));
        outcome
            .and_then(|outcome| judge(node, &outcome))
            .map_err(|reason| format!("node {}: {reason}", node.number))?;
    }
    Ok(())
}

/// Cases run side by side, perhaps those of several test runs too.
fn base_port() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let case = NEXT.fetch_add(1, Ordering::Relaxed);
    10_000 + (std::process::id() % 100) * 200 + case * 10 % 200
}

type Program = JoinHandle<Result<Outcome, String>>;

fn start(node: &Node, network: &Path, port: u32) -> Program {
    let mut run = hearth();
    let options = node
        .lines("options")
        .into_iter()
        .map(|line| line.replace("PORT", &port.to_string()));
    run.arg("run").args(options).arg(node.file("isf"));
    run.env("HEARTH_NODE", node.number.to_string())
        .env("HEARTH_NETWORK", network)
        .env("HEARTH_DEVICE_RADIO", port.to_string());
    thread::spawn(move || outcome(&mut run, None))
}

fn wait_for(
    paths: &[String],
    network: &Path,
    port: u32,
    running: &mut [Program],
) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    for path in paths {
        let path = network.join(path.replace("PORT", &port.to_string()));
        while !path.exists() {
            if Instant::now() > deadline || running.last().is_some_and(JoinHandle::is_finished) {
                return Err(format!("{} was never made", path.display()));
            }
            // A file that another process makes is no event here: look again in a moment.
            thread::park_timeout(Duration::from_millis(2));
        }
    }
    Ok(())
}

fn judge(node: &Node, outcome: &Outcome) -> Result<(), String> {
    let expected = fs::read_to_string(node.file("stdout")).unwrap_or_default();
    same(&expected, &outcome.stdout).map_err(|text| format!("{text}\n{}", outcome.stderr))?;
    let pieces = node.lines("stderr");
    if pieces.is_empty() && !outcome.stderr.is_empty() {
        return Err(format!("it says: {}", outcome.stderr));
    }
    if let Some(missing) = pieces
        .iter()
        .find(|piece| !outcome.stderr.contains(piece.as_str()))
    {
        return Err(format!(
            "it does not say: {missing}\nbut: {}",
            outcome.stderr
        ));
    }
    let code = node
        .lines("exit")
        .first()
        .map_or(Ok(0), |line| line.parse());
    let code = code.map_err(|error| format!("the exit code: {error}"))?;
    if outcome.code() != Some(code) {
        return Err(format!(
            "it ended with {}\n{}",
            outcome.status, outcome.stderr
        ));
    }
    Ok(())
}
