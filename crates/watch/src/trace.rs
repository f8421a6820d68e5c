//! A trace as Perfetto reads it: a sequence of packets, in Protocol Buffers.
//!
//! Each worker is a thread of the process, with a slice for each run, and so is each component,
//! with its state: running, ready, or waiting and for what. An arrow leads from the run that made a
//! component ready to the run that follows. Moves are marks on the tracks of the components or
//! workers that move, and remarks about the whole program have a track of their own.
//!
//! There are millions of events. So each packet is written at once and none is kept, and names are
//! written once and then referred to by their numbers.

mod names;
mod schema;

use prost::Message;

use crate::layout::Wait;
use crate::recording::{Event, Happening, Recording};
use names::{ByNumber, Names};
pub use schema::{
    CLOCK_BOOTTIME, CLOCK_REALTIME, Clock, ClockSnapshot, CounterDescriptor, DebugAnnotation,
    EventName, InternedData, NEEDS_STATE, ProcessDescriptor, STATE_CLEARED, TYPE_COUNTER,
    TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, ThreadDescriptor, Trace, TracePacket,
    TrackDescriptor, TrackEvent,
};

const SEQUENCE: u32 = 1;
const EXPLICIT: i32 = 3;
/// `Trace.packet`: field 1, with a length.
const PACKET: u8 = 0x0a;
// Numbers of tracks: the process, the three groups, then workers, of which 2^16 are numbered, and
// components from their first on. Each packet has one, so they are small.
const PROCESS: u64 = 1;
const WORKERS: u64 = 2;
const COMPONENTS: u64 = 3;
const PLACEMENT: u64 = 4;
const WORKER: u64 = 1 << 8;
const COMPONENT: u64 = 1 << 17;

/// States of a component, as a category and as a name: the position here is the number of either,
/// from 1.
const CATEGORIES: [&str; 3] = ["running", "ready", "waiting"];
const RUNNING: u64 = 1;
const READY: u64 = 2;
const WAITING: u64 = 3;

/// The trace file of a recording of the named program.
pub fn bytes(recording: &Recording, program: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.tracks(recording, program);
    for event in &recording.events {
        writer.event(recording, event);
    }
    writer.close(recording.ns);
    writer.bytes
}

/// Reads a trace file. Replaces the file's numbers by names.
///
/// # Errors
/// If it is not a trace.
pub fn read(bytes: &[u8]) -> Result<Trace, prost::DecodeError> {
    let mut trace = read_as_it_is(bytes)?;
    names::resolve(&mut trace);
    Ok(trace)
}

/// Reads a trace file with numbers for names as in the file.
///
/// # Errors
/// If it is not a trace.
pub fn read_as_it_is(bytes: &[u8]) -> Result<Trace, prost::DecodeError> {
    Trace::decode(bytes)
}

/// Appends a packet to the bytes of a trace file.
pub fn append_packet(packet: &TracePacket, to: &mut Vec<u8>) {
    to.push(PACKET);
    let written = packet.encode_length_delimited(to);
    debug_assert!(written.is_ok(), "a vector grows as it must");
}

/// State of a component so far.
#[derive(Default)]
struct Life {
    /// Whether a slice is open on its track.
    is_open: bool,
    /// The worker on whose track its slice is open.
    worker: Option<u16>,
    /// The arrow that leads to its next run.
    flow: Option<u64>,
    /// The numbers of its name, and of the name for becoming ready; 0 if they have none yet.
    name: u64,
    made_ready: u64,
    /// Its last wait, with the number of its name.
    wait: Option<(Wait, u64)>,
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// The packet being written; its parts are reused.
    packet: TracePacket,
    names: Names,
    /// Components with events.
    lives: ByNumber<Life>,
    /// The component whose slice is open on a worker's track.
    on_worker: ByNumber<u64>,
    last_flow: u64,
}

/// Name of an event.
enum Name<'a> {
    /// By number.
    Known(u64),
    /// A text, since it occurs once.
    Once(&'a str),
}

impl Writer {
    // ---- packets ------------------------------------------------------------------------------

    fn write(&mut self) {
        self.packet.trusted_packet_sequence_id = Some(SEQUENCE);
        let new = self.names.take_new();
        if !new.is_empty() {
            let told = self.packet.interned_data.get_or_insert_default();
            told.event_names = new;
        }
        append_packet(&self.packet, &mut self.bytes);
        self.packet.interned_data = None;
    }

    fn descriptor(&mut self, descriptor: TrackDescriptor) {
        if self.bytes.is_empty() {
            self.packet.sequence_flags = Some(STATE_CLEARED);
            let categories = CATEGORIES.iter().zip(1..).map(|(name, iid)| EventName {
                iid: Some(iid),
                name: Some((*name).to_owned()),
            });
            self.packet.interned_data = Some(InternedData {
                event_categories: categories.collect(),
                event_names: Vec::new(),
            });
            for (name, number) in CATEGORIES.iter().zip(1..) {
                let given = self.names.number(name);
                debug_assert_eq!(given, number, "they are the first");
            }
        }
        self.packet.track_descriptor = Some(descriptor);
        self.write();
        self.packet.track_descriptor = None;
        self.packet.sequence_flags = None;
    }

    /// An event of some type on a track, its other parts empty.
    fn event_on(&mut self, ns: u64, track: u64, of: i32) -> &mut TrackEvent {
        self.packet.timestamp = Some(ns);
        let event = self.packet.track_event.get_or_insert_default();
        event.r#type = Some(of);
        event.track_uuid = Some(track);
        event.name = None;
        event.name_iid = None;
        event.category_iids.clear();
        event.flow_ids.clear();
        event.terminating_flow_ids.clear();
        event
    }

    /// Writes the packet with an event whose name or categories are numbers.
    fn write_numbered(&mut self) {
        self.packet.sequence_flags = Some(NEEDS_STATE);
        self.write();
        self.packet.sequence_flags = None;
    }

    fn begin(&mut self, ns: u64, track: u64, name: u64, category: u64, flow: Option<u64>) {
        let event = self.event_on(ns, track, TYPE_SLICE_BEGIN);
        event.name_iid = Some(name);
        event.category_iids.push(category);
        event.terminating_flow_ids.extend(flow);
        self.write_numbered();
    }

    fn end(&mut self, ns: u64, track: u64) {
        self.event_on(ns, track, TYPE_SLICE_END);
        self.write();
    }

    fn instant(&mut self, ns: u64, track: u64, name: Name, flow: Option<u64>) {
        let event = self.event_on(ns, track, TYPE_INSTANT);
        event.flow_ids.extend(flow);
        match name {
            Name::Known(number) => {
                event.name_iid = Some(number);
                self.write_numbered();
            }
            Name::Once(name) => {
                event.name = Some(name.to_owned());
                self.write();
            }
        }
    }

    fn mark(&mut self, ns: u64, track: u64, name: &str) {
        let number = self.names.number(name);
        self.instant(ns, track, Name::Known(number), None);
    }

    // ---- tracks -------------------------------------------------------------------------------

    fn track(&mut self, uuid: u64, name: &str, parent: Option<u64>, rank: Option<i32>) {
        self.descriptor(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: parent,
            sibling_order_rank: rank,
            child_ordering: rank.is_none().then_some(EXPLICIT),
            ..TrackDescriptor::default()
        });
    }

    fn tracks(&mut self, recording: &Recording, program: &str) {
        self.descriptor(TrackDescriptor {
            uuid: Some(PROCESS),
            process: Some(ProcessDescriptor {
                pid: i32::try_from(recording.process).ok(),
                process_name: Some(program.to_owned()),
            }),
            child_ordering: Some(EXPLICIT),
            ..TrackDescriptor::default()
        });
        if !recording.workers.is_empty() {
            self.track(WORKERS, "workers", Some(PROCESS), None);
        }
        self.track(COMPONENTS, "components", Some(PROCESS), None);
        if !recording.remarks.is_empty() {
            self.track(PLACEMENT, "placement", Some(PROCESS), None);
        }
        for worker in &recording.workers {
            let name = match worker.core {
                Some(core) => format!("worker {} on core {core}", worker.index),
                None => format!("worker {}", worker.index),
            };
            let rank = i32::from(worker.index);
            let uuid = WORKER + u64::from(worker.index);
            self.track(uuid, &name, Some(WORKERS), Some(rank));
        }
        for event in &recording.events {
            match event.what {
                Happening::WorkerMoved(..) | Happening::Remark(_) => {}
                _ => {
                    self.lives.entry(event.id).or_default();
                }
            }
        }
        for (component, rank) in recording.components.iter().zip(0..) {
            if self.lives.contains_key(&component.id) {
                let uuid = COMPONENT + component.id;
                self.track(uuid, &component.name, Some(COMPONENTS), Some(rank));
            }
        }
    }

    // ---- what happens -------------------------------------------------------------------------

    fn life(&mut self, id: u64) -> &mut Life {
        self.lives.entry(id).or_default()
    }

    /// The number of a component's name.
    fn name_of(&mut self, recording: &Recording, id: u64) -> u64 {
        let known = self.life(id).name;
        if known != 0 {
            return known;
        }
        let number = match recording.component(id) {
            Some(component) => self.names.number(&component.name),
            None => self.names.number(&format!("component {id}")),
        };
        self.life(id).name = number;
        number
    }

    /// The number of the name of its wait. Most components wait for the same again and again.
    fn name_of_wait(&mut self, recording: &Recording, id: u64, wait: Wait) -> u64 {
        match self.life(id).wait {
            Some((last, number)) if last == wait => number,
            _ => {
                let number = self.names.number(&describe(recording, id, wait));
                self.life(id).wait = Some((wait, number));
                number
            }
        }
    }

    /// Begins an arrow from one component to the next run of another.
    fn wakes(&mut self, recording: &Recording, ns: u64, by: u64, id: u64) {
        self.last_flow += 1;
        let flow = self.last_flow;
        let life = self.life(id);
        life.flow = Some(flow);
        let mut number = life.made_ready;
        if number == 0 {
            let whom = match recording.component(id) {
                Some(component) => component.name.as_str(),
                None => "another",
            };
            number = self.names.number(&format!("makes {whom} ready"));
            self.life(id).made_ready = number;
        }
        self.instant(ns, COMPONENT + by, Name::Known(number), Some(flow));
    }

    /// Changes the state of a component: the name's number and the category's.
    fn turns(&mut self, ns: u64, id: u64, to: Option<(u64, u64)>) {
        let life = self.life(id);
        let was_open = std::mem::replace(&mut life.is_open, to.is_some());
        let flow = match to {
            Some((_, RUNNING)) => life.flow.take(),
            _ => None,
        };
        if was_open {
            self.end(ns, COMPONENT + id);
        }
        if let Some((name, category)) = to {
            self.begin(ns, COMPONENT + id, name, category, flow);
        }
    }

    fn leaves_worker(&mut self, ns: u64, id: u64) {
        if let Some(worker) = self.life(id).worker.take() {
            let worker = u64::from(worker);
            self.on_worker.remove(&worker);
            self.end(ns, WORKER + worker);
        }
    }

    fn comes_to_worker(&mut self, recording: &Recording, ns: u64, id: u64, worker: u16) {
        let track = WORKER + u64::from(worker);
        // A detached one runs on elsewhere; its end comes without a slice.
        if let Some(other) = self.on_worker.insert(u64::from(worker), id) {
            self.life(other).worker = None;
            self.end(ns, track);
        }
        let name = self.name_of(recording, id);
        self.begin(ns, track, name, RUNNING, None);
        self.life(id).worker = Some(worker);
    }

    fn event(&mut self, recording: &Recording, event: &Event) {
        let &Event { ns, id, what } = event;
        match what {
            Happening::Made(_) => self.mark(ns, COMPONENT + id, "made"),
            Happening::Moved(from, to) => {
                let text = format!("moves from worker {from} to worker {to}");
                self.mark(ns, COMPONENT + id, &text);
            }
            Happening::ThreadMoved(from, to) => {
                let text = format!("its thread moves from core {from} to core {to}");
                self.mark(ns, COMPONENT + id, &text);
            }
            Happening::WorkerMoved(from, to) => {
                let text = format!("its thread moves from core {from} to core {to}");
                self.mark(ns, WORKER + id, &text);
            }
            Happening::Remark(number) => {
                if let Some(remark) = recording.remark(number) {
                    self.instant(ns, PLACEMENT, Name::Once(&remark.text), None);
                }
            }
            Happening::Ready(by) => {
                if by != 0 && self.lives.get(&by).is_some_and(|life| life.is_open) {
                    self.wakes(recording, ns, by, id);
                }
                self.leaves_worker(ns, id);
                self.turns(ns, id, Some((READY, READY)));
            }
            Happening::Runs(worker) => {
                if let Some(worker) = worker {
                    self.comes_to_worker(recording, ns, id, worker);
                }
                self.turns(ns, id, Some((RUNNING, RUNNING)));
            }
            Happening::Waits(wait) => {
                self.leaves_worker(ns, id);
                let name = self.name_of_wait(recording, id, wait);
                self.turns(ns, id, Some((name, WAITING)));
            }
            Happening::Ended => {
                self.leaves_worker(ns, id);
                self.turns(ns, id, None);
            }
        }
    }

    fn close(&mut self, ns: u64) {
        let mut workers: Vec<u64> = self.on_worker.keys().copied().collect();
        workers.sort_unstable();
        for worker in workers {
            self.end(ns, WORKER + worker);
        }
        let open = self.lives.iter().filter(|(_, life)| life.is_open);
        let mut open: Vec<u64> = open.map(|(id, _)| *id).collect();
        open.sort_unstable();
        for id in open {
            self.end(ns, COMPONENT + id);
        }
    }
}

/// Describes a wait in words: `sends on ball`.
pub fn describe(recording: &Recording, id: u64, wait: Wait) -> String {
    let port = || {
        let port = usize::from(wait.port()?);
        let component = recording.component(id)?;
        component.ports.get(port).map(|port| port.name.as_str())
    };
    match (wait, port()) {
        (Wait::Send(_), Some(port)) => format!("sends on {port}"),
        (Wait::Send(_), None) => "sends".to_owned(),
        (Wait::Receive(_), Some(port)) => format!("receives from {port}"),
        (Wait::Receive(_), None) => "receives".to_owned(),
        (Wait::Linked(_), Some(port)) => format!("waits at {port}"),
        (Wait::Select, _) => "selects".to_owned(),
        (Wait::Outside, _) => "waits for the outside".to_owned(),
        (Wait::Linked(_) | Wait::Unknown, _) => "waits".to_owned(),
    }
}
