//! Prints and records the times of the programs of the Savina suite.

use std::fmt::Write as _;

use hearth_benches::runtime::Effort;
use hearth_benches::savina::{Found, Program, measure};

/// Lines of the table that stands at the end.
#[derive(Default)]
pub(crate) struct Table(Vec<String>);

impl Table {
    /// Prints it, if anything was measured.
    pub(crate) fn print(&self) {
        if self.0.is_empty() {
            return;
        }
        println!("Savina: seconds of a whole run, and how many times as long Go takes");
        println!(
            "  {:22} {:>7} {:7} {:>9} {:>9} {:>7}  95 of 100",
            "program", "workers", "place", "Hearth", "Go", "ratio"
        );
        for line in &self.0 {
            println!("  {line}");
        }
        println!();
    }
}

/// Measures a program, prints what came out, adds it to the table and returns rows of the record.
pub(crate) fn row(program: &Program, effort: Effort, table: &mut Table) -> Result<String, String> {
    println!(
        "{}: the same components and messages in Go",
        program.full_name()
    );
    let measured = measure(program, effort)?;
    let mut record = Vec::new();
    for found in &measured.found {
        let way = found.way;
        let name = format!("{} {} {}", program.full_name(), way.workers, way.place);
        let (line, row) = (line(program, found), row_of(&name, found, effort));
        println!(
            "  {line} ({} runs of {}, {} disturbed ones discarded)",
            effort.repeats, measured.input, found.discarded
        );
        table.0.push(line);
        record.push(row);
    }
    for skipped in &measured.skipped {
        println!("  {skipped}");
    }
    println!();
    Ok(record.join("\n"))
}

fn line(program: &Program, found: &Found) -> String {
    let mut text = format!(
        "{:22} {:>7} {:7} {:>9.4}",
        program.name, found.way.workers, found.way.place, found.hearth.median
    );
    let _ = match &found.go {
        Some((go, ratio)) => write!(
            text,
            " {:>9.4} {:>7.2}  [{:.2}, {:.2}]",
            go.median, ratio.value, ratio.low, ratio.high
        ),
        None => write!(text, " {:>9} {:>7}", "-", "-"),
    };
    text
}

fn row_of(name: &str, found: &Found, effort: Effort) -> String {
    let (repeats, ours) = (effort.repeats, found.hearth.median);
    match &found.go {
        Some((go, ratio)) => format!(
            "{name},{repeats},{ours},{},{},{},{}",
            go.median, ratio.value, ratio.low, ratio.high
        ),
        None => format!("{name},{repeats},{ours},,,,"),
    }
}
