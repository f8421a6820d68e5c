//! `hearth watch`: recorded calls, traces of transactions, and probes of running programs.

mod collector;
mod following;
mod listening;

use std::path::{Path, PathBuf};
use std::{fs, io};

use hearth_calls::formats::otlp;
use hearth_calls::formats::{self, Unwritten};
use hearth_monitor::{Outside, Unheard};
use hearth_report::calls::{self, Calls};
use hearth_report::transactions::Transactions;
use hearth_terminal::progress::Progress;
use hearth_terminal::{Failure, output};
use hearth_text::date::date;
use hearth_text::{cause, counted};

use crate::arguments::top::Target;
use crate::arguments::watch::{Form, Watch};
use collector::{AT_ONCE, Collector};

pub(crate) fn watch(arguments: &Watch) -> Result<(), Failure> {
    if let Some(address) = &arguments.listen {
        return listening::listen(address, arguments);
    }
    let Some(of) = &arguments.of else {
        return Err(Failure::input("name a file, or the number of a process"));
    };
    if !arguments.switches.0.is_empty() {
        return switch(of, &arguments.switches.0);
    }
    let path = file_of(of)?;
    if arguments.follow {
        return match arguments.form {
            Some(Form::Otlp) => {
                following::send(&path, needed(arguments.to.as_deref(), "otlp", "")?)
            }
            _ => Err(Failure::input(
                "--follow sends calls to a collector; add --as otlp, or leave it out",
            )),
        };
    }
    if Transactions::are_in(&path) {
        return transactions(arguments, &path);
    }
    let progress = Progress::start("reading recorded calls");
    let calls = Calls::of(&path).map_err(|error| Failure::input(error.to_string()))?;
    drop(progress);
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

/// Shows traced transactions.
fn transactions(arguments: &Watch, path: &Path) -> Result<(), Failure> {
    let progress = Progress::start("reading transactions");
    let traced = Transactions::of(path)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    drop(progress);
    match (arguments.form, &arguments.page, &arguments.to) {
        (Some(Form::Perfetto), _, Some(to)) => output::replace(to, &traced.perfetto()),
        (Some(Form::Perfetto), _, None) => output::write(traced.perfetto()),
        (Some(_), ..) => Err(Failure::input(
            "transactions have one other form: --as perfetto; --page and --json are there, too",
        )),
        (None, Some(page), _) => output::replace(page, traced.page().as_bytes()),
        (None, None, _) if arguments.json => output::write_json(&traced.document()),
        (None, None, _) => output::write(traced.text()),
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

fn switch(of: &Target, rules: &[String]) -> Result<(), Failure> {
    let &Target::Process(number) = of else {
        return Err(Failure::input(
            "--on and --off switch probes of a running program; give the number of its process",
        ));
    };
    let outside = Outside::of_process(number).map_err(unheard)?;
    let mut on = 0;
    for rule in rules {
        on = outside.rule(rule).map_err(unheard)?;
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
    let recorded = &calls.recorded;
    if calls.are_added_up() && form != Form::Otlp {
        return Err(Failure::input(
            "the file has sums of calls, and this form needs single ones; record with file=NAME \
             instead of aggregate=NAME",
        ));
    }
    let mut bytes = Vec::new();
    match form {
        Form::Folded => formats::folded(recorded, &calls.tree, &mut bytes),
        Form::Csv => formats::csv(recorded, &mut bytes),
        Form::Perfetto => formats::perfetto(recorded, &mut bytes),
        Form::Sequence => return write_text(&calls::mermaid(calls), to),
        Form::Graph => return write_text(&calls::owners_mermaid(calls), to),
        Form::Kieker => return write_kieker(calls, needed(to, "kieker", "FOLDER")?),
        Form::Otlp => return post(calls, needed(to, "otlp", "http://localhost:4318")?),
        Form::Ctf => formats::ctf(recorded, needed(to, "ctf", "FOLDER")?),
    }
    .map_err(unwritten)?;
    match to {
        // That is written.
        _ if form == Form::Ctf => Ok(()),
        Some(path) => output::replace(path, &bytes),
        None => output::write(bytes),
    }
}

/// The destination of a form that has no usual one.
fn needed<'a>(to: Option<&'a Path>, form: &str, example: &str) -> Result<&'a Path, Failure> {
    to.ok_or_else(|| Failure::input(format!("say where to: --as {form} --to {example}")))
}

fn post(calls: &Calls, to: &Path) -> Result<(), Failure> {
    let collector = Collector::at(to);
    let mut send = |body: &[u8]| collector.spans(body);
    let spans = otlp::spans(&calls.recorded, AT_ONCE, &mut send).map_err(unwritten)?;
    collector.figures(&calls.recorded, &calls.tree)?;
    output::tell(collector.told(spans));
    Ok(())
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
    output::replace(&folder.join(log_name(calls.recorded.began_at())), &log)?;
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

/// The name of a Kieker log that began at this time in nanoseconds since 1970.
fn log_name(began: u64) -> String {
    let seconds = began / 1_000_000_000;
    let day = date(seconds).replace('-', "");
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    let (seconds, rest) = (seconds % 60, began % 1_000_000_000);
    format!("kieker-{day}-{hours:02}{minutes:02}{seconds:02}-{rest:09}-UTC-001-hearth.dat")
}

fn unwritten(error: Unwritten) -> Failure {
    match error {
        Unwritten::From(error) => Failure::input(error.to_string()),
        // An exporter's reason is a sentence of its own.
        Unwritten::To(error) if error.kind() == io::ErrorKind::Other => {
            Failure::environment(error.to_string())
        }
        Unwritten::To(error) => Failure::environment(format!("cannot write: {}", cause(&error))),
    }
}
