//! A machine's own description of itself: the files in which Linux tells of processors, caches,
//! memory and limits, unparsed, in one JSON document.
//!
//! Code with access to files [gathers](Capture::gather) a capture; everything after is a function
//! of it, so a machine recorded once can be tested for ever. [`Capture::read`] builds a
//! [`Topology`], lists the [claims](Claim) that a probe can test, and notes each file that was
//! missing or implausible, with what was done instead.
//!
//! The document:
//! `{"hearth_capture": 1, "recorded": …, "tool": …, "remarks": …, "files": {path: text}}`. Unknown
//! members are ignored; a higher version is refused.

mod environment;
mod identity;
mod read;
mod wanted;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::topology::{Bytes, CacheKind, OsNode, OsThread, Topology, TopologyError};

pub use environment::Environment;
pub use wanted::{PATTERNS, Source};

/// Files of one machine, by absolute path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The version of the document, [`Capture::VERSION`].
    #[serde(rename = "hearth_capture")]
    pub version: u32,
    /// Time of the recording, as RFC 3339; empty if unknown.
    #[serde(default)]
    pub recorded: String,
    /// The tool that recorded it.
    #[serde(default)]
    pub tool: String,
    /// Free text about the machine.
    #[serde(default)]
    pub remarks: String,
    /// Path to text, as read.
    pub files: BTreeMap<String, String>,
}

/// Contents of a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The machine as the kernel and firmware describe it.
    pub topology: Topology,
    /// Claims that a probe can test.
    pub claims: Vec<Claim>,
    /// Surroundings of programs: kernel, clock, hypervisor, limits.
    pub environment: Environment,
    /// Files that were missing or implausible, and what was done instead.
    pub notes: Vec<Note>,
}

/// A statement of firmware, hypervisor or kernel about the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The statement.
    pub fact: Fact,
    /// The file with the statement; for a fact in several files, the first.
    pub path: String,
}

/// A claimed fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// These threads are one core.
    Core(Vec<OsThread>),
    /// A cache and the threads that share it.
    Cache {
        /// 1 is nearest to the core.
        level: u8,
        /// Its contents.
        kind: CacheKind,
        /// Its capacity.
        size_bytes: Bytes,
        /// The online threads that share it.
        threads: Vec<OsThread>,
    },
    /// These threads are one package.
    Package(Vec<OsThread>),
    /// These threads are one node; none for a node of memory alone.
    Node {
        /// The node.
        node: OsNode,
        /// Its online threads.
        threads: Vec<OsThread>,
        /// Its memory, if known.
        memory_bytes: Option<Bytes>,
    },
    /// Relative distances, 10 being local (ACPI SLIT).
    Distances {
        /// Rows and columns.
        nodes: Vec<OsNode>,
        /// `rows[i][j]` is from `nodes[i]` to `nodes[j]`.
        rows: Vec<Vec<u32>>,
    },
    /// Access of the nearest processors to a node's memory (ACPI HMAT).
    Access {
        /// The node with the memory.
        node: OsNode,
        /// Kind of figure.
        what: AccessFigure,
        /// In nanoseconds, or in MB/s.
        value: u64,
    },
}

/// A figure of ACPI's HMAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessFigure {
    /// In nanoseconds.
    ReadLatency,
    /// In nanoseconds.
    WriteLatency,
    /// In MB/s.
    ReadBandwidth,
    /// In MB/s.
    WriteBandwidth,
}

/// A file that was missing or implausible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The file.
    pub path: String,
    /// The problem, and what was done instead.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// Reason why a capture cannot be read.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// It is not the expected document.
    #[error("not a capture: {0}; record it again with `hearth probe --capture`")]
    Json(#[source] serde_json::Error),
    /// Its version is unknown to this Hearth.
    #[error("the capture is of version {0}, and this Hearth reads {version}; use a newer Hearth", version = Capture::VERSION)]
    Version(u32),
    /// No file says which hardware threads are online.
    #[error(
        "the capture names no hardware thread; it needs /sys/devices/system/cpu/online or /proc/cpuinfo"
    )]
    NoThreads,
    /// Its contents do not form a machine.
    #[error("the captured machine cannot exist: {0}")]
    Topology(#[source] TopologyError),
}

impl Capture {
    /// The version that this Hearth writes, and the highest it reads.
    pub const VERSION: u32 = 1;

    /// A capture of these files.
    pub fn new(files: BTreeMap<String, String>) -> Capture {
        Capture {
            version: Capture::VERSION,
            recorded: String::new(),
            tool: String::new(),
            remarks: String::new(),
            files,
        }
    }

    /// Collects all files that match [`PATTERNS`], and the limits of the caller's control groups.
    ///
    /// ```
    /// use hearth_machine::capture::Capture;
    ///
    /// let read = |path: &str| (path == "/sys/devices/system/cpu/online").then(|| "0-1\n".into());
    /// let list = |_: &str| Vec::new();
    /// let reading = Capture::gather(&mut (read, list)).read()?;
    /// assert_eq!(reading.topology.threads().len(), 2);
    /// assert!(!reading.notes.is_empty(), "each missing file is noted");
    /// # Ok::<(), hearth_machine::capture::CaptureError>(())
    /// ```
    pub fn gather(source: &mut dyn Source) -> Capture {
        Capture::new(wanted::gather(source))
    }

    /// Reads the document.
    ///
    /// # Errors
    /// A text that is not such a document, or one of a later version.
    pub fn from_json(text: &str) -> Result<Capture, CaptureError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "hearth_capture")]
            version: u32,
        }
        let head: Head = serde_json::from_str(text).map_err(CaptureError::Json)?;
        if head.version == 0 || head.version > Capture::VERSION {
            return Err(CaptureError::Version(head.version));
        }
        serde_json::from_str(text).map_err(CaptureError::Json)
    }

    /// The document, one file a line.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("strings become JSON");
        text.push('\n');
        text
    }

    /// A file's text without surrounding blanks.
    pub fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|text| text.trim())
    }

    /// Interprets the capture.
    ///
    /// # Errors
    /// If no hardware thread is named. Everything else is noted, and done without.
    pub fn read(&self) -> Result<Reading, CaptureError> {
        read::read(self)
    }
}
