//! The communication matrix that `TreeMatch` reads: a line for each component with a number for
//! each component, separated by blanks. The form has no size, names or comments, so names go into a
//! [list](write_names) of their own.

use super::error::{Fault, ReadError, WriteError};
use super::measure::{Measure, Read, Reading};
use super::text::{self, Text, TextPosition, words};
use crate::graph::Graph;

/// Most components that a matrix is written for. `TreeMatch` reads lines of up to a million bytes,
/// and a matrix of this size takes some 130 MB.
pub const MATRIX_COMPONENTS_MAX: usize = 8192;

/// The name of the form in messages.
const FORM: &str = "communication matrix";

/// Relative difference up to which a matrix counts as symmetric: it may have been rounded in print.
const UNEQUAL_MIN: f64 = 1e-9;

/// Meaning of a matrix entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// Messages from the row's component to the column's.
    Apart,
    /// Messages between the two, both ways: the matrix is symmetric, as `TreeMatch` expects.
    #[default]
    Together,
}

/// Writes a graph as a dense communication matrix.
///
/// # Errors
/// If there are more than [`MATRIX_COMPONENTS_MAX`] components, if a number becomes infinite, or
/// if the graph or the measure is not sound.
///
/// ```
/// use hearth_place::forms::{Measure, Ways, write_matrix};
/// use hearth_place::graph::{Component, Connection, Graph};
///
/// let mut graph = Graph::new();
/// let [a, b] = ["a", "b"].map(|name| graph.add(Component::new(name)));
/// graph.connect(Connection::new(a, b).messages(3.0).bytes(64.0));
/// assert_eq!(write_matrix(&graph, Measure::Bytes, Ways::Together)?, "0 192\n192 0\n");
/// assert_eq!(write_matrix(&graph, Measure::Messages, Ways::Apart)?, "0 3\n0 0\n");
/// # Ok::<(), hearth_place::forms::WriteError>(())
/// ```
pub fn write_matrix(graph: &Graph, measure: Measure, ways: Ways) -> Result<String, WriteError> {
    graph.check().map_err(WriteError::Graph)?;
    measure.check()?;
    let count = graph.components.len();
    if count > MATRIX_COMPONENTS_MAX {
        return Err(WriteError::TooMany {
            components: count,
            max: MATRIX_COMPONENTS_MAX,
        });
    }
    let entries = entries(graph, measure, ways)?;
    let mut written = String::with_capacity(count * count * 2 + entries.len() * 8);
    let mut rest = entries.as_slice();
    for row in 0..count {
        for column in 0..count {
            if column > 0 {
                written.push(' ');
            }
            match rest.split_first() {
                Some((entry, others)) if entry.at == (row, column) => {
                    written.push_str(&entry.number.to_string());
                    rest = others;
                }
                _ => written.push('0'),
            }
        }
        written.push('\n');
    }
    Ok(written)
}

struct Entry {
    at: (usize, usize),
    number: f64,
}

/// The entries other than zero, row by row, each place once. Messages of a component to itself do
/// not matter for placement.
fn entries(graph: &Graph, measure: Measure, ways: Ways) -> Result<Vec<Entry>, WriteError> {
    let mut all = Vec::with_capacity(graph.connections.len() * 2);
    for connection in &graph.connections {
        let (from, to) = (connection.from.index(), connection.to.index());
        let number = measure.of(connection);
        if from == to || number == 0.0 {
            continue;
        }
        all.push(Entry {
            at: (from, to),
            number,
        });
        if ways == Ways::Together {
            all.push(Entry {
                at: (to, from),
                number,
            });
        }
    }
    // Stable, so that both halves of a symmetric matrix add the same numbers in the same order.
    all.sort_by_key(|entry| entry.at);
    all.dedup_by(|entry, sum| {
        let is_same = entry.at == sum.at;
        if is_same {
            sum.number += entry.number;
        }
        is_same
    });
    match all.iter().find(|entry| !entry.number.is_finite()) {
        Some(entry) => Err(WriteError::Overflow {
            whose: format!(
                "`{}` and `{}`",
                graph.components[entry.at.0].name, graph.components[entry.at.1].name
            ),
        }),
        None => Ok(all),
    }
}

/// Reads a dense communication matrix as a graph whose components do no work. Skips empty lines and
/// lines that begin with `#` or `%`, although `TreeMatch` does not.
///
/// With [`Ways::Together`] each of the two components sends half of the entry.
///
/// # Errors
/// The place of the fault, and what to do.
///
/// ```
/// use hearth_place::forms::{Reading, Ways, read_matrix};
///
/// let read = read_matrix("0 128\n128 0\n", Ways::Together, &Reading::default())?;
/// assert_eq!(read.graph.connections[0].messages.value, 1.0);
/// let error = read_matrix("0 1\n2 x\n", Ways::Apart, &Reading::default()).unwrap_err();
/// assert!(error.to_string().contains("line 2, column 3: `x`"));
/// # Ok::<(), hearth_place::forms::ReadError>(())
/// ```
pub fn read_matrix(text: &str, ways: Ways, reading: &Reading) -> Result<Read, ReadError> {
    if !reading.is_sound() {
        return Err(ReadError::Payload);
    }
    let text = Text { form: FORM, text };
    let Cells { count, cells } = cells(text)?;
    if ways == Ways::Together {
        check_symmetry(text, &cells)?;
    }
    let mut notes = Vec::new();
    let mut graph = text::components(count, reading, Vec::new(), &mut notes)?;
    let mut own = 0;
    for cell in &cells {
        if cell.row == cell.column {
            own += 1;
            continue;
        }
        let number = match ways {
            Ways::Apart => cell.number,
            Ways::Together => cell.number / 2.0,
        };
        graph.connect(reading.connection(cell.row, cell.column, number));
    }
    if own > 0 {
        let what = match own {
            1 => "1 number on the diagonal is".into(),
            _ => format!("{own} numbers on the diagonal are"),
        };
        notes.push(format!(
            "{what} left out: where a component is placed does not change what it sends to itself"
        ));
    }
    graph.check().map_err(ReadError::Graph)?;
    Ok(Read { graph, notes })
}

/// An entry other than zero.
struct Cell {
    row: u32,
    column: u32,
    number: f64,
    place: TextPosition,
}

/// A square matrix.
struct Cells {
    count: usize,
    cells: Vec<Cell>,
}

fn cells(text: Text<'_>) -> Result<Cells, ReadError> {
    let mut cells = Vec::new();
    let mut wanted = None;
    let mut rows = 0;
    for (line, row_text) in text.text.lines().enumerate() {
        if row_text.trim().is_empty() || row_text.trim_start().starts_with(['#', '%']) {
            continue;
        }
        let mut found = 0;
        for (place, word) in words(line, row_text) {
            let number = number(text, place, word)?;
            if number > 0.0 {
                cells.push(Cell {
                    row: text::small(rows),
                    column: text::small(found),
                    number,
                    place,
                });
            }
            found += 1;
        }
        rows += 1;
        let wanted = *wanted.get_or_insert(found);
        if found != wanted {
            let (row, byte) = (rows, row_text.len());
            let fault = Fault::Row { row, found, wanted };
            return Err(text.error(TextPosition { line, byte }, fault));
        }
        // Reject an extra row where it stands, before reading a long rest.
        if rows > wanted {
            let found = rows;
            return Err(text.error(
                TextPosition { line, byte: 0 },
                Fault::Rows { found, wanted },
            ));
        }
    }
    match wanted {
        None => Err(text.error(text.end(), Fault::Empty)),
        Some(wanted) if rows != wanted => {
            let found = rows;
            Err(text.error(text.end(), Fault::Rows { found, wanted }))
        }
        Some(count) => Ok(Cells { count, cells }),
    }
}

/// Reads a number as C's `atof` does, if it is finite and not negative.
fn number(text: Text<'_>, place: TextPosition, word: &str) -> Result<f64, ReadError> {
    let number = word.parse::<f64>().ok();
    number
        .filter(|n| n.is_finite() && *n >= 0.0)
        .ok_or_else(|| {
            let word = text::shown(word);
            text.error(place, Fault::Number { word })
        })
}

fn check_symmetry(text: Text<'_>, cells: &[Cell]) -> Result<(), ReadError> {
    // Cells are already in the order of rows and columns.
    let mirrored = |row, column| {
        let at = cells.binary_search_by_key(&(row, column), |cell| (cell.row, cell.column));
        at.map_or(0.0, |at| cells[at].number)
    };
    for cell in cells {
        let (here, there) = (cell.number, mirrored(cell.column, cell.row));
        if (here - there).abs() > UNEQUAL_MIN * here.max(there) {
            let fault = Fault::Unequal {
                row: cell.row as usize + 1,
                column: cell.column as usize + 1,
                here,
                there,
            };
            return Err(text.error(cell.place, fault));
        }
    }
    Ok(())
}

/// The names of a graph's components, one a line, in the order of the matrix's rows. Control
/// characters and backslashes in names are escaped.
#[must_use]
pub fn write_names(graph: &Graph) -> String {
    let names = graph.components.iter();
    names.map(|c| text::escape(&c.name) + "\n").collect()
}

/// Reads the output of [`write_names`]. A backslash that escapes nothing stands for itself.
#[must_use]
pub fn read_names(text: &str) -> Vec<String> {
    let name = |line: &str| text::unescape(line).unwrap_or_else(|| line.to_owned());
    text.lines().map(name).collect()
}
