//! Compares the source's model with the source's own measurements, on both of its machines.
//!
//! The intended equations miss in two ways that its tables show. Measured exchanges of nothing
//! take twice the zero-data cost that the equations are given, so that small sizes are predicted
//! at half; and beyond the last cache level the term for faults and interrupts, applied from there
//! on instead of from 32 MiB, is many times too large. With the zero-data cost doubled the first
//! error is gone on the older machine; without the term the second is a sixth there. The rest
//! is prefetch: a sequential pass does not wait for each line.

use super::cache_impact::{CLIFF_BYTES, EXCHANGES};
use crate::source::{Access, Parameters, Slope, Type};

/// A range of sizes by the level that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    /// Up to the first level's capacity.
    FirstLevel,
    /// Above the first level's capacity, up to the last level's.
    OtherLevels,
    /// Above the last level's capacity, and below the size at which both machines slow down.
    BelowCliff,
    /// From the size on at which both machines slow down.
    AboveCliff,
}

/// Variants of the source's model that its own data tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The intended equations.
    Intended,
    /// The zero-data cost counted twice.
    DoubledControl,
    /// The same, and no term for faults and interrupts.
    DoubledControlAlone,
}

/// Distance of a machine's predictions of one type from its measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Index into [`MACHINES`](super::cache_impact::MACHINES).
    pub machine: usize,
    /// The placement.
    pub kind: Type,
    /// The sizes.
    pub region: Region,
    /// Number of sizes with a measurement.
    pub sizes: usize,
    /// The mean of `|predicted − measured| / measured`, percent, for the variants in order.
    pub error_percent: [f64; 3],
}

impl Region {
    /// The region of a size on a machine.
    #[must_use]
    pub fn of(machine: &Parameters, bytes: u64) -> Self {
        let first = machine.levels.first().map_or(0, |l| l.capacity_bytes);
        let last = machine.levels.last().map_or(0, |l| l.capacity_bytes);
        if bytes <= first {
            Self::FirstLevel
        } else if bytes <= last {
            Self::OtherLevels
        } else if bytes < CLIFF_BYTES {
            Self::BelowCliff
        } else {
            Self::AboveCliff
        }
    }
}

impl Variant {
    /// All, in the order of [`Row::error_percent`].
    pub const ALL: [Self; 3] = [
        Self::Intended,
        Self::DoubledControl,
        Self::DoubledControlAlone,
    ];

    /// This variant's prediction, ns.
    #[must_use]
    pub fn predict_ns(self, machine: &Parameters, kind: Type, bytes: u64) -> f64 {
        let intended = machine.communication_ns(kind, bytes, Slope::Derived);
        let base = machine.zero_data.control_ns[(kind.number() - 1) as usize];
        match self {
            Self::Intended => intended,
            Self::DoubledControl => intended + base,
            Self::DoubledControlAlone => {
                let sides = [Access::Write, Access::Read].map(|a| machine.side_ns(a, bytes));
                2.0 * base + sides[0] + sides[1]
            }
        }
    }
}

/// Every machine, type and region for which there are measurements, in that order.
#[must_use]
pub fn replay() -> Vec<Row> {
    const REGIONS: [Region; 4] = [
        Region::FirstLevel,
        Region::OtherLevels,
        Region::BelowCliff,
        Region::AboveCliff,
    ];
    let mut rows = Vec::new();
    for (index, machine) in Parameters::published().iter().enumerate() {
        for kind in Type::ALL {
            for region in REGIONS {
                let measured: Vec<(u64, f64)> = EXCHANGES
                    .iter()
                    .filter(|exchange| Region::of(machine, exchange.bytes) == region)
                    .filter_map(|e| Some((e.bytes, e.time_ns(index, kind)? as f64)))
                    .collect();
                if measured.is_empty() {
                    continue;
                }
                let error = |variant: Variant| {
                    let errors = measured.iter().map(|(bytes, ns)| {
                        (variant.predict_ns(machine, kind, *bytes) - ns).abs() / ns
                    });
                    100.0 * errors.sum::<f64>() / measured.len() as f64
                };
                rows.push(Row {
                    machine: index,
                    kind,
                    region,
                    sizes: measured.len(),
                    error_percent: Variant::ALL.map(error),
                });
            }
        }
    }
    rows
}
