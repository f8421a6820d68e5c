//! Half-channels and the operations of components on them.

use std::fmt;
use std::panic::Location;

use hearth_runtime::embed::{self, Arms, Half, Slice};

use crate::error::{ConnectError, InUse, TryReceiveError};
use crate::future::{Receive, Select, Send as Sending};
use crate::insense::{Port, Portable};

/// Makes an out and an in half-channel, connected with each other.
///
/// ```
/// use hearth::{Hearth, block_on, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel::<Vec<u8>>();
/// hearth.spawn(async move { out.send(vec![1, 2, 3]).await });
/// let sum = hearth.spawn(async move { into.recv().await.map(|bytes| bytes.len()) });
/// assert_eq!(block_on(sum)?, Ok(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn channel<T: Send + 'static>() -> (Out<T>, In<T>) {
    let (out, into) = (Out::new(), In::new());
    connect(&out, &into);
    (out, into)
}

/// Connects an out and an in. Each may have any number of peers: a send goes to one peer that
/// receives, a receive takes from the peers that send in turn. Connecting a pair again changes
/// nothing.
///
/// [`Clone`] gives further ends where all are to have the same peers; this connects any others.
///
/// ```
/// use hearth::{Hearth, In, Out, block_on, connect};
///
/// let hearth = Hearth::start()?;
/// let (left, right) = (In::new(), In::new());
/// let out = Out::new();
/// connect(&out, &left);
/// connect(&out, &right);
/// hearth.spawn(async move {
///     for number in 1..=3 {
///         out.send(number).await.unwrap();
///     }
/// });
/// let sums = [left, right].map(|into| {
///     hearth.spawn(async move {
///         let mut sum = 0;
///         while let Ok(number) = into.recv().await {
///             sum += number;
///         }
///         sum
///     })
/// });
/// let sums = sums.map(|sum| block_on(sum).unwrap());
/// assert_eq!(sums.iter().sum::<i32>(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Panics if one end already moves values within this program and the other is connected to
/// Insense components: [`Out::connect`] returns that as an error.
#[track_caller]
pub fn connect<T: Send + 'static>(out: &Out<T>, into: &In<T>) {
    if let Err(error) = out.connect(into) {
        panic!("{error}");
    }
}

/// A half-channel that sends. A send waits for a peer, unless the half-channel has lost all it had.
///
/// A clone is a half-channel of its own with the same peers, so several components can send to one:
///
/// ```
/// use hearth::{Hearth, block_on, channel};
///
/// let hearth = Hearth::start()?;
/// let (out, into) = channel();
/// for number in 1..=3 {
///     let out = out.clone();
///     hearth.spawn(async move { out.send(number).await });
/// }
/// drop(out);
/// let sum = hearth.spawn(async move {
///     let mut sum = 0;
///     while let Ok(number) = into.recv().await {
///         sum += number;
///     }
///     sum
/// });
/// assert_eq!(block_on(sum)?, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Out<T: Send + 'static>(Half<T>);

/// A half-channel that receives. A receive waits for a peer, unless the half-channel has lost all
/// it had.
///
/// A clone is a half-channel of its own with the same peers: each value goes to one of them.
///
/// ```
/// let (out, into) = hearth::channel::<(u64, &'static str)>();
/// let another = into.clone();
/// ```
pub struct In<T: Send + 'static>(Half<T>);

impl<T: Send + 'static> fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out").finish_non_exhaustive()
    }
}

/// A half-channel of its own, connected with the peers that this one has now.
impl<T: Send + 'static> Clone for Out<T> {
    fn clone(&self) -> Out<T> {
        Out(self.0.clone())
    }
}

impl<T: Send + 'static> Default for Out<T> {
    fn default() -> Out<T> {
        Out::new()
    }
}

impl<T: Send + 'static> fmt::Debug for In<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("In").finish_non_exhaustive()
    }
}

/// A half-channel of its own, connected with the peers that this one has now.
impl<T: Send + 'static> Clone for In<T> {
    fn clone(&self) -> In<T> {
        In(self.0.clone())
    }
}

impl<T: Send + 'static> Default for In<T> {
    fn default() -> In<T> {
        In::new()
    }
}

impl<T: Send + 'static> Out<T> {
    /// Makes a half-channel without peers.
    ///
    /// ```
    /// let out = hearth::Out::<i32>::new();
    /// ```
    pub fn new() -> Out<T> {
        Out(Half::new(true))
    }

    /// Sends a value, in a component: waits until a peer receives it.
    ///
    /// ```
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel();
    /// hearth.spawn(async move { into.recv().await });
    /// let sent = hearth.spawn(async move { out.send(1.5).await });
    /// assert_eq!(block_on(sent)?, Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Gives the value back if no peer is connected any more, or if no component awaits this. A
    /// value that an Insense component received without acknowledging it is gone.
    #[track_caller]
    pub fn send(&self, value: T) -> Sending<'_, T> {
        self.0.send(value)
    }

    /// Connects with an in, as [`connect`] does.
    ///
    /// ```
    /// use hearth::{In, Out};
    ///
    /// let (out, into) = (Out::<i32>::new(), In::<i32>::new());
    /// assert_eq!(out.connect(&into), Ok(()));
    /// ```
    ///
    /// # Errors
    /// Fails if one end already moves values within this program and the other is connected to
    /// Insense components. It never fails for `i32`, `u32`, `f32`, `bool` and `u8`.
    pub fn connect(&self, into: &In<T>) -> Result<(), InUse> {
        embed::connect(&self.0, &into.0)
    }

    /// Connects with a port of an Insense component.
    ///
    /// The page of [`insense`](crate::insense) has an example.
    ///
    /// # Errors
    /// Fails if the port has another type or the same direction, or if this half-channel already
    /// moves values within this program.
    pub fn connect_port(&self, port: &Port) -> Result<(), ConnectError>
    where
        T: Portable,
    {
        self.0.connect_port(port)
    }

    /// Disconnects all peers. A component that waits at one of them goes on waiting if that has
    /// other peers, and fails otherwise.
    ///
    /// ```
    /// use hearth::error::ReceiveError;
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// let lonely = hearth.spawn(async move { into.recv().await });
    /// out.disconnect();
    /// assert_eq!(block_on(lonely)?, Err(ReceiveError::Disconnected));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disconnect(&self) {
        self.0.disconnect();
    }
}

impl<T: Send + 'static> In<T> {
    /// Makes a half-channel without peers.
    ///
    /// ```
    /// let into = hearth::In::<i32>::new();
    /// ```
    pub fn new() -> In<T> {
        In(Half::new(false))
    }

    /// Receives a value, in a component: waits until a peer sends one.
    ///
    /// ```
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel();
    /// hearth.spawn(async move { out.send('x').await });
    /// let received = hearth.spawn(async move { into.recv().await });
    /// assert_eq!(block_on(received)?, Ok('x'));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if no peer is connected any more, or if no component awaits this.
    #[track_caller]
    pub fn recv(&self) -> Receive<'_, T> {
        self.0.receive()
    }

    /// Receives a value, in a component, if a peer already waits to send one. Never waits.
    ///
    /// ```
    /// use hearth::error::TryReceiveError;
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (_out, into) = channel::<i32>();
    /// let nothing = hearth.spawn(async move { into.try_recv() });
    /// assert_eq!(block_on(nothing)?, Err(TryReceiveError::Empty));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails if no peer waits to send, if none is connected any more, or if no component runs this.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryReceiveError> {
        self.0.try_receive()
    }

    /// Connects with a port of an Insense component.
    ///
    /// The page of [`insense`](crate::insense) has an example.
    ///
    /// # Errors
    /// Fails if the port has another type or the same direction, or if this half-channel already
    /// moves values within this program.
    pub fn connect_port(&self, port: &Port) -> Result<(), ConnectError>
    where
        T: Portable,
    {
        self.0.connect_port(port)
    }

    /// Disconnects all peers. A component that waits at one of them goes on waiting if that has
    /// other peers, and fails otherwise.
    ///
    /// ```
    /// use hearth::error::SendError;
    /// use hearth::{Hearth, block_on, channel};
    ///
    /// let hearth = Hearth::start()?;
    /// let (out, into) = channel::<i32>();
    /// into.disconnect();
    /// let sent = block_on(hearth.spawn(async move { out.send(1).await }))?;
    /// assert_eq!(sent, Err(SendError::Disconnected(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disconnect(&self) {
        self.0.disconnect();
    }

    pub(crate) fn half(&self) -> &Half<T> {
        &self.0
    }
}

/// Receives, in a component, from one of several half-channels: the first to have a sender or, if
/// several have one, the one served longest ago. Those without peers are left out.
///
/// A tuple of references gives an [`Either`](crate::Either) to [`Either6`](crate::Either6); a slice
/// of references, all of one type, gives the index and the value.
///
/// ```
/// use hearth::{Either, Hearth, block_on, channel, select};
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
///             Either::First(number) => number.to_string(),
///             Either::Second(word) => word,
///         });
///     }
///     seen.sort();
///     seen
/// });
/// assert_eq!(block_on(reader)?, ["4", "four"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if no half-channel has a peer any more, or if no component awaits this.
#[track_caller]
pub fn select<S: Selectable>(arms: S) -> Select<S::Arms> {
    Select::new(arms.arms(), Location::caller())
}

/// The argument of [`select`]: a tuple of two to six references to [`In`]s, or a slice of them.
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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Selectable {
    /// The runtime's form of the half-channels.
    type Arms: Arms + Unpin;
    /// Converts the half-channels.
    fn arms(self) -> Self::Arms;
}

macro_rules! selectable {
    ($($life:lifetime $t:ident $index:tt),+) => {
        // A lifetime each: a future is `Send` only then.
        impl<$($life,)+ $($t: Send + 'static),+> Selectable for ($(&$life In<$t>,)+) {
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

impl<'a, T: Send + 'static> Selectable for &[&'a In<T>] {
    type Arms = Slice<'a, T>;
    fn arms(self) -> Self::Arms {
        Slice(self.iter().map(|half| half.half()).collect())
    }
}
