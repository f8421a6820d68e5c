//! Texts in columns.

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Rows of cells, made into lines with two blanks between columns and none at their ends.
pub struct Columns {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub fn new(sides: &[Side]) -> Self {
        Columns {
            sides: sides.to_vec(),
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds the rows of others.
    pub fn append(&mut self, others: Columns) {
        self.rows.extend(others.rows);
    }

    /// The lines, each indented by so many blanks.
    pub fn lines(&self, indent: usize) -> String {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..count).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (at, cell) in row.iter().enumerate() {
                let blanks = " ".repeat(widths[at] - cell.chars().count());
                let side = self.sides.get(at).copied().unwrap_or(Side::Left);
                match side {
                    Side::Left => line.extend([cell.as_str(), blanks.as_str()]),
                    Side::Right => line.extend([blanks.as_str(), cell.as_str()]),
                }
                line.push_str("  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest() {
        let mut columns = Columns::new(&[Side::Left, Side::Right]);
        columns.row(["a", "1 µs"]);
        columns.row(["long", "12 ns"]);
        columns.row(["x"]);
        assert_eq!(columns.lines(1), " a      1 µs\n long  12 ns\n x\n");
    }
}
