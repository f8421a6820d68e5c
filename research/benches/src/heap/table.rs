//! The table of results: a row for each thing measured, a cell for each allocator.

use super::allocators::{SYSTEM, is_hearth};
use super::workloads::Group;
use hearth_stats::{Ratio, Summary, ratio};

/// One thing that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub group: Group,
    /// Unique in its group.
    pub name: String,
    pub unit: &'static str,
    pub better: Better,
    /// One cell for each allocator, in their order.
    pub cells: Vec<Cell>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    Less,
    More,
}

/// Result of one allocator.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A value for each run; one value where runs are merged.
    Values(Vec<f64>),
    /// It did not take part.
    Nothing,
    Failed(String),
}

/// All results.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    pub allocators: Vec<String>,
    pub rows: Vec<Row>,
}

impl Cell {
    pub fn median(&self) -> Option<f64> {
        match self {
            Cell::Values(values) => Some(Summary::of(values)?.median),
            Cell::Nothing | Cell::Failed(_) => None,
        }
    }

    /// Half of what lies between the quartiles, over the median.
    pub fn spread(&self) -> Option<f64> {
        let Cell::Values(values) = self else {
            return None;
        };
        let found = Summary::of(values).filter(|_| values.len() > 1)?;
        Some((found.upper - found.lower) / 2.0 / found.median).filter(|spread| spread.is_finite())
    }
}

impl Table {
    pub fn new(allocators: Vec<String>) -> Self {
        Table {
            allocators,
            rows: Vec::new(),
        }
    }

    pub fn row(&self, group: Group, name: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.group == group && row.name == name)
    }

    fn place(&self, allocator: &str) -> Option<usize> {
        self.allocators.iter().position(|name| name == allocator)
    }

    pub fn cell<'a>(&self, row: &'a Row, allocator: &str) -> Option<&'a Cell> {
        row.cells.get(self.place(allocator)?)
    }

    pub fn median(&self, row: &Row, allocator: &str) -> Option<f64> {
        self.cell(row, allocator)?.median()
    }

    /// The peer that is best at this, among these or all, and its median. The system's is one.
    pub fn best(&self, row: &Row, among: Option<&[&str]>) -> Option<(&str, f64)> {
        let named = self.allocators.iter().zip(&row.cells);
        let peers = named.filter(|(name, _)| match among {
            Some(among) => among.contains(&name.as_str()),
            None => !is_hearth(name),
        });
        let medians = peers.filter_map(|(name, cell)| Some((name.as_str(), cell.median()?)));
        match row.better {
            Better::Less => medians.min_by(|a, b| a.1.total_cmp(&b.1)),
            Better::More => medians.max_by(|a, b| a.1.total_cmp(&b.1)),
        }
    }

    /// Ratio of one allocator's values to another's.
    pub fn ratio(&self, row: &Row, above: &str, below: &str) -> Option<Ratio> {
        match (self.cell(row, above)?, self.cell(row, below)?) {
            (Cell::Values(above), Cell::Values(below)) => ratio(above, below),
            _ => None,
        }
    }

    /// Factor by which it is better than the system's, for each run of both; over one is better.
    fn gains(&self, row: &Row, allocator: &str) -> Option<Vec<f64>> {
        let (Cell::Values(mine), Cell::Values(of_system)) =
            (self.cell(row, allocator)?, self.cell(row, SYSTEM)?)
        else {
            return None;
        };
        let pairs = mine.iter().zip(of_system);
        Some(match row.better {
            Better::Less => pairs.map(|(mine, system)| system / mine).collect(),
            Better::More => pairs.map(|(mine, system)| mine / system).collect(),
        })
    }

    /// The geometric mean over rows of an allocator's gain over the system's, for each turn in
    /// which all ran. Nothing if it did not run all of them: a mean of the others would flatter.
    pub fn geometric_mean(&self, rows: &[&Row], allocator: &str) -> Cell {
        let gains: Option<Vec<Vec<f64>>> =
            rows.iter().map(|row| self.gains(row, allocator)).collect();
        let Some(gains) = gains.filter(|gains| !gains.is_empty()) else {
            return Cell::Nothing;
        };
        let turns = gains.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |turn: usize| {
            let sum: f64 = gains.iter().map(|gains| gains[turn].ln()).sum();
            (sum / gains.len() as f64).exp()
        };
        Cell::Values((0..turns).map(mean).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["glibc", "one", "Hearth"].map(str::to_owned).to_vec());
        let row = |name: &str, better, values: [f64; 3]| Row {
            group: Group::Suite,
            name: name.to_owned(),
            unit: "s",
            better,
            cells: values.map(|value| Cell::Values(vec![value])).to_vec(),
        };
        table.rows = vec![
            row("time", Better::Less, [4.0, 2.0, 1.0]),
            row("rate", Better::More, [1.0, 3.0, 4.0]),
        ];
        table
    }

    #[test]
    fn the_best_is_a_peer() {
        let table = table();
        assert_eq!(table.best(&table.rows[0], None), Some(("one", 2.0)));
        assert_eq!(table.best(&table.rows[1], None), Some(("one", 3.0)));
        assert_eq!(
            table.best(&table.rows[1], Some(&["glibc"])),
            Some(("glibc", 1.0))
        );
    }

    #[test]
    fn gains_are_over_the_system() {
        let table = table();
        let rows: Vec<&Row> = table.rows.iter().collect();
        let mean = table.geometric_mean(&rows, "Hearth").median();
        assert!(mean.is_some_and(|mean| (mean - 4.0).abs() < 1e-9));
        assert_eq!(table.geometric_mean(&rows, "absent"), Cell::Nothing);
    }
}
