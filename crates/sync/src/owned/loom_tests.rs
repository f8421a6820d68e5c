//! Sections under the model checker: requests and answers, sleep and waking, changes of the way,
//! death of the proprietor.
//!
//! The proprietor is the real one, on a thread of the model; the ways in, the mailboxes, the ring
//! and the mutex are real too. Every thread sleeps after one look. Not covered: threads that come
//! and go, more than two clients, other locks (which have their own models), and closures that
//! panic.

use std::sync::Arc;

use super::builder::Builder;
use super::shared::{CLOSED, ENDING, Shared};
use super::*;
use crate::{Copying, Queue, Wait};

const PREEMPTIONS: usize = 2;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

fn section(way: Way, queue: Queue, depth: u32) -> Arc<Shared<Vec<u32>>> {
    let options = Builder::<Vec<u32>>::new()
        .wait(Wait::park())
        .proprietor_wait(Wait::park())
        .queue(queue)
        .clients(2)
        .depth(depth)
        .options;
    let shared = Shared::new(Vec::new(), options, way);
    shared.mailboxes();
    Arc::new(shared)
}

/// A thread of the model, with a number for its mailbox.
fn spawn<R: 'static>(
    number: u32,
    work: impl FnOnce() -> R + 'static,
) -> loom::thread::JoinHandle<R> {
    loom::thread::spawn(move || {
        crate::thread::MODELLED.with(|it| it.set(Some(number)));
        work()
    })
}

fn proprietor(shared: &Arc<Shared<Vec<u32>>>) -> loom::thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    loom::thread::spawn(move || proprietor::serve(&shared))
}

fn push(shared: &Shared<Vec<u32>>, value: u32) -> Result<usize, CallError> {
    shared.call(0, move |data| {
        data.push(value);
        data.len()
    })
}

fn post(shared: &Shared<Vec<u32>>, value: u32) {
    shared
        .post(0, move |data: &mut Vec<u32>| data.push(value))
        .unwrap();
}

fn close(shared: &Shared<Vec<u32>>) {
    shared.front.control.fetch_or(CLOSED, Ordering::AcqRel);
    shared.wake_proprietor();
}

/// One client asks, others close: every request is served or refused, and the proprietor ends.
#[test]
fn loom_a_request_wakes_the_proprietor_and_its_answer_the_client() {
    for queue in [Queue::Lines, Queue::Ring(Copying::Single)] {
        check(move || {
            let shared = section(Way::Message, queue, 1);
            let owner = proprietor(&shared);
            crate::thread::MODELLED.with(|it| it.set(Some(0)));
            assert_eq!(push(&shared, 7), Ok(1));
            close(&shared);
            owner.join().unwrap();
        });
    }
}

#[test]
fn loom_two_clients_are_both_served() {
    check(|| {
        let shared = section(Way::Message, Queue::Lines, 1);
        let owner = proprietor(&shared);
        let other = spawn(1, {
            let shared = Arc::clone(&shared);
            move || push(&shared, 1).unwrap()
        });
        crate::thread::MODELLED.with(|it| it.set(Some(0)));
        let mine = push(&shared, 0).unwrap();
        assert_eq!(mine + other.join().unwrap(), 3);
        close(&shared);
        owner.join().unwrap();
    });
}

/// A post by message and then a call under the lock run in that order, whichever thread serves the
/// first.
#[test]
fn loom_order_is_kept_while_the_way_changes() {
    for (queue, next) in [
        (Queue::Lines, Way::Lock),
        (Queue::Lines, Way::Combine),
        (Queue::Ring(Copying::Zero), Way::Lock),
        (Queue::Ring(Copying::Double), Way::Combine),
    ] {
        check(move || {
            let shared = section(Way::Message, queue, 1);
            let owner = proprietor(&shared);
            crate::thread::MODELLED.with(|it| it.set(Some(0)));
            post(&shared, 1);
            shared.set_way(next);
            assert_eq!(push(&shared, 2), Ok(2));
            assert_eq!(shared.call(0, |data| data.clone()), Ok(vec![1, 2]));
            close(&shared);
            owner.join().unwrap();
        });
    }
}

/// Another thread changes the way during a call.
#[test]
fn loom_nothing_is_lost_while_another_changes_the_way() {
    for next in [Way::Lock, Way::Combine] {
        check(move || {
            let shared = section(Way::Message, Queue::Lines, 1);
            let owner = proprietor(&shared);
            let other = spawn(1, {
                let shared = Arc::clone(&shared);
                move || {
                    shared.set_way(next);
                    push(&shared, 1).unwrap()
                }
            });
            crate::thread::MODELLED.with(|it| it.set(Some(0)));
            let mine = push(&shared, 0).unwrap();
            assert_eq!(mine + other.join().unwrap(), 3);
            close(&shared);
            owner.join().unwrap();
        });
    }
}

#[test]
fn loom_combining_serves_all() {
    check(|| {
        let shared = section(Way::Combine, Queue::Lines, 1);
        let other = spawn(1, {
            let shared = Arc::clone(&shared);
            move || push(&shared, 1).unwrap() + push(&shared, 1).unwrap()
        });
        crate::thread::MODELLED.with(|it| it.set(Some(0)));
        let mine = push(&shared, 0).unwrap() + push(&shared, 0).unwrap();
        assert_eq!(mine + other.join().unwrap(), 10);
    });
}

/// The proprietor dies at any moment: each client was served before or gets an error.
#[test]
fn loom_death_is_told_to_all() {
    for queue in [Queue::Lines, Queue::Ring(Copying::Zero)] {
        check(move || {
            let shared = section(Way::Message, queue, 2);
            let other = spawn(1, {
                let shared = Arc::clone(&shared);
                move || shared.die()
            });
            crate::thread::MODELLED.with(|it| it.set(Some(0)));
            let _ = shared.post(0, |data: &mut Vec<u32>| data.push(1));
            assert_eq!(push(&shared, 2), Err(CallError::OwnerDied));
            other.join().unwrap();
        });
    }
}

/// A section ends while its proprietor serves: the hook is called once all is served, and not if
/// only the handles go.
#[test]
fn loom_the_end_is_told_when_all_is_served() {
    for is_told in [true, false] {
        check(move || {
            let shared = section(Way::Message, Queue::Lines, 1);
            let owner = proprietor(&shared);
            crate::thread::MODELLED.with(|it| it.set(Some(0)));
            post(&shared, 1);
            let ended = Arc::clone(&shared.front.ending);
            if is_told {
                shared.front.control.fetch_or(ENDING, Ordering::Relaxed);
            }
            close(&shared);
            owner.join().unwrap();
            assert!(!shared.has_open_request());
            assert_eq!(ended.is_over(), is_told);
        });
    }
}

/// A section closes while a client asks: the request is served or refused, and the proprietor ends.
#[test]
fn loom_a_late_request_is_not_forgotten() {
    check(|| {
        let shared = section(Way::Message, Queue::Lines, 1);
        let owner = proprietor(&shared);
        let other = spawn(1, {
            let shared = Arc::clone(&shared);
            move || close(&shared)
        });
        crate::thread::MODELLED.with(|it| it.set(Some(0)));
        match push(&shared, 1) {
            Ok(length) => assert_eq!(length, 1),
            Err(error) => assert_eq!(error, CallError::OwnerDied),
        }
        other.join().unwrap();
        owner.join().unwrap();
    });
}
