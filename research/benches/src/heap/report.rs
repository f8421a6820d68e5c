//! Writes the results as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::allocators::{Allocator, HEARTH, SYSTEM};
use super::goals::{Judged, judge};
use super::session::RESIDENT;
use super::table::{Better, Cell, Row, Table};
use super::workloads::Group;

/// All tables, one for each group that was measured, and the goals.
pub fn text(table: &Table) -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let rows = table.rows.iter().filter(|row| row.group == group);
        let (memory, others): (Vec<&Row>, Vec<&Row>) =
            rows.partition(|row| row.name.ends_with(RESIDENT));
        if others.is_empty() {
            continue;
        }
        let _ = writeln!(text, "heap {}: {}", group.name(), group.question());
        for rows in [others, memory] {
            text.push_str(&one(table, &rows));
        }
        failures(&mut text, table, group);
        text.push('\n');
    }
    text.push_str(&goals(table));
    text
}

const NAME_WIDTH: usize = 27;
const CELL_WIDTH: usize = 13;

/// A table: medians and, in percent, half of what lies between the quartiles.
fn one(table: &Table, rows: &[&Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let has_hearth = table.allocators.iter().any(|name| name == HEARTH);
    let mut text = format!("  {:NAME_WIDTH$}", "");
    for name in &table.allocators {
        let _ = write!(text, "{name:>CELL_WIDTH$}");
    }
    text.push_str(if has_hearth {
        "  Hearth's of glibc's, of the best peer's\n"
    } else {
        "  best\n"
    });
    for row in rows {
        let named = row.name.trim_end_matches(RESIDENT);
        let _ = write!(text, "  {:NAME_WIDTH$}", with_unit(named, row.unit));
        for cell in &row.cells {
            let _ = write!(text, "{:>CELL_WIDTH$}", shown(cell));
        }
        let _ = writeln!(text, "  {}", beside(table, row, has_hearth));
    }
    text
}

fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() {
        return name.to_owned();
    }
    format!("{name}, {unit}")
}

fn shown(cell: &Cell) -> String {
    match (cell, cell.median(), cell.spread()) {
        (Cell::Failed(_), ..) => "FAILED".to_owned(),
        (_, None, _) => "-".to_owned(),
        (_, Some(median), None) => short(median),
        (_, Some(median), Some(spread)) => format!("{} ±{:.0}", short(median), 100.0 * spread),
    }
}

fn beside(table: &Table, row: &Row, has_hearth: bool) -> String {
    let best = table.best(row, None).map_or("", |(name, _)| name);
    if !has_hearth {
        return best.to_owned();
    }
    let of = |peer: &str| table.ratio(row, HEARTH, peer);
    let interval = |peer: &str| {
        of(peer)
            .filter(|ratio| ratio.value.is_finite())
            .map_or("-".to_owned(), |ratio| {
                format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high)
            })
    };
    format!("{}, {} {best}", interval(SYSTEM), interval(best))
}

/// Three digits, and thousands and millions as such.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1e6 {
        format!("{:.1}M", value / 1e6)
    } else if magnitude >= 1e4 {
        format!("{:.1}k", value / 1e3)
    } else if magnitude >= 100.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Each failure once: several rows come from one run.
fn failures(text: &mut String, table: &Table, group: Group) {
    let mut told: Vec<&str> = Vec::new();
    for row in table.rows.iter().filter(|row| row.group == group) {
        for cell in &row.cells {
            if let Cell::Failed(error) = cell
                && !told.contains(&error.as_str())
            {
                let _ = writeln!(text, "  FAILED: {error}");
                told.push(error);
            }
        }
    }
}

fn goals(table: &Table) -> String {
    let judged = judge(table);
    if judged.is_empty() {
        return String::new();
    }
    let mut text = String::from("goals:\n");
    for one in &judged {
        let row = format!("{} {}", one.goal.group.name(), one.goal.row);
        let _ = writeln!(
            text,
            "  {:36} {:9} {:>9}  {}{}: {}",
            with_unit(&row, one.unit),
            one.goal.who,
            one.value.map_or("-".to_owned(), short),
            one.wanted(),
            one.best
                .as_ref()
                .map_or(String::new(), |(name, value)| format!(
                    " (here {name}, {})",
                    short(*value)
                )),
            verdict(one)
        );
    }
    let count = |wanted| judged.iter().filter(|one| one.is_reached == wanted).count();
    let _ = writeln!(
        text,
        "  {} reached, {} MISSED, {} not measured",
        count(Some(true)),
        count(Some(false)),
        count(None)
    );
    text
}

fn verdict(one: &Judged) -> &'static str {
    match (one.is_reached, one.value) {
        (Some(true), _) => "reached",
        (Some(false), _) => "MISSED",
        (None, None) => "not measured",
        (None, Some(_)) => "nobody is there to compare with",
    }
}

/// Rows of the record, as the other benchmarks': name, repeats, Hearth, peer, ratio and its
/// interval. Without Hearth nothing is recorded.
pub fn records(table: &Table) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &table.rows {
        let Some(Cell::Values(mine)) = table.cell(row, HEARTH) else {
            continue;
        };
        for peer in table.allocators.iter().filter(|name| *name != HEARTH) {
            let ours = table.median(row, HEARTH);
            let theirs = table.median(row, peer);
            let ratio = table.ratio(row, peer, HEARTH);
            if let (Some(ours), Some(theirs), Some(ratio)) = (ours, theirs, ratio) {
                lines.push(format!(
                    "heap {} {} {peer},{},{ours},{theirs},{},{},{}",
                    row.group.name(),
                    row.name.replace(',', ""),
                    mine.len(),
                    ratio.value,
                    ratio.low,
                    ratio.high
                ));
            }
        }
    }
    lines
}

/// Everything, every value included.
pub fn json(table: &Table, allocators: &[Allocator]) -> Value {
    let cell = |cell: &Cell| match cell {
        Cell::Values(values) => json!({ "median": cell.median(), "values": values }),
        Cell::Nothing => Value::Null,
        Cell::Failed(error) => json!({ "failed": error }),
    };
    let rows = table.rows.iter().map(|row| {
        let cells = table.allocators.iter().zip(&row.cells);
        let cells: serde_json::Map<String, Value> = cells
            .map(|(name, found)| (name.clone(), cell(found)))
            .collect();
        json!({
            "group": row.group.name(),
            "name": row.name,
            "unit": row.unit,
            "more_is_better": row.better == Better::More,
            "allocators": cells,
        })
    });
    let goals = judge(table).into_iter().map(|one| {
        json!({
            "group": one.goal.group.name(),
            "name": one.goal.row,
            "who": one.goal.who,
            "wanted": one.wanted(),
            "value": one.value,
            "reached": one.is_reached,
        })
    });
    let allocators = allocators.iter().map(|one| {
        let environment: serde_json::Map<String, Value> = one
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        json!({
            "name": one.name,
            "version": one.version,
            "environment": environment,
        })
    });
    json!({
        "allocators": allocators.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "goals": goals.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["glibc", "snmalloc", "Hearth"].map(str::to_owned).to_vec());
        table.rows.push(Row {
            group: Group::Fast,
            name: "pair-16".to_owned(),
            unit: "ns",
            better: Better::Less,
            cells: vec![
                Cell::Values(vec![6.0, 6.0, 6.0]),
                Cell::Failed("it ended".to_owned()),
                Cell::Values(vec![3.0, 3.0, 3.0]),
            ],
        });
        table
    }

    #[test]
    fn failures_and_ratios_are_told() {
        let text = text(&table());
        assert!(text.contains("FAILED: it ended"), "{text}");
        assert!(
            text.contains("0.50 [0.50, 0.50], 0.50 [0.50, 0.50] glibc"),
            "{text}"
        );
        assert!(text.contains("1 reached, 0 MISSED"), "{text}");
    }

    #[test]
    fn the_record_has_a_line_for_each_peer() {
        assert_eq!(records(&table()), ["heap fast pair-16 glibc,3,3,6,2,2,2"]);
        let json = json(&table(), &[]);
        assert_eq!(json["rows"][0]["allocators"]["Hearth"]["median"], 3.0);
        assert_eq!(json["goals"][0]["reached"], true);
    }

    #[test]
    fn figures_are_short() {
        let all = [3.456, 34.56, 345.6, 9_999.0, 34_560.0, 3_456_000.0].map(short);
        assert_eq!(all, ["3.46", "34.6", "346", "9999", "34.6k", "3.5M"]);
    }
}
