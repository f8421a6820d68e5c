//! Prints and records a row of the runtime's benchmarks.

use std::fmt::Write as _;

use hearth_benches::runtime::session::Side;
use hearth_benches::runtime::{Effort, Found, Measure, Row, measure};

/// Measures a row, prints what came out and returns it as rows of the record, one for each peer.
pub(crate) fn row(row: &Row, effort: Effort) -> Result<String, String> {
    println!("{}: {}", row.name, row.question);
    println!("  {}", row.fairness);
    let found = measure(row, effort)?;
    println!("  {}", side(row, &found.hearth, "Hearth", &found.cores));
    for peer in &found.besides {
        println!("  {}", side(row, peer, &peer.who.label(), &found.cores));
    }
    for skipped in &found.skipped {
        println!("  {skipped}");
    }
    println!("  {}\n", verdict(row, &found));
    Ok(record(row, &found))
}

fn side(row: &Row, side: &Side, label: &str, cores: &[usize]) -> String {
    let summary = &side.summary;
    let decimals = if summary.median < 100.0 { 2 } else { 0 };
    let mut text = format!(
        "{label:25} {:.decimals$} {}, quartiles {:.decimals$} to {:.decimals$}",
        summary.median,
        row.unit(),
        summary.lower,
        summary.upper,
    );
    if let Some(ratio) = side.ratio {
        let _ = write!(
            text,
            "; {:.2} [{:.2}, {:.2}] times Hearth's",
            ratio.value, ratio.low, ratio.high
        );
    }
    let _ = write!(
        text,
        " ({} runs of {} rounds, cores {cores:?}",
        side.values.len(),
        side.rounds
    );
    if !matches!(row.measure, Measure::Memory { .. }) {
        let _ = write!(text, ", less {:.1} ms to start", side.start_s * 1e3);
    }
    if side.discarded > 0 {
        let _ = write!(text, ", {} disturbed ones discarded", side.discarded);
    }
    text.push(')');
    if let Some(aside) = side.aside {
        let _ = write!(text, "; for information: {aside}");
    }
    text
}

fn verdict(row: &Row, found: &Found) -> String {
    let mut text = format!("goal {}", row.goal);
    if let Some(best) = found.best().filter(|_| row.goal.is_of_the_best()) {
        let (label, median) = (best.who.label(), best.summary.median);
        let share = found.hearth.summary.median / median;
        let _ = write!(
            text,
            " (here {label}, {median:.1}; Hearth has {share:.2} of it)"
        );
    }
    text.push_str(match found.is_reached(&row.goal) {
        Some(true) => " reached",
        Some(false) => " MISSED",
        None => ": nobody is there to compare with",
    });
    text
}

/// A row like the other benchmarks': name, repeats, Hearth, peer, ratio and its interval.
fn record(row: &Row, found: &Found) -> String {
    let (name, hearth) = (row.name, &found.hearth);
    let (repeats, ours) = (hearth.values.len(), hearth.summary.median);
    let mut lines = vec![format!("{name},{repeats},{ours},,,,")];
    for peer in &found.besides {
        let label = peer.who.label().replace(',', "");
        let theirs = peer.summary.median;
        if let Some(ratio) = peer.ratio {
            lines.push(format!(
                "{name} {label},{repeats},{ours},{theirs},{},{},{}",
                ratio.value, ratio.low, ratio.high
            ));
        }
    }
    lines.join("\n")
}
