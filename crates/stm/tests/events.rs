//! The events that a build with traces has.

#![cfg(feature = "trace-reduced")]

use hearth_stm::trace::{Event, Reason};
use hearth_stm::{Algorithm, Lsa, Norec, Stm, Var, abort, take_events};

fn events_come_in_order<A: Algorithm>() {
    let stm = Stm::<A>::with_algorithm();
    let var = Var::new(3u64);
    let address = std::ptr::from_ref(&var).addr();
    take_events::<A>();
    stm.atomically(|tx| tx.update(&var, |value| value + 1));
    let _ = stm.try_atomically(|tx| {
        tx.read(&var)?;
        abort::<(), _>(())
    });
    let is_access = |event: &Event| matches!(event, Event::Read { .. } | Event::Write { .. });
    let (accesses, ends): (Vec<_>, Vec<_>) = take_events::<A>().into_iter().partition(is_access);
    let read = Event::Read { address };
    let write = Event::Write { address, value: 4 };
    if cfg!(feature = "trace-full") {
        assert_eq!(accesses, [read, write, read]);
    } else {
        assert_eq!(accesses, []);
    }
    let [
        Event::Start {
            descriptor,
            counter: 0,
        },
        commit,
        start,
        Event::Abort { aborted, .. },
    ] = ends[..]
    else {
        panic!("{ends:?}");
    };
    let counter = 8;
    assert_eq!(
        commit,
        Event::Commit {
            descriptor,
            counter
        }
    );
    assert_eq!(
        start,
        Event::Start {
            descriptor,
            counter
        }
    );
    assert_eq!(aborted.reason, Reason::User);
}

#[test]
fn events_come_in_order_under_lsa() {
    events_come_in_order::<Lsa>();
}

#[test]
fn events_come_in_order_under_norec() {
    events_come_in_order::<Norec>();
}
