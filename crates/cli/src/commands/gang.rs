//! `hearth gang` and `hearth gangs`: members run at the same time or not at all.

use std::env;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hearth_gang::{BackEnd, GangError, Gangs, Seen, Set};
use hearth_terminal::{Failure, output};
use hearth_text::columns::{Columns, Side};
use hearth_text::{cause, percent};
use serde_json::{Value, json};

use crate::arguments::gang::{GangArguments, GangBackEnd, GangsArguments};

/// The scheduler for the kernel, a program of its own.
const KERNEL_PROGRAM: &str = "hearth-gang-kernel";
/// Folder that kernels with sched_ext have.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

pub(crate) fn gang(arguments: &GangArguments) -> Result<(), Failure> {
    if let Some(folder) = &arguments.keeper {
        return hearth_gang::keep(folder, std::io::stdin(), std::io::stdout()).map_err(failure);
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::input(
            "say which command: hearth gang --cores 2 -- COMMAND",
        ));
    };
    if arguments.kernel {
        return Err(by_kernel(arguments));
    }
    let mut command = Command::new(program);
    command.args(rest);
    let ended = set(arguments).run(&mut command, keeper).map_err(failure)?;
    match (ended.code(), ended.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(Failure::Ended(code as u8)),
        (None, signal) => Err(Failure::Ended(128 + signal.unwrap_or(0) as u8)),
    }
}

fn set(arguments: &GangArguments) -> Set {
    let mut set = Set::of(arguments.cores).slice(Duration::from_millis(arguments.slice.into()));
    if let Some(name) = &arguments.name {
        set = set.named(name);
    }
    if arguments.isolate {
        set = set.isolated();
    }
    if let Some(name) = &arguments.within {
        set = set.within(name);
    }
    match arguments.back_end {
        GangBackEnd::Auto => set,
        GangBackEnd::Gate => set.back_end(BackEnd::Gate),
        GangBackEnd::Freezer => set.back_end(BackEnd::Freezer),
        GangBackEnd::Stop => set.back_end(BackEnd::Stop),
    }
}

/// This program, to let members go if the process that holds them is killed.
fn keeper(folder: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["gang", "--keeper"]).arg(folder);
    command
}

/// Becomes the scheduler's loader. Returns only if that does not work.
fn by_kernel(arguments: &GangArguments) -> Failure {
    if !Path::new(SCHED_EXT).is_dir() {
        return Failure::environment(
            "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT), so it cannot run gangs; leave \
             --kernel out, and they run in user space",
        );
    }
    let first = &arguments.command[0];
    let name = arguments.name.clone().unwrap_or_else(|| {
        let name = first.to_string_lossy();
        name.rsplit('/').next().unwrap_or(&name).to_owned()
    });
    let beside = env::current_exe()
        .ok()
        .map(|here| here.with_file_name(KERNEL_PROGRAM))
        .filter(|path| path.is_file());
    let mut command = Command::new(beside.unwrap_or(PathBuf::from(KERNEL_PROGRAM)));
    command.args(["join", "--name", &name, "--cores"]);
    command.arg(arguments.cores.to_string());
    if arguments.fill {
        command.arg("--fill");
    }
    if arguments.isolate {
        command.arg("--isolate");
    }
    if let Some(within) = &arguments.within {
        command.args(["--within", within]);
    }
    let error = command.arg("--").args(&arguments.command).exec();
    Failure::environment(format!(
        "cannot start {KERNEL_PROGRAM}, which is to be beside hearth or on the PATH: {}; leave \
         --kernel out, and gangs run in user space",
        cause(&error)
    ))
}

pub(crate) fn gangs(arguments: &GangsArguments) -> Result<(), Failure> {
    if arguments.back_ends {
        return output::write(back_ends_text());
    }
    let found = hearth_gang::look().map_err(failure)?;
    if arguments.json {
        return output::write_json(&document(found.as_ref()));
    }
    match found {
        Some(gangs) if !gangs.sets.is_empty() => output::write(text(&gangs)),
        _ => output::write("There are no gangs.\n"),
    }
}

fn back_ends_text() -> String {
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    for tried in hearth_gang::probe() {
        let says = tried.obstacle.unwrap_or_else(|| "works".to_owned());
        columns.row([tried.back_end.name().to_owned(), says]);
    }
    columns.lines(0)
}

fn text(gangs: &Gangs) -> String {
    let mut columns = Columns::new(&[
        Side::Right,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    columns.row([
        "process", "gang", "cores", "demand", "within", "by", "", "time", "together", "lost",
        "switch",
    ]);
    for set in &gangs.sets {
        let description = &set.description;
        columns.row([
            description.id.process.to_string(),
            description.name.clone(),
            description.cores.to_string(),
            set.demand.to_string(),
            within(gangs, set).unwrap_or_default(),
            description.back_end.name().to_owned(),
            if set.is_on { "runs" } else { "waits" }.to_owned(),
            format!("{:.1} s", set.account.on_ns as f64 / 1e9),
            percent(
                set.account.together_ns as f64,
                set.account.wanted_ns as f64,
                1,
            ),
            percent(set.account.lost_ns as f64, wanted_core_ns(set), 1),
            match set.switch_ns {
                Some(ns) => format!("≤ {} µs", ns / 1000),
                None => "-".to_owned(),
            },
        ]);
    }
    let mut text = columns.lines(0);
    if let Some(conductor) = gangs.conductor {
        let idle = percent(gangs.idle_ns as f64, gangs.cores_ns as f64, 1);
        text += &format!(
            "Process {conductor} divides the time; for {idle} of it cores found no gang that fits.\n"
        );
    }
    text
}

/// Core time that a gang wanted in its turns.
fn wanted_core_ns(set: &Seen) -> f64 {
    (set.account.run_ns + set.account.lost_ns) as f64
}

/// The name of the gang around one.
fn within(gangs: &Gangs, set: &Seen) -> Option<String> {
    let id = set.description.within?;
    let found = gangs.sets.iter().find(|one| one.description.id == id)?;
    Some(found.description.name.clone())
}

fn document(found: Option<&Gangs>) -> Value {
    let part = |part: u64, whole: f64| (whole > 0.0).then(|| part as f64 / whole);
    let sets = found.map_or(&[][..], |gangs| &gangs.sets);
    let sets = sets.iter().map(|set| {
        let (description, account) = (&set.description, &set.account);
        json!({
            "process": description.id.process,
            "name": description.name,
            "cores": description.cores,
            "fills": description.fills,
            "within": found.and_then(|gangs| within(gangs, set)),
            "back_end": description.back_end.name(),
            "slice_ms": description.slice.as_secs_f64() * 1e3,
            "is_on": set.is_on,
            "demand": set.demand,
            "turns": account.turns,
            "on_s": account.on_ns as f64 / 1e9,
            "run_s": account.run_ns as f64 / 1e9,
            "waited_s": account.waited_ns as f64 / 1e9,
            "together": part(account.together_ns, account.wanted_ns as f64),
            "lost": part(account.lost_ns, wanted_core_ns(set)),
            "switch_us": set.switch_ns.map(|ns| ns / 1000),
        })
    });
    let back_ends = hearth_gang::probe().into_iter().map(|tried| {
        json!({
            "name": tried.back_end.name(),
            "works": tried.obstacle.is_none(),
            "obstacle": tried.obstacle,
        })
    });
    json!({
        "folder": found.map(|gangs| gangs.folder.display().to_string()),
        "conductor": found.and_then(|gangs| gangs.conductor),
        "idle": found.and_then(|gangs| part(gangs.idle_ns, gangs.cores_ns as f64)),
        "gangs": sets.collect::<Vec<Value>>(),
        "back_ends": back_ends.collect::<Vec<Value>>(),
    })
}

fn failure(error: GangError) -> Failure {
    match error {
        GangError::Unsafe { .. }
        | GangError::NoSuchSet(_)
        | GangError::Taken(_)
        | GangError::Command(..) => Failure::input(error.to_string()),
        _ => Failure::environment(error.to_string()),
    }
}
