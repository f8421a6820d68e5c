//! Destructors of values, at each place where a value may be dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use super::{OnDrop, ROUNDS, begin, own_pair, park, poll, stopped, take_what_is_free};
use crate::start;
use hearth::error::{JoinError, SendError};
use hearth::{Hearth, In, Out, block_on, channel, connect};
use std::task::{Poll, Waker};

/// Makes another channel for destructors to use. Its peer never receives.
fn other() -> (Arc<Out<[usize; 4]>>, In<[usize; 4]>) {
    let (out, into) = channel();
    (Arc::new(out), into)
}

/// Sends in a destructor, forgets the send, and tells how far it came.
fn send_and_forget(other: &Out<[usize; 4]>) -> &'static str {
    let mut send = other.send([0x4141_4141_4141_4141; 4]);
    let polled = poll(&mut send, Waker::noop());
    let what = match &polled {
        Poll::Pending => "pending",
        Poll::Ready(Err(SendError::NotInComponent(_))) => "refused",
        Poll::Ready(_) => "sent",
    };
    std::mem::forget(send);
    what
}

/// The place of a value when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DropPlace {
    /// In a send that had not begun.
    Unsent,
    /// In the slot of its component, which drops the future.
    Departing,
    /// In the slot of its component, which is stopped.
    StoppedWith,
    /// In the slot where it arrived; the component is stopped.
    Arrived,
}

fn dropped_at(hearth: &Hearth, place: DropPlace) -> &'static str {
    let (says, said) = mpsc::channel();
    let (other, _other_in) = other();
    let value = OnDrop::new(move || says.send(send_and_forget(&other)).unwrap());
    let (out, into) = channel::<OnDrop>();
    match place {
        DropPlace::Unsent => {
            let component = hearth.spawn(async move { drop(out.send(value)) });
            assert_eq!(block_on(component), Ok(()));
        }
        DropPlace::Departing => {
            let component = hearth.spawn(async move {
                let mut send = out.send(value);
                begin(&mut send);
                drop(send);
            });
            assert_eq!(block_on(component), Ok(()));
        }
        DropPlace::StoppedWith => {
            let end = stopped(hearth, || async move {
                let mut send = out.send(value);
                begin(&mut send);
                std::mem::forget(send);
            });
            assert_eq!(end, Err(JoinError::Stopped));
        }
        DropPlace::Arrived => {
            let (hands, handed) = mpsc::channel();
            let component = hearth.spawn(async move {
                let mut receive = into.recv();
                begin(&mut receive);
                std::mem::forget(receive);
                hands.send(()).unwrap();
                std::future::pending::<()>().await;
                drop(into);
            });
            handed.recv().unwrap();
            let sent = block_on(hearth.spawn(async move { out.send(value).await.is_ok() }));
            assert_eq!(sent, Ok(true));
            component.stop();
            assert_eq!(block_on(component), Err(JoinError::Stopped));
        }
    }
    take_what_is_free();
    said.recv().unwrap()
}

#[test]
fn a_destructor_sends() {
    let hearth = start();
    for (place, expected) in [
        // The component is free: the send begins, and waits.
        (DropPlace::Unsent, "pending"),
        // The value has left the slot. Nothing begins until all of it is dropped.
        (DropPlace::Departing, "pending"),
        // The component has ended.
        (DropPlace::StoppedWith, "refused"),
        (DropPlace::Arrived, "refused"),
    ] {
        assert_eq!(dropped_at(&hearth, place), expected, "{place:?}");
    }
}

/// A slot is not reused while a value of another type is dropped in it.
#[test]
fn many_destructors_send_in_turn() {
    let hearth = start();
    let (other, _other_in) = other();
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dropped);
    let (out, _into) = channel::<OnDrop>();
    let component = hearth.spawn(async move {
        for _ in 0..ROUNDS {
            let (other, count) = (Arc::clone(&other), Arc::clone(&count));
            let value = OnDrop::new(move || {
                let mut send = other.send([7; 4]);
                let _ = poll(&mut send, Waker::noop());
                count.fetch_add(1, Ordering::Relaxed);
            });
            let mut send = out.send(value);
            begin(&mut send);
            drop(send);
        }
    });
    assert_eq!(block_on(component), Ok(()));
    assert_eq!(dropped.load(Ordering::Relaxed), ROUNDS);
}

/// A value holds the half-channel over which it is sent, so both are dropped at once.
#[test]
fn a_destructor_drops_the_half_channel_of_its_send() {
    let hearth = start();
    for _ in 0..ROUNDS {
        let end = stopped(&hearth, || async move {
            let (out, into) = own_pair::<OnDrop>();
            let out = Arc::new(out);
            let own = Arc::clone(&out);
            let mut send = out.send(OnDrop::new(move || drop(own)));
            begin(&mut send);
            std::mem::forget(send);
            drop(out);
            drop(into);
        });
        assert_eq!(end, Err(JoinError::Stopped));
    }
}

/// A thread drops a send; its component drops the value, whose destructor may use channels there.
#[test]
fn a_destructor_runs_in_its_component_though_a_thread_drops_the_send() {
    let hearth = start();
    let out: &'static Out<OnDrop> = Box::leak(Box::new(Out::new()));
    let into: &'static In<OnDrop> = Box::leak(Box::new(In::new()));
    connect(out, into);
    let (other, _other_in) = other();
    let (says, said) = mpsc::channel();
    let (hands, handed) = mpsc::channel();
    let component = hearth.spawn(async move {
        let mut send = out.send(OnDrop::new(move || {
            says.send(send_and_forget(&other)).unwrap();
        }));
        begin(&mut send);
        let mut send = Some(send);
        park(move |waker| hands.send((send.take(), waker.clone())).unwrap()).await;
    });
    let (send, _waker) = handed.recv().unwrap();
    std::thread::spawn(move || drop(send)).join().unwrap();
    assert_eq!(block_on(component), Ok(()));
    assert_eq!(said.recv(), Ok("pending"));
}

/// A destructor drops another operation of its component.
#[test]
fn a_destructor_drops_another_operation() {
    let hearth = start();
    let out: &'static Out<String> = Box::leak(Box::new(Out::new()));
    let into: &'static In<String> = Box::leak(Box::new(In::new()));
    connect(out, into);
    let (values, _never) = channel::<OnDrop>();
    let (says, said) = mpsc::channel();
    let component = hearth.spawn(async move {
        let mut other = Box::pin(out.send("other".to_owned()));
        begin(&mut other);
        let value = OnDrop::new(move || drop(other));
        // This one waits for its turn. Dropping it drops its value, and the other send with that.
        let mut send = values.send(value);
        begin(&mut send);
        drop(send);
        // Now this one may begin.
        let mut last = out.send("last".to_owned());
        begin(&mut last);
        says.send(()).unwrap();
        last.await.is_ok()
    });
    said.recv().unwrap();
    let received = block_on(hearth.spawn(into.recv())).unwrap();
    assert_eq!(received.as_deref(), Ok("last"));
    assert_eq!(block_on(component), Ok(true));
}

/// A value that no receive took is dropped with the half-channel that kept it.
#[test]
fn a_kept_value_goes_with_its_half_channel() {
    let hearth = start();
    let (out, into) = channel::<OnDrop>();
    let into = Arc::new(into);
    let (says, said) = mpsc::channel();
    let (hands, handed) = mpsc::channel();
    let first = {
        let into = Arc::clone(&into);
        hearth.spawn(async move {
            let receive: super::elsewhere::Task = Box::pin(async move { drop(into.recv().await) });
            let mut receive = Some(receive);
            begin(receive.as_mut().unwrap());
            hands.send(receive.take()).unwrap();
            std::future::pending::<()>().await;
        })
    };
    let receive = handed.recv().unwrap();
    let own = hearth.clone();
    let value = OnDrop::new(move || {
        // The thread that drops the half-channel runs this, in no component.
        says.send(block_on(own.spawn(async { 5 }))).unwrap();
    });
    let sent = hearth.spawn(async move { out.send(value).await.is_ok() });
    assert_eq!(block_on(sent), Ok(true));
    drop(receive);
    first.stop();
    assert_eq!(block_on(first), Err(JoinError::Stopped));
    drop(into);
    assert_eq!(said.recv().unwrap(), Ok(5));
}

/// A destructor must not block: that would keep a worker from all its components.
#[test]
fn a_destructor_may_not_block() {
    let hearth = start();
    let (says, said) = mpsc::channel();
    let end = stopped(&hearth, || async move {
        let (out, into) = channel::<OnDrop>();
        let mut send = out.send(OnDrop::new(move || {
            let blocked = std::panic::catch_unwind(|| block_on(async {}));
            says.send(blocked.is_err()).unwrap();
        }));
        begin(&mut send);
        std::mem::forget(send);
        std::mem::forget(into);
    });
    assert_eq!(end, Err(JoinError::Stopped));
    assert_eq!(said.recv(), Ok(true));
}

/// An output that nobody joins for is dropped at the end of its component, where sends are refused.
#[test]
fn an_output_that_nobody_wants_is_dropped() {
    let hearth = start();
    let (other, _other_in) = other();
    let (says, said) = mpsc::channel();
    let component = hearth.spawn(async move {
        let value = OnDrop::new(move || says.send(send_and_forget(&other)).unwrap());
        Mutex::new(value)
    });
    drop(component);
    assert_eq!(said.recv(), Ok("refused"));
}
