//! Names for the ways to make calls.

use std::fmt;
use std::str::FromStr;

use crate::UnknownName;
use crate::errors::by_name;

/// A setting: a fixed way, or the one that measurements favour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Calls take [`Way::Lock`].
    #[default]
    Lock,
    /// Calls take [`Way::Combine`].
    Combine,
    /// Calls take [`Way::Message`].
    Message,
    /// Calls take the way that measures better, which may change.
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

/// The way of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Way {
    /// Synchronous: the caller takes the lock, and the data comes to its core.
    #[default]
    Lock = 0,
    /// Synchronous, too; but a caller that finds the lock held leaves a request, which the holder
    /// may serve: the data stays where it is for a while, and no core is given to a proprietor.
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

/// Number of requests that a proprietor serves at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Drain {
    /// All requests that a thread has made, then the next thread's.
    #[default]
    All,
    /// One of each thread.
    One,
}

/// Order in which a proprietor serves the requests it finds at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The order in which it finds them.
    #[default]
    Arrival,
    /// By the keys given with them ([`crate::Owned::call_at`], [`crate::Owned::post_at`]), equal
    /// keys as found: requests for the same part of the data run one after the other. A request
    /// without a key comes after the earlier ones of its thread and before the later ones.
    Key,
}
