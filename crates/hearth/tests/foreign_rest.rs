//! Wakers of futures that wait for the end of all components. The test needs a process of its own,
//! because it counts all components.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use hearth::error::Deadlock;
use hearth::future::Wait;
use hearth::{Hearth, block_on, channel};

type Deed = Box<dyn FnOnce() + Send>;

struct Strange {
    on_wake: Mutex<Option<Deed>>,
    on_drop: Mutex<Option<Deed>>,
}

impl Wake for Strange {
    fn wake(self: Arc<Self>) {
        let deed = self.on_wake.lock().unwrap().take();
        if let Some(deed) = deed {
            deed();
        }
    }
}

impl Drop for Strange {
    fn drop(&mut self) {
        if let Some(deed) = self.on_drop.get_mut().unwrap().take() {
            deed();
        }
    }
}

fn strange(on_wake: Option<Deed>, on_drop: Option<Deed>) -> Waker {
    let (on_wake, on_drop) = (Mutex::new(on_wake), Mutex::new(on_drop));
    Arc::new(Strange { on_wake, on_drop }).into()
}

fn poll(wait: &mut Wait, waker: &Waker) -> Poll<Result<(), Deadlock>> {
    Pin::new(wait).poll(&mut Context::from_waker(waker))
}

#[test]
fn all_who_wait_for_rest_are_told_whatever_their_wakers_do() {
    let hearth = Hearth::builder().workers(2).start().unwrap();
    let (out, into) = channel::<u32>();
    let component = hearth
        .component("Patient")
        .spawn(async move { into.recv().await });
    let (says, said) = mpsc::channel();
    let mut waits = Vec::new();
    for number in 0..4 {
        let says = says.clone();
        let mut wait = hearth.wait();
        let on_wake: Deed = Box::new(move || {
            // It may call the runtime but not block: a thread of a worker may run it.
            let blocked = std::panic::catch_unwind(|| block_on(async {}));
            let other = Hearth::builder().workers(1).start();
            says.send((number, blocked.is_err(), other.is_ok()))
                .unwrap();
            panic!("the waker of {number}");
        });
        // A waker that another one replaces begins a wait of its own.
        let again = hearth.clone();
        let on_drop: Deed = Box::new(move || {
            let mut nested = again.wait();
            let _ = poll(&mut nested, Waker::noop());
        });
        let _ = poll(&mut wait, &strange(None, Some(on_drop)));
        if poll(&mut wait, &strange(Some(on_wake), None)).is_pending() {
            waits.push(wait);
        }
    }
    drop(says);
    // The last thread to sleep decides: a worker, or this one.
    let mut told: Vec<_> = said.iter().take(waits.len()).collect();
    told.sort();
    let expected: Vec<_> = (0..4).map(|number| (number, true, true)).collect();
    assert!(told.iter().all(|one| expected.contains(one)), "{told:?}");
    for wait in waits {
        assert!(matches!(block_on(wait), Err(Deadlock { .. })));
    }
    drop(out);
    assert!(block_on(component).unwrap().is_err());
    assert_eq!(block_on(hearth.wait()), Ok(()));
}
