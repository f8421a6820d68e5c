//! A pending answer: one end gives it, the other waits for it.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use thiserror::Error;

use crate::Wait;
use crate::request::drop_quietly;
use hearth_atomics::Ordering;
use hearth_sys::futex::Word;
use hearth_sys::threading::{Mutex, MutexGuard};

const OPEN: u32 = 0;
/// Open, and a thread sleeps.
const AWAITED: u32 = 1;
/// Answered, or never to be answered.
const CLOSED: u32 = 2;

/// | field | writer | reader |
/// |---|---|---|
/// | `state` | OPEN → AWAITED: the waiter. → CLOSED: the end that answers or drops, once | both |
/// | `value` | the end that answers, before CLOSED | the waiter, after it |
///
/// Wakers are foreign code, which may do anything, such as answer this very request: none is
/// cloned, woken or dropped while `value` is locked.
struct Shared<R> {
    state: Word,
    value: Mutex<Value<R>>,
    wait: Wait,
}

struct Value<R> {
    answer: Option<R>,
    /// Waker of a task that waits.
    waker: Option<Waker>,
}

impl<R> Shared<R> {
    fn value(&self) -> MutexGuard<'_, Value<R>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right, and the duty, to answer a request. Dropping it unanswered tells the caller that there
/// will be no answer.
#[must_use = "dropping a reply tells the caller that there is no answer"]
pub struct Reply<R> {
    shared: Arc<Shared<R>>,
}

/// An answer to come. Wait for it with [`wait`](Answer::wait), or await it as a future.
#[must_use = "an answer that nobody waits for is lost"]
pub struct Answer<R> {
    shared: Arc<Shared<R>>,
}

/// The reply was dropped without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the request was served and its reply dropped without an answer; every way through its \
     closure, and whoever the reply is given to, must call `send`"
)]
pub struct Unanswered;

impl<R> Reply<R> {
    /// Makes both ends. The waiting end waits as `wait` says.
    pub fn new(wait: Wait) -> (Reply<R>, Answer<R>) {
        let shared = Arc::new(Shared {
            state: Word::new(OPEN),
            value: Mutex::new(Value {
                answer: None,
                waker: None,
            }),
            wait,
        });
        let reply = Reply {
            shared: Arc::clone(&shared),
        };
        (reply, Answer { shared })
    }

    /// Answers; never waits. A panic of a waker goes to the panic hook and is otherwise lost.
    pub fn send(self, answer: R) {
        self.shared.value().answer = Some(answer);
    }

    /// True if the caller has stopped waiting, so that an answer would be lost.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        let shared = &self.shared;
        // Release: the answer is there, or none will come.
        if shared.state.swap(CLOSED, Ordering::AcqRel) == AWAITED {
            shared.state.wake_all();
        }
        // After the word: a task that stores its waker later sees the word, through the lock.
        let waker = shared.value().waker.take();
        if let Some(waker) = waker {
            // A panicking waker is not the fault of the answering thread, which may be unwinding
            // already.
            drop_quietly(catch_unwind(AssertUnwindSafe(|| waker.wake())));
        }
    }
}

impl<R> Answer<R> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// There will be none.
    pub fn wait(self) -> Result<R, Unanswered> {
        let state = &self.shared.state;
        // Acquire, here and below, pairs with the Release of the answering end.
        let is_closed = || state.load(Ordering::Acquire) == CLOSED;
        if !self.shared.wait.until(is_closed)
            && state
                .compare_exchange(OPEN, AWAITED, Ordering::Acquire, Ordering::Acquire)
                .is_ok()
        {
            while !is_closed() {
                state.wait(AWAITED);
            }
        }
        self.shared.value().answer.take().ok_or(Unanswered)
    }

    /// Takes the answer if it is there.
    ///
    /// # Errors
    /// There is none yet; the right to it comes back.
    pub fn try_take(self) -> Result<Result<R, Unanswered>, Answer<R>> {
        match self.shared.state.load(Ordering::Acquire) {
            CLOSED => Ok(self.wait()),
            _ => Err(self),
        }
    }
}

impl<R> Future for Answer<R> {
    type Output = Result<R, Unanswered>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = &self.shared;
        // Acquire, here and below, pairs with the Release of the answering end.
        if shared.state.load(Ordering::Acquire) != CLOSED {
            let waker = context.waker().clone();
            // Before the second look at the word: the answering end takes the waker after it has
            // written the word, under the same lock. So either it finds this waker, or this thread
            // finds CLOSED.
            let before = shared.value().waker.replace(waker);
            drop(before);
            if shared.state.load(Ordering::Acquire) != CLOSED {
                return Poll::Pending;
            }
        }
        Poll::Ready(shared.value().answer.take().ok_or(Unanswered))
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Answer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;

    use super::*;

    /// A task that is woken once is polled again.
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// However answer and poll race, the task has its answer or is woken.
    #[test]
    fn loom_a_task_that_waits_is_woken() {
        for is_answered in [true, false] {
            loom::model(move || {
                let (reply, answer) = Reply::new(Wait::park());
                let answering = loom::thread::spawn(move || {
                    if is_answered {
                        reply.send(3);
                    } else {
                        drop(reply);
                    }
                });
                let woken = Arc::new(Woken(AtomicBool::new(false)));
                let waker = Waker::from(Arc::clone(&woken));
                let mut context = Context::from_waker(&waker);
                let mut answer = Box::pin(answer);
                let first = answer.as_mut().poll(&mut context);
                answering.join().unwrap();
                let result = match first {
                    Poll::Ready(result) => result,
                    Poll::Pending => {
                        assert!(woken.0.load(Ordering::Relaxed), "nobody polls again");
                        let Poll::Ready(result) = answer.as_mut().poll(&mut context) else {
                            panic!("it is answered");
                        };
                        result
                    }
                };
                assert_eq!(result.ok(), is_answered.then_some(3));
            });
        }
    }

    /// A task that has moved polls again with another waker, and that one is woken.
    #[test]
    fn loom_a_task_that_asks_again_is_woken_by_its_last_waker() {
        loom::model(|| {
            let (reply, mut answer) = Reply::new(Wait::park());
            let answering = loom::thread::spawn(move || reply.send(3));
            let mut poll = |woken: &Arc<Woken>| {
                let waker = Waker::from(Arc::clone(woken));
                Pin::new(&mut answer).poll(&mut Context::from_waker(&waker))
            };
            let wakers = [(); 2].map(|()| Arc::new(Woken(AtomicBool::new(false))));
            let is_over = wakers.iter().any(|woken| poll(woken).is_ready());
            answering.join().unwrap();
            if !is_over {
                assert!(wakers[1].0.load(Ordering::Relaxed), "nobody polls again");
                assert!(poll(&wakers[1]).is_ready());
            }
        });
    }
}
