//! `hearth machine`: the parts of a machine, shown and exchanged with hwloc.

use std::fmt::Write as _;
use std::path::Path;

use hearth_driver::{profiles, this_machine};
use hearth_machine::capture::Capture;
use hearth_machine::hwloc::{self, Extras};
use hearth_machine::profile::Profile;
use hearth_machine::topology::Topology;
use hearth_report::summary;
use hearth_terminal::{Failure, output};

use crate::arguments::machine::{
    Machine, MachineAction, MachineExport, MachineImport, MachineShow,
};

pub(crate) fn machine(arguments: &Machine) -> Result<(), Failure> {
    match &arguments.action {
        MachineAction::Show(arguments) => show(arguments),
        MachineAction::Export(arguments) => export(arguments),
        MachineAction::Import(arguments) => import(arguments),
    }
}

/// A machine, with the known facts beside its parts.
pub(super) struct NamedMachine {
    pub(super) topology: Topology,
    pub(super) profile: Option<Profile>,
    notes: Vec<String>,
}

impl NamedMachine {
    fn parts(topology: Topology, notes: Vec<String>) -> NamedMachine {
        NamedMachine {
            topology,
            profile: None,
            notes,
        }
    }

    fn profile(profile: Profile) -> NamedMachine {
        NamedMachine {
            topology: profile.topology.clone(),
            profile: Some(profile),
            notes: Vec::new(),
        }
    }
}

/// The machine that was named: a file if there is one of that name, else a description.
pub(super) fn named(text: &str) -> Result<NamedMachine, Failure> {
    let path = Path::new(text);
    if !path.exists() {
        // Descriptions may have slashes, too. What is none and looks like a file is missed as one.
        let looks_like_a_file =
            text.ends_with(".json") || text.ends_with(".xml") || text.contains('/');
        match profiles::described(text) {
            Ok(topology) => return Ok(NamedMachine::parts(topology, Vec::new())),
            Err(failure) if !looks_like_a_file => return Err(failure),
            Err(_) => {}
        }
    }
    let contents = profiles::text(path)?;
    let unfit = |error: String| Failure::input(format!("{text}: {error}"));
    if contents.trim_start().starts_with('<') {
        let imported = hwloc::import(&contents).map_err(|error| unfit(error.to_string()))?;
        return Ok(NamedMachine::parts(imported.topology, imported.notes));
    }
    if contents.contains("\"hearth_capture\"") {
        let capture = Capture::from_json(&contents).map_err(|error| unfit(error.to_string()))?;
        let reading = capture.read().map_err(|error| unfit(error.to_string()))?;
        let notes = reading.notes.iter().map(ToString::to_string).collect();
        return Ok(NamedMachine::parts(reading.topology, notes));
    }
    let profile = Profile::from_json(&contents).map_err(|error| unfit(error.to_string()))?;
    Ok(NamedMachine::profile(profile))
}

fn here() -> Result<NamedMachine, Failure> {
    let reading = this_machine::reading()?;
    let notes = reading.notes.iter().map(ToString::to_string).collect();
    Ok(NamedMachine::parts(reading.topology, notes))
}

fn show(arguments: &MachineShow) -> Result<(), Failure> {
    let found = match &arguments.machine {
        Some(text) => named(text)?,
        None => here()?,
    };
    let mut text = summary::parts(&found.topology);
    if !found.notes.is_empty() {
        text.push_str("\nmissing or not believed\n");
        for note in &found.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    output::write(text)
}

fn export(arguments: &MachineExport) -> Result<(), Failure> {
    let found = match &arguments.machine {
        Some(text) => named(text)?,
        None => match profiles::kept().ok().filter(|path| path.exists()) {
            Some(path) => NamedMachine::profile(profiles::read(&path)?),
            None => here()?,
        },
    };
    let extras = found.profile.as_ref().map(Extras::of).unwrap_or_default();
    let xml = hwloc::export(&found.topology, &extras)
        .map_err(|error| Failure::input(format!("cannot be written for hwloc: {error}")))?;
    output::replace(&arguments.hwloc, xml.as_bytes())?;
    let file = arguments.hwloc.display();
    let mut text = format!("Wrote {file}: {}", summary::counts(&found.topology));
    for matrix in &extras.matrices {
        let _ = write!(text, ", the matrix {}", matrix.name);
    }
    if !extras.memory.is_empty() {
        text.push_str(", latency and bandwidth of memory");
    }
    let _ = writeln!(text, ".\n`lstopo -i {file}` shows it.");
    output::write(text)
}

fn import(arguments: &MachineImport) -> Result<(), Failure> {
    let contents = profiles::text(&arguments.file)?;
    let shown = arguments.file.display();
    let imported =
        hwloc::import(&contents).map_err(|error| Failure::input(format!("{shown}: {error}")))?;
    let mut text = summary::parts(&imported.topology);
    for matrix in &imported.extras.matrices {
        let _ = writeln!(
            text,
            "the matrix {} of {} rows",
            matrix.name,
            matrix.rows.len()
        );
    }
    for note in &imported.notes {
        let _ = writeln!(text, "not used: {note}");
    }
    if let Some(path) = &arguments.output {
        let profile = Profile::assumed(imported.topology);
        let json = profile
            .to_json()
            .map_err(|error| Failure::input(error.to_string()))?;
        output::replace(path, json.as_bytes())?;
        let _ = writeln!(
            text,
            "\nWrote {}: these parts, with assumed costs.",
            path.display()
        );
    }
    output::write(text)
}
