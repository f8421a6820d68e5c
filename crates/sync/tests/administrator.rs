//! Requests that are answered later, by other calls, or never.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use hearth_sync::{
    Administrator, CallError, Mode, Owned, Reply, RequestError, Sharded, Wait, Workers,
};

const MODES: [Mode; 3] = [Mode::Lock, Mode::Combine, Mode::Message];

fn administrator<T: Send + 'static>(mode: Mode, data: T, workers: usize) -> Administrator<T> {
    Administrator::build(Owned::builder().mode(mode), data, workers)
        .expect("threads can be started")
}

/// Each request of a pair is answered when the other arrives.
#[test]
fn a_request_is_answered_by_a_later_one() {
    for mode in MODES {
        let pairs = administrator(mode, BTreeMap::<u32, Reply<u32>>::new(), 0);
        thread::scope(|scope| {
            for number in 0..6u32 {
                let pairs = &pairs;
                scope.spawn(move || {
                    let partner =
                        pairs.request(|waiting, reply| match waiting.remove(&(number / 2)) {
                            None => drop(waiting.insert(number / 2, reply)),
                            Some(other) => {
                                other.send(number);
                                reply.send(number ^ 1);
                            }
                        });
                    assert_eq!(partner, Ok(number ^ 1));
                });
            }
        });
    }
}

#[test]
fn workers_answer_while_others_are_served() {
    for mode in MODES {
        let squares = administrator(mode, 0u64, 2);
        let answers: Vec<_> = (0..20u64)
            .map(|number| {
                let workers = squares.workers().clone();
                squares
                    .request_later(move |served, reply| {
                        *served += 1;
                        workers.run(move || reply.send(number * number));
                    })
                    .unwrap()
            })
            .collect();
        for (number, answer) in (0..).zip(answers) {
            assert_eq!(answer.wait(), Ok(number * number));
        }
        assert_eq!(squares.owned().call(|served| *served), 20);
    }
}

#[test]
fn nobody_waits_for_a_reply_that_is_gone() {
    for mode in MODES {
        let owner = administrator(mode, Vec::new(), 1);
        assert_eq!(
            owner.request(|_, reply: Reply<()>| drop(reply)),
            Err(RequestError::Unanswered)
        );
        // The reply is kept with the data, which is then dropped.
        let kept = owner
            .request_later(|kept: &mut Vec<Reply<u32>>, reply| kept.push(reply))
            .unwrap();
        let kept = kept.try_take().unwrap_err();
        // With a job that panics.
        let workers = owner.workers().clone();
        let lost = owner.request(|_, reply: Reply<()>| {
            workers.run(move || {
                let _reply = reply;
                panic!("a job that fails");
            });
        });
        assert_eq!(lost, Err(RequestError::Unanswered));
        owner.owned().close();
        let refused = owner.request(|_, reply: Reply<()>| reply.send(()));
        assert_eq!(refused, Err(RequestError::Refused(CallError::OwnerDied)));
        drop((owner, workers));
        assert!(kept.wait().unwrap_err().to_string().contains("`send`"));
    }
}

/// A job may panic with any payload.
#[test]
fn a_worker_outlives_its_jobs() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a payload that panics when it is dropped");
        }
    }
    let workers = Workers::start(1).unwrap();
    workers.run(|| std::panic::panic_any(Bomb));
    let (reply, answer) = Reply::new(Wait::park());
    workers.run(move || reply.send(1));
    assert_eq!(answer.wait(), Ok(1));
}

#[test]
fn an_answer_is_a_future() {
    struct Nothing;
    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }
    let waker = Waker::from(Arc::new(Nothing));
    let mut context = Context::from_waker(&waker);
    for is_answered in [true, false] {
        let (reply, answer) = Reply::new(Wait::park());
        let mut answer = Box::pin(answer);
        assert_eq!(answer.as_mut().poll(&mut context), Poll::Pending);
        if is_answered {
            reply.send(3);
        } else {
            drop(reply);
        }
        let Poll::Ready(result) = answer.as_mut().poll(&mut context) else {
            panic!("it is answered");
        };
        assert_eq!(result.ok(), is_answered.then_some(3));
    }
    let (reply, answer) = Reply::<()>::new(Wait::park());
    assert!(!reply.is_abandoned());
    drop(answer);
    assert!(reply.is_abandoned());
}

#[test]
fn keys_stay_with_their_parts() {
    let parts = Sharded::build(3, |_| Owned::builder(), |_| BTreeMap::new()).unwrap();
    for mode in MODES {
        parts.set_mode(mode).unwrap();
        for key in 0..100u32 {
            parts.call_keyed(&key, |part| *part.entry(key).or_insert(0) += 1);
        }
    }
    let parts = parts.into_shards();
    let sizes: Vec<usize> = parts
        .iter()
        .map(|part| part.call(|part| part.len()))
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), 100);
    assert!(sizes.iter().all(|size| *size > 10), "{sizes:?}");
    assert!(
        parts
            .iter()
            .all(|part| part.call(|part| part.values().all(|count| *count == 3)))
    );
}
