//! Queues to compare with each other.

use std::fmt;
use std::str::FromStr;

use crate::UnknownName;
use crate::errors::by_name;

/// Way in which requests reach the proprietor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Lines of its own for each thread, which the proprietor looks through: no lock, and two lines
    /// moved per call.
    #[default]
    Lines,
    /// The source's: one circular array under a lock, with room for twice as many messages as
    /// clients ([`crate::Builder::clients`]). All threads share it: `depth` does not limit posts,
    /// [`crate::Order::Key`] has no effect, and no caller takes the lock for lack of a line. A
    /// sender that finds it full yields and looks again until there is room, without sleeping.
    Ring(Copying),
}

/// Number of copies of a message on its way through a [`Queue::Ring`].
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
