//! An answer on its way: one end gives it, the other waits for it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Wait;
use crate::atomics::{Ordering, Word};

const OPEN: u32 = 0;
/// Open, and somebody sleeps.
const AWAITED: u32 = 1;
/// There is an answer, or there will be none.
const CLOSED: u32 = 2;

/// | field | who writes | who reads |
/// |---|---|---|
/// | `state` | OPEN → AWAITED: who waits. → CLOSED: who answers or drops the reply, once | both |
/// | `value` | who answers, before CLOSED | who waits, after it |
struct Shared<R> {
    state: Word,
    value: Mutex<Value<R>>,
    wait: Wait,
}

struct Value<R> {
    answer: Option<R>,
    /// Of a task that waits.
    waker: Option<Waker>,
}

impl<R> Shared<R> {
    fn value(&self) -> std::sync::MutexGuard<'_, Value<R>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right, and the duty, to answer a request. Dropped without, it tells the caller that there will be no answer.
#[must_use = "dropping a reply tells the caller that there is no answer"]
pub struct Reply<R> {
    shared: Arc<Shared<R>>,
}

/// An answer that was asked for. Wait for it with [`wait`](Answer::wait), or await it as a future.
#[must_use = "an answer that nobody waits for is lost"]
pub struct Answer<R> {
    shared: Arc<Shared<R>>,
}

/// The reply was dropped without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered;

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the request was served and its reply dropped without an answer; every way through its closure, and \
             whoever the reply is given to, must call `send`",
        )
    }
}

impl std::error::Error for Unanswered {}

impl<R> Reply<R> {
    /// Both ends. Who waits does so as `wait` says.
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

    /// Answers. Never waits.
    pub fn send(self, answer: R) {
        self.shared.value().answer = Some(answer);
    }

    /// Has the caller stopped waiting, so that an answer would be lost?
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        let shared = &self.shared;
        let waker = shared.value().waker.take();
        // Release: the answer is there, or none will be.
        if shared.state.swap(CLOSED, Ordering::AcqRel) == AWAITED {
            shared.state.wake_all();
        }
        if let Some(waker) = waker {
            waker.wake();
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
        // Acquire, here and below, pairs with the Release of who answers.
        let is_closed = || state.load(Ordering::Acquire) == CLOSED;
        if !self.shared.wait.look(is_closed)
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

    /// The answer if it is there already; otherwise the right to it comes back.
    ///
    /// # Errors
    /// There is none yet.
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
        let mut value = shared.value();
        if let Some(answer) = value.answer.take() {
            return Poll::Ready(Ok(answer));
        }
        // Under the lock, as the waker is taken under it before the word says CLOSED.
        value.waker = Some(context.waker().clone());
        drop(value);
        if shared.state.load(Ordering::Acquire) != CLOSED {
            return Poll::Pending;
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
