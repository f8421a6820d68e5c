//! The events that tracers are called with, and what the recorder makes of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hearth_stm::trace::{Aborted, Reason, Tracer};
use hearth_stm::{Algorithm, Lsa, Norec, Stm, Traced, Var, abort, with_tracer};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Event {
    Start(usize, u64),
    Read(usize),
    Write(usize, u64),
    Commit(usize, u64),
    Abort(usize, Aborted),
}

/// Keeps a thread's events.
#[derive(Default)]
struct Keeper(Vec<Event>);

impl Tracer for Keeper {
    type Shared = ();

    fn start(&mut self, descriptor: usize, counter: u64) {
        self.0.push(Event::Start(descriptor, counter));
    }

    fn read(&mut self, address: usize) {
        self.0.push(Event::Read(address));
    }

    fn write(&mut self, address: usize, value: u64) {
        self.0.push(Event::Write(address, value));
    }

    fn commit(&mut self, descriptor: usize, counter: u64) {
        self.0.push(Event::Commit(descriptor, counter));
    }

    fn abort(&mut self, descriptor: usize, _: u64, aborted: Aborted) {
        self.0.push(Event::Abort(descriptor, aborted));
    }
}

fn events<A: Algorithm<Tracer = Keeper>>() -> Vec<Event> {
    with_tracer::<A, _>(|keeper| std::mem::take(&mut keeper.0))
}

fn events_come_in_order<A: Algorithm<Tracer = Keeper>>() {
    let stm = Stm::<A>::with_algorithm();
    let vars = [3, 4, 5].map(Var::<u64>::new);
    let address = |nth: usize| std::ptr::from_ref(&vars[nth]).addr();
    stm.atomically(|tx| tx.update(&vars[0], |value| value + 1));
    let _ = stm.try_atomically(|tx| {
        tx.fold(&vars, 0, |sum, one| sum + one)?;
        abort::<(), _>(())
    });
    let events = events::<A>();
    let Event::Start(descriptor, _) = events[0] else {
        panic!("{events:?}");
    };
    let aborted = Aborted {
        reason: Reason::User,
        site: 0,
        owner: 0,
    };
    let expected = [
        Event::Start(descriptor, 0),
        Event::Read(address(0)),
        Event::Write(address(0), 4),
        Event::Commit(descriptor, 8),
        Event::Start(descriptor, 8),
        Event::Read(address(0)),
        Event::Read(address(1)),
        Event::Read(address(2)),
        Event::Abort(descriptor, aborted),
    ];
    assert_eq!(events, expected);
}

#[test]
fn events_come_in_order_under_lsa() {
    events_come_in_order::<Traced<Lsa, Keeper>>();
}

#[test]
fn events_come_in_order_under_norec() {
    events_come_in_order::<Traced<Norec, Keeper>>();
}

/// A lock names its owner, although the tracer is in the descriptor, too.
#[test]
fn an_abort_names_the_owner() {
    type Memory = Traced<Lsa, Keeper>;
    let stm = Stm::<Memory>::with_algorithm().alone_after(1000);
    let var = Var::new(0_u64);
    let (locked, met) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| {
            let mut is_first = true;
            stm.atomically(|tx| {
                tx.write(&var, 1)?;
                if std::mem::take(&mut is_first) {
                    locked.wait();
                    met.wait();
                }
                Ok(())
            });
            events::<Memory>()
        });
        let victim = scope.spawn(|| {
            locked.wait();
            let mut is_first = true;
            let result = stm.try_atomically(|tx| {
                let value = tx.read(&var);
                if std::mem::take(&mut is_first) {
                    met.wait();
                }
                abort::<(), _>(value?)
            });
            assert_eq!(result, Err(1));
            events::<Memory>()
        });
        let owner = owner.join().expect("it ends");
        let victim = victim.join().expect("it ends");
        let Event::Start(descriptor, _) = owner[0] else {
            panic!("{owner:?}");
        };
        let Some(Event::Abort(_, aborted)) = victim.get(1) else {
            panic!("{victim:?}");
        };
        let site = std::ptr::from_ref(&var).addr();
        let expected = Aborted {
            reason: Reason::ReadLocked,
            site,
            owner: descriptor,
        };
        assert_eq!(*aborted, expected);
    });
}

/// Panics as the instance says, when a transaction begins.
#[derive(Default)]
struct Refuser;

impl Tracer for Refuser {
    type Shared = bool;

    fn open(&mut self, panics: &bool, _: usize) {
        assert!(!panics, "on purpose");
    }

    fn start(&mut self, _: usize, _: u64) {}
    fn read(&mut self, _: usize) {}
    fn write(&mut self, _: usize, _: u64) {}
    fn commit(&mut self, _: usize, _: u64) {}
    fn abort(&mut self, _: usize, _: u64, _: Aborted) {}
}

/// Foreign code that panics with a thread's descriptor leaves it to the thread.
#[test]
fn a_panic_keeps_no_descriptor() {
    type Memory = Traced<Lsa, Refuser>;
    let refusing = Stm::<Memory>::with_algorithm().traces(true);
    let begun = || refusing.atomically(|_| Ok(()));
    assert!(catch_unwind(AssertUnwindSafe(begun)).is_err());
    let asked = || with_tracer::<Memory, ()>(|_| panic!("on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
    let var = Var::new(0_u64);
    let stm = Stm::<Memory>::with_algorithm();
    assert_eq!(stm.atomically(|tx| tx.update(&var, |value| value + 1)), 1);
}

/// A thread alternates between memories with tracers of several types.
#[test]
fn descriptors_of_many_types_do_not_mix() {
    let one = Stm::<Traced<Lsa, Keeper>>::with_algorithm();
    let other = Stm::<Traced<Norec, Keeper>>::with_algorithm();
    let var = Var::new(0_u64);
    for _ in 0..3 {
        one.atomically(|tx| tx.write(&var, 1));
        other.atomically(|tx| tx.read(&var));
    }
    assert_eq!(events::<Traced<Lsa, Keeper>>().len(), 9);
    assert_eq!(events::<Traced<Norec, Keeper>>().len(), 9);
}
