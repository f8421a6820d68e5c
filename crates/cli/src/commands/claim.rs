//! `hearth claim`: cores that belong to a program.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hearth_claim::{Claim, ClaimError, Form, Grant, Jobserver};
use hearth_sys::affinity;
use hearth_terminal::{Failure, output};
use hearth_text::{cause, counted};

use crate::arguments::claim::{ClaimArguments, JobserverForm};
use crate::commands::{claim_steward, claims};

/// Variables by which programs choose the number of their threads.
const TEAM_SIZES: [&str; 3] = [OPENMP, "RAYON_NUM_THREADS", "HEARTH_WORKERS"];
const OPENMP: &str = "OMP_NUM_THREADS";
/// Variable with libraries that are loaded before a program's own.
const PRELOAD: &str = "LD_PRELOAD";
/// Library by which programs see their claim as the machine.
const LIBRARY: &str = "libhearth_claim.so";

/// Variable by which make and its like hear of job tokens.
const MAKE_FLAGS: &str = "MAKEFLAGS";

pub(crate) fn claim(arguments: &ClaimArguments) -> Result<(), Failure> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::input(
            "say which command: hearth claim --cores 2 -- COMMAND",
        ));
    };
    let name = program.to_string_lossy();
    let mut claim = Claim::begin(name.rsplit('/').next().unwrap_or(&name)).map_err(failure)?;
    let time = Duration::from_secs(arguments.wait);
    let wish = claim_steward::constraints(&arguments.wish);
    let grant = claim.invade_within(wish, time).map_err(failure)?;
    if claim.was_rebuilt() {
        output::tell("the registry of claims was damaged; it is made anew from what programs have");
    }
    if !grant.is_enough() {
        return Err(too_few(&mut claim, arguments, &grant));
    }
    let library = arguments.preload.then(library).transpose()?;
    let jobserver = jobserver(arguments, &claim, &grant)?;
    let most = most_cpus(arguments, &grant);
    claim_steward::start(&arguments.wish, claim.folder(), jobserver.as_ref())?;
    affinity::allow_current(&grant.cpus).map_err(|error| {
        Failure::environment(format!("cannot use these CPUs: {}", cause(&error)))
    })?;
    let mut command = Command::new(program);
    command.args(rest);
    for name in TEAM_SIZES
        .into_iter()
        .filter(|name| env::var_os(name).is_none())
    {
        // A program may hear of no more threads than that, so preloaded it is told the most.
        let threads = match name == OPENMP && library.is_some() {
            true => most,
            false => grant.cpus.len(),
        };
        command.env(name, threads.to_string());
    }
    if let Some(library) = library {
        command.env(PRELOAD, before_others(library, env::var_os(PRELOAD)));
    }
    if let Some(jobserver) = &jobserver {
        let before = env::var(MAKE_FLAGS).unwrap_or_default();
        command.env(MAKE_FLAGS, jobserver.make_flags(&before));
    }
    let error = command.exec();
    if let Some(path) = jobserver.as_ref().and_then(Jobserver::path) {
        let _ = fs::remove_file(path);
    }
    Err(Failure::input(format!(
        "cannot start {name}: {}",
        cause(&error)
    )))
}

/// Number of CPUs of a claim that has its most.
fn most_cpus(arguments: &ClaimArguments, grant: &Grant) -> usize {
    let in_a_core = grant.cpus.len().div_ceil(grant.cores.len().max(1));
    let most = (arguments.wish.cores.1 as usize).saturating_mul(in_a_core);
    most.min(affinity::allowed().len()).max(grant.cpus.len())
}

/// The library, beside this program or where both are installed.
fn library() -> Result<PathBuf, Failure> {
    let program = env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    found.ok_or_else(|| {
        Failure::environment(format!(
            "{LIBRARY} is neither in {} nor in ../lib from there; in Hearth's source, \
             `cargo build --release -p hearth-claim-c` builds it and `./x install` installs it",
            folder.display()
        ))
    })
}

/// A library before those that are preloaded already.
fn before_others(library: PathBuf, others: Option<OsString>) -> OsString {
    let mut all = library.into_os_string();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// The server of job tokens, if one is asked for, with those of the cores that were got.
fn jobserver(
    arguments: &ClaimArguments,
    claim: &Claim,
    grant: &Grant,
) -> Result<Option<Jobserver>, Failure> {
    let Some(form) = arguments.jobserver else {
        return Ok(None);
    };
    if env::var(MAKE_FLAGS).is_ok_and(|flags| flags.contains("--jobserver")) {
        output::tell("another program serves job tokens already; its tokens stay");
        return Ok(None);
    }
    let form = match form {
        JobserverForm::Pipe => Form::Pipe,
        JobserverForm::Fifo => Form::Fifo,
    };
    let made = Jobserver::new(form, claim.folder()).and_then(|mut jobserver| {
        // What is in a named pipe is lost when nobody has it open, as between the start of the
        // command and that of the steward. So the steward fills it.
        if form == Form::Pipe {
            jobserver.allow(grant.cpus.len())?;
        }
        Ok(jobserver)
    });
    made.map(Some).map_err(|error| {
        Failure::environment(format!("cannot serve job tokens: {}", cause(&error)))
    })
}

/// Failure to get the least number of cores, with those who have some.
fn too_few(claim: &mut Claim, arguments: &ClaimArguments, grant: &Grant) -> Failure {
    let others = claim
        .state()
        .map(|state| claims::table(&state))
        .unwrap_or_default();
    let next = match arguments.wait {
        0 => "wait for some with --wait SECONDS, ask for fewer, or end a program",
        _ => "ask for fewer, or end a program",
    };
    Failure::environment(format!(
        "{} more than can be had now; {next}:\n{others}",
        match grant.missing {
            1 => "1 core is".to_owned(),
            more => format!("{} are", counted(more as usize, "core")),
        }
    ))
}

pub(super) fn failure(error: ClaimError) -> Failure {
    match error {
        ClaimError::Unsafe { .. } => Failure::input(error.to_string()),
        _ => Failure::environment(error.to_string()),
    }
}
