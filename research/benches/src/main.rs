//! `research/benches/run [NAME…] [--repeats N] [--record]`: see `research/benches/README.md`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command speaks to its user"
)]

mod cachet_command;
mod collect_command;
mod command_speed;
mod earlier_report;
mod embedded_command;
mod futures_command;
mod grades_command;
mod heap_report;
mod heaps_command;
mod message_model;
mod net_command;
mod net_server;
mod pair_latency;
mod placements_command;
mod reorder_command;
mod rewrite_command;
mod runtime_report;
mod savina_report;
mod servers_command;
mod stm_command;
mod sync_command;
mod watch_command;

use hearth_benches::catalogue::{BENCHMARKS, Benchmark, Clock, common_notes};
use hearth_benches::earlier::Earlier;
use hearth_benches::embedded::SHAPES;
use hearth_benches::grades::rows::GRADES;
use hearth_benches::heap::allocators::{self, Allocator};
use hearth_benches::heap::session;
use hearth_benches::heap::workloads::{Group, Size};
use hearth_benches::runtime::rows::ROWS;
use hearth_benches::{measure, peers, runtime, savina};
use hearth_stats::{Ratio, Summary, ratio};
use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

/// All of the allocators' benchmarks: they are one table.
const HEAP: &str = "heap";

/// Runs of each side, if more are not asked for.
const REPEATS: usize = 11;

/// The user's request.
#[derive(Default)]
struct Request {
    names: Vec<String>,
    /// None: the usual number.
    repeats: Option<usize>,
    record: bool,
    /// A tenth of the work a run: on a host that is rarely quiet, short runs go undisturbed.
    brief: bool,
    /// Checks only whether the answers are right.
    small: bool,
    heap: heap_report::HeapReportOptions,
    /// An earlier Hearth to stand in for the peers of the runtime's rows and of Savina.
    earlier: Option<Earlier>,
}

impl Request {
    fn effort(&self) -> runtime::Effort {
        runtime::Effort {
            repeats: self.repeats.unwrap_or(REPEATS),
            brief: self.brief,
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("peak") => return part(measure::tell_peak(&words.collect::<Vec<_>>())),
        Some("watched") => return part(watch_command::watched(&words.collect::<Vec<_>>())),
        Some("serve") => return part(net_server::serve(&words.collect::<Vec<_>>())),
        Some("embedded") => return part(embedded_command::embedded(&words.collect::<Vec<_>>())),
        _ => {}
    }
    let request = match request(std::env::args().skip(1)) {
        Ok(request) => request,
        Err(mistake) => {
            eprintln!("{mistake}\n{}", usage());
            return ExitCode::from(2);
        }
    };
    if request.small {
        return small(&request);
    }
    if cfg!(debug_assertions) {
        eprintln!("a debug build measures nothing worth knowing; use benches/run");
        return ExitCode::from(2);
    }
    let mut rows = Vec::new();
    let mut failed = false;
    let mut keep = |name: &str, outcome: Result<String, String>| match outcome {
        Ok(row) => rows.push(row),
        Err(error) => {
            eprintln!("{name}: {error}");
            failed = true;
        }
    };
    let effort = request.effort();
    if let Some(earlier) = &request.earlier {
        let mut table = earlier_report::Table::begin();
        for row in ROWS.iter().filter(|row| request.wants(row.name)) {
            keep(row.name, table.row(row, effort, earlier));
        }
        for program in wanted_of(&savina::programs(), &request) {
            keep(program.name, table.program(program, effort, earlier));
        }
        if let Err(error) = table.end() {
            eprintln!("{error}");
            failed = true;
        }
        return finish(&request, &rows, failed);
    }
    for benchmark in BENCHMARKS.iter().filter(|one| request.wants(one.name)) {
        let input = benchmark.input(request.brief);
        keep(benchmark.name, compare(benchmark, input, effort.repeats));
    }
    for row in ROWS.iter().filter(|row| request.wants(row.name)) {
        keep(row.name, runtime_report::row(row, effort));
    }
    let mut table = savina_report::Table::default();
    let programs = savina::programs();
    for program in wanted_of(&programs, &request) {
        keep(
            program.name,
            savina_report::row(program, effort, &mut table),
        );
    }
    table.print();
    let commands = command_speed::BENCHMARKS.iter();
    for (name, measure) in commands.filter(|(name, _)| request.wants(name)) {
        keep(name, measure(effort));
    }
    for shape in SHAPES.iter().filter(|shape| request.wants(shape.name)) {
        keep(shape.name, embedded_command::row(shape, effort));
    }
    for name in placements_command::names().filter(|name| request.wants(name)) {
        keep(&name, placements_command::placements(&name, effort));
    }
    for name in net_command::names().filter(|name| request.wants(name)) {
        keep(&name, net_command::net(&name, effort));
    }
    let mut grades = grades_command::Grades::default();
    for grade in GRADES.iter().filter(|grade| request.wants(grade.name)) {
        keep(grade.name, grades.row(grade, effort));
    }
    grades.print();
    if request.wants(HEAP) {
        let (size, usual) = if request.brief {
            (Size::Brief, heap_report::REPEATS_BRIEF)
        } else {
            (Size::Full, heap_report::REPEATS)
        };
        let repeats = request.repeats.unwrap_or(usual);
        keep(HEAP, heap_report::heap(&request.heap, repeats, size));
    }
    finish(&request, &rows, failed)
}

/// Records the rows, if that is wanted; the exit code.
fn finish(request: &Request, rows: &[String], mut failed: bool) -> ExitCode {
    if request.record {
        failed |= record(rows).is_err_and(|error| {
            eprintln!("cannot record: {error}");
            true
        });
    }
    ExitCode::from(u8::from(failed))
}

fn wanted_of<'a>(
    programs: &'a [savina::Program],
    request: &Request,
) -> impl Iterator<Item = &'a savina::Program> {
    programs
        .iter()
        .filter(|program| request.wants(&program.full_name()))
}

/// Runs `hearth-benches peak PROGRAM ARGUMENT…` and the like, which this program calls itself.
fn part(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(said) => {
            print!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs each benchmark once at its smallest, for its answer.
fn small(request: &Request) -> ExitCode {
    let mut failed = false;
    let mut tell = |name: &str, outcome: Result<(), String>| match outcome {
        Ok(()) => println!("{name}: the answers are right"),
        Err(error) => {
            eprintln!("{name}: {error}");
            failed = true;
        }
    };
    for benchmark in BENCHMARKS.iter().filter(|one| request.wants(one.name)) {
        let outcome = peers::build(benchmark).and_then(|peers| peers.check(benchmark));
        tell(benchmark.name, outcome);
    }
    for row in ROWS.iter().filter(|row| request.wants(row.name)) {
        tell(row.name, runtime::session::check(row));
    }
    for program in wanted_of(&savina::programs(), request) {
        tell(&program.full_name(), program.check());
    }
    for shape in SHAPES.iter().filter(|shape| request.wants(shape.name)) {
        tell(shape.name, embedded_command::check(shape));
    }
    let mut grades = grades_command::Grades::default();
    for grade in GRADES.iter().filter(|grade| request.wants(grade.name)) {
        tell(grade.name, grades.check(grade));
    }
    if request.wants("futures") {
        tell("futures", futures_command::check());
    }
    if request.wants("rewrite") {
        tell("rewrite", rewrite_command::check());
    }
    if request.wants("stm") {
        tell("stm", stm_command::check());
    }
    if request.wants(HEAP) {
        let (all, _) = allocators::installed(&request.heap.with);
        let checked = all
            .iter()
            .filter(|one| one.library.is_none() || one.is_hearth());
        for one in checked {
            tell(&format!("{HEAP} {}", one.name), session::check(one));
        }
    }
    ExitCode::from(u8::from(failed))
}

fn names() -> String {
    let programs = BENCHMARKS.iter().map(|benchmark| benchmark.name);
    let commands = command_speed::BENCHMARKS.iter().map(|(name, _)| *name);
    let rows = ROWS.iter().map(|row| row.name);
    let of_savina = savina::programs();
    let placements: Vec<String> = placements_command::names().collect();
    let nets: Vec<String> = net_command::names().collect();
    let of_savina: Vec<String> = of_savina.iter().map(savina::Program::full_name).collect();
    programs
        .chain(rows)
        .chain(commands)
        .chain(of_savina.iter().map(String::as_str))
        .chain(placements.iter().map(String::as_str))
        .chain(nets.iter().map(String::as_str))
        .chain(embedded_command::names())
        .chain(grades_command::names())
        .chain([HEAP])
        .collect::<Vec<_>>()
        .join(" ")
}

fn usage() -> String {
    format!(
        "usage: benches/run [NAME…] [--small | --brief] [--repeats N] [--record] [--before TREE]\n\
         names: {}\n\
         groups: compute channels runtime savina placements rust-talk net grades\n\
         of heap: [--only GROUP,…] [--with NAME=LIBRARY[,VARIABLE=VALUE…]] [--json FILE] [--quick, \
         which is --brief]; its groups: {}",
        names(),
        Group::ALL.map(Group::name).join(" ")
    )
}

fn request(mut args: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut request = Request::default();
    let known = names();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} has a value"));
        match arg.as_str() {
            "--brief" | "--quick" => request.brief = true,
            "--small" => request.small = true,
            "--record" => request.record = true,
            "--repeats" => {
                let count = value()?.parse().ok().filter(|&n| n > 0);
                request.repeats = Some(count.ok_or("--repeats has a number of at least 1")?);
            }
            "--before" => request.earlier = Some(Earlier::at(&value()?)?),
            "--only" => request.heap.only(&value()?)?,
            "--with" => request.heap.with.push(Allocator::from_words(&value()?)?),
            "--json" => request.heap.json = Some(value()?),
            "compute" => request.names.extend(of_clock(Clock::Cpu)),
            "runtime" => request
                .names
                .extend(ROWS.iter().map(|row| row.name.to_owned())),
            "savina" => request
                .names
                .extend(savina::programs().iter().map(savina::Program::full_name)),
            "rust-talk" => request
                .names
                .extend(embedded_command::names().map(str::to_owned)),
            grades_command::GROUP => request
                .names
                .extend(grades_command::names().map(str::to_owned)),
            net_command::GROUP => request.names.extend(net_command::names()),
            "placements" => request.names.extend(placements_command::names()),
            "channels" => request.names.extend(of_clock(Clock::Wall)),
            name if known.split(' ').any(|one| one == name) => request.names.push(arg),
            _ => return Err(format!("'{arg}' is no benchmark and no option")),
        }
    }
    Ok(request)
}

fn of_clock(clock: Clock) -> impl Iterator<Item = String> {
    let of = BENCHMARKS.iter().filter(move |one| one.clock == clock);
    of.map(|one| one.name.to_string())
}

/// Runs both sides, prints what came out, and returns it as a row of the record.
fn compare(benchmark: &Benchmark, input: u32, repeats: usize) -> Result<String, String> {
    println!("{}: {}", benchmark.name, benchmark.question);
    println!("  {} {}", benchmark.fairness, common_notes(benchmark));
    let peers = peers::build(benchmark)?;
    peers.check(benchmark)?;
    let cores = measure::pin(benchmark.cores)?;
    let series = peers.alternate(input, benchmark.clock, repeats);
    let series = series?;
    // Insense's speed is C's time over Insense's.
    let speed = ratio(&series.c, &series.insense).ok_or("no measurements")?;
    let (insense, c) = (Summary::of(&series.insense), Summary::of(&series.c));
    let (Some(insense), Some(c)) = (insense, c) else {
        return Err("no measurements".into());
    };
    for (side, times) in [("Insense", insense), ("C", c)] {
        println!(
            "  {side:8} median {:.3} s, quartiles {:.3} to {:.3} ({} runs, cores {cores:?})",
            times.median,
            times.lower,
            times.upper,
            series.c.len()
        );
    }
    println!(
        "  {} pairs of runs did not count: other guests of the host had the cores meanwhile",
        series.discarded
    );
    println!(
        "  speed of Insense over C: {}\n",
        verdict(speed, benchmark.goal)
    );
    let mut row = String::new();
    let _ = write!(
        row,
        "{},{repeats},{},{},{},{},{}",
        benchmark.name, insense.median, c.median, speed.value, speed.low, speed.high
    );
    Ok(row)
}

fn verdict(speed: Ratio, goal: Option<f64>) -> String {
    let interval = format!("{:.3} [{:.3}, {:.3}]", speed.value, speed.low, speed.high);
    match goal {
        None => format!("{interval}, for information"),
        Some(goal) if speed.value >= goal => format!("{interval}, goal {goal} reached"),
        Some(goal) => format!("{interval}, goal {goal} MISSED"),
    }
}

/// Appends the rows to `research/benches/runs/DATE.csv`.
fn record(rows: &[String]) -> std::io::Result<()> {
    let folder = peers::folder().join("runs");
    fs::create_dir_all(&folder)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    let path = folder.join(format!("{seconds}.csv"));
    let mut text = String::from("name,repeats,hearth,peer,ratio,low,high\n");
    for row in rows {
        text.push_str(row);
        text.push('\n');
    }
    fs::write(&path, text)?;
    println!("recorded in {}", path.display());
    Ok(())
}
