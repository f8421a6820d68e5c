//! Chunks of a stream's file.
//!
//! A chunk is a header of 40 bytes and a payload; numbers are little-endian.
//!
//! ```text
//! 0     4     5         6      8       12     16     24    28     32      36        40
//! magic kind  encoding  zero   thread  count  first  note  bytes  zero    check     payload …
//! u32   u8    u8        u16    u32     u32    u64    u32   u32    u32     u32
//! ```
//!
//! `check` is the CRC-32 of the header before it and of the payload. A file that was cut in the
//! middle of a chunk, or damaged, is readable up to there and from the next whole chunk on; what
//! is missing shows as a jump of a thread's `first`.

use super::layout::{Law, is_gap};
use super::numbers::{put, put_text};
use super::tally::Tally;
use super::words::Total;
use super::{calls, columns, components};

pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"HWc1");
pub(super) const HEADER: usize = 40;

/// Form of a chunk's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Both words as they are.
    Raw,
    /// Calls: records of type 0 begin one and records of type 1 end one, with the same second
    /// word. About three bytes each.
    #[default]
    Calls,
    /// Records of few types, whose like words are near each other: a column of types, one of first
    /// words and one of second words. Types below [`PLACED`](super::PLACED) have a time in the
    /// first word, the others an address. About three bytes each.
    Columns,
    /// Calls by components: records of the types of [`components`]. About four bytes each.
    Components,
}

/// A moment by all clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Ticks since the journal began.
    pub ticks: u64,
    /// Nanoseconds since then by the system's steady clock.
    pub ns: u64,
    /// Nanoseconds since 1970 by the wall's clock, which may be set.
    pub wall: u64,
}

/// A run of a thread's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The thread's number.
    pub thread: u32,
    /// Number of records that the thread emitted before.
    pub first: u64,
    /// The thread's word at the first record.
    pub note: u32,
    /// The records, gaps included.
    pub records: Vec<[u64; 2]>,
}

impl Chunk {
    /// Number of records that the thread emitted during the chunk: those that are there, and those
    /// that gaps stand for.
    #[must_use]
    pub fn emitted(&self) -> u64 {
        let of = |record: &[u64; 2]| match is_gap(record[0]) {
            true => record[1],
            false => 1,
        };
        self.records.iter().map(of).sum()
    }

    /// Leaves out the first records, up to the one with this number.
    pub(super) fn skip_to(&mut self, number: u64) {
        let mut skipped = 0;
        for record in &self.records {
            if self.first >= number {
                break;
            }
            skipped += 1;
            self.first += match is_gap(record[0]) {
                true => record[1],
                false => 1,
            };
        }
        self.records.drain(..skipped);
    }

    /// Number of records that are there.
    #[must_use]
    pub fn kept(&self) -> u64 {
        let is_kept = |record: &&[u64; 2]| !is_gap(record[0]);
        self.records.iter().filter(is_kept).count() as u64
    }
}

/// Beginning of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The number of the process.
    pub process: u32,
    /// Its law of loss.
    pub law: Law,
    /// The program.
    pub program: String,
    /// The journal's file, where the rest is if the process was killed.
    pub journal: String,
}

/// Content of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The first chunk of a file.
    Head(Head),
    /// Names by their numbers.
    Names(Vec<(u32, String)>),
    /// Records of a thread.
    Records(Chunk),
    /// A reading of the clocks.
    Clocks(Clocks),
    /// A thread's account so far; the last one counts.
    Total(Total),
    /// A probe's calls so far, added up, and its name; the last one counts.
    Tally(Option<u32>, Tally),
    /// The writer's place, in words; the last one counts.
    Writer(String),
    /// An orderly end, and the number of records of threads that found no slot.
    End(u64),
}

/// Header fields of records, with their encoding.
struct Header {
    kind: u8,
    encoding: Encoding,
    thread: u32,
    count: u32,
    first: u64,
    note: u32,
}

impl Header {
    fn of(kind: u8) -> Header {
        Header {
            kind,
            encoding: Encoding::Raw,
            thread: 0,
            count: 0,
            first: 0,
            note: 0,
        }
    }
}

pub(super) mod kind {
    pub(in crate::stream) const HEAD: u8 = 1;
    pub(in crate::stream) const NAMES: u8 = 2;
    pub(in crate::stream) const RECORDS: u8 = 3;
    pub(in crate::stream) const CLOCKS: u8 = 4;
    pub(in crate::stream) const TOTAL: u8 = 5;
    pub(in crate::stream) const END: u8 = 6;
    pub(in crate::stream) const TALLY: u8 = 7;
    pub(in crate::stream) const WRITER: u8 = 8;
}

pub(super) fn check_of(header: &[u8], payload: &[u8]) -> u32 {
    let mut check = crc32fast::Hasher::new();
    check.update(header);
    check.update(payload);
    check.finalize()
}

fn finish(header: &Header, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(MAGIC.to_le_bytes());
    out.push(header.kind);
    out.push(header.encoding as u8);
    out.extend([0; 2]);
    out.extend(header.thread.to_le_bytes());
    out.extend(header.count.to_le_bytes());
    out.extend(header.first.to_le_bytes());
    out.extend(header.note.to_le_bytes());
    out.extend((payload.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    let check = check_of(&out[start..], payload);
    out.extend(check.to_le_bytes());
    out.extend(payload);
}

/// Memory for packing records, which is used again and again.
#[derive(Default)]
pub(super) struct Packing {
    payload: Vec<u8>,
    components: components::Before,
}

/// Appends a run of records as a chunk, in one pass.
pub(super) fn append_records(
    (thread, first, note): (u32, u64, u32),
    encoding: Encoding,
    records: impl Iterator<Item = [u64; 2]>,
    packing: &mut Packing,
    out: &mut Vec<u8>,
) {
    let payload = &mut packing.payload;
    payload.clear();
    let count = match encoding {
        Encoding::Calls => calls::pack(records, payload),
        Encoding::Columns => columns::pack(records, payload),
        Encoding::Components => components::pack(records, &mut packing.components, payload),
        Encoding::Raw => {
            let before = payload.len();
            for [one, two] in records {
                payload.extend(one.to_le_bytes());
                payload.extend(two.to_le_bytes());
            }
            ((payload.len() - before) / 16) as u32
        }
    };
    let header = Header {
        encoding,
        thread,
        count,
        first,
        note,
        ..Header::of(kind::RECORDS)
    };
    finish(&header, payload, out);
}

/// Appends a chunk.
pub fn write_chunk(said: &Said, encoding: Encoding, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    let kind = match said {
        Said::Records(chunk) => {
            let place = (chunk.thread, chunk.first, chunk.note);
            let records = chunk.records.iter().copied();
            return append_records(place, encoding, records, &mut Packing::default(), out);
        }
        Said::Head(head) => {
            put(&mut payload, u64::from(head.process));
            put(&mut payload, head.law.number());
            put_text(&mut payload, &head.program);
            put_text(&mut payload, &head.journal);
            kind::HEAD
        }
        Said::Names(names) => {
            for (number, name) in names {
                put(&mut payload, u64::from(*number));
                put_text(&mut payload, name);
            }
            kind::NAMES
        }
        Said::Clocks(clocks) => {
            for value in [clocks.ticks, clocks.ns, clocks.wall] {
                put(&mut payload, value);
            }
            kind::CLOCKS
        }
        Said::Total(total) => {
            put(&mut payload, u64::from(total.thread));
            put(&mut payload, u64::from(total.id));
            for value in [
                total.emitted,
                total.dropped,
                total.overwritten,
                total.refused,
            ] {
                put(&mut payload, value);
            }
            put_text(&mut payload, &total.name);
            kind::TOTAL
        }
        Said::Tally(name, tally) => {
            tally.put(*name, &mut payload);
            kind::TALLY
        }
        Said::Writer(place) => {
            put_text(&mut payload, place);
            kind::WRITER
        }
        Said::End(homeless) => {
            put(&mut payload, *homeless);
            kind::END
        }
    };
    finish(&Header::of(kind), &payload, out);
}
