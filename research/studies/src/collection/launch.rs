//! One run: a program is built with the collector off, and one full collection is timed.
//!
//! | figure | what |
//! |---|---|
//! | `seconds` | the collection |
//! | `mark_seconds`, `sweep_seconds` | its parts |
//! | `live`, `dead` | objects that stayed and went |
//! | `dead_processors` | processors that went |
//! | `others_cores` | CPUs that others kept busy meanwhile |

use std::sync::atomic::{AtomicBool, Ordering};

use hearth_sys::System;

use super::collector::collect;
use super::plan::Case;
use super::shapes::build;
use crate::program::{OTHERS_MIN, busy};
use crate::study::{Ended, OTHERS};

/// Makes a run of a case, the one of that number. All ways have the same structure in the same run.
#[must_use]
pub fn run(system: &dyn System, case: &Case, run: u32, cancel: &AtomicBool) -> Ended {
    let mut world = build(&case.plan(u64::from(run) + 1));
    // Relaxed: says only that it is to stop.
    if cancel.load(Ordering::Relaxed) {
        return Ended::Cancelled;
    }
    let before = busy(system);
    let collected = collect(&mut world, case.way);
    let used = busy(system) - before;
    let seconds = collected.mark_seconds + collected.sweep_seconds;
    let mut figures = vec![
        ("seconds", seconds),
        ("mark_seconds", collected.mark_seconds),
        ("sweep_seconds", collected.sweep_seconds),
        ("live", collected.live as f64),
        ("dead", collected.dead as f64),
        ("dead_processors", collected.dead_processors as f64),
    ];
    if seconds >= OTHERS_MIN {
        figures.push((OTHERS, (used / seconds - 1.0).max(0.0)));
    }
    let named = figures.into_iter();
    Ended::Well(
        named
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}
