//! A check of opacity that knows nothing of the algorithms: random programs on a few words, all
//! that their attempts have seen, and a graph that must have no circle.
//!
//! `HEARTH_STM_OPACITY` is the number of transactions to be checked for each algorithm; a million
//! and more in a release build.

mod graph;
mod history;

use crate::algorithm::Algorithm;
use crate::fault::{Fault, Planted};
use crate::lsa::Lsa;
use crate::norec::Norec;
use history::Program;

/// Transactions for each algorithm when nobody says otherwise.
const TRANSACTIONS: usize = 200_000;
/// Transactions of one program: its history stays in the caches.
const OF_A_PROGRAM: usize = 2_000;
/// Programs among which a planted fault must show.
const PROGRAMS_MAX: u64 = 300;

fn program(seed: u64) -> Program {
    let threads = 2 + (seed % 3) as usize;
    Program {
        seed,
        threads,
        transactions: OF_A_PROGRAM / threads,
        variables: [2, 3, 5, 9, 40][seed as usize % 5],
        failures_max: [2, 16, 1000][seed as usize % 3],
    }
}

/// The attempts of a program, or why its history is not opaque.
fn check<A: Algorithm>(seed: u64, fault: Option<Fault>) -> Result<(usize, usize), String> {
    let program = program(seed);
    let attempts = history::run::<A>(program, Planted { fault });
    let commits = attempts.iter().filter(|it| it.is_committed).count();
    graph::check(&attempts, program.variables)
        .map_err(|violation| format!("{program:?}: {violation}"))?;
    Ok((attempts.len(), commits))
}

fn is_opaque<A: Algorithm>() {
    let asked = std::env::var("HEARTH_STM_OPACITY").ok();
    let asked = asked.map(|count| count.parse().expect("HEARTH_STM_OPACITY is a number"));
    let mut left = asked.unwrap_or(TRANSACTIONS);
    let (mut attempts, mut commits) = (0, 0);
    for seed in 1.. {
        match check::<A>(seed, None) {
            Ok(counts) => {
                attempts += counts.0;
                commits += counts.1;
            }
            Err(violation) => panic!("{violation}"),
        }
        left = left.saturating_sub(OF_A_PROGRAM);
        if left == 0 {
            break;
        }
    }
    // Histories without conflicts would show nothing.
    assert!(
        attempts > commits + commits / 100,
        "{attempts} attempts, {commits} commits"
    );
}

#[test]
fn lsa_is_opaque() {
    is_opaque::<Lsa>();
}

#[test]
fn norec_is_opaque() {
    is_opaque::<Norec>();
}

fn finds<A: Algorithm>(fault: Fault) {
    let found = (1..=PROGRAMS_MAX).find_map(|seed| check::<A>(seed, Some(fault)).err());
    assert!(found.is_some(), "{fault:?} stays unnoticed");
}

#[test]
fn an_unchecked_extension_is_found() {
    finds::<Lsa>(Fault::UncheckedExtension);
    finds::<Norec>(Fault::UncheckedExtension);
}

#[test]
fn an_unchecked_commit_is_found() {
    finds::<Lsa>(Fault::UncheckedCommit);
    finds::<Norec>(Fault::UncheckedCommit);
}

#[test]
fn an_early_release_is_found() {
    finds::<Lsa>(Fault::EarlyRelease);
    finds::<Norec>(Fault::EarlyRelease);
}

#[test]
fn a_stopped_clock_is_found() {
    finds::<Lsa>(Fault::StoppedClock);
    finds::<Norec>(Fault::StoppedClock);
}
