//! A program that loses CPUs while it runs: its components leave them, and listeners are told.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hearth::place::{PlacementChange, Plan};
use hearth::{Hearth, Placement, block_on, channel};
use hearth_sys::affinity;

/// The longest that a busy machine may take to notice.
const LONG: Duration = Duration::from_secs(60);

/// Restricts all threads, as `taskset --all-tasks` does.
fn allow_all_threads(cpus: &[usize]) {
    for entry in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = entry.file_name();
        let thread = name.to_str().and_then(|number| number.parse().ok());
        // A thread may have ended.
        let _ = affinity::allow_thread(thread.unwrap(), cpus);
    }
}

#[test]
fn components_leave_cpus_that_may_not_be_used() {
    let cpus = affinity::allowed();
    let [first, .., last] = cpus[..] else {
        // There is no CPU to lose.
        return;
    };
    let plan = Plan::new()
        .put("Asks", last as u32)
        .put("Answers", last as u32);
    let hearth = Hearth::builder()
        .workers(cpus.len())
        .placement(Placement::Talk)
        .plan(plan)
        .start()
        .unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&events);
    hearth.on_placement(move |event| kept.lock().unwrap().push(event.clone()));
    let (ping, pinged) = channel::<u64>();
    let (pong, ponged) = channel::<u64>();
    let answers = hearth.component("Answers").spawn(async move {
        while let Ok(number) = pinged.recv().await {
            if pong.send(number + 1).await.is_err() {
                break;
            }
        }
    });
    let asks = hearth.component("Asks").spawn(async move {
        let mut number = 0;
        while ping.send(number).await.is_ok() {
            number = ponged.recv().await.unwrap();
        }
    });
    let is_everybody_on = |cpu: usize| {
        let places = hearth.placements();
        places.len() == 2 && places.iter().all(|place| place.cpu == Some(cpu))
    };
    assert!(is_everybody_on(last));
    allow_all_threads(&[first]);
    let start = Instant::now();
    while !is_everybody_on(first) {
        assert!(
            start.elapsed() < LONG,
            "{:?}, {:?}",
            hearth.placements(),
            events.lock().unwrap()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    allow_all_threads(&cpus);
    asks.stop();
    answers.stop();
    let _ = (block_on(asks), block_on(answers));
    let events = events.lock().unwrap();
    // If the placer first looked after the loss, only the moves are told.
    let is_told = events.iter().any(|event| match &event.what {
        PlacementChange::Cpus { lost, .. } => lost.contains(&last),
        PlacementChange::Moves { moves, .. } => moves.iter().any(|one| one.from.is_none()),
        _ => false,
    });
    assert!(is_told, "{events:?}");
}
