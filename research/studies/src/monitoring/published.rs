//! The source's table, and its findings. The files are in `research/studies/published/monitoring`;
//! they are facts of this repository, so that a row that cannot be understood is left out and found
//! by a test.

use super::parts::Part;
use super::places::Row;
use crate::claims::{self, Finding, rows};
use crate::judging::Figure;

const PARTS: &str = include_str!("../../published/monitoring/parts.csv");
const DEPTH: &str = include_str!("../../published/monitoring/depth.csv");
const PROCESSORS: &str = include_str!("../../published/monitoring/processors.csv");
const FINDINGS: &str = include_str!("../../published/monitoring/findings.csv");
/// Cores of its machine.
pub const CORES: usize = 8;

/// A row of its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// The row.
    pub row: Row,
    /// The cores, in its words.
    pub cores: &'static str,
    /// Instrumentation, collecting and writing in microseconds, as far as it has numbers.
    pub us: [Option<f64>; 3],
    /// Its words, and where they are.
    pub said: &'static str,
}

impl Parts {
    /// The sum of the parts, if all are there. Where a row has no number for collecting, the source
    /// says that it does not change.
    #[must_use]
    pub fn overhead_us(&self) -> Option<f64> {
        let [instrumentation, collecting] = [0, 1].map(|nth| self.us[nth].or(first().us[nth]));
        Some(instrumentation? + collecting? + self.us[2]?)
    }
}

fn first() -> Parts {
    let parts = parts().into_iter().next();
    parts.unwrap_or(Parts {
        row: Row::S1,
        cores: "",
        us: [None; 3],
        said: "",
    })
}

/// Its table.
#[must_use]
pub fn parts() -> Vec<Parts> {
    let read = |row: Vec<&'static str>| {
        let [id, _, cores, instrumentation, collecting, writing, said] = row[..] else {
            return None;
        };
        Some(Parts {
            row: Row::ALL.into_iter().find(|row| row.id() == id)?,
            cores,
            us: [instrumentation, collecting, writing].map(|text| text.parse().ok()),
            said,
        })
    };
    rows(PARTS).filter_map(read).collect()
}

/// Growth of a part with the depth of recursion, in microseconds: the constant, and what each call
/// adds.
#[must_use]
pub fn by_depth(part: Part) -> Option<(f64, f64)> {
    let mut rows = rows(DEPTH);
    let row = rows.find(|row| row.first() == Some(&part.id()))?;
    Some((row.get(1)?.parse().ok()?, row.get(2)?.parse().ok()?))
}

/// Writing on several processors: name, synchronously, asynchronously, words.
#[must_use]
pub fn processors() -> Vec<[&'static str; 4]> {
    rows(PROCESSORS)
        .filter_map(|row| row.try_into().ok())
        .collect()
}

/// All that it says.
#[must_use]
pub fn findings() -> Vec<Finding> {
    claims::findings(FINDINGS, Figure::exact)
}
