//! Configuration of a run of the microbenchmark, and its file.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use hearth_sync::{LockKind, Mode, Queue, Wait};
use serde::{Deserialize, Serialize};

/// Bytes of an element: a cache line on every machine that the source and this study know.
pub const LINE_BYTES: usize = 64;
/// Sizes a message may have, in bytes: each is built into the program, as a message is part of a
/// closure.
pub const MESSAGE_BYTES: [usize; 13] = [
    0, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
];

/// Configuration of a run. A value left out of a file is the source's, or the default
/// named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Under the lock (`lock`, `combine`), by `message`, or `auto`.
    #[serde(with = "by_name")]
    pub mode: Mode,
    /// The source's N. By message one of them is the server, unless `server_counted` says
    /// otherwise.
    pub threads: usize,
    /// True if the server is one of the threads, by message. It is, in the source. In `auto` it
    /// never is, as it is not known beforehand whether there is a server.
    pub server_counted: bool,
    /// The source's n1: lines of each loop's own data.
    pub local_lines: usize,
    /// The source's n2: lines of the section's data.
    pub section_lines: usize,
    /// The source's m: lines that a section modifies.
    pub modified_lines: usize,
    /// One of [`MESSAGE_BYTES`].
    pub message_bytes: usize,
    /// Length of a repetition's measurement.
    pub seconds: f64,
    /// Length of the run before the measurement.
    pub warm_up_seconds: f64,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Seed of the shuffles; each repetition shuffles anew.
    pub seed: u64,
    /// The lock; the source does not say which it had.
    #[serde(with = "by_name")]
    pub lock: LockKind,
    /// The source had `single-copy` here, which is the default; `zero-copy`, `double-copy`, and
    /// Hearth's `lines`.
    #[serde(with = "by_name")]
    pub queue: Queue,
    /// True if the server takes all that a queue holds at once. It does not in the source's
    /// microbenchmark.
    pub drain_all: bool,
    /// The way in which clients wait.
    pub wait: Waiting,
    /// The way in which the server waits.
    pub server_wait: Waiting,
    /// True if each thread is kept on one core.
    pub pin: bool,
    /// Size of the one mapping that holds all data, MiB.
    pub pool_mib: usize,
    /// True if huge pages are asked for. The results say what the system gave.
    pub huge_pages: bool,
    /// Defects of the source's listing to restore.
    pub defects: Defects,
}

/// Deviations of the source's printed walk from its text. All are off unless asked for. With any of
/// the first, third and fourth on, lines to be modified are chosen as the listing does it: those at
/// which a counter of moves, masked, is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defects {
    /// The mask is a power of two itself, not one less: half of the lines are modified, whatever
    /// was asked.
    pub power_of_two_mask: bool,
    /// The cursor of the write walk is not set back: passes after the first touch one line.
    pub cursor_kept: bool,
    /// The counter of moves continues over passes: how many lines are modified differs from pass to
    /// pass.
    pub counter_kept: bool,
    /// The first line is read and never modified.
    pub head_unmodified: bool,
}

impl Defects {
    /// True if the listing's mask is used at all.
    pub(super) fn masks(self) -> bool {
        self.power_of_two_mask || self.counter_kept || self.head_unmodified
    }
}

/// The way in which a thread waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Looks for as long as a wake-up costs, then sleeps.
    #[default]
    SpinThenPark,
    /// Sleeps at once.
    Park,
    /// Spins and never sleeps.
    Spin,
    /// Looks for this many microseconds, then sleeps.
    SpinUs(f64),
}

impl Waiting {
    pub(super) fn wait(self) -> Wait {
        match self {
            Waiting::SpinThenPark => Wait::spin_then_park(),
            Waiting::Park => Wait::park(),
            Waiting::Spin => Wait::spin(),
            Waiting::SpinUs(us) => Wait::spin_for(Duration::from_nanos((us * 1e3) as u64)),
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mode: Mode::Lock,
            threads: 10,
            server_counted: true,
            local_lines: 2048,
            section_lines: 128,
            modified_lines: 0,
            message_bytes: 64,
            seconds: 30.0,
            warm_up_seconds: 0.5,
            repetitions: 20,
            seed: 1,
            lock: LockKind::Mutex,
            queue: Queue::Ring(hearth_sync::Copying::Single),
            drain_all: false,
            wait: Waiting::SpinThenPark,
            server_wait: Waiting::SpinThenPark,
            pin: true,
            pool_mib: 32,
            huge_pages: true,
            defects: Defects::default(),
        }
    }
}

impl Config {
    /// Reads a file in JSON, and checks it.
    ///
    /// # Errors
    /// It cannot be read, is not understood, or asks for what cannot be.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::File {
            path: path.display().to_string(),
            error,
        })?;
        Config::parse(&text)
    }

    /// Reads JSON, and checks it.
    ///
    /// # Errors
    /// It is not understood, or asks for what cannot be.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let config: Config = serde_json::from_str(text).map_err(ConfigError::Text)?;
        config.check()?;
        Ok(config)
    }

    /// Loops that walk data of their own: all threads but the server, where it is counted.
    pub fn loops(&self) -> usize {
        match self.mode {
            Mode::Message if self.server_counted => self.threads.saturating_sub(1),
            _ => self.threads,
        }
    }

    /// Bytes of all data.
    pub fn data_bytes(&self) -> usize {
        let lines = self.loops().saturating_mul(self.local_lines);
        lines
            .saturating_add(self.section_lines)
            .saturating_mul(LINE_BYTES)
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// It cannot be; the error says what to change.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError::Value(what));
        if self.loops() == 0 || self.threads > 1024 {
            return wrong(format!(
                "threads is {}; ask for 1 to 1024, by message for 2 at least, as the server is counted \
                 (or set server_counted to false)",
                self.threads
            ));
        }
        if self.section_lines == 0 || self.section_lines > self.local_lines {
            return wrong(format!(
                "section_lines is {} and local_lines {}; the source has 0 < section_lines ≤ local_lines",
                self.section_lines, self.local_lines
            ));
        }
        if self.modified_lines >= self.section_lines {
            return wrong(format!(
                "modified_lines is {} and section_lines {}; the source has modified_lines < section_lines",
                self.modified_lines, self.section_lines
            ));
        }
        if !MESSAGE_BYTES.contains(&self.message_bytes) {
            return wrong(format!(
                "message_bytes is {}; choose one of {MESSAGE_BYTES:?}",
                self.message_bytes
            ));
        }
        let times = [self.seconds, self.warm_up_seconds];
        if self.seconds == 0.0 || times.iter().any(|time| !(0.0..=3600.0).contains(time)) {
            return wrong(format!(
                "seconds is {} and warm_up_seconds {}; choose up to 3600, and seconds above 0",
                self.seconds, self.warm_up_seconds
            ));
        }
        if self.repetitions == 0 {
            return wrong("repetitions is 0; ask for 1 at least".into());
        }
        let spins = [self.wait, self.server_wait];
        if spins
            .iter()
            .any(|wait| matches!(wait, Waiting::SpinUs(us) if !(0.0..=1e9).contains(us)))
        {
            return wrong("spin_us must be 0 to 1000000000 microseconds".into());
        }
        let pool = self.pool_mib.saturating_mul(1 << 20);
        if self.data_bytes() > pool {
            return wrong(format!(
                "the data is {} bytes and the pool {pool}; raise pool_mib to {}, or ask for fewer threads or lines",
                self.data_bytes(),
                self.data_bytes().div_ceil(1 << 20)
            ));
        }
        Ok(())
    }
}

/// Reason why a configuration cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    File {
        /// The file.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
    /// It is not JSON, or has a name or a kind of value that is not known; the error says where.
    Text(serde_json::Error),
    /// A value cannot be; in words.
    Value(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::File { path, error } => {
                write!(
                    f,
                    "cannot read {path}: {error}; give the name of a configuration in JSON"
                )
            }
            ConfigError::Text(error) => write!(f, "the configuration is not understood: {error}"),
            ConfigError::Value(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Values that are written as they are shown.
mod by_name {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}
