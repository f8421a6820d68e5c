//! `hearth top`: what components do, in the terminal.

use std::collections::HashMap;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use hearth_sys::process::Process;
use hearth_sys::terminal::Keys;
use hearth_sys::{Reason, Refused};
use hearth_watch::figures::Sum;
use hearth_watch::{Component, Ending, NAME, Recording, State, Unfit};
use serde_json::{Value, json};

use super::heap_top::{self, End};
use crate::arguments::top::{Top, Whom};
use crate::columns::{Columns, Side};
use crate::failure::{Failure, cause};
use crate::interruption::Interruption;
use crate::output;
use crate::run_report::{doing, summary, time};

/// So many components are told where there is no terminal.
const ROWS: usize = 20;
/// Wider ones would not leave room in 80 columns.
const NAME_WIDTH: usize = 24;
const STATE_WIDTH: usize = 22;

pub(crate) fn top(arguments: &Top) -> Result<(), Failure> {
    let source = Source::find(&arguments.of)?;
    let recording = source.read()?;
    if arguments.json {
        return output::write(format!("{:#}\n", document(&recording)));
    }
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    let keys = match stdout.is_terminal() && !arguments.once {
        true => Keys::of(stdin.as_fd()).ok(),
        false => None,
    };
    match keys {
        Some(keys) => screens(&source, &keys, arguments.count.unwrap_or(u64::MAX)),
        None => output::write(text(&recording, None, ROWS)),
    }
}

// ---- where it comes from -----------------------------------------------------------------------------

/// What is read again and again.
enum Source {
    Process { process: Process, address: u64 },
    File(File),
}

impl Source {
    fn find(whom: &Whom) -> Result<Source, Failure> {
        match whom {
            Whom::Process(number) => Source::of_process(*number),
            Whom::File(path) => match File::open(path) {
                Ok(file) => Ok(Source::File(file)),
                Err(error) => Err(Failure::input(format!(
                    "cannot read {}: {}",
                    path.display(),
                    cause(&error)
                ))),
            },
        }
    }

    fn of_process(number: u32) -> Result<Source, Failure> {
        let process = Process::of(number).map_err(refused)?;
        let mappings = process.mappings().map_err(refused)?;
        process.may_read().map_err(refused)?;
        let in_memory = format!("/memfd:{NAME}");
        let shared = mappings
            .iter()
            .filter(|range| !range.is_anonymous && range.is_readable && range.is_writable);
        // The one in memory first, then whatever file it may be in.
        let (named, others): (Vec<_>, Vec<_>) =
            shared.partition(|range| range.name.starts_with(&in_memory));
        for range in named.into_iter().chain(others) {
            let source = Source::Process {
                process,
                address: range.start,
            };
            match source.try_read() {
                Ok(_) => return Ok(source),
                Err(Unfit::Absent) => {}
                Err(unfit) => return Err(Failure::input(format!("process {number}: {unfit}"))),
            }
        }
        Err(Failure::input(format!(
            "process {number} does not write down what it does; start it with `hearth run --watch`, or a \
             built program with HEARTH_WATCH=FILE"
        )))
    }

    fn try_read(&self) -> Result<Recording, Unfit> {
        match self {
            Source::File(file) => Recording::totals_of_file(file),
            Source::Process { process, address } => Recording::totals(&|from, into: &mut [u64]| {
                let mut bytes = vec![0; into.len() * 8];
                if bytes.is_empty() {
                    return true;
                }
                let is_read = process.read(address + from as u64 * 8, &mut bytes);
                for (word, bytes) in into.iter_mut().zip(bytes.chunks_exact(8)) {
                    *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
                }
                is_read
            }),
        }
    }

    fn read(&self) -> Result<Recording, Failure> {
        self.try_read()
            .map_err(|unfit| Failure::input(unfit.to_string()))
    }

    fn is_there(&self) -> bool {
        match self {
            Source::Process { process, .. } => process.is_there(),
            Source::File(_) => true,
        }
    }
}

fn refused(refused: Refused) -> Failure {
    match refused.reason {
        Reason::Invalid => Failure::input(refused.to_string()),
        _ => Failure::environment(refused.to_string()),
    }
}

// ---- as text -----------------------------------------------------------------------------------------

/// Running times by component, and when that was.
type Before = (u64, HashMap<u64, u64>);

/// Those that ran most since the last reading, or at all, first; in at most 80 columns.
fn text(recording: &Recording, before: Option<&Before>, rows: usize) -> String {
    let ran = |one: &Component| match before {
        Some((_, times)) => one
            .running
            .saturating_sub(times.get(&one.id).copied().unwrap_or(0)),
        None => one.running,
    };
    let window = recording.ns.saturating_sub(before.map_or(0, |(ns, _)| *ns));
    let mut all: Vec<&Component> = recording.components.iter().collect();
    all.sort_by_key(|one| (std::cmp::Reverse(ran(one)), one.id));
    let count = |wanted: fn(&State) -> bool| {
        let found = all.iter().filter(|one| wanted(&one.state));
        found.count()
    };
    let mut text = format!(
        "{}\n{} running, {} ready, {} waiting, {} ended\n\n",
        summary(recording)
            .replace("; ", "\n")
            .replace(", of which", "\nof which"),
        count(|state| matches!(state, State::Running)),
        count(|state| matches!(state, State::Ready)),
        count(|state| matches!(state, State::Waiting(_))),
        count(|state| matches!(state, State::Ended)),
    );
    let sides = [
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
    ];
    let mut table = Columns::new(&sides);
    table.row(["component", "share", "running", "ready", "on", "does"]);
    let (shown, rest) = all.split_at(all.len().min(rows));
    for one in shown {
        table.row([
            cut(&one.name, NAME_WIDTH),
            format!("{:.1} %", 100.0 * ran(one) as f64 / window.max(1) as f64),
            time(one.running),
            time(one.ready),
            one.worker
                .map_or("-".to_owned(), |worker| worker.to_string()),
            cut(&doing(recording, one), STATE_WIDTH),
        ]);
    }
    if !rest.is_empty() {
        let sum = Sum::of(rest.iter().copied());
        let share: u64 = rest.iter().map(|one| ran(one)).sum();
        table.row([
            format!("{} more", rest.len()),
            format!("{:.1} %", 100.0 * share as f64 / window.max(1) as f64),
            time(sum.running),
            time(sum.ready),
        ]);
    }
    text.push_str(&table.lines(0));
    text
}

fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn screens(source: &Source, keys: &Keys<'_>, count: u64) -> Result<(), Failure> {
    let interruption = Interruption::watch();
    let mut before: Option<Before> = None;
    let end = heap_top::on_screen(keys, count, &interruption, |(_, rows)| {
        let recording = source.read()?;
        if !source.is_there() {
            return Ok(None);
        }
        // The head has six lines, the table one and one for the rest.
        let text = text(&recording, before.as_ref(), rows.saturating_sub(9));
        let times = recording.components.iter();
        let times = times.map(|one| (one.id, one.running)).collect();
        before = Some((recording.ns, times));
        let mut lines = vec!["hearth top; q leaves".to_owned()];
        lines.extend(text.lines().map(str::to_owned));
        Ok(Some(lines))
    })?;
    match end {
        End::Done | End::Left => Ok(()),
        End::Gone => output::write("the program has ended\n"),
        End::Signal(signal) => Err(Failure::Interrupted(signal, "left off".into())),
    }
}

// ---- as data -----------------------------------------------------------------------------------------

fn document(recording: &Recording) -> Value {
    let component = |one: &Component| {
        let ports = one.ports.iter().map(|port| {
            json!({
                "name": port.name,
                "waits": port.waits,
                "waited_ns": port.waited,
                "connections": port.connections,
            })
        });
        json!({
            "id": one.id,
            "name": one.name,
            "service": one.is_service,
            "state": doing(recording, one),
            "worker": one.worker,
            "running_ns": one.running,
            "ready_ns": one.ready,
            "waiting_ns": one.waiting,
            "runs": one.runs,
            "moves": one.moves,
            "ports": ports.collect::<Vec<_>>(),
        })
    };
    let workers = recording.workers.iter().map(|worker| {
        json!({
            "index": worker.index,
            "core": worker.core,
            "busy_ns": worker.busy,
            "runs": worker.runs,
        })
    });
    json!({
        "process": recording.process,
        "ns": recording.ns,
        "ended": match recording.ending {
            Ending::Code(code) => Some(code),
            Ending::Open => None,
        },
        "components": recording.components.iter().map(component).collect::<Vec<_>>(),
        "more": recording.components_left,
        "workers": workers.collect::<Vec<_>>(),
    })
}
