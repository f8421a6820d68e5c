//! `hearth probe`: measure this machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use hearth_driver::{profiles, this_machine};
use hearth_machine::capture::Reading;
use hearth_machine::profile::Profile;
use hearth_machine::topology::{OsThread, format_list};
use hearth_probe::convert::{self, About};
use hearth_probe::description;
use hearth_probe::{Findings, Mode, ProbeError, ProbeOptions};
use hearth_report::{portrait, summary};
use hearth_sys::{Linux, System};
use hearth_terminal::progress::Bar;
use hearth_terminal::{Failure, Interruption, crash, output};
use hearth_text::date::date;

use crate::arguments::machine::Probe;

pub(crate) fn probe(arguments: &Probe) -> Result<(), Failure> {
    if let Some(path) = &arguments.capture {
        return capture(path);
    }
    if let Some(path) = &arguments.html {
        profiles::prepare(path, false)?;
    }
    let (profile, path) = match &arguments.from {
        Some(path) => (profiles::read(path)?, None),
        None => {
            let (profile, path) = measure_and_keep(arguments)?;
            (profile, Some(path))
        }
    };
    if let Some(path) = &arguments.html {
        output::replace(path, portrait::page(&profile).as_bytes())?;
    }
    if arguments.json {
        return output::write(json(&profile)?);
    }
    let mut text = summary::summary(&profile);
    let written = [
        path.map(|path| format!("The profile is in {}.\n", path.display())),
        arguments
            .html
            .as_ref()
            .map(|path| format!("The page is in {}.\n", path.display())),
    ];
    for (at, line) in written.into_iter().flatten().enumerate() {
        text.push_str(if at == 0 { "\n" } else { "" });
        text.push_str(&line);
    }
    output::write(text)
}

fn json(profile: &Profile) -> Result<String, Failure> {
    // Only what we measured or read is written, and both were checked.
    profile
        .to_json()
        .map_err(|error| Failure::Bug(crash::page(&error.to_string(), &[])))
}

fn measure_and_keep(arguments: &Probe) -> Result<(Profile, PathBuf), Failure> {
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => profiles::kept()?,
    };
    // Not after a minute's work.
    profiles::prepare(&path, arguments.output.is_none())?;
    let reading = this_machine::reading()?;
    let options = ProbeOptions {
        mode: match (arguments.quick, arguments.deep) {
            (true, _) => Mode::Quick,
            (_, true) => Mode::Deep,
            _ => Mode::Normal,
        },
        cpus: wanted(arguments, &reading)?,
        seed: arguments.seed,
    };
    let profile = measure(&options, reading, &path)?;
    output::replace(&path, json(&profile)?.as_bytes())?;
    Ok((profile, path))
}

/// The CPUs that were named, if they are there and this process may use them.
fn wanted(arguments: &Probe, reading: &Reading) -> Result<Option<Vec<usize>>, Failure> {
    let Some(cpus) = &arguments.cpus else {
        return Ok(None);
    };
    let machine = &reading.topology;
    let unknown = cpus
        .0
        .iter()
        .find(|&&cpu| machine.thread_of(OsThread(cpu)).is_none());
    if let Some(cpu) = unknown {
        let all = format_list(machine.threads().iter().map(|thread| thread.os.0));
        return Err(Failure::input(format!(
            "there is no CPU {cpu}, or it is offline; this machine's are {all}"
        )));
    }
    if let Ok(allowed) = Linux.allowed() {
        let refused = cpus
            .0
            .iter()
            .find(|&&cpu| !allowed.contains(&(cpu as usize)));
        if let Some(cpu) = refused {
            let allowed = allowed.iter().filter_map(|&cpu| u32::try_from(cpu).ok());
            let allowed = format_list(allowed);
            return Err(Failure::input(format!(
                "CPU {cpu} is not among those that this process may use, {allowed}; `taskset` and \
                 control groups set them"
            )));
        }
    }
    Ok(Some(cpus.0.iter().map(|&cpu| cpu as usize).collect()))
}

fn measure(options: &ProbeOptions, reading: Reading, path: &Path) -> Result<Profile, Failure> {
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let interruption = Interruption::watch();
    let mut bar = Bar::start();
    let found = hearth_probe::run(&Linux, options, &interruption.flag, &mut |progress| {
        bar.show(progress.fraction, progress.part.title());
    });
    drop(bar);
    let findings = found.map_err(|error| match error {
        ProbeError::Cancelled => {
            let kept = if path.exists() {
                format!("{} is unchanged", path.display())
            } else {
                "nothing was written".to_owned()
            };
            let signal = interruption.signal.load(Ordering::SeqCst);
            Failure::Interrupted(signal, format!("interrupted; {kept}"))
        }
        error => Failure::environment(error.to_string()),
    })?;
    let about = About {
        hearth_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: started.ok().map(|since| since.as_secs()),
    };
    let host = convert::host(&Linux, &findings);
    let mut profile = convert::profile(&findings, reading.topology, host, &about);
    let notes = &mut profile.origin.notes;
    notes.extend(thrown_away(&findings));
    notes.extend(reading.notes.iter().map(ToString::to_string));
    Ok(profile)
}

/// A line that says why samples were discarded.
fn thrown_away(findings: &Findings) -> Option<String> {
    let discards = &findings.discards;
    let reasons = [
        (discards.migrated, "the thread was moved"),
        (discards.switched, "another thread ran"),
        (discards.gap, "there was a gap"),
        (discards.steal, "the hypervisor took the time"),
        (discards.interrupted, "an interrupt came"),
    ];
    let reasons: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} as {why}"))
        .collect();
    (!reasons.is_empty()).then(|| format!("samples thrown away: {}", reasons.join(", ")))
}

fn capture(path: &Path) -> Result<(), Failure> {
    let mut capture = description::capture(&Linux).without_identity();
    capture.tool = format!("hearth {}", env!("CARGO_PKG_VERSION"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    capture.recorded = now.map_or(String::new(), |now| date(now.as_secs()));
    let reading = capture.read().map_err(|error| {
        Failure::environment(format!(
            "the description that this machine gives of itself is invalid: {error}"
        ))
    })?;
    output::replace(path, capture.to_json().as_bytes())?;
    let processor = reading.environment.processor;
    output::write(format!(
        "Wrote {}: {} files of the kernel about {} ({}).\n\n\
         In it: processors, caches, memory and distances as firmware and kernel tell them; the\n\
         processor's and the machine's model; the kernel's and firmware's versions; clocks,\n\
         frequency policies, limits of this process.\n\
         Not in it: host and user names, serial numbers, addresses, names of programs and of\n\
         control groups, anything measured. It is text: read it before you send it.\n",
        path.display(),
        capture.files.len(),
        processor.as_deref().unwrap_or("an unnamed processor"),
        summary::counts(&reading.topology)
    ))
}
