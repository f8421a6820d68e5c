//! Load by libmemcached's `memcaslap` (so named in Debian; `memaslap` elsewhere): its
//! configuration, a run, its output.
//!
//! It writes keys of its own before it measures, takes whole seconds only, and reports no
//! comparable latencies: its use is a second opinion on throughput, by an independent client.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use thiserror::Error;

/// Names of the command.
const NAMES: [&str; 2] = ["memcaslap", "memaslap"];

/// A run to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Memcaslap {
    /// Number of its threads.
    pub threads: usize,
    /// Connections, of all threads together.
    pub connections: usize,
    /// Keys of each connection, in units of 1,024, at least one: it takes nothing finer.
    pub window_k: usize,
    /// Share of reads, 0 to 1.
    pub gets: f64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Share of replies whose data it compares, 0 to 1.
    pub verify: f64,
    /// Length of the run; whole seconds, at least one.
    pub time: Duration,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Requests.
    pub requests: u64,
    /// Requests a second.
    pub rate: f64,
    /// Reads that found nothing.
    pub misses: u64,
    /// Verified replies that were wrong or missing.
    pub wrong: u64,
}

/// Reason why a run gave no figures.
#[derive(Debug, Error)]
pub enum Unsaid {
    /// The command is missing, or its configuration cannot be written.
    #[error(
        "memcaslap cannot be run: {0}; install it, for example: apt-get install libmemcached-tools"
    )]
    System(#[from] io::Error),
    /// Its output cannot be parsed.
    #[error("memcaslap printed something unknown: {0:?}")]
    Unknown(String),
}

/// Name of the command here. None if it is missing.
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
    /// Its configuration file, which lists commands and sizes: each line of `key` and `value` is
    /// minimum, maximum and share; 0 is a write and 1 a read.
    pub fn configuration(&self) -> String {
        let (key, value) = (self.key_size, self.value_size);
        format!(
            "key\n{key} {key} 1\nvalue\n{value} {value} 1\ncmd\n0 {:.2}\n1 {:.2}\n",
            1.0 - self.gets,
            self.gets
        )
    }

    /// Runs it against a server at `HOST:PORT`, with its configuration in `folder`.
    ///
    /// # Errors
    /// It cannot be run, or its output cannot be parsed.
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
        // A file left over does no harm.
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
