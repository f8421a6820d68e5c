//! The origin of a component's placement.

use std::sync::atomic::Ordering;

use crate::seats::seat::{Seat, runs};

/// Marks a component as placed by a policy: others do not move it unasked.
pub(crate) fn keep_placed(seat: &Seat) {
    seat.runs.store(runs::STAYS, Ordering::Relaxed);
}

/// Marks a component as placed by name: nothing moves it.
pub(crate) fn keep_named(seat: &Seat) {
    seat.runs.store(runs::NAMED, Ordering::Relaxed);
}

/// Marks a component as placed by a plan: it is not stolen.
pub(crate) fn keep_planned(seat: &Seat) {
    seat.runs.store(runs::PLANNED, Ordering::Relaxed);
}

/// Whether it was placed by name or by a policy.
pub(crate) fn is_kept_placed(seat: &Seat) -> bool {
    matches!(seat.runs.load(Ordering::Relaxed), runs::STAYS | runs::NAMED)
}
