//! A machine's own description of itself: the files of Linux that tell of processors, caches,
//! memory and limits, unread, in one JSON document.
//!
//! Somebody with access to files [gathers](Capture::gather) a capture; everything after is a
//! function of it, so that a machine recorded once is tested for ever. [`Capture::read`] makes a
//! [`Topology`] of it, lists the [claims](Claim) that a probe can test, and notes each file that
//! was missed or could not be believed, with what was done instead.
//!
//! The document: `{"hearth_capture": 1, "recorded": …, "tool": …, "remarks": …, "files": {path:
//! text}}`. Unknown members are ignored; a higher version is refused.

mod environment;
mod identity;
mod read;
mod wanted;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::topology::{Bytes, CacheKind, OsNode, OsThread, Topology, TopologyError};

pub use environment::Environment;
pub use wanted::{PATTERNS, Source};

/// Files of one machine, by absolute path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The version of the document, [`Capture::VERSION`].
    #[serde(rename = "hearth_capture")]
    pub version: u32,
    /// When it was recorded, as RFC 3339; empty if not said.
    #[serde(default)]
    pub recorded: String,
    /// What recorded it.
    #[serde(default)]
    pub tool: String,
    /// Anything a person wants to say of the machine.
    #[serde(default)]
    pub remarks: String,
    /// Path to text, as read.
    pub files: BTreeMap<String, String>,
}

/// What a capture says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The machine as the kernel and firmware describe it.
    pub topology: Topology,
    /// What a probe can test.
    pub claims: Vec<Claim>,
    /// What surrounds programs there: kernel, clock, hypervisor, limits.
    pub environment: Environment,
    /// What was missing or not believable, and what was done.
    pub notes: Vec<Note>,
}

/// Something that firmware, hypervisor or kernel says of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// What.
    pub fact: Fact,
    /// The file that says so; for a fact in several files, the first.
    pub path: String,
}

/// What is claimed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// These threads are one core.
    Core(Vec<OsThread>),
    /// A cache and who shares it.
    Cache {
        /// 1 is nearest to the core.
        level: u8,
        /// What it keeps.
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
        /// Its memory, if told.
        memory_bytes: Option<Bytes>,
    },
    /// Relative distances, 10 being local (ACPI SLIT).
    Distances {
        /// Rows and columns.
        nodes: Vec<OsNode>,
        /// `rows[i][j]` is from `nodes[i]` to `nodes[j]`.
        rows: Vec<Vec<u32>>,
    },
    /// What the nearest processors get from a node's memory (ACPI HMAT).
    Access {
        /// The node with the memory.
        node: OsNode,
        /// What is told.
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

/// A file that was missing or not believable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The file.
    pub path: String,
    /// What is wrong with it, and what was done instead.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// Why a capture cannot be read.
#[derive(Debug)]
pub enum CaptureError {
    /// It is not the document it should be.
    Json(serde_json::Error),
    /// It is of a version that this Hearth does not know.
    Version(u32),
    /// No file says which hardware threads are online.
    NoThreads,
    /// What it says makes no machine.
    Topology(TopologyError),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::Json(error) => {
                write!(
                    f,
                    "no capture: {error}; record it again with `hearth probe --capture`"
                )
            }
            CaptureError::Version(version) => write!(
                f,
                "the capture is of version {version}, and this Hearth reads {}; use a newer Hearth",
                Capture::VERSION
            ),
            CaptureError::NoThreads => write!(
                f,
                "the capture names no hardware thread; it needs /sys/devices/system/cpu/online or \
                 /proc/cpuinfo"
            ),
            CaptureError::Topology(error) => write!(f, "the captured machine cannot be: {error}"),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CaptureError::Json(error) => Some(error),
            CaptureError::Topology(error) => Some(error),
            _ => None,
        }
    }
}

impl Capture {
    /// The version that is written, and the highest that is read.
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

    /// Collects all files that [`PATTERNS`] name, and the limits of the caller's control groups.
    ///
    /// ```
    /// use hearth_machine::capture::{Capture, Source};
    ///
    /// struct TwoCpus;
    /// impl Source for TwoCpus {
    ///     fn read(&mut self, path: &str) -> Option<String> {
    ///         (path == "/sys/devices/system/cpu/online").then(|| "0-1\n".to_owned())
    ///     }
    ///     fn list(&mut self, _: &str) -> Vec<String> {
    ///         Vec::new()
    ///     }
    /// }
    /// let reading = Capture::gather(&mut TwoCpus).read()?;
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
    /// What is no such document, or one of a later version.
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

    /// A file's text without the blanks around it.
    pub fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|text| text.trim())
    }

    /// What the capture says.
    ///
    /// # Errors
    /// That no hardware thread is named. All else is noted and done without.
    pub fn read(&self) -> Result<Reading, CaptureError> {
        read::read(self)
    }
}
