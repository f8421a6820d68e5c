//! The system's counts during a run: text taken before and after, parsed when the run is over.

use std::fs::File;
use std::io::Read;

use hearth_sys::procfs::Interrupts;
use serde::{Deserialize, Serialize};

/// The files that a snapshot opens.
pub const FILES: [&str; 2] = ["/proc/interrupts", "/proc/self/stat"];

/// Room beyond what the files needed when tried, so that growing numbers do not need more.
const SPARE: usize = 4096;

/// Both files as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    interrupts: Vec<u8>,
    stat: Vec<u8>,
}

/// Parsed contents of a snapshot. Counts that could not be read are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All interrupts of all cores.
    pub interrupts: Option<u64>,
    /// The process's minor faults.
    pub faults_minor: Option<u64>,
    /// The process's major faults.
    pub faults_major: Option<u64>,
}

/// Events between two snapshots. A count that could not be read is zero; the study says so once for
/// all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Interrupts, on any core.
    pub interrupts: u64,
    /// Minor page faults of this process.
    pub faults_minor: u64,
    /// Major ones.
    pub faults_major: u64,
}

impl Events {
    /// True if nothing disturbed: no interrupt, no major fault, and no more minor faults than
    /// `allowed`, which those of the bookkeeping itself are.
    #[must_use]
    pub fn is_clean(&self, allowed: u64) -> bool {
        self.interrupts == 0 && self.faults_major == 0 && self.faults_minor <= allowed
    }
}

impl Snapshot {
    /// An empty one with room for both files. Reads them twice: what they need the first time is
    /// then not needed during a run.
    #[must_use]
    pub fn spare() -> Snapshot {
        let mut snapshot = Snapshot::default();
        for _ in 0..2 {
            snapshot.before();
            let room = (snapshot.interrupts.len() + SPARE, SPARE);
            snapshot.interrupts.reserve(room.0);
            snapshot.stat.reserve(room.1);
        }
        snapshot
    }

    /// A recorded one.
    #[must_use]
    pub fn of(interrupts: &str, stat: &str) -> Snapshot {
        Snapshot {
            interrupts: interrupts.as_bytes().to_vec(),
            stat: stat.as_bytes().to_vec(),
        }
    }

    /// Takes the files as they are now; faults are read last, just before what is measured.
    pub fn before(&mut self) {
        read(FILES[0], &mut self.interrupts);
        read(FILES[1], &mut self.stat);
    }

    /// Takes the counts of [`Snapshot::before`] in the other order, just after what is measured.
    pub fn after(&mut self) {
        read(FILES[1], &mut self.stat);
        read(FILES[0], &mut self.interrupts);
    }

    /// The interrupts' file.
    #[must_use]
    pub fn interrupts(&self) -> Interrupts {
        Interrupts(String::from_utf8_lossy(&self.interrupts).into_owned())
    }

    /// The counts in the text.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let by_core = self.interrupts().by_core();
        let stat = String::from_utf8_lossy(&self.stat);
        // The command's name is in brackets and may hold anything, brackets too.
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .collect();
        // Fields 10 and 12 of proc_pid_stat(5), of which the first two are before the bracket.
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Counts {
            interrupts: (!by_core.is_empty()).then(|| by_core.iter().map(|(_, count)| count).sum()),
            faults_minor: field(10),
            faults_major: field(12),
        }
    }

    /// Returns the events from this snapshot to a later one.
    #[must_use]
    pub fn until(&self, later: &Snapshot) -> Events {
        let (from, to) = (self.counts(), later.counts());
        let between = |from: Option<u64>, to: Option<u64>| {
            let (from, to) = (from.unwrap_or(0), to.unwrap_or(0));
            to.saturating_sub(from)
        };
        Events {
            interrupts: between(from.interrupts, to.interrupts),
            faults_minor: between(from.faults_minor, to.faults_minor),
            faults_major: between(from.faults_major, to.faults_major),
        }
    }
}

/// Replaces the text by the file's; it is empty if the file cannot be read.
fn read(path: &str, text: &mut Vec<u8>) {
    text.clear();
    let whole = File::open(path).and_then(|mut file| file.read_to_end(text));
    if whole.is_err() {
        text.clear();
    }
}
