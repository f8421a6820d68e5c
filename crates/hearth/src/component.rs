//! Components and how they end.

use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use hearth_runtime::embed::{self, ComponentSettings, End, Handle, Runtime};

use crate::error::JoinError;
use crate::once::{Once, lock};

/// Makes a component that has a name, or a place: see
/// [`Hearth::component`](crate::Hearth::component).
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `spawn`"]
pub struct ComponentBuilder {
    runtime: Runtime,
    settings: ComponentSettings,
    location: &'static Location<'static>,
}

impl ComponentBuilder {
    pub(crate) fn new(
        runtime: &Runtime,
        name: &str,
        location: &'static Location<'static>,
    ) -> ComponentBuilder {
        ComponentBuilder {
            runtime: runtime.clone(),
            settings: ComponentSettings {
                name: name.to_owned(),
                ..ComponentSettings::default()
            },
            location,
        }
    }

    /// Makes the component a service: [`Hearth::wait`](crate::Hearth::wait) does not wait for it,
    /// and deadlock reports leave it out.
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
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn service(mut self) -> ComponentBuilder {
        self.settings.is_service = true;
        self
    }

    /// Sets the core to run on, by the system's number. A core that this machine lacks is ignored.
    ///
    /// ```
    /// # let hearth = hearth::Hearth::start()?;
    /// hearth.component("Near").core(0).spawn(async {});
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn core(mut self, core: u32) -> ComponentBuilder {
        self.settings.core = Some(core);
        self
    }

    /// Makes a component of a future, and lets it run.
    ///
    /// ```
    /// # let hearth = hearth::Hearth::start()?;
    /// let component = hearth.component("Adder").spawn(async { 1 + 1 });
    /// assert_eq!(hearth::block_on(component)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn<F>(self, future: F) -> Component<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let fate = Arc::new(Fate {
            output: Mutex::new(None),
            end: Once::new(),
        });
        let inner = Arc::clone(&fate);
        let body = async move {
            let output = future.await;
            *lock(&inner.output) = Some(output);
        };
        let ended = Arc::clone(&fate);
        let at_end = move |end| {
            // Nobody leaves: a join that is dropped leaves the cell as it is.
            let _ = ended.end.put(end);
        };
        let (body, at_end) = (Box::pin(body), Box::new(at_end));
        let handle = embed::spawn(&self.runtime, &self.settings, self.location, body, at_end);
        Component { handle, fate }
    }
}

/// The end of a component, and the output that its future came to before.
struct Fate<T> {
    output: Mutex<Option<T>>,
    end: Once<End>,
}

/// A component that was made, and may have ended. Awaited, it gives the output of its future.
///
/// Dropping this leaves the component alone.
///
/// ```
/// use hearth::error::JoinError;
/// use hearth::{Hearth, block_on};
///
/// let hearth = Hearth::start()?;
/// let patient = hearth.spawn(std::future::pending::<()>());
/// patient.stop();
/// assert_eq!(block_on(patient), Err(JoinError::Stopped));
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
    /// Asks the component to stop. It ends where it waits, or at its next wait: its future is
    /// dropped there.
    ///
    /// ```
    /// # use hearth::error::JoinError;
    /// # use hearth::{Hearth, block_on, channel};
    /// # let hearth = Hearth::start()?;
    /// let (_out, into) = channel::<i32>();
    /// let component = hearth.spawn(async move { into.recv().await });
    /// component.stop();
    /// assert_eq!(block_on(component), Err(JoinError::Stopped));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(&self) {
        self.handle.stop();
    }

    /// Tells whether the component has ended.
    ///
    /// ```
    /// # use hearth::{Hearth, block_on};
    /// # let hearth = Hearth::start()?;
    /// let component = hearth.spawn(async {});
    /// block_on(hearth.wait())?;
    /// assert!(component.has_ended());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn has_ended(&self) -> bool {
        self.fate.end.is_full()
    }

    /// Waits for the component's end. The future may be awaited anywhere.
    ///
    /// ```
    /// # use hearth::{Hearth, block_on};
    /// # let hearth = Hearth::start()?;
    /// let inner = hearth.spawn(async { 2 });
    /// let outer = hearth.spawn(async move { inner.join().await.map(|two| two + 1) });
    /// assert_eq!(block_on(outer.join())?, Ok(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the component was stopped or panicked.
    pub fn join(self) -> Join<T> {
        Join { fate: self.fate }
    }
}

impl<T> IntoFuture for Component<T> {
    type Output = Result<T, JoinError>;
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
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let end = ready!(self.fate.end.poll(context));
        let output = lock(&self.fate.output).take();
        Poll::Ready(end.and_then(|()| output.ok_or(JoinError::Stopped)))
    }
}

/// Keeps the component that runs the calling code on a core, from its next wait on. Returns false
/// outside of components.
///
/// ```
/// use hearth::{Hearth, block_on, set_core};
///
/// let hearth = Hearth::start()?;
/// assert!(block_on(hearth.spawn(async { set_core(0) }))?);
/// assert!(!set_core(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_core(core: u32) -> bool {
    embed::set_core(core)
}
