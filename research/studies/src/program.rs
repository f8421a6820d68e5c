//! Programs of a study that say when they are ready, begin with a line of input, and answer with
//! lines.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use hearth_sys::{System, procfs};

/// The line that says that a program waits for its beginning.
pub(crate) const READY: &str = "ready";
/// The system's ticks are too coarse for others' use of a shorter time, seconds.
pub(crate) const OTHERS_MIN: f64 = 0.3;
/// The system's ticks a second in `/proc/stat`, on all architectures.
const TICKS: f64 = 100.0;

/// A program. It is killed with this value, if it has not ended.
pub(crate) struct Program {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> io::Result<Program> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or_else(|| io::Error::other("it has no output"))?;
        Ok(Program {
            child,
            orders,
            answers: BufReader::new(answers),
        })
    }

    /// The process's number.
    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Its next line.
    ///
    /// # Errors
    /// It ended; what it said, in words.
    pub(crate) fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        read.map_err(|error| error.to_string())?;
        if !line.is_empty() {
            return Ok(line);
        }
        let mut said = String::new();
        if let Some(errors) = self.child.stderr.as_mut() {
            // What cannot be read is missing in the complaint.
            let _ = errors.read_to_string(&mut said);
        }
        let said = said.trim().trim_start_matches("hearth: ");
        Err(if said.is_empty() {
            "it ended without figures".to_owned()
        } else {
            said.to_owned()
        })
    }

    pub(crate) fn wait_until_ready(&mut self) -> Result<(), String> {
        match self.line()?.trim() {
            READY => Ok(()),
            other => Err(format!("it is not ready: {other}")),
        }
    }

    pub(crate) fn begin(&mut self) -> Result<(), String> {
        let orders = self.orders.as_mut().ok_or("it has no input")?;
        let written = orders.write_all(b"go\n").and_then(|()| orders.flush());
        written.map_err(|error| error.to_string())
    }

    /// Ends its input.
    pub(crate) fn end(&mut self) {
        self.orders = None;
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already if all is well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says that this program is ready, and waits for a line. What is returned is closed when the input
/// ends.
///
/// # Errors
/// The input ended before, or the output is closed. In words.
pub(crate) fn ready(
    mut input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> Result<mpsc::Receiver<()>, String> {
    let said = writeln!(output, "{READY}").and_then(|()| output.flush());
    said.map_err(|error| error.to_string())?;
    let (begin, begun) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        while matches!(input.read_line(&mut line), Ok(bytes) if bytes > 0) {
            // The program has ended if nobody listens.
            let _ = begin.send(());
            line.clear();
        }
    });
    match begun.recv() {
        Ok(()) => Ok(begun),
        Err(_) => Err("the input ended before it began".to_owned()),
    }
}

/// CPU time that anybody used, seconds.
pub(crate) fn busy(system: &dyn System) -> f64 {
    let text = system.read("/proc/stat").unwrap_or_default();
    let times = procfs::parse_stat(&text);
    times.iter().map(|cpu| cpu.user + cpu.system).sum::<u64>() as f64 / TICKS
}
