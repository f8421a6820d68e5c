//! CSV: a list of edges, and if there is one a list of vertices.
//!
//! The first line names the columns. Edges have `source` and `target`, vertices `id`; `type` names
//! the type; other columns are attributes, and an empty cell is no value. Cells with commas,
//! quotes or line breaks are quoted, as RFC 4180 has it. Lines that begin with `#` are comments.

use super::{FormError, Loose, LooseEdge, LooseValue, LooseValues, Places, TYPE};

const FORM: &str = "CSV";

/// Reads a list of edges, after a list of vertices. Vertices that only edges name are made as they
/// are met.
///
/// # Errors
/// Lines without the columns above, of other lengths than the first, or with open quotes.
pub fn read(edges: &str, vertices: Option<&str>) -> Result<Loose, FormError> {
    let mut loose = Loose::default();
    let mut places = Places::default();
    if let Some(text) = vertices {
        let table = Table::read(text)?;
        let id = table.column("id")?;
        for (line, row) in &table.rows {
            let count = loose.vertices.len();
            let place = places.of(&mut loose, &row[id]);
            if place < count {
                return Err(fault(
                    *line,
                    format!("the vertex `{}` is there twice", row[id]),
                ));
            }
            let (of, values) = table.values(row, &[id]);
            let vertex = &mut loose.vertices[place];
            (vertex.of, vertex.values) = (of, values);
        }
    }
    let table = Table::read(edges)?;
    let ends = [table.column("source")?, table.column("target")?];
    for (_, row) in &table.rows {
        let [source, target] = ends.map(|end| places.of(&mut loose, &row[end]));
        let (of, values) = table.values(row, &ends);
        loose.edges.push(LooseEdge {
            of,
            source,
            target,
            values,
        });
    }
    Ok(loose)
}

fn fault(line: usize, message: impl Into<String>) -> FormError {
    FormError::Text {
        form: FORM,
        line,
        message: message.into(),
    }
}

struct Table {
    heading: Vec<String>,
    /// With the line where each begins.
    rows: Vec<(usize, Vec<String>)>,
}

impl Table {
    fn read(text: &str) -> Result<Table, FormError> {
        let mut rows = rows(text)?.into_iter();
        let Some((_, heading)) = rows.next() else {
            return Err(fault(
                1,
                "there is no line that names the columns: write one",
            ));
        };
        let heading: Vec<String> = heading.iter().map(|cell| cell.trim().to_owned()).collect();
        let rows: Vec<_> = rows.collect();
        if let Some((line, row)) = rows.iter().find(|(_, row)| row.len() != heading.len()) {
            let (found, wanted) = (row.len(), heading.len());
            let message = format!("there are {found} cells for {wanted} columns: mend the line");
            return Err(fault(*line, message));
        }
        Ok(Table { heading, rows })
    }

    fn column(&self, name: &str) -> Result<usize, FormError> {
        let found = self.heading.iter().position(|cell| cell == name);
        found.ok_or_else(|| {
            let there = self.heading.join(", ");
            fault(
                1,
                format!("no column is called `{name}`; there are {there}: rename one"),
            )
        })
    }

    /// Type and attributes of a row.
    fn values(&self, row: &[String], except: &[usize]) -> (Option<String>, LooseValues) {
        let mut of = None;
        let mut values = LooseValues::new();
        for (place, (name, cell)) in self.heading.iter().zip(row).enumerate() {
            if except.contains(&place) || cell.is_empty() {
                continue;
            }
            if name == TYPE {
                of = Some(cell.clone());
            } else {
                values.push((name.clone(), LooseValue::word(cell)));
            }
        }
        (of, values)
    }
}

fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, FormError> {
    let mut rows = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while chars.peek().is_some() {
        let start = line;
        let mut row = vec![String::new()];
        let mut is_quoted = false;
        let is_comment = chars.peek() == Some(&'#');
        loop {
            let Some(c) = chars.next() else {
                if is_quoted {
                    return Err(fault(start, "a quoted cell does not end: close it"));
                }
                break;
            };
            line += usize::from(c == '\n');
            let cell = row.last_mut().expect("a row has a cell");
            match c {
                '"' if is_quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    cell.push('"');
                }
                '"' if !is_comment && (is_quoted || cell.is_empty()) => is_quoted = !is_quoted,
                ',' if !is_quoted => row.push(String::new()),
                '\r' if !is_quoted => {}
                '\n' if !is_quoted => break,
                c => cell.push(c),
            }
        }
        let is_blank = row.len() == 1 && row[0].is_empty();
        if !is_comment && !is_blank {
            rows.push((start, row));
        }
    }
    Ok(rows)
}
