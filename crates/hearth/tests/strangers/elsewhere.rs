//! Futures that are polled or dropped outside of the component in which they began, and threads
//! that end.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};

use super::{OnDrop, ROUNDS, begin, own_pair, park, pause, poll, take_what_is_free};
use crate::start;
use hearth::error::{JoinError, ReceiveError, SendError, TryReceiveError};
use hearth::{Either, In, Out, block_on, channel, connect, select};

pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes an operation of each kind, with its half-channels.
fn tasks() -> Vec<(&'static str, Task)> {
    let (out, into) = own_pair::<String>();
    let send: Task = Box::pin(async move {
        let _into = into;
        drop(out.send("nobody will have it".to_owned()).await);
    });
    let (out, into) = own_pair::<String>();
    let receive: Task = Box::pin(async move {
        let _out = out;
        drop(into.recv().await);
    });
    let ((out, into), (other_out, other)) = (own_pair::<String>(), own_pair::<u32>());
    let select: Task = Box::pin(async move {
        let _outs = (out, other_out);
        drop(hearth::select((&into, &other)).await);
    });
    vec![("send", send), ("receive", receive), ("select", select)]
}

/// Drops something on another thread, and waits for that.
fn dropped_by_a_thread<T: Send + 'static>(value: T) {
    std::thread::spawn(move || drop(value)).join().unwrap();
}

/// A thread drops a future and its half-channels while the component, already woken, hears nothing
/// more.
#[test]
fn an_operation_is_dropped_by_a_thread_with_its_half_channels() {
    let hearth = start();
    for which in 0..3 {
        for _ in 0..ROUNDS {
            let component = hearth.spawn(async move {
                let mut task = tasks().swap_remove(which).1;
                begin(&mut task);
                let mut task = Some(task);
                poll_fn(move |context| match task.take() {
                    Some(task) => {
                        context.waker().wake_by_ref();
                        dropped_by_a_thread(task);
                        take_what_is_free();
                        Poll::Pending
                    }
                    None => Poll::Ready(()),
                })
                .await;
            });
            assert_eq!(block_on(component), Ok(()), "{which}");
        }
    }
}

/// Another component drops the future while the first one waits.
#[test]
fn an_operation_is_dropped_in_another_component() {
    let hearth = start();
    for which in 0..3 {
        let (hands, handed) = mpsc::channel();
        let first = hearth.spawn(async move {
            let mut task = tasks().swap_remove(which).1;
            begin(&mut task);
            let mut task = Some(task);
            park(move |waker| hands.send((task.take(), waker.clone())).unwrap()).await;
            // The operation was called off, so another one may begin.
            let (out, into) = channel::<u8>();
            let mut receive = into.recv();
            begin(&mut receive);
            drop((receive, out));
        });
        let (task, waker) = handed.recv().unwrap();
        let second = hearth.spawn(async move {
            drop(task);
            take_what_is_free();
        });
        assert_eq!(block_on(second), Ok(()));
        waker.wake();
        assert_eq!(block_on(first), Ok(()), "{which}");
    }
}

/// A thread drops an operation after its component has ended.
#[test]
fn an_operation_is_dropped_when_its_component_has_ended() {
    let hearth = start();
    for which in 0..3 {
        let component = hearth.spawn(async move {
            let mut task = tasks().swap_remove(which).1;
            begin(&mut task);
            Some(task)
        });
        let task = block_on(component).unwrap();
        take_what_is_free();
        dropped_by_a_thread(task);
    }
}

#[test]
fn an_operation_is_polled_in_no_component() {
    let (out, into) = channel::<String>();
    let refused = poll(&mut out.send("mine".to_owned()), Waker::noop());
    let expected = SendError::NotInComponent("mine".to_owned());
    assert_eq!(refused, Poll::Ready(Err(expected)));
    let received = poll(&mut into.recv(), Waker::noop());
    assert_eq!(received, Poll::Ready(Err(ReceiveError::NotInComponent)));
    assert_eq!(into.try_recv(), Err(TryReceiveError::NotInComponent));
}

/// An operation goes on only in the component where it began. Elsewhere a poll panics if it cannot
/// tell what happened to the value.
#[test]
fn an_operation_that_has_begun_is_polled_elsewhere() {
    let hearth = start();
    let out: &'static Out<u32> = Box::leak(Box::new(Out::new()));
    let into: &'static In<u32> = Box::leak(Box::new(In::new()));
    connect(out, into);
    let (hands, handed) = mpsc::channel();
    let first = hearth.spawn(async move {
        let mut send = out.send(7);
        begin(&mut send);
        let mut send = Some(send);
        park(move |waker| hands.send((send.take().unwrap(), waker.clone())).unwrap()).await;
    });
    let (mut send, waker) = handed.recv().unwrap();
    let outside = std::thread::spawn(move || {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = poll(&mut send, Waker::noop());
        }));
        assert!(polled.is_err(), "it goes on where it began");
        send
    });
    let mut send = outside.join().unwrap();
    let second = hearth.spawn(async move {
        let _ = poll(&mut send, Waker::noop());
    });
    let Err(JoinError::Panicked { message }) = block_on(second) else {
        panic!("it goes on where it began");
    };
    assert_eq!(
        message,
        "an operation goes on in the component where it began"
    );
    waker.wake();
    assert_eq!(block_on(first), Ok(()));
    // The send was called off when the second component dropped it.
    let receiver = hearth.spawn(async move { into.try_recv() });
    assert_eq!(block_on(receiver), Ok(Err(TryReceiveError::Empty)));
}

/// A thread drops a receive after its value came. The next receive gets the value, even one that
/// already waits.
#[test]
fn what_came_for_a_receive_that_a_thread_drops_is_not_lost() {
    let hearth = start();
    let (out, into) = (Out::<String>::new(), Arc::new(In::new()));
    connect(&out, &into);
    let (hands, handed) = mpsc::channel();
    let first = {
        let into = Arc::clone(&into);
        hearth.spawn(async move {
            let mut receive: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
                drop(into.recv().await);
            });
            begin(&mut receive);
            let mut receive = Some(receive);
            park(move |waker| hands.send((receive.take(), waker.clone())).unwrap()).await;
            std::future::pending::<()>().await;
        })
    };
    let (receive, _waker) = handed.recv().unwrap();
    // The first receive gets the value, and nobody polls it.
    let sender = hearth.spawn(async move {
        out.send("precious".to_owned()).await.unwrap();
        out
    });
    let out = block_on(sender).unwrap();
    let second = hearth.spawn(async move { into.recv().await });
    block_on(hearth.spawn(pause())).unwrap();
    dropped_by_a_thread(receive);
    assert_eq!(block_on(second), Ok(Ok("precious".to_owned())));
    first.stop();
    assert_eq!(block_on(first), Err(JoinError::Stopped));
    drop(out);
}

thread_local! {
    static LAST: RefCell<Option<OnDrop>> = const { RefCell::new(None) };
}

/// Destructors of thread-local variables run last on their thread.
#[test]
fn destructors_of_thread_locals_use_channels() {
    let hearth = start();
    let (says, said) = mpsc::channel();
    let own = hearth.clone();
    let last = move || {
        let (out, into) = channel::<String>();
        let refused = poll(&mut out.send("late".to_owned()), Waker::noop());
        assert!(
            matches!(refused, Poll::Ready(Err(_))),
            "no component runs this"
        );
        let inner = own.spawn(async move { into.recv().await });
        drop(out);
        says.send(block_on(inner)).unwrap();
    };
    std::thread::spawn(move || LAST.set(Some(OnDrop::new(last))))
        .join()
        .unwrap();
    assert_eq!(said.recv().unwrap(), Ok(Err(ReceiveError::Disconnected)));
    // A component's own thread ends, if it has one. A worker's thread does not.
    let (says, _said) = mpsc::channel::<()>();
    let (out, into) = channel::<String>();
    let component = hearth.spawn(async move {
        LAST.set(Some(OnDrop::new(move || {
            drop((out, into));
            let _ = says.send(());
        })));
    });
    assert_eq!(block_on(component), Ok(()));
}

/// A thread waits for a future, and for another one while it polls the first.
#[test]
fn waiting_within_a_poll_takes_no_wake_up() {
    let hearth = start();
    for _ in 0..ROUNDS {
        let outer = hearth.spawn(pause());
        let inner = hearth.spawn(pause());
        let (mut outer, mut inner) = (outer.join(), Some(inner));
        let both = poll_fn(move |context| {
            let polled = Pin::new(&mut outer).poll(context);
            if let Some(inner) = inner.take() {
                block_on(inner).unwrap();
            }
            polled
        });
        assert_eq!(block_on(both), Ok(()));
    }
}

/// Four components send and four receive over one half-channel each, in part by selects that name
/// one twice.
#[test]
fn one_half_channel_is_used_by_many() {
    const EACH: u64 = if cfg!(miri) { 5 } else { 200 };
    let hearth = start();
    let out = Arc::new(Out::<Box<u64>>::new());
    let (into, other) = (Arc::new(In::new()), Arc::new(In::new()));
    connect(&out, &into);
    connect(&out, &other);
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let out = Arc::clone(&out);
            hearth.spawn(async move {
                for number in 0..EACH {
                    out.send(Box::new(4 * number + sender)).await.unwrap();
                }
            })
        })
        .collect();
    let receivers: Vec<_> = (0..4)
        .map(|receiver| {
            let (a, b) = (Arc::clone(&into), Arc::clone(&other));
            hearth.spawn(async move {
                let mut seen = Vec::new();
                loop {
                    let received = match receiver {
                        0 => a.recv().await,
                        1 => select((&*a, &*b)).await.map(either),
                        2 => select((&*b, &*b)).await.map(either),
                        _ => select(&[&*a, &*a, &*b][..]).await.map(|(_, value)| value),
                    };
                    match received {
                        Ok(value) => seen.push(*value),
                        Err(_) => return seen,
                    }
                }
            })
        })
        .collect();
    for sender in senders {
        assert_eq!(block_on(sender), Ok(()));
    }
    drop((out, into, other));
    let seen = receivers
        .into_iter()
        .map(|receiver| block_on(receiver).unwrap());
    let mut all: Vec<u64> = seen.flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (0..4 * EACH).collect::<Vec<_>>());
}

fn either<T>(of: Either<T, T>) -> T {
    match of {
        Either::First(value) | Either::Second(value) => value,
    }
}
