//! Threads that measure, grow, shrink and free each other's blocks while the owner allocates and
//! frees the neighbours: one instruction at a time, by `steps.c`, and at full speed, by `duel.c`.

use std::process::Command;
use std::time::Duration;

use crate::support::{Profile, command, is_deep, passes, passes_within};

/// A case in a hardening mode. Short runs cover neighbouring interleavings of a few sizes; deep
/// runs cover more of them, and sizes of all levels.
fn steps(case: &str, mode: &str, with: Option<Profile>) -> Command {
    let mut command = command("steps.c", case, with);
    command.env("HEARTH_HARDEN", mode);
    if is_deep() {
        command.env("SCENES", "100").env("SCHEDULES", "1000");
    }
    command
}

fn all_modes_if_deep(case: &str, modes: &[&str]) {
    let modes = if is_deep() {
        &["", "check", "zero"]
    } else {
        modes
    };
    for mode in modes {
        passes(&mut steps(case, mode, Some(Profile::Release)));
    }
}

#[test]
fn sizes_of_other_threads_blocks_are_stable() {
    all_modes_if_deep("sizes", &["", "check"]);
}

#[test]
fn the_test_passes_with_the_system_malloc() {
    passes(&mut steps("sizes", "", None));
}

#[test]
fn other_threads_blocks_grow_where_there_is_room() {
    all_modes_if_deep("grows", &[""]);
}

#[test]
fn other_threads_blocks_shrink() {
    if is_deep() {
        all_modes_if_deep("shrinks", &[]);
    }
}

#[test]
fn freeing_wipes_the_block_and_nothing_else() {
    all_modes_if_deep("releases", &["zero"]);
}

/// Deep runs take some minutes, and three times as long beside other steps. This is far more.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Short runs find only gross errors.
fn duel(case: &str, deep: &str) {
    for with in [None, Some(Profile::Release), Some(Profile::Development)] {
        let mut command = command("duel.c", case, with);
        if is_deep() && with == Some(Profile::Release) {
            command.env("COUNT", deep);
        }
        passes_within(&mut command, PATIENCE);
    }
}

#[test]
fn sizes_are_stable_at_full_speed() {
    duel("ask", "10000000");
}

#[test]
fn blocks_grow_at_full_speed() {
    duel("grow", "2000000");
}
