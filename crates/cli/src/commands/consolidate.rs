//! `hearth consolidate`: components of control units on the fewest units and cores.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hearth_consolidate::amalthea::{self, Model};
use hearth_consolidate::model::System;
use hearth_consolidate::result::{self, ConsolidateError};
use hearth_consolidate::search::{Phase, Progress};
use hearth_consolidate::{check, file, report, switch};
use hearth_driver::profiles;
use hearth_terminal::progress::Bar;
use hearth_terminal::{Failure, Interruption, output};

use crate::arguments::consolidate::ConsolidateArguments;

/// Parts of a second between two showings of the progress.
const SHOWN_EACH_S: f64 = 0.1;

/// Contents of a file.
enum Source {
    Toml(Box<System>),
    Amalthea(Box<Model>),
}

impl Source {
    fn system(&self) -> &System {
        match self {
            Source::Toml(system) => system,
            Source::Amalthea(model) => &model.system,
        }
    }
}

pub(crate) fn consolidate(arguments: &ConsolidateArguments) -> Result<(), Failure> {
    let source = read(&arguments.file)?;
    let system = source.system();
    if let Some(path) = &arguments.check {
        return checked(system, path);
    }
    for path in arguments.report.iter().chain(&arguments.out) {
        output::try_out(path)?;
    }
    let goals = arguments.goal.unwrap_or_default();
    let interruption = Interruption::watch();
    let start = Instant::now();
    let mut bar = Bar::start();
    let mut shown = -1.0;
    let mut hook = |progress: Progress| {
        let passed = start.elapsed().as_secs_f64();
        if passed - shown >= SHOWN_EACH_S {
            shown = passed;
            bar.show(passed / arguments.seconds, &told(progress));
        }
        match interruption.flag.load(Ordering::SeqCst) {
            true => 1.0,
            false => passed / arguments.seconds,
        }
    };
    let found = result::consolidate(system, &goals, arguments.seed, &mut hook);
    drop(bar);
    let found = found.map_err(|error| match error {
        ConsolidateError::Search(error) => {
            Failure::input(format!("{}: {error}", arguments.file.display()))
        }
        ConsolidateError::Refused(violations) => {
            let lines = violations
                .iter()
                .map(|violation| format!("  {violation}\n"));
            let lines: String = lines.collect();
            Failure::Bug(format!(
                "hearth: the search's result breaks rules, which is a mistake of Hearth's own:\n\
                 {lines}Please send the file and the command.\n"
            ))
        }
    })?;
    if let Source::Amalthea(model) = &source {
        model.notes.iter().for_each(output::tell);
    }
    if let Some(path) = &arguments.report {
        output::replace(path, report::page(system, &found).as_bytes())?;
    }
    if let Some(path) = &arguments.out {
        let text = match &source {
            Source::Toml(system) => file::write_mapping(system, &found.found.mapping),
            Source::Amalthea(model) => model.with_mapping(&found.found.mapping),
        };
        output::replace(path, text.as_bytes())?;
    }
    match arguments.json {
        true => output::write_json(&result::document(system, &found)),
        false => output::write(result::text(system, &found)),
    }
}

fn read(path: &Path) -> Result<Source, Failure> {
    let text = profiles::text(path)?;
    let name = path.display().to_string();
    let unfit = |error: file::FileError| Failure::input(error.to_string());
    match path.extension().is_some_and(|kind| kind == "amxmi") {
        true => {
            let model = amalthea::read(&text, &name).map_err(unfit)?;
            Ok(Source::Amalthea(Box::new(model)))
        }
        false => file::read(&text, &name)
            .map(|system| Source::Toml(Box::new(system)))
            .map_err(unfit),
    }
}

/// Checks places from a file.
fn checked(system: &System, path: &Path) -> Result<(), Failure> {
    let text = profiles::text(path)?;
    let mapping = file::read_mapping(&text, &path.display().to_string(), system)
        .map_err(|error| Failure::input(error.to_string()))?;
    let plans = switch::plans(system, &mapping);
    let checked = check::check(system, &mapping, &plans);
    if checked.is_valid() {
        return output::write("Every rule holds.\n");
    }
    let lines = checked
        .violations
        .iter()
        .map(|violation| format!("{violation}\n"));
    output::write(lines.collect::<String>())?;
    Err(Failure::Negative)
}

fn told(progress: Progress) -> String {
    let work = match progress.phase {
        Phase::Packing => "packing",
        Phase::Units => "closing units",
        Phase::Cores => "closing cores",
        Phase::Proving => "proving",
        Phase::Goals => "goals",
    };
    match progress.best {
        Some(best) => format!("{work}: {} units, {} cores", best.units, best.cores),
        None => work.to_owned(),
    }
}
