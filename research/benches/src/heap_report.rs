//! Prints and records the times and memory of allocators.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use hearth_benches::heap::allocators::{Allocator, HEARTH, HEARTH_REAL_TIME, installed};
use hearth_benches::heap::session::{Found, measure};
use hearth_benches::heap::workloads::{Group, Size};
use hearth_benches::heap::{Request, report};
use hearth_benches::measure::pin;

/// Options of the command line for this benchmark alone.
#[derive(Default)]
pub(crate) struct HeapReportOptions {
    /// None: all.
    pub(crate) groups: Option<Vec<Group>>,
    pub(crate) with: Vec<Allocator>,
    /// File that everything is written to as JSON.
    pub(crate) json: Option<String>,
}

/// Runs, if more are not asked for: there are ten allocators and two dozen programs.
pub(crate) const REPEATS: usize = 5;
pub(crate) const REPEATS_BRIEF: usize = 3;

impl HeapReportOptions {
    /// Reads the argument of `--only`: names of groups with commas in between.
    pub(crate) fn only(&mut self, names: &str) -> Result<(), String> {
        let known = || Group::ALL.map(Group::name).join(" ");
        let groups = names.split(',').map(|name| {
            Group::named(name).ok_or_else(|| format!("'{name}' is none of {}", known()))
        });
        self.groups = Some(groups.collect::<Result<_, String>>()?);
        Ok(())
    }
}

/// Measures, prints what came out and returns rows of the record.
pub(crate) fn heap(
    options: &HeapReportOptions,
    repeats: usize,
    size: Size,
) -> Result<String, String> {
    println!("heap: Hearth's allocator beside others, preloaded into the same programs");
    // Compilers may use what there is; so may threads that an allocator has of its own.
    let cores = pin(2)?;
    let (allocators, missing) = installed(&options.with);
    for one in &allocators {
        println!("  {:13} {}", one.name, one.version);
    }
    for line in &missing {
        println!("  {line}");
    }
    if !allocators.iter().any(|one| one.name == HEARTH_REAL_TIME) {
        println!(
            "  {HEARTH_REAL_TIME}: skipped: --with {HEARTH_REAL_TIME}=LIBRARY,VARIABLE=VALUE adds \
             {HEARTH} in real-time mode"
        );
    }
    println!("  {repeats} runs in shuffled turns, cores {cores:?}; ± is half of what lies between");
    println!("  the quartiles, in percent\n");
    let request = Request {
        size,
        repeats,
        groups: options.groups.clone().unwrap_or(Group::ALL.to_vec()),
    };
    let mut progress = Progress::begin();
    let found = measure(&request, &allocators, &mut |what| progress.tell(what));
    progress.end();
    let Found { table, skipped } = found?;
    for line in &skipped {
        println!("  {line}");
    }
    println!("{}", report::text(&table));
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", report::json(&table, &allocators));
        std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))?;
        println!("written to {path}");
    }
    Ok(report::records(&table).join("\n"))
}

/// Shows the running program and its time so far on standard error: a line that is written over on
/// a terminal, a line for each first turn elsewhere.
struct Progress {
    start: Instant,
    is_terminal: bool,
}

impl Progress {
    fn begin() -> Self {
        Progress {
            start: Instant::now(),
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    fn tell(&mut self, what: &str) {
        let seconds = self.start.elapsed().as_secs();
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        if self.is_terminal {
            eprint!("\r\x1b[K{minutes}:{seconds:02} {what}");
            // A failed write loses only progress.
            let _ = std::io::stderr().flush();
        } else if what.contains(", turn 1 of ") {
            eprintln!("{minutes}:{seconds:02} {what}");
        }
    }

    fn end(&mut self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
