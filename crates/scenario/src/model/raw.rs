//! The file form as serde reads it, with the place of each value.

use serde::Deserialize;
use toml::Spanned;

pub(super) type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawModel {
    pub(super) format: Spanned<u32>,
    pub(super) horizon: Text,
    pub(super) window: Option<Text>,
    #[serde(default)]
    pub(super) modes: Vec<Text>,
    #[serde(default)]
    pub(super) scheduler: RawScheduler,
    #[serde(default)]
    pub(super) core: Vec<RawCore>,
    #[serde(default)]
    pub(super) resource: Vec<RawResource>,
    #[serde(default)]
    pub(super) queue: Vec<RawQueue>,
    #[serde(default)]
    pub(super) task: Vec<Spanned<RawTask>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScheduler {
    pub(super) policy: Option<Text>,
    pub(super) preemptive: Option<Spanned<bool>>,
    pub(super) scope: Option<Text>,
    pub(super) slice: Option<Text>,
    pub(super) steal: Option<Spanned<bool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCore {
    pub(super) name: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawResource {
    pub(super) name: Text,
    pub(super) protocol: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawQueue {
    pub(super) name: Text,
    pub(super) capacity: Spanned<u32>,
    pub(super) when_full: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTask {
    pub(super) name: Text,
    pub(super) arrival: Spanned<RawArrival>,
    pub(super) duration: Option<Text>,
    pub(super) steps: Option<Vec<Spanned<RawStep>>>,
    pub(super) deadline: Option<Text>,
    pub(super) priority: Option<Spanned<u32>>,
    pub(super) weight: Option<Spanned<u32>>,
    pub(super) cores: Option<Vec<Text>>,
    #[serde(default)]
    pub(super) modes: Vec<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawArrival {
    pub(super) period: Option<Text>,
    pub(super) offset: Option<Text>,
    pub(super) jitter: Option<Text>,
    pub(super) between: Option<Text>,
    pub(super) first: Option<Text>,
    pub(super) after: Option<Text>,
    pub(super) push: Option<Text>,
    pub(super) delay: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    pub(super) run: Option<Text>,
    pub(super) lock: Option<Text>,
    pub(super) unlock: Option<Text>,
    pub(super) push: Option<Text>,
    pub(super) pop: Option<Text>,
}
