//! Half-channels for those who are no components.
//!
//! Behind each stands a component, a *proxy*, that does one operation after another for them. A
//! request is dropped, asked or answered under its lock, so that one that nobody waits for any more
//! is called off, and what came for it goes to the next.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::block_on::block_on;
use crate::channel::{In, Out};
use crate::component::Spawn;
use crate::error::{Error, SendError};
use crate::hearth::Hearth;
use crate::wakers::wake;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is asked of a proxy, and its answer.
struct Request<Q, A> {
    state: Mutex<Asked<Q, A>>,
}

struct Asked<Q, A> {
    question: Option<Q>,
    answer: Option<A>,
    asker: Option<Waker>,
    proxy: Option<Waker>,
    is_dropped: bool,
}

/// Where requests wait for their proxy.
struct Desk<Q, A> {
    state: Mutex<Line<Q, A>>,
    /// An answer that its asker did not wait for is the next one's.
    hands_on: bool,
}

struct Line<Q, A> {
    requests: VecDeque<Arc<Request<Q, A>>>,
    proxy: Option<Waker>,
    /// Answers whose askers were gone when they came.
    left_over: VecDeque<A>,
    askers: usize,
    /// The proxy has ended.
    is_closed: bool,
}

impl<Q, A> Desk<Q, A> {
    fn new(hands_on: bool) -> Arc<Desk<Q, A>> {
        Arc::new(Desk {
            hands_on,
            state: Mutex::new(Line {
                requests: VecDeque::new(),
                proxy: None,
                left_over: VecDeque::new(),
                askers: 1,
                is_closed: false,
            }),
        })
    }

    /// The next request; none when there is nobody to ask any more.
    async fn next(&self) -> Option<Arc<Request<Q, A>>> {
        poll_fn(|context| {
            let mut line = lock(&self.state);
            match line.requests.pop_front() {
                Some(request) => Poll::Ready(Some(request)),
                None if line.askers == 0 => Poll::Ready(None),
                None => {
                    line.proxy = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn change_askers(&self, change: impl FnOnce(&mut usize)) {
        let waker = {
            let mut line = lock(&self.state);
            change(&mut line.askers);
            line.proxy.take()
        };
        wake(waker);
    }
}

/// Held by a proxy: whoever waits when it ends, or comes later, learns of it.
struct Keeper<Q, A>(Arc<Desk<Q, A>>);

impl<Q, A> Drop for Keeper<Q, A> {
    fn drop(&mut self) {
        let left = {
            let mut line = lock(&self.0.state);
            line.is_closed = true;
            std::mem::take(&mut line.requests)
        };
        for request in left {
            request.wake_asker();
        }
    }
}

impl<Q, A> Request<Q, A> {
    fn wake_asker(&self) {
        let waker = lock(&self.state).asker.take();
        wake(waker);
    }

    /// Answers; gives the answer back if nobody waits for it any more.
    fn answer(&self, answer: A) -> Option<A> {
        let waker = {
            let mut asked = lock(&self.state);
            if asked.is_dropped {
                return Some(answer);
            }
            asked.answer = Some(answer);
            asked.asker.take()
        };
        wake(waker);
        None
    }

    /// The proxy's operation; none if nobody waits for it any more.
    async fn unless_dropped<F: Future>(&self, operation: F) -> Option<F::Output> {
        let mut operation = pin!(operation);
        poll_fn(|context| {
            {
                let mut asked = lock(&self.state);
                if asked.is_dropped {
                    return Poll::Ready(None);
                }
                asked.proxy = Some(context.waker().clone());
            }
            operation.as_mut().poll(context).map(Some)
        })
        .await
    }
}

/// Whoever asks, until there is an answer.
struct Asking<'a, Q, A> {
    desk: &'a Desk<Q, A>,
    request: Arc<Request<Q, A>>,
    is_queued: bool,
}

impl<'a, Q, A> Asking<'a, Q, A> {
    fn new(desk: &'a Desk<Q, A>, question: Q) -> Asking<'a, Q, A> {
        let state = Mutex::new(Asked {
            question: Some(question),
            answer: None,
            asker: None,
            proxy: None,
            is_dropped: false,
        });
        Asking {
            desk,
            request: Arc::new(Request { state }),
            is_queued: false,
        }
    }
}

impl<Q, A> Future for Asking<'_, Q, A> {
    /// The question comes back from a proxy that has ended before it looked at it.
    type Output = Result<A, Option<Q>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let _former = {
            let mut asked = lock(&self.request.state);
            if let Some(answer) = asked.answer.take() {
                return Poll::Ready(Ok(answer));
            }
            asked.asker.replace(waker)
        };
        let proxy = {
            let mut line = lock(&self.desk.state);
            if !self.is_queued
                && let Some(answer) = line.left_over.pop_front()
            {
                return Poll::Ready(Ok(answer));
            }
            if line.is_closed {
                let mut asked = lock(&self.request.state);
                // It may have answered last of all.
                return Poll::Ready(asked.answer.take().ok_or_else(|| asked.question.take()));
            }
            if self.is_queued {
                return Poll::Pending;
            }
            line.requests.push_back(Arc::clone(&self.request));
            line.proxy.take()
        };
        self.is_queued = true;
        wake(proxy);
        Poll::Pending
    }
}

impl<Q, A> Drop for Asking<'_, Q, A> {
    fn drop(&mut self) {
        let (proxy, answer) = {
            let mut asked = lock(&self.request.state);
            asked.is_dropped = true;
            (asked.proxy.take(), asked.answer.take())
        };
        if let Some(answer) = answer
            && self.desk.hands_on
        {
            lock(&self.desk.state).left_over.push_back(answer);
        }
        wake(proxy);
    }
}

type Sending<T> = Desk<T, Result<(), SendError<T>>>;
type Receiving<T> = Desk<(), Result<T, Error>>;

/// An out half-channel for async code that is no component, and for threads.
///
/// ```
/// use hearth::{Error, Hearth, Sender, block_on, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel::<i32>();
/// let doubled = hearth.spawn(async move { into.recv().await.map(|n| 2 * n) });
/// let sender = Sender::new(&hearth, out);
/// sender.send_blocking(4)?;
/// assert_eq!(block_on(doubled)?, Ok(8));
/// # Ok::<(), Error>(())
/// ```
pub struct Sender<T: Send + 'static> {
    desk: Arc<Sending<T>>,
}

impl<T: Send + 'static> Sender<T> {
    /// Makes one of an out half-channel.
    #[track_caller]
    pub fn new(_hearth: &Hearth, out: Out<T>) -> Sender<T> {
        let desk: Arc<Sending<T>> = Desk::new(false);
        let keeper = Keeper(Arc::clone(&desk));
        proxy(Location::caller()).spawn(async move {
            while let Some(request) = keeper.0.next().await {
                let Some(value) = lock(&request.state).question.take() else {
                    continue;
                };
                if let Some(result) = request.unless_dropped(out.send(value)).await {
                    request.answer(result);
                }
            }
        });
        Sender { desk }
    }

    /// Sends a value: waits until a component receives it. If the future is dropped, the value goes
    /// with it, unless it was received in the same moment.
    ///
    /// ```
    /// # use hearth::{Error, Hearth, Sender, block_on, channel};
    /// # let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// drop(into);
    /// let refused = block_on(Sender::new(&hearth, out).send(1)).unwrap_err();
    /// assert_eq!(refused.value, Some(1));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Out::send`].
    pub async fn send(&self, value: T) -> Result<(), SendError<T>> {
        match Asking::new(&self.desk, value).await {
            Ok(result) => result,
            Err(value) => Err(SendError {
                reason: Error::Stopped,
                value,
            }),
        }
    }

    /// The same on a thread, which sleeps meanwhile.
    ///
    /// # Errors
    /// As for [`Out::send`].
    ///
    /// # Panics
    /// In a component.
    pub fn send_blocking(&self, value: T) -> Result<(), SendError<T>> {
        block_on(self.send(value))
    }
}

impl<T: Send + 'static> std::fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// A second hand on the same half-channel.
impl<T: Send + 'static> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.desk.change_askers(|askers| *askers += 1);
        Sender {
            desk: Arc::clone(&self.desk),
        }
    }
}

impl<T: Send + 'static> Drop for Sender<T> {
    fn drop(&mut self) {
        self.desk.change_askers(|askers| *askers -= 1);
    }
}

/// An in half-channel for async code that is no component, and for threads.
///
/// ```
/// use hearth::{Error, Hearth, Receiver, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel::<i32>();
/// hearth.spawn(async move { out.send(3).await });
/// let receiver = Receiver::new(&hearth, into);
/// assert_eq!(receiver.recv_blocking(), Ok(3));
/// assert_eq!(receiver.recv_blocking(), Err(Error::Disconnected));
/// # Ok::<(), Error>(())
/// ```
pub struct Receiver<T: Send + 'static> {
    desk: Arc<Receiving<T>>,
}

impl<T: Send + 'static> Receiver<T> {
    /// Makes one of an in half-channel.
    #[track_caller]
    pub fn new(_hearth: &Hearth, into: In<T>) -> Receiver<T> {
        let desk: Arc<Receiving<T>> = Desk::new(true);
        let keeper = Keeper(Arc::clone(&desk));
        proxy(Location::caller()).spawn(async move {
            // What came for somebody who had left by then.
            let mut kept = None;
            while let Some(request) = keeper.0.next().await {
                if lock(&request.state).question.take().is_none() {
                    continue;
                }
                let result = match kept.take() {
                    Some(result) => Some(result),
                    None => request.unless_dropped(into.recv()).await,
                };
                kept = result.and_then(|result| request.answer(result));
            }
        });
        Receiver { desk }
    }

    /// Receives a value: waits until a component sends one. If the future is dropped, no value is
    /// lost: one that came is the next one's.
    ///
    /// ```
    /// # use hearth::{Error, Hearth, Receiver, block_on, channel};
    /// # let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// drop(out);
    /// assert_eq!(block_on(Receiver::new(&hearth, into).recv()), Err(Error::Disconnected));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`In::recv`].
    pub async fn recv(&self) -> Result<T, Error> {
        match Asking::new(&self.desk, ()).await {
            Ok(result) => result,
            Err(_) => Err(Error::Stopped),
        }
    }

    /// The same on a thread, which sleeps meanwhile.
    ///
    /// # Errors
    /// As for [`In::recv`].
    ///
    /// # Panics
    /// In a component.
    pub fn recv_blocking(&self) -> Result<T, Error> {
        block_on(self.recv())
    }
}

impl<T: Send + 'static> std::fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// A second hand on the same half-channel.
impl<T: Send + 'static> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        self.desk.change_askers(|askers| *askers += 1);
        Receiver {
            desk: Arc::clone(&self.desk),
        }
    }
}

impl<T: Send + 'static> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.desk.change_askers(|askers| *askers -= 1);
    }
}

fn proxy(location: &'static Location<'static>) -> Spawn {
    Spawn::new("Outside", location).service()
}
