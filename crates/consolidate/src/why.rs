//! Reasons why two components share a core or unit.

use crate::mapping::Mapping;
use crate::model::System;

/// Most pairs that are told.
const PAIRS_MAX: usize = 200;

/// A pair on one unit that gains by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// One component.
    pub a: usize,
    /// The other.
    pub b: usize,
    /// Gains, in words.
    pub reasons: Vec<String>,
}

/// Pairs that share a unit for a reason, those with the most reasons first.
#[must_use]
pub fn reasons(system: &System, mapping: &Mapping) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for a in 0..system.components.len() {
        for b in a + 1..system.components.len() {
            if mapping.unit(system, a) == mapping.unit(system, b) {
                let reasons = of(system, mapping, a, b);
                if !reasons.is_empty() {
                    pairs.push(Pair { a, b, reasons });
                }
            }
        }
    }
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.reasons.len()));
    pairs.truncate(PAIRS_MAX);
    pairs
}

fn of(system: &System, mapping: &Mapping, a: usize, b: usize) -> Vec<String> {
    let (one, other) = (&system.components[a], &system.components[b]);
    let is_one_core = mapping.0[a].core == mapping.0[b].core;
    let mut reasons = Vec::new();
    if is_one_core && one.modes.and(other.modes).is_empty() {
        reasons
            .push("never active together: the core needs time for the larger one only".to_owned());
    }
    let shared = one
        .points
        .iter()
        .filter(|point| other.points.contains(point));
    for point in shared {
        let name = &system.points[*point].name;
        let from = system.units[mapping.unit(system, a)].at;
        reasons.push(match system.cable_m(from, *point) {
            Some(metres) => format!("both need {name}: one cable of {metres:.1} m serves both"),
            None => format!("both need {name}: one cable serves both"),
        });
    }
    let bits: f64 = (system.messages.iter())
        .filter(|message| {
            [message.from, message.to] == [a, b] || [message.from, message.to] == [b, a]
        })
        .map(|message| {
            let bits = message.bytes as f64 * 8.0 * 1e9 / message.period_ns as f64;
            bits * system.time_share(system.modes_of(message))
        })
        .sum();
    if bits > 0.0 {
        reasons.push(format!(
            "{:.2} kbit/s between them stay off the bus",
            bits / 1e3
        ));
    }
    reasons
}
