//! Servers that may run on the worker of their caller. Every request is answered, and a panic, a
//! stop or a client that leaves harms nobody else. The file that includes this says where the
//! servers run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use hearth::error::JoinError;
use hearth::{Component, Hearth, In, Out, Placement, block_on, channel};

/// The longest that a server may stay on one worker though two call it.
const LONG: Duration = Duration::from_secs(60);
const CLIENTS: usize = 8;

fn hearth() -> Hearth {
    Hearth::builder()
        .workers(2)
        .placement(Placement::Spread)
        .servers(crate::way(module_path!()))
        .start()
        .unwrap()
}

/// A request: the number of the client, and its number among those of the client.
type Request = (usize, u64);

/// The server's ends.
struct Counter {
    asked: In<Request>,
    answers: Vec<Out<u64>>,
}

/// The client's ends.
struct Client {
    ask: Out<Request>,
    answered: In<u64>,
}

fn wired() -> (Counter, Vec<Client>) {
    let asked = In::new();
    let mut answers = Vec::new();
    let clients = (0..CLIENTS).map(|_| {
        let ask = Out::new();
        ask.connect(&asked).unwrap();
        let (answer, answered) = channel();
        answers.push(answer);
        Client { ask, answered }
    });
    let clients = clients.collect();
    (Counter { asked, answers }, clients)
}

/// Report of a server at its end: the number of requests, and the threads it ran on.
type Told = (u64, BTreeSet<String>);

fn name_of(thread: ThreadId) -> String {
    format!("{thread:?}")
}

/// Counts requests until all clients are gone. Those of a client must come in order.
fn serve(hearth: &Hearth, counter: Counter, was_moved: Arc<AtomicBool>) -> Component<Told> {
    hearth.component("Counter").spawn(async move {
        let (mut count, mut next) = (0, [0; CLIENTS]);
        let mut threads = BTreeSet::new();
        while let Ok((who, number)) = counter.asked.recv().await {
            assert_eq!(number, next[who], "of client {who}");
            next[who] += 1;
            count += 1;
            threads.insert(name_of(thread::current().id()));
            was_moved.store(threads.len() > 1, Ordering::Relaxed);
            if counter.answers[who].send(count).await.is_err() {
                continue;
            }
        }
        (count, threads)
    })
}

#[test]
fn a_server_goes_to_its_callers_and_answers_all() {
    let hearth = hearth();
    let (counter, clients) = wired();
    let was_moved = Arc::new(AtomicBool::new(false));
    let server = serve(&hearth, counter, Arc::clone(&was_moved));
    let start = Instant::now();
    let clients: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(who, client)| {
            let was_moved = Arc::clone(&was_moved);
            hearth.component("Client").spawn(async move {
                let (mut asked, mut last) = (0, 0);
                while asked < 1_000 || !was_moved.load(Ordering::Relaxed) {
                    assert!(start.elapsed() < LONG, "the server stays where it is");
                    client.ask.send((who, asked)).await.unwrap();
                    let answer = client.answered.recv().await.unwrap();
                    assert!(answer > last, "answers are counted");
                    last = answer;
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    let asked: u64 = clients.into_iter().map(|one| block_on(one).unwrap()).sum();
    let (count, threads) = block_on(server).unwrap();
    assert_eq!(count, asked);
    assert!(threads.len() > 1, "{threads:?}");
}

#[test]
fn clients_of_a_server_that_panics_are_told() {
    let hearth = hearth();
    let (counter, clients) = wired();
    let server = hearth.component("Fragile").spawn(async move {
        for _ in 0..500 {
            let (who, number) = counter.asked.recv().await.unwrap();
            let _ = counter.answers[who].send(number).await;
        }
        panic!("the five hundredth");
    });
    let answered = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(who, client)| {
            let answered = Arc::clone(&answered);
            hearth.component("Client").spawn(async move {
                for number in 0.. {
                    if client.ask.send((who, number)).await.is_err()
                        || client.answered.recv().await.is_err()
                    {
                        return;
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    assert!(matches!(block_on(server), Err(JoinError::Panicked { .. })));
    for client in clients {
        block_on(client).unwrap();
    }
    assert!(answered.load(Ordering::Relaxed) <= 500);
}

#[test]
fn a_server_is_stopped_and_clients_go_on() {
    let hearth = hearth();
    let (counter, clients) = wired();
    let was_moved = Arc::new(AtomicBool::new(false));
    let server = serve(&hearth, counter, Arc::clone(&was_moved));
    let clients: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(who, client)| {
            hearth.component("Client").spawn(async move {
                let mut asked = 0;
                while client.ask.send((who, asked)).await.is_ok()
                    && client.answered.recv().await.is_ok()
                {
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    let start = Instant::now();
    while !was_moved.load(Ordering::Relaxed) {
        assert!(start.elapsed() < LONG, "the server stays where it is");
        thread::sleep(Duration::from_millis(1));
    }
    server.stop();
    assert!(matches!(block_on(server), Err(JoinError::Stopped)));
    for client in clients {
        block_on(client).unwrap();
    }
}

#[test]
fn a_client_that_is_stopped_or_leaves_harms_nobody() {
    let hearth = hearth();
    for _ in 0..20 {
        let (counter, clients) = wired();
        let server = serve(&hearth, counter, Arc::default());
        let clients: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(who, client)| {
                hearth.component("Client").spawn(async move {
                    for number in 0..(100 * who as u64) {
                        client.ask.send((who, number)).await.unwrap();
                        client.answered.recv().await.unwrap();
                    }
                })
            })
            .collect();
        clients[CLIENTS - 1].stop();
        for client in clients {
            let _ = block_on(client);
        }
        block_on(server).unwrap();
    }
}
