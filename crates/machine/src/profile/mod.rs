//! The profile file: the result of `hearth probe`, which everything else reads.
//!
//! A [`Profile`] holds the origin of the measurements ([`Origin`], [`Host`]), the machine's parts
//! ([`Topology`]), the costs there, and which of the firmware's claims proved true. Every figure
//! carries its interval, its sample counts and its [`Provenance`]; the unit is in the name of the
//! field that holds it. A figure that was not measured is absent, never zero;
//! [`Profile::with_defaults`] puts stated assumptions in its place.
//!
//! Its file is JSON. Its schema is `schema/profile.schema.json` ([`SCHEMA`]). A compatible addition
//! increases the [`REVISION`]: readers ignore unknown fields, and leave out list entries with
//! unknown words, with a note. A change that a reader could misunderstand increases the [`FORMAT`],
//! and readers refuse newer formats.
//!
//! ```
//! use hearth_machine::{profile::Profile, synthetic};
//!
//! let profile = Profile::assumed(synthetic::parse("2 packages, 4 cores")?);
//! let text = profile.to_json()?;
//! assert_eq!(Profile::from_json(&text)?, profile);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assumed;
mod correct;
mod costs;
pub mod distance;
mod figure;
mod host;
mod read;

use serde::{Deserialize, Serialize};

use crate::relation::Relation;
use crate::topology::{Thread, Topology};

pub use costs::{
    Access, Bandwidth, CacheFinding, Carrier, Claim, ClaimVerdict, CurvePoint, Exchange, Gap,
    HandOver, Level, LevelCost, LineState, NodeDistances, Noise, Pages, PairState, PairTransfer,
    StateTransfer, SystemCosts,
};
pub use figure::{Figure, Provenance};
pub use host::{Host, Mode, Origin};
pub use read::{Brief, ProfileError};

/// Format that this Hearth writes, and the newest it reads.
pub const FORMAT: u32 = 1;

/// Revision of the format that this Hearth writes: 1 has the states of pairs, 0 has not. Later ones
/// are read as far as they are known.
pub const REVISION: u32 = 1;

/// The JSON schema of the file.
pub const SCHEMA: &str = include_str!("../../schema/profile.schema.json");

/// Profile of a measured machine: its structure, and what operations cost on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The file's format; [`FORMAT`] in every file of this Hearth.
    pub format: u32,
    /// The format's revision; [`REVISION`] in every file that this Hearth measured, and the
    /// older one in a file that it has read.
    #[serde(default)]
    pub revision: u32,
    /// The tool, time and method.
    pub origin: Origin,
    /// The software and hardware.
    #[serde(default)]
    pub host: Host,
    /// The machine's parts.
    pub topology: Topology,
    /// Data caches as claimed and as the latency curve shows them, nearest first.
    #[serde(default)]
    pub caches: Vec<CacheFinding>,
    /// The latency curve, by size then stride.
    #[serde(default)]
    pub curve: Vec<CurvePoint>,
    /// Cost of an access by level, nearest first, memory last.
    #[serde(default)]
    pub levels: Vec<LevelCost>,
    /// Cost of a line that another hardware thread holds.
    #[serde(default)]
    pub transfers: Vec<StateTransfer>,
    /// Transfer latency by pair of hardware threads, each pair once.
    #[serde(default)]
    pub pairs: Vec<PairTransfer>,
    /// Sequential bandwidth.
    #[serde(default)]
    pub bandwidths: Vec<Bandwidth>,
    /// Distances between nodes, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_distances: Option<NodeDistances>,
    /// Costs of the operating system's services.
    #[serde(default)]
    pub system: SystemCosts,
    /// Interruptions of a thread that only computes, by hardware thread.
    #[serde(default)]
    pub noise: Vec<Noise>,
    /// Cost of passing control to another component.
    #[serde(default)]
    pub hand_overs: Vec<HandOver>,
    /// Measured messages, by which a model is fitted and judged.
    #[serde(default)]
    pub exchanges: Vec<Exchange>,
    /// The firmware's and the kernel's claims, tested.
    #[serde(default)]
    pub claims: Vec<Claim>,
}

impl Profile {
    /// A profile with only a machine's parts and no costs: a probe starts from it.
    #[must_use]
    pub fn empty(origin: Origin, topology: Topology) -> Self {
        Self {
            format: FORMAT,
            revision: REVISION,
            origin,
            host: Host::default(),
            topology,
            caches: Vec::new(),
            curve: Vec::new(),
            levels: Vec::new(),
            transfers: Vec::new(),
            pairs: Vec::new(),
            bandwidths: Vec::new(),
            node_distances: None,
            system: SystemCosts::default(),
            noise: Vec::new(),
            hand_overs: Vec::new(),
            exchanges: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// The transfer between two hardware threads, in either order, if the profile has the pair.
    #[must_use]
    pub fn pair(&self, a: Thread, b: Thread) -> Option<&PairTransfer> {
        let wanted = (a.min(b), a.max(b));
        self.pairs
            .iter()
            .find(|pair| (pair.a.min(pair.b), pair.a.max(pair.b)) == wanted)
    }

    /// The cost of a level.
    #[must_use]
    pub fn level(&self, level: Level) -> Option<&LevelCost> {
        self.levels.iter().find(|cost| cost.level == level)
    }

    /// The cost of a line in this state to a hardware thread in this relation to its holder.
    #[must_use]
    pub fn transfer(&self, relation: Relation, state: LineState) -> Option<&StateTransfer> {
        self.transfers
            .iter()
            .find(|cost| cost.relation == relation && cost.state == state)
    }

    /// The cost of passing control.
    #[must_use]
    pub fn hand_over(&self, carrier: Carrier, relation: Relation) -> Option<&HandOver> {
        self.hand_overs
            .iter()
            .find(|cost| cost.carrier == carrier && cost.relation == relation)
    }

    /// Sequential bandwidth by level, kind of access and number of threads.
    #[must_use]
    pub fn bandwidth(&self, level: Level, access: Access, threads: u32) -> Option<&Bandwidth> {
        self.bandwidths
            .iter()
            .find(|b| b.level == level && b.access == access && b.threads == threads)
    }

    /// Claims that measurement contradicts.
    pub fn contradicted(&self) -> impl Iterator<Item = &Claim> {
        self.claims
            .iter()
            .filter(|claim| claim.verdict == ClaimVerdict::Contradicted)
    }
}
