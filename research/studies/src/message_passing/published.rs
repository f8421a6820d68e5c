//! The source's findings. The file is `research/studies/published/message-passing/findings.csv`;
//! its rows are facts of this repository, so that a row that cannot be understood is left out and
//! found by a test.
//!
//! The source's curves are not available: its text has their shapes in words, three numbers, and no
//! axis. Nothing is drawn that it does not say.

use crate::claims::{self, Finding};
use crate::judging::Figure;

const FINDINGS: &str = include_str!("../../published/message-passing/findings.csv");

/// Cores of the source's machine.
pub const CORES: usize = 24;

/// All findings.
#[must_use]
pub fn findings() -> Vec<Finding> {
    claims::findings(FINDINGS, Figure::exact)
}

/// A machine or a condition of the source, beside which this machine's stands.
pub const CONDITIONS: [(&str, &str); 8] = [
    (
        "machine",
        "HP ProLiant DL585 G6, four AMD Opteron 8431 at 2.4 GHz, 24 cores",
    ),
    ("first data cache", "64 KiB a core, 1,024 lines"),
    ("second and third cache", "512 KiB a core, 6 MiB a chip"),
    (
        "system",
        "KOS, a kernel of its own; the benchmark runs inside it",
    ),
    (
        "waiting",
        "an idle thread looks for three preemption intervals before the core halts",
    ),
    ("memory", "32 MB, physically contiguous, reserved at boot"),
    (
        "runs",
        "30 seconds, twenty times, the mean; no spread is given",
    ),
    ("lock", "not named; the queue has one, too"),
];
