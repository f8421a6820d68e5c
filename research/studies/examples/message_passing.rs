//! The microbenchmark of the study message-passing, by itself.
//!
//! `message_passing run CONFIG.json` prints a run's results as JSON; `message_passing config` a
//! configuration to begin with. `message_passing experiment NAME SIZES THREADS SECONDS TURNS` runs
//! one of the source's three experiments (displacement, invalidation, message-size) and prints a
//! line for each cell, with commas; SIZES is `source`, or the KiB of a first cache.
//! `message_passing grid CACHE_KIB LOOPS SECONDS TURNS` compares `auto` with each mode in every
//! cell, for sizes in proportion to a first cache of that many KiB; LOOPS is a list such as `1,2`.
//! Its status is 1 if `auto` is more than 5 % below the best mode in some cell.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program, and its answers go there"
)]

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::{env, io};

use hearth_studies::message_passing::engine::experiments::{Cell, Experiment, Sizes, cells};
use hearth_studies::message_passing::engine::{Config, grid, repeat};

const USAGE: &str = "message_passing config | run CONFIG.json | experiment NAME SIZES THREADS SECONDS TURNS | \
                     grid CACHE_KIB LOOPS SECONDS TURNS";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match command(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn command(arguments: &[String]) -> Result<bool, Box<dyn Error>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["config"] => println!("{}", serde_json::to_string_pretty(&Config::default())?),
        ["run", path] => {
            let summary = repeat(&Config::read(Path::new(path))?)?;
            println!("{}", serde_json::to_string_pretty(&summary)?);
        }
        ["experiment", name, sizes, threads, seconds, turns] => {
            let sizes = match sizes {
                "source" => Sizes::Source,
                kib => Sizes::of_cache_bytes(kib.parse::<f64>()? * 1024.0),
            };
            let base = Config {
                seconds: seconds.parse()?,
                repetitions: turns.parse()?,
                ..Config::default()
            };
            print_cells(&cells(
                experiment_of(name)?,
                sizes,
                Some(&numbers(threads)?),
                &base,
            ))?;
        }
        ["grid", cache, loops, seconds, turns] => {
            let sizes = Sizes::of_cache_bytes(cache.parse::<f64>()? * 1024.0);
            let loops = numbers(loops)?;
            return compare(sizes, &loops, seconds.parse()?, turns.parse()?);
        }
        _ => return Err(format!("usage: {USAGE}").into()),
    }
    Ok(true)
}

fn numbers(list: &str) -> Result<Vec<usize>, Box<dyn Error>> {
    Ok(list.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

fn experiment_of(name: &str) -> Result<Experiment, Box<dyn Error>> {
    match name {
        "displacement" => Ok(Experiment::Displacement),
        "invalidation" => Ok(Experiment::Invalidation),
        "message-size" => Ok(Experiment::MessageSize),
        _ => Err(format!(
            "there is no experiment {name:?}; choose displacement, invalidation or message-size"
        )
        .into()),
    }
}

/// A line for each cell: medians, and the range of the rate.
fn print_cells(cells: &[Cell]) -> Result<(), Box<dyn Error>> {
    println!(
        "mode,threads,section_lines,modified_lines,message_bytes,iterations_per_second,least,most,\
         cycles_per_iteration,server_busy_percent"
    );
    for Cell { config, .. } in cells {
        let summary = repeat(config)?;
        let rate = summary.iterations_per_second;
        let busy = summary
            .server_busy_percent
            .map_or(String::new(), |busy| format!("{:.1}", busy.median));
        println!(
            "{},{},{},{},{},{:.0},{:.0},{:.0},{:.0},{busy}",
            config.mode,
            config.threads,
            config.section_lines,
            config.modified_lines,
            config.message_bytes,
            rate.median,
            rate.least,
            rate.most,
            summary.cycles_per_iteration.median,
        );
    }
    Ok(())
}

/// True if `auto` holds in every cell.
fn compare(
    sizes: Sizes,
    loops: &[usize],
    seconds: f64,
    turns: u32,
) -> Result<bool, Box<dyn Error>> {
    let base = Config {
        seconds,
        warm_up_seconds: 0.5,
        repetitions: turns,
        queue: hearth_sync::Queue::Lines,
        drain_all: true,
        ..Config::default()
    };
    let mut rows = Vec::new();
    let plan = grid::plan(sizes, loops, &base);
    for (done, cell) in plan.iter().enumerate() {
        let row = grid::measure(cell)?;
        eprintln!("{} of {}: {}", done + 1, plan.len(), row.explained);
        rows.push(row);
    }
    io::stdout().write_all(grid::table(&rows).as_bytes())?;
    Ok(rows.iter().all(grid::Row::holds))
}
