//! Components among themselves. Each test file that includes these cases uses another carrier.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use hearth::error::{JoinError, ReceiveError, ReceiverError, SendError, TryReceiveError};
use hearth::{Either, Hearth, In, Out, Receiver, Sender, block_on, channel, connect, select};

/// Starts a runtime for a case.
fn start() -> Hearth {
    crate::start(module_path!())
}

/// Counts its instances.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Counted {
        count.fetch_add(1, Ordering::SeqCst);
        Counted(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 0, "dropped twice");
    }
}

/// Lets other components run.
async fn pause() {
    let mut is_over = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Lets other components run up to three times.
async fn pauses(random: &mut fastrand::Rng) {
    for _ in 0..random.usize(0..4) {
        pause().await;
    }
}

/// Waits for the first of two futures, and drops the other. Takes the first argument if both are
/// ready.
async fn either<A: Future, B: Future>(a: A, b: B) -> Result<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = a.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        b.as_mut().poll(context).map(Err)
    })
    .await
}

#[test]
fn ping_pong_on_one_core_and_on_two() {
    for (left, right) in [(0, 0), (0, 1)] {
        let hearth = start();
        let (ping, pinged) = channel::<u64>();
        let (pong, ponged) = channel::<u64>();
        let echo = hearth.component("Echo").core(right).spawn(async move {
            while let Ok(n) = pinged.recv().await {
                pong.send(n + 1).await.unwrap();
            }
        });
        let player = hearth.component("Player").core(left).spawn(async move {
            let mut n = 0;
            for _ in 0..10_000 {
                ping.send(n).await.unwrap();
                n = ponged.recv().await.unwrap();
            }
            n
        });
        assert_eq!(block_on(player), Ok(10_000));
        assert_eq!(block_on(echo), Ok(()));
    }
}

#[test]
fn values_of_all_kinds_arrive_as_they_were_sent() {
    #[repr(align(64))]
    #[derive(Debug, PartialEq)]
    struct Wide([u8; 1000]);
    let hearth = start();
    let (a_out, a) = channel::<Wide>();
    let (b_out, b) = channel::<()>();
    let (c_out, c) = channel::<Box<dyn Fn(i32) -> i32 + Send>>();
    let (d_out, d) = channel::<In<String>>();
    let (e_out, e) = channel::<String>();
    hearth.spawn(async move {
        for round in 0..100 {
            a_out.send(Wide([round; 1000])).await.unwrap();
            b_out.send(()).await.unwrap();
            c_out
                .send(Box::new(move |n| n + i32::from(round)))
                .await
                .unwrap();
        }
        d_out.send(e).await.unwrap();
        e_out.send("far".to_owned()).await.unwrap();
    });
    let reader = hearth.spawn(async move {
        for round in 0..100 {
            let wide = a.recv().await.unwrap();
            assert_eq!(wide, Wide([round; 1000]));
            assert_eq!(std::ptr::from_ref(&wide).addr() % 64, 0);
            b.recv().await.unwrap();
            assert_eq!(c.recv().await.unwrap()(1), 1 + i32::from(round));
        }
        d.recv().await.unwrap().recv().await
    });
    assert_eq!(block_on(reader).unwrap(), Ok("far".to_owned()));
}

#[test]
fn many_meet_many_and_nothing_is_lost() {
    const SENDERS: usize = 5;
    const RECEIVERS: usize = 3;
    const EACH: usize = 400;
    let hearth = start();
    let outs: Vec<Out<Box<usize>>> = (0..SENDERS).map(|_| Out::new()).collect();
    let ins: Vec<In<Box<usize>>> = (0..RECEIVERS).map(|_| In::new()).collect();
    for out in &outs {
        for into in &ins {
            connect(out, into);
        }
    }
    for (number, out) in outs.into_iter().enumerate() {
        hearth.spawn(async move {
            for index in 0..EACH {
                out.send(Box::new(number * EACH + index)).await.unwrap();
            }
        });
    }
    let receivers: Vec<_> = ins
        .into_iter()
        .map(|into| {
            hearth.spawn(async move {
                let mut got = Vec::new();
                while let Ok(number) = into.recv().await {
                    got.push(*number);
                }
                got
            })
        })
        .collect();
    let mut all = Vec::new();
    for receiver in receivers {
        all.extend(block_on(receiver).unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (0..SENDERS * EACH).collect::<Vec<_>>());
}

#[test]
fn select_serves_all() {
    let hearth = start();
    let (a_out, a) = channel::<i32>();
    let (b_out, b) = channel::<String>();
    hearth.spawn(async move { while a_out.send(1).await.is_ok() {} });
    hearth.spawn(async move { while b_out.send("b".to_owned()).await.is_ok() {} });
    let counts = block_on(hearth.spawn(async move {
        let mut counts = [0, 0];
        for _ in 0..2000 {
            match select((&a, &b)).await.unwrap() {
                Either::First(1) => counts[0] += 1,
                Either::Second(text) if text == "b" => counts[1] += 1,
                other => panic!("{other:?}"),
            }
            pause().await;
        }
        counts
    }))
    .unwrap();
    // An arm without a sender is passed over, but none starves.
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
}

#[test]
fn select_over_a_slice_names_the_index() {
    let hearth = start();
    let (outs, ins): (Vec<_>, Vec<_>) = (0..10).map(|_| channel::<usize>()).unzip();
    for (index, out) in outs.into_iter().enumerate() {
        hearth.spawn(async move { out.send(index).await });
    }
    let sum = block_on(hearth.spawn(async move {
        let refs: Vec<_> = ins.iter().collect();
        let mut sum = 0;
        while let Ok((index, value)) = select(&refs[..]).await {
            assert_eq!(index, value);
            sum += value;
        }
        sum
    }));
    assert_eq!(sum, Ok(45));
}

#[test]
fn what_is_left_alone_learns_it_whenever_that_happens() {
    let hearth = start();
    for _ in 0..200 {
        let (out, into) = channel::<String>();
        let receiver = hearth.spawn(async move { into.recv().await });
        hearth.spawn(async move {
            pause().await;
            drop(out);
        });
        assert_eq!(block_on(receiver), Ok(Err(ReceiveError::Disconnected)));
        let (out, into) = channel::<String>();
        let sender = hearth.spawn(async move { out.send("back".to_owned()).await });
        hearth.spawn(async move {
            pause().await;
            drop(into);
        });
        let sent = block_on(sender).unwrap();
        assert_eq!(sent, Err(SendError::Disconnected("back".to_owned())));
    }
}

#[test]
fn a_connection_may_come_late_and_again() {
    let hearth = start();
    let (out, into) = (Out::<String>::new(), In::<String>::new());
    let (tell, told) = channel::<In<String>>();
    let teller = Sender::new(&hearth, tell);
    let sender = hearth.spawn(async move {
        for text in ["one", "two"] {
            out.send(text.to_owned()).await.unwrap();
        }
        out
    });
    connect_later(&hearth, &teller, into, told);
    // The sender waits for a connection, which only it could make: it owns the half-channel.
    sender.stop();
    assert!(matches!(block_on(sender), Err(JoinError::Stopped)));
}

fn connect_later(
    hearth: &Hearth,
    teller: &Sender<In<String>>,
    into: In<String>,
    told: In<In<String>>,
) {
    let other = Out::<String>::new();
    connect(&other, &into);
    let reader = hearth.spawn(async move {
        let into = told.recv().await.unwrap();
        (into.recv().await, into)
    });
    teller.send_blocking(into).unwrap();
    block_on(hearth.spawn(async move { other.send("hello".to_owned()).await }))
        .unwrap()
        .unwrap();
    let (first, into) = block_on(reader).unwrap();
    assert_eq!(first, Ok("hello".to_owned()));
    let again = Out::<String>::new();
    connect(&again, &into);
    hearth.spawn(async move { again.send("again".to_owned()).await });
    let second = block_on(hearth.spawn(async move { into.recv().await }));
    assert_eq!(second, Ok(Ok("again".to_owned())));
}

#[test]
fn stop_ends_a_component_wherever_it_waits() {
    let hearth = start();
    let count = Arc::new(AtomicUsize::new(0));
    for round in 0..300 {
        let (out, into) = channel::<Counted>();
        let (other_out, other) = channel::<i32>();
        let value = Counted::new(&count);
        let held = Counted::new(&count);
        let component = match round % 4 {
            0 => hearth.spawn(async move {
                let _held = held;
                let _ = out.send(value).await;
            }),
            1 => hearth.spawn(async move {
                let _held = (held, value);
                let _ = into.recv().await;
            }),
            2 => hearth.spawn(async move {
                let _held = (held, value);
                let _ = select((&into, &other)).await;
            }),
            _ => hearth.spawn(async move {
                let _held = (held, value);
                std::future::pending::<()>().await;
            }),
        };
        component.stop();
        assert_eq!(block_on(component), Err(JoinError::Stopped));
        drop(other_out);
        assert_eq!(count.load(Ordering::SeqCst), 0, "round {round}");
    }
}

#[test]
fn a_panic_ends_its_component_only() {
    let hearth = start();
    let count = Arc::new(AtomicUsize::new(0));
    let value = Counted::new(&count);
    let (out, into) = channel::<Counted>();
    let hasty = hearth.spawn(async move {
        let _value = value;
        pause().await;
        let _out = out;
        if _value.0.load(Ordering::SeqCst) > 0 {
            panic!("too {}", "fast");
        }
    });
    let patient = hearth.spawn(async move { into.recv().await.map(|_| ()) });
    let message = "too fast".to_owned();
    assert_eq!(block_on(hasty), Err(JoinError::Panicked { message }));
    assert_eq!(block_on(patient), Ok(Err(ReceiveError::Disconnected)));
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_beside_a_blocked_operation_is_one_too() {
    let hearth = start();
    let count = Arc::new(AtomicUsize::new(0));
    let mut panics = 0;
    for round in 0..100 {
        let (out, into) = channel::<Counted>();
        let value = Counted::new(&count);
        let hasty = hearth.spawn(async move {
            let sending = out.send(value);
            let _ = either(sending, async {
                pause().await;
                panic!("now");
            })
            .await;
        });
        if round % 2 == 0 {
            let reader = hearth.spawn(async move { into.recv().await.map(|_| ()) });
            // The two may have met before the panic.
            panics += usize::from(block_on(hasty).is_err());
            let _ = block_on(reader).unwrap();
        } else {
            panics += usize::from(block_on(hasty).is_err());
        }
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
    assert!(panics >= 50);
}

#[test]
fn a_dropped_operation_loses_nothing() {
    const EACH: usize = 2000;
    let hearth = start();
    let count = Arc::new(AtomicUsize::new(0));
    for (left, right) in [(0, 0), (0, 1)] {
        let (out, into) = channel::<(usize, Counted)>();
        let counter = Arc::clone(&count);
        let sender = hearth.component("Sender").core(left).spawn(async move {
            let mut random = fastrand::Rng::with_seed(1);
            for index in 0..EACH {
                pauses(&mut random).await;
                out.send((index, Counted::new(&counter))).await.unwrap();
            }
        });
        let receiver = hearth.component("Fickle").core(right).spawn(async move {
            let mut random = fastrand::Rng::with_seed(2);
            let mut dropped = 0;
            let mut next = 0;
            loop {
                match either(into.recv(), pauses(&mut random)).await {
                    Ok(Ok((index, _))) => {
                        assert_eq!(index, next);
                        next += 1;
                    }
                    Ok(Err(_)) => return (next, dropped),
                    Err(()) => dropped += 1,
                }
            }
        });
        assert_eq!(block_on(sender), Ok(()));
        let (received, dropped) = block_on(receiver).unwrap();
        assert_eq!(received, EACH);
        assert!(dropped > 0, "no receive was ever dropped");
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_dropped_send_sends_once_or_not_at_all() {
    const EACH: usize = 2000;
    let hearth = start();
    let count = Arc::new(AtomicUsize::new(0));
    for (left, right) in [(0, 0), (0, 1)] {
        let (out, into) = channel::<Counted>();
        let counter = Arc::clone(&count);
        let sender = hearth.component("Fickle").core(left).spawn(async move {
            let mut random = fastrand::Rng::with_seed(3);
            let mut sent = 0;
            for _ in 0..EACH {
                let sending = out.send(Counted::new(&counter));
                sent += usize::from(either(sending, pauses(&mut random)).await.is_ok());
            }
            sent
        });
        let receiver = hearth.component("Receiver").core(right).spawn(async move {
            let mut random = fastrand::Rng::with_seed(4);
            let mut received = 0;
            while into.recv().await.is_ok() {
                received += 1;
                pauses(&mut random).await;
            }
            received
        });
        let sent = block_on(sender).unwrap();
        let received = block_on(receiver).unwrap();
        assert!((sent..=EACH).contains(&received), "{sent} {received}");
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn an_operation_may_be_dropped_elsewhere_or_forgotten() {
    type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;
    let hearth = start();
    let count = Arc::new(AtomicUsize::new(0));
    let (give, given) = std::sync::mpsc::channel::<Boxed>();
    let dropper = std::thread::spawn(move || given.into_iter().for_each(drop));
    for round in 0..200 {
        let (out, into) = channel::<Counted>();
        let (done, wait) = channel::<i32>();
        let value = Counted::new(&count);
        let give = give.clone();
        let component = hearth.spawn(async move {
            let into: &'static In<Counted> = Box::leak(Box::new(into));
            let mut receiving: Boxed = Box::pin(async move {
                let _ = into.recv().await;
            });
            let _ = either(&mut receiving, async {}).await;
            match round % 2 {
                0 => give.send(receiving).unwrap(),
                _ => std::mem::forget(receiving),
            }
            // Another operation begins when the first one is dropped; a forgotten one blocks the
            // component for good.
            if round % 2 == 0 {
                assert_eq!(wait.recv().await, Ok(7));
            } else {
                pause().await;
            }
            into.disconnect();
        });
        let teller = hearth.spawn(async move { done.send(7).await });
        let sender = hearth.spawn(async move { out.send(value).await.is_ok() });
        assert_eq!(block_on(component), Ok(()));
        block_on(sender).unwrap();
        let _ = block_on(teller).unwrap();
    }
    drop(give);
    dropper.join().unwrap();
}

#[test]
fn two_operations_at_once_take_turns() {
    let hearth = start();
    let (a_out, a) = channel::<i32>();
    let (b_out, b) = channel::<i32>();
    hearth.spawn(async move {
        for n in 0..100 {
            a_out.send(n).await.unwrap();
            b_out.send(n).await.unwrap();
        }
    });
    let sum = block_on(hearth.spawn(async move {
        let mut sum = 0;
        for _ in 0..100 {
            let (x, y) = tokio::join!(a.recv(), b.recv());
            sum += x.unwrap() + y.unwrap();
        }
        sum
    }));
    assert_eq!(sum, Ok(9900));
}

#[test]
fn threads_send_and_receive() {
    let hearth = start();
    let (out, into) = channel::<String>();
    let (back, lengths) = channel::<usize>();
    hearth.spawn(async move {
        while let Ok(text) = into.recv().await {
            back.send(text.len()).await.unwrap();
        }
    });
    let sender = Sender::new(&hearth, out);
    let receiver = Receiver::new(&hearth, lengths);
    let writer = std::thread::spawn(move || {
        for length in 0..200 {
            sender.send_blocking("x".repeat(length)).unwrap();
        }
    });
    for length in 0..200 {
        assert_eq!(receiver.recv_blocking(), Ok(length));
    }
    writer.join().unwrap();
    assert_eq!(receiver.recv_blocking(), Err(ReceiverError::Disconnected));
}

#[test]
fn outside_of_components_operations_say_so() {
    let (out, into) = channel::<i32>();
    assert_eq!(block_on(out.send(1)), Err(SendError::NotInComponent(1)));
    assert_eq!(block_on(into.recv()), Err(ReceiveError::NotInComponent));
    assert_eq!(into.try_recv(), Err(TryReceiveError::NotInComponent));
}

#[test]
fn clones_of_an_out_send_to_one_in() {
    const SENDERS: usize = 8;
    const EACH: usize = 200;
    let hearth = start();
    let (out, into) = channel::<Box<usize>>();
    let senders: Vec<_> = (0..SENDERS)
        .map(|number| {
            let out = out.clone();
            hearth.spawn(async move {
                for index in 0..EACH {
                    out.send(Box::new(number * EACH + index)).await.unwrap();
                }
            })
        })
        .collect();
    drop(out);
    let receiver = hearth.spawn(async move {
        let mut got = Vec::new();
        while let Ok(number) = into.recv().await {
            got.push(*number);
        }
        got.sort_unstable();
        got
    });
    for sender in senders {
        assert_eq!(block_on(sender), Ok(()));
    }
    assert_eq!(block_on(receiver), Ok((0..SENDERS * EACH).collect()));
}

#[test]
fn clones_of_an_in_share_what_is_sent() {
    let hearth = start();
    let (out, into) = channel::<String>();
    let receivers = [into.clone(), into.clone(), into].map(|into| {
        hearth.spawn(async move {
            let mut count = 0;
            while into.recv().await.is_ok() {
                count += 1;
            }
            count
        })
    });
    let sender = hearth.spawn(async move {
        for number in 0..300 {
            out.send(format!("{number}")).await.unwrap();
        }
    });
    assert_eq!(block_on(sender), Ok(()));
    let counts = receivers.map(|receiver| block_on(receiver).unwrap());
    assert_eq!(counts.iter().sum::<i32>(), 300);
}

#[test]
fn a_clone_has_peers_of_its_own_from_then_on() {
    let hearth = start();
    // The clone is made while the original is in use.
    let (out, into) = channel::<String>();
    let first = hearth.spawn(async move {
        out.send("first".to_owned()).await.unwrap();
        out
    });
    let reader = hearth.spawn(async move { (into.recv().await, into) });
    let out = block_on(first).unwrap();
    let (received, into) = block_on(reader).unwrap();
    assert_eq!(received.as_deref(), Ok("first"));
    let copy = out.clone();
    out.disconnect();
    let second = hearth.spawn(async move { copy.send("second".to_owned()).await.map(|()| copy) });
    let received = block_on(hearth.spawn(async move { into.recv().await })).unwrap();
    assert_eq!(received.as_deref(), Ok("second"));
    // The in is dropped: a clone of an out that has lost its peers has lost them too.
    let copy = block_on(second).unwrap().unwrap().clone();
    let lost = hearth.spawn(async move { copy.send("third".to_owned()).await });
    let back = SendError::Disconnected("third".to_owned());
    assert_eq!(block_on(lost), Ok(Err(back)));
}

#[test]
fn clones_are_made_and_dropped_while_values_travel() {
    let hearth = start();
    let (out, into) = channel::<u64>();
    let receiver = hearth.spawn(async move {
        let mut sum = 0;
        while let Ok(number) = into.recv().await {
            sum += number;
            drop(into.clone());
        }
        sum
    });
    let mut sent = 0;
    let senders: Vec<_> = (0..100)
        .map(|number| {
            let out = out.clone();
            sent += 2 * number;
            hearth.spawn(async move {
                out.send(number).await.unwrap();
                out.clone().send(number).await.unwrap();
            })
        })
        .collect();
    drop(out);
    for sender in senders {
        assert_eq!(block_on(sender), Ok(()));
    }
    assert_eq!(block_on(receiver), Ok(sent));
}

#[test]
fn a_value_for_a_receive_that_is_left_goes_to_one_that_waits() {
    let hearth = start();
    let (out, into) = channel::<String>();
    let first = Receiver::new(&hearth, into);
    let second = first.clone();
    let mut left = Box::pin(first.recv());
    let mut waits = Box::pin(second.recv());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(left.as_mut().poll(&mut context).is_pending());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    let sent = hearth.spawn(async move { out.send("once".to_owned()).await.map(|()| out) });
    let out = block_on(sent).unwrap().unwrap();
    // The value is there, or on its way to the first.
    drop(left);
    assert_eq!(block_on(waits).as_deref(), Ok("once"));
    drop(out);
}
