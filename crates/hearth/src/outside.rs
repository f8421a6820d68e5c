//! Half-channels for code that runs in no component.
//!
//! Behind each stands a component, a *proxy*, that does one operation after another for the code
//! outside. A request is left, taken up and answered under a lock, so that an operation for a
//! request that was left is called off, and a value that came for it goes to the next request.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::block_on::block_on;
use crate::channel::{In, Out};
use crate::component::ComponentBuilder;
use crate::error::{ReceiveError, ReceiverError, SendError, SenderError};
use crate::hearth::Hearth;
use crate::once::{Once, lock};
use crate::wakers::wake;

/// A question to a proxy, and its answer.
struct Request<Q, A> {
    question: Mutex<Option<Q>>,
    answer: Once<A>,
}

/// The requests that wait for a proxy.
struct Desk<Q, A> {
    state: Mutex<Line<Q, A>>,
    /// An answer to a request that was left goes to the next request.
    hands_on: bool,
}

struct Line<Q, A> {
    requests: VecDeque<Arc<Request<Q, A>>>,
    /// The request that the proxy took last.
    current: Option<Arc<Request<Q, A>>>,
    proxy: Option<Waker>,
    /// Answers to requests that were left just then.
    left_over: VecDeque<A>,
    askers: usize,
    /// The proxy has ended.
    is_closed: bool,
}

impl<Q, A> Line<Q, A> {
    /// All requests that may not be answered yet.
    fn waiting(&self) -> Vec<Arc<Request<Q, A>>> {
        self.current.iter().chain(&self.requests).cloned().collect()
    }
}

impl<Q, A> Desk<Q, A> {
    fn new(hands_on: bool) -> Arc<Desk<Q, A>> {
        Arc::new(Desk {
            hands_on,
            state: Mutex::new(Line {
                requests: VecDeque::new(),
                current: None,
                proxy: None,
                left_over: VecDeque::new(),
                askers: 1,
                is_closed: false,
            }),
        })
    }

    /// Waits for the next request; none comes after the last asker has gone.
    async fn next(&self) -> Option<Arc<Request<Q, A>>> {
        poll_fn(|context| {
            let waker = context.waker().clone();
            let mut line = lock(&self.state);
            let next = line.requests.pop_front();
            let former = std::mem::replace(&mut line.current, next.clone());
            let is_over = next.is_some() || line.askers == 0;
            let former_waker = (!is_over).then(|| line.proxy.replace(waker));
            drop(line);
            drop((former, former_waker));
            match is_over {
                true => Poll::Ready(next),
                false => Poll::Pending,
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

/// A proxy's hold on its desk. Dropped with the proxy, it wakes the askers that still wait.
struct Keeper<Q, A>(Arc<Desk<Q, A>>);

impl<Q, A> Drop for Keeper<Q, A> {
    fn drop(&mut self) {
        let left = {
            let mut line = lock(&self.0.state);
            line.is_closed = true;
            line.waiting()
        };
        for request in left {
            request.answer.wake_reader();
        }
    }
}

/// The future of a request. Dropped before the answer, it leaves the request.
struct Asking<'a, Q, A> {
    desk: &'a Desk<Q, A>,
    request: Arc<Request<Q, A>>,
    is_queued: bool,
}

impl<'a, Q, A> Asking<'a, Q, A> {
    fn new(desk: &'a Desk<Q, A>, question: Q) -> Asking<'a, Q, A> {
        let request = Request {
            question: Mutex::new(Some(question)),
            answer: Once::new(),
        };
        Asking {
            desk,
            request: Arc::new(request),
            is_queued: false,
        }
    }
}

impl<Q, A> Future for Asking<'_, Q, A> {
    /// The error has the question, unless the proxy ended after it took that.
    type Output = Result<A, Option<Q>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let request = Arc::clone(&self.request);
        if let Poll::Ready(answer) = request.answer.poll(context) {
            return Poll::Ready(Ok(answer));
        }
        let proxy = {
            let mut line = lock(&self.desk.state);
            // If this was queued, its drop hands on an answer of its own.
            if let Some(answer) = line.left_over.pop_front() {
                return Poll::Ready(Ok(answer));
            }
            if line.is_closed {
                // The proxy's last deed may have been the answer.
                let answer = request.answer.take();
                return Poll::Ready(answer.ok_or_else(|| lock(&request.question).take()));
            }
            if self.is_queued {
                return Poll::Pending;
            }
            line.requests.push_back(request);
            line.proxy.take()
        };
        self.is_queued = true;
        wake(proxy);
        Poll::Pending
    }
}

impl<Q, A> Drop for Asking<'_, Q, A> {
    fn drop(&mut self) {
        if let Some(answer) = self.request.answer.leave()
            && self.desk.hands_on
        {
            let waiting = {
                let mut line = lock(&self.desk.state);
                line.left_over.push_back(answer);
                line.waiting()
            };
            for request in waiting {
                request.answer.wake_reader();
            }
        }
    }
}

type Sending<T> = Desk<T, Result<(), SendError<T>>>;
type Receiving<T> = Desk<(), Result<T, ReceiveError>>;

/// An out half-channel for threads, and for async code outside of components. Clones send through
/// the same half-channel.
///
/// ```
/// use hearth::{Hearth, Sender, block_on, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel::<i32>();
/// let doubled = hearth.spawn(async move { into.recv().await.map(|n| 2 * n) });
/// let sender = Sender::new(&hearth, out);
/// sender.send_blocking(4)?;
/// assert_eq!(block_on(doubled)?, Ok(8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sender<T: Send + 'static> {
    desk: Arc<Sending<T>>,
}

impl<T: Send + 'static> Sender<T> {
    /// Takes over an out half-channel.
    #[track_caller]
    pub fn new(hearth: &Hearth, out: Out<T>) -> Sender<T> {
        let desk: Arc<Sending<T>> = Desk::new(false);
        let keeper = Keeper(Arc::clone(&desk));
        proxy(hearth, Location::caller()).spawn(async move {
            while let Some(request) = keeper.0.next().await {
                let Some(value) = lock(&request.question).take() else {
                    continue;
                };
                if let Some(result) = request.answer.unless_left(out.send(value)).await {
                    drop(request.answer.put(result));
                }
            }
        });
        Sender { desk }
    }

    /// Sends a value: waits until a component receives it. If the future is dropped, the value is
    /// dropped with it, unless it was received in the same moment.
    ///
    /// ```
    /// # use hearth::error::SenderError;
    /// # use hearth::{Hearth, Sender, block_on, channel};
    /// # let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// drop(into);
    /// let sent = block_on(Sender::new(&hearth, out).send(1));
    /// assert_eq!(sent, Err(SenderError::Disconnected(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if no peer is connected any more, with the value.
    pub async fn send(&self, value: T) -> Result<(), SenderError<T>> {
        match Asking::new(&self.desk, value).await {
            Ok(result) => Ok(result?),
            Err(value) => Err(SenderError::Ended(value)),
        }
    }

    /// Does the same on a thread, which sleeps meanwhile.
    ///
    /// # Errors
    /// Fails as [`Sender::send`] does.
    ///
    /// # Panics
    /// Panics in a component.
    pub fn send_blocking(&self, value: T) -> Result<(), SenderError<T>> {
        block_on(self.send(value))
    }
}

impl<T: Send + 'static> std::fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

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

/// An in half-channel for threads, and for async code outside of components. Clones receive from
/// the same half-channel.
///
/// ```
/// use hearth::error::ReceiverError;
/// use hearth::{Hearth, Receiver, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel::<i32>();
/// hearth.spawn(async move { out.send(3).await });
/// let receiver = Receiver::new(&hearth, into);
/// assert_eq!(receiver.recv_blocking(), Ok(3));
/// assert_eq!(receiver.recv_blocking(), Err(ReceiverError::Disconnected));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Receiver<T: Send + 'static> {
    desk: Arc<Receiving<T>>,
}

impl<T: Send + 'static> Receiver<T> {
    /// Takes over an in half-channel.
    #[track_caller]
    pub fn new(hearth: &Hearth, into: In<T>) -> Receiver<T> {
        let desk: Arc<Receiving<T>> = Desk::new(true);
        let keeper = Keeper(Arc::clone(&desk));
        proxy(hearth, Location::caller()).spawn(async move {
            // A result for a request that was left just then.
            let mut kept = None;
            while let Some(request) = keeper.0.next().await {
                let result = match kept.take() {
                    Some(result) => Some(result),
                    None => request.answer.unless_left(into.recv()).await,
                };
                kept = result.and_then(|result| request.answer.put(result).err());
            }
        });
        Receiver { desk }
    }

    /// Receives a value: waits until a component sends one. If the future is dropped, no value is
    /// lost: one that came in the same moment goes to the next receive.
    ///
    /// ```
    /// # use hearth::error::ReceiverError;
    /// # use hearth::{Hearth, Receiver, block_on, channel};
    /// # let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// drop(out);
    /// let received = block_on(Receiver::new(&hearth, into).recv());
    /// assert_eq!(received, Err(ReceiverError::Disconnected));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if no peer is connected any more.
    pub async fn recv(&self) -> Result<T, ReceiverError> {
        match Asking::new(&self.desk, ()).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(ReceiverError::Ended),
        }
    }

    /// Does the same on a thread, which sleeps meanwhile.
    ///
    /// # Errors
    /// Fails as [`Receiver::recv`] does.
    ///
    /// # Panics
    /// Panics in a component.
    pub fn recv_blocking(&self) -> Result<T, ReceiverError> {
        block_on(self.recv())
    }
}

impl<T: Send + 'static> std::fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

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

fn proxy(hearth: &Hearth, location: &'static Location<'static>) -> ComponentBuilder {
    ComponentBuilder::new(&hearth.0, "Outside", location).service()
}
