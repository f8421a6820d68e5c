//! Calls and gaps as spans.

use std::collections::BTreeMap;
use std::io;

use prost::Message;

use super::resource::{caller, number, resource, scope, text, truth};
use super::schema::{
    FLAGS_LOCAL, KIND_INTERNAL, KeyValue, ResourceSpans, ScopeSpans, Span, Traces,
};
use crate::formats::{Unwritten, mix};
use crate::recorded::Recorded;
use crate::steps::{Call, Step};

/// Bits of a span's number that count within its thread: years of calls. The thread's number is
/// above.
const COUNT: u32 = 36;

/// Numbers of spans that were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Calls.
    pub calls: u64,
    /// Gaps.
    pub gaps: u64,
    /// Records missing in these.
    pub lost: u64,
    /// Requests.
    pub requests: u64,
}

/// Hands over each call and each gap as a span, in bodies of requests with at most `at_once`
/// spans.
///
/// # Errors
/// Reading fails, or `send` does.
pub fn spans(
    recorded: &Recorded,
    at_once: usize,
    send: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<Spans, Unwritten> {
    let mut batch = SpanBatch::new(at_once);
    let mut result = Ok(());
    recorded.visit(|step| {
        if result.is_ok() {
            result = batch.step(recorded, step, send);
        }
    })?;
    result?;
    batch.flush(recorded, send)?;
    Ok(batch.counts)
}

/// A thread's open calls.
struct Thread {
    /// Their numbers.
    open: Vec<u64>,
    /// Number of calls and gaps so far.
    count: u64,
    attributes: Vec<KeyValue>,
}

/// Spans that are collected from steps, and handed over as bodies of requests.
pub struct SpanBatch {
    threads: BTreeMap<u32, Thread>,
    spans: Vec<Span>,
    at_once: usize,
    counts: Spans,
}

/// Hands over the body of a request.
type Send<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

impl SpanBatch {
    /// A batch for requests with at most `at_once` spans.
    #[must_use]
    pub fn new(at_once: usize) -> SpanBatch {
        SpanBatch {
            threads: BTreeMap::new(),
            spans: Vec::new(),
            at_once: at_once.max(1),
            counts: Spans::default(),
        }
    }

    /// Numbers of spans so far.
    #[must_use]
    pub fn counts(&self) -> Spans {
        self.counts
    }

    /// Adds a step, and hands over a request if that is full.
    ///
    /// # Errors
    /// `send` fails.
    pub fn step(&mut self, recorded: &Recorded, step: Step<'_>, send: Send<'_>) -> io::Result<()> {
        let number = step.thread();
        let thread = self.threads.entry(number).or_insert_with(|| Thread {
            open: Vec::new(),
            count: 0,
            attributes: caller(recorded, number),
        });
        match step {
            Step::Begins { .. } | Step::Appears { .. } => {
                let id = thread.next(number);
                thread.open.push(id);
                Ok(())
            }
            Step::Ends { call, .. } => {
                let id = match thread.open.len() > call.depth as usize {
                    true => thread.open.pop(),
                    false => None,
                };
                // Only its end was seen.
                let id = id.unwrap_or_else(|| thread.next(number));
                let span = thread.call(recorded, id, &call);
                self.counts.calls += 1;
                self.add(recorded, span, send)
            }
            Step::Gap {
                from, to, records, ..
            } => {
                let id = thread.next(number);
                let span = thread.gap(recorded, id, (from, to), records);
                self.counts.gaps += 1;
                self.counts.lost += records;
                self.add(recorded, span, send)
            }
        }
    }

    fn add(&mut self, recorded: &Recorded, span: Span, send: Send<'_>) -> io::Result<()> {
        self.spans.push(span);
        match self.spans.len() >= self.at_once {
            true => self.flush(recorded, send),
            false => Ok(()),
        }
    }

    /// Hands over what there is.
    ///
    /// # Errors
    /// `send` fails.
    pub fn flush(&mut self, recorded: &Recorded, send: Send<'_>) -> io::Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let request = Traces {
            resource_spans: vec![ResourceSpans {
                resource: Some(resource(recorded)),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope()),
                    spans: std::mem::take(&mut self.spans),
                }],
            }],
        };
        self.counts.requests += 1;
        send(&request.encode_to_vec())
    }
}

impl Thread {
    /// A new number, different from those of all threads, and not 0.
    fn next(&mut self, thread: u32) -> u64 {
        self.count += 1;
        u64::from(thread) << COUNT | self.count
    }

    /// A span within the open calls.
    fn span(&self, recorded: &Recorded, id: u64, (from, to): (u64, u64)) -> Span {
        let began = recorded.began_at();
        let outermost = self.open.first().copied().unwrap_or(id);
        // Recordings differ in the first half.
        let high = mix(began ^ mix(u64::from(recorded.process())));
        let trace = u128::from(high) << 64 | u128::from(mix(outermost));
        let parent = self.open.last().copied();
        Span {
            trace_id: trace.to_be_bytes().to_vec(),
            span_id: mix(id).to_be_bytes().to_vec(),
            parent_span_id: parent
                .map(|id| mix(id).to_be_bytes().to_vec())
                .unwrap_or_default(),
            kind: KIND_INTERNAL,
            start_time_unix_nano: began + from,
            end_time_unix_nano: began + to.max(from),
            attributes: self.attributes.clone(),
            flags: FLAGS_LOCAL,
            ..Span::default()
        }
    }

    fn call(&self, recorded: &Recorded, id: u64, call: &Call) -> Span {
        let mut span = self.span(recorded, id, (call.open_from, call.open_until));
        call.name
            .map_or("?", |name| recorded.name(name))
            .clone_into(&mut span.name);
        let details = &mut span.attributes;
        if call.begin.is_none() {
            details.push(text("hearth.begin", "unknown"));
        }
        if call.end.is_none() {
            details.push(text("hearth.end", "unknown"));
        }
        if call.has_gap {
            details.push(truth("hearth.has_gap", true));
        }
        span
    }

    fn gap(&self, recorded: &Recorded, id: u64, times: (u64, u64), records: u64) -> Span {
        let mut span = self.span(recorded, id, times);
        span.name = format!("{records} records lost");
        span.attributes.push(number("hearth.lost", records));
        span
    }
}
