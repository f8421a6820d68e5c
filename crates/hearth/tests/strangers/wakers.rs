//! Wakers that do more than wake.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Wake, Waker};

use super::{Strange, begin, pause, poll};
use crate::start;
use hearth::error::{JoinError, ReceiveError, SendError};
use hearth::future::Join;
use hearth::{Component, Hearth, In, Out, Receiver, Sender, block_on, channel, connect};

fn leaked<T: Send + 'static>() -> (&'static Out<T>, &'static In<T>) {
    let (out, into) = (
        Box::leak(Box::new(Out::new())),
        Box::leak(Box::new(In::new())),
    );
    connect(out, into);
    (out, into)
}

/// Runs a component in which one operation waits, and another one for its turn with this waker. The
/// poll that ends the first also takes its result. Returns when both have begun.
fn with_a_queue<T, U>(
    hearth: &Hearth,
    mut first: impl Future<Output = T> + Unpin + Send + 'static,
    mut second: impl Future<Output = U> + Unpin + Send + 'static,
    waker: Waker,
) -> Component<T>
where
    T: Send,
{
    let mut is_queued = false;
    let (says, said) = mpsc::channel();
    let component = hearth.spawn(poll_fn(move |context| {
        let polled = Pin::new(&mut first).poll(context);
        if !std::mem::replace(&mut is_queued, true) {
            assert!(polled.is_pending());
            assert!(poll(&mut second, &waker).is_pending());
            says.send(()).unwrap();
        }
        polled
    }));
    said.recv().unwrap();
    component
}

/// A receive gets its own value, not the one that its waker's receive would get.
#[test]
fn a_waker_receives_while_a_receive_ends() {
    let hearth = start();
    let (ours, our) = leaked::<u8>();
    let (numbers, number) = leaked::<u32>();
    // Waits to send a number, which the waker receives.
    let other = hearth.spawn(async move { numbers.send(0x4141_4141).await });
    block_on(hearth.spawn(pause())).unwrap();
    let waker = Strange::waking(move || {
        let mut receive = number.recv();
        let _ = poll(&mut receive, Waker::noop());
    });
    let component = with_a_queue(&hearth, our.recv(), number.recv(), waker);
    block_on(hearth.spawn(async move { ours.send(7).await }))
        .unwrap()
        .unwrap();
    assert_eq!(block_on(component), Ok(Ok(7)));
    other.stop();
    let _ = block_on(other);
}

/// A send that is called off gets its own value back.
#[test]
fn a_waker_sends_while_a_send_ends() {
    let hearth = start();
    let (out, into) = leaked::<String>();
    let (other, _other_in) = leaked::<[usize; 3]>();
    let waker = Strange::waking(move || {
        let mut send = other.send([0x4141_4141_4141_4141; 3]);
        let _ = poll(&mut send, Waker::noop());
        std::mem::forget(send);
    });
    let component = with_a_queue(
        &hearth,
        out.send("a text that is on the heap".to_owned()),
        other.send([1; 3]),
        waker,
    );
    // No peer is left: the send is called off and gets its value back.
    into.disconnect();
    let sent = block_on(component).unwrap();
    let text = "a text that is on the heap".to_owned();
    assert_eq!(sent, Err(SendError::Disconnected(text)));
}

/// A waker drops the operation whose end it is told.
#[test]
fn a_waker_drops_its_operation() {
    let hearth = start();
    let (out, into) = leaked::<String>();
    type Kept = Arc<Mutex<Option<super::elsewhere::Task>>>;
    let kept: Kept = Arc::default();
    let own = Arc::clone(&kept);
    let (says, said) = mpsc::channel();
    let receiver = hearth.spawn(async move {
        let copy = Arc::clone(&own);
        let waker = Strange::waking(move || drop(copy.lock().unwrap().take()));
        let mut receive: super::elsewhere::Task = Box::pin(async move {
            drop(into.recv().await);
        });
        assert!(poll(&mut receive, &waker).is_pending());
        *own.lock().unwrap() = Some(receive);
        says.send(()).unwrap();
        while own.lock().unwrap().is_some() {
            pause().await;
        }
        // The next receive gets the value that had come.
        into.recv().await
    });
    said.recv().unwrap();
    block_on(hearth.spawn(async move { out.send("kept".to_owned()).await }))
        .unwrap()
        .unwrap();
    assert_eq!(block_on(receiver), Ok(Ok("kept".to_owned())));
}

/// A waker's panic ends the component in which it happens. The peer has its value.
#[test]
fn a_waker_panics() {
    let hearth = start();
    let (out, into) = channel::<String>();
    let (says, said) = mpsc::channel();
    let component = hearth.spawn(async move {
        let mut send = Box::pin(out.send("sent".to_owned()));
        let waker = Strange::waking(|| panic!("a waker's"));
        assert!(poll(&mut send, &waker).is_pending());
        says.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    said.recv().unwrap();
    let other = hearth.spawn(async move { into.recv().await });
    assert_eq!(block_on(other), Ok(Ok("sent".to_owned())));
    let message = "a waker's".to_owned();
    assert_eq!(block_on(component), Err(JoinError::Panicked { message }));
}

/// All wakers in a queue are woken, though each one panics.
#[test]
fn every_waker_in_a_queue_is_told() {
    let hearth = start();
    let (out, into) = leaked::<u32>();
    let (says, said) = mpsc::channel();
    let (begun, has_begun) = mpsc::channel();
    let component = hearth.spawn(async move {
        let mut first = into.recv();
        begin(&mut first);
        for number in 0..3 {
            let says = says.clone();
            let waker = Strange::waking(move || {
                says.send(number).unwrap();
                panic!("the waker of {number}");
            });
            assert!(poll(&mut into.recv(), &waker).is_pending());
        }
        begun.send(()).unwrap();
        let first = first.await;
        pause().await;
        first
    });
    has_begun.recv().unwrap();
    block_on(hearth.spawn(async move { out.send(1).await }))
        .unwrap()
        .unwrap();
    let message = "the waker of 0".to_owned();
    assert_eq!(block_on(component), Err(JoinError::Panicked { message }));
    assert_eq!(said.iter().collect::<Vec<_>>(), [0, 1, 2]);
}

/// A receive waits for its turn and is polled again and again with a waker of its own, while the
/// other one is called off and begins anew each time. Copies of its waker do not pile up.
#[test]
fn a_waker_in_a_queue_is_kept_a_few_times() {
    struct Plain;
    impl Wake for Plain {
        fn wake(self: Arc<Self>) {}
    }
    let hearth = start();
    let (_out, into) = leaked::<u32>();
    let component = hearth.spawn(async move {
        let plains: Vec<Arc<Plain>> = (0..3).map(|_| Arc::new(Plain)).collect();
        let mut first = into.recv();
        let mut others: Vec<_> = plains.iter().map(|_| into.recv()).collect();
        for _ in 0..100 {
            begin(&mut first);
            for (other, plain) in others.iter_mut().zip(&plains) {
                assert!(poll(other, &Arc::clone(plain).into()).is_pending());
            }
            pause().await;
        }
        plains.iter().map(Arc::strong_count).sum::<usize>()
    });
    let count = block_on(component).unwrap();
    assert!(count < 30, "{count} copies of 3 wakers");
}

/// Wakers are dropped when another one replaces them, and with the component.
#[test]
fn the_drop_of_a_waker_panics() {
    let hearth = start();
    let (_out, into) = leaked::<u32>();
    // Replaced in the component's own code: the component panics.
    let component = hearth.spawn(async move {
        let mut receive = into.recv();
        let waker = Strange::dropped(|| panic!("a waker's drop"));
        assert!(poll(&mut receive, &waker).is_pending());
        drop(waker);
        begin(&mut receive);
    });
    let message = "a waker's drop".to_owned();
    assert_eq!(block_on(component), Err(JoinError::Panicked { message }));
    // Dropped with the component.
    let end = super::stopped(&hearth, || async move {
        for _ in 0..3 {
            let mut receive = into.recv();
            let waker = Strange::dropped(|| panic!("a waker's drop"));
            assert!(poll(&mut receive, &waker).is_pending());
            std::mem::forget(receive);
        }
    });
    // The operation that was called off woke its waker; the others waited for their turn.
    let message = "a waker's drop".to_owned();
    assert_eq!(end, Err(JoinError::Panicked { message }));
}

/// A waker that waits for a component's end polls the join, and another one replaces it.
#[test]
fn a_waker_of_a_join_uses_what_it_waits_for() {
    let hearth = start();
    let (out, into) = leaked::<u32>();
    let component = hearth.spawn(async move { into.recv().await.unwrap() });
    let join = Arc::new(Mutex::new(component.join()));
    let copy = Arc::clone(&join);
    let nested = move || {
        let mut join = copy.lock().unwrap();
        assert!(poll(&mut *join, Waker::noop()).is_pending());
    };
    // Dropped when the next one replaces it, without the join's own lock.
    {
        let waker = Strange::dropped({
            let join: Arc<Mutex<Join<u32>>> = Arc::clone(&join);
            move || drop(join.try_lock())
        });
        assert!(poll(&mut *join.lock().unwrap(), &waker).is_pending());
    }
    nested();
    // Panics when it is woken, after the component has ended well.
    let waker = Strange::waking(|| panic!("a waker's"));
    assert!(poll(&mut *join.lock().unwrap(), &waker).is_pending());
    block_on(hearth.spawn(async move { out.send(3).await }))
        .unwrap()
        .unwrap();
    let mut join = join.lock().unwrap();
    assert_eq!(
        block_on(poll_fn(|context| Pin::new(&mut *join).poll(context))),
        Ok(3)
    );
}

/// A waker of one request panics; the other requests are served.
#[test]
fn a_proxy_survives_the_wakers_of_those_who_ask() {
    let hearth = start();
    let (out, into) = channel::<u32>();
    let (sender, receiver) = (Sender::new(&hearth, out), Receiver::new(&hearth, into));
    for round in 0..3 {
        let mut asked = Box::pin(receiver.recv());
        let waker = Strange::waking(|| panic!("a waker's"));
        assert!(poll(&mut asked, &waker).is_pending());
        sender.send_blocking(round).unwrap();
        assert_eq!(block_on(asked), Ok(round));
        let mut sent = Box::pin(sender.send(round));
        let waker = Strange::waking(|| panic!("a waker's"));
        assert!(poll(&mut sent, &waker).is_pending());
        assert_eq!(receiver.recv_blocking(), Ok(round));
        assert_eq!(block_on(sent), Ok(()));
    }
}

/// A waker must not block: that would keep a worker from all its components.
#[test]
fn a_waker_may_not_block() {
    let hearth = start();
    let (says, said) = mpsc::channel();
    let (out, into) = channel::<u32>();
    let mut join = hearth.spawn(async move { into.recv().await }).join();
    let waker = Strange::waking(move || {
        let blocked = std::panic::catch_unwind(|| block_on(async {}));
        says.send(blocked.is_err()).unwrap();
    });
    assert!(poll(&mut join, &waker).is_pending());
    drop(out);
    assert_eq!(said.recv(), Ok(true));
    assert_eq!(block_on(join), Ok(Err(ReceiveError::Disconnected)));
}
