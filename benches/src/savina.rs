//! Savina: twenty-three programs of actors, in Insense and in Go, by `savina/README.md`.
//!
//! The table there is the one that counts: what the programs are called, how much they are given, and
//! what they must say to the small input. Go's sides are built by `benches/install-peers savina`.

use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_lang::compile::{Options, compile};
use hearth_testing::toolchain::{Toolchain, Workshop};

use crate::measure::{Kept, in_turn, pin, run};
use crate::peers;
use crate::runtime::Effort;
use crate::stats::{Ratio, Summary, ratio, summary};

const TABLE: &str = include_str!("../savina/README.md");

/// A program of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    pub name: &'static str,
    pub full: u32,
    pub small: u32,
    /// What it says to the small input.
    pub answer: &'static str,
}

/// All programs, in the order of the table.
pub fn programs() -> Vec<Program> {
    TABLE.lines().filter_map(program).collect()
}

fn program(line: &'static str) -> Option<Program> {
    let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
    Some(Program {
        name: cells.next()?.trim_end_matches('`'),
        full: cells.nth(1)?.parse().ok()?,
        small: cells.next()?.parse().ok()?,
        answer: cells.next()?,
    })
}

impl Program {
    /// What it is called among all benchmarks.
    pub fn full_name(&self) -> String {
        format!("savina-{}", self.name)
    }

    /// About a tenth of the full work.
    pub fn brief(&self) -> u32 {
        match self.name {
            // The work of these does not grow with their input alone.
            "fibonacci" => 16,
            "nqueens" => 11,
            "pi-precision" => 800,
            "sieve" => 50_000,
            _ => self.full / 10,
        }
    }

    fn stem(&self) -> String {
        format!("savina/{0}/{0}", self.name)
    }

    /// Go's side, if it was built.
    fn of_go(&self) -> Result<PathBuf, String> {
        peers::beside(
            &format!("../peers/bin/savina-{}", self.name),
            "see what benches/install-peers says",
        )
    }

    /// Builds Insense's side quickly and runs it with the small input, once in each way.
    pub fn check(&self) -> Result<(), String> {
        let workshop = Workshop::new(self.name)?;
        let name = format!("{}.isf", self.stem());
        let text = std::fs::read_to_string(peers::folder().join(&name))
            .map_err(|error| format!("{name}: {error}"))?;
        let c = compile(&text, &name, &Options::default())
            .c
            .ok_or(format!("{name} has mistakes"))?;
        let built = Toolchain::of_this_profile(&["-O1"])?.build(&c, workshop.path())?;
        for (workers, place) in [("1", "os"), ("2", "spread")] {
            let mut command = Command::new(&built);
            command
                .env("HEARTH_CARRIER", "workers")
                .env("HEARTH_WORKERS", workers)
                .env("HEARTH_PLACE", place);
            let said = run(&mut command, &format!("{}\n", self.small))?.stdout;
            self.compare(&format!("Insense, {workers} workers, {place}"), &said)?;
        }
        Ok(())
    }

    fn compare(&self, who: &str, said: &str) -> Result<(), String> {
        if said.trim_end() == self.answer {
            return Ok(());
        }
        Err(format!(
            "{who} says {said:?} to {} instead of {:?}",
            self.small, self.answer
        ))
    }
}

/// What came out for so many workers, and as many cores.
#[derive(Clone, Debug)]
pub struct Found {
    pub workers: usize,
    pub hearth: Summary,
    pub discarded: usize,
    /// Go's times, and how many times as long as Hearth it takes.
    pub go: Option<(Summary, Ratio)>,
}

/// What came out of a program.
#[derive(Clone, Debug)]
pub struct Measured {
    pub input: u32,
    pub found: Vec<Found>,
    /// What is missing, and what to do.
    pub skipped: Vec<String>,
}

/// Who takes part.
const HEARTH: usize = 0;
const GO: usize = 1;

/// Runs both sides in turn, on one core and on two.
pub fn measure(program: &Program, effort: Effort) -> Result<Measured, String> {
    // Compilers may use what there is.
    let cores = pin(usize::MAX)?.len();
    let workshop = Workshop::new(program.name)?;
    let insense = peers::build_insense(&program.stem(), workshop.path())?;
    let mut sides = vec![insense];
    let mut skipped = Vec::new();
    match program.of_go() {
        Ok(go) => sides.push(go),
        Err(missing) => skipped.push(format!("Go: skipped: {missing}")),
    }
    let input = if effort.brief {
        program.brief()
    } else {
        program.full
    };
    let mut found = Vec::new();
    for workers in [1, 2] {
        if workers > cores {
            skipped.push(format!(
                "{workers} workers: skipped: this process may use {cores} core"
            ));
            continue;
        }
        found.push(side_by_side(program, &sides, input, workers, effort)?);
    }
    Ok(Measured {
        input,
        found,
        skipped,
    })
}

fn side_by_side(
    program: &Program,
    sides: &[PathBuf],
    input: u32,
    workers: usize,
    effort: Effort,
) -> Result<Found, String> {
    pin(workers)?;
    for (side, who) in sides.iter().zip(["Insense", "Go"]) {
        let said = run(&mut command(side, workers), &format!("{}\n", program.small))?;
        program.compare(who, &said.stdout)?;
    }
    // The answers to other inputs are in no table: all runs must say the same.
    let mut said: Option<String> = None;
    let mut kept = in_turn(sides.len(), effort.repeats, |side| {
        let ran = run(&mut command(&sides[side], workers), &format!("{input}\n"))?;
        let first = said.get_or_insert_with(|| ran.stdout.clone());
        if *first != ran.stdout {
            return Err(format!(
                "to {input} one run says {first:?}, another {:?}",
                ran.stdout
            ));
        }
        Ok((ran.times.wall, ran.disturbed))
    })?;
    let values = |kept: &Kept<f64>| summary(&kept.values).ok_or("no measurements");
    let go = match kept.len() {
        2 => {
            let go = kept.swap_remove(GO);
            let ratio = ratio(&go.values, &kept[HEARTH].values).ok_or("no measurements")?;
            Some((values(&go)?, ratio))
        }
        _ => None,
    };
    Ok(Found {
        workers,
        hearth: values(&kept[HEARTH])?,
        discarded: kept[HEARTH].discarded,
        go,
    })
}

fn command(side: &Path, workers: usize) -> Command {
    let mut command = Command::new(side);
    let count = workers.to_string();
    command
        .env("GOMAXPROCS", &count)
        .env("HEARTH_CARRIER", "workers")
        .env("HEARTH_WORKERS", &count)
        // Programs that do not say where they run are dealt out over the workers.
        .env("HEARTH_PLACE", "spread");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let all = programs();
        assert_eq!(all.len(), 23);
        let first = Program {
            name: "ping-pong",
            full: 400_000,
            small: 1000,
            answer: "501500",
        };
        assert_eq!(all[0], first);
        assert!(all.iter().all(|program| program.brief() < program.full));
    }
}
