//! Recordings, written and read back.

use std::fs::File;

use hearth_sys::shared::memory_file;
use hearth_watch::{
    COMPONENTS_MAX, Carrying, Ending, Happening, Made, Recorder, Recording, State, Unfit, Wait,
    bytes_for, figures,
};

/// Events that fit into the smallest window: 16 chunks of 254.
const FIT: u64 = 16 * 254;

fn begin() -> (File, Recorder) {
    let file = memory_file("test", bytes_for(0)).expect("there is memory");
    let recorder = Recorder::begin(&file, Carrying::Workers, 2).expect("it is fit");
    (file, recorder)
}

fn make(recorder: &Recorder, id: u64, ports: &[&str]) {
    let name = recorder.name("Ping", ports);
    let made = Made {
        name,
        number: id as u32,
        ports: ports.len() as u16,
        ..Made::default()
    };
    recorder.made(id, &made);
}

#[test]
fn times_go_where_they_were_spent() {
    let (file, recorder) = begin();
    make(&recorder, 1, &["a", "b"]);
    let at = recorder.now();
    recorder.ready(1, at, 0);
    recorder.runs(1, 1, at + 1_000);
    assert_eq!(recorder.waits(1, 9, Wait::Send(Some(1)), at + 4_000), 3_000);
    recorder.ready(1, at + 10_000, 7);
    // Called twice, it counts once.
    recorder.ready(1, at + 11_000, 7);
    recorder.runs(1, 0, at + 12_000);
    recorder.moved(1, 0, 1);
    recorder.worked(1, 3_000);
    assert_eq!(recorder.ended(1, at + 20_000), 8_000);
    // Long enough for the rates of both clocks to be known.
    std::thread::sleep(std::time::Duration::from_millis(20));
    recorder.ends(3);
    let recording = Recording::of_file(&file).expect("it can be read");
    assert_eq!(recording.ending, Ending::Code(3));
    let one = &recording.components[0];
    // In ticks, by their ratios: 1 + 2 ready, 3 + 8 running, 6 waiting.
    let unit = one.running as f64 / 11.0;
    let is_about = |value: u64, units: f64| (value as f64 / unit - units).abs() < 0.1;
    assert!(is_about(one.ready, 3.0), "{one:?}");
    assert!(is_about(one.waiting, 6.0), "{one:?}");
    assert!(is_about(one.ports[1].waited, 6.0), "{one:?}");
    assert!(is_about(recording.workers[0].busy, 3.0), "{recording:?}");
    assert_eq!((one.ports[0].waits, one.ports[1].waits), (0, 1));
    assert_eq!((one.runs, one.moves, one.heap), (2, 1, 9));
    assert_eq!((one.state, one.worker), (State::Ended, Some(0)));
    assert_eq!(
        (recording.workers[0].index, recording.workers[0].runs),
        (1, 1)
    );
    let ready = recording
        .events
        .iter()
        .filter(|event| matches!(event.what, Happening::Ready(_)));
    assert_eq!(ready.count(), 2);
    let slices = figures::slices(&recording);
    assert_eq!(slices.len(), 2);
    assert_eq!(slices[0].end, Some(Happening::Waits(Wait::Send(Some(1)))));
    assert_eq!(slices[1].worker, Some(0));
}

#[test]
fn the_window_keeps_the_latest_and_counts_the_rest() {
    let (file, recorder) = begin();
    make(&recorder, 1, &[]);
    let at = recorder.now();
    let rounds = 10 * FIT;
    for round in 0..rounds {
        recorder.runs(1, 0, at + 2 * round);
        recorder.waits(1, 0, Wait::Unknown, at + 2 * round + 1);
    }
    let recording = Recording::of_file(&file).expect("it can be read");
    let kept = recording.events.len() as u64;
    assert!(kept > FIT - 254 && kept <= FIT, "{kept}");
    assert_eq!(kept + recording.events_lost, 2 * rounds + 1);
    assert!(matches!(
        recording.events.last().map(|event| event.what),
        Some(Happening::Waits(_))
    ));
    // The totals are complete.
    assert_eq!(recording.components[0].runs, rounds);
}

#[test]
fn many_threads_write_side_by_side() {
    let (file, recorder) = begin();
    for id in 1..=8 {
        make(&recorder, id, &[]);
    }
    let rounds = 2 * FIT;
    std::thread::scope(|scope| {
        for id in 1..=8 {
            let recorder = &recorder;
            scope.spawn(move || {
                for _ in 0..rounds {
                    recorder.runs(id, id as u16, recorder.now());
                    recorder.waits(id, 0, Wait::Select, recorder.now());
                }
            });
        }
    });
    let recording = Recording::of_file(&file).expect("it can be read");
    let all = 8 * (2 * rounds + 1);
    assert_eq!(recording.events.len() as u64 + recording.events_lost, all);
    assert!(recording.components.iter().all(|one| one.runs == rounds));
    // No thread wrote into another's chunk: each component's worker is its own.
    for event in &recording.events {
        if let Happening::Runs(worker) = event.what {
            assert_eq!(worker.map(u64::from), Some(event.id));
        }
    }
}

#[test]
fn channels_are_told_once() {
    let (file, recorder) = begin();
    for id in 1..=3 {
        make(&recorder, id, &["in", "out"]);
    }
    recorder.connected((1, 1), (2, 0));
    recorder.connected((2, 1), (3, 0));
    recorder.connected((3, 1), (2, 0));
    let mut at = recorder.now();
    for (id, wait) in [
        (1, Wait::Send(Some(1))),
        (2, Wait::Receive(Some(0))),
        (2, Wait::Receive(Some(0))),
    ] {
        recorder.runs(id, 0, at);
        recorder.waits(id, 0, wait, at + 1);
        recorder.ready(id, at + 2, 0);
        at += 10;
    }
    let recording = Recording::of_file(&file).expect("it can be read");
    let channels = figures::channels(&recording);
    let ends: Vec<_> = channels.iter().map(|channel| channel.ends).collect();
    assert_eq!(ends[0], [(1, 1), (2, 0)]);
    assert_eq!(channels[0].messages(), 3);
    assert_eq!(ends.len(), 3);
    assert_eq!(channels[1].messages() + channels[2].messages(), 0);
    assert_eq!(figures::end_name(&recording, (1, 1)), "Ping#1.out");
}

#[test]
fn values_are_estimated_by_those_that_were_looked_at() {
    let (file, recorder) = begin();
    for id in 1..=2 {
        make(&recorder, id, &["flat", "text", "unseen"]);
        recorder.port(id, 0, id == 2, Some(8));
        recorder.port(id, 1, id == 2, None);
    }
    for port in 0..3 {
        recorder.connected((1, port), (2, port));
    }
    // Fixed sizes need no samples, and of the others a few are enough until it is time again.
    assert!(!recorder.wants_size(1, 0, true) && recorder.wants_size(1, 1, false));
    // The one end has seen a value of 100 bytes, the other two of 40 bytes in the mean.
    recorder.sampled(1, 1, 9, Some(100));
    recorder.sampled(2, 1, 9, Some(30));
    recorder.sampled(2, 1, 9, Some(50));
    let at = recorder.now();
    for port in [0, 1, 2] {
        for nth in 0..10 {
            recorder.runs(2, 0, at + 10 * nth);
            recorder.waits(2, 0, Wait::Receive(Some(port)), at + 10 * nth + 1);
            recorder.ready(2, at + 10 * nth + 2, 1);
        }
    }
    let recording = Recording::of_file(&file).expect("it can be read");
    let mut channels = figures::channels(&recording);
    channels.sort_by_key(|channel| channel.ends[0].1);
    // The sender comes first; for the last one the sender is unknown.
    assert_eq!(channels[1].ends, [(2, 1), (1, 1)]);
    assert_eq!(channels[2].ends, [(1, 2), (2, 2)]);
    assert_eq!(channels[0].value, figures::ValueBytes::Each(8));
    assert_eq!(channels[0].bytes(), Some(80.0));
    assert_eq!(channels[1].value, figures::ValueBytes::Mean(60.0, 3));
    assert_eq!(channels[1].bytes(), Some(600.0));
    assert_eq!(channels[2].bytes(), None);
}

#[test]
fn messages_of_selects_are_estimated() {
    let (file, recorder) = begin();
    for id in 1..=2 {
        make(&recorder, id, &["a"]);
        recorder.port(id, 0, id == 1, Some(4));
    }
    recorder.connected((1, 0), (2, 0));
    let at = recorder.now();
    for (nth, wait) in (0..).zip([Wait::Receive(Some(0)), Wait::Select, Wait::Select]) {
        recorder.runs(2, 0, at + 10 * nth);
        recorder.waits(2, 0, wait, at + 10 * nth + 1);
        recorder.ready(2, at + 10 * nth + 2, 1);
        // An event that is counted anyway adds nothing.
        if nth != 1 {
            recorder.sampled(2, 0, 2, Some(4));
        }
    }
    let recording = Recording::of_file(&file).expect("it can be read");
    let channel = &figures::channels(&recording)[0];
    assert_eq!((channel.waits, channel.selected), ([0, 1], 2));
    assert_eq!(channel.messages(), 3);
}

#[test]
fn heaps_have_what_they_had_last_and_at_most() {
    let (file, recorder) = begin();
    for id in 1..=3 {
        make(&recorder, id, &[]);
        recorder.heap(id, 500);
        recorder.heap(id, 100);
        recorder.waits(id, id as u32, Wait::Unknown, recorder.now());
    }
    recorder.ended(3, recorder.now());
    recorder.heaps(|number| (number != 2).then_some(u64::from(number) * 1000));
    recorder.shared_heap(0);
    let recording = Recording::of_file(&file).expect("it can be read");
    let heaps: Vec<_> = recording
        .components
        .iter()
        .map(|one| (one.heap_last, one.heap_bytes))
        .collect();
    // The second has no heap any more, and the third has ended: its number may be another's.
    assert_eq!(heaps, [(1000, 1000), (100, 500), (100, 500)]);
    assert_eq!(recording.heap_shared, Some(0));
}

#[test]
fn moves_are_kept_however_many_events_follow() {
    let (file, recorder) = begin();
    make(&recorder, 1, &[]);
    recorder.moved(1, 0, 3);
    // The first core of a thread is not a move.
    for core in [5, 5, 6] {
        recorder.on_core(1, core);
        recorder.worker_on_core(1, core + 4);
    }
    let at = recorder.now();
    for round in 0..10 * FIT {
        recorder.runs(1, 0, at + 2 * round);
        recorder.waits(1, 0, Wait::Unknown, at + 2 * round + 1);
    }
    recorder.worked(1, 1);
    let recording = Recording::of_file(&file).expect("it can be read");
    let moves: Vec<_> = recording
        .moves
        .iter()
        .map(|event| (event.id, event.what))
        .collect();
    let expected = [
        (1, Happening::Moved(0, 3)),
        (1, Happening::ThreadMoved(5, 6)),
        (1, Happening::WorkerMoved(9, 10)),
    ];
    assert_eq!(moves, expected);
    assert_eq!(recording.components[0].moves, 2);
    let worker = recording.workers[0];
    assert_eq!((worker.seen_on, worker.moves), (Some(10), 1));
}

#[test]
fn the_latest_moves_and_remarks_are_kept_and_the_others_counted() {
    let (file, recorder) = begin();
    make(&recorder, 1, &[]);
    for nth in 0..5000_u16 {
        recorder.moved(1, 0, nth % 100);
    }
    for nth in 0..300 {
        recorder.remark(&format!("remark {nth}"));
    }
    // Not in the middle of a character.
    recorder.remark(&"é".repeat(1000));
    let recording = Recording::totals_of_file(&file).expect("it can be read");
    assert_eq!(recording.moves.len() as u64 + recording.moves_left, 5000);
    assert_eq!(recording.moves.len(), 4096);
    assert_eq!(recording.remarks.len(), 256);
    assert_eq!(recording.remarks_left, 45);
    assert_eq!(recording.remarks[0].text, "remark 45");
    assert_eq!(
        recording.remark(299).map(|one| one.text.as_str()),
        Some("remark 299")
    );
    assert_eq!(recording.remark(44), None);
    let long = &recording.remarks[255].text;
    assert!(
        long.chars().all(|letter| letter == 'é') && long.len() > 400,
        "{long}"
    );
}

#[test]
fn a_component_ran_mostly_where_it_had_most_of_its_time() {
    let (file, recorder) = begin();
    make(&recorder, 1, &[]);
    let mut at = recorder.now();
    for (worker, ticks) in [(4, 10), (0, 30), (4, 50), (1, 20), (4, 15)] {
        recorder.runs(1, worker, at);
        at += ticks;
        recorder.waits(1, 0, Wait::Unknown, at);
    }
    let recording = Recording::of_file(&file).expect("it can be read");
    assert_eq!(recording.components[0].mostly, Some(4));
}

#[test]
fn those_beyond_the_last_are_counted() {
    let (file, recorder) = begin();
    let last = COMPONENTS_MAX as u64 + 5;
    make(&recorder, 1, &[]);
    make(&recorder, last, &["a"]);
    recorder.ready(last, recorder.now(), 1);
    recorder.runs(last, 0, recorder.now());
    recorder.ended(last, recorder.now());
    let recording = Recording::of_file(&file).expect("it can be read");
    assert_eq!(recording.components.len(), 1);
    assert_eq!(recording.components_left, 5);
    assert_eq!(
        recording
            .events
            .iter()
            .filter(|event| event.id == last)
            .count(),
        4
    );
}

#[test]
fn what_is_none_is_refused() {
    let short = memory_file("short", 100).expect("there is memory");
    assert!(Recorder::begin(&short, Carrying::Threads, 1).is_err());
    assert_eq!(Recording::of_file(&short), Err(Unfit::Absent));
    let empty = memory_file("empty", bytes_for(0)).expect("there is memory");
    assert_eq!(Recording::of_file(&empty), Err(Unfit::Absent));
}
