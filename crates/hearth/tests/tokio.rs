//! Components within a program that uses tokio.

use std::time::Duration;

use hearth::error::ReceiverError;
use hearth::{Hearth, Receiver, Sender, channel};

fn start() -> Hearth {
    Hearth::builder().workers(2).start().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_and_components_talk() {
    let hearth = start();
    let (requests, request) = channel::<(u32, tokio::sync::oneshot::Sender<u32>)>();
    let (events, event) = channel::<String>();
    let server = hearth.component("Server").spawn(async move {
        let mut served = 0;
        while let Ok((number, reply)) = request.recv().await {
            let _ = reply.send(number * 2);
            events.send(format!("served {number}")).await.unwrap();
            served += 1;
        }
        served
    });
    let requests = Sender::new(&hearth, requests);
    let events = Receiver::new(&hearth, event);
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let requests = requests.clone();
            tokio::spawn(async move {
                let (reply, answer) = tokio::sync::oneshot::channel();
                requests.send((number, reply)).await.unwrap();
                assert_eq!(answer.await, Ok(number * 2));
            })
        })
        .collect();
    for _ in 0..20 {
        assert!(events.recv().await.unwrap().starts_with("served"));
    }
    for task in tasks {
        task.await.unwrap();
    }
    drop(requests);
    assert_eq!(server.await, Ok(20));
    assert_eq!(events.recv().await, Err(ReceiverError::Disconnected));
}

#[tokio::test]
async fn timeouts_lose_nothing() {
    let hearth = start();
    let (out, into) = channel::<i32>();
    let receiver = Receiver::new(&hearth, into);
    let early = tokio::time::timeout(Duration::from_millis(5), receiver.recv()).await;
    assert!(early.is_err());
    let sender = Sender::new(&hearth, out);
    for number in 0..50 {
        let send = sender.send(number);
        let receive = async {
            loop {
                let some = tokio::time::timeout(Duration::from_micros(50), receiver.recv()).await;
                if let Ok(value) = some {
                    return value;
                }
            }
        };
        let (sent, received) = tokio::join!(send, receive);
        assert_eq!(sent, Ok(()));
        assert_eq!(received, Ok(number));
    }
}

#[tokio::test]
async fn components_await_timers_while_they_receive() {
    let hearth = start();
    let (out, into) = channel::<i32>();
    let context = tokio::runtime::Handle::current();
    let component = hearth.spawn(async move {
        let mut ticks = 0;
        loop {
            let timer = {
                let _context = context.enter();
                tokio::time::sleep(Duration::from_millis(1))
            };
            tokio::select! {
                value = into.recv() => return (ticks, value),
                () = timer => ticks += 1,
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    Sender::new(&hearth, out).send(9).await.unwrap();
    let (ticks, value) = component.await.unwrap();
    assert_eq!(value, Ok(9));
    assert!(ticks > 0);
}
