//! Who said where a component is.

use std::sync::atomic::Ordering;

use crate::seats::seat::{Seat, runs};

/// A component was placed by a policy: nobody takes it elsewhere unasked.
pub(crate) fn keep_placed(seat: &Seat) {
    seat.runs.store(runs::STAYS, Ordering::Relaxed);
}

/// A component was placed by name: nothing takes it elsewhere.
pub(crate) fn keep_named(seat: &Seat) {
    seat.runs.store(runs::NAMED, Ordering::Relaxed);
}

/// A component was placed by a plan: nobody shares it.
pub(crate) fn keep_planned(seat: &Seat) {
    seat.runs.store(runs::PLANNED, Ordering::Relaxed);
}

/// Was it placed by name, or by a policy?
pub(crate) fn is_kept_placed(seat: &Seat) -> bool {
    matches!(seat.runs.load(Ordering::Relaxed), runs::STAYS | runs::NAMED)
}
