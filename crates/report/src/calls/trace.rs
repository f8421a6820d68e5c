//! One outermost call with all within it.

use std::collections::BTreeMap;

use hearth_calls::Step;

/// Most calls of a trace that is kept whole.
const CALLS_MAX: usize = 20_000;

/// A call of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The probe's number.
    pub name: u32,
    /// Number of calls around it.
    pub depth: u32,
    /// Time of its beginning in nanoseconds.
    pub begin: u64,
    /// Time of its end.
    pub end: u64,
}

/// An outermost call with all within it, in the order in which they began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The thread's number.
    pub thread: u32,
    /// The calls.
    pub spans: Vec<Span>,
    /// Number of further calls, which are not kept.
    pub more: u64,
}

#[derive(Default)]
struct Open {
    trace: Trace,
    /// Places of the open calls among the spans; none for those not kept.
    places: Vec<Option<usize>>,
    is_whole: bool,
}

/// Finds the longest outermost call without a gap.
#[derive(Default)]
pub(super) struct Longest {
    threads: BTreeMap<u32, Open>,
    best: Option<Trace>,
}

impl Longest {
    pub(super) fn add(&mut self, step: Step<'_>) {
        match step {
            Step::Gap { thread, .. } => self.thread(thread).is_whole = false,
            // Its beginning is missing, so the trace is not whole.
            Step::Appears { thread, .. } => self.thread(thread).places.push(None),
            Step::Begins {
                thread,
                name,
                ns,
                around,
            } => self.thread(thread).begins(thread, name, ns, around.len()),
            Step::Ends { call, around } => {
                let length = self.best.as_ref().map_or(0, Trace::length);
                let open = self.thread(call.thread);
                open.ends(call.end);
                if around.is_empty() && open.is_whole && length < open.trace.length() {
                    self.best = Some(std::mem::take(&mut open.trace));
                }
            }
        }
    }

    fn thread(&mut self, thread: u32) -> &mut Open {
        self.threads.entry(thread).or_default()
    }

    pub(super) fn found(self) -> Option<Trace> {
        self.best
    }
}

impl Trace {
    /// Its length in nanoseconds.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.spans.first().map_or(0, |span| span.end - span.begin)
    }
}

impl Open {
    fn begins(&mut self, thread: u32, name: u32, ns: u64, around: usize) {
        if around == 0 {
            self.trace.spans.clear();
            self.trace.more = 0;
            self.trace.thread = thread;
            self.places.clear();
            self.is_whole = true;
        }
        let place = self.trace.spans.len();
        if place == CALLS_MAX {
            self.trace.more += 1;
            self.places.push(None);
            return;
        }
        self.places.push(Some(place));
        self.trace.spans.push(Span {
            name,
            depth: around as u32,
            begin: ns,
            end: ns,
        });
    }

    fn ends(&mut self, end: Option<u64>) {
        match (self.places.pop(), end) {
            (Some(Some(place)), Some(end)) => self.trace.spans[place].end = end,
            (Some(None), Some(_)) => {}
            _ => self.is_whole = false,
        }
    }
}
