//! Builds both sides of a benchmark and runs them in turn.

use crate::catalogue::{Benchmark, Clock};
use crate::measure::{Run, run, undisturbed};
use hearth_lang::compile::{CompileOptions, compile};
use hearth_testing::toolchain::{Toolchain, Workshop};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Both programs, ready to run.
#[derive(Debug)]
pub struct Peers {
    insense: PathBuf,
    c: PathBuf,
    _workshop: Workshop,
}

/// Seconds of each run, in order.
#[derive(Clone, Default, Debug)]
pub struct Series {
    pub insense: Vec<f64>,
    pub c: Vec<f64>,
    /// Pairs of runs that did not count, because other guests of the host disturbed them.
    pub discarded: usize,
}

/// The folder of the benchmarks' programs.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The path of a file that cargo or `research/benches/install-peers` put beside this program.
/// `hint` says what to do if it is not there.
pub fn beside(path: &str, hint: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let found = this.parent().unwrap_or(Path::new(".")).join(path);
    if found.is_file() {
        return Ok(found);
    }
    Err(format!("there is no {path} beside this program; {hint}"))
}

/// Compiles `STEM.isf` below `benches` as `hearth build` does.
pub fn build_insense(stem: &str, workshop: &Path) -> Result<PathBuf, String> {
    build_insense_with(stem, workshop, &CompileOptions::default())
}

/// The same with these options.
pub fn build_insense_with(
    stem: &str,
    workshop: &Path,
    options: &CompileOptions,
) -> Result<PathBuf, String> {
    let name = format!("{stem}.isf");
    let source = folder().join(&name);
    let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    build_text_with(&text, &name, workshop, options)
}

/// The same of a text.
pub fn build_text(text: &str, name: &str, workshop: &Path) -> Result<PathBuf, String> {
    build_text_with(text, name, workshop, &CompileOptions::default())
}

fn build_text_with(
    text: &str,
    name: &str,
    workshop: &Path,
    options: &CompileOptions,
) -> Result<PathBuf, String> {
    let compiled = compile(text, name, options);
    let c = compiled.c.ok_or_else(|| {
        let first = compiled.diagnostics.iter().find(|d| d.is_error());
        format!("{name}: {}", first.map_or("no C", |d| &d.title))
    })?;
    let toolchain = Toolchain::of_this_profile(&["-O3", "-falign-loops=32"])?;
    toolchain.build(&c, workshop)
}

/// Compiles both sides as a user would: -O3.
pub fn build(benchmark: &Benchmark) -> Result<Peers, String> {
    let workshop = Workshop::new(benchmark.name)?;
    let insense = build_insense(benchmark.insense, workshop.path())?;
    let source = folder().join(format!("{}.c", benchmark.c));
    let peer = workshop.path().join("peer");
    let output = Command::new("cc")
        .args(["-O3", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&peer, &source])
        .arg("-lpthread")
        .output()
        .map_err(|error| format!("cannot start cc: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(Peers {
        insense,
        c: peer,
        _workshop: workshop,
    })
}

impl Peers {
    pub fn run_insense(&self, input: u32) -> Result<Run, String> {
        // Those that wait run beside kernel threads, so they are carried by them.
        let mut command = Command::new(&self.insense);
        command.env("HEARTH_CARRIER", "threads");
        run(&mut command, &format!("{input}\n"))
    }

    pub fn run_c(&self, input: u32) -> Result<Run, String> {
        run(&mut Command::new(&self.c), &format!("{input}\n"))
    }

    /// Runs both at the smallest size; an error if an answer is wrong.
    pub fn check(&self, benchmark: &Benchmark) -> Result<(), String> {
        let (input, expected) = benchmark.small;
        let runs = [
            ("Insense", self.run_insense(input)?),
            ("C", self.run_c(input)?),
        ];
        for (side, run) in runs {
            if run.stdout != expected {
                return Err(format!(
                    "{side} says {:?} instead of {expected:?}",
                    run.stdout
                ));
            }
        }
        Ok(())
    }

    /// One uncounted run of each, then `repeats` of each in turn. Both must say the same.
    pub fn alternate(&self, input: u32, clock: Clock, repeats: usize) -> Result<Series, String> {
        let kept = undisturbed(repeats, || self.turn(input, clock))?;
        let (insense, c) = kept.values.into_iter().unzip();
        Ok(Series {
            insense,
            c,
            discarded: kept.discarded,
        })
    }

    /// One run of each: their seconds, Insense's first, and whether one was disturbed. Both must
    /// say the same.
    pub fn turn(&self, input: u32, clock: Clock) -> Result<((f64, f64), bool), String> {
        let seconds = |run: &Run| match clock {
            Clock::Cpu => run.times.cpu,
            Clock::Wall => run.times.wall,
        };
        let (insense, c) = (self.run_insense(input)?, self.run_c(input)?);
        if insense.stdout != c.stdout {
            return Err(format!(
                "the answers differ: Insense {:?}, C {:?}",
                insense.stdout, c.stdout
            ));
        }
        let disturbed = insense.disturbed || c.disturbed;
        Ok(((seconds(&insense), seconds(&c)), disturbed))
    }
}
