//! Serial packets as TinyOS frames them, for the `printTC…` procedures.
//!
//! ```text
//! 7E │ 45 │ 00 │ FF FF │ src src │ len │ group │ type │ payload … │ crc crc │ 7E
//!    │ unacknowledged    └ addresses, high byte first             │ low byte first
//!    └ between the flags, 7D and 7E are written as 7D and the byte xor 20
//! ```
//!
//! The check is CRC-16 with polynomial 1021 from 0, over everything between the first flag and
//! itself. The packets are those of the TinyOS printf library: type 100, 28 bytes of text filled
//! up with zeros; a longer text takes several.

const FLAG: u8 = 0x7E;
const ESCAPE: u8 = 0x7D;
const ESCAPE_MASK: u8 = 0x20;
/// A packet that wants no acknowledgement.
const PROTOCOL: u8 = 0x45;
/// An active message follows.
const DISPATCH: u8 = 0;
const BROADCAST: u16 = 0xFFFF;
const GROUP: u8 = 0;
/// The message type of the TinyOS printf library.
const PRINTF: u8 = 100;
/// Text bytes of a packet.
const ROOM: usize = 28;

/// The packets that print `text`, sent by the node `source`.
pub(crate) fn frame_text(text: &[u8], source: u16) -> Vec<u8> {
    let mut output = Vec::new();
    for chunk in text.chunks(ROOM) {
        let mut packet = vec![PROTOCOL, DISPATCH];
        packet.extend(BROADCAST.to_be_bytes());
        packet.extend(source.to_be_bytes());
        packet.extend([ROOM as u8, GROUP, PRINTF]);
        packet.extend(chunk);
        packet.resize(packet.len() + ROOM - chunk.len(), 0);
        let check = crc(&packet);
        packet.extend(check.to_le_bytes());
        output.push(FLAG);
        escape(&packet, &mut output);
        output.push(FLAG);
    }
    output
}

fn escape(packet: &[u8], output: &mut Vec<u8>) {
    for &byte in packet {
        if byte == FLAG || byte == ESCAPE {
            output.extend([ESCAPE, byte ^ ESCAPE_MASK]);
        } else {
            output.push(byte);
        }
    }
}

/// CRC-16, polynomial x¹⁶ + x¹² + x⁵ + 1, high bit first, from 0.
pub(crate) fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |mut crc: u16, &byte| {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 != 0 {
                crc << 1 ^ 0x1021
            } else {
                crc << 1
            };
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_is_the_one_published_as_xmodem() {
        assert_eq!(crc(b"123456789"), 0x31C3);
        assert_eq!(crc(b""), 0);
    }

    #[test]
    fn a_packet_reads_back() {
        let packet = frame_text(b"hi~}", 0x0102);
        assert_eq!((packet[0], packet[packet.len() - 1]), (FLAG, FLAG));
        let mut inner = Vec::new();
        let mut bytes = packet[1..packet.len() - 1].iter();
        while let Some(&byte) = bytes.next() {
            assert_ne!(byte, FLAG);
            inner.push(if byte == ESCAPE {
                bytes.next().unwrap() ^ ESCAPE_MASK
            } else {
                byte
            });
        }
        // Over a packet and its check, high byte first, the check is 0.
        let check = inner.split_off(inner.len() - 2);
        inner.extend([check[1], check[0]]);
        assert_eq!(crc(&inner), 0);
        assert_eq!(inner[..9], [0x45, 0, 0xFF, 0xFF, 1, 2, 28, 0, 100]);
        assert_eq!(&inner[9..13], b"hi~}");
        assert!(inner[13..37].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_long_text_takes_several_packets() {
        let flags = |text: &[u8]| frame_text(text, 1).iter().filter(|&&b| b == FLAG).count();
        assert_eq!(flags(b""), 0);
        assert_eq!(flags(&[b'x'; 28]), 2);
        assert_eq!(flags(&[b'x'; 29]), 4);
    }
}
