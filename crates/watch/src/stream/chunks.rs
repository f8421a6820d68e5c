//! Reading the chunks of a stream's file.

use std::io::{self, Read};

use super::chunk::{Chunk, Clocks, HEADER, Head, MAGIC, Said, check_of, kind};
use super::layout::Law;
use super::numbers::Bytes;
use super::tally::Tally;
use super::words::Total;
use super::{calls, columns, components};

/// Longest payload that a reader believes.
const PAYLOAD_MAX: usize = 1 << 26;

/// Reason for which a part of a file cannot be read.
#[derive(Debug)]
pub enum Damage {
    /// The file ends in the middle of a chunk; these bytes are left over.
    Torn(u64),
    /// Number of bytes that are no chunks.
    Skipped(u64),
    /// The file begins with something else.
    NoStream,
    /// Reading failed.
    Read(io::Error),
}

fn unpack_raw(bytes: &[u8]) -> Vec<[u64; 2]> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    bytes
        .chunks_exact(16)
        .map(|pair| [word(&pair[..8]), word(&pair[8..])])
        .collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn said(header: &[u8; HEADER], payload: &[u8]) -> Option<Said> {
    let mut bytes = Bytes(payload);
    Some(match header[4] {
        kind::RECORDS => {
            let count = u32_at(header, 12) as usize;
            let records = match header[5] {
                0 => unpack_raw(payload),
                1 => calls::unpack(bytes, count)?,
                2 => columns::unpack(bytes, count)?,
                3 => components::unpack(bytes, count)?,
                _ => return None,
            };
            let first = u64::from(u32_at(header, 16)) | u64::from(u32_at(header, 20)) << 32;
            Said::Records(Chunk {
                thread: u32_at(header, 8),
                first,
                note: u32_at(header, 24),
                records: (records.len() == count).then_some(records)?,
            })
        }
        kind::HEAD => Said::Head(Head {
            process: bytes.number()? as u32,
            law: Law::of_number(bytes.number()?)?,
            program: bytes.text()?,
            journal: bytes.text()?,
        }),
        kind::NAMES => {
            let mut names = Vec::new();
            while !bytes.0.is_empty() {
                names.push((bytes.number()? as u32, bytes.text()?));
            }
            Said::Names(names)
        }
        kind::CLOCKS => Said::Clocks(Clocks {
            ticks: bytes.number()?,
            ns: bytes.number()?,
            wall: bytes.number()?,
        }),
        kind::TOTAL => Said::Total(Total {
            thread: bytes.number()? as u32,
            id: bytes.number()? as u32,
            emitted: bytes.number()?,
            dropped: bytes.number()?,
            overwritten: bytes.number()?,
            refused: bytes.number()?,
            name: bytes.text()?,
        }),
        kind::TALLY => {
            let (name, tally) = Tally::take(&mut bytes)?;
            Said::Tally(name, tally)
        }
        kind::WRITER => Said::Writer(bytes.text()?),
        kind::END => Said::End(bytes.number()?),
        _ => return None,
    })
}

/// Contents of some chunks that somebody else passes on.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// The head, with the number of its bytes, if they begin with one.
    pub(super) head: Option<(Head, usize)>,
    /// Whether they have an end.
    pub(super) has_end: bool,
}

/// The contents of whole chunks. None if they are something else, or damaged.
pub(super) fn outline(mut bytes: &[u8]) -> Option<Outline> {
    let mut outline = Outline::default();
    let mut is_first = true;
    while !bytes.is_empty() {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let (payload, rest) = rest.split_at_checked(u32_at(header, 28) as usize)?;
        let is_whole =
            u32_at(header, 0) == MAGIC && check_of(&header[..36], payload) == u32_at(header, 36);
        if !is_whole {
            return None;
        }
        outline.has_end |= header[4] == kind::END;
        if is_first && let Some(Said::Head(head)) = said(header, payload) {
            outline.head = Some((head, HEADER + payload.len()));
        }
        (is_first, bytes) = (false, rest);
    }
    Some(outline)
}

/// Reads the chunks of a stream's file, one after the other.
pub struct Chunks<R> {
    from: R,
    /// Bytes read and not yet understood.
    ahead: Vec<u8>,
    at: usize,
    /// Place of the bytes read in what is read from.
    ahead_at: u64,
    /// Place of the last chunk.
    last_at: u64,
    has_begun: bool,
    is_over: bool,
    /// More may come behind the end.
    grows: bool,
}

impl<R: Read> Chunks<R> {
    /// Reads chunks of a file that grows: after a None there may be more later.
    pub fn growing(from: R) -> Chunks<R> {
        Chunks {
            grows: true,
            ..Chunks::new(from)
        }
    }

    /// Reads chunks from here on. It buffers by itself.
    pub fn new(from: R) -> Chunks<R> {
        Chunks {
            grows: false,
            from,
            ahead: Vec::new(),
            at: 0,
            ahead_at: 0,
            last_at: 0,
            has_begun: false,
            is_over: false,
        }
    }

    /// Place of the last chunk that was read, in bytes from where reading began.
    #[must_use]
    pub fn last_at(&self) -> u64 {
        self.last_at
    }

    /// Makes this many bytes available, if there are so many.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        if self.ahead.len() - self.at >= bytes {
            return Ok(true);
        }
        self.ahead.drain(..self.at);
        self.ahead_at += std::mem::take(&mut self.at) as u64;
        let wanted = bytes.max(1 << 16) as u64;
        let missing = wanted - self.ahead.len() as u64;
        self.from
            .by_ref()
            .take(missing)
            .read_to_end(&mut self.ahead)?;
        Ok(self.ahead.len() >= bytes)
    }

    /// The chunk at this place, and its length. None if there is no whole one.
    fn chunk(&mut self) -> io::Result<Option<(Said, usize)>> {
        if !self.fill(HEADER)? || u32_at(&self.ahead, self.at) != MAGIC {
            return Ok(None);
        }
        let payload = u32_at(&self.ahead, self.at + 28) as usize;
        if payload > PAYLOAD_MAX || !self.fill(HEADER + payload)? {
            return Ok(None);
        }
        let bytes = &self.ahead[self.at..self.at + HEADER + payload];
        let Some((header, payload)) = bytes.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        if check_of(&header[..36], payload) != u32_at(header, 36) {
            return Ok(None);
        }
        Ok(said(header, payload).map(|said| (said, bytes.len())))
    }

    /// Whether the file ends within what may become a chunk.
    fn is_cut(&mut self) -> Result<bool, Damage> {
        if !self.fill(HEADER).map_err(Damage::Read)? {
            return Ok(true);
        }
        let payload = u32_at(&self.ahead, self.at + 28) as usize;
        let is_chunk = u32_at(&self.ahead, self.at) == MAGIC && payload <= PAYLOAD_MAX;
        Ok(is_chunk && !self.fill(HEADER + payload).map_err(Damage::Read)?)
    }

    fn step(&mut self) -> Result<Option<Said>, Damage> {
        let mut skipped = 0;
        loop {
            if let Some((said, length)) = self.chunk().map_err(Damage::Read)? {
                if skipped > 0 {
                    return Err(Damage::Skipped(skipped));
                }
                self.last_at = self.ahead_at + self.at as u64;
                self.at += length;
                self.has_begun = true;
                return Ok(Some(said));
            }
            if self.grows && skipped == 0 && self.is_cut()? {
                return Ok(None);
            }
            if !self.has_begun {
                return Err(Damage::NoStream);
            }
            if !self.fill(HEADER).map_err(Damage::Read)? {
                self.is_over = true;
                let left = (self.ahead.len() - self.at) as u64 + skipped;
                return match left {
                    0 => Ok(None),
                    left => Err(Damage::Torn(left)),
                };
            }
            self.at += 1;
            skipped += 1;
        }
    }
}

impl<R: Read> Iterator for Chunks<R> {
    type Item = Result<Said, Damage>;

    fn next(&mut self) -> Option<Result<Said, Damage>> {
        if self.is_over {
            return None;
        }
        let step = self.step().transpose();
        if let Some(Err(Damage::Read(_) | Damage::NoStream)) = step {
            self.is_over = true;
        }
        step
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Damage::Torn(bytes) => write!(f, "the last {bytes} bytes are the start of a chunk"),
            Damage::Skipped(bytes) => write!(f, "{bytes} bytes are damaged"),
            Damage::NoStream => f.write_str("it is no file of a stream"),
            Damage::Read(error) => write!(f, "reading failed: {error}"),
        }
    }
}

impl std::error::Error for Damage {}

#[cfg(test)]
mod tests {
    use super::super::chunk::{Encoding, write_chunk};
    use super::*;
    use crate::stream::{GAP, TICKS};

    fn calls() -> Vec<[u64; 2]> {
        vec![
            [5, 1],
            [9, 300],
            [1 << 56 | 12, 300],
            [GAP | 20, 1000],
            [1 << 56 | 21, 1],
            [TICKS, 1 << 40],
        ]
    }

    #[test]
    fn chunks_come_back() {
        let total = Total {
            thread: 3,
            id: 77,
            name: "main".into(),
            emitted: 1 << 40,
            dropped: 5,
            overwritten: 0,
            refused: 1,
        };
        let head = Head {
            process: 1,
            law: Law::Sample,
            program: "a program".into(),
            journal: "/dev/shm/x".into(),
        };
        let all = [
            Said::Head(head),
            Said::Names(vec![(0, "a".into()), (3, "Server.handle".into())]),
            Said::Records(Chunk {
                thread: 3,
                first: 1 << 33,
                note: 4,
                records: calls(),
            }),
            Said::Clocks(Clocks {
                ticks: 1,
                ns: 2,
                wall: u64::MAX,
            }),
            Said::Total(total),
            Said::Writer("anywhere".into()),
            Said::End(9),
        ];
        for encoding in [Encoding::Raw, Encoding::Calls, Encoding::Columns] {
            let mut bytes = Vec::new();
            for said in &all {
                write_chunk(said, encoding, &mut bytes);
            }
            let read: Result<Vec<Said>, Damage> = Chunks::new(bytes.as_slice()).collect();
            assert_eq!(read.expect("whole"), all);
        }
    }

    #[test]
    fn damage_costs_the_damaged_chunk_only() {
        let chunk = |first| {
            Said::Records(Chunk {
                thread: 1,
                first,
                note: 0,
                records: calls(),
            })
        };
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for first in 0..3 {
            write_chunk(&chunk(first), Encoding::Calls, &mut bytes);
            ends.push(bytes.len());
        }
        for cut in 1..bytes.len() {
            let read: Vec<_> = Chunks::new(&bytes[..cut]).collect();
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            let got = read.iter().filter(|said| said.is_ok()).count();
            assert_eq!(got, whole, "cut at {cut}");
        }
        for at in ends[0]..ends[1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let read: Vec<_> = Chunks::new(damaged.as_slice()).collect();
            let kept: Vec<_> = read.iter().filter_map(|said| said.as_ref().ok()).collect();
            assert_eq!(kept, [&chunk(0), &chunk(2)], "damaged at {at}");
        }
    }
}
