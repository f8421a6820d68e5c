//! The file that a meter fills and a study reads. Safe code, for both.
//!
//! ```text
//! | 512 words, named by MeterWord | 4096 bytes of /proc/self/status at the end | records …
//! ```
//!
//! All numbers are little-endian.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Magic number at the start of a file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"hearthme");
/// The format's number.
pub const FORMAT: u64 = 1;
/// Bytes of words.
pub const WORDS_BYTES: usize = 4096;
/// Bytes before the records.
pub const HEAD_BYTES: usize = 2 * WORDS_BYTES;
/// The variable that names the file.
pub const VARIABLE: &str = "HEARTH_METER_FILE";

/// Kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Calls and bytes, and no clock.
    Count,
    /// The time of each call.
    Time,
    /// The begin and end of each block.
    Trace,
}

impl Mode {
    /// Bytes of a record.
    #[must_use]
    pub const fn record_bytes(self) -> usize {
        match self {
            Mode::Count => 0,
            Mode::Time => size_of::<u32>(),
            Mode::Trace => 3 * size_of::<u64>(),
        }
    }

    /// The value as a word of the file.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Mode::Count => 0,
            Mode::Time => 1,
            Mode::Trace => 2,
        }
    }

    /// From a word of the file.
    #[must_use]
    pub const fn of(number: u64) -> Option<Mode> {
        match number {
            0 => Some(Mode::Count),
            1 => Some(Mode::Time),
            2 => Some(Mode::Trace),
            _ => None,
        }
    }
}

/// A word of the file, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum MeterWord {
    /// [`MAGIC`].
    Magic,
    /// [`FORMAT`].
    Format,
    /// A [`Mode`]'s number.
    Mode,
    /// Number of records that fit.
    Capacity,
    /// The process that is measured; 0 before one is.
    Process,
    /// Number of records there would be; those that do not fit are counted only.
    Records,
    /// Calls of `malloc`.
    Mallocs,
    /// Calls of `calloc`.
    Callocs,
    /// Calls of `realloc` with a block.
    Reallocs,
    /// Calls of `realloc` that moved the block.
    Moved,
    /// Calls of `memalign` and its kin.
    Aligned,
    /// Calls of `free` with a block, and of `realloc` with no bytes.
    Frees,
    /// Bytes that were asked for, moves included.
    Requested,
    /// The largest request.
    Largest,
    /// Usable bytes of the blocks, by `malloc_usable_size`.
    Provided,
    /// Bytes that the allocator adds to each block, if it reports them.
    Overhead,
    /// Time of the longest allocation.
    AllocateMax,
    /// Total time of all allocations.
    AllocateSum,
    /// Time of the longest release.
    FreeMax,
    /// Total time of all releases.
    FreeSum,
    /// Time of the longest `realloc`.
    ReallocMax,
    /// Total time of all calls of `realloc`.
    ReallocSum,
    /// The shortest time between two stamps with nothing between them.
    Empty,
    /// Unit of the stamps: 1 for cycles of the time stamp counter, 2 for nanoseconds.
    Unit,
    /// The first stamp.
    Begin,
    /// The stamp at the process's end; 0 if it did not end by itself.
    End,
    /// Bytes of status text.
    Status,
}

/// The call that a record of [`Mode::Time`] describes: its two highest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Any call that allocates.
    Allocate,
    /// `free`.
    Free,
    /// `realloc` of a block.
    Realloc,
}

/// Times are kept in as many bits; longer ones count as this.
pub const TIME_MAX: u64 = (1 << 30) - 1;

impl Call {
    /// A record.
    #[must_use]
    pub const fn record(self, time: u64) -> u32 {
        let time = if time > TIME_MAX { TIME_MAX } else { time };
        ((self as u32) << 30) | time as u32
    }

    /// Call and time of a record.
    #[must_use]
    pub const fn of(record: u32) -> (Call, u32) {
        let call = match record >> 30 {
            0 => Call::Allocate,
            1 => Call::Free,
            _ => Call::Realloc,
        };
        (call, record & TIME_MAX as u32)
    }
}

/// A record of [`Mode::Trace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The stamp.
    pub stamp: u64,
    /// The block.
    pub block: u64,
    /// Bytes asked for; `None` where it was freed.
    pub bytes: Option<u64>,
}

/// Pattern for a freed block's bytes.
pub const FREED: u64 = u64::MAX;

/// Makes a file for a meter, of zeros except for its orders.
///
/// # Errors
/// The file cannot be written.
pub fn prepare(path: &Path, mode: Mode, capacity: usize) -> io::Result<()> {
    let mut file = File::create(path)?;
    for word in [MAGIC, FORMAT, mode.number(), capacity as u64] {
        file.write_all(&word.to_le_bytes())?;
    }
    file.set_len((HEAD_BYTES + capacity * mode.record_bytes()) as u64)
}

/// Results that a meter wrote.
#[derive(Clone, PartialEq, Eq)]
pub struct Readings {
    bytes: Vec<u8>,
    mode: Mode,
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Readings of {} bytes, {:?}", self.bytes.len(), self.mode)
    }
}

impl Readings {
    /// Reads a file's bytes. `None` if no process was measured, or if it is not a meter's file.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Option<Readings> {
        if bytes.len() < HEAD_BYTES {
            return None;
        }
        let mode = Mode::of(word(&bytes, MeterWord::Mode as usize))?;
        let readings = Readings { bytes, mode };
        let is_ours =
            readings.get(MeterWord::Magic) == MAGIC && readings.get(MeterWord::Format) == FORMAT;
        (is_ours && readings.get(MeterWord::Process) != 0).then_some(readings)
    }

    /// A word.
    #[must_use]
    pub fn get(&self, slot: MeterWord) -> u64 {
        word(&self.bytes, slot as usize)
    }

    /// Blocks that were handed out: every call that made one, moves included.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        [
            MeterWord::Mallocs,
            MeterWord::Callocs,
            MeterWord::Aligned,
            MeterWord::Moved,
        ]
        .map(|slot| self.get(slot))
        .iter()
        .sum()
    }

    /// Blocks that were taken back, moves included.
    #[must_use]
    pub fn releases(&self) -> u64 {
        self.get(MeterWord::Frees) + self.get(MeterWord::Moved)
    }

    /// The process's own status file as it ended, if it did so by itself.
    #[must_use]
    pub fn status(&self) -> Option<&str> {
        let length = (self.get(MeterWord::Status) as usize).min(WORDS_BYTES);
        let text = &self.bytes[WORDS_BYTES..WORDS_BYTES + length];
        std::str::from_utf8(text)
            .ok()
            .filter(|text| !text.is_empty())
    }

    /// Did all records fit?
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.get(MeterWord::Records) <= self.get(MeterWord::Capacity)
    }

    fn records(&self) -> std::slice::ChunksExact<'_, u8> {
        let size = self.mode.record_bytes().max(1);
        let count = self
            .get(MeterWord::Records)
            .min(self.get(MeterWord::Capacity)) as usize;
        let end = (HEAD_BYTES + count * size).min(self.bytes.len());
        self.bytes[HEAD_BYTES..end].chunks_exact(size)
    }

    /// The calls in their order, with their times. Nothing but in [`Mode::Time`].
    pub fn times(&self) -> impl Iterator<Item = (Call, u32)> {
        let is_mode = self.mode == Mode::Time;
        let records = self.records().take_while(move |_| is_mode);
        records.map(|record| {
            let record = record.first_chunk().copied().unwrap_or_default();
            Call::of(u32::from_le_bytes(record))
        })
    }

    /// The blocks' begins and ends in their order. Nothing but in [`Mode::Trace`].
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let is_mode = self.mode == Mode::Trace;
        let records = self.records().take_while(move |_| is_mode);
        records.map(|record| {
            let bytes = word(record, 2);
            Event {
                stamp: word(record, 0),
                block: word(record, 1),
                bytes: (bytes != FREED).then_some(bytes),
            }
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(8 * at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
