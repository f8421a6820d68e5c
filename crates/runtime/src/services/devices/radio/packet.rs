//! The wire format of a packet.
//!
//! ```text
//! "HR" │ version │ kind │ sender, 4 bytes │ number, 4 bytes │ payload
//! ```
//!
//! Low bytes first. The payload is a box as `portable` writes it; an answer has none.

/// "HR", and the version.
const MARK: [u8; 3] = [b'H', b'R', 1];
const HEADER: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Broadcast,
    Unicast,
    /// Wants an answer.
    Reliable,
    /// Acknowledges the reliable packet of this number.
    Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) kind: Kind,
    pub(super) sender: u32,
    pub(super) number: u32,
    pub(super) payload: &'a [u8],
}

impl<'a> Packet<'a> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.payload.len());
        bytes.extend(MARK);
        bytes.push(self.kind as u8);
        bytes.extend(self.sender.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.payload);
        bytes
    }

    /// Parses a packet; None if invalid.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Packet<'a>> {
        let rest = bytes.strip_prefix(&MARK)?;
        let (&kind, rest) = rest.split_first()?;
        let (sender, rest) = rest.split_first_chunk()?;
        let (number, payload) = rest.split_first_chunk()?;
        let kind = match kind {
            0 => Kind::Broadcast,
            1 => Kind::Unicast,
            2 => Kind::Reliable,
            3 if payload.is_empty() => Kind::Answer,
            _ => return None,
        };
        let (sender, number) = (u32::from_le_bytes(*sender), u32::from_le_bytes(*number));
        Some(Packet {
            kind,
            sender,
            number,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_read_back() {
        for kind in [Kind::Broadcast, Kind::Unicast, Kind::Reliable, Kind::Answer] {
            let payload: &[u8] = if kind == Kind::Answer {
                b""
            } else {
                b"payload"
            };
            let packet = Packet {
                kind,
                sender: 0x01020304,
                number: u32::MAX,
                payload,
            };
            assert_eq!(Packet::read(&packet.to_bytes()), Some(packet));
        }
    }

    #[test]
    fn other_datagrams_are_no_packets() {
        let good = Packet {
            kind: Kind::Unicast,
            sender: 1,
            number: 2,
            payload: b"",
        }
        .to_bytes();
        for length in 0..good.len() {
            assert_eq!(Packet::read(&good[..length]), None);
        }
        let mut other = good.clone();
        other[3] = 4;
        assert_eq!(Packet::read(&other), None);
        other[2] = 2;
        assert_eq!(Packet::read(&other), None);
    }
}
