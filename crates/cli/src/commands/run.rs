//! `hearth run`: become the program.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use hearth_driver::expected::Expected;
use hearth_driver::program::{self, Executable};
use hearth_driver::run_plan::{self, PlaceOption, RunOptions};
use hearth_driver::{input, profiles};
use hearth_lang::compile::CompileOptions;
use hearth_terminal::{Failure, output};
use hearth_text::cause;

use crate::arguments::{Carrier, Run, Servers, Simulation};
use crate::commands::simulate::{self, Seeds};
use crate::watching::Watching;
use crate::without_effect;

/// Another run may tidy the cache up just before we start what lay there.
const ATTEMPTS: usize = 3;

pub(crate) fn run(arguments: &Run) -> Result<(), Failure> {
    let source = input::read_program(&arguments.file)?;
    for note in without_effect::notes(arguments) {
        output::tell(format_args!("note: {note}"));
    }
    let options = CompileOptions {
        futures: arguments.beside.futures,
        ..arguments
            .compilation
            .options(Some(&arguments.compatibility))
    };
    let probes = probes(arguments)?;
    if let Some(seeds) = seeds(arguments) {
        let executable = program::executable(&source, &options, &probes)?;
        let environment = environment(arguments);
        return simulate::search(&executable, arguments, environment, &source.name, seeds);
    }
    // The program writes these itself, and knows only a variable's name.
    let logs = arguments.heap_log.iter().chain(&arguments.place_log);
    let logs = logs.chain(&arguments.calls);
    for log in logs.filter(|log| !log.exists()) {
        output::try_out(log)?;
    }
    let recording = Watching::asked(arguments)?;
    let run_options = RunOptions {
        place: arguments.place.clone(),
        carrier: arguments.carrier.unwrap_or(Carrier::Workers).into(),
        log: arguments.place_log.clone(),
        servers_change: arguments.servers == Some(Servers::Auto),
    };
    let placing = match arguments.simulate {
        // A simulation places components by its schedule.
        Some(_) => Vec::new(),
        None => run_plan::variables(&run_options, &source)?,
    };
    for attempt in 1.. {
        let executable = program::executable(&source, &options, &probes)?;
        let path = executable.path.clone();
        let error = match &recording {
            Some(watching) if watching.writes() => {
                match watching.run(start_of(executable), |path| {
                    command(path, arguments, &source.name, &placing)
                }) {
                    Ok(ended) => {
                        let plan = placing.iter().find(|(name, _)| *name == "HEARTH_PLAN");
                        let plan = plan.map(|(_, path)| Path::new(path));
                        let (policy, carrier) = (run_options.policy(), run_options.carrier);
                        let expected = || Expected::of_run(&source, policy, carrier, plan);
                        return watching.write(ended, &source.name, expected);
                    }
                    Err(error) => error,
                }
            }
            _ => become_program(
                executable,
                arguments,
                &source.name,
                recording.as_ref(),
                &placing,
            ),
        };
        if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS {
            continue;
        }
        return Err(Failure::environment(format!(
            "cannot start {}: {}{}",
            path.display(),
            cause(&error),
            match error.kind() {
                ErrorKind::PermissionDenied => "; is its file system mounted noexec?",
                _ => "",
            }
        )));
    }
    unreachable!("the loop ends by returning")
}

/// Patterns of the calls that get probes: all, if calls are recorded and no pattern says which.
fn probes(arguments: &Run) -> Result<Vec<String>, Failure> {
    let is_unfit = |path: &PathBuf| path.to_string_lossy().contains(',');
    if let Some(path) = arguments.calls.as_ref().filter(|path| is_unfit(path)) {
        return Err(Failure::input(format!(
            "the name {} has a comma, which separates choices of a monitor; name another file",
            path.display()
        )));
    }
    let mut patterns = arguments.probes.patterns.clone();
    if patterns.is_empty() && arguments.calls.is_some() {
        patterns.push("*".to_owned());
    }
    Ok(patterns)
}

/// The seeds to search, if the options ask for a search.
fn seeds(arguments: &Run) -> Option<Seeds> {
    match arguments.simulate {
        Some(Simulation::Range { first, last }) => Some(Seeds { first, last }),
        // The simplest schedule of a seed has to be searched, too.
        Some(Simulation::Seed(seed)) if arguments.schedule.is_some() => Some(Seeds {
            first: seed,
            last: seed,
        }),
        _ => None,
    }
}

/// Replaces this process, so that signals and the exit code are the program's own. Comes back only
/// with an error.
fn become_program(
    executable: Executable,
    arguments: &Run,
    name: &str,
    watching: Option<&Watching>,
    placing: &[(&'static str, OsString)],
) -> std::io::Error {
    let (path, _open) = match start_of(executable) {
        Ok(start) => start,
        Err(error) => return error,
    };
    let mut command = command(path, arguments, name, placing);
    if let Some(watching) = watching {
        watching.attach(&mut command);
    }
    command.exec()
}

/// The command that starts the program.
fn command(
    path: PathBuf,
    arguments: &Run,
    name: &str,
    placing: &[(&'static str, OsString)],
) -> Command {
    let mut command = Command::new(path);
    command.arg0(Path::new(name).file_stem().unwrap_or("program".as_ref()));
    command.args(&arguments.arguments);
    if arguments.simulate.is_some() {
        // What was set by hand for another simulation.
        for variable in ["HEARTH_SIMULATE", "HEARTH_SCHEDULE", "HEARTH_RECORD"] {
            command.env_remove(variable);
        }
    }
    for (variable, value) in environment(arguments) {
        command.env(variable, value);
    }
    for (variable, value) in placing {
        command.env(variable, value);
    }
    command
}

/// The file to start. A program that was not kept is opened and its directory removed: it is
/// started through the open file and leaves nothing behind.
fn start_of(executable: Executable) -> std::io::Result<(PathBuf, Option<File>)> {
    let Some(workshop) = executable.workshop else {
        return Ok((executable.path, None));
    };
    let file = File::open(&executable.path)?;
    let through = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if !through.exists() {
        // Without /proc, running matters more than cleaning up.
        std::mem::forget(workshop);
        return Ok((executable.path, None));
    }
    drop(workshop);
    Ok((through, Some(file)))
}

/// Environment variables that pass the options to the program.
fn environment(arguments: &Run) -> Vec<(String, OsString)> {
    fn name(value: Option<impl ValueEnum>) -> Option<OsString> {
        Some(value?.to_possible_value()?.get_name().into())
    }
    fn number(value: Option<impl ToString>) -> Option<OsString> {
        Some(value?.to_string().into())
    }
    let (seed, schedule) = match &arguments.simulate {
        Some(Simulation::Seed(seed)) => (Some(*seed), None),
        Some(Simulation::Schedule(path)) => (None, Some(OsString::from(path))),
        Some(Simulation::Range { .. }) | None => (None, None),
    };
    let network = arguments.network.as_ref().map(OsString::from);
    // Idle workers look for work for as long as waking them takes on this machine; full nodes get
    // memory from those that were measured to be near. What is set by hand stays.
    let measured = profiles::brief();
    let unless_set = |variable: &str, value: Option<OsString>| {
        value.filter(|_| std::env::var_os(variable).is_none())
    };
    let patience = unless_set("HEARTH_PATIENCE", number(profiles::wake_us(&measured)));
    let distances = profiles::node_distances(&measured).map(OsString::from);
    let distances = unless_set("HEARTH_NODE_DISTANCES", distances);
    let place = arguments.place.as_ref().map(|place| match place {
        PlaceOption::Policy(name) => OsString::from(name),
        PlaceOption::Talk => "talk".into(),
        PlaceOption::Plan(_) => "plan".into(),
    });
    let heap_log = arguments.heap_log.as_ref().map(OsString::from);
    let calls = arguments.calls.as_ref().map(|path| {
        let mut choice = OsString::from("file=");
        choice.push(path);
        choice
    });
    let options = [
        ("HEARTH_PASSES", number(arguments.passes)),
        ("HEARTH_SEED", number(arguments.seed)),
        ("HEARTH_PLACE", place),
        ("HEARTH_CARRIER", name(arguments.carrier)),
        ("HEARTH_WORKERS", number(arguments.workers)),
        ("HEARTH_SERVERS", name(arguments.servers)),
        ("HEARTH_HEAPS", name(arguments.heaps)),
        (
            "HEARTH_HEAPS_MOVE",
            number(arguments.heaps_move.map(|bytes| bytes.0)),
        ),
        ("HEARTH_HEAP_LOG", heap_log),
        ("HEARTH_MONITOR", calls),
        ("HEARTH_PATIENCE", patience),
        ("HEARTH_NODE_DISTANCES", distances),
        ("HEARTH_SIMULATE", number(seed)),
        ("HEARTH_SCHEDULE", schedule),
        ("HEARTH_STEPS", number(arguments.steps)),
        ("HEARTH_NODE", number(arguments.node)),
        ("HEARTH_NETWORK", network),
    ];
    let options = options
        .into_iter()
        .filter_map(|(variable, value)| Some((variable.to_owned(), value?)));
    let devices = arguments
        .devices
        .iter()
        .map(|device| (device.variable.clone(), device.script.clone().into()));
    options.chain(devices).collect()
}
