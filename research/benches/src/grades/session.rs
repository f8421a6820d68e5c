//! Builds the sides of a grade and measures them: in turn, bound to the same cores, each with its
//! own number of rounds, such that a run takes about as long as is wanted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hearth_lang::compile::{CompileOptions, compile};
use hearth_stats::{Ratio, median, ratio};
use hearth_testing::toolchain::{Toolchain, Workshop};

use super::{Grade, Load, Off};
use crate::measure::{Run, in_turn, pin, run};
use crate::peers;
use crate::runtime::Effort;

/// Wanted duration of a run, in seconds: many times a program's start, and short enough that all
/// grades together take some ten minutes.
const RUN_S: f64 = 0.15;
/// Runs to find the rounds for it.
const TRIES: usize = 24;
/// Programs count rounds in 32 bits, and many multiply them.
const ROUNDS_MAX: f64 = 2e8;

const INCLUDE: &str = "#include \"hearth.h\"\n";
/// Makes each operation on a channel a call.
const CALLS: &str = "\
#define hearth_send_scalar(self, channel, value, site) hearth_send(self, channel, value, false, site)
#define hearth_receive_here hearth_receive
#define hearth_select_here hearth_select
";

/// Result of a load.
#[derive(Clone, Debug)]
pub struct Found {
    /// Nanoseconds of a round with the mechanism, and without.
    pub ns: [f64; 2],
    /// How many times as long a round takes without.
    pub time: Ratio,
    /// How many times as much processor time.
    pub cpu: Ratio,
    /// Runs that other guests of the host disturbed.
    pub discarded: usize,
}

/// A program that has been built.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    program: &'static str,
    can_do_without: bool,
    calls: bool,
}

/// Programs, built when they are first needed.
#[derive(Default, Debug)]
pub struct Programs(HashMap<Key, (PathBuf, Workshop)>);

/// A side of a load.
struct Side {
    program: PathBuf,
    variables: Vec<(&'static str, Option<&'static str>)>,
    rounds: u32,
    /// The output with that number of rounds.
    answer: String,
}

/// Runs both sides with few rounds; an error if their answers differ.
pub fn check(programs: &mut Programs, grade: &Grade, load: &Load) -> Result<(), String> {
    pin(usize::MAX)?;
    let sides = sides(programs, grade, load)?;
    let cores = pin(load.cores)?;
    agree(&sides, load, &cores)
}

/// Measures a load. None if there are too few cores.
pub fn measure(
    programs: &mut Programs,
    grade: &Grade,
    load: &Load,
    effort: Effort,
) -> Result<Option<Found>, String> {
    // Compilers may use what there is.
    if pin(usize::MAX)?.len() < load.cores {
        return Ok(None);
    }
    let mut sides = sides(programs, grade, load)?;
    let cores = pin(load.cores)?;
    agree(&sides, load, &cores)?;
    let target = if effort.brief { RUN_S / 10.0 } else { RUN_S };
    for side in &mut sides {
        side.find_rounds(load, &cores, target)?;
    }
    let kept = in_turn(2, effort.repeats, |side| {
        let side = &sides[side];
        let ran = side.run(load, &cores, side.rounds)?;
        if ran.stdout != side.answer {
            return Err(format!(
                "{} says {:?} and, with the same input, {:?}",
                load.label(),
                side.answer,
                ran.stdout
            ));
        }
        Ok((ran.times, ran.disturbed))
    })?;
    // Nanoseconds of a round, of the clock or of the processor.
    let of = |side: usize, cpu: bool| -> Vec<f64> {
        let rounds = f64::from(sides[side].rounds);
        let seconds = kept[side].values.iter().map(|times| match cpu {
            true => times.cpu,
            false => times.wall,
        });
        seconds.map(|seconds| seconds * 1e9 / rounds).collect()
    };
    let found = || {
        Some(Found {
            ns: [median(&of(0, false))?, median(&of(1, false))?],
            time: ratio(&of(1, false), &of(0, false))?,
            cpu: ratio(&of(1, true), &of(0, true))?,
            discarded: kept.iter().map(|kept| kept.discarded).sum(),
        })
    };
    found().map(Some).ok_or("no measurements".to_owned())
}

fn agree(sides: &[Side; 2], load: &Load, cores: &[usize]) -> Result<(), String> {
    let [with, without] = sides;
    let [with, without] = [
        with.run(load, cores, load.small)?.stdout,
        without.run(load, cores, load.small)?.stdout,
    ];
    if with == without && !with.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}: the answers differ: {with:?}, without the mechanism {without:?}",
        load.label()
    ))
}

fn sides(programs: &mut Programs, grade: &Grade, load: &Load) -> Result<[Side; 2], String> {
    let mut side = |is_without: bool| -> Result<Side, String> {
        let mut variables = vec![
            ("HEARTH_CARRIER", Some("workers")),
            (
                "HEARTH_WORKERS",
                Some(if load.workers == 1 { "1" } else { "2" }),
            ),
            ("HEARTH_PLACE", Some(load.place)),
            ("HEARTH_WITHOUT", None),
        ];
        match grade.off {
            Off::Without(mechanism) if is_without => {
                variables.push(("HEARTH_WITHOUT", Some(mechanism)));
            }
            Off::Variable {
                name,
                with,
                without,
            } => variables.push((name, if is_without { Some(without) } else { with })),
            _ => {}
        }
        let program = programs.built(Key {
            program: load.program,
            can_do_without: match grade.off {
                Off::Without(_) => true,
                Off::Build => is_without,
                _ => false,
            },
            calls: grade.off == Off::Calls && is_without,
        })?;
        Ok(Side {
            program,
            variables,
            rounds: load.small,
            answer: String::new(),
        })
    };
    Ok([side(false)?, side(true)?])
}

impl Side {
    fn run(&self, load: &Load, cores: &[usize], rounds: u32) -> Result<Run, String> {
        let mut command = Command::new(&self.program);
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        run(&mut command, &load.input.text(rounds, cores))
    }

    /// Finds how many rounds take as long as is wanted, within a factor of two.
    fn find_rounds(&mut self, load: &Load, cores: &[usize], target: f64) -> Result<(), String> {
        let mut rounds = f64::from(load.small);
        for _ in 0..TRIES {
            let ran = self.run(load, cores, rounds as u32)?;
            self.rounds = rounds as u32;
            self.answer = ran.stdout;
            let factor = (target / ran.times.wall.max(1e-9)).clamp(0.1, 10.0);
            let next = (rounds * factor).clamp(1.0, ROUNDS_MAX).floor();
            if (0.5..2.0).contains(&factor) || next == rounds {
                break;
            }
            rounds = next;
        }
        Ok(())
    }
}

impl Programs {
    /// Builds a program as `hearth build` does, unless it is there.
    fn built(&mut self, key: Key) -> Result<PathBuf, String> {
        if let Some((program, _)) = self.0.get(&key) {
            return Ok(program.clone());
        }
        let name = format!("{}.isf", key.program);
        let source = peers::folder().join(&name);
        let text = std::fs::read_to_string(&source)
            .map_err(|error| format!("{}: {error}", source.display()))?;
        let mut c = compile(&text, &name, &CompileOptions::default())
            .c
            .ok_or(format!("{name} has mistakes"))?;
        if key.calls {
            if !c.contains(INCLUDE) {
                return Err(format!("the C of {name} does not include hearth.h"));
            }
            c = c.replacen(INCLUDE, &format!("{INCLUDE}{CALLS}"), 1);
        }
        let mut toolchain = Toolchain::of_this_profile(&["-O3", "-falign-loops=32"])?;
        if key.can_do_without {
            toolchain.library = library_that_can_do_without(&toolchain.library)?;
        }
        let workshop = Workshop::new("grades")?;
        let program = toolchain.build(&c, workshop.path())?;
        self.0.insert(key, (program.clone(), workshop));
        Ok(program)
    }
}

/// The runtime with the feature `research`, of the same profile, in a target directory of its own:
/// it would take the place of the one that is shipped.
fn library_that_can_do_without(shipped: &Path) -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let home = shipped.parent().ok_or("the library lies nowhere")?;
        let target = home.parent().unwrap_or(home).join("grades");
        let (folder, profile) = match home.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => ("debug", "dev"),
            Some(other) => (other, other),
        };
        let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
            .args(["build", "--quiet", "--package", "hearth-runtime", "--lib"])
            .args(["--features", "research", "--profile", profile])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(peers::folder().join("../.."))
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "the runtime does not build with the feature `research`:\n{}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        Ok(target.join(folder).join("libhearth_runtime.a"))
    };
    BUILT.get_or_init(build).clone()
}
