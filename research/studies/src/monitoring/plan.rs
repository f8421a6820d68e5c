//! The plan of runs: the monitor, the run of the four, the writer's place, the depth of a call.

use serde::{Deserialize, Serialize};

use super::options::{BUSY_DEPTH, Experiment, METHOD_NS, MonitoringOptions};
use super::places::Row;
use super::site::Site;
use super::ways::{Monitor, Way};
use crate::study;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The experiment that it belongs to.
    pub experiment: Experiment,
    /// The monitor.
    pub monitor: Monitor,
    /// The writer and its place.
    pub row: Row,
    /// The run of the four.
    pub way: Way,
    /// Consequence of records that come too fast, by Hearth's names.
    pub law: String,
    /// Time that the innermost call takes.
    pub method_ns: u32,
    /// Calls within a call, itself included.
    pub depth: u32,
}

impl study::Case for Case {
    type Experiment = Experiment;

    fn experiment(&self) -> Experiment {
        self.experiment
    }

    fn words(&self) -> String {
        let Case {
            monitor,
            row,
            way,
            depth,
            ..
        } = self;
        format!(
            "{}, {}, {}, {depth} deep",
            monitor.words(),
            row.id(),
            way.id()
        )
    }

    fn row(&self) -> String {
        let Case {
            monitor,
            row,
            way,
            law,
            method_ns,
            depth,
            ..
        } = self;
        format!(
            "{},{},{},{law},{method_ns},{depth}",
            monitor.id(),
            row.id(),
            way.id()
        )
    }
}

/// The law under which nothing is lost, which the source's writer had, too.
pub const BLOCK: &str = "block";
/// The laws of loss, in the order of tables.
pub const LAWS: [&str; 4] = [BLOCK, "drop-newest", "drop-oldest", "sample"];
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const DEPTHS_QUICK: [u32; 3] = [1, 32, 64];
const DEEPER: [u32; 5] = [256, 1_024, 4_096, 16_384, 65_536];
const DEEPER_QUICK: [u32; 2] = [256, 16_384];
/// Kieker takes microseconds for each call: deeper ones would only take longer.
const KIEKER_DEPTH_MAX: u32 = 256;

/// All cases of an experiment on a site.
#[must_use]
pub fn cases(experiment: Experiment, options: &MonitoringOptions, site: &Site) -> Vec<Case> {
    let case = |monitor, row, way, law: &str, method_ns, depth| Case {
        experiment,
        monitor,
        row,
        way,
        law: law.to_owned(),
        method_ns,
        depth,
    };
    let four = |monitor, row, method_ns, depth| {
        let ways = Way::ALL.into_iter().filter(move |way| has(monitor, *way));
        ways.map(move |way| case(monitor, row, way, BLOCK, method_ns, depth))
    };
    let apart = site.apart();
    match experiment {
        Experiment::Parts | Experiment::Busy => {
            let (method_ns, depth) = match experiment {
                Experiment::Parts => (METHOD_NS, 1),
                _ => (0, BUSY_DEPTH),
            };
            let rows = site.places.iter().map(|place| place.row);
            let each =
                rows.flat_map(|row| site.monitors.iter().map(move |&monitor| (monitor, row)));
            let each = each.filter(|&(monitor, row)| writes(monitor, row));
            each.flat_map(|(monitor, row)| four(monitor, row, method_ns, depth))
                .collect()
        }
        Experiment::Depth => {
            let depths = if options.quick {
                &DEPTHS_QUICK[..]
            } else {
                &DEPTHS
            };
            let each = depths.iter().flat_map(|&depth| {
                let monitors = site.monitors.iter().copied();
                monitors.map(move |monitor| (monitor, depth))
            });
            let each = each.filter(|&(monitor, _)| has(monitor, Way::File));
            each.flat_map(|(monitor, depth)| four(monitor, apart, METHOD_NS, depth))
                .collect()
        }
        Experiment::Saturation => {
            let deeper = if options.quick {
                &DEEPER_QUICK[..]
            } else {
                &DEEPER
            };
            let depths = [64].iter().chain(deeper);
            let mut cases = Vec::new();
            for &depth in depths {
                for &monitor in &site.monitors {
                    let file = |law| case(monitor, apart, Way::File, law, METHOD_NS, depth);
                    let plain = case(monitor, apart, Way::Plain, BLOCK, METHOD_NS, depth);
                    match monitor {
                        Monitor::Hearth => {
                            cases.push(plain);
                            cases.extend(LAWS.map(file));
                        }
                        Monitor::Kieker if depth <= KIEKER_DEPTH_MAX => {
                            cases.extend([plain, file(BLOCK)]);
                        }
                        Monitor::Kieker | Monitor::Fastrace => {}
                    }
                }
            }
            cases
        }
    }
}

/// Whether a monitor can be run so: fastrace has no writer of its own.
const fn has(monitor: Monitor, way: Way) -> bool {
    !matches!((monitor, way), (Monitor::Fastrace, Way::File))
}

/// Whether a monitor has such a row. Kieker 2 always has a queue and a thread that writes; of
/// fastrace, which writes nothing, one row is enough.
const fn writes(monitor: Monitor, row: Row) -> bool {
    match monitor {
        Monitor::Hearth => true,
        Monitor::Kieker => !row.is_synchronous(),
        Monitor::Fastrace => matches!(row, Row::A5),
    }
}
