//! Prints the worth of each grade of a mechanism.

use hearth_benches::grades::Grade;
use hearth_benches::grades::rows::GRADES;
use hearth_benches::grades::session::{Found, Programs, check, measure};
use hearth_benches::runtime::Effort;
use hearth_stats::Ratio;

/// Name of all of them together.
pub(crate) const GROUP: &str = "grades";

pub(crate) fn names<'a>() -> impl Iterator<Item = &'a str> {
    GRADES.iter().map(|grade| grade.name)
}

/// The programs built so far, and lines of the table that stands at the end.
#[derive(Default)]
pub(crate) struct Grades {
    programs: Programs,
    table: Vec<String>,
}

impl Grades {
    /// Measures a grade, prints what came out and returns rows of the record.
    pub(crate) fn row(&mut self, grade: &Grade, effort: Effort) -> Result<String, String> {
        println!("{}: {}", grade.name, grade.difference);
        let mut record = Vec::new();
        for load in grade.loads {
            let label = load.label();
            let Some(found) = measure(&mut self.programs, grade, load, effort)? else {
                println!("  {label}: skipped: it needs {} cores", load.cores);
                continue;
            };
            let figures = figures(&found);
            println!(
                "  {label:42} {figures} ({} runs of each, {} disturbed ones discarded)",
                effort.repeats, found.discarded
            );
            self.table.push(line(grade, &label, &found));
            record.push(format!(
                "{} {},{},{},{},{},{},{}",
                grade.name,
                label.replace(',', ""),
                effort.repeats,
                found.ns[0],
                found.ns[1],
                found.time.value,
                found.time.low,
                found.time.high
            ));
        }
        println!();
        Ok(record.join("\n"))
    }

    /// Runs both sides of each load with few rounds, for their answers.
    pub(crate) fn check(&mut self, grade: &Grade) -> Result<(), String> {
        let mut loads = grade.loads.iter();
        loads.try_for_each(|load| check(&mut self.programs, grade, load))
    }

    /// Prints the table for `docs/internals/grades.md`, if anything was measured.
    pub(crate) fn print(&self) {
        if self.table.is_empty() {
            return;
        }
        println!(
            "| grade | load | ns a round | without | time without | CPU without |\n|---|---|---|---|---|---|"
        );
        for line in &self.table {
            println!("{line}");
        }
        println!();
    }
}

fn figures(found: &Found) -> String {
    format!(
        "{:.1} ns a round, {:.1} without: {} times; {} times the CPU time",
        found.ns[0],
        found.ns[1],
        interval(&found.time),
        interval(&found.cpu)
    )
}

fn line(grade: &Grade, label: &str, found: &Found) -> String {
    format!(
        "| {} | {label} | {:.1} | {:.1} | {} | {} |",
        grade.name.strip_prefix("grades-").unwrap_or(grade.name),
        found.ns[0],
        found.ns[1],
        interval(&found.time),
        interval(&found.cpu)
    )
}

fn interval(ratio: &Ratio) -> String {
    format!("{:.2} [{:.2}, {:.2}]", ratio.value, ratio.low, ratio.high)
}
