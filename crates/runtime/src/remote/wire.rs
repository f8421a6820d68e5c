//! The protocol between nodes: messages over a local stream socket.
//!
//! ```text
//! message   its length, 4 bytes, low byte first; its kind, 1 byte; the rest by kind
//! Connect   direction of the caller's channel, 1 byte; type code; name
//! Join      name; address, 4 bytes; other name
//! Part      name
//! Answer    status, 1 byte
//! Value     the value, as `portable` writes it
//! Taken     1 if the value was received well, 0 if not
//! ```
//!
//! A text is its length, 4 bytes, and its bytes. Connect, Join and Part open a conversation, and an
//! Answer follows. After a Connect that went well the stream is a link: Values go one way, one at a
//! time, and a Taken comes back for each.

use std::io::{self, Read, Write};

use crate::abi::Label;
use crate::exchange::channel::Direction;

/// Longest message accepted: no node sends larger values, and a broken peer gets no more memory.
const LONGEST: usize = 256 << 20;

/// Longest request or answer accepted, which any program may send: a type code and a name or two.
pub(super) const LONGEST_REQUEST: usize = 1 << 20;

/// An error: the value has more bytes than a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong(usize);

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = LONGEST - 1;
        write!(
            f,
            "it takes {} bytes, and {most} are the most; send it in parts",
            self.0
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Connect {
        direction: Direction,
        code: String,
        name: Vec<u8>,
    },
    Join {
        name: Vec<u8>,
        address: u32,
        other: Vec<u8>,
    },
    Part {
        name: Vec<u8>,
    },
    Answer(Status),
    Value(Vec<u8>),
    Taken(bool),
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Status {
    Well = 0,
    NodeUnreachable = 1,
    ChannelUnknown = 2,
    Incompatible = 3,
    /// No node answered.
    Unknown = 4,
}

impl Status {
    fn numbered(number: u8) -> Option<Status> {
        use Status::{ChannelUnknown, Incompatible, NodeUnreachable, Unknown, Well};
        [Well, NodeUnreachable, ChannelUnknown, Incompatible, Unknown]
            .get(number as usize)
            .copied()
    }

    /// Returns the exception that reports it.
    pub(super) fn exception(self) -> Option<Label> {
        match self {
            Status::Well => None,
            Status::NodeUnreachable => Some(Label::NodesUnreachable),
            Status::ChannelUnknown => Some(Label::ChannelsUnknown),
            Status::Incompatible => Some(Label::IncompatibleChannels),
            Status::Unknown => Some(Label::BindStatusUnknown),
        }
    }
}

impl Message {
    /// Makes a message of a value's bytes. The receiver would refuse one that is too long, and end
    /// the link.
    pub(super) fn value(bytes: Vec<u8>) -> Result<Message, TooLong> {
        match bytes.len() < LONGEST {
            true => Ok(Message::Value(bytes)),
            false => Err(TooLong(bytes.len())),
        }
    }

    pub(super) fn send(&self, mut to: impl Write) -> io::Result<()> {
        // In one write: no reader sees half a message.
        to.write_all(&self.to_bytes())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        match self {
            Message::Connect {
                direction,
                code,
                name,
            } => {
                bytes.extend([0, *direction as u8]);
                write_text(code.as_bytes(), &mut bytes);
                write_text(name, &mut bytes);
            }
            Message::Join {
                name,
                address,
                other,
            } => {
                bytes.push(1);
                write_text(name, &mut bytes);
                bytes.extend(address.to_le_bytes());
                write_text(other, &mut bytes);
            }
            Message::Part { name } => {
                bytes.push(2);
                write_text(name, &mut bytes);
            }
            Message::Answer(status) => bytes.extend([3, *status as u8]),
            Message::Value(value) => {
                bytes.push(4);
                bytes.extend(value);
            }
            Message::Taken(well) => bytes.extend([5, u8::from(*well)]),
        }
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// Reads the next message, which opens a conversation or answers one. An error if there is
    /// none, or it makes no sense.
    pub(super) fn receive(mut from: impl Read) -> io::Result<Message> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = length_of(length, LONGEST_REQUEST)?;
        // A length alone gets no memory: the buffer grows with the bytes received.
        let mut bytes = Vec::new();
        from.take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(nonsense());
        }
        Message::of_bytes(bytes).ok_or_else(nonsense)
    }

    fn of_bytes(bytes: Vec<u8>) -> Option<Message> {
        let (&kind, rest) = bytes.split_first()?;
        let mut rest = Reader { rest };
        let message = match kind {
            0 => {
                let direction = match rest.byte()? {
                    0 => Direction::In,
                    1 => Direction::Out,
                    _ => return None,
                };
                let code = String::from_utf8(rest.text()?).ok()?;
                Message::Connect {
                    direction,
                    code,
                    name: rest.text()?,
                }
            }
            1 => Message::Join {
                name: rest.text()?,
                address: rest.word()?,
                other: rest.text()?,
            },
            2 => Message::Part { name: rest.text()? },
            3 => Message::Answer(Status::numbered(rest.byte()?)?),
            4 => return Some(Message::Value(bytes[1..].to_vec())),
            5 => Message::Taken(rest.byte()? == 1),
            _ => return None,
        };
        rest.rest.is_empty().then_some(message)
    }
}

/// Received bytes of messages.
#[derive(Default)]
pub(super) struct Received {
    bytes: Vec<u8>,
    /// Bytes of messages already taken out.
    taken: usize,
}

impl Received {
    pub(super) fn add(&mut self, more: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(more);
    }

    /// Takes the next message, if it is complete. An error if it makes no sense.
    pub(super) fn next(&mut self) -> io::Result<Option<Message>> {
        let rest = &self.bytes[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk() else {
            return Ok(None);
        };
        let length = length_of(*length, LONGEST)?;
        let Some(bytes) = rest.get(..length) else {
            return Ok(None);
        };
        self.taken += 4 + length;
        Message::of_bytes(bytes.to_vec())
            .map(Some)
            .ok_or_else(nonsense)
    }
}

fn length_of(bytes: [u8; 4], longest: usize) -> io::Result<usize> {
    let length = u32::from_le_bytes(bytes) as usize;
    match length <= longest {
        true => Ok(length),
        false => Err(nonsense()),
    }
}

fn nonsense() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

/// A channel that a node has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) direction: Direction,
    pub(super) code: String,
    pub(super) name: Vec<u8>,
}

/// Formats a node's list of published channels.
pub(super) fn write_notices(notices: &[Notice]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for notice in notices {
        bytes.push(notice.direction as u8);
        write_text(notice.code.as_bytes(), &mut bytes);
        write_text(&notice.name, &mut bytes);
    }
    bytes
}

/// Parses such a list; the first senseless entry ends it.
pub(super) fn read_notices(bytes: &[u8]) -> Vec<Notice> {
    let mut reader = Reader { rest: bytes };
    let next = || {
        let direction = if reader.byte()? == 0 {
            Direction::In
        } else {
            Direction::Out
        };
        let code = String::from_utf8(reader.text()?).ok()?;
        Some(Notice {
            direction,
            code,
            name: reader.text()?,
        })
    };
    std::iter::from_fn(next).collect()
}

fn write_text(text: &[u8], to: &mut Vec<u8>) {
    to.extend((text.len() as u32).to_le_bytes());
    to.extend(text);
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.word()? as usize;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(text.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Message> {
        let name = b"pulse".to_vec();
        vec![
            Message::Connect {
                direction: Direction::Out,
                code: "Ai".to_owned(),
                name: name.clone(),
            },
            Message::Connect {
                direction: Direction::In,
                code: "i".to_owned(),
                name: Vec::new(),
            },
            Message::Join {
                name: name.clone(),
                address: 70000,
                other: b"other".to_vec(),
            },
            Message::Part { name },
            Message::Answer(Status::Incompatible),
            Message::Value(vec![1, 2, 3]),
            Message::Value(Vec::new()),
            Message::Taken(true),
            Message::Taken(false),
        ]
    }

    #[test]
    fn messages_read_back_in_order() {
        let mut stream = Vec::new();
        for message in examples() {
            message.send(&mut stream).unwrap();
        }
        let mut rest = &stream[..];
        for message in examples() {
            assert_eq!(Message::receive(&mut rest).unwrap(), message);
        }
        assert!(Message::receive(rest).is_err());
    }

    /// Messages survive any split on the way.
    #[test]
    fn messages_are_put_together() {
        let bytes: Vec<u8> = examples().iter().flat_map(Message::to_bytes).collect();
        for size in [1, 3, 4, 7, 1000] {
            let (mut received, mut found) = (Received::default(), Vec::new());
            for piece in bytes.chunks(size) {
                received.add(piece);
                while let Some(message) = received.next().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, examples());
        }
        let mut broken = Received::default();
        broken.add(&[0xFF; 8]);
        assert!(broken.next().is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for message in examples() {
            let bytes = message.to_bytes();
            for length in 0..bytes.len() {
                assert!(Message::receive(&bytes[..length]).is_err());
            }
        }
        assert!(Message::receive(&[1, 0, 0, 0, 9][..]).is_err());
        assert!(Message::receive(&[2, 0, 0, 0, 3, 9][..]).is_err());
        assert!(Message::receive(&[0xFF, 0xFF, 0xFF, 0xFF][..]).is_err());
    }

    #[test]
    fn what_is_longer_than_allowed_is_refused() {
        // A request of a value's length.
        let length = LONGEST_REQUEST as u32 + 1;
        let mut request = length.to_le_bytes().to_vec();
        request.resize(4 + length as usize, 0);
        request[4] = 2;
        request[5..9].copy_from_slice(&(length - 5).to_le_bytes());
        let error = Message::receive(&request[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        // Untouched zeros take no memory.
        assert_eq!(
            Message::value(vec![0; LONGEST]),
            Err(TooLong(LONGEST)),
            "its kind takes a byte, too"
        );
        assert!(Message::value(vec![0; LONGEST - 1]).is_ok());
    }

    #[test]
    fn lists_read_back() {
        let notice = |direction, name: &str| Notice {
            direction,
            code: "Six__".to_owned(),
            name: name.into(),
        };
        let list = [
            notice(Direction::In, "one\ntwo"),
            notice(Direction::Out, ""),
        ];
        assert_eq!(read_notices(&write_notices(&list)), list);
        assert_eq!(read_notices(b"\x01\x05"), []);
    }
}
