//! Compares plans with the best placements there are: all placements are tried.

use hearth_benches::measure::{in_order, run};
use hearth_benches::peers::{beside, build_text, folder};
use hearth_benches::placements::{Components, Placement};
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_sys::affinity;
use hearth_testing::random::Random;
use hearth_testing::toolchain::Workshop;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs to place: the source's six, and five of mixed patterns. Each is a file below `benches`,
/// with replacements in its text such that a run takes a few tenths of a second.
const PROGRAMS: [(&str, &[(&str, &str)]); 11] = [
    ("../../tests/workloads/alloc", &[(", 1000)", ", 3000)")]),
    ("../../tests/workloads/cache", &[(", 10000)", ", 400000)")]),
    (
        "../../tests/workloads/sender-receiver",
        &[("100000)", "5000000)")],
    ),
    (
        "../../tests/workloads/client-server",
        &[("group, 400)", "group, 4800)"), ("(100, 20)", "(1200, 20)")],
    ),
    (
        "../../tests/workloads/dispatch-worker",
        &[("(400, 20)", "(6000, 20)"), ("k, 100)", "k, 1500)")],
    ),
    (
        "../../tests/workloads/no-communication",
        &[(", 100, 100)", ", 1000, 100)")],
    ),
    ("placements/pipeline", &[]),
    ("placements/tree", &[]),
    ("placements/talkers-and-loners", &[]),
    ("placements/request-reply", &[]),
    ("placements/neighbours", &[]),
];

/// If a program has more placements than this, this many are tried, drawn at random.
const MOST: usize = 1024;
/// Number of winners of single runs that are run again, each as often as the others.
const AGAIN: usize = 6;
/// Most cores for which placements are tried: more would take too long.
const CORES_MAX: usize = 4;
/// A placement that takes this many times as long as the best is run once.
const SLOW: f64 = 4.0;
/// Least throughput by the plan over that of the best placement.
const GOAL: f64 = 0.97;
const SEED: u64 = 2013;

/// One way to place a program's components, in the comparison at the end.
struct Side {
    name: String,
    environment: Vec<(&'static str, String)>,
}

struct Trial<'a> {
    program: PathBuf,
    expected: String,
    workshop: &'a Path,
}

impl Trial<'_> {
    fn measure(&self, environment: &[(&'static str, String)]) -> Result<(f64, bool), String> {
        let mut command = Command::new(&self.program);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let ran = run(&mut command, "")?;
        if sorted(&ran.stdout) != self.expected {
            return Err(format!("{environment:?} gave {:?}", ran.stdout));
        }
        Ok((ran.times.wall, ran.disturbed))
    }

    /// The environment that makes a program follow a plan.
    fn following(&self, name: &str, plan: &str) -> Result<Vec<(&'static str, String)>, String> {
        let path = self.workshop.join(name);
        fs::write(&path, plan).map_err(|error| error.to_string())?;
        let path = path.to_string_lossy().into_owned();
        Ok(vec![
            ("HEARTH_PLACE", "plan".to_owned()),
            ("HEARTH_PLAN", path),
        ])
    }
}

/// Lines of different components come in any order.
fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Names of the benchmarks: `placements-` and the program's name.
pub(crate) fn names() -> impl Iterator<Item = String> {
    PROGRAMS
        .iter()
        .map(|(path, _)| format!("placements-{}", short(path)))
}

fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Measures how much of the throughput of the best placement of a program the plan reaches.
pub(crate) fn placements(name: &str, effort: Effort) -> Result<String, String> {
    let program = names().position(|known| known == name);
    let (path, longer) = PROGRAMS[program.ok_or("no such program")?];
    let mut cores = affinity::allowed();
    cores.truncate(CORES_MAX);
    println!("{name}: how much of the throughput of the best placement does `talk` reach?");
    println!(
        "  all placements on {} cores, up to what is alike, or {MOST} by chance (seed {SEED}); the best {AGAIN} \
         of one run each again, {} runs, in turn with the others",
        cores.len(),
        effort.repeats
    );
    row(short(path), &text(path, longer)?, &cores, effort)
}

/// A program's text, with the replacements that make it run longer.
fn text(path: &str, longer: &[(&str, &str)]) -> Result<String, String> {
    let source = folder().join(format!("{path}.isf"));
    let mut text =
        fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    for (from, to) in longer {
        if !text.contains(from) {
            return Err(format!("{}: there is no '{from}'", source.display()));
        }
        text = text.replace(from, to);
    }
    Ok(text)
}

fn row(name: &str, text: &str, cores: &[usize], effort: Effort) -> Result<String, String> {
    let workshop = Workshop::new("placements")?;
    let source = workshop.path().join(format!("{name}.isf"));
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let components = Components::of(text, name)?;
    let program = build_text(text, name, workshop.path())?;
    let first = run(Command::new(&program).env("HEARTH_PLACE", "single"), "")?;
    let trial = Trial {
        program,
        expected: sorted(&first.stdout),
        workshop: workshop.path(),
    };
    let (all, are_all) = candidates(&components, cores.len() as u8);
    let best = best_of(&trial, &components, cores, &all)?;
    let talk = talk(&trial, &source)?;
    let mut sides = vec![
        planned(&talk),
        Side {
            name: "talk".to_owned(),
            environment: talk,
        },
        policy("os, workers", "os", "workers"),
        policy("os, threads", "os", "threads"),
        policy("spread", "spread", "workers"),
        policy("steal", "steal", "workers"),
    ];
    let mut slow = Vec::new();
    let fastest = best.first().map_or(f64::INFINITY, |(seconds, _)| *seconds);
    for side in std::mem::take(&mut sides) {
        let (seconds, _) = trial.measure(&side.environment)?;
        match seconds > SLOW * fastest {
            true => slow.push((side.name, seconds)),
            false => sides.push(side),
        }
    }
    let of_talk = sides.iter().position(|side| side.name == "talk");
    if of_talk.is_none() {
        return Err(format!(
            "{name}: `talk` took more than {SLOW} times as long as the best"
        ));
    }
    let named = sides.len();
    for (number, (_, placement)) in best.iter().enumerate() {
        let plan = components.plan(placement, cores);
        sides.push(Side {
            name: components.told(placement),
            environment: trial.following(&format!("again-{number}"), &plan)?,
        });
    }
    let mut random = Random::new(SEED);
    let kept = in_order(
        sides.len(),
        effort.repeats,
        |order| shuffle(order, &mut random),
        |side| trial.measure(&sides[side].environment),
    )?;
    let walls: Vec<&[f64]> = kept.iter().map(|kept| kept.values.as_slice()).collect();
    let median = |side: usize| Summary::of(walls[side]).map_or(f64::INFINITY, |found| found.median);
    let first = (named..sides.len())
        .min_by(|&a, &b| median(a).total_cmp(&median(b)))
        .ok_or("no placements")?;
    let tried = if are_all { "all" } else { "a sample" };
    println!(
        "  {} placements tried, {tried}; best: {}",
        all.len(),
        sides[first].name
    );
    for (side, seconds) in slow {
        println!("    {side:14} {:7.1} ms, once", seconds * 1e3);
    }
    let mut rows = String::new();
    for side in (0..named).chain([first]) {
        let reached = ratio(walls[first], walls[side]).ok_or("no measurements")?;
        let by = if side == first {
            "the best"
        } else {
            &sides[side].name
        };
        let verdict = match side {
            side if Some(side) == of_talk && reached.value >= GOAL => ", as wanted",
            side if Some(side) == of_talk && reached.high >= GOAL => {
                ", within noise of what is wanted"
            }
            side if Some(side) == of_talk => ", LESS than wanted",
            _ => "",
        };
        println!(
            "    {by:14} {:7.1} ms; {:.3} [{:.3}, {:.3}] of the best's throughput{verdict}",
            median(side) * 1e3,
            reached.value,
            reached.low,
            reached.high
        );
        let _ = writeln!(
            rows,
            "| placements: {name}, {by} | {:.1} ms | {:.3} of the best |",
            median(side) * 1e3,
            reached.value
        );
    }
    Ok(rows)
}

fn shuffle(order: &mut [usize], random: &mut Random) {
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
}

fn policy(name: &str, place: &str, carrier: &str) -> Side {
    Side {
        name: name.to_owned(),
        environment: vec![
            ("HEARTH_PLACE", place.to_owned()),
            ("HEARTH_CARRIER", carrier.to_owned()),
        ],
    }
}

/// All placements, or many; and whether they are all.
fn candidates(components: &Components, cores: u8) -> (Vec<Placement>, bool) {
    if let Some(all) = components.placements(cores, MOST) {
        return (all, true);
    }
    let mut random = Random::new(SEED);
    let mut one = || {
        let core = |_| random.below(usize::from(cores)) as u8;
        (0..components.all.len()).map(core).collect()
    };
    ((0..MOST).map(|_| one()).collect(), false)
}

/// The fastest placements, in one undisturbed run each.
fn best_of(
    trial: &Trial<'_>,
    components: &Components,
    cores: &[usize],
    all: &[Placement],
) -> Result<Vec<(f64, Placement)>, String> {
    let mut found = Vec::with_capacity(all.len());
    for placement in all {
        let environment = trial.following("once", &components.plan(placement, cores))?;
        let (mut seconds, is_disturbed) = trial.measure(&environment)?;
        if is_disturbed {
            seconds = trial.measure(&environment)?.0;
        }
        found.push((seconds, placement));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(found
        .into_iter()
        .take(AGAIN)
        .map(|(seconds, placement)| (seconds, placement.clone()))
        .collect())
}

/// Measures what `hearth run --place talk` gives the program: runs it, and looks up what was kept
/// for it.
fn talk(trial: &Trial<'_>, source: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let cache = trial.workshop.join("cache");
    let mut command = Command::new(beside("hearth", "use benches/run")?);
    command.env("XDG_CACHE_HOME", &cache);
    command.args(["run", "--place", "talk"]).arg(source);
    let ran = run(&mut command, "")?;
    if sorted(&ran.stdout) != trial.expected {
        return Err(format!("hearth run gave {:?}", ran.stdout));
    }
    let mut environment = vec![("HEARTH_PLACE", "talk".to_owned())];
    let kept = fs::read_dir(cache.join("hearth/plans")).map_err(|error| error.to_string())?;
    for path in kept.flatten().map(|entry| entry.path()) {
        let variable = match path.extension().and_then(|kind| kind.to_str()) {
            Some("plan") => "HEARTH_PLAN",
            Some("profile") => "HEARTH_MACHINE",
            Some("tuning") => "HEARTH_TUNING",
            _ => continue,
        };
        environment.push((variable, path.to_string_lossy().into_owned()));
    }
    Ok(environment)
}

/// The same, and nothing while it runs.
fn planned(talk: &[(&'static str, String)]) -> Side {
    let mut environment = talk.to_vec();
    environment[0].1 = "plan".to_owned();
    Side {
        name: "talk, no moves".to_owned(),
        environment,
    }
}
