//! Load by libmemcached's `memcaslap` (as Debian calls it; `memaslap` elsewhere): its configuration, a run, what it
//! said.
//!
//! It writes keys of its own before it counts, takes whole seconds only, and tells no latencies that can be compared:
//! what it is good for is a second opinion on throughput, by somebody else's client.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The command's names.
const NAMES: [&str; 2] = ["memcaslap", "memaslap"];

/// What it is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Memcaslap {
    /// Its threads.
    pub threads: usize,
    /// Connections, of all threads together.
    pub connections: usize,
    /// Keys of each connection, in units of 1,024, at least one; it takes no other numbers.
    pub window_k: usize,
    /// The share of reads, 0 to 1.
    pub gets: f64,
    /// Bytes of keys.
    pub key_size: usize,
    /// Bytes of values.
    pub value_size: usize,
    /// The share of replies whose data it compares, 0 to 1.
    pub verify: f64,
    /// For how long; whole seconds, at least one.
    pub time: Duration,
}

/// What it said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Requests.
    pub requests: u64,
    /// Requests a second.
    pub rate: f64,
    /// Reads that found nothing.
    pub misses: u64,
    /// Verified replies that were wrong, or missing.
    pub wrong: u64,
}

/// Why there is nothing said.
#[derive(Debug)]
pub enum Unsaid {
    /// It is not there, or its configuration cannot be written.
    System(io::Error),
    /// It said something that is not understood.
    Unknown(String),
}

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsaid::System(error) => write!(
                f,
                "memcaslap cannot be run: {error}; install it, for example: apt-get install libmemcached-tools"
            ),
            Unsaid::Unknown(text) => write!(f, "memcaslap says nothing that is known: {text:?}"),
        }
    }
}

impl std::error::Error for Unsaid {}

impl From<io::Error> for Unsaid {
    fn from(error: io::Error) -> Unsaid {
        Unsaid::System(error)
    }
}

/// The command's name here. None if it is not there.
pub fn found() -> Option<&'static str> {
    NAMES.into_iter().find(|name| {
        Command::new(name)
            .arg("-V")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
    })
}

impl Memcaslap {
    /// The file that says which commands on which sizes: each line of `key` and `value` is least,
    /// most and share, 0 is a write and 1 a read.
    pub fn configuration(&self) -> String {
        let (key, value) = (self.key_size, self.value_size);
        format!(
            "key\n{key} {key} 1\nvalue\n{value} {value} 1\ncmd\n0 {:.2}\n1 {:.2}\n",
            1.0 - self.gets,
            self.gets
        )
    }

    /// Runs it against a server at `HOST:PORT`. Its configuration lies in `folder` meanwhile.
    ///
    /// # Errors
    /// It cannot be run, or says nothing that is understood.
    pub fn run(&self, address: &str, folder: &Path) -> Result<Told, Unsaid> {
        let config = self.write(folder)?;
        let mut command = Command::new(found().unwrap_or(NAMES[0]));
        if self.verify > 0.0 {
            command.args(["-v", &self.verify.to_string()]);
        }
        let output = command
            .args(["-s", address, "-T", &self.threads.to_string()])
            .args(["-c", &self.connections.to_string()])
            .args(["-w", &format!("{}k", self.window_k.max(1))])
            .args(["-t", &format!("{}s", self.time.as_secs().max(1)), "-F"])
            .arg(&config)
            .stdin(Stdio::null())
            .output();
        // What is left of it does no harm.
        let _ = std::fs::remove_file(&config);
        let output = output?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        understood(&text).ok_or_else(|| {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Unsaid::Unknown(format!("{text}{complaint}"))
        })
    }

    fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let config = folder.join(format!("memcaslap-{}.cfg", std::process::id()));
        std::fs::write(&config, self.configuration())?;
        Ok(config)
    }
}

fn understood(text: &str) -> Option<Told> {
    let word = |name: &str| text.rsplit_once(name)?.1.split_whitespace().next();
    let count = |name: &str| word(name)?.parse::<u64>().ok();
    Some(Told {
        requests: count("Ops:")?,
        rate: word("TPS:")?.parse().ok()?,
        misses: count("get_misses:").unwrap_or(0),
        wrong: count("verify_misses:").unwrap_or(0) + count("verify_failed:").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_is_understood() {
        let text = "set proportion: set_prop=0.30\ncmd_get: 154500\ncmd_set: 66230\nget_misses: 3\n\
            verify_misses: 1\nverify_failed: 2\n\nRun time: 2.0s Ops: 220730 TPS: 110357 Net_rate: 122.1M/s\n";
        let told = understood(text).unwrap();
        let expected = Told {
            requests: 220_730,
            rate: 110_357.0,
            misses: 3,
            wrong: 3,
        };
        assert_eq!(told, expected);
        assert_eq!(understood("cannot connect"), None);
    }

    #[test]
    fn the_configuration_has_shares_of_one() {
        let wanted = Memcaslap {
            threads: 1,
            connections: 20,
            window_k: 1,
            gets: 0.75,
            key_size: 64,
            value_size: 1024,
            verify: 0.01,
            time: Duration::from_secs(2),
        };
        let text = wanted.configuration();
        assert_eq!(
            text,
            "key\n64 64 1\nvalue\n1024 1024 1\ncmd\n0 0.25\n1 0.75\n"
        );
    }
}
