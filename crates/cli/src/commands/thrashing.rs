//! `hearth locality --throughput`: does throughput fall as threads are added?

use std::fmt::Write as _;
use std::path::Path;

use hearth_driver::input;
use hearth_model::locality::thrashing::{self, LEVEL, Runs, Thrashing};
use hearth_terminal::{Failure, output};
use hearth_text::columns::{Columns, Side};
use serde_json::json;

pub(crate) fn thrashing(path: &Path, as_json: bool) -> Result<(), Failure> {
    let source = input::read(path)?;
    let name = &source.name;
    let unfit = |what: &dyn std::fmt::Display| Failure::input(format!("{name}: {what}"));
    let series = thrashing::read(&source.text).map_err(|error| {
        Failure::input(format!("{name}:{error}; a run is `threads, throughput`"))
    })?;
    let found = thrashing::detect(&series).map_err(|error| unfit(&error))?;
    let words = words(&series, found.as_ref());
    if as_json {
        return output::write_json(&json!({
            "runs": series.iter().map(|runs| json!({
                "threads": runs.threads,
                "throughputs": runs.throughputs,
                "mean": mean(runs),
            })).collect::<Vec<_>>(),
            "thrashing": found.map(|found| json!({
                "threads_best": found.threads_best,
                "throughput_best": found.throughput_best,
                "threads_first": found.threads_first,
                "threads_worst": found.threads_worst,
                "throughput_worst": found.throughput_worst,
                "chance": found.chance,
            })),
            "words": words,
        }));
    }
    output::write(text(&series, &words))
}

fn text(series: &[Runs], words: &str) -> String {
    let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Right]);
    columns.row(["threads", "runs", "throughput, mean"]);
    for runs in series {
        columns.row([
            runs.threads.to_string(),
            runs.throughputs.len().to_string(),
            format!("{:.4}", mean(runs)),
        ]);
    }
    let mut text = columns.lines(0);
    let _ = writeln!(text, "\n{words}");
    text
}

fn words(series: &[Runs], found: Option<&Thrashing>) -> String {
    match found {
        Some(found) => format!(
            "{found}\nif a section that all threads share modifies data, one owner for it, by message, may prevent that"
        ),
        None => {
            let (first, last) = (&series[0], &series[series.len() - 1]);
            format!(
                "no internal thrashing from {} to {} threads: no fall that is less likely than {:.0} % by chance",
                first.threads,
                last.threads,
                100.0 * LEVEL
            )
        }
    }
}

fn mean(runs: &Runs) -> f64 {
    runs.throughputs.iter().sum::<f64>() / runs.throughputs.len() as f64
}
