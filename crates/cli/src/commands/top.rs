//! `hearth top`: what components do, in the terminal.

use std::collections::HashMap;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::PathBuf;

use hearth_draw::scale::Unit;
use hearth_report::run::{self, doing, latest};
use hearth_sys::process::Process;
use hearth_sys::terminal::Keys;
use hearth_sys::{Reason, Refused};
use hearth_terminal::{Failure, Interruption, output};
use hearth_text::cause;
use hearth_text::columns::{Columns, Side};
use hearth_watch::figures::Sum;
use hearth_watch::{Component, Ending, Happening, NAME, Recording, State, Unfit};
use serde_json::{Value, json};

use super::heap_top::{self, End};
use crate::arguments::top::{Target, Top};

/// The most components shown without a terminal.
const ROWS: usize = 20;
/// Wider ones would not leave room in 80 columns.
const NAME_WIDTH: usize = 17;
const STATE_WIDTH: usize = 20;
const WIDTH: usize = 80;
/// The most moves and decisions shown.
const LATEST: usize = 4;

pub(crate) fn top(arguments: &Top) -> Result<(), Failure> {
    let source = Source::find(&arguments.of)?;
    let recording = source.read()?;
    if arguments.json {
        return output::write_json(&document(&recording));
    }
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    let keys = match stdout.is_terminal() && !arguments.once {
        true => Keys::of(stdin.as_fd()).ok(),
        false => None,
    };
    match keys {
        Some(keys) => screens(&source, &keys, arguments.count.unwrap_or(u64::MAX)),
        None => output::write(text(&recording, source.state(), None, ROWS)),
    }
}

// ---- where it comes from -----------------------------------------------------------------------

/// The source of readings.
enum Source {
    Process { process: Process, address: u64 },
    File(PathBuf, File),
}

impl Source {
    fn find(target: &Target) -> Result<Source, Failure> {
        match target {
            Target::Process(number) => Source::of_process(*number),
            Target::File(path) => match File::open(path) {
                Ok(file) => Ok(Source::File(path.clone(), file)),
                Err(error) => Err(Failure::input(format!(
                    "cannot read {}: {}",
                    path.display(),
                    cause(&error)
                ))),
            },
        }
    }

    /// The program of a process: that itself or, where that is `hearth run --report`, which waits
    /// for the program, its child.
    fn of_process(number: u32) -> Result<Source, Failure> {
        let process = Process::of(number).map_err(refused)?;
        if let Some(source) = Source::in_process(process)? {
            return Ok(source);
        }
        let children = process.children().into_iter();
        let mut found = children.filter_map(|child| Source::in_process(child).ok().flatten());
        found.next().ok_or_else(|| {
            Failure::input(format!(
                "process {number} has no recording; start it with `hearth run --watch`, or start a built \
                 program with HEARTH_WATCH=FILE"
            ))
        })
    }

    /// None if the process has no recording.
    fn in_process(process: Process) -> Result<Option<Source>, Failure> {
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
                Ok(_) => return Ok(Some(source)),
                Err(Unfit::Absent) => {}
                Err(unfit) => {
                    let number = process.number();
                    return Err(Failure::input(format!("process {number}: {unfit}")));
                }
            }
        }
        Ok(None)
    }

    fn try_read(&self) -> Result<Recording, Unfit> {
        match self {
            Source::File(_, file) => Recording::totals_of_file(file),
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
        self.try_read().map_err(|unfit| match self {
            Source::Process { process, .. } => {
                Failure::input(format!("process {}: {unfit}", process.number()))
            }
            Source::File(path, _) => Failure::input(format!(
                "{}: {unfit}; a program started with HEARTH_WATCH=FILE writes one",
                path.display()
            )),
        })
    }

    fn is_there(&self) -> bool {
        match self {
            Source::Process { process, .. } => process.is_there(),
            Source::File(..) => true,
        }
    }

    fn state(&self) -> run::Process {
        match self {
            Source::Process { process, .. } if process.is_there() => run::Process::Runs,
            Source::Process { .. } => run::Process::Ended,
            Source::File(..) => run::Process::Unknown,
        }
    }
}

fn refused(refused: Refused) -> Failure {
    match refused.reason {
        Reason::Invalid => Failure::input(refused.to_string()),
        _ => Failure::environment(refused.to_string()),
    }
}

// ---- as text -----------------------------------------------------------------------------------

/// The times that components had run and been ready at an earlier moment, and the moment.
type Before = (u64, HashMap<u64, (u64, u64)>);

/// The table, components that ran most since the last reading first; in at most 80 columns.
fn text(
    recording: &Recording,
    process: run::Process,
    before: Option<&Before>,
    rows: usize,
) -> String {
    let since = |one: &Component| {
        let then = before.and_then(|(_, times)| times.get(&one.id).copied());
        let (ran, was_ready) = then.unwrap_or_default();
        let ran = one.running.saturating_sub(ran);
        (ran, one.ready.saturating_sub(was_ready))
    };
    let ran = |one: &Component| since(one).0;
    let window = recording.ns.saturating_sub(before.map_or(0, |(ns, _)| *ns));
    let mut all: Vec<&Component> = recording.components.iter().collect();
    all.sort_by_key(|one| (std::cmp::Reverse(ran(one)), one.id));
    let count = |wanted: fn(&State) -> bool| {
        let found = all.iter().filter(|one| wanted(&one.state));
        found.count()
    };
    let mut text = format!(
        "{}\n{} running, {} ready, {} waiting, {} ended\n\n",
        run::summary(recording, process).replace("; it ", ";\nit "),
        count(|state| matches!(state, State::Running)),
        count(|state| matches!(state, State::Ready)),
        count(|state| matches!(state, State::Waiting(_))),
        count(|state| matches!(state, State::Ended)),
    );
    let share = |part: u64| format!("{:.1} %", 100.0 * part as f64 / window.max(1) as f64);
    let sides = [
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
    ];
    let mut table = Columns::new(&sides);
    table.row([
        "component",
        "running",
        "ready",
        "heap",
        "on",
        "moves",
        "does",
    ]);
    let (shown, rest) = all.split_at(all.len().min(rows));
    for one in shown {
        table.row([
            cut(&one.name, NAME_WIDTH),
            share(ran(one)),
            share(since(one).1),
            bytes(one.heap_last),
            one.worker
                .map_or("-".to_owned(), |worker| worker.to_string()),
            one.moves.to_string(),
            cut(&doing(recording, one), STATE_WIDTH),
        ]);
    }
    if !rest.is_empty() {
        let sum = Sum::of(rest.iter().copied());
        table.row([
            format!("{} more", rest.len()),
            share(rest.iter().map(|one| ran(one)).sum()),
            share(rest.iter().map(|one| since(one).1).sum()),
            bytes(rest.iter().map(|one| one.heap_last).sum()),
            String::new(),
            sum.moves.to_string(),
        ]);
    }
    text.push_str(&table.lines(0));
    let latest = latest(recording, LATEST);
    if !latest.is_empty() {
        text.push_str("\nlately\n");
        for line in latest {
            text.push_str(&cut(&line, WIDTH));
            text.push('\n');
        }
    }
    text
}

/// At most seven letters.
fn bytes(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        bytes => Unit::Bytes.show(bytes as f64),
    }
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
        // The head has five lines, the table one and one for the rest; then what happened lately.
        let lately = match latest(&recording, LATEST).len() {
            0 => 0,
            lines => lines + 2,
        };
        let rows = rows.saturating_sub(7 + lately);
        let text = text(&recording, source.state(), before.as_ref(), rows);
        let times = recording.components.iter();
        let times = times
            .map(|one| (one.id, (one.running, one.ready)))
            .collect();
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

// ---- as data -----------------------------------------------------------------------------------

fn document(recording: &Recording) -> Value {
    let component = |one: &Component| {
        let ports = one.ports.iter().map(|port| {
            json!({
                "name": port.name,
                "waits": port.waits,
                "waited_ns": port.waited,
                "connections": port.connections,
                "sends": port.is_send,
                "selected": port.selected,
                "value_bytes": port.value_bytes,
                "sized": port.sized,
                "sized_bytes": port.sized_bytes,
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
            "mostly": one.mostly,
            "heap_bytes": one.heap_last,
            "heap_bytes_most": one.heap_bytes,
            "ports": ports.collect::<Vec<_>>(),
        })
    };
    let workers = recording.workers.iter().map(|worker| {
        json!({
            "index": worker.index,
            "core": worker.core,
            "busy_ns": worker.busy,
            "runs": worker.runs,
            "moves": worker.moves,
        })
    });
    let moves = recording.moves.iter().filter_map(|event| {
        let (what, from, to) = match event.what {
            Happening::Moved(from, to) => ("component", from, to),
            Happening::ThreadMoved(from, to) => ("thread", from, to),
            Happening::WorkerMoved(from, to) => ("worker", from, to),
            _ => return None,
        };
        Some(json!({ "ns": event.ns, "what": what, "id": event.id, "from": from, "to": to }))
    });
    let remarks = recording.remarks.iter();
    let remarks = remarks.filter(|remark| !remark.is_of_collection());
    let remarks = remarks.map(|remark| json!({ "ns": remark.ns, "text": remark.text }));
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
        "heap_shared_bytes": recording.heap_shared,
        "collected": {
            "collections": recording.collected.collections,
            "components": recording.collected.components,
            "ns": recording.collected.ns,
            "held_ns_most": recording.collected.held_ns_max,
        },
        "moves": moves.collect::<Vec<_>>(),
        "moves_before": recording.moves_left,
        "placer": remarks.collect::<Vec<_>>(),
    })
}
