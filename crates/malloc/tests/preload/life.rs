//! Start, threads, their ends, forks, signals and limits.

use std::process::Command;

use crate::support::{Profile, built, command, finish, library, passes};

/// The number of children where the program does not set one; `HEARTH_TEST_CHILDREN` raises it.
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
    forks_amid_churn_do_not_hang = "fork-amid-churn";
    forks_amid_churn_without_handlers_do_not_hang = "bare-fork-amid-churn";
    raw_forks_amid_churn_do_not_hang = "raw-fork-amid-churn";
    children_have_children = "fork-in-a-row";
    short_threads_leave_nothing = "thread-churn";
    crowds_of_threads_leave_nothing = "thread-crowds";
    destructors_may_allocate = "thread-ends";
    frees_after_destructors_lose_nothing = "late-frees";
    consumers_give_back_to_producers = "handed-over";
    crash_handlers_may_allocate = "signal-amid";
    interruptions_are_no_refusals = "interrupted";
    refusals_do_no_harm_for_later = "limit-lowered";
    memory_may_be_locked = "locked";
}

#[test]
fn it_may_be_opened_and_closed() {
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
fn limited(case: &str, kind: &str, megabytes: u32) -> Command {
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
fn a_limit_of_addresses_leaves_half_to_others() {
    for megabytes in [100, 150, 260, 500] {
        passes(&mut limited("limited", "v", megabytes));
        passes(&mut limited("limited-threads", "v", megabytes));
    }
}

#[test]
fn what_the_program_maps_among_the_arenas_stays_its_own() {
    passes(&mut limited("limited-neighbour", "v", 600));
}

#[test]
fn most_of_a_limit_of_addresses_is_had_in_small_blocks() {
    for megabytes in [200, 976] {
        passes(&mut limited("limited-small", "v", megabytes));
    }
}

#[test]
fn a_limit_of_data_is_used() {
    for megabytes in [64, 150, 400] {
        passes(&mut limited("limited", "d", megabytes));
    }
}

#[test]
fn without_memory_it_refuses() {
    // Too little even for a heap. The program may end as it likes, but not by a signal or by
    // hanging.
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
