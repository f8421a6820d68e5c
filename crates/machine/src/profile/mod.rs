//! The profile file: what `hearth probe` found out about a machine, and all else reads.
//!
//! A [`Profile`] holds who measured and how ([`Origin`], [`Host`]), the machine's parts
//! ([`Topology`]), what things cost there, and which of the firmware's claims proved true. Every
//! figure carries its interval, its sample counts and its [`Provenance`]; the unit is in the name
//! of the field that holds it. What was not measured is absent, never zero;
//! [`Profile::with_defaults`] puts stated assumptions in its place.
//!
//! As a file it is JSON. Its schema is `schema/profile.schema.json` ([`SCHEMA`]). What is added
//! without changing what was there makes the [`REVISION`] one larger: readers ignore fields they do
//! not know, and leave out entries of lists with words they do not know, with a note. Whatever a
//! reader could misunderstand makes the [`FORMAT`] one larger, and readers refuse larger ones.
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
    Access, Bandwidth, CacheFinding, Carrier, Claim, CurvePoint, Exchange, Gap, HandOver, Level,
    LevelCost, LineState, NodeDistances, Noise, Pages, PairTransfer, StateTransfer, SystemCosts,
    Verdict,
};
pub use figure::{Figure, Provenance};
pub use host::{Host, Mode, Origin};
pub use read::{Brief, ProfileError};

/// The format this Hearth writes, and the largest it reads.
pub const FORMAT: u32 = 1;

/// The revision of the format that this Hearth writes. Later ones are read, as far as they are
/// known.
pub const REVISION: u32 = 0;

/// The JSON schema of the file.
pub const SCHEMA: &str = include_str!("../../schema/profile.schema.json");

/// A machine, measured. See the [module's text](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The file's format, [`FORMAT`] for whatever this Hearth writes.
    pub format: u32,
    /// The format's revision, [`REVISION`] for whatever this Hearth writes or has read.
    #[serde(default)]
    pub revision: u32,
    /// Who measured, when and how.
    pub origin: Origin,
    /// What the machine runs.
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
    /// What an access costs by level, nearest first, memory last.
    #[serde(default)]
    pub levels: Vec<LevelCost>,
    /// What a line costs that another hardware thread holds.
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
    /// What the operating system's services cost.
    #[serde(default)]
    pub system: SystemCosts,
    /// What disturbs a thread that only computes, by hardware thread.
    #[serde(default)]
    pub noise: Vec<Noise>,
    /// What passing control to another component costs.
    #[serde(default)]
    pub hand_overs: Vec<HandOver>,
    /// Messages passed, by which a model is fitted and judged.
    #[serde(default)]
    pub exchanges: Vec<Exchange>,
    /// The firmware's and the kernel's claims, tested.
    #[serde(default)]
    pub claims: Vec<Claim>,
}

impl Profile {
    /// A profile of a machine about which only its parts are known: no costs at all. What a probe
    /// starts from.
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

    /// What a level costs.
    #[must_use]
    pub fn level(&self, level: Level) -> Option<&LevelCost> {
        self.levels.iter().find(|cost| cost.level == level)
    }

    /// What a line in this state costs a hardware thread in this relation to its holder.
    #[must_use]
    pub fn transfer(&self, relation: Relation, state: LineState) -> Option<&StateTransfer> {
        self.transfers
            .iter()
            .find(|cost| cost.relation == relation && cost.state == state)
    }

    /// What passing control costs.
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
            .filter(|claim| claim.verdict == Verdict::Contradicted)
    }
}
