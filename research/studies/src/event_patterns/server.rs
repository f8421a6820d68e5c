//! The server that is measured: a process of its own, which echoes and says what it counted when it
//! is asked.
//!
//! It writes one line when it listens, `listening ADDRESS`, then for each line that it reads a line
//! with a [`Snapshot`], and stops at the end of its input.

use std::io::{BufRead, Write};
use std::time::Duration;

pub use hearth_net::UnknownName;
use hearth_net::{Input, Mechanism, Next, Output, Pattern, Peer, Server, Service};
use hearth_sys::clock::steady_ns;
use hearth_sys::{affinity, limits};

use super::options::MESSAGE_BYTES;
use super::snapshot::{Snapshot, THREADS_NAME};
use crate::StudyError;

/// Beginning of the first line.
pub const LISTENING: &str = "listening ";
/// Connections that may be there, beside the study's.
const CONNECTIONS_MAX: usize = 4096;
/// Descriptors for all else.
const OTHER_FILES: u64 = 128;
/// Time limit for clients that are still connected when it is to stop.
const GRACE: Duration = Duration::from_millis(500);

/// Configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The pattern: which threads wait and which work.
    pub pattern: Pattern,
    /// The mechanism by which they wait.
    pub mechanism: Mechanism,
    /// The number of threads that wait and work.
    pub threads: usize,
    /// Time that a request takes, by busy waiting.
    pub work: Duration,
    /// The cores of all its threads; any if empty.
    pub cores: Vec<usize>,
    /// Operations are timed.
    pub is_timed: bool,
}

/// Requests and replies of [`MESSAGE_BYTES`].
struct Echo {
    work_ns: u64,
}

impl Service for Echo {
    type Worker = ();
    type Session = ();

    fn worker(&self, _: usize) {}

    fn open(&self, (): &mut (), _: &Peer) {}

    fn serve(&self, (): &mut (), (): &mut (), input: &mut Input<'_>, output: &mut Output) -> Next {
        while let Some(request) = input.bytes().get(..MESSAGE_BYTES) {
            if self.work_ns > 0 {
                let end_ns = steady_ns() + self.work_ns;
                while steady_ns() < end_ns {
                    std::hint::spin_loop();
                }
            }
            output.write(request);
            input.consume(MESSAGE_BYTES);
            if output.is_full() {
                return Next::Again;
            }
        }
        Next::More
    }
}

/// Serves until the input ends. The calling thread, and so all threads of the server, are kept to
/// the cores.
///
/// # Errors
/// It cannot listen, or its output is closed.
pub fn serve(
    serving: &Serving,
    orders: impl BufRead,
    mut answers: impl Write,
) -> Result<(), StudyError> {
    limits::allow_open_files(CONNECTIONS_MAX as u64 + OTHER_FILES)?;
    if !serving.cores.is_empty() {
        affinity::allow_current(&serving.cores).map_err(|error| StudyError::Cores { error })?;
    }
    let mut builder = Server::builder()
        .tcp("127.0.0.1:0")
        .pattern(serving.pattern)
        .mechanism(serving.mechanism)
        .threads(serving.threads)
        .connections_max(CONNECTIONS_MAX)
        .name(THREADS_NAME);
    if serving.is_timed {
        builder = builder.timed();
    }
    let echo = Echo {
        work_ns: serving.work.as_nanos() as u64,
    };
    let server = builder.start(echo).map_err(|error| StudyError::Server {
        why: error.to_string(),
    })?;
    let mut say = |line: String| {
        writeln!(answers, "{line}")
            .and_then(|()| answers.flush())
            .map_err(|error| StudyError::Server {
                why: format!("nobody hears it: {error}"),
            })
    };
    let address = server.tcp_addresses().first();
    say(format!(
        "{LISTENING}{}",
        address.map_or(String::new(), ToString::to_string)
    ))?;
    for order in orders.lines() {
        if order.is_err() {
            break;
        }
        let snapshot = serde_json::to_string(&Snapshot::of(&server)).unwrap_or_default();
        say(snapshot)?;
    }
    server.stop(GRACE);
    Ok(())
}
