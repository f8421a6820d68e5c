//! Kieker's text log: `kieker.map` with the types of records, and a file of records.
//!
//! ```text
//! $1;logged;signature;session;trace;tin;tout;host;eoi;ess
//! ```
//!
//! The record is `kieker.common.record.controlflow.OperationExecutionRecord`. Its `eoi` is the
//! number of calls that began before in the same trace, `ess` the number of calls around it; a
//! trace is an outermost call with all within. Trace analysis needs whole traces, so one with a
//! gap is left out, and counted.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Unwritten;
use crate::recorded::Recorded;
use crate::steps::{Call, Step};

/// Lines of `kieker.map`.
const MAP: &str = "$0=kieker.common.record.misc.KiekerMetadataRecord\n\
                   $1=kieker.common.record.controlflow.OperationExecutionRecord\n";

/// Number of traces written, and of those left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kieker {
    /// Whole traces.
    pub traces: u64,
    /// Records in them.
    pub records: u64,
    /// Traces with a gap, or without an end.
    pub left_out: u64,
    /// Calls in those.
    pub calls_left_out: u64,
}

/// A thread's open trace.
#[derive(Default)]
struct Trace {
    /// Number of calls begun.
    begun: u32,
    /// Order of the open calls.
    open: Vec<u32>,
    /// Calls that ended, each with its order.
    ended: Vec<(u32, Call)>,
    /// Number of all calls that ended or were given up.
    calls: u64,
    is_whole: bool,
}

/// Writes `kieker.map` and the log.
///
/// # Errors
/// Reading or writing fails.
pub fn kieker(
    recorded: &Recorded,
    map: &mut dyn Write,
    log: &mut dyn Write,
) -> Result<Kieker, Unwritten> {
    map.write_all(MAP.as_bytes())?;
    let began = recorded.began_at();
    writeln!(
        log,
        "$0;{began};2.0.2;HEARTH;localhost;1;false;0;NANOSECONDS;1"
    )?;
    let mut threads: BTreeMap<u32, Trace> = BTreeMap::new();
    let mut counts = Kieker::default();
    let mut result: io::Result<()> = Ok(());
    recorded.visit(|step| {
        if result.is_ok() {
            result = add(recorded, began, step, &mut threads, &mut counts, log);
        }
    })?;
    result?;
    Ok(counts)
}

fn add(
    recorded: &Recorded,
    began: u64,
    step: Step<'_>,
    threads: &mut BTreeMap<u32, Trace>,
    counts: &mut Kieker,
    log: &mut dyn Write,
) -> io::Result<()> {
    match step {
        Step::Gap { thread, .. } => threads.entry(thread).or_default().is_whole = false,
        Step::Appears { thread, .. } => {
            let trace = threads.entry(thread).or_default();
            trace.is_whole = false;
            trace.open.push(trace.begun);
            trace.begun += 1;
        }
        Step::Begins { thread, around, .. } => {
            let trace = threads.entry(thread).or_default();
            if around.is_empty() {
                *trace = Trace {
                    is_whole: true,
                    ..Trace::default()
                };
            }
            trace.open.push(trace.begun);
            trace.begun += 1;
        }
        Step::Ends { call, around } => {
            let trace = threads.entry(call.thread).or_default();
            trace.calls += 1;
            match (trace.open.pop(), call.length()) {
                (Some(order), Some(_)) => trace.ended.push((order, call)),
                _ => trace.is_whole = false,
            }
            if around.is_empty() {
                let trace = std::mem::take(trace);
                if trace.is_whole {
                    write(recorded, began, &trace, counts, log)?;
                } else {
                    counts.left_out += 1;
                    counts.calls_left_out += trace.calls;
                }
            }
        }
    }
    Ok(())
}

fn write(
    recorded: &Recorded,
    began: u64,
    trace: &Trace,
    counts: &mut Kieker,
    log: &mut dyn Write,
) -> io::Result<()> {
    counts.traces += 1;
    for (order, call) in &trace.ended {
        counts.records += 1;
        let (begin, end) = (call.begin.unwrap_or(0), call.end.unwrap_or(0));
        writeln!(
            log,
            "$1;{};{};<no-session-id>;{};{};{};localhost;{order};{}",
            began + end,
            signature(call.name.map_or("?", |name| recorded.name(name))),
            counts.traces,
            began + begin,
            began + end,
            call.depth,
        )?;
    }
    Ok(())
}

/// A name as the signature of a Java method, which is what trace analysis takes apart.
fn signature(name: &str) -> String {
    let plain: String = name
        .replace("::", ".")
        .chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '$' => letter,
            _ => '_',
        })
        .collect();
    match plain.contains('.') {
        true => format!("public void {plain}()"),
        false => format!("public void program.{plain}()"),
    }
}
