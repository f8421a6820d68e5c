//! Who measured, when, how and on what.

use serde::{Deserialize, Serialize};

use crate::topology::OsThread;

/// How much time a probe takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// About 10 s.
    Quick,
    /// About 60 s.
    Normal,
    /// As long as it takes.
    Deep,
    /// No measurement: stated defaults.
    Assumed,
}

/// How a profile came to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The version of the Hearth that wrote it.
    pub hearth_version: String,
    /// When the probe began, seconds since 1970 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// How long it took, seconds.
    #[serde(default)]
    pub duration_s: f64,
    /// How thorough it was.
    pub mode: Mode,
    /// The seed of every random choice.
    #[serde(default)]
    pub seed: u64,
    /// What the probe could not do and why, as sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What the machine runs. Absent fields could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// The machine's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kernel's release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The architecture, as `x86_64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// The processor's name for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// The microcode's revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// The hypervisor, if one shows itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// The kernel's clock source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// The calibrated frequency of the time-stamp counter, GHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsc_ghz: Option<f64>,
    /// The frequency governor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The control group's quota, in CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
    /// The hardware threads that the probe was allowed to use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<OsThread>,
}
