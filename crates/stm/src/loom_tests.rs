//! The commit protocols of both algorithms under the model checker, and faults planted in them
//! that it must find.
//!
//! A model has two threads, two variables with a lock each, and bodies of at most two
//! reads and two writes. Held locks are looked at once. Models cover the clock, the locks, the
//! sequence number, the gate and the futexes with the memory orderings as written; they do not
//! cover stripes of several words, long logs, slices, and the structures. Nor do they cover three
//! threads: while one commits, the two others could wait for it by turns, for ever, as the checker
//! knows no fair scheduler.

use std::sync::Arc;

use crate::algorithm::Algorithm;
use crate::fault::{Fault, Planted};
use crate::lsa::Lsa;
use crate::norec::Norec;
use crate::stm::Stm;
use crate::var::Var;

/// The smallest number that shows each planted fault, and one more.
const PREEMPTIONS: usize = 3;

struct Shared<A: Algorithm> {
    stm: Stm<A>,
    x: Var<u32>,
    y: Var<u32>,
}

type Body<A> = fn(&Shared<A>);

/// Runs each body in a thread of its own, and `last` after all of them.
fn check<A: Algorithm, const N: usize>(
    fault: Option<Fault>,
    bodies: [Body<A>; N],
    last: Body<A>,
    failures_max: u32,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(move || {
        let shared = Arc::new(Shared {
            stm: Stm::<A>::planted(Planted { fault }).alone_after(failures_max),
            x: Var::numbered(0, 0),
            y: Var::numbered(0, 1),
        });
        let others: Vec<_> = bodies[1..]
            .iter()
            .map(|&body| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || body(&shared))
            })
            .collect();
        bodies[0](&shared);
        for other in others {
            other.join().unwrap();
        }
        last(&shared);
    });
}

/// Failures before a transaction runs alone, in models in which none should.
const NEVER: u32 = u32::MAX;

fn write_both<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        tx.write(&it.x, 1)?;
        tx.write(&it.y, 1)
    });
}

fn see_both_or_none<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        let x = tx.read(&it.x)?;
        let y = tx.read(&it.y)?;
        // In the body: what an attempt sees counts even if it is undone.
        assert_eq!(x, y, "the attempt sees half of a transaction");
        Ok(())
    });
}

fn both_are_written<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        assert_eq!((tx.read(&it.x)?, tx.read(&it.y)?), (1, 1));
        Ok(())
    });
}

fn snapshots<A: Algorithm>(fault: Option<Fault>) {
    check::<A, 2>(
        fault,
        [write_both, see_both_or_none],
        both_are_written,
        NEVER,
    );
}

fn add_to_x<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| tx.update(&it.x, |x| x + 1));
}

fn x_is_two<A: Algorithm>(it: &Shared<A>) {
    assert_eq!(it.stm.atomically(|tx| tx.read(&it.x)), 2, "one is lost");
}

fn increments<A: Algorithm>(fault: Option<Fault>) {
    check::<A, 2>(fault, [add_to_x, add_to_x], x_is_two, NEVER);
}

/// Each writes one variable if the other is zero: so not both are written.
fn write_x_unless_y<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        if tx.read(&it.y)? == 0 {
            tx.write(&it.x, 1)?;
        }
        Ok(())
    });
}

fn write_y_unless_x<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        if tx.read(&it.x)? == 0 {
            tx.write(&it.y, 1)?;
        }
        Ok(())
    });
}

fn one_is_written<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        assert_eq!(tx.read(&it.x)? + tx.read(&it.y)?, 1, "both or none");
        Ok(())
    });
}

fn skews<A: Algorithm>(fault: Option<Fault>) {
    let bodies: [Body<A>; 2] = [write_x_unless_y, write_y_unless_x];
    check(fault, bodies, one_is_written, NEVER);
}

/// Writes and gives up: nobody sees it.
fn write_and_give_up<A: Algorithm>(it: &Shared<A>) {
    let result = it.stm.try_atomically(|tx| {
        tx.write(&it.x, 7)?;
        crate::abort::<(), _>(())
    });
    assert_eq!(result, Err(()));
}

fn see_no_seven<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        assert_ne!(tx.read(&it.x)?, 7, "the value was undone");
        Ok(())
    });
}

fn undone<A: Algorithm>(fault: Option<Fault>) {
    check::<A, 2>(
        fault,
        [write_and_give_up, see_no_seven],
        see_no_seven,
        NEVER,
    );
}

fn undone_beside_a_writer<A: Algorithm>(fault: Option<Fault>) {
    let last: Body<A> = |it| assert_eq!(it.stm.atomically(|tx| tx.read(&it.x)), 1);
    check::<A, 2>(fault, [write_and_give_up, add_to_x], last, NEVER);
}

/// A lost wake-up is a deadlock, which the checker reports.
fn wait_for_x<A: Algorithm>(it: &Shared<A>) {
    it.stm.atomically(|tx| {
        if tx.read(&it.x)? == 0 {
            tx.retry()
        } else {
            Ok(())
        }
    });
}

fn nothing<A: Algorithm>(_: &Shared<A>) {}

fn sleeps<A: Algorithm>(fault: Option<Fault>) {
    check::<A, 2>(fault, [add_to_x, wait_for_x], nothing, NEVER);
}

/// After one failure a transaction runs alone.
fn alone<A: Algorithm>(fault: Option<Fault>) {
    check::<A, 2>(fault, [add_to_x, add_to_x], x_is_two, 1);
}

macro_rules! models {
    ($($name:ident: $model:ident;)*) => { $(
        mod $name {
            use super::*;

            #[test]
            fn loom_lsa() {
                $model::<Lsa>(None);
            }

            #[test]
            fn loom_norec() {
                $model::<Norec>(None);
            }
        }
    )* };
}
models! {
    an_attempt_sees_all_or_nothing: snapshots;
    no_increment_is_lost: increments;
    skewed_writes_exclude_each_other: skews;
    undone_writes_are_not_seen: undone;
    undone_writes_disturb_no_writer: undone_beside_a_writer;
    a_sleeper_is_woken: sleeps;
    a_transaction_runs_alone: alone;
}

macro_rules! faults {
    ($($name:ident: $model:ident::<$algorithm:ident>($fault:ident), $says:literal;)*) => { $(
        #[test]
        #[should_panic(expected = $says)]
        fn $name() {
            $model::<$algorithm>(Some(Fault::$fault));
        }
    )* };
}
faults! {
    loom_finds_an_unchecked_extension_of_lsa: snapshots::<Lsa>(UncheckedExtension), "half";
    loom_finds_an_unchecked_commit_of_lsa: skews::<Lsa>(UncheckedCommit), "both or none";
    loom_finds_an_early_release_of_lsa: undone::<Lsa>(EarlyRelease), "undone";
    loom_finds_a_stopped_clock_of_lsa: snapshots::<Lsa>(StoppedClock), "half";
    loom_finds_a_missing_wake_of_lsa: sleeps::<Lsa>(NoWake), "deadlock";
    loom_finds_an_unchecked_extension_of_norec: snapshots::<Norec>(UncheckedExtension), "half";
    loom_finds_an_unchecked_commit_of_norec: increments::<Norec>(UncheckedCommit), "lost";
    loom_finds_an_early_release_of_norec: snapshots::<Norec>(EarlyRelease), "half";
    loom_finds_a_stopped_clock_of_norec: snapshots::<Norec>(StoppedClock), "half";
    loom_finds_a_missing_wake_of_norec: sleeps::<Norec>(NoWake), "deadlock";
}
