//! `hearth watch`: recorded calls, and probes of running programs.

use std::fs;
use std::path::{Path, PathBuf};

use hearth_calls::formats::{self, Unwritten};
use hearth_monitor::{Outside, Unheard};
use hearth_report::calls::{self, Calls};
use hearth_terminal::{Failure, output};
use hearth_text::{cause, counted};

use crate::arguments::top::Target;
use crate::arguments::watch::{Form, Watch};

pub(crate) fn watch(arguments: &Watch) -> Result<(), Failure> {
    if !arguments.on.is_empty() || !arguments.off.is_empty() {
        return switch(arguments);
    }
    let path = file_of(&arguments.of)?;
    let calls = Calls::of(&path).map_err(|error| Failure::input(error.to_string()))?;
    if let Some(form) = arguments.form {
        return write_form(&calls, form, arguments.to.as_deref());
    }
    if arguments.json {
        return output::write_json(&calls::document(&calls));
    }
    match &arguments.page {
        Some(page) => output::replace(page, calls::page(&calls).as_bytes()),
        None => output::write(calls::text(&calls, arguments.long)),
    }
}

/// The file that a process records into, or the file itself.
fn file_of(target: &Target) -> Result<PathBuf, Failure> {
    match target {
        Target::File(path) => Ok(path.clone()),
        Target::Process(number) if Path::new(&number.to_string()).exists() => {
            Ok(number.to_string().into())
        }
        Target::Process(number) => Outside::of_process(*number)
            .and_then(|outside| outside.file())
            .map_err(unheard),
    }
}

fn switch(arguments: &Watch) -> Result<(), Failure> {
    let Target::Process(number) = arguments.of else {
        return Err(Failure::input(
            "--on and --off switch probes of a running program; give the number of its process",
        ));
    };
    let outside = Outside::of_process(number).map_err(unheard)?;
    let mut on = 0;
    for pattern in &arguments.on {
        on = outside.rule(&format!("+{pattern}")).map_err(unheard)?;
    }
    for pattern in &arguments.off {
        on = outside.rule(&format!("-{pattern}")).map_err(unheard)?;
    }
    output::write(format!(
        "{} on, of those passed so far\n",
        counted(on, "probe")
    ))
}

fn unheard(error: Unheard) -> Failure {
    match error {
        Unheard::Silent | Unheard::Busy => Failure::environment(error.to_string()),
        _ => Failure::input(error.to_string()),
    }
}

fn write_form(calls: &Calls, form: Form, to: Option<&Path>) -> Result<(), Failure> {
    if form == Form::Kieker {
        let Some(folder) = to else {
            return Err(Failure::input(
                "Kieker's log is a folder; name it: --as kieker --to FOLDER",
            ));
        };
        return write_kieker(calls, folder);
    }
    let mut bytes = Vec::new();
    match form {
        Form::Folded => formats::folded(&calls.recorded, &calls.tree, &mut bytes),
        Form::Csv => formats::csv(&calls.recorded, &mut bytes),
        Form::Sequence => return write_text(&calls::mermaid(calls), to),
        Form::Graph => return write_text(&calls::owners_mermaid(calls), to),
        Form::Kieker => Ok(()),
    }
    .map_err(unwritten)?;
    match to {
        Some(path) => output::replace(path, &bytes),
        None => output::write(bytes),
    }
}

fn write_text(text: &str, to: Option<&Path>) -> Result<(), Failure> {
    if text.is_empty() {
        return Err(Failure::input(
            "no outermost call is whole, so there is none to draw; record for longer, or with \
             more blocks",
        ));
    }
    match to {
        Some(path) => output::replace(path, text.as_bytes()),
        None => output::write(text),
    }
}

fn write_kieker(calls: &Calls, folder: &Path) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| {
        Failure::environment(format!(
            "cannot write {}: {}",
            folder.display(),
            cause(error)
        ))
    };
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let (mut map, mut log) = (Vec::new(), Vec::new());
    let counts = formats::kieker(&calls.recorded, &mut map, &mut log).map_err(unwritten)?;
    output::replace(&folder.join("kieker.map"), &map)?;
    let name = "kieker-20260101-000000-000000000-UTC-001-hearth.dat";
    output::replace(&folder.join(name), &log)?;
    let left_out = match counts.left_out {
        0 => String::new(),
        more => format!("; {more} are left out, as records of them are lost"),
    };
    output::tell(format!(
        "{} traces with {} calls{left_out}",
        counts.traces, counts.records
    ));
    Ok(())
}

fn unwritten(error: Unwritten) -> Failure {
    Failure::environment(error.to_string())
}
