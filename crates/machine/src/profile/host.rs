//! Origin of a profile: the tool, time, method and machine.

use serde::{Deserialize, Serialize};

use crate::topology::OsThread;

/// Duration of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// About 10 s.
    Quick,
    /// About 60 s.
    Normal,
    /// Takes as long as necessary.
    Deep,
    /// No measurement: stated defaults.
    Assumed,
}

/// Origin of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The version of the Hearth that wrote it.
    pub hearth_version: String,
    /// Start of the probe, in seconds since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<u64>,
    /// Its duration, seconds.
    #[serde(default)]
    pub duration_s: f64,
    /// Its thoroughness.
    pub mode: Mode,
    /// The seed of every random choice.
    #[serde(default)]
    pub seed: u64,
    /// Measurements that the probe could not make and why, as sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Software and hardware of the machine. Absent fields could not be read.
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
    /// The hypervisor, if it can be detected.
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
