//! What `hearth run --place` says to the program besides the policy's name: where its plan is, where the
//! machine's profile is, and where to tell of moves.
//!
//! To plan takes longer than to start a program, so what was planned is [kept](crate::plans), with all
//! that it follows from.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use hearth_place::cost;
use hearth_place::plan::StoredPlan;
use hearth_place::policy::Policy;
use hearth_place::talk::Effort;

use super::place::{Site, carrier};
use crate::arguments::{Carrier, Run, Servers, WhereToRun};
use crate::corrections::Corrections;
use crate::failure::Failure;
use crate::input::Source;
use crate::machine_here::MachineHere;
use crate::placing::{self, Program};
use crate::plans::{Planned, Plans};
use crate::{output, profiles, toolchain};

/// The variables and their values.
pub(crate) fn variables(
    arguments: &Run,
    source: &Source,
) -> Result<Vec<(&'static str, OsString)>, Failure> {
    let chooses_servers = arguments.servers == Some(Servers::Auto);
    if arguments.place_log.is_some()
        && arguments.place != Some(WhereToRun::Talk)
        && !chooses_servers
    {
        return Err(Failure::input(
            "--place-log tells what moves, and nothing does without --place talk or --servers auto: add one \
             of them",
        ));
    }
    let file = match &arguments.place {
        Some(WhereToRun::Talk) => None,
        Some(WhereToRun::Plan(path)) => Some(path.as_path()),
        _ => return Ok(log_variable(arguments)?.into_iter().collect()),
    };
    let machine = MachineHere::look()?;
    let plans = Plans::of_user();
    let corrections = match file {
        None => Corrections::for_run(&machine, &plans)?,
        // What was planned is followed, whatever it costs now.
        Some(_) => Corrections::default(),
    };
    let task = Task {
        source,
        carrier: arguments.carrier.unwrap_or(Carrier::Workers),
        stored: match file {
            Some(path) => Some((path, profiles::text(path)?)),
            None => None,
        },
        machine,
        corrections,
    };
    let record = task.record();
    let known = record.as_ref().and_then(|record| plans.find(record));
    let planned = match known {
        Some(planned) => planned,
        None => {
            let Some(planned) = task.plan()? else {
                // Whoever compiles it tells its errors.
                return Ok(Vec::new());
            };
            if let Some(record) = &record {
                plans.keep(record, &planned);
            }
            planned
        }
    };
    eprint!("{}", planned.said);
    let mut variables = Vec::new();
    let files = [
        ("HEARTH_MACHINE", "profile", &planned.profile),
        // To fit the model again would take the program's cores for some 20 ms.
        ("HEARTH_TUNING", "tuning", &planned.tuning),
    ];
    for (variable, kind, text) in files {
        if !text.is_empty() {
            variables.push((variable, plans.file(kind, text)?.into()));
        }
    }
    let path = plans.file("plan", &planned.lines)?;
    variables.push(("HEARTH_PLAN", path.into()));
    variables.extend(log_variable(arguments)?);
    Ok(variables)
}

/// Where to tell what was changed.
fn log_variable(arguments: &Run) -> Result<Option<(&'static str, OsString)>, Failure> {
    let Some(path) = &arguments.place_log else {
        return Ok(None);
    };
    // That it can be written is found out here, where there is somebody to tell.
    output::replace(path, b"")?;
    Ok(Some(("HEARTH_PLACE_LOG", path.into())))
}

/// What is to be planned.
struct Task<'a> {
    source: &'a Source,
    carrier: Carrier,
    /// A plan that was written before, and its file.
    stored: Option<(&'a Path, String)>,
    machine: MachineHere,
    /// In what the machine differs from its profile.
    corrections: Corrections,
}

impl Task<'_> {
    /// All that the plan follows from, as text. None where that is not known.
    fn record(&self) -> Option<Vec<u8>> {
        let mut record = format!(
            "hearth {}\nmachine {}\ncorrected {}\ncpus {:?}\ncarrier {:?}\n",
            toolchain::own_identity().ok()?,
            self.machine.identity()?,
            self.corrections.identity(),
            hearth_sys::affinity::allowed(),
            self.carrier,
        );
        if let Some((path, text)) = &self.stored {
            let _ = writeln!(record, "plan {:?} {}\n{text}", path, text.len());
        }
        let _ = writeln!(record, "name {:?}\n", self.source.name);
        record.push_str(&self.source.text);
        Some(record.into_bytes())
    }

    /// Plans. None if the program does not compile.
    fn plan(&self) -> Result<Option<Planned>, Failure> {
        let site = Site::here(self.machine.profile()?, &self.corrections)?;
        let start = site.machine.os(hearth_place::slots::Slot(0));
        let Ok(program) = placing::program(self.source, start) else {
            return Ok(None);
        };
        match &self.stored {
            Some((path, text)) => stored(path, text, &program, &site).map(Some),
            None => talk(&program, &site, self.carrier).map(Some),
        }
    }
}

/// Where the components talk at least cost, and the machine's profile for when they move.
fn talk(program: &Program, site: &Site, by: Carrier) -> Result<Planned, Failure> {
    let options = cost::Options {
        carrier: carrier(by),
        ..cost::Options::default()
    };
    let unfit = |error: String| Failure::input(error);
    let placed = Policy::Talk
        .place(&program.graph, &site.machine, &options, Effort::default())
        .map_err(|error| unfit(error.to_string()))?;
    let slots = placed.placement.0.iter();
    let cpus = slots.map(|&slot| Some(site.machine.os(slot)));
    let profile = site.profile.to_json();
    let tuning = site.tuning.to_json();
    Ok(Planned {
        lines: program.lines_of(cpus),
        profile: profile.map_err(|error| unfit(error.to_string()))?,
        tuning: tuning.map_err(|error| unfit(error.to_string()))?,
        said: String::new(),
    })
}

/// The lines of a plan that was written before, for the program and the machine as they are now.
fn stored(path: &Path, text: &str, program: &Program, site: &Site) -> Result<Planned, Failure> {
    let plan = StoredPlan::from_json(text)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    let fitted = plan.fit(&program.graph, &site.machine);
    let shown = path.display();
    let mut said = String::new();
    let is_of_another = !plan.places.is_empty() && fitted.missing.len() == plan.places.len();
    let mut say = |names: &[String], what: &str| {
        if !names.is_empty() {
            let _ = writeln!(said, "hearth: {shown}: {what}: {}", listed(names));
        }
    };
    say(&fitted.missing, "the program has no such components");
    say(&fitted.new, "not in the plan, and left where they are made");
    let lost: Vec<String> = fitted
        .lost
        .iter()
        .map(|(name, cpu)| format!("{name} on CPU {}", cpu.0))
        .collect();
    say(
        &lost,
        "CPUs that may not be used, so these are left where they are made",
    );
    if is_of_another {
        said = format!(
            "hearth: {shown}: this is the plan of another program, and nobody follows it\n"
        );
    }
    if !said.is_empty() {
        let _ = writeln!(
            said,
            "hearth: `hearth place PROGRAM --plan {shown}` plans for what is there now"
        );
    }
    let cpus = fitted
        .slots
        .iter()
        .map(|slot| slot.map(|slot| site.machine.os(slot)));
    Ok(Planned {
        lines: program.lines_of(cpus),
        profile: String::new(),
        tuning: String::new(),
        said,
    })
}

/// Some of the names, and how many more.
fn listed(names: &[String]) -> String {
    const MOST: usize = 8;
    let mut text = names
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > MOST {
        let _ = write!(text, " and {} more", names.len() - MOST);
    }
    text
}
