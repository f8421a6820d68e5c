//! Calls as comma-separated values, a line each.

use std::io::{self, Write};

use super::Unwritten;
use crate::recorded::Recorded;
use crate::steps::Step;

/// Writes `thread,depth,begin_ns,length_ns,name` for each call that ended, and a line named `gap`
/// with the number of records for each gap. Unknown times are empty.
///
/// # Errors
/// Reading or writing fails.
pub fn csv(recorded: &Recorded, to: &mut dyn Write) -> Result<(), Unwritten> {
    writeln!(to, "thread,depth,begin_ns,length_ns,name,missing")?;
    let mut result: io::Result<()> = Ok(());
    let text = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    recorded.visit(|step| {
        if result.is_err() {
            return;
        }
        result = match step {
            Step::Begins { .. } | Step::Appears { .. } => Ok(()),
            Step::Ends { call, .. } => writeln!(
                to,
                "{},{},{},{},{},",
                call.thread,
                call.depth,
                text(call.begin),
                text(call.length()),
                quoted(call.name.map_or("?", |name| recorded.name(name))),
            ),
            Step::Gap {
                thread,
                from,
                to: until,
                records,
            } => writeln!(
                to,
                "{thread},,{from},{},gap,{records}",
                until.saturating_sub(from)
            ),
        };
    })?;
    Ok(result?)
}

fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}
