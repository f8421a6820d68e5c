//! Refuses each call that the library makes, each time it makes it. `faults.c` describes the method
//! and the checks.
//!
//! `HEARTH_TEST_DEEP` tries five errors instead of one, the development build, and hardening.

use std::process::Command;

use hearth_testing::toolchain::End;

use crate::support::{Profile, built, finish, library, passes};

/// The errors to try, and the most refusals of one call.
#[derive(Clone, Copy)]
struct Reach {
    errors: u32,
    most: u32,
}

const ONE_ERROR: Reach = Reach {
    errors: 1,
    most: 10_000,
};
const ALL_ERRORS: Reach = Reach {
    errors: 5,
    most: 10_000,
};

fn is_deep() -> bool {
    std::env::var_os("HEARTH_TEST_DEEP").is_some()
}

fn refusing(machine: &str, reach: Reach, profile: Profile) -> Command {
    let mut command = Command::new(built("faults.c"));
    command
        .env_remove("LD_PRELOAD")
        .arg(library(profile))
        .arg(machine)
        .arg(reach.errors.to_string())
        .arg(reach.most.to_string());
    command
}

#[test]
fn refused_calls_do_no_harm() {
    passes(&mut refusing("plain", ONE_ERROR, Profile::Release));
    if is_deep() {
        passes(&mut refusing("plain", ALL_ERRORS, Profile::Release));
        passes(&mut refusing("plain", ALL_ERRORS, Profile::Development));
    }
}

/// Under a limit, arenas take their addresses as they are opened.
#[test]
fn refused_calls_under_an_address_limit_do_no_harm() {
    let few = Reach {
        most: 40,
        ..ONE_ERROR
    };
    let reach = if is_deep() { ALL_ERRORS } else { few };
    let inner = refusing("limited", reach, Profile::Release);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg("ulimit -v 3000000 && exec \"$@\"")
        .arg("sh")
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_remove("LD_PRELOAD");
    passes(&mut command);
}

/// All threads have a pending cancellation there; none may be cancelled.
#[test]
fn refused_calls_on_two_nodes_do_no_harm() {
    let few = Reach {
        most: 3,
        ..ONE_ERROR
    };
    let reach = if is_deep() { ALL_ERRORS } else { few };
    passes(&mut refusing("nodes", reach, Profile::Release));
}

#[test]
fn refused_calls_with_guard_pages_do_no_harm() {
    let few = Reach {
        most: 0,
        ..ONE_ERROR
    };
    let reach = if is_deep() { ONE_ERROR } else { few };
    for modes in ["guard", "guard=3,zero", "all"] {
        passes(refusing("plain", reach, Profile::Release).env("HEARTH_HARDEN", modes));
    }
}

/// A heap's number, taken while another heap's entry is refused, is not given out again.
#[test]
fn two_heaps_never_share_a_number() {
    passes(
        Command::new(built("faults.c"))
            .env_remove("LD_PRELOAD")
            .arg(library(Profile::Release))
            .arg("numbers"),
    );
}

/// A kernel without huge pages, names for mappings, and so on: `errno` is zero at `main`, and
/// `free` preserves it.
#[test]
fn errno_is_preserved_when_the_kernel_refuses() {
    for refused in ["madvise", "prctl", "munmap", "mremap", "membarrier"] {
        let mut command = Command::new(built("refused.c"));
        command
            .arg(refused)
            .arg(built("conformance.c"))
            .arg("kept-error-number")
            .env("PRELOAD", library(Profile::Release))
            .env_remove("LD_PRELOAD");
        let ran = finish(&mut command);
        assert_eq!(ran.end, End::Exit(0), "{refused}: {ran:?}");
    }
}
