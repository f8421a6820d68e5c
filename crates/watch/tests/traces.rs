//! A trace, written and read back.

use std::collections::{HashMap, HashSet};

use hearth_sys::shared::memory_file;
use hearth_watch::trace::{
    self, NEEDS_STATE, STATE_CLEARED, TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, Trace,
};
use hearth_watch::{Carrying, Made, Recorder, Recording, Wait, bytes_for};

/// Two components that wake each other; one is still running at the end.
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

/// Bytes as the public schema has them, so that a wrong field number is noticed.
#[test]
fn fields_have_their_public_numbers() {
    let bytes = trace::bytes(&recorded(), "play");
    // Trace.packet = 1: a tag of 0x0a, then the length; in it sequence id = 10 (0x50), interned
    // data = 12 (0x62), flags = 13 (0x68), descriptor = 60 (0xe2 0x03).
    assert_eq!(bytes[0], 0x0a);
    let has = |wanted: &[u8]| bytes.windows(wanted.len()).any(|bytes| bytes == wanted);
    assert!(has(b"\x50\x01\x62"));
    assert!(has(b"\x68\x01\xe2\x03"));
    // InternedData: categories = 1 and names = 2; of each iid = 1 and name = 2.
    assert!(has(b"\x0a\x0b\x08\x01\x12\x07running"));
    assert!(has(b"\x12\x0b\x08\x01\x12\x07running"));
    assert!(has(b"\x12\x0dsends on ball"));
    // TrackEvent: category = 3 (0x18), type = 9 (0x48), name = 10 (0x50), track = 11 (0x58), a name
    // in full = 23 (0xba 0x01), flows = 47 and 48, fixed. Events with numbers have 2 as a flag.
    assert!(has(b"\x18\x01\x48\x01\x50\x01\x58"));
    assert!(has(b"\x68\x02"));
    assert!(has(b"\xba\x01\x162 of 2 components move"));
    assert!(has(b"\xf9\x02\x01\0\0\0\0\0\0\0"));
    assert!(has(b"\x81\x03\x01\0\0\0\0\0\0\0"));
    // TrackDescriptor.name = 2.
    assert!(has(b"\x12\x06Ping#1"));
}

#[test]
fn names_are_told_once_and_before_they_are_used() {
    let bytes = trace::bytes(&recorded(), "play");
    // As it is in the file.
    let trace = trace::read_as_it_is(&bytes).expect("it is a trace");
    let (mut categories, mut names) = (HashMap::new(), HashMap::new());
    let mut numbered = 0;
    for (nth, packet) in trace.packet.iter().enumerate() {
        let flags = packet.sequence_flags();
        assert_eq!(flags & STATE_CLEARED != 0, nth == 0, "{packet:?}");
        if let Some(told) = &packet.interned_data {
            for one in &told.event_categories {
                assert!(categories.insert(one.iid(), one.name()).is_none());
            }
            for one in &told.event_names {
                assert!(names.insert(one.iid(), one.name()).is_none());
            }
        }
        let Some(event) = &packet.track_event else {
            continue;
        };
        assert!(event.categories.is_empty(), "{event:?}");
        assert!(
            event
                .category_iids
                .iter()
                .all(|iid| categories.contains_key(iid))
        );
        if let Some(name) = event.name_iid {
            assert!(names.contains_key(&name), "{event:?}");
            assert_ne!(flags & NEEDS_STATE, 0, "{packet:?}");
            numbered += 1;
        }
        let is_named = event.name_iid.is_some() || event.name.is_some();
        assert_eq!(is_named, event.r#type() != TYPE_SLICE_END, "{event:?}");
    }
    assert!(numbered > names.len(), "{names:?}");
    let different: HashSet<&str> = names.values().copied().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    // A reader finds names.
    let read = written();
    let events = || {
        read.packet
            .iter()
            .filter_map(|packet| packet.track_event.as_ref())
    };
    assert!(events().all(|event| event.name_iid.is_none() && event.category_iids.is_empty()));
    assert!(
        events().any(|event| event.name() == "sends on ball" && event.categories == ["waiting"])
    );
}
