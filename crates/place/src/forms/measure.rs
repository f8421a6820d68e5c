//! Communication as one number, and such a number as messages.

use super::error::WriteError;
use crate::graph::{ComponentId, Connection, Graph, Number};

/// Unit of a number that stands for the communication between two components.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Measure {
    /// Messages in a round.
    Messages,
    /// Bytes of payload in a round.
    #[default]
    Bytes,
    /// Bytes in a round, plus a fixed number for each message: its cost however small it is. A
    /// cache line, 64 bytes, is a fair guess.
    Volume {
        /// Bytes added for each message.
        envelope_bytes: f64,
    },
}

impl Measure {
    /// The number for a connection. It can be infinite even though the graph's numbers are not.
    #[must_use]
    pub fn of(self, connection: &Connection) -> f64 {
        connection.messages.value * self.of_message(connection.bytes.value)
    }

    /// The number for one message of that size.
    fn of_message(self, bytes: f64) -> f64 {
        match self {
            Self::Messages => 1.0,
            Self::Bytes => bytes,
            Self::Volume { envelope_bytes } => bytes + envelope_bytes,
        }
    }

    /// Checks that messages of any size have numbers of at least 0.
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

/// Rule for turning another tool's numbers into messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Unit of the numbers.
    pub measure: Measure,
    /// Payload of every message, above 0, since the numbers do not tell it.
    pub message_bytes: f64,
    /// The components' names, in the order of the text. If empty, the names in the text's comments,
    /// or else `c0`, `c1` and so on.
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
    /// The connection for a number. The amount is the file's; the size of each message is assumed.
    pub(super) fn connection(&self, from: u32, to: u32, number: f64) -> Connection {
        let messages = number / self.measure.of_message(self.message_bytes);
        Connection::new(ComponentId(from), ComponentId(to))
            .messages(Number::declared(messages))
            .bytes(Number::assumed(self.message_bytes))
    }

    /// Whether a number other than zero stands for any messages.
    pub(super) fn is_sound(&self) -> bool {
        let is_positive = self.message_bytes.is_finite() && self.message_bytes > 0.0;
        is_positive && self.measure.check().is_ok()
    }
}

/// Result of reading a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Components and connections, valid by [`Graph::check`].
    pub graph: Graph,
    /// Contents of the text that the graph lacks, as whole sentences.
    pub notes: Vec<String>,
}
