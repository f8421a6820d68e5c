//! Components move to their peers.

use std::sync::{Mutex, PoisonError};

use hearth::{Carrier, Hearth};

mod places;

/// Held by each test: they need the cores.
static CORES: Mutex<()> = Mutex::new(());

#[test]
fn pairs_that_talk_come_together_on_workers() {
    let _cores = CORES.lock().unwrap_or_else(PoisonError::into_inner);
    places::pairs_come_together(Hearth::builder().workers(2), |place| place.worker);
}

#[test]
fn pairs_that_talk_come_together_on_threads() {
    let _cores = CORES.lock().unwrap_or_else(PoisonError::into_inner);
    let builder = Hearth::builder().carrier(Carrier::Threads);
    places::pairs_come_together(builder, |place| place.cpu);
}
