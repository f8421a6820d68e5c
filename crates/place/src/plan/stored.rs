//! A plan as a file, read back for a graph and machine that may have changed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use hearth_machine::topology::OsThread;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::PlacementPlan;
use crate::graph::Graph;
use crate::graph::read::reason;
use crate::slots::{CpuSlot, Machine};

/// Format that this Hearth writes, and the newest it reads.
const FORMAT: u32 = 1;

/// Place of one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPlace {
    /// The component's name.
    pub component: String,
    /// The operating system's number of the hardware thread.
    pub cpu: OsThread,
    /// The reason, as a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// A plan's file. Only `format` and `places` are required.
///
/// ```json
/// {"format": 1, "policy": "talk", "total_ns": 812.5,
///  "places": [{"component": "maker", "cpu": 2, "why": "…"}]}
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredPlan {
    /// The file's format.
    pub format: u32,
    /// The policy's name.
    #[serde(default)]
    pub policy: String,
    /// J, ns a round, modelled.
    #[serde(default)]
    pub total_ns: f64,
    /// By component.
    pub places: Vec<StoredPlace>,
}

/// Reason why a text is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Not JSON, or not a plan.
    #[error(
        "the plan cannot be read at line {line}, column {column}: {reason}; mend that place, or write it again with `hearth place`"
    )]
    Text {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The parser's explanation.
        reason: String,
    },
    /// A format that this Hearth does not know.
    #[error("the plan has format {format} and this Hearth reads up to {newest}: use a newer Hearth, or write the plan again", newest = FORMAT)]
    Newer {
        /// The file's format.
        format: u32,
    },
    /// A component that appears twice.
    #[error("the plan has two places for `{name}`: take one of the lines out")]
    Twice {
        /// Its name.
        name: String,
    },
}

impl StoredPlan {
    /// The file for a plan.
    #[must_use]
    pub fn of(plan: &PlacementPlan) -> Self {
        let places = plan.places.iter().map(|place| StoredPlace {
            component: place.name.clone(),
            cpu: place.cpu,
            why: place.reason.to_string(),
        });
        Self {
            format: FORMAT,
            policy: plan.policy.to_string(),
            total_ns: plan.cost.total_ns,
            places: places.collect(),
        }
    }

    /// The file's text.
    ///
    /// # Panics
    /// Never: all plans have a form in JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a plan has a form");
        text + "\n"
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// [`PlanError`], with what to do.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_str(text).map_err(|error| PlanError::Text {
            line: error.line(),
            column: error.column(),
            reason: reason(&error),
        })?;
        if plan.format > FORMAT {
            let format = plan.format;
            return Err(PlanError::Newer { format });
        }
        let mut names: Vec<&str> = plan.places.iter().map(|p| p.component.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = twice[0].to_owned();
            return Err(PlanError::Twice { name });
        }
        Ok(plan)
    }

    /// The places as a [file policy](crate::policy::Policy::File) takes them.
    #[must_use]
    pub fn lines(&self) -> Vec<(String, OsThread)> {
        let places = self.places.iter();
        places.map(|p| (p.component.clone(), p.cpu)).collect()
    }

    /// The plan for a graph and a machine as they are now.
    #[must_use]
    pub fn fit(&self, graph: &Graph, machine: &Machine) -> Fitted {
        let mut known: HashMap<&str, OsThread> = self
            .places
            .iter()
            .map(|place| (place.component.as_str(), place.cpu))
            .collect();
        let mut fitted = Fitted::default();
        for component in &graph.components {
            let cpu = known.remove(component.name.as_str());
            let slot = cpu.and_then(|cpu| machine.slot_of(cpu));
            match cpu {
                None => fitted.new.push(component.name.clone()),
                Some(cpu) if slot.is_none() => fitted.lost.push((component.name.clone(), cpu)),
                Some(_) => {}
            }
            fitted.slots.push(slot);
        }
        fitted.missing = known.into_keys().map(str::to_owned).collect();
        fitted.missing.sort_unstable();
        fitted
    }
}

/// A stored plan matched with a graph. [`follow`](crate::adapt::follow) places the components that
/// it does not cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fitted {
    /// Slots that still hold, by component of the graph.
    pub slots: Vec<Option<CpuSlot>>,
    /// Components that the plan lacks.
    pub new: Vec<String>,
    /// Components of the plan that the graph lacks.
    pub missing: Vec<String>,
    /// Components whose hardware thread may not be used any more.
    pub lost: Vec<(String, OsThread)>,
}

/// Differences between two plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Components that only the new plan has, and their hardware threads.
    pub come: Vec<(String, OsThread)>,
    /// Components that only the old plan has.
    pub gone: Vec<(String, OsThread)>,
    /// Components that moved: from, to.
    pub moved: Vec<(String, OsThread, OsThread)>,
    /// Hardware threads that only the old plan uses.
    pub left: Vec<OsThread>,
}

impl fmt::Display for Changes {
    /// One change a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, cpu) in &self.come {
            writeln!(f, "`{name}` is new, on {cpu}")?;
        }
        for (name, cpu) in &self.gone {
            writeln!(f, "`{name}` is gone, it was on {cpu}")?;
        }
        for (name, from, to) in &self.moved {
            writeln!(f, "`{name}` goes from {from} to {to}")?;
        }
        for cpu in &self.left {
            writeln!(f, "{cpu} is not used any more")?;
        }
        Ok(())
    }
}

/// Compares a new plan with an old one by components' names.
#[must_use]
pub fn changes(old: &StoredPlan, new: &StoredPlan) -> Changes {
    let table =
        |plan: &StoredPlan| -> BTreeMap<String, OsThread> { plan.lines().into_iter().collect() };
    let (before, after) = (table(old), table(new));
    let mut changes = Changes::default();
    for (name, to) in &after {
        match before.get(name) {
            None => changes.come.push((name.clone(), *to)),
            Some(from) if from != to => changes.moved.push((name.clone(), *from, *to)),
            Some(_) => {}
        }
    }
    for (name, cpu) in &before {
        if !after.contains_key(name) {
            changes.gone.push((name.clone(), *cpu));
        }
    }
    let mut used: Vec<OsThread> = before.values().copied().collect();
    used.sort_unstable();
    used.dedup();
    let still = |cpu: &OsThread| after.values().any(|other| other == cpu);
    changes.left = used.into_iter().filter(|cpu| !still(cpu)).collect();
    changes
}
