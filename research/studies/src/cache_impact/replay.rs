//! The source's published figures as evidence, to go through the same rules as ours.

use hearth_published::cache_impact::{EXCHANGES, HEADLINES, Impact, MACHINES};
use hearth_published::source::{Parameters, Type};

use super::verdict::{Evidence, Point};

impl Evidence {
    /// The published evidence of one of the source's two machines.
    ///
    /// Panics if `machine` is not 0 or 1.
    #[must_use]
    pub fn published(machine: usize) -> Evidence {
        let measured = Type::ALL.map(|kind| {
            let points = EXCHANGES.iter().filter_map(|exchange| {
                Some(Point {
                    bytes: exchange.bytes,
                    ns: exchange.time_ns(machine, kind)? as f64,
                    quarters: None,
                })
            });
            points.collect()
        });
        let model = Parameters::published()[machine].clone();
        let capacities = model.levels.iter().enumerate();
        Evidence {
            machine: MACHINES[machine].to_owned(),
            capacities: capacities
                .map(|(at, level)| (format!("L{}", at + 1), level.capacity_bytes))
                .collect(),
            measured,
            model: Some(model),
            limits: Vec::new(),
        }
    }
}

/// A published headline beside what the published table gives by the same rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    /// Index of the machine.
    pub machine: usize,
    /// The placement.
    pub kind: Type,
    /// The printed value, percent.
    pub printed_percent: f64,
    /// The impact from the published times around the capacity, both normalisations.
    pub impact: Impact,
}

/// All four headlines, replayed.
#[must_use]
pub fn headlines() -> Vec<Replayed> {
    let replay = HEADLINES.iter().filter_map(|headline| {
        let evidence = Evidence::published(headline.machine);
        let (_, capacity) = evidence.capacities.last()?;
        Some(Replayed {
            machine: headline.machine,
            kind: headline.kind,
            printed_percent: headline.percent,
            impact: evidence.impact_at(headline.kind, *capacity)?,
        })
    });
    replay.collect()
}
