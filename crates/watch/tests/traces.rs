//! A trace, written and read back.

use std::collections::{HashMap, HashSet};

use hearth_sys::shared::memory_file;
use hearth_watch::trace::{self, TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, Trace};
use hearth_watch::{Carrying, Made, Recorder, Recording, Wait, bytes_for};

/// Two components that wake each other, of which one goes on at the end.
fn recorded() -> Recording {
    let file = memory_file("test", bytes_for(0)).expect("there is memory");
    let recorder = Recorder::begin(&file, Carrying::Workers, 1).expect("it is fit");
    for id in 1..=2 {
        let name = recorder.name("Ping", &["ball"]);
        let made = Made {
            name,
            number: id as u32,
            ports: 1,
            ..Made::default()
        };
        recorder.made(id, &made);
    }
    for id in [1, 2, 1] {
        recorder.runs(id, 0, recorder.now());
        let now = recorder.now();
        recorder.ready(3 - id, now, id);
        recorder.waits(id, 0, Wait::Send(Some(0)), now);
    }
    recorder.moved(2, 1, 0);
    recorder.on_core(1, 0);
    recorder.on_core(1, 1);
    recorder.worker_on_core(0, 4);
    recorder.worker_on_core(0, 2);
    recorder.remark("2 of 2 components move");
    recorder.runs(2, 0, recorder.now());
    recorder.worked(0, 1);
    Recording::of_file(&file).expect("it can be read")
}

fn written() -> Trace {
    let bytes = trace::bytes(&recorded(), "play");
    trace::read(&bytes).expect("it is a trace")
}

#[test]
fn every_slice_has_its_end_and_its_track() {
    let trace = written();
    let mut tracks = HashSet::new();
    let mut open: HashMap<u64, u32> = HashMap::new();
    let mut before = 0;
    for packet in &trace.packet {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(track) = &packet.track_descriptor {
            if let Some(parent) = track.parent_uuid {
                assert!(tracks.contains(&parent), "{track:?}");
            }
            assert!(tracks.insert(track.uuid()));
        }
        if let Some(event) = &packet.track_event {
            assert!(tracks.contains(&event.track_uuid()), "{event:?}");
            assert!(packet.timestamp() >= before);
            before = packet.timestamp();
            let depth = open.entry(event.track_uuid()).or_default();
            match event.r#type() {
                TYPE_SLICE_BEGIN => *depth += 1,
                TYPE_SLICE_END => *depth = depth.checked_sub(1).expect("it had begun"),
                TYPE_INSTANT => {}
                other => panic!("no such type: {other}"),
            }
            assert!(*depth <= 1);
        }
    }
    assert!(open.values().all(|depth| *depth == 0), "{open:?}");
}

#[test]
fn arrows_lead_from_who_wakes_to_who_runs() {
    let trace = written();
    let events = || {
        trace
            .packet
            .iter()
            .filter_map(|packet| packet.track_event.as_ref())
    };
    let begun: Vec<u64> = events().flat_map(|event| event.flow_ids.clone()).collect();
    let ended: Vec<u64> = events()
        .flat_map(|event| event.terminating_flow_ids.clone())
        .collect();
    assert!(begun.len() >= 2, "{begun:?}");
    assert!(ended.iter().all(|flow| begun.contains(flow)));
    assert!(!ended.is_empty());
}

#[test]
fn moves_and_remarks_are_marks_on_their_tracks() {
    let trace = written();
    let mut names = HashMap::new();
    let mut marks = HashSet::new();
    for packet in &trace.packet {
        if let Some(track) = &packet.track_descriptor {
            names.insert(track.uuid(), track.name());
        }
        if let Some(event) = packet
            .track_event
            .as_ref()
            .filter(|event| event.r#type() == TYPE_INSTANT)
        {
            marks.insert((names[&event.track_uuid()], event.name()));
        }
    }
    for mark in [
        ("Ping#2", "moves from worker 1 to worker 0"),
        ("Ping#1", "its thread moves from core 0 to core 1"),
        ("worker 0", "its thread moves from core 4 to core 2"),
        ("placement", "2 of 2 components move"),
    ] {
        assert!(marks.contains(&mark), "{mark:?} in {marks:?}");
    }
}

/// Bytes as the public schema has them, so that a wrong number of a field is seen.
#[test]
fn fields_have_their_public_numbers() {
    let bytes = trace::bytes(&recorded(), "play");
    // Trace.packet = 1: a tag of 0x0a, then the length; in it sequence id = 10 (0x50), flags = 13 (0x68),
    // descriptor = 60 (0xe2 0x03).
    assert_eq!(bytes[0], 0x0a);
    assert_eq!(bytes[2..4], [0x50, 0x01]);
    assert_eq!(bytes[4..6], [0x68, 0x01]);
    assert_eq!(bytes[6..8], [0xe2, 0x03]);
    let has = |wanted: &[u8]| bytes.windows(wanted.len()).any(|bytes| bytes == wanted);
    // TrackEvent: type = 9 (0x48), categories = 22 (0xb2 0x01), name = 23 (0xba 0x01), flows = 47 and 48, fixed.
    assert!(has(b"\x48\x01"));
    assert!(has(b"\xb2\x01\x07running"));
    assert!(has(b"\xba\x01\x0dsends on ball"));
    assert!(has(b"\xf9\x02\x01\0\0\0\0\0\0\0"));
    assert!(has(b"\x81\x03\x01\0\0\0\0\0\0\0"));
    // TrackDescriptor.name = 2.
    assert!(has(b"\x12\x06Ping#1"));
}
