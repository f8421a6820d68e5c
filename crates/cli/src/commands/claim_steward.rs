//! The steward of a command that was started by `hearth claim`: a process beside it that grows and
//! shrinks its claim, since the command knows nothing of claims.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hearth_claim::{Claim, Constraints, Jobserver, MemoryMover, move_threads};
use hearth_sys::{descriptor, process as processes};
use hearth_terminal::Failure;
use hearth_text::cause;

use crate::arguments::claim::{StewardArguments, Wish};
use crate::commands::claim::failure;

/// Time between two counts of job tokens.
const COUNT_EVERY: Duration = Duration::from_millis(250);

pub(super) fn constraints(wish: &Wish) -> Constraints {
    let (least, most) = wish.cores;
    let mut constraints = Constraints::cores(least..=most);
    if wish.scatter {
        constraints = constraints.scatter();
    }
    for node in &wish.nodes {
        constraints = constraints.on_node(*node);
    }
    if let Some((level, cpu)) = wish.sharing_cache {
        constraints = constraints.sharing_cache(level, cpu);
    }
    if let Some(node) = wish.near_memory {
        constraints = constraints.near_memory_of(node);
    }
    constraints
}

/// Starts a steward for this process, which will do nothing with its claim any more. A claim that
/// cannot change needs none, but job tokens do.
pub(super) fn start(
    wish: &Wish,
    folder: &Path,
    jobserver: Option<&Jobserver>,
) -> Result<(), Failure> {
    let (least, most) = wish.cores;
    if least == most && jobserver.is_none() {
        return Ok(());
    }
    let cannot = |error| {
        Failure::environment(format!(
            "cannot start the claim's steward: {}",
            cause(&error)
        ))
    };
    let mut command = Command::new(env::current_exe().map_err(cannot)?);
    // It keeps no folder busy but that of the registry.
    command.current_dir("/").env(hearth_claim::VARIABLE, folder);
    command.arg("claim-steward");
    command.args(["--process", &process::id().to_string()]);
    command.args(["--cores", &format!("{least}..{most}")]);
    if wish.scatter {
        command.arg("--scatter");
    }
    for node in &wish.nodes {
        command.args(["--node", &node.to_string()]);
    }
    if let Some((level, cpu)) = wish.sharing_cache {
        command.args(["--sharing-cache", &format!("{level}:{cpu}")]);
    }
    if let Some(node) = wish.near_memory {
        command.args(["--near-memory", &node.to_string()]);
    }
    if let Some(jobserver) = jobserver {
        match (jobserver.descriptors(), jobserver.path()) {
            (Some((read, write)), _) => command.args(["--pipe", &format!("{read},{write}")]),
            (None, Some(path)) => command.arg("--fifo").arg(path),
            (None, None) => &mut command,
        };
    }
    processes::start_detached(&mut command).map_err(cannot)
}

/// Looks after a process's claim until that ends.
pub(crate) fn look_after(arguments: &StewardArguments) -> Result<(), Failure> {
    let process = arguments.process;
    let claim = Claim::of_process(process, constraints(&arguments.wish)).map_err(failure)?;
    let jobserver = jobserver(arguments, claim.cpus().len())?;
    let jobs = jobserver.map(|jobserver| Arc::new(Mutex::new(jobserver)));
    let for_team = jobs.clone();
    let memory = MemoryMover::of(process);
    let mut before: Vec<usize> = Vec::new();
    let team = move |cpus: &[usize]| {
        move_threads(process, &before, cpus);
        memory.follow(&before, cpus);
        before = cpus.to_vec();
        if let Some(jobs) = &for_team {
            let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
            // A pipe that is gone has no clients.
            let _ = jobs.allow(cpus.len());
        }
    };
    let tended = claim.tend(team).map_err(failure)?;
    let Some(jobs) = jobs else {
        tended.wait();
        return Ok(());
    };
    while !tended.has_ended() {
        std::thread::sleep(COUNT_EVERY);
        let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = jobs.settle().and_then(|()| jobs.recover(process));
    }
    if let Some(path) = &arguments.fifo {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// The server of job tokens that the process before made. It has filled a pipe, but no named pipe.
fn jobserver(arguments: &StewardArguments, jobs: usize) -> Result<Option<Jobserver>, Failure> {
    let made = match (arguments.pipe, &arguments.fifo) {
        (Some((read, write)), _) => {
            let read = descriptor::inherited(read);
            let ends = read.and_then(|read| Ok((read, descriptor::inherited(write)?)));
            let pipe = ends.and_then(|(read, write)| Jobserver::with_pipe(read, write));
            pipe.map(|mut jobserver| {
                jobserver.adopt(u32::try_from(jobs.saturating_sub(1)).unwrap_or(u32::MAX));
                jobserver
            })
        }
        (None, Some(path)) => Jobserver::with_fifo(path.clone()).and_then(|mut jobserver| {
            jobserver.allow(jobs)?;
            Ok(jobserver)
        }),
        (None, None) => return Ok(None),
    };
    made.map(Some).map_err(|error| {
        Failure::environment(format!("cannot serve job tokens: {}", cause(&error)))
    })
}
