//! `cachet-load`: load for servers, from the command line.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that tells its results"
)]

#[path = "main/options.rs"]
mod options;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use cachet_load::chaos::Chaos;
use cachet_load::report::{hgrm, plan_json, plan_text, run_json, run_text};
use cachet_load::{Failed, Generator, Run, search, units};
use clap::Parser;
use hearth_sys::signal::{INTERRUPT, Signals, TERMINATE};
use options::{LoadOptions, Preload};
use serde_json::{Value, json};

/// Exit codes, as everywhere in Hearth.
const NEGATIVE: u8 = 1;
const USAGE: u8 = 2;
const MACHINE: u8 = 3;

fn main() -> ExitCode {
    let options = LoadOptions::parse();
    match work(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NEGATIVE),
        Err(failed) => {
            eprintln!("cachet-load: {failed}");
            ExitCode::from(match failed {
                Failed::Plan(_) => USAGE,
                Failed::Stopped => NEGATIVE,
                Failed::Refused(_) | Failed::Connect { .. } | Failed::Fill { .. } => MACHINE,
            })
        }
    }
}

/// Ends the run in order when the terminal or the system asks for it.
fn stop_on_signals(generator: &Arc<Generator>) {
    let signals = Signals::of(&[INTERRUPT, TERMINATE]);
    signals.block();
    let generator = Arc::clone(generator);
    thread::spawn(move || {
        if signals.wait().is_ok() {
            generator.stop();
        }
    });
}

/// Runs the plan. True if nothing went wrong.
fn work(options: &LoadOptions) -> Result<bool, Failed> {
    let generator = Arc::new(Generator::new(options.plan())?);
    stop_on_signals(&generator);
    let plan = generator.plan();
    let quiet = options.json.as_deref() == Some(Path::new("-"));
    let say = |text: &str| {
        if !quiet {
            println!("{text}");
        }
    };
    say(&plan_text(plan));
    if options.preload() != Preload::None {
        let filled = generator.fill()?;
        let stored = filled.tally.replies.stored;
        say(&filled_text(&filled, plan.key_count()));
        if options.preload() == Preload::Only {
            return Ok(filled.tally.verified.is_good() && stored >= plan.key_count());
        }
    }
    let chaos = options
        .chaos
        .then(|| Chaos::begin(plan.target().clone(), plan.clone()));
    let runs = all_runs(options, &generator, &say)?;
    let did = chaos.map(Chaos::end);
    if let Some(did) = &did {
        say(&did.to_string());
    }
    let is_good = runs.iter().all(|run| run.tally.verified.is_good());
    let json = json!({
        "plan": plan_json(plan),
        "runs": runs.iter().map(run_json).collect::<Vec<Value>>(),
    });
    write_results(options, &json, runs.last());
    Ok(is_good)
}

/// Reports the preload, which writes every key once.
fn filled_text(filled: &Run, keys: u64) -> String {
    let stored = filled.tally.replies.stored;
    if stored >= keys {
        return format!("wrote every key once in {:.1} s", filled.seconds);
    }
    let errors = filled.tally.errors.iter();
    let mut why: Vec<_> = errors
        .map(|(text, times)| format!("{text} ({times})"))
        .collect();
    let not_stored = filled.tally.replies.not_stored;
    if not_stored > 0 {
        why.push(format!("not stored ({not_stored})"));
    }
    format!(
        "wrote {stored} of {keys} keys in {:.1} s; the server refused the rest: {}",
        filled.seconds,
        why.join(", ")
    )
}

fn all_runs(
    options: &LoadOptions,
    generator: &Generator,
    say: &dyn Fn(&str),
) -> Result<Vec<Run>, Failed> {
    if let Some(limit) = options.search {
        return search_runs(options, generator, limit, say);
    }
    let pacings = match &options.scan {
        Some(rates) => rates.0.iter().map(|rate| options.open(*rate)).collect(),
        None => vec![options.plan_pacing(); options.repeat()],
    };
    let mut runs: Vec<Run> = Vec::with_capacity(pacings.len());
    for pacing in &pacings {
        if generator.is_stopped() && !runs.is_empty() {
            break;
        }
        let run = generator.run_paced(*pacing)?;
        match pacings.len() {
            1 => say(&format!("\n{}", run_text(&run).trim_end())),
            _ => say(&line(&run)),
        }
        runs.push(run);
    }
    if options.scan.is_none() && runs.len() > 1 {
        let mut rates: Vec<f64> = runs.iter().map(Run::rate).collect();
        rates.sort_by(f64::total_cmp);
        let middle = runs
            .iter()
            .min_by(|a, b| {
                let from = |run: &Run| (run.rate() - rates[rates.len() / 2]).abs();
                from(a).total_cmp(&from(b))
            })
            .map(run_text)
            .unwrap_or_default();
        say(&format!(
            "\nThe median of {} runs, between {} and {} requests/s:\n{}",
            runs.len(),
            units::show_count(rates[0] as u64),
            units::show_count(rates[rates.len() - 1] as u64),
            middle.trim_end()
        ));
    }
    Ok(runs)
}

fn search_runs(
    options: &LoadOptions,
    generator: &Generator,
    limit: search::Limit,
    say: &dyn Fn(&str),
) -> Result<Vec<Run>, Failed> {
    let mut runs = Vec::new();
    let mut is_first = true;
    let best = search::search(
        generator,
        limit,
        options.gaps(),
        options.per(),
        |run, is_kept| {
            let verdict = match (std::mem::take(&mut is_first), is_kept) {
                (true, _) => "the closed loop's",
                (_, true) => "kept",
                (_, false) => "too much",
            };
            say(&format!("{}  {verdict}", line(run)));
            runs.push(run.clone());
        },
    )?;
    let wanted = format!(
        "p{} within {}",
        limit.percent,
        units::show_ns(limit.ns as f64)
    );
    match best {
        Some(best) => {
            let rate = units::show_count(best.rate().round() as u64);
            say(&format!(
                "\nThe highest rate with {wanted}: {rate} requests/s\n{}",
                run_text(&best).trim_end()
            ));
            runs.push(best);
        }
        None => say(&format!(
            "\nNo rate that was tried keeps {wanted}; ask for a longer time, or look with --scan."
        )),
    }
    Ok(runs)
}

/// Formats a run in one line.
fn line(run: &Run) -> String {
    let latency = run.tally.latency();
    let at = |percent: f64| units::show_ns(latency.percentile(percent) as f64);
    let doubt = match run.doubts().is_empty() {
        true => "",
        false => "  (see the notes of a run of its own)",
    };
    format!(
        "{:>10} requests/s   p50 {:>8}   p99 {:>8}   p99.9 {:>8}   longest {:>8}{doubt}",
        units::show_count(run.rate().round() as u64),
        at(50.0),
        at(99.0),
        at(99.9),
        units::show_ns(latency.max() as f64),
    )
}

fn write_results(options: &LoadOptions, json: &Value, last: Option<&Run>) {
    let write = |path: &Path, text: &str| {
        if path == Path::new("-") {
            println!("{text}");
        } else if let Err(error) = std::fs::write(path, text) {
            eprintln!(
                "cachet-load: cannot write {}: {error}; the result is above only",
                path.display()
            );
        }
    };
    if let Some(path) = &options.json {
        write(path, &format!("{json:#}"));
    }
    if let (Some(path), Some(run)) = (&options.hgrm, last) {
        write(path, &hgrm(&run.tally.latency()));
    }
}
