//! Prints what an earlier Hearth took beside this one.

use hearth_benches::earlier::{Compared, Earlier};
use hearth_benches::runtime::{Effort, Measure, Row, session};
use hearth_benches::savina::{self, Program};

/// The rows measured, and those slower or larger than before beyond their interval.
#[derive(Default)]
pub(crate) struct Table {
    rows: usize,
    worse: Vec<String>,
}

impl Table {
    pub(crate) fn begin() -> Table {
        println!(
            "This Hearth beside an earlier one, the same programs in turn; the ratio is now over"
        );
        println!("before, with the interval that holds it in 95 of 100 cases");
        println!(
            "  {:34} {:>10} {:>10} {:>7}  95 of 100",
            "row", "now", "before", "ratio"
        );
        Table::default()
    }

    fn add(&mut self, name: &str, compared: &Compared, less_is_better: bool) -> String {
        let ratio = compared.ratio;
        let is_worse = if less_is_better {
            ratio.low > 1.0
        } else {
            ratio.high < 1.0
        };
        let (now, before) = (compared.now.median, compared.before.median);
        println!(
            "  {name:34} {now:>10.4} {before:>10.4} {:>7.3}  [{:.3}, {:.3}]{} ({} runs each, {} disturbed)",
            ratio.value,
            ratio.low,
            ratio.high,
            if is_worse { " WORSE" } else { "" },
            compared.runs,
            compared.discarded
        );
        self.rows += 1;
        if is_worse {
            self.worse.push(name.to_owned());
        }
        format!(
            "{name},{},{now},{before},{},{},{}",
            compared.runs, ratio.value, ratio.low, ratio.high
        )
    }

    /// Measures a row of the runtime; returns it for the record.
    pub(crate) fn row(
        &mut self,
        row: &Row,
        effort: Effort,
        earlier: &Earlier,
    ) -> Result<String, String> {
        let compared = session::beside_earlier(row, effort, earlier)?;
        let less_is_better = !matches!(row.measure, Measure::SpeedUp);
        Ok(self.add(row.name, &compared, less_is_better))
    }

    /// Measures a program of the Savina suite in each way; returns the rows for the record.
    pub(crate) fn program(
        &mut self,
        program: &Program,
        effort: Effort,
        earlier: &Earlier,
    ) -> Result<String, String> {
        let compared = savina::beside_earlier(program, effort, earlier)?;
        let rows = compared.iter().map(|(way, compared)| {
            let name = format!("{} {} {}", program.full_name(), way.workers, way.place);
            self.add(&name, compared, true)
        });
        Ok(rows.collect::<Vec<_>>().join("\n"))
    }

    /// Prints the rows that are worse. An error if there was nothing to measure.
    pub(crate) fn end(&self) -> Result<(), String> {
        if self.rows == 0 {
            return Err(
                "no row was measured; --before goes with runtime, savina and their rows".into(),
            );
        }
        match self.worse.as_slice() {
            [] => println!("No row of {} is worse beyond its interval.", self.rows),
            worse => println!(
                "{} of {} rows are worse beyond their intervals: {}. By chance it would be one of 40.",
                worse.len(),
                self.rows,
                worse.join(", ")
            ),
        }
        Ok(())
    }
}
