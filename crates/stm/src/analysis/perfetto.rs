//! A history as Perfetto reads it: a slice for each attempt, an arrow from killer to victim.

use hearth_watch::trace::{
    ProcessDescriptor, TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, Trace, TracePacket,
    TrackDescriptor, TrackEvent,
};

use super::conflicts::{Killer, Kills};
use super::history::{Attempt, End, History};

const SEQUENCE: u32 = 1;
const PROCESS: u64 = 1;
/// Number of the first thread's track.
const THREADS: u64 = 2;

fn track(uuid: u64, name: &str, parent: Option<u64>) -> TracePacket {
    let process = parent.is_none().then(|| ProcessDescriptor {
        pid: Some(1),
        process_name: Some(name.to_owned()),
    });
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            process,
            parent_uuid: parent,
            ..TrackDescriptor::default()
        }),
        ..TracePacket::default()
    }
}

fn event(ns: f64, thread: usize, of: i32, name: Option<&str>) -> (f64, TrackEvent) {
    let event = TrackEvent {
        r#type: Some(of),
        track_uuid: Some(THREADS + thread as u64),
        name: name.map(str::to_owned),
        ..TrackEvent::default()
    };
    (ns, event)
}

/// The name of a slice: where the transaction began, and how the attempt ended if not well.
fn titled(history: &History, attempt: &Attempt, end: &str) -> String {
    match (attempt.origin, attempt.end) {
        (None, _) => end.to_owned(),
        (Some(_), End::Commit) => history.origin(attempt).to_owned(),
        (Some(_), End::Abort { .. }) => format!("{}, {end}", history.origin(attempt)),
    }
}

/// The history as a trace; its messages encode themselves. An arrow begins at a mark on the
/// killer's track at the time of the abort, and ends at the victim's mark.
#[must_use]
pub fn perfetto(history: &History) -> Trace {
    let kills = Kills::of(history);
    let mut events = Vec::new();
    let mut flows = 0;
    for (number, thread) in history.threads.iter().enumerate() {
        for attempt in &thread.attempts {
            let (name, killer) = match attempt.end {
                End::Commit => ("commit", None),
                End::Abort { reason, .. } => {
                    let killer = kills.killer(number, attempt);
                    let named = reason.map_or("abort", |reason| reason.name());
                    (named, killer.and_then(Killer::thread))
                }
            };
            events.push(event(
                attempt.start_ns,
                number,
                TYPE_SLICE_BEGIN,
                Some(&titled(history, attempt, name)),
            ));
            if let Some(killer) = killer {
                flows += 1;
                let mut kill = event(attempt.end_ns, killer, TYPE_INSTANT, Some("kills"));
                kill.1.flow_ids.push(flows);
                let mut dies = event(attempt.end_ns, number, TYPE_INSTANT, Some("dies"));
                dies.1.terminating_flow_ids.push(flows);
                events.extend([kill, dies]);
            }
            events.push(event(attempt.end_ns, number, TYPE_SLICE_END, None));
        }
    }
    // Stable: what happens at one time stays in the order in which it was added.
    events.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut packet = vec![track(PROCESS, "transactions", None)];
    for (number, thread) in history.threads.iter().enumerate() {
        packet.push(track(THREADS + number as u64, &thread.name, Some(PROCESS)));
    }
    packet.extend(events.into_iter().map(|(ns, event)| TracePacket {
        timestamp: Some(ns.max(0.0) as u64),
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_event: Some(event),
        ..TracePacket::default()
    }));
    Trace { packet }
}
