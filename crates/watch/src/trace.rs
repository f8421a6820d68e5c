//! A trace as Perfetto reads it: a sequence of packets, in Protocol Buffers.
//!
//! Each worker is a thread of the process, with a slice for each run, and so is each component, with what it
//! does: running, ready, or waiting and for what. An arrow leads from the run that made a component
//! ready to the run that follows. Moves are marks on the tracks of who moves, and what was said of the whole
//! program has a track of its own.
//! The messages are those of Perfetto's public schema, `protos/perfetto/trace/trace.proto` and the files that
//! it imports, as far as they are used here; the numbers of the fields are theirs.

use std::collections::{HashMap, HashSet};

use prost::Message;

use crate::layout::Wait;
use crate::recording::{Event, Happening, Recording};

/// `perfetto.protos.Trace`.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// In the order of their times.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// In nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// One number for all that one writer writes in order.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Something happened.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// 1: what was known of the sequence is forgotten.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// There is such a track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// `TYPE_SLICE_BEGIN`, `TYPE_SLICE_END` or `TYPE_INSTANT`.
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Where.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// For colours and filters.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// What.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Arrows that begin or pass here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// `TrackEvent.Type`.
pub const TYPE_SLICE_BEGIN: i32 = 1;
/// The same.
pub const TYPE_SLICE_END: i32 = 2;
/// The same.
pub const TYPE_INSTANT: i32 = 3;

/// `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Its number, one for each track.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// What it is called.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It is a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// What it is part of.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// How its parts stand: 3, by their ranks.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Where it stands among its siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// `ProcessDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

const SEQUENCE: u32 = 1;
const EXPLICIT: i32 = 3;
// Numbers of tracks: the process, the two groups, then workers and components from their first on.
const PROCESS: u64 = 1;
const WORKERS: u64 = 2;
const COMPONENTS: u64 = 3;
const PLACEMENT: u64 = 4;
const WORKER: u64 = 1 << 20;
const COMPONENT: u64 = 1 << 40;

/// The trace of a recording, whose program is called so.
pub fn trace(recording: &Recording, program: &str) -> Trace {
    let mut writer = Writer::default();
    writer.tracks(recording, program);
    for event in &recording.events {
        writer.event(recording, event);
    }
    writer.close(recording.ns);
    Trace {
        packet: writer.packets,
    }
}

/// The file of it.
pub fn bytes(recording: &Recording, program: &str) -> Vec<u8> {
    trace(recording, program).encode_to_vec()
}

/// Reads a file of a trace.
///
/// # Errors
/// It is none.
pub fn read(bytes: &[u8]) -> Result<Trace, prost::DecodeError> {
    Trace::decode(bytes)
}

#[derive(Default)]
struct Writer {
    packets: Vec<TracePacket>,
    /// Tracks of components on which a slice is open.
    open: HashSet<u64>,
    /// The component whose slice is open on a worker's track.
    on_worker: HashMap<u16, u64>,
    /// Where a component runs.
    runs_on: HashMap<u64, u16>,
    /// Arrows to components that have become ready.
    flows: HashMap<u64, u64>,
    last_flow: u64,
}

impl Writer {
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

    fn descriptor(&mut self, descriptor: TrackDescriptor) {
        let is_first = self.packets.is_empty();
        self.packets.push(TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: is_first.then_some(1),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
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
        let told: HashSet<u64> = recording
            .events
            .iter()
            .filter(|event| {
                !matches!(
                    event.what,
                    Happening::WorkerMoved(..) | Happening::Remark(_)
                )
            })
            .map(|event| event.id)
            .collect();
        for (component, rank) in recording.components.iter().zip(0..) {
            if told.contains(&component.id) {
                let uuid = COMPONENT + component.id;
                self.track(uuid, &component.name, Some(COMPONENTS), Some(rank));
            }
        }
    }

    fn push(&mut self, ns: u64, event: TrackEvent) {
        self.packets.push(TracePacket {
            timestamp: Some(ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn begin(&mut self, ns: u64, track: u64, name: &str, category: &str) {
        let ends = match category {
            "running" => self.flows.remove(&(track.wrapping_sub(COMPONENT))),
            _ => None,
        };
        self.push(
            ns,
            TrackEvent {
                r#type: Some(TYPE_SLICE_BEGIN),
                track_uuid: Some(track),
                categories: vec![category.to_owned()],
                name: Some(name.to_owned()),
                terminating_flow_ids: ends.into_iter().collect(),
                ..TrackEvent::default()
            },
        );
    }

    fn end(&mut self, ns: u64, track: u64) {
        self.push(
            ns,
            TrackEvent {
                r#type: Some(TYPE_SLICE_END),
                track_uuid: Some(track),
                ..TrackEvent::default()
            },
        );
    }

    /// An arrow begins at one component, to where another runs next.
    fn wakes(&mut self, recording: &Recording, ns: u64, by: u64, id: u64) {
        self.last_flow += 1;
        self.flows.insert(id, self.last_flow);
        let whom = match recording.component(id) {
            Some(component) => component.name.as_str(),
            None => "another",
        };
        self.push(
            ns,
            TrackEvent {
                r#type: Some(TYPE_INSTANT),
                track_uuid: Some(COMPONENT + by),
                name: Some(format!("makes {whom} ready")),
                flow_ids: vec![self.last_flow],
                ..TrackEvent::default()
            },
        );
    }

    fn instant(&mut self, ns: u64, track: u64, name: &str) {
        self.push(
            ns,
            TrackEvent {
                r#type: Some(TYPE_INSTANT),
                track_uuid: Some(track),
                name: Some(name.to_owned()),
                ..TrackEvent::default()
            },
        );
    }

    /// A component does something else from here on.
    fn turns(&mut self, ns: u64, id: u64, to: Option<(&str, &str)>) {
        let track = COMPONENT + id;
        if self.open.remove(&track) {
            self.end(ns, track);
        }
        if let Some((name, category)) = to {
            self.begin(ns, track, name, category);
            self.open.insert(track);
        }
    }

    fn leaves_worker(&mut self, ns: u64, id: u64) {
        if let Some(worker) = self.runs_on.remove(&id) {
            self.on_worker.remove(&worker);
            self.end(ns, WORKER + u64::from(worker));
        }
    }

    fn event(&mut self, recording: &Recording, event: &Event) {
        let &Event { ns, id, what } = event;
        match what {
            Happening::Made(_) => self.instant(ns, COMPONENT + id, "made"),
            Happening::Moved(from, to) => {
                let text = format!("moves from worker {from} to worker {to}");
                self.instant(ns, COMPONENT + id, &text);
            }
            Happening::ThreadMoved(from, to) => {
                let text = format!("its thread moves from core {from} to core {to}");
                self.instant(ns, COMPONENT + id, &text);
            }
            Happening::WorkerMoved(from, to) => {
                let text = format!("its thread moves from core {from} to core {to}");
                self.instant(ns, WORKER + id, &text);
            }
            Happening::Remark(number) => {
                if let Some(remark) = recording.remark(number) {
                    self.instant(ns, PLACEMENT, &remark.text);
                }
            }
            Happening::Ready(by) => {
                if by != 0 && self.open.contains(&(COMPONENT + by)) {
                    self.wakes(recording, ns, by, id);
                }
                self.leaves_worker(ns, id);
                self.turns(ns, id, Some(("ready", "ready")));
            }
            Happening::Runs(worker) => {
                if let Some(worker) = worker {
                    // One that was detached runs on elsewhere; its end will come without a slice.
                    if let Some(other) = self.on_worker.insert(worker, id) {
                        self.runs_on.remove(&other);
                        self.end(ns, WORKER + u64::from(worker));
                    }
                    let name = match recording.component(id) {
                        Some(component) => component.name.clone(),
                        None => format!("component {id}"),
                    };
                    self.begin(ns, WORKER + u64::from(worker), &name, "running");
                    self.runs_on.insert(id, worker);
                }
                self.turns(ns, id, Some(("running", "running")));
            }
            Happening::Waits(wait) => {
                self.leaves_worker(ns, id);
                let name = describe(recording, id, wait);
                self.turns(ns, id, Some((&name, "waiting")));
            }
            Happening::Ended => {
                self.leaves_worker(ns, id);
                self.turns(ns, id, None);
            }
        }
    }

    fn close(&mut self, ns: u64) {
        let mut workers: Vec<u16> = self.on_worker.keys().copied().collect();
        workers.sort_unstable();
        for worker in workers {
            self.end(ns, WORKER + u64::from(worker));
        }
        let mut open: Vec<u64> = self.open.drain().collect();
        open.sort_unstable();
        for track in open {
            self.end(ns, track);
        }
    }
}

/// What a component waits for, in words: `sends on ball`.
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
