//! Savina: twenty-three programs of actors, in Insense and in Go, by `savina/README.md`.
//!
//! The table there is the one that counts: names of the programs, their inputs, and their output
//! for the small input. Go's sides are built by `research/benches/install-peers savina`.

use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_lang::compile::{CompileOptions, compile};
use hearth_testing::toolchain::{Toolchain, Workshop};

use crate::earlier::{Compared, Earlier};
use crate::measure::{Kept, in_turn, pin, run};
use crate::peers;
use crate::runtime::Effort;
use hearth_stats::{Ratio, Summary, ratio};

const TABLE: &str = include_str!("../savina/README.md");

/// A program of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    pub name: &'static str,
    pub full: u32,
    pub small: u32,
    /// Output for the small input.
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
    /// Its name among all benchmarks.
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
        let c = compile(&text, &name, &CompileOptions::default())
            .c
            .ok_or(format!("{name} has mistakes"))?;
        let built = Toolchain::of_this_profile(&["-O1"])?.build(&c, workshop.path())?;
        for (workers, places) in WAYS {
            for place in places {
                let side = Side {
                    program: &built,
                    way: Way { workers, place },
                    is_go: false,
                };
                let said = run(&mut side.command(), &format!("{}\n", self.small))?.stdout;
                self.compare(&format!("Insense, {workers} workers, {place}"), &said)?;
            }
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

/// Number of workers, on as many cores, and the way components get to them.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub workers: usize,
    pub place: &'static str,
}

/// Placements measured for each number of workers. On two workers, `steal` lets idle workers take
/// components, as in Go. `spread` distributes them in turn, so every second message of a program
/// that chooses no cores crosses between workers.
const WAYS: [(usize, &[&str]); 2] = [(1, &["os"]), (2, &["steal", "spread"])];

/// Result of a way.
#[derive(Clone, Debug)]
pub struct Found {
    pub way: Way,
    pub hearth: Summary,
    pub discarded: usize,
    /// Go's times, and how many times as long as Hearth it takes.
    pub go: Option<(Summary, Ratio)>,
}

/// Result of a program.
#[derive(Clone, Debug)]
pub struct Measured {
    pub input: u32,
    pub found: Vec<Found>,
    /// Missing parts, and what to do.
    pub skipped: Vec<String>,
}

/// One side of the comparison.
struct Side<'a> {
    program: &'a Path,
    way: Way,
    is_go: bool,
}

/// Runs both sides in turn, on one core and on two.
pub fn measure(program: &Program, effort: Effort) -> Result<Measured, String> {
    // Compilers may use what there is.
    let cores = pin(usize::MAX)?.len();
    let workshop = Workshop::new(program.name)?;
    let insense = peers::build_insense(&program.stem(), workshop.path())?;
    let mut skipped = Vec::new();
    let go = match program.of_go() {
        Ok(go) => Some(go),
        Err(missing) => {
            skipped.push(format!("Go: skipped: {missing}"));
            None
        }
    };
    let input = if effort.brief {
        program.brief()
    } else {
        program.full
    };
    let mut found = Vec::new();
    for (workers, places) in WAYS {
        if workers > cores {
            skipped.push(format!(
                "{workers} workers: skipped: this process may use {cores} core"
            ));
            continue;
        }
        let side = |program, place, is_go| Side {
            program,
            way: Way { workers, place },
            is_go,
        };
        let mut sides: Vec<Side> = Vec::new();
        sides.extend(places.iter().map(|place| side(&insense, place, false)));
        sides.extend(go.iter().map(|go| side(go, "os", true)));
        pin(workers)?;
        found.extend(side_by_side(program, &sides, input, effort)?);
    }
    Ok(Measured {
        input,
        found,
        skipped,
    })
}

/// Runs this Hearth and an earlier one in turn, on one core and on two.
pub fn beside_earlier(
    program: &Program,
    effort: Effort,
    earlier: &Earlier,
) -> Result<Vec<(Way, Compared)>, String> {
    let cores = pin(usize::MAX)?.len();
    let workshop = Workshop::new(program.name)?;
    let now = peers::build_insense(&program.stem(), workshop.path())?;
    let before = earlier.build(&program.stem(), workshop.path())?;
    let input = if effort.brief {
        program.brief()
    } else {
        program.full
    };
    let mut found = Vec::new();
    for (workers, places) in WAYS.into_iter().filter(|(workers, _)| *workers <= cores) {
        pin(workers)?;
        for place in places {
            let way = Way { workers, place };
            let sides = [&now, &before].map(|program| Side {
                program,
                way,
                is_go: false,
            });
            for side in &sides {
                let said = run(&mut side.command(), &format!("{}\n", program.small))?;
                program.compare(side.who(), &said.stdout)?;
            }
            let kept = in_turn(sides.len(), effort.repeats, |side| {
                let ran = run(&mut sides[side].command(), &format!("{input}\n"))?;
                Ok((ran.times.wall, ran.disturbed))
            })?;
            found.push((way, Compared::of(&kept)?));
        }
    }
    Ok(found)
}

fn side_by_side(
    program: &Program,
    sides: &[Side],
    input: u32,
    effort: Effort,
) -> Result<Vec<Found>, String> {
    for side in sides {
        let said = run(&mut side.command(), &format!("{}\n", program.small))?;
        program.compare(side.who(), &said.stdout)?;
    }
    // The answers to other inputs are in no table: all runs must say the same.
    let mut said: Option<String> = None;
    let kept = in_turn(sides.len(), effort.repeats, |side| {
        let ran = run(&mut sides[side].command(), &format!("{input}\n"))?;
        let first = said.get_or_insert_with(|| ran.stdout.clone());
        if *first != ran.stdout {
            return Err(format!(
                "to {input} one run says {first:?}, another {:?}",
                ran.stdout
            ));
        }
        Ok((ran.times.wall, ran.disturbed))
    })?;
    let values = |kept: &Kept<f64>| Summary::of(&kept.values).ok_or("no measurements");
    let go = sides.iter().zip(&kept).find(|(side, _)| side.is_go);
    let mut found = Vec::new();
    for (side, kept) in sides.iter().zip(&kept).filter(|(side, _)| !side.is_go) {
        let beside = |go: &Kept<f64>| {
            let ratio = ratio(&go.values, &kept.values).ok_or("no measurements")?;
            Ok::<_, String>((values(go)?, ratio))
        };
        found.push(Found {
            way: side.way,
            hearth: values(kept)?,
            discarded: kept.discarded,
            go: go.map(|(_, go)| beside(go)).transpose()?,
        });
    }
    Ok(found)
}

impl Side<'_> {
    fn who(&self) -> &'static str {
        if self.is_go { "Go" } else { "Insense" }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        let count = self.way.workers.to_string();
        command
            .env("GOMAXPROCS", &count)
            .env("HEARTH_CARRIER", "workers")
            .env("HEARTH_WORKERS", &count)
            .env("HEARTH_PLACE", self.way.place);
        command
    }
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
