//! Servers as child processes: start one, wait until it listens, read its statistics, end it.
//!
//! The module assumes memcached's command line and `stats`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hearth_sys::process::ends_with_this_thread;
use thiserror::Error;

use crate::target::Target;

/// Timeout of a server's start.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
/// Timeout of an answer to `stats`, however busy the server is.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Longest answer to `stats`: servers have a few hundred lines, and one for each connection.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A program that can be started as a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name in reports.
    pub name: String,
    /// The file, or a name to look up in `PATH`.
    pub path: PathBuf,
    /// Options beyond those of every start.
    pub options: Vec<String>,
}

/// Reason why there is no server.
#[derive(Debug, Error)]
pub enum NoServer {
    /// The system cannot start it.
    #[error("cannot start {name}: {error}; install it, or say where it is")]
    Start {
        /// Its name.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// It ended instead of listening.
    #[error("{name} ended at once: {how}; start it by hand to see why")]
    Ended {
        /// Its name.
        name: String,
        /// Exit status and output.
        how: String,
    },
    /// It runs, but does not listen.
    #[error(
        "{name} does not listen at port {port} within {} s; start it by hand to see why",
        LISTENS_WITHIN.as_secs()
    )]
    Silent {
        /// Its name.
        name: String,
        /// The port.
        port: u16,
    },
}

/// Options of every start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of threads that serve.
    pub threads: usize,
    /// Memory for values, in MiB.
    pub memory_mib: usize,
}

/// A running server. Dropping this kills it.
#[derive(Debug)]
pub struct Server {
    name: String,
    port: u16,
    process: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Options that a server needs to run as root.
fn as_root() -> &'static [&'static str] {
    let own = fs::metadata("/proc/self").map(|own| own.uid());
    match own {
        Ok(0) => &["-u", "root"],
        _ => &[],
    }
}

impl Program {
    /// A program by its file or name, without further options.
    pub fn new(name: &str, path: &Path) -> Program {
        Program {
            name: name.to_owned(),
            path: path.to_owned(),
            options: Vec::new(),
        }
    }

    /// First line of the output of `-V`. None if it cannot be started.
    pub fn version(&self) -> Option<String> {
        let said = Command::new(&self.path).arg("-V").output().ok()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        text.lines().next().map(str::to_owned)
    }

    /// Starts it on a free port of this machine and waits until it listens. It ends with the
    /// calling thread, at the latest.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not listen.
    pub fn start(&self, start: Start) -> Result<Server, NoServer> {
        let cannot = |error| NoServer::Start {
            name: self.name.clone(),
            error,
        };
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(cannot)?
            .port();
        let mut command = Command::new(&self.path);
        ends_with_this_thread(&mut command);
        let process = command
            .args(["-l", "127.0.0.1", "-U", "0", "-p", &port.to_string()])
            .args(["-t", &start.threads.to_string()])
            .args(["-m", &start.memory_mib.to_string()])
            .args(as_root())
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(cannot)?;
        let mut server = Server {
            name: self.name.clone(),
            port,
            process,
        };
        server.wait().map(|()| server)
    }
}

impl Server {
    /// Name of its program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address, as `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its address for a [`crate::LoadPlan`].
    pub fn target(&self) -> Target {
        Target::Tcp(SocketAddr::from(([127, 0, 0, 1], self.port)))
    }

    /// Number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Numbers and names of its threads.
    ///
    /// # Errors
    /// The process has ended.
    pub fn threads(&self) -> io::Result<Vec<(u32, String)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/task", self.id()))? {
            let entry = entry?;
            let number = entry.file_name().to_string_lossy().parse();
            // A thread that ends meanwhile is left out.
            let name = fs::read_to_string(entry.path().join("comm"));
            if let (Ok(number), Ok(name)) = (number, name) {
                all.push((number, name.trim_end().to_owned()));
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    fn wait(&mut self) -> Result<(), NoServer> {
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(end)) = self.process.try_wait() {
                return Err(NoServer::Ended {
                    name: self.name.clone(),
                    how: end.to_string(),
                });
            }
            if begin.elapsed() > LISTENS_WITHIN {
                return Err(NoServer::Silent {
                    name: self.name.clone(),
                    port: self.port,
                });
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Reads `stats`, or `stats GROUP`, by name. Empty for a group that the server does not have.
    ///
    /// # Errors
    /// No connection, or no answer in time.
    pub fn stats(&self, group: &str) -> io::Result<BTreeMap<String, String>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        let line = match group {
            "" => "stats\r\n".to_owned(),
            group => format!("stats {group}\r\n"),
        };
        stream.write_all(line.as_bytes())?;
        listed(BufReader::new(stream))
    }
}

/// Parses lines `STAT NAME VALUE` up to the first other line.
fn listed(from: impl io::Read) -> io::Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for line in BufReader::new(from.take(ANSWER_BYTES_MAX)).lines() {
        let line = line?;
        let Some((name, value)) = line
            .strip_prefix("STAT ")
            .map(|rest| rest.split_once(' ').unwrap_or((rest, "")))
        else {
            return Ok(all);
        };
        all.insert(name.to_owned(), value.trim_end().to_owned());
    }
    Err(io::Error::from(io::ErrorKind::UnexpectedEof))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_up_to_their_end() {
        let text = "STAT pid 7\r\nSTAT version 1.6 x\r\nSTAT empty \r\nEND\r\nSTAT no 1\r\n";
        let all = listed(text.as_bytes()).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(all["version"], "1.6 x");
        assert_eq!(all["empty"], "");
        assert!(listed("ERROR\r\n".as_bytes()).unwrap().is_empty());
        assert!(listed("STAT cut 1\r\n".as_bytes()).is_err());
        // A line without an end is cut.
        assert!(listed(io::repeat(b'S')).is_ok_and(|all| all.is_empty()));
        assert!(listed(io::repeat(b'\n')).is_ok_and(|all| all.is_empty()));
    }

    #[test]
    fn what_is_no_server_is_told() {
        let start = Start {
            threads: 1,
            memory_mib: 64,
        };
        let none = Program::new("none", Path::new("no-such-server-at-all"));
        assert!(none.version().is_none());
        let told = none.start(start).unwrap_err().to_string();
        assert!(told.contains("say where it is"), "{told}");
        let ends = Program::new("ends", Path::new("false"));
        let told = ends.start(start).unwrap_err().to_string();
        assert!(told.contains("ended at once"), "{told}");
    }
}
