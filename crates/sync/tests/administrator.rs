//! Requests that are answered later, by other calls, or never.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use hearth_sync::{
    Administrator, Answer, CallError, Mode, Owned, Reply, RequestError, Sharded, Unanswered, Wait,
    Workers,
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
        // By message the proprietor drops the data, before this thread looks or after it has seen
        // that the section is closed.
        assert!(kept.wait().is_err());
    }
}

/// Ways in which a section ends while it has handles.
#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    /// Its proprietor dies of a payload that panics when it is dropped.
    Died,
}

impl End {
    fn come<T: Send + 'static>(self, section: &Owned<T>) {
        match self {
            End::Closed => section.close(),
            End::Died => section.post(|_| std::panic::panic_any(Bomb)),
        }
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload that panics when it is dropped");
    }
}

const ENDS: [(Mode, End); 4] = [
    (Mode::Lock, End::Closed),
    (Mode::Combine, End::Closed),
    (Mode::Message, End::Closed),
    (Mode::Message, End::Died),
];

/// However a caller waits, and whether it waits before the end or only after it.
#[test]
fn the_end_of_the_section_ends_the_waiting_for_replies_in_its_data() {
    for wait in [Wait::park(), Wait::spin()] {
        for (mode, end) in ENDS {
            let section = Owned::builder().mode(mode).wait(wait);
            let owner = Administrator::build(section, Vec::new(), 0).unwrap();
            let keep = |kept: &mut Vec<Reply<u32>>, reply| kept.push(reply);
            let late = owner.request_later(keep).unwrap();
            let mut task = owner.request_later(keep).unwrap();
            let (woken, wakes) = channel();
            let waker = Waker::from(Arc::new(Tells(woken)));
            let mut context = Context::from_waker(&waker);
            let mut poll = |task: &mut Answer<u32>| Pin::new(task).poll(&mut context);
            assert_eq!(poll(&mut task), Poll::Pending);
            thread::scope(|scope| {
                let waiter = scope.spawn(|| owner.request(keep));
                while owner.owned().call(|kept| kept.len()) < 3 {
                    thread::yield_now();
                }
                end.come(owner.owned());
                let result = waiter.join().unwrap();
                assert_eq!(result, Err(RequestError::Ended), "{mode} {end:?}");
            });
            wakes.recv().expect("the task is woken");
            assert_eq!(poll(&mut task), Poll::Ready(Err(Unanswered::Ended)));
            assert_eq!(late.try_take().unwrap(), Err(Unanswered::Ended));
            // The replies are still there, and nobody waits for them.
            let kept = owner.owned().clone();
            drop((owner, task));
            for reply in kept.into_inner().unwrap() {
                assert!(reply.is_abandoned());
                reply.send(1);
            }
        }
    }
}

struct Tells(std::sync::mpsc::Sender<()>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

/// Requests made before the section is closed are served, and may be answered at once.
#[test]
fn what_was_asked_before_the_end_is_answered() {
    let owner = administrator(Mode::Message, 0u32, 0);
    let (open, gate) = channel();
    owner.owned().post(move |_| gate.recv().unwrap());
    let answer = owner.request_later(|_, reply| reply.send(5)).unwrap();
    owner.owned().close();
    let answer = answer.try_take().expect_err("the proprietor is busy");
    open.send(()).unwrap();
    assert_eq!(answer.wait(), Ok(5));
}

/// The last handle may go while workers have replies: their answers arrive.
#[test]
fn workers_answer_after_the_last_handle_has_gone() {
    for mode in MODES {
        let owner = administrator(mode, 0u32, 1);
        let (open, gate) = channel::<()>();
        let workers = owner.workers().clone();
        let answer = owner.request_later(move |_, reply| {
            workers.run(move || {
                gate.recv().unwrap();
                reply.send(6);
            });
        });
        drop(owner);
        open.send(()).unwrap();
        assert_eq!(answer.unwrap().wait(), Ok(6));
    }
}

/// Each is called once, at the end or at once after it, unless it was revoked or the data went.
#[test]
fn hooks_are_called_at_the_end() {
    for (mode, end) in ENDS {
        let section = Owned::builder().mode(mode).build(0).unwrap();
        let (tell, told) = channel();
        let hook = |name| {
            let tell = tell.clone();
            section.at_end(move || _ = tell.send(name))
        };
        let _first = hook("first");
        let _bad = section.at_end(|| panic!("a hook that panics"));
        drop(hook("revoked"));
        let _second = hook("second");
        assert!(told.try_recv().is_err());
        end.come(&section);
        assert_eq!([told.recv(), told.recv()], [Ok("first"), Ok("second")]);
        let _late = hook("late");
        assert_eq!(told.try_recv(), Ok("late"), "{mode} {end:?}");
        section.close();
        section.into_inner().unwrap();
        assert!(told.try_recv().is_err());
    }
    for mode in MODES {
        let section = Owned::builder().mode(mode).build(0).unwrap();
        let (tell, told) = channel::<()>();
        let hook = section.at_end(move || _ = tell.send(()));
        section.into_inner().unwrap();
        drop(hook);
        assert!(
            told.recv().is_err(),
            "{mode}: it is dropped, and not called"
        );
    }
}

/// A job may panic with any payload.
#[test]
fn a_worker_outlives_its_jobs() {
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
