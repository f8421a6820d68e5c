//! The start of a process, threads and their ends, forks, signals and limits.

use std::process::Command;

use crate::support::{Profile, built, command, finish, library, passes};

/// A case of `life.c`. `HEARTH_TEST_CHILDREN` replaces the usual number of children.
fn life(case: &str, with: Option<Profile>) -> Command {
    let mut command = command("life.c", case, with);
    if let Some(children) = std::env::var_os("HEARTH_TEST_CHILDREN") {
        command.env("CHILDREN", children);
    }
    command
}

macro_rules! cases {
    ($($name:ident = $case:literal;)*) => { $(
        #[test]
        fn $name() {
            passes(&mut life($case, Some(Profile::Release)));
            passes(&mut life($case, Some(Profile::Development)));
        }
    )* };
}

cases! {
    forks_during_churn_do_not_hang = "fork-during-churn";
    forks_during_churn_without_handlers_do_not_hang = "bare-fork-during-churn";
    raw_forks_during_churn_do_not_hang = "raw-fork-during-churn";
    children_can_fork = "fork-in-a-row";
    short_threads_leak_nothing = "thread-churn";
    crowds_of_threads_leak_nothing = "thread-crowds";
    destructors_may_allocate = "thread-ends";
    frees_after_destructors_leak_nothing = "late-frees";
    consumers_return_blocks_to_producers = "handed-over";
    crash_handlers_may_allocate = "signal-in-malloc";
    interrupted_calls_are_retried = "interrupted";
    a_refusal_does_no_later_harm = "limit-lowered";
    memory_may_be_locked = "locked";
}

#[test]
fn the_library_may_be_opened_and_closed() {
    for profile in [Profile::Release, Profile::Development] {
        passes(life("opened", None).env("LIBRARY", library(profile)));
    }
}

#[test]
fn constructors_may_allocate() {
    for profile in [Profile::Release, Profile::Development] {
        let both = format!(
            "{}:{}",
            library(profile).display(),
            built("early.c").display()
        );
        passes(life("fork-in-a-row", None).env("LD_PRELOAD", &both));
        let swapped = both.split(':').rev().collect::<Vec<_>>().join(":");
        passes(life("fork-in-a-row", None).env("LD_PRELOAD", swapped));
    }
}

/// A case in a process with a limit in MiB, set by the shell.
pub(crate) fn limited(case: &str, kind: &str, megabytes: u32) -> Command {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -{kind} {} && exec \"$@\"", megabytes << 10))
        .arg("sh")
        .arg(built("life.c"))
        .arg(case)
        .env("LIMIT_MB", megabytes.to_string())
        .env("LD_PRELOAD", library(Profile::Release));
    command
}

#[test]
fn half_of_an_address_limit_is_left_to_others() {
    for megabytes in [100, 150, 260, 500] {
        passes(&mut limited("limited", "v", megabytes));
        passes(&mut limited("limited-threads", "v", megabytes));
    }
}

#[test]
fn a_mapping_among_the_arenas_stays_the_programs() {
    passes(&mut limited("limited-neighbour", "v", 600));
}

#[test]
fn small_blocks_can_use_most_of_an_address_limit() {
    for megabytes in [200, 976] {
        passes(&mut limited("limited-small", "v", megabytes));
    }
}

#[test]
fn a_data_limit_can_be_used() {
    for megabytes in [64, 150, 400] {
        passes(&mut limited("limited", "d", megabytes));
    }
}

#[test]
fn allocation_fails_cleanly_without_memory() {
    // Too little even for a heap. The program may fail, but not by a signal or by hanging.
    for kilobytes in [4_000, 5_000, 6_000, 8_000, 12_000, 20_000, 30_000] {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -v {kilobytes} && exec \"$@\""))
            .arg("sh")
            .arg(built("conformance.c"))
            .arg("alignment")
            .env("LD_PRELOAD", library(Profile::Release));
        let ran = finish(&mut command);
        let has_ended = matches!(ran.end, hearth_testing::toolchain::End::Exit(_));
        assert!(has_ended, "{kilobytes}: {ran:?}");
    }
}
