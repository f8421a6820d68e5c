//! The words for how calls are made.

use std::fmt;
use std::str::FromStr;

use crate::UnknownName;
use crate::errors::by_name;

/// What is set: a way for good, or the one that measuring finds better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Calls take [`Way::Lock`].
    #[default]
    Lock,
    /// Calls take [`Way::Combine`].
    Combine,
    /// Calls take [`Way::Message`].
    Message,
    /// Calls take whichever way is measured to be better, which may change.
    Auto,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 4] = [Mode::Lock, Mode::Combine, Mode::Message, Mode::Auto];

    pub(crate) fn first_way(self) -> Way {
        match self {
            Mode::Lock | Mode::Auto => Way::Lock,
            Mode::Combine => Way::Combine,
            Mode::Message => Way::Message,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Lock => "lock",
            Mode::Combine => "combine",
            Mode::Message => "message",
            Mode::Auto => "auto",
        })
    }
}

impl FromStr for Mode {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Mode, UnknownName> {
        by_name("mode", text, &Mode::ALL)
    }
}

/// The way that a call takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Way {
    /// Synchronous: the caller takes the lock, and the data comes to its core.
    #[default]
    Lock = 0,
    /// Synchronous, too; but who finds the lock held leaves a request, which the holder may serve: the data
    /// stays where it is for a while, and no core is given to a proprietor.
    Combine = 1,
    /// Asynchronous: the caller sends a request to the proprietor, on whose core the data stays.
    Message = 2,
}

impl Way {
    /// All of them, by their numbers.
    pub const ALL: [Way; 3] = [Way::Lock, Way::Combine, Way::Message];

    pub(crate) fn of_bits(bits: u32) -> Way {
        match bits {
            0 => Way::Lock,
            1 => Way::Combine,
            _ => Way::Message,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Lock => "lock",
            Way::Combine => "combine",
            Way::Message => "message",
        })
    }
}

/// How much a proprietor serves at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Drain {
    /// All requests that a thread has made, then the next thread's.
    #[default]
    All,
    /// One of each thread.
    One,
}

/// How requests reach the proprietor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Lines of its own for each thread, which the proprietor looks through: no lock, and two lines moved a call.
    #[default]
    Lines,
    /// The source's: one circular array under a lock, with room for twice as many messages as clients
    /// ([`crate::Builder::clients`]). All threads share it: `depth` bounds nobody's posts, [`Order::Key`] has no effect,
    /// and nobody takes the lock for want of a line. Who finds it full lets others run and looks again until there is
    /// room, without ever going to sleep.
    Ring(Copying),
}

/// How often a message is copied on its way through a [`Queue::Ring`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Copying {
    /// Not at all: the proprietor reads it where it is.
    Zero,
    /// By the proprietor, to memory of its own.
    Single,
    /// Into the queue and out of it.
    Double,
}

impl Queue {
    /// All of them.
    pub const ALL: [Queue; 4] = [
        Queue::Lines,
        Queue::Ring(Copying::Zero),
        Queue::Ring(Copying::Single),
        Queue::Ring(Copying::Double),
    ];
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Queue::Lines => "lines",
            Queue::Ring(Copying::Zero) => "zero-copy",
            Queue::Ring(Copying::Single) => "single-copy",
            Queue::Ring(Copying::Double) => "double-copy",
        })
    }
}

impl FromStr for Queue {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Queue, UnknownName> {
        by_name("queue", text, &Queue::ALL)
    }
}

/// In which order a proprietor serves what it finds at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// As it finds them.
    #[default]
    Arrival,
    /// By the keys that were given with them ([`crate::Owned::call_at`], [`crate::Owned::post_at`]), equal ones as it
    /// finds them: what touches the same part of the data runs one after the other. Requests without a key come
    /// after those that their thread made before, and before those it made later.
    Key,
}
