//! Half-channels and what components do with them.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use hearth_runtime::embed::{self, Arms, Half, SendRefused, Slice};

use crate::error::{Error, SendError};
use crate::insense::{Port, Portable};

/// An out and an in half-channel, connected with each other.
///
/// ```
/// use hearth::{Hearth, block_on, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel::<Vec<u8>>();
/// hearth.spawn(async move { out.send(vec![1, 2, 3]).await });
/// let sum = hearth.spawn(async move { into.recv().await.map(|bytes| bytes.len()) });
/// assert_eq!(block_on(sum)?, Ok(3));
/// # Ok::<(), hearth::Error>(())
/// ```
pub fn channel<T: std::marker::Send + 'static>() -> (Out<T>, In<T>) {
    let (out, into) = (Out::new(), In::new());
    connect(&out, &into);
    (out, into)
}

/// Connects an out and an in. Each may have any number of peers: a send goes to one of those that
/// receive, a receive takes from those that send in turn. Connecting a pair again changes nothing.
///
/// ```
/// use hearth::{Hearth, In, Out, block_on, connect};
///
/// let hearth = Hearth::start()?;
/// let into = In::new();
/// for number in 1..=3 {
///     let out = Out::new();
///     connect(&out, &into);
///     hearth.spawn(async move { out.send(number).await });
/// }
/// let sum = hearth.spawn(async move {
///     let mut sum = 0;
///     while let Ok(number) = into.recv().await {
///         sum += number;
///     }
///     sum
/// });
/// assert_eq!(block_on(sum)?, 6);
/// # Ok::<(), hearth::Error>(())
/// ```
///
/// # Panics
/// If one of them has been used within this program already and the other is connected to Insense
/// components: [`try_connect`](Out::try_connect) is for those.
#[track_caller]
pub fn connect<T: std::marker::Send + 'static>(out: &Out<T>, into: &In<T>) {
    if let Err(error) = out.try_connect(into) {
        panic!("{error}");
    }
}

/// Sends values. Without a peer it waits for one, unless it had one and has none any more.
///
/// ```
/// use hearth::{Out, In, connect};
///
/// let out = Out::<String>::new();
/// let into = In::new();
/// connect(&out, &into);
/// ```
pub struct Out<T: std::marker::Send + 'static>(Half<T>);

/// Receives values. Without a peer it waits for one, unless it had one and has none any more.
///
/// ```
/// let (out, into) = hearth::channel::<(u64, &'static str)>();
/// ```
pub struct In<T: std::marker::Send + 'static>(Half<T>);

impl<T: std::marker::Send + 'static> std::fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Out").finish_non_exhaustive()
    }
}

impl<T: std::marker::Send + 'static> Default for Out<T> {
    fn default() -> Out<T> {
        Out::new()
    }
}

impl<T: std::marker::Send + 'static> std::fmt::Debug for In<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("In").finish_non_exhaustive()
    }
}

impl<T: std::marker::Send + 'static> Default for In<T> {
    fn default() -> In<T> {
        In::new()
    }
}

impl<T: std::marker::Send + 'static> Out<T> {
    /// One without peers.
    ///
    /// ```
    /// let out = hearth::Out::<i32>::new();
    /// ```
    pub fn new() -> Out<T> {
        Out(Half::new(true))
    }

    /// Sends a value, in a component: waits until somebody receives it.
    ///
    /// ```
    /// use hearth::{Error, Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel();
    /// hearth.spawn(async move { into.recv().await });
    /// let sent = hearth.spawn(async move { out.send(1.5).await });
    /// assert_eq!(block_on(sent)?, Ok(()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// With the value back: [`Error::Disconnected`] and [`Error::NotInComponent`]; without:
    /// [`Error::NotAcknowledged`].
    #[track_caller]
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send(self.0.send(value))
    }

    /// Connects with an in, like [`connect`], which is shorter.
    ///
    /// ```
    /// use hearth::{In, Out};
    ///
    /// let (out, into) = (Out::<i32>::new(), In::<i32>::new());
    /// assert_eq!(out.try_connect(&into), Ok(()));
    /// ```
    ///
    /// # Errors
    /// [`Error::InUse`] if the values of one already travel in a way that the peers of the other do not
    /// know. Never for `i32`, `u32`, `f32`, `bool` and `u8`.
    pub fn try_connect(&self, into: &In<T>) -> Result<(), Error> {
        Ok(embed::connect(&self.0, &into.0)?)
    }

    /// Connects with a port of an Insense component.
    ///
    /// The page of [`insense`](crate::insense) has an example.
    ///
    /// # Errors
    /// [`Error::Types`], [`Error::Direction`], [`Error::InUse`].
    pub fn connect_port(&self, port: &Port) -> Result<(), Error>
    where
        T: Portable,
    {
        Ok(self.0.connect_port(port)?)
    }

    /// Takes away all peers. What waits at them goes on waiting for others, or learns that it is
    /// alone.
    ///
    /// ```
    /// use hearth::{Error, Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// let lonely = hearth.spawn(async move { into.recv().await });
    /// out.disconnect();
    /// assert_eq!(block_on(lonely)?, Err(Error::Disconnected));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn disconnect(&self) {
        self.0.disconnect();
    }
}

impl<T: std::marker::Send + 'static> In<T> {
    /// One without peers.
    ///
    /// ```
    /// let into = hearth::In::<i32>::new();
    /// ```
    pub fn new() -> In<T> {
        In(Half::new(false))
    }

    /// Receives a value, in a component: waits until somebody sends one.
    ///
    /// ```
    /// use hearth::{Error, Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel();
    /// hearth.spawn(async move { out.send('x').await });
    /// let received = hearth.spawn(async move { into.recv().await });
    /// assert_eq!(block_on(received)?, Ok('x'));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Disconnected`], [`Error::NotInComponent`].
    #[track_caller]
    pub fn recv(&self) -> Receive<'_, T> {
        Receive(self.0.receive())
    }

    /// Receives a value if somebody waits to send one; in a component.
    ///
    /// ```
    /// use hearth::{Error, Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (_out, into) = channel::<i32>();
    /// let nothing = hearth.spawn(async move { into.try_recv() });
    /// assert_eq!(block_on(nothing)?, Ok(None));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Disconnected`], [`Error::NotInComponent`].
    #[track_caller]
    pub fn try_recv(&self) -> Result<Option<T>, Error> {
        Ok(self.0.try_receive()?)
    }

    /// Connects with a port of an Insense component.
    ///
    /// The page of [`insense`](crate::insense) has an example.
    ///
    /// # Errors
    /// [`Error::Types`], [`Error::Direction`], [`Error::InUse`].
    pub fn connect_port(&self, port: &Port) -> Result<(), Error>
    where
        T: Portable,
    {
        Ok(self.0.connect_port(port)?)
    }

    /// Takes away all peers. What waits at them goes on waiting for others, or learns that it is
    /// alone.
    ///
    /// ```
    /// use hearth::{Error, Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// into.disconnect();
    /// let refused = block_on(hearth.spawn(async move { out.send(1).await }))?;
    /// assert_eq!(refused.unwrap_err().reason, Error::Disconnected);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn disconnect(&self) {
        self.0.disconnect();
    }

    pub(crate) fn half(&self) -> &Half<T> {
        &self.0
    }
}

/// The future of [`Out::send`].
#[must_use = "futures do nothing unless polled"]
pub struct Send<'a, T: std::marker::Send + 'static>(embed::Send<'a, T>);

impl<T: std::marker::Send + 'static> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(refused)
    }
}

fn refused<T>(refused: SendRefused<T>) -> SendError<T> {
    let (reason, value) = match refused {
        SendRefused::Disconnected(value) => (Error::Disconnected, Some(value)),
        SendRefused::NotInComponent(value) => (Error::NotInComponent, Some(value)),
        SendRefused::NotAcknowledged => (Error::NotAcknowledged, None),
    };
    SendError { reason, value }
}

/// The future of [`In::recv`].
#[must_use = "futures do nothing unless polled"]
pub struct Receive<'a, T: std::marker::Send + 'static>(embed::Receive<'a, T>);

impl<T: std::marker::Send + 'static> Future for Receive<'_, T> {
    type Output = Result<T, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(Error::from)
    }
}

/// Receives, in a component, from whichever of several half-channels has a sender; of several the
/// one that was served longest ago. Those that are disconnected are left out.
///
/// A tuple of references gives an [`Of2`](crate::Of2) to [`Of6`](crate::Of6), a slice of references, all of one type, the index
/// and the value.
///
/// ```
/// use hearth::{Hearth, Of2, block_on, channel, select};
///
/// let hearth = Hearth::start()?;
/// let (numbers, number) = channel::<i32>();
/// let (words, word) = channel::<String>();
/// hearth.spawn(async move { numbers.send(4).await });
/// hearth.spawn(async move { words.send("four".to_owned()).await });
/// let reader = hearth.spawn(async move {
///     let mut seen = Vec::new();
///     while let Ok(what) = select((&number, &word)).await {
///         seen.push(match what {
///             Of2::First(number) => number.to_string(),
///             Of2::Second(word) => word,
///         });
///     }
///     seen.sort();
///     seen
/// });
/// assert_eq!(block_on(reader)?, ["4", "four"]);
/// # Ok::<(), hearth::Error>(())
/// ```
///
/// # Errors
/// [`Error::Disconnected`] if that is so of all; [`Error::NotInComponent`].
#[track_caller]
pub fn select<S: Selectable>(arms: S) -> Select<S> {
    Select(embed::Select::new(arms.arms(), Location::caller()))
}

/// What [`select`] takes: tuples of two to six references to [`In`]s, and slices of them.
///
/// ```
/// use hearth::{Hearth, block_on, channel, select};
///
/// let hearth = Hearth::start()?;
/// let (out, first) = channel::<u8>();
/// let (_out, second) = channel::<u8>();
/// hearth.spawn(async move { out.send(8).await });
/// let which = hearth.spawn(async move { select(&[&first, &second][..]).await });
/// assert_eq!(block_on(which)?, Ok((0, 8)));
/// # Ok::<(), hearth::Error>(())
/// ```
pub trait Selectable {
    /// The same for the runtime.
    type Arms: Arms + Unpin;
    /// Gives that.
    fn arms(self) -> Self::Arms;
}

macro_rules! selectable {
    ($($life:lifetime $t:ident $index:tt),+) => {
        // A lifetime each: futures that are to be `Send` ask for no less.
        impl<$($life,)+ $($t: std::marker::Send + 'static),+> Selectable for ($(&$life In<$t>,)+) {
            type Arms = ($(&$life Half<$t>,)+);
            fn arms(self) -> Self::Arms {
                ($(self.$index.half(),)+)
            }
        }
    };
}
selectable!('a A 0, 'b B 1);
selectable!('a A 0, 'b B 1, 'c C 2);
selectable!('a A 0, 'b B 1, 'c C 2, 'd D 3);
selectable!('a A 0, 'b B 1, 'c C 2, 'd D 3, 'e E 4);
selectable!('a A 0, 'b B 1, 'c C 2, 'd D 3, 'e E 4, 'f F 5);

impl<'a, T: std::marker::Send + 'static> Selectable for &[&'a In<T>] {
    type Arms = Slice<'a, T>;
    fn arms(self) -> Self::Arms {
        Slice(self.iter().map(|half| half.half()).collect())
    }
}

/// The future of [`select`].
#[must_use = "futures do nothing unless polled"]
pub struct Select<S: Selectable>(embed::Select<S::Arms>);

impl<S: Selectable> Future for Select<S> {
    type Output = Result<<S::Arms as Arms>::Output, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(Error::from)
    }
}
