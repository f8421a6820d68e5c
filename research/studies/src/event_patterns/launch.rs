//! One run: a server is started, clients connect, a period is measured, all ends.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cachet_load::{Failed, Generator, LoadPlan, Protocol, Run, Target};
use hearth_sys::clock::steady_ns;
use hearth_sys::usage::{self, Whose};
use hearth_sys::{Linux, System, affinity, procfs};

use super::figures::{Moment, figures};
use super::options::{CONNECTIONS, EventPatternsOptions, MESSAGE_BYTES};
use super::plan::Case;
use super::server::LISTENING;
use super::snapshot::Snapshot;
use crate::StudyError;
use crate::study::Ended;

/// Interval of checks whether all are connected.
const LOOK: Duration = Duration::from_millis(5);
/// Time limit for the last replies.
const PATIENCE: Duration = Duration::from_secs(2);

/// Cores of the server and the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The server's.
    pub server: Vec<usize>,
    /// The clients'; one thread each.
    pub clients: Vec<usize>,
}

/// The server's process; it ends with this value.
struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    target: Target,
}

impl Process {
    fn start(program: &Path, case: &Case, cores: &[usize]) -> io::Result<Process> {
        let list: Vec<String> = cores.iter().map(ToString::to_string).collect();
        let mut command = Command::new(program);
        command.args(["tool", "events", &case.pattern, &case.mechanism]);
        command.args(["--threads", &case.threads.to_string()]);
        command.args(["--work", &case.work_us.to_string()]);
        command.args(["--cores", &list.join(",")]);
        if case.is_timed {
            command.arg("--timed");
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let orders = child.stdin.take();
        let answers = child.stdout.take();
        let Some(answers) = answers else {
            return Err(io::Error::other("it has no output"));
        };
        let mut process = Process {
            child,
            orders,
            answers: BufReader::new(answers),
            target: Target::Unix("".into()),
        };
        let line = process.line()?;
        process.target = line
            .strip_prefix(LISTENING)
            .and_then(|address| address.trim().parse().ok())
            .ok_or_else(|| process.complaint(&line))?;
        Ok(process)
    }

    /// Makes an error of the message that the process printed instead of listening.
    fn complaint(&mut self, line: &str) -> io::Error {
        let mut said = line.to_owned();
        if line.is_empty()
            && let Some(errors) = self.child.stderr.as_mut()
        {
            // What cannot be read is missing in the complaint.
            let _ = io::Read::read_to_string(errors, &mut said);
        }
        io::Error::other(format!("it does not listen: {}", said.trim()))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line)
    }

    fn snapshot(&mut self) -> io::Result<Snapshot> {
        if let Some(orders) = &mut self.orders {
            orders.write_all(b"count\n")?;
        }
        let line = self.line()?;
        serde_json::from_str(&line).map_err(io::Error::from)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input is the server's end.
        self.orders = None;
        // It is gone already, or ends by itself.
        let _ = self.child.wait();
    }
}

/// Makes one run of a case, whose server is a tool of `program`.
///
/// # Errors
/// The server's program cannot be started; the system does not let the clients be kept to their
/// cores.
pub fn run(
    program: &Path,
    case: &Case,
    cores: &Cores,
    options: &EventPatternsOptions,
    cancel: &AtomicBool,
) -> Result<Ended, StudyError> {
    // Its clients inherit it.
    affinity::allow_current(&cores.clients).map_err(|error| StudyError::Cores { error })?;
    let mut process = match Process::start(program, case, &cores.server) {
        Ok(process) => process,
        Err(error) if error.kind() == io::ErrorKind::Other => {
            return Ok(Ended::Failed(format!("the server: {error}")));
        }
        Err(error) => {
            return Err(StudyError::Program {
                program: program.to_owned(),
                error,
            });
        }
    };
    let plan = LoadPlan::new(process.target.clone())
        .protocol(Protocol::Echo {
            request: MESSAGE_BYTES,
            reply: MESSAGE_BYTES,
        })
        .connections(CONNECTIONS)
        .threads(cores.clients.len().max(1))
        .preload(false)
        .warm_up(Duration::from_millis(options.warm_up_ms().into()))
        .measure(Duration::from_millis(options.measure_ms().into()))
        .patience(PATIENCE)
        .watched(Some(process.child.id()));
    let found = Generator::new(plan).and_then(|generator| {
        thread::scope(|scope| {
            let load = scope.spawn(|| generator.run());
            let is_over = || load.is_finished() || cancel.load(Ordering::Relaxed);
            let pair = look(&mut process, cores, options, &generator, &is_over);
            if pair.is_err() || cancel.load(Ordering::Relaxed) {
                generator.stop();
            }
            let run = load.join().unwrap_or(Err(Failed::Stopped));
            run.map(|run| (run, pair))
        })
    });
    // Relaxed: says only that it is to stop.
    if cancel.load(Ordering::Relaxed) {
        return Ok(Ended::Cancelled);
    }
    Ok(match found {
        Err(failed) => Ended::Failed(format!("the clients: {failed}")),
        Ok((_, Err(error))) => Ended::Failed(format!("the server: {error}")),
        Ok((run, Ok((before, after)))) => judged(&before, &after, &run),
    })
}

/// A run counts only if every request had its reply.
fn judged(before: &Moment, after: &Moment, run: &Run) -> Ended {
    let tally = &run.tally;
    if tally.unanswered + tally.lost_on_the_way + tally.replies.errors > 0 {
        return Ended::Failed(format!(
            "the clients: {} requests had no reply, {} were on connections that broke",
            tally.unanswered, tally.lost_on_the_way
        ));
    }
    Ended::Well(figures(before, after, run).into_iter().collect())
}

/// The begin and the end of what counts; both are well within what the clients count.
fn look(
    process: &mut Process,
    cores: &Cores,
    options: &EventPatternsOptions,
    generator: &Generator,
    is_over: &dyn Fn() -> bool,
) -> io::Result<(Moment, Moment)> {
    let begin_ns = loop {
        match generator.counts_from() {
            Some(begin_ns) => break begin_ns,
            None if is_over() => return Err(io::Error::other("nobody is connected to it")),
            None => thread::sleep(LOOK),
        }
    };
    let measure_ns = u64::from(options.measure_ms()) * 1_000_000;
    wait_until(begin_ns + measure_ns / 20, is_over);
    let before = moment(process, cores)?;
    wait_until(begin_ns + measure_ns * 9 / 10, is_over);
    Ok((before, moment(process, cores)?))
}

fn moment(process: &mut Process, cores: &Cores) -> io::Result<Moment> {
    let server = process.snapshot()?;
    let times = procfs::parse_stat(&Linux.read("/proc/stat").unwrap_or_default());
    let ours = times
        .iter()
        .filter(|of| cores.server.contains(&of.core) || cores.clients.contains(&of.core));
    let used = usage::read(Whose::Process);
    Ok(Moment {
        server,
        busy_ticks: ours.map(|of| of.user + of.system + of.steal).sum(),
        clients_us: used.user_us + used.system_us,
    })
}

fn wait_until(ns: u64, is_over: &dyn Fn() -> bool) {
    while !is_over() {
        let left = Duration::from_nanos(ns.saturating_sub(steady_ns()));
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(50)));
    }
}
