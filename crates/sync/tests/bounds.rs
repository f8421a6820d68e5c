//! Types that may be sent to other threads. Those that may not are in `src/bounds.rs`.

use std::cell::Cell;

use hearth_sync::lock::{Cohort, Groups, Lock, LockPlace, Mcs, Mutex, Ticket};
use hearth_sync::{Administrator, Answer, Builder, Owned, Reply, Sharded, Workers};

fn shared<T: Send + Sync>() {}
fn moved<T: Send + Unpin>() {}

/// Only one thread at a time uses the data, so the data need only be `Send`; likewise answers.
#[test]
fn handles_of_what_may_move_may_be_shared() {
    shared::<Owned<Cell<u8>>>();
    shared::<Sharded<Cell<u8>>>();
    shared::<Administrator<Cell<u8>>>();
    shared::<Reply<Cell<u8>>>();
    shared::<Answer<Cell<u8>>>();
    moved::<Answer<Cell<u8>>>();
    shared::<Builder<Cell<u8>>>();
    shared::<Workers>();
    shared::<(Mutex, Ticket, Mcs, Cohort, Groups, LockPlace)>();
    fn every_lock<L: Lock>() {
        shared::<L>();
    }
    every_lock::<Mcs>();
}
