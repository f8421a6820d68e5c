//! A trace for Perfetto: a track for each thread, with a slice for each call.
//!
//! A gap is a slice of its own, "N records lost", within the calls that are still open. A call
//! whose beginning or end is unknown is shown for as long as it was open for sure, and a detail of
//! its slice says which is unknown. Each thread that lost records has a counter of them.
//!
//! Times of packets are nanoseconds since the beginning of the recording, as the trace's clock;
//! the readings of the clocks in the recording tell the wall's time. Each thread is a sequence of
//! packets with its own numbers for names, since threads are mixed in a recording by blocks, and
//! only a thread's times are in order.
//!
//! The name of a call that turns out to be open comes with its end. So the recording is read twice,
//! first for these names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use hearth_watch::trace::{
    CLOCK_BOOTTIME, CLOCK_REALTIME, Clock, ClockSnapshot, CounterDescriptor, DebugAnnotation,
    EventName, InternedData, NEEDS_STATE, ProcessDescriptor, STATE_CLEARED, TYPE_COUNTER,
    TYPE_SLICE_BEGIN, TYPE_SLICE_END, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
    append_packet,
};

use super::Unwritten;
use crate::recorded::{Caller, Recorded, Unreadable};
use crate::steps::{Call, Step};

/// Bytes of packets that are written together.
const AT_ONCE: usize = 64 << 10;
/// Number of the process's track, and of the sequence of packets about the whole.
const PROCESS: u64 = 1;
/// Tracks of threads, from the first thread's on; behind each that of its counter.
const THREADS: u64 = 16;
/// Categories, in the order of their numbers, from 1.
const CATEGORIES: [&str; 2] = ["call", "lost"];
const CALL: u64 = 1;
const LOST: u64 = 2;
/// Number of the name of calls without one; probes' are theirs and 2.
const NAMELESS: u64 = 1;

/// Writes a trace file.
///
/// # Errors
/// Reading or writing fails.
pub fn perfetto(recorded: &Recorded, to: &mut dyn Write) -> Result<(), Unwritten> {
    let mut trace = Trace {
        recorded,
        names: names(recorded)?,
        threads: BTreeMap::new(),
        bytes: Vec::new(),
    };
    trace.head();
    for number in recorded.callers() {
        trace.thread(number);
    }
    let mut result: io::Result<()> = Ok(());
    recorded.visit(|step| {
        if result.is_ok() {
            trace.step(step);
            if trace.bytes.len() >= AT_ONCE {
                result = to.write_all(&trace.bytes);
                trace.bytes.clear();
            }
        }
    })?;
    result?;
    to.write_all(&trace.bytes)?;
    Ok(())
}

/// Names of the calls that turn out to be open: of each thread, in that order.
fn names(recorded: &Recorded) -> Result<BTreeMap<u32, Vec<Option<u32>>>, Unreadable> {
    #[derive(Default)]
    struct Open {
        /// For each open call, its place below if it has one.
        calls: Vec<Option<usize>>,
        names: Vec<Option<u32>>,
    }
    let mut threads: BTreeMap<u32, Open> = BTreeMap::new();
    recorded.visit(|step| {
        let thread = threads.entry(step.thread()).or_default();
        match step {
            Step::Begins { .. } => thread.calls.push(None),
            Step::Appears { .. } => {
                thread.calls.push(Some(thread.names.len()));
                thread.names.push(None);
            }
            Step::Ends { call, .. } => {
                if let Some(Some(place)) = thread.calls.pop() {
                    thread.names[place] = call.name;
                }
            }
            Step::Gap { .. } => {}
        }
    })?;
    let named = threads
        .into_iter()
        .map(|(number, thread)| (number, thread.names));
    Ok(named.collect())
}

/// A thread's sequence of packets.
#[derive(Default)]
struct Thread {
    /// Numbers of names that were told.
    told: BTreeSet<u64>,
    /// Number of open slices.
    open: usize,
    /// Number of calls that turned out to be open.
    appeared: usize,
    lost: u64,
}

struct Trace<'r> {
    recorded: &'r Recorded,
    names: BTreeMap<u32, Vec<Option<u32>>>,
    threads: BTreeMap<u32, Thread>,
    /// Packets that are not written yet.
    bytes: Vec<u8>,
}

fn track(thread: u32) -> u64 {
    THREADS + 2 * u64::from(thread)
}

fn counter(thread: u32) -> u64 {
    track(thread) + 1
}

impl Trace<'_> {
    fn put(&mut self, sequence: u32, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(sequence);
        append_packet(&packet, &mut self.bytes);
    }

    /// Puts a packet into the sequence of a thread.
    fn put_of(&mut self, thread: u32, packet: TracePacket) {
        self.put(1 + thread, packet);
    }

    fn head(&mut self) {
        let began = self.recorded.began_at();
        let clock = |clock_id, timestamp| Clock {
            clock_id: Some(clock_id),
            timestamp: Some(timestamp),
        };
        let readings = self.recorded.clocks();
        let readings = readings.iter().map(|clocks| (clocks.ns, clocks.wall));
        for (ns, wall) in std::iter::once((0, began)).chain(readings.filter(|&(ns, _)| ns > 0)) {
            let snapshot = ClockSnapshot {
                clocks: vec![clock(CLOCK_BOOTTIME, ns), clock(CLOCK_REALTIME, wall)],
                primary_trace_clock: Some(CLOCK_BOOTTIME),
            };
            self.put(
                PROCESS as u32,
                TracePacket {
                    clock_snapshot: Some(snapshot),
                    ..TracePacket::default()
                },
            );
        }
        let process = TrackDescriptor {
            uuid: Some(PROCESS),
            process: Some(ProcessDescriptor {
                pid: i32::try_from(self.recorded.process()).ok(),
                process_name: Some(self.recorded.program().to_owned()),
            }),
            ..TrackDescriptor::default()
        };
        self.put(PROCESS as u32, described(process));
    }

    /// Declares the thread's tracks, if they are not yet.
    fn thread(&mut self, number: u32) {
        if self.threads.contains_key(&number) {
            return;
        }
        self.threads.insert(number, Thread::default());
        let caller = self.recorded.caller(number);
        let id = match caller {
            Caller::Thread(id, _) => id,
            Caller::Component(_) => number,
        };
        let descriptor = TrackDescriptor {
            uuid: Some(track(number)),
            parent_uuid: Some(PROCESS),
            thread: Some(ThreadDescriptor {
                pid: i32::try_from(self.recorded.process()).ok(),
                tid: Some(i64::from(id)),
                thread_name: Some(caller.to_string()),
            }),
            ..TrackDescriptor::default()
        };
        let categories = CATEGORIES.iter().zip(1..);
        let packet = TracePacket {
            sequence_flags: Some(STATE_CLEARED),
            interned_data: Some(InternedData {
                event_categories: categories.map(|(name, iid)| named(iid, name)).collect(),
                event_names: vec![named(NAMELESS, "?")],
            }),
            ..described(descriptor)
        };
        self.put_of(number, packet);
        if self.recorded.has_losses(number) {
            let descriptor = TrackDescriptor {
                uuid: Some(counter(number)),
                parent_uuid: Some(track(number)),
                name: Some("records lost".to_owned()),
                counter: Some(CounterDescriptor {
                    unit_name: Some("records".to_owned()),
                }),
                ..TrackDescriptor::default()
            };
            self.put_of(number, described(descriptor));
            self.count(number, 0, 0);
        }
    }

    fn count(&mut self, thread: u32, ns: u64, lost: u64) {
        let event = TrackEvent {
            r#type: Some(TYPE_COUNTER),
            track_uuid: Some(counter(thread)),
            counter_value: i64::try_from(lost).ok(),
            ..TrackEvent::default()
        };
        self.put_of(thread, at(ns, event));
    }

    fn step(&mut self, step: Step<'_>) {
        let number = step.thread();
        self.thread(number);
        match step {
            Step::Begins { name, ns, .. } => {
                self.begin(number, ns, Some(name), Vec::new());
            }
            Step::Appears { ns, .. } => {
                let thread = self.threads.entry(number).or_default();
                let names = self.names.get(&number);
                let name = names.and_then(|names| names.get(thread.appeared).copied());
                thread.appeared += 1;
                self.begin(number, ns, name.flatten(), vec![text("begin", "unknown")]);
            }
            Step::Ends { call, .. } => self.ends(&call),
            Step::Gap {
                from, to, records, ..
            } => self.gap(number, from, to, records),
        }
    }

    fn begin(&mut self, number: u32, ns: u64, name: Option<u32>, details: Vec<DebugAnnotation>) {
        let iid = name.map_or(NAMELESS, |name| u64::from(name) + NAMELESS + 1);
        let thread = self.threads.entry(number).or_default();
        thread.open += 1;
        let is_new = iid != NAMELESS && thread.told.insert(iid);
        let event = TrackEvent {
            category_iids: vec![CALL],
            debug_annotations: details,
            r#type: Some(TYPE_SLICE_BEGIN),
            name_iid: Some(iid),
            track_uuid: Some(track(number)),
            ..TrackEvent::default()
        };
        let interned = |name| InternedData {
            event_categories: Vec::new(),
            event_names: vec![named(iid, self.recorded.name(name))],
        };
        let packet = TracePacket {
            sequence_flags: Some(NEEDS_STATE),
            interned_data: name.filter(|_| is_new).map(interned),
            ..at(ns, event)
        };
        self.put_of(number, packet);
    }

    fn ends(&mut self, call: &Call) {
        let open = self
            .threads
            .get(&call.thread)
            .map_or(0, |thread| thread.open);
        // Only its end was seen.
        if open as u64 <= u64::from(call.depth) {
            let details = vec![text("begin", "unknown")];
            self.begin(call.thread, call.open_from, call.name, details);
        }
        if let Some(thread) = self.threads.get_mut(&call.thread) {
            thread.open -= 1;
        }
        let details = match call.end {
            Some(_) => Vec::new(),
            None => vec![text("end", "unknown")],
        };
        self.end(call.thread, call.open_until, details);
    }

    fn end(&mut self, thread: u32, ns: u64, details: Vec<DebugAnnotation>) {
        let event = TrackEvent {
            debug_annotations: details,
            r#type: Some(TYPE_SLICE_END),
            track_uuid: Some(track(thread)),
            ..TrackEvent::default()
        };
        self.put_of(thread, at(ns, event));
    }

    fn gap(&mut self, thread: u32, from: u64, to: u64, records: u64) {
        let event = TrackEvent {
            category_iids: vec![LOST],
            debug_annotations: vec![DebugAnnotation {
                name: Some("records".to_owned()),
                uint_value: Some(records),
                ..DebugAnnotation::default()
            }],
            r#type: Some(TYPE_SLICE_BEGIN),
            name: Some(format!("{records} records lost")),
            track_uuid: Some(track(thread)),
            ..TrackEvent::default()
        };
        let packet = TracePacket {
            sequence_flags: Some(NEEDS_STATE),
            ..at(from, event)
        };
        self.put_of(thread, packet);
        self.end(thread, to, Vec::new());
        let lost = self.threads.get_mut(&thread).map_or(0, |thread| {
            thread.lost += records;
            thread.lost
        });
        let has_counter = self.recorded.has_losses(thread);
        if has_counter {
            self.count(thread, to, lost);
        }
    }
}

fn at(ns: u64, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(ns),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

fn described(descriptor: TrackDescriptor) -> TracePacket {
    TracePacket {
        track_descriptor: Some(descriptor),
        ..TracePacket::default()
    }
}

fn named(iid: u64, name: &str) -> EventName {
    EventName {
        iid: Some(iid),
        name: Some(name.to_owned()),
    }
}

fn text(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(value.to_owned()),
        ..DebugAnnotation::default()
    }
}
