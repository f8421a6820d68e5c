//! Variables that `hearth run --place` sets besides the policy's name: the files of the plan, of
//! the machine's profile, and of the log of moves.
//!
//! Planning takes longer than starting a program, so a plan is [kept](crate::plans) with all that
//! it follows from.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hearth_machine::profile::Carrier;
use hearth_place::cost;
use hearth_place::plan::StoredPlan;
use hearth_place::policy::Policy;
use hearth_place::talk::Effort;
use hearth_terminal::{Failure, output};

use crate::corrections::Corrections;
use crate::input::Source;
use crate::known_machine::KnownMachine;
use crate::plans::{Planned, Plans};
use crate::profiles;
use crate::program_graph::ProgramGraph;
use crate::site::Site;

/// The user's choice of where components run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceOption {
    /// A policy that needs no more than its name.
    Policy(&'static str),
    /// A plan by the model, changed as messages show.
    Talk,
    /// The plan in a file.
    Plan(PathBuf),
}

/// The policies that need no more than their names.
pub const POLICIES: [&str; 5] = ["os", "spread", "single", "random", "steal"];

/// The options of a run that placement depends on.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub place: Option<PlaceOption>,
    pub carrier: Carrier,
    /// The file for a log of changes.
    pub log: Option<PathBuf>,
    /// Servers may change the way they are called.
    pub servers_change: bool,
}

impl RunOptions {
    /// The author of the plan in words: `the plan of talk`, or a policy's name.
    pub fn policy(&self) -> String {
        match &self.place {
            Some(PlaceOption::Plan(path)) => format!("the plan in {}", path.display()),
            Some(PlaceOption::Talk) => "the plan of `talk`".to_owned(),
            Some(PlaceOption::Policy(name)) => (*name).to_owned(),
            None => std::env::var("HEARTH_PLACE").unwrap_or_else(|_| "os".to_owned()),
        }
    }
}

/// The variables and their values.
pub fn variables(
    options: &RunOptions,
    source: &Source,
) -> Result<Vec<(&'static str, OsString)>, Failure> {
    if options.log.is_some() && options.place != Some(PlaceOption::Talk) && !options.servers_change
    {
        return Err(Failure::input(
            "--place-log needs --place talk or --servers auto, without which nothing moves: add one of \
             them",
        ));
    }
    let file = match &options.place {
        Some(PlaceOption::Talk) => None,
        Some(PlaceOption::Plan(path)) => Some(path.as_path()),
        _ => return Ok(log_variable(options)?.into_iter().collect()),
    };
    let machine = KnownMachine::find()?;
    let plans = Plans::of_user();
    let corrections = match file {
        None => Corrections::for_run(&machine, &plans)?,
        // A stored plan is followed, whatever it costs now.
        Some(_) => Corrections::default(),
    };
    let task = Task {
        source,
        carrier: options.carrier,
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
                // Compiling the program reports its errors.
                return Ok(Vec::new());
            };
            if let Some(record) = &record {
                plans.keep(record, &planned);
            }
            planned
        }
    };
    for line in planned.warnings.lines() {
        output::tell(line);
    }
    let mut variables = Vec::new();
    let files = [
        ("HEARTH_MACHINE", "profile", &planned.profile),
        // Fitting the model again would take the program's cores for some 20 ms.
        ("HEARTH_TUNING", "tuning", &planned.tuning),
    ];
    for (variable, kind, text) in files {
        if !text.is_empty() {
            variables.push((variable, plans.file(kind, text)?.into()));
        }
    }
    let path = plans.file("plan", &planned.lines)?;
    variables.push(("HEARTH_PLAN", path.into()));
    variables.extend(log_variable(options)?);
    Ok(variables)
}

/// The variable for the log of changes.
fn log_variable(options: &RunOptions) -> Result<Option<(&'static str, OsString)>, Failure> {
    let Some(path) = &options.log else {
        return Ok(None);
    };
    // An unwritable file is found out here, where there is somebody to tell.
    output::replace(path, b"")?;
    Ok(Some(("HEARTH_PLACE_LOG", path.into())))
}

/// All that a plan follows from.
struct Task<'a> {
    source: &'a Source,
    carrier: Carrier,
    /// A stored plan and its file.
    stored: Option<(&'a Path, String)>,
    machine: KnownMachine,
    /// The machine's deviations from its profile.
    corrections: Corrections,
}

impl Task<'_> {
    /// All that the plan follows from, as text; `None` where the machine does not identify itself.
    fn record(&self) -> Option<Vec<u8>> {
        let mut record = format!(
            "hearth {}\nmachine {}\ncorrected {}\ncpus {:?}\ncarrier {:?}\n",
            hearth_toolchain::own_identity().ok()?,
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

    /// Plans; `None` if the program does not compile.
    fn plan(&self) -> Result<Option<Planned>, Failure> {
        let site = Site::here(self.machine.profile()?, &self.corrections)?;
        let start = site.machine.os(hearth_place::slots::CpuSlot(0));
        let Ok(program) = ProgramGraph::of_source(self.source, start) else {
            return Ok(None);
        };
        match &self.stored {
            Some((path, text)) => stored(path, text, &program, &site).map(Some),
            None => talk(&program, &site, self.carrier).map(Some),
        }
    }
}

/// The placement at which components talk at least cost, and the machine's profile for moves.
fn talk(program: &ProgramGraph, site: &Site, carrier: Carrier) -> Result<Planned, Failure> {
    let options = cost::CostOptions {
        carrier,
        ..cost::CostOptions::default()
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
        warnings: String::new(),
    })
}

/// The lines of a stored plan, for the program and the machine as they are now.
fn stored(
    path: &Path,
    text: &str,
    program: &ProgramGraph,
    site: &Site,
) -> Result<Planned, Failure> {
    let plan = StoredPlan::from_json(text)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    let fitted = plan.fit(&program.graph, &site.machine);
    let shown = path.display();
    let mut warnings = String::new();
    let is_of_another = !plan.places.is_empty() && fitted.missing.len() == plan.places.len();
    let mut say = |names: &[String], what: &str| {
        if !names.is_empty() {
            let _ = writeln!(warnings, "{shown}: {what}: {}", listed(names));
        }
    };
    say(&fitted.missing, "the program has no such components");
    say(
        &fitted.new,
        "not in the plan, and left where they are created",
    );
    let lost: Vec<String> = fitted
        .lost
        .iter()
        .map(|(name, cpu)| format!("{name} on CPU {}", cpu.0))
        .collect();
    say(
        &lost,
        "these are left where they are created, as their CPUs may not be used",
    );
    if is_of_another {
        warnings = format!("{shown}: this is the plan of another program and is not followed\n");
    }
    if !warnings.is_empty() {
        let _ = writeln!(
            warnings,
            "`hearth place PROGRAM --plan {shown}` plans for the program as it is now"
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
        warnings,
    })
}

/// The first names, and the number of others.
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
