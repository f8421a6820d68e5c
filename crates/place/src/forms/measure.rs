//! Communication as one number, and such a number as messages.

use super::error::WriteError;
use crate::graph::{ComponentId, Connection, Graph, Number};

/// What one number says of the communication between two components.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Measure {
    /// Messages in a round.
    Messages,
    /// Bytes of payload in a round.
    #[default]
    Bytes,
    /// Bytes in a round, and for each message so many more: what a message costs however small it
    /// is. A cache line, 64 bytes, is a fair guess.
    Volume {
        /// The bytes that each message adds.
        envelope_bytes: f64,
    },
}

impl Measure {
    /// The number of a connection. It can be infinite, even though the graph's numbers are not.
    #[must_use]
    pub fn of(self, connection: &Connection) -> f64 {
        connection.messages.value * self.of_message(connection.bytes.value)
    }

    /// The number of one message of that size.
    fn of_message(self, bytes: f64) -> f64 {
        match self {
            Self::Messages => 1.0,
            Self::Bytes => bytes,
            Self::Volume { envelope_bytes } => bytes + envelope_bytes,
        }
    }

    /// Whether messages, of whatever size, have numbers from 0 on.
    pub(super) fn check(self) -> Result<(), WriteError> {
        match self {
            Self::Volume { envelope_bytes }
                if !envelope_bytes.is_finite() || envelope_bytes < 0.0 =>
            {
                Err(WriteError::Envelope)
            }
            _ => Ok(()),
        }
    }

    /// Its unit, in words.
    pub(super) fn unit(self) -> String {
        match self {
            Self::Messages => "messages in a round".into(),
            Self::Bytes => "bytes in a round".into(),
            Self::Volume { envelope_bytes } => {
                format!("bytes in a round, with {envelope_bytes} for each message")
            }
        }
    }
}

/// How the numbers of another tool become messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What the numbers say.
    pub measure: Measure,
    /// The payload of every message, as the numbers tell nothing of it; above 0.
    pub message_bytes: f64,
    /// The components' names, in the order of the text. If there are none, those in the text's
    /// comments; if it has none, `c0`, `c1` and so on.
    pub names: Vec<String>,
}

impl Default for Reading {
    /// Bytes, in messages of a cache line.
    fn default() -> Self {
        Self {
            measure: Measure::default(),
            message_bytes: 64.0,
            names: Vec::new(),
        }
    }
}

impl Reading {
    /// The connection for such a number. The file says how much it is, and nobody how large each
    /// message is.
    pub(super) fn connection(&self, from: u32, to: u32, number: f64) -> Connection {
        let messages = number / self.measure.of_message(self.message_bytes);
        Connection::new(ComponentId(from), ComponentId(to))
            .messages(Number::declared(messages))
            .bytes(Number::assumed(self.message_bytes))
    }

    /// Whether a number other than zero stands for messages at all.
    pub(super) fn is_sound(&self) -> bool {
        let is_positive = self.message_bytes.is_finite() && self.message_bytes > 0.0;
        is_positive && self.measure.check().is_ok()
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The components and their connections, as sound as [`Graph::check`] wants it.
    pub graph: Graph,
    /// What the text holds and the graph does not: whole sentences.
    pub notes: Vec<String>,
}
