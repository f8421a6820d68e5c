//! The machine that the study runs on: its cores for the source's rows, and the monitors that are
//! there.

use serde::{Deserialize, Serialize};

use super::places::{Place, Row};
use super::ways::Monitor;

/// Cores for the source's rows, and monitors that are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The rows that this machine has, with their cores.
    pub places: Vec<Place>,
    /// Hardware threads and cores that may be used.
    pub cores: usize,
    /// The monitors.
    pub monitors: Vec<Monitor>,
}

impl Site {
    /// The row whose writer is best apart from the application; on one core there is none apart.
    #[must_use]
    pub fn apart(&self) -> Row {
        let has = |row: &Row| self.places.iter().any(|place| place.row == *row);
        let wanted = [Row::A3, Row::A2, Row::A4, Row::A5];
        wanted.into_iter().find(has).unwrap_or(Row::A1)
    }

    /// The rows that this machine lacks.
    #[must_use]
    pub fn lacking(&self) -> Vec<Row> {
        let has = |row: &Row| self.places.iter().any(|place| place.row == *row);
        Row::ALL.into_iter().filter(|row| !has(row)).collect()
    }
}
