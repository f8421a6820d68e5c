//! Many increments while the mode changes all the time: none is lost and none is made twice.
//!
//! A billion with `HEARTH_TEST_DEEP` in a release build, otherwise some hundred thousand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hearth_sync::{
    Administrator, Drain, LockKind, Mode, Order, Owned, Queue, Reply, RequestError, Sharded, Wait,
};

const CLIENTS: u64 = 4;
const ALL: u64 = 240_000;
const DEEP: u64 = 1_000_000_000;
/// Increments by one thread between two calls that read the counter.
const STRIDE: u64 = 16;

fn increments() -> u64 {
    match std::env::var_os("HEARTH_TEST_DEEP") {
        Some(_) => DEEP,
        None => ALL,
    }
}

/// Changes the mode until it is told to stop.
fn change_modes(set: impl Fn(Mode), end: &AtomicBool) {
    for (changes, mode) in Mode::ALL.iter().cycle().enumerate() {
        set(*mode);
        // Each mode has to serve some increments before the next one.
        for _ in 0..1 << (changes % 8) {
            thread::yield_now();
        }
        if end.load(Ordering::Relaxed) {
            break;
        }
    }
}

/// One client: it posts most increments and calls some, and each call sees all its earlier ones.
fn add(sum: &Owned<Sums>, client: usize, count: u64) {
    let mut done = 0;
    while done < count {
        let step = STRIDE.min(count - done);
        for _ in 1..step {
            sum.post(move |sums| sums.add(client));
        }
        done += step;
        let seen = sum.call(move |sums| {
            sums.add(client);
            sums.of[client]
        });
        assert_eq!(seen, done, "client {client}");
    }
}

#[derive(Default)]
struct Sums {
    all: u64,
    of: [u64; CLIENTS as usize],
}

impl Sums {
    fn add(&mut self, client: usize) {
        self.all += 1;
        self.of[client] += 1;
    }
}

fn adds_up(sum: &Owned<Sums>, increments: u64) {
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let changer = scope.spawn(|| {
            let set = |mode| sum.set_mode(mode).expect("a thread can be started");
            change_modes(set, &end)
        });
        let clients: Vec<_> = (0..CLIENTS as usize)
            .map(|client| scope.spawn(move || add(sum, client, increments / CLIENTS)))
            .collect();
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        end.store(true, Ordering::Relaxed);
        changer.join().unwrap();
    });
    assert_eq!(sum.call(|sums| sums.all), increments);
    assert_eq!(sum.statistics().panics, 0);
}

#[test]
fn every_increment_is_made_once_while_the_mode_changes() {
    let sum = Owned::builder().depth(64).build(Sums::default()).unwrap();
    adds_up(&sum, increments());
    assert_eq!(sum.statistics().calls, increments() + 1);
}

/// A smaller run for every queue, lock, order and drain.
#[test]
fn the_choices_lose_nothing_either() {
    for queue in Queue::ALL {
        for lock in LockKind::ALL {
            for (order, drain) in [(Order::Arrival, Drain::One), (Order::Key, Drain::All)] {
                let sum = Owned::builder()
                    .queue(queue)
                    .lock(lock)
                    .order(order)
                    .drain(drain)
                    .build(Sums::default())
                    .unwrap();
                adds_up(&sum, 4_000);
            }
        }
    }
}

#[test]
fn parts_add_up() {
    const PARTS: u64 = 3;
    let parts = Sharded::build(PARTS as usize, |_| Owned::builder(), |_| 0u64).unwrap();
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let changer = scope.spawn(|| {
            change_modes(
                |mode| parts.set_mode(mode).expect("a thread can be started"),
                &end,
            )
        });
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let parts = &parts;
                scope.spawn(move || {
                    (0..5_000u64).for_each(|key| parts.post_keyed(&key, |part| *part += 1));
                })
            })
            .collect();
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        end.store(true, Ordering::Relaxed);
        changer.join().unwrap();
    });
    let sums = parts
        .into_shards()
        .into_iter()
        .map(|part| part.into_inner().unwrap());
    assert_eq!(sums.sum::<u64>(), CLIENTS * 5_000);
}

/// Sections that end while some wait for replies, some answer them, and some give up: nobody waits
/// for ever, and an answer that arrives is the right one. A hang is the failure.
#[test]
fn answers_race_with_the_end() {
    let rounds = if increments() == DEEP { 100_000 } else { 500 };
    for round in 0..rounds {
        let mode = [Mode::Lock, Mode::Combine, Mode::Message][round % 3];
        // Both kinds of waiters: those that sleep at once, and those that spin first.
        let wait = [Wait::park(), Wait::default()][round % 2];
        let section = Owned::builder().mode(mode).wait(wait);
        let owner = Administrator::build(section, Vec::<(u64, Reply<u64>)>::new(), 0)
            .expect("a thread can be started");
        thread::scope(|scope| {
            for number in 0..CLIENTS {
                let owner = &owner;
                let keep = move |kept: &mut Vec<_>, reply| kept.push((number, reply));
                scope.spawn(move || {
                    match owner.request(keep) {
                        Ok(answer) => assert_eq!(answer, number),
                        Err(RequestError::Ended | RequestError::Refused(_)) => (),
                        Err(error) => panic!("round {round}, {mode:?}: {error}"),
                    }
                    // A waiter that gives up.
                    drop(owner.request_later(keep));
                });
            }
            let answers = scope.spawn(|| {
                while let Ok(replies) = owner.owned().checked_call(std::mem::take) {
                    for (number, reply) in replies {
                        reply.send(number);
                    }
                }
            });
            for _ in 0..round % 16 {
                thread::yield_now();
            }
            owner.owned().close();
            answers.join().expect("it ends when the section does");
        });
        let data = owner.owned().clone();
        drop(owner);
        let left = data.into_inner().expect("there is one handle");
        assert!(left.iter().all(|(_, reply)| reply.is_abandoned()));
    }
}
