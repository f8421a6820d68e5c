//! A pending answer: one end gives it, the other waits for it.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use thiserror::Error;

use crate::ending::{EndHook, Ending, Hook};
use crate::request::drop_quietly;
use crate::{Owned, Wait};
use hearth_atomics::Ordering;
use hearth_sys::futex::Word;
use hearth_sys::threading::{Mutex, MutexGuard};

const OPEN: u32 = 0;
/// Open, and a thread sleeps.
const AWAITED: u32 = 1;
/// The section has ended before the reply did.
const ENDED: u32 = 2;
/// Answered, or never to be answered.
const CLOSED: u32 = 3;

/// | field | writer | reader |
/// |---|---|---|
/// | `state` | OPEN → AWAITED: the waiter. → CLOSED: the end that answers or drops. → ENDED: the section's end. The first of these two stays | all |
/// | `value` | the end that answers, before CLOSED | the waiter, after CLOSED or ENDED |
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

    /// True if there is nothing more to wait for.
    #[inline]
    fn is_over(&self) -> bool {
        // Acquire pairs with the Release in `end`.
        self.state.load(Ordering::Acquire) >= ENDED
    }

    /// Ends the waiting, for this reason, ENDED or CLOSED. The first reason stays.
    fn end(&self, reason: u32) {
        let end = |state| (state <= AWAITED).then_some(reason);
        let state = &self.state;
        // Release: the answer is there, or none will come.
        match state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, end) {
            Ok(AWAITED) => state.wake_all(),
            Ok(_) => (),
            Err(_) => return,
        }
        // After the word: a task that stores its waker later sees the word, through the lock.
        let waker = self.value().waker.take();
        if let Some(waker) = waker {
            // A panicking waker is not the fault of the thread that wakes, which may be unwinding
            // already.
            drop_quietly(catch_unwind(AssertUnwindSafe(|| waker.wake())));
        }
    }

    /// Takes the answer, or the reason why there is none.
    fn take(&self) -> Result<R, Unanswered> {
        // Before the answer: a reply that is sent from here on, when the section has ended, was not
        // dropped. Acquire pairs with the Release in `end`: with CLOSED comes the answer.
        let reason = match self.state.load(Ordering::Acquire) {
            CLOSED => Unanswered::Dropped,
            _ => Unanswered::Ended,
        };
        self.value().answer.take().ok_or(reason)
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
    source: Option<Source<R>>,
    /// While a task waits.
    hook: Option<EndHook>,
}

/// The section that an answer is to come from.
struct Source<R> {
    ending: Arc<Ending>,
    /// Makes a hook that ends the waiting. A pointer, because only an answer that may go to other
    /// threads can have a hook.
    hook: fn(Arc<Shared<R>>) -> Hook,
}

/// Reason why an answer does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unanswered {
    /// The reply was dropped without an answer.
    #[error(
        "the request was served and its reply dropped without an answer; every way through its \
         closure, and whoever the reply is given to, must call `send`"
    )]
    Dropped,
    /// The section was closed, or its proprietor died, before anybody answered.
    #[error(
        "the request was served, and its section was closed or lost its owner before the reply was \
         answered; answer what the data keeps before you close the section"
    )]
    Ended,
}

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
        let answer = Answer {
            shared,
            source: None,
            hook: None,
        };
        (reply, answer)
    }

    /// Answers; never waits. A panic of a waker goes to the panic hook and is otherwise lost.
    pub fn send(self, answer: R) {
        self.shared.value().answer = Some(answer);
    }

    /// True if the caller has stopped waiting, so that an answer would be lost: it has dropped its
    /// end, or the section has ended while it waited.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        self.shared.end(CLOSED);
    }
}

impl<R> Answer<R> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// There will be none.
    pub fn wait(self) -> Result<R, Unanswered> {
        // A thread that spins sees the section's end by itself, and needs no hook.
        if !self.shared.wait.until(|| self.is_over()) {
            self.sleep();
        }
        self.shared.take()
    }

    /// Sleeps until there is nothing more to wait for.
    fn sleep(&self) {
        // First: the section may have ended before, or end from here on.
        let _hook = self.hook();
        let state = &self.shared.state;
        // If it fails, the word is ENDED or CLOSED.
        let slept = state.compare_exchange(OPEN, AWAITED, Ordering::Acquire, Ordering::Acquire);
        while slept.is_ok() && !self.shared.is_over() {
            state.wait(AWAITED);
        }
    }

    /// Takes the answer if it is there.
    ///
    /// # Errors
    /// There is none yet; the right to it comes back.
    pub fn try_take(self) -> Result<Result<R, Unanswered>, Answer<R>> {
        match self.is_over() {
            true => Ok(self.shared.take()),
            false => Err(self),
        }
    }

    /// True if there is nothing more to wait for: the reply is gone, or the section has ended.
    fn is_over(&self) -> bool {
        let has_ended = |source: &Source<R>| source.ending.is_over();
        self.shared.is_over() || self.source.as_ref().is_some_and(has_ended)
    }

    /// Has the section's end, too, end the waiting, until the result is dropped.
    fn hook(&self) -> Option<EndHook> {
        let source = self.source.as_ref()?;
        let hook = (source.hook)(Arc::clone(&self.shared));
        Some(source.ending.hook(hook))
    }
}

impl<R: Send + 'static> Answer<R> {
    /// Makes the end of this section end the waiting, if there is anything to wait for.
    pub(super) fn until_end_of<T: Send + 'static>(mut self, owned: &Owned<T>) -> Answer<R> {
        if self.shared.is_over() {
            return self;
        }
        self.source = Some(Source {
            ending: Arc::clone(owned.ending()),
            hook: |shared| Box::new(move || shared.end(ENDED)),
        });
        self
    }
}

impl<R> Future for Answer<R> {
    type Output = Result<R, Unanswered>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.get_mut();
        if !answer.is_over() {
            let waker = context.waker().clone();
            // Before the second look at the word: the other end, and the section's, take the waker
            // after they have written the word, under the same lock. So either one finds this
            // waker, or this thread finds the word changed.
            let before = answer.shared.value().waker.replace(waker);
            drop(before);
            if answer.hook.is_none() {
                answer.hook = answer.hook();
            }
            if !answer.shared.is_over() {
                return Poll::Pending;
            }
        }
        Poll::Ready(answer.shared.take())
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;

    /// An answer that comes while a thread sees the section's end is in time or late. Loom does not
    /// find the order in which it was taken for a dropped one: it remembers only the last access of
    /// the state.
    #[test]
    fn a_late_answer_was_not_dropped() {
        let ending = Arc::new(Ending::new());
        ending.come();
        let (send, receive) = sync_channel::<Reply<u32>>(0);
        let answering = thread::spawn(move || receive.into_iter().for_each(|reply| reply.send(3)));
        let mut late = 0;
        for _ in 0..30_000 {
            let (reply, mut answer) = Reply::new(Wait::park());
            answer.source = Some(Source {
                ending: Arc::clone(&ending),
                hook: |_| Box::new(|| ()),
            });
            send.send(reply).unwrap();
            match answer.wait() {
                Ok(answer) => assert_eq!(answer, 3),
                Err(reason) => {
                    assert_eq!(reason, Unanswered::Ended);
                    late += 1;
                }
            }
        }
        drop(send);
        answering.join().unwrap();
        assert!(late > 0, "the two never met");
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

    /// A section of its own, whose end comes when the model says so.
    fn answer_of(ending: &Arc<Ending>) -> (Reply<u32>, Answer<u32>) {
        let (reply, mut answer) = Reply::new(Wait::park());
        answer.source = Some(Source {
            ending: Arc::clone(ending),
            hook: |shared| Box::new(move || shared.end(ENDED)),
        });
        (reply, answer)
    }

    /// However answer, end and sleep race, the thread wakes, and has the answer or the reason.
    #[test]
    fn loom_a_thread_that_sleeps_learns_of_answer_and_end() {
        let mut builder = loom::model::Builder::new();
        // Three threads that lock and sleep: without a bound it takes an hour.
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let ending = Arc::new(Ending::new());
            let (reply, answer) = answer_of(&ending);
            let answering = loom::thread::spawn(move || reply.send(3));
            let end = Arc::clone(&ending);
            let ends = loom::thread::spawn(move || end.come());
            let result = answer.wait();
            assert!(matches!(result, Ok(3) | Err(Unanswered::Ended)));
            answering.join().unwrap();
            ends.join().unwrap();
        });
    }

    /// The section ends and the reply stays where it is: a thread wakes, and a task is woken.
    #[test]
    fn loom_the_end_alone_wakes_who_waits() {
        for is_task in [false, true] {
            loom::model(move || {
                let ending = Arc::new(Ending::new());
                let (reply, mut answer) = answer_of(&ending);
                let end = Arc::clone(&ending);
                let ends = loom::thread::spawn(move || end.come());
                if is_task {
                    let woken = Arc::new(Woken(AtomicBool::new(false)));
                    let waker = Waker::from(Arc::clone(&woken));
                    let mut poll = || Pin::new(&mut answer).poll(&mut Context::from_waker(&waker));
                    let first = poll();
                    ends.join().unwrap();
                    assert!(first.is_ready() || woken.0.load(Ordering::Relaxed));
                    assert!(first.is_ready() || poll() == Poll::Ready(Err(Unanswered::Ended)));
                } else {
                    assert_eq!(answer.wait(), Err(Unanswered::Ended));
                    ends.join().unwrap();
                }
                drop(reply);
            });
        }
    }

    /// A task that gives up while its section ends and its reply is answered: nobody is lost, and
    /// the answer is dropped once.
    #[test]
    fn loom_a_waiter_goes_while_answer_and_end_come() {
        loom::model(|| {
            let ending = Arc::new(Ending::new());
            let (reply, mut answer) = answer_of(&ending);
            let woken = Arc::new(Woken(AtomicBool::new(false)));
            let waker = Waker::from(woken);
            let mut context = Context::from_waker(&waker);
            assert_eq!(Pin::new(&mut answer).poll(&mut context), Poll::Pending);
            let end = Arc::clone(&ending);
            let ends = loom::thread::spawn(move || end.come());
            let answering = loom::thread::spawn(move || {
                let shared = Arc::downgrade(&reply.shared);
                reply.send(3);
                shared
            });
            drop(answer);
            ends.join().unwrap();
            let shared = answering.join().unwrap();
            assert!(shared.upgrade().is_none(), "somebody keeps it");
        });
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
