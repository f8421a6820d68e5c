//! `Placement::Steal` gives idle workers some of the components that compute.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hearth::{Hearth, Placement, block_on};

/// The longest that a busy machine may take to share.
const LONG: Duration = Duration::from_secs(60);

/// Waits once, so that others run.
async fn give_way() {
    let mut has_waited = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut has_waited, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[test]
fn what_computes_is_shared() {
    let hearth = Hearth::builder()
        .workers(2)
        .placement(Placement::Steal)
        .start()
        .unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let all: Vec<_> = (0..8)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            hearth.component("Computes").spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    while start.elapsed() < Duration::from_millis(1) {
                        std::hint::spin_loop();
                    }
                    give_way().await;
                }
            })
        })
        .collect();
    let start = Instant::now();
    while hearth
        .placements()
        .iter()
        .all(|place| place.worker == Some(0))
    {
        assert!(start.elapsed() < LONG, "nobody got anything");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(hearth.placements().iter().any(|place| place.moves > 0));
    is_over.store(true, Ordering::Relaxed);
    for component in all {
        block_on(component).unwrap();
    }
}
