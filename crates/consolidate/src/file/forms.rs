//! The tables of the file, as serde reads them. Values that can be wrong keep their place.

use serde::Deserialize;
use toml::Spanned;

pub(super) type Text = Spanned<String>;
pub(super) type Number = Spanned<f64>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemForm {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) rules: RulesForm,
    #[serde(default, rename = "mode")]
    pub(super) modes: Vec<ModeForm>,
    #[serde(default, rename = "component")]
    pub(super) components: Vec<ComponentForm>,
    #[serde(default, rename = "message")]
    pub(super) messages: Vec<MessageForm>,
    #[serde(default, rename = "point")]
    pub(super) points: Vec<PointForm>,
    #[serde(default, rename = "unit")]
    pub(super) units: Vec<UnitForm>,
    #[serde(default, rename = "bus")]
    pub(super) buses: Vec<BusForm>,
    #[serde(default, rename = "apart")]
    pub(super) apart: Vec<ApartForm>,
    #[serde(default, rename = "switch")]
    pub(super) switches: Vec<SwitchForm>,
    #[serde(default, rename = "before")]
    pub(super) before: Vec<BeforeForm>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RulesForm {
    pub(super) schedulability: Option<Text>,
    pub(super) utilisation_max: Option<Number>,
    pub(super) mixing: Option<Text>,
    pub(super) protocol: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeForm {
    pub(super) name: Text,
    pub(super) share: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComponentForm {
    pub(super) name: Text,
    pub(super) modes: Option<Vec<Text>>,
    pub(super) period_us: Number,
    pub(super) deadline_us: Option<Number>,
    pub(super) wcet_us: Option<Number>,
    #[serde(default)]
    pub(super) times: Vec<TimeForm>,
    pub(super) asil: Option<Text>,
    pub(super) kib: Option<Number>,
    #[serde(default)]
    pub(super) points: Vec<Text>,
    pub(super) on: Option<Text>,
    pub(super) before: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeForm {
    pub(super) core: Option<Text>,
    pub(super) memory: Option<Text>,
    pub(super) us: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageForm {
    pub(super) from: Text,
    pub(super) to: Text,
    pub(super) bytes: Number,
    pub(super) period_us: Number,
    pub(super) latency_us: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PointForm {
    pub(super) name: Text,
    pub(super) at: Option<[Number; 2]>,
    pub(super) cables: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitForm {
    pub(super) name: Text,
    pub(super) count: Option<Number>,
    pub(super) at: Option<[Number; 2]>,
    pub(super) cost: Option<Number>,
    pub(super) power_w: Option<Spanned<Power>>,
    pub(super) sleep_w: Option<Number>,
    pub(super) points: Option<Vec<Text>>,
    pub(super) protected: Option<bool>,
    pub(super) core_latency_us: Option<Number>,
    pub(super) cable_m: Option<Number>,
    #[serde(default)]
    pub(super) core: Vec<CoreForm>,
    #[serde(default)]
    pub(super) memory: Vec<MemoryForm>,
}

/// The same power in each mode, or one for each.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Power {
    Same(f64),
    Each(std::collections::BTreeMap<String, f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoreForm {
    pub(super) kind: Option<Text>,
    pub(super) count: Option<Number>,
    pub(super) lockstep: Option<Text>,
    pub(super) busy_w: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryForm {
    pub(super) kind: Option<Text>,
    pub(super) kib: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BusForm {
    pub(super) name: Text,
    pub(super) kbit_s: Number,
    pub(super) latency_us: Option<Number>,
    pub(super) overhead_bytes: Option<Number>,
    pub(super) load_max: Option<Number>,
    pub(super) units: Option<Vec<Text>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApartForm {
    pub(super) components: Vec<Text>,
    pub(super) by: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchForm {
    pub(super) from: Text,
    pub(super) to: Text,
    pub(super) within_us: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BeforeForm {
    pub(super) name: Text,
    pub(super) at: Option<[Number; 2]>,
    pub(super) cost: Option<Number>,
    pub(super) power_w: Option<Spanned<Power>>,
    pub(super) sleep_w: Option<Number>,
    pub(super) cable_m: Option<Number>,
    pub(super) cores: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MappingForm {
    #[serde(default)]
    pub(super) placed: Vec<PlacedForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlacedForm {
    pub(super) component: Text,
    pub(super) unit: Text,
    pub(super) core: Number,
    pub(super) memory: Option<Number>,
}
