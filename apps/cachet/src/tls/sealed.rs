//! The encrypted side of one connection.

use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hearth_net::{Input, SecondWriter, WriteAtOnce};
use rustls::{Error, InvalidMessage, ServerConnection};

/// Plain bytes that one call of the service gets at most, but for the rest of a record.
const PLAIN_MAX: usize = 64 << 10;
/// Bytes of a record before its contents: kind, version, length.
const HEADER: usize = 5;
/// Longest contents of a record: 2¹⁴ bytes, and 2,048 for what encryption adds (RFC 5246, 6.2.3).
const CONTENTS_MAX: usize = (1 << 14) + 2048;
/// Plain bytes that a second writer encrypts at once.
const SECOND_MAX: usize = 16 << 10;

/// The encrypted side of a connection. Its thread has it, and a second writer, if there is one.
pub(super) struct Sealed(Mutex<Inner>);

struct Inner {
    connection: ServerConnection,
    /// Takes all output from the moment it exists: records of two writers would mix otherwise.
    second: Option<SecondWriter>,
    /// Encrypted bytes that the second writer has not sent.
    unsent: Vec<u8>,
    /// Number of plain bytes, offered to the second writer, whose encrypted form is not all sent.
    /// They will be offered again.
    offered: usize,
    is_ended: bool,
}

/// The first record of some bytes.
#[derive(Debug, PartialEq, Eq)]
enum First {
    /// A record of this length.
    Whole(usize),
    /// Some bytes of it are missing.
    Part,
    /// There is none: these bytes are not TLS.
    Wrong,
}

impl First {
    fn of(bytes: &[u8]) -> First {
        match bytes {
            [] => First::Part,
            // Kinds: change of cipher, alert, handshake, data, heartbeat.
            [kind, ..] if !(20..=24).contains(kind) => First::Wrong,
            [_, _, _, high, low, ..] => {
                let contents = usize::from(u16::from_be_bytes([*high, *low]));
                match contents > CONTENTS_MAX {
                    true => First::Wrong,
                    false if bytes.len() >= HEADER + contents => First::Whole(HEADER + contents),
                    false => First::Part,
                }
            }
            _ => First::Part,
        }
    }
}

impl Sealed {
    pub(super) fn new(connection: ServerConnection) -> Arc<Sealed> {
        Arc::new(Sealed(Mutex::new(Inner {
            connection,
            second: None,
            unsent: Vec::new(),
            offered: 0,
            is_ended: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decrypts whole records; those that are not whole stay in the input. True if there may be
    /// more.
    ///
    /// # Errors
    /// The other side breaks the rules, or is not trusted; [`Sealed::deliver`] tells it why.
    pub(super) fn receive(
        &self,
        input: &mut Input<'_>,
        plain: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let mut inner = self.lock();
        while plain.len() < PLAIN_MAX {
            if inner.is_ended {
                input.consume(input.bytes().len());
            }
            match First::of(input.bytes()) {
                First::Part => return Ok(false),
                First::Wrong => {
                    return Err(Error::InvalidMessage(InvalidMessage::InvalidContentType));
                }
                First::Whole(length) => {
                    inner.open(&input.bytes()[..length], plain)?;
                    input.consume(length);
                }
            }
        }
        Ok(true)
    }

    /// Encrypts bytes of the service.
    pub(super) fn send(&self, plain: &[u8]) {
        if !plain.is_empty() {
            self.lock().seal(plain);
        }
    }

    /// Says that nothing more will be sent.
    pub(super) fn end(&self) {
        self.lock().connection.send_close_notify();
    }

    /// Moves encrypted bytes to the output, or to the second writer.
    pub(super) fn deliver(&self, output: &mut Vec<u8>) {
        let mut inner = self.lock();
        let Inner {
            connection,
            second,
            unsent,
            ..
        } = &mut *inner;
        match second {
            None => drain(connection, output),
            Some(_) => {
                drain(connection, unsent);
                // A broken connection is noticed where it is read.
                let _ = inner.flush();
            }
        }
    }

    /// True before the two sides have agreed.
    pub(super) fn is_handshaking(&self) -> bool {
        self.lock().connection.is_handshaking()
    }

    /// True if the other side has said that it sends no more.
    pub(super) fn is_ended(&self) -> bool {
        self.lock().is_ended
    }

    /// Gives the connection a second writer, which first sends what was to be sent before.
    pub(super) fn share(&self, second: SecondWriter, before: Vec<u8>) {
        let mut inner = self.lock();
        inner.second = Some(second);
        inner.unsent = before;
        let _ = inner.flush();
    }
}

/// Moves all encrypted bytes.
fn drain(connection: &mut ServerConnection, out: &mut Vec<u8>) {
    while connection.wants_write() {
        // Memory takes everything.
        let _ = connection.write_tls(out);
    }
}

impl Inner {
    /// Decrypts a record.
    fn open(&mut self, mut record: &[u8], plain: &mut Vec<u8>) -> Result<(), Error> {
        while !record.is_empty() {
            let read = self.connection.read_tls(&mut record);
            read.map_err(|error| Error::General(error.to_string()))?;
            let state = self.connection.process_new_packets()?;
            self.is_ended |= state.peer_has_closed();
            let mut reader = self.connection.reader();
            // At the end of what has come it says that it would wait.
            while let Ok(bytes @ [_, ..]) = reader.fill_buf() {
                let count = bytes.len();
                plain.extend_from_slice(bytes);
                reader.consume(count);
            }
        }
        Ok(())
    }

    fn seal(&mut self, plain: &[u8]) {
        // Its buffer has no limit.
        let _ = self.connection.writer().write_all(plain);
    }

    /// Lets the second writer send what can go. True if all is sent.
    fn flush(&mut self) -> io::Result<bool> {
        let Some(second) = &self.second else {
            return Ok(true);
        };
        if !self.unsent.is_empty() {
            let sent = second.try_write(&self.unsent)?;
            self.unsent.drain(..sent);
        }
        Ok(self.unsent.is_empty())
    }
}

/// A second writer of plain bytes. It says that bytes are written when all of their encrypted form
/// is: it is offered the same bytes until then, and nobody else would send the rest.
pub(super) struct Second(pub(super) Arc<Sealed>);

impl WriteAtOnce for Second {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.lock();
        if inner.offered == 0 {
            if !inner.flush()? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let part = &bytes[..bytes.len().min(SECOND_MAX)];
            inner.seal(part);
            inner.offered = part.len();
            let Inner {
                connection, unsent, ..
            } = &mut *inner;
            drain(connection, unsent);
        }
        match inner.flush()? {
            true => Ok(std::mem::take(&mut inner.offered)),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::First;

    #[test]
    fn a_record_is_known_by_its_first_bytes() {
        for (bytes, first) in [
            (&b""[..], First::Part),
            (b"g", First::Wrong),
            (b"mn\r\n", First::Wrong),
            (b"\x16", First::Part),
            (b"\x16\x03\x01\x00", First::Part),
            (b"\x16\x03\x01\x00\x02x", First::Part),
            (b"\x16\x03\x01\x00\x02xyz", First::Whole(7)),
            (b"\x17\x03\x03\x48\x00", First::Part),
            (b"\x17\x03\x03\x48\x01", First::Wrong),
        ] {
            assert_eq!(First::of(bytes), first, "{}", bytes.escape_ascii());
        }
    }
}
