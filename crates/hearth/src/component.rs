//! Components and what becomes of them.

use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hearth_runtime::embed::{self, End, Handle, Plan};

use crate::error::Error;
use crate::wakers::wake;

/// A component that is about to be made: see [`Hearth::component`](crate::Hearth::component).
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `spawn`"]
pub struct Spawn {
    plan: Plan,
    location: &'static Location<'static>,
}

impl Spawn {
    pub(crate) fn new(name: &str, location: &'static Location<'static>) -> Spawn {
        Spawn {
            plan: Plan {
                name: name.to_owned(),
                ..Plan::default()
            },
            location,
        }
    }

    /// It serves others: it does not keep [`Hearth::wait`](crate::Hearth::wait) waiting, and deadlock
    /// reports leave it out.
    ///
    /// ```
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (_out, requests) = channel::<String>();
    /// hearth.component("Log").service().spawn(async move {
    ///     while let Ok(_line) = requests.recv().await {}
    /// });
    /// assert_eq!(block_on(hearth.wait()), Ok(()));
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn service(mut self) -> Spawn {
        self.plan.is_service = true;
        self
    }

    /// The core to run on, by the system's number; one that this machine lacks is as good as none.
    ///
    /// ```
    /// # let hearth = hearth::Hearth::start()?;
    /// hearth.component("Near").core(0).spawn(async {});
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn core(mut self, core: u32) -> Spawn {
        self.plan.core = Some(core);
        self
    }

    /// Makes a component of a future, and lets it run.
    ///
    /// ```
    /// # let hearth = hearth::Hearth::start()?;
    /// let component = hearth.component("Adder").spawn(async { 1 + 1 });
    /// assert_eq!(hearth::block_on(component)?, 2);
    /// # Ok::<(), hearth::Error>(())
    /// ```
    pub fn spawn<F>(self, future: F) -> Component<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let fate = Arc::new(Fate {
            state: Mutex::new(State {
                output: None,
                end: None,
                waker: None,
            }),
        });
        let inner = Arc::clone(&fate);
        let body = async move {
            let output = future.await;
            inner.lock().output = Some(output);
        };
        let ended = Arc::clone(&fate);
        let at_end = move |end| ended.end(end);
        let handle = embed::spawn(&self.plan, self.location, Box::pin(body), Box::new(at_end));
        Component { handle, fate }
    }
}

/// What became of a component.
struct Fate<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    output: Option<T>,
    end: Option<End>,
    waker: Option<Waker>,
}

impl<T> Fate<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, end: End) {
        let waker = {
            let mut state = self.lock();
            state.end = Some(end);
            state.waker.take()
        };
        wake(waker);
    }
}

/// A component that was made, and perhaps has ended. Awaited, it gives what its future gave.
///
/// Dropping it leaves the component alone.
///
/// ```
/// use hearth::{Error, Hearth, block_on};
///
/// let hearth = Hearth::start()?;
/// let patient = hearth.spawn(std::future::pending::<()>());
/// patient.stop();
/// assert_eq!(block_on(patient), Err(Error::Stopped));
/// # Ok::<(), Error>(())
/// ```
pub struct Component<T> {
    handle: Handle,
    fate: Arc<Fate<T>>,
}

impl<T> std::fmt::Debug for Component<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component").finish_non_exhaustive()
    }
}

impl<T> Component<T> {
    /// Asks the component to stop. It ends where it waits, or at its next wait: its future is dropped
    /// there.
    ///
    /// ```
    /// # use hearth::{Error, Hearth, block_on, channel};
    /// # let hearth = Hearth::start()?;
    /// let (_out, into) = channel::<i32>();
    /// let component = hearth.spawn(async move { into.recv().await });
    /// component.stop();
    /// assert_eq!(block_on(component), Err(Error::Stopped));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn stop(&self) {
        self.handle.stop();
    }

    /// Has it ended?
    ///
    /// ```
    /// # use hearth::{Error, Hearth, block_on};
    /// # let hearth = Hearth::start()?;
    /// let component = hearth.spawn(async {});
    /// block_on(hearth.wait())?;
    /// assert!(component.has_ended());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn has_ended(&self) -> bool {
        self.fate.lock().end.is_some()
    }

    /// Waits for its end; to be awaited anywhere.
    ///
    /// ```
    /// # use hearth::{Error, Hearth, block_on};
    /// # let hearth = Hearth::start()?;
    /// let inner = hearth.spawn(async { 2 });
    /// let outer = hearth.spawn(async move { inner.join().await.map(|two| two + 1) });
    /// assert_eq!(block_on(outer.join())?, Ok(3));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Panicked`].
    pub fn join(self) -> Join<T> {
        Join { fate: self.fate }
    }
}

impl<T> IntoFuture for Component<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Join<T>;

    fn into_future(self) -> Join<T> {
        self.join()
    }
}

/// The future of [`Component::join`].
#[must_use = "futures do nothing unless polled"]
pub struct Join<T> {
    fate: Arc<Fate<T>>,
}

impl<T> Future for Join<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let (end, output, _former) = {
            let mut state = self.fate.lock();
            match state.end.take() {
                Some(end) => (Some(end), state.output.take(), None),
                None => (None, None, state.waker.replace(waker)),
            }
        };
        let Some(end) = end else {
            return Poll::Pending;
        };
        Poll::Ready(match (end, output) {
            (End::Finished, Some(output)) => Ok(output),
            (End::Panicked(message), _) => Err(Error::Panicked { message }),
            (End::Stopped | End::Finished, _) => Err(Error::Stopped),
        })
    }
}

/// Keeps the component that runs the calling code on a core, from its next wait on. False outside of
/// components.
///
/// ```
/// use hearth::{Hearth, block_on, set_core};
///
/// let hearth = Hearth::start()?;
/// assert!(block_on(hearth.spawn(async { set_core(0) }))?);
/// assert!(!set_core(0));
/// # Ok::<(), hearth::Error>(())
/// ```
pub fn set_core(core: u32) -> bool {
    embed::set_core(core)
}
