//! Cases for both carriers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hearth::place::{ComponentPlacement, MoveReason, PlacementChange, Plan};
use hearth::{Builder, Component, Hearth, Placement, block_on, channel};

/// The longest that a busy machine may take to see which components talk.
const LONG: Duration = Duration::from_secs(60);

/// Makes a pair that sends a number to and fro until it is told to end.
fn pair(hearth: &Hearth, index: usize, is_over: &Arc<AtomicBool>) -> [Component<()>; 2] {
    let (ping, pinged) = channel::<u64>();
    let (pong, ponged) = channel::<u64>();
    let is_over = Arc::clone(is_over);
    let asks = hearth.component(&format!("Asks{index}")).spawn(async move {
        let mut number = 0;
        while !is_over.load(Ordering::Relaxed) {
            ping.send(number).await.unwrap();
            number = ponged.recv().await.unwrap();
        }
    });
    let answers = hearth.component(&format!("Answers{index}"));
    let answers = answers.spawn(async move {
        while let Ok(number) = pinged.recv().await {
            if pong.send(number + 1).await.is_err() {
                break;
            }
        }
    });
    [asks, answers]
}

/// Starts two pairs apart and waits until both are together. `of` gives the place that a pair then
/// shares.
pub(crate) fn pairs_come_together(builder: Builder, of: fn(&ComponentPlacement) -> Option<usize>) {
    let allowed = hearth_sys::affinity::allowed();
    if allowed.len() < 2 {
        // With one CPU no pair is apart.
        return;
    }
    let [first, second] = [allowed[0] as u32, allowed[1] as u32];
    let plan = Plan::new()
        .put("Asks0", first)
        .put("Answers0", second)
        .put("Asks1", second)
        .put("Answers1", first);
    let hearth = builder
        .placement(Placement::Talk)
        .plan(plan)
        .start()
        .unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&events);
    hearth.on_placement(move |event| kept.lock().unwrap().push(event.clone()));
    let is_over = Arc::new(AtomicBool::new(false));
    let pairs: Vec<_> = (0..2).map(|index| pair(&hearth, index, &is_over)).collect();
    let start = Instant::now();
    loop {
        let places = hearth.placements();
        let place = |name: &str| {
            let of_name = places.iter().find(|place| place.component == name);
            of(of_name.unwrap_or_else(|| panic!("{name} runs: {places:?}")))
        };
        let together = (0..2).filter(|index| {
            let at = place(&format!("Asks{index}"));
            // A thread that has not started has no place.
            at.is_some() && at == place(&format!("Answers{index}"))
        });
        if together.count() == 2 {
            break;
        }
        assert!(
            start.elapsed() < LONG,
            "nobody came together: {places:?}, {:?}",
            events.lock().unwrap()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let moved: u32 = hearth.placements().iter().map(|place| place.moves).sum();
    assert!(moved >= 2, "one of each pair");
    is_over.store(true, Ordering::Relaxed);
    for [asks, answers] in pairs {
        block_on(asks).unwrap();
        block_on(answers).unwrap();
    }
    let events = events.lock().unwrap();
    let moves = events.iter().find_map(|event| match &event.what {
        PlacementChange::Moves { moves, .. } => Some(moves),
        _ => None,
    });
    let moves = moves.expect("it was told");
    let with = |name: &str| match name.strip_prefix("Asks") {
        Some(index) => format!("Answers{index}"),
        None => name.replace("Answers", "Asks"),
    };
    for one in moves {
        let MoveReason::With { peer, messages } = &one.why else {
            panic!("they talk: {one:?}");
        };
        assert_eq!(*peer, with(&one.component), "{one:?}");
        assert!(*messages > 0.0, "{one:?}");
    }
    assert_eq!(block_on(hearth.wait()), Ok(()));
}
