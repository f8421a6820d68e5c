//! Layout of a journal. It consists of 64-bit words in the machine's byte order.
//!
//! ```text
//! header ─ names ─ threads ─ blocks
//! ```
//!
//! | word | written by | read by |
//! |---|---|---|
//! | header: constants | the beginner | all |
//! | header: clocks | the writer | readers |
//! | names | whoever adds one, under the journal's lock | readers |
//! | thread: kept, lost, block | the thread | all |
//! | thread: overwritten, refused | whoever gives a block up, under the journal's lock | all |
//! | block: thread, first, kept, note | the thread that opens it | all |
//! | block: count, records | the thread that has it open | the writer, readers |
//! | block: state, loses | under the journal's lock | readers |
//! | root, directory, table of tallies | the thread that has them | the writer, readers |
//!
//! A thread has emitted what it has kept and what it has lost. The first is in its own words, or in
//! its open block's if it has one; so one store changes the account, and it is right whenever the
//! process dies.

use std::fmt;
use std::str::FromStr;

/// Name of a journal's mappings in memory, and the end of its file's name.
pub const NAME: &str = "hearth-journal";

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"HEARTHJO");
pub(crate) const VERSION: u64 = 1;

/// Bits of a record's first word that hold its time, in ticks since the journal began. The type of
/// the record is above them.
pub const TICKS: u64 = (1 << 56) - 1;

/// Type of a record that stands for lost ones: their number is in the second word.
pub const GAP: u64 = 0xff << 56;

/// Lowest type of records whose first word holds an address instead of a time, where types tell:
/// see [`Encoding::Columns`](super::Encoding::Columns).
pub const PLACED: u8 = 8;

/// Whether a record of this first word stands for lost ones.
#[must_use]
pub fn is_gap(first: u64) -> bool {
    first & !TICKS == GAP
}

/// Words of the header.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 1;
    pub(crate) const BLOCKS: usize = 2;
    pub(crate) const BLOCK_WORDS: usize = 3;
    pub(crate) const LAW: usize = 4;
    /// 1: the time stamp counter; 0: nanoseconds of the system's.
    pub(crate) const SOURCE: usize = 5;
    /// The beginning by the ticks, the system's steady clock, and the wall's in nanoseconds.
    pub(crate) const BEGIN_TICKS: usize = 6;
    pub(crate) const BEGIN_NS: usize = 7;
    pub(crate) const BEGIN_WALL: usize = 8;
    /// The latest moment at which all clocks were read.
    pub(crate) const LATEST_TICKS: usize = 9;
    pub(crate) const LATEST_NS: usize = 10;
    pub(crate) const LATEST_WALL: usize = 11;
    pub(crate) const PROCESS: usize = 12;
    /// Number of thread slots ever used, and of threads.
    pub(crate) const SLOTS: usize = 13;
    pub(crate) const THREADS: usize = 18;
    /// Words of names.
    pub(crate) const NAME_WORDS: usize = 14;
    /// Number of records of threads that found no slot.
    pub(crate) const HOMELESS: usize = 15;
    /// 1 at an orderly end: the file has everything.
    pub(crate) const IS_OVER: usize = 16;
    /// Number of blocks handed over.
    pub(crate) const ORDER: usize = 17;
    /// 1 if threads keep tallies; and number of blocks that these have.
    pub(crate) const HAS_TALLIES: usize = 19;
    pub(crate) const TALLY_BLOCKS: usize = 20;
    /// Words for the journal's user.
    pub(crate) const USER: usize = 64;
    pub(crate) const USER_WORDS: usize = 64;
    /// Bytes of the path of the file that the records go to, then the path.
    pub(crate) const FILE: usize = USER + USER_WORDS;
    pub(crate) const FILE_WORDS: usize = 384;
}
pub(crate) const HEADER: usize = 512;

pub(crate) const NAMES: usize = HEADER;
pub(crate) const NAME_WORDS_MAX: usize = 1 << 18;

pub(crate) const THREADS: usize = NAMES + NAME_WORDS_MAX;
/// Most threads that write into a journal at a time.
pub const THREADS_MAX: usize = 1 << 14;
pub(crate) const THREAD: usize = 16;
/// Words of a thread.
pub(crate) mod thread {
    /// The kernel's number, and above 32 bits the thread's number in the journal, from 1; 0 for an
    /// unused slot.
    pub(crate) const ID: usize = 0;
    /// 0, or 1 and its open block.
    pub(crate) const BLOCK: usize = 1;
    /// Records written into blocks that were handed over.
    pub(crate) const KEPT: usize = 2;
    /// Records lost because the thread found no block, or left out by its own choice.
    pub(crate) const LOST: usize = 3;
    /// Records lost in blocks that were overwritten before they were stored.
    pub(crate) const OVERWRITTEN: usize = 4;
    /// Records lost because the file took no more.
    pub(crate) const REFUSED: usize = 5;
    pub(crate) const NAME: usize = 6;
    pub(crate) const NAME_BYTES: usize = 16;
}

pub(crate) const BLOCKS: usize = THREADS + THREADS_MAX * THREAD;
/// Words of a block before its records.
pub(crate) mod block {
    pub(crate) const STATE: usize = 0;
    /// The thread's slot, and above 32 bits its number.
    pub(crate) const THREAD: usize = 1;
    /// Number of records that the thread emitted before.
    pub(crate) const FIRST: usize = 2;
    /// A number by the thread's user from the moment when it opened the block; and above 32 bits,
    /// one more than the CPU on which it did.
    pub(crate) const NOTE: usize = 3;
    /// One more than the number of blocks handed over before.
    pub(crate) const ORDER: usize = 4;
    /// Words used, including these.
    pub(crate) const USED: usize = 5;
    /// Records that the thread wrote into blocks before.
    pub(crate) const KEPT: usize = 6;
    /// The thread's count of records lost in this way, once this block's are among them.
    pub(crate) const LOSES: usize = 7;
    pub(crate) const RECORDS: usize = 8;
}

/// States of a block.
pub(crate) mod state {
    pub(crate) const FREE: u64 = 0;
    pub(crate) const OPEN: u64 = 1;
    pub(crate) const FULL: u64 = 2;
    /// A writer stores it.
    pub(crate) const TAKEN: u64 = 3;
    /// Its records are being counted as lost; and the thread's word that counts them.
    pub(crate) const OVERWRITTEN: (u64, usize) = (4, super::thread::OVERWRITTEN);
    pub(crate) const REFUSED: (u64, usize) = (5, super::thread::REFUSED);
}

/// Kinds of blocks of tallies, in the place of a state.
pub(crate) mod tallies {
    pub(crate) const ROOT: u64 = 6;
    pub(crate) const DIRECTORY: u64 = 7;
    pub(crate) const TABLE: u64 = 8;
    /// Words of such a block: six pages, so that only those in use take memory.
    pub(crate) const WORDS: usize = 6 * 512;
    /// First word of a directory's numbers of tables, by names; 0 and more are one less.
    pub(crate) const ENTRIES: usize = 16;
    /// Names of a directory.
    pub(crate) const NAMES: usize = WORDS - ENTRIES;
}

/// Words of a root: what a thread has counted, and its open calls.
pub(crate) mod root {
    /// Records that the thread would have written.
    pub(crate) const EMITTED: usize = 8;
    /// Number of open calls.
    pub(crate) const DEPTH: usize = 9;
    /// One more than the numbers of the directories.
    pub(crate) const DIRECTORIES: usize = 16;
    /// Three words for each open call: its name, its beginning in ticks, and the ticks in calls
    /// directly within it.
    pub(crate) const OPEN: usize = 128;
    pub(crate) const OPEN_WORDS: usize = 3;
    /// Most open calls that have a place.
    pub(crate) const OPEN_MAX: usize = (super::tallies::WORDS - OPEN) / OPEN_WORDS;
}

/// Words of a table: the calls of one probe in one thread after the other.
pub(crate) mod table {
    pub(crate) const NAME: usize = 8;
    /// Number of calls whose length is not known.
    pub(crate) const UNKNOWN: usize = 9;
    /// Ticks of the others together, and without the calls directly within them.
    pub(crate) const TOTAL: usize = 10;
    pub(crate) const OWN: usize = 11;
    pub(crate) const LONGEST: usize = 12;
    /// First word of the numbers of calls by their length.
    pub(crate) const LENGTHS: usize = 16;
    pub(crate) const LENGTHS_MAX: usize = super::tallies::WORDS - LENGTHS;
}

const _: () = assert!(NAME_WORDS_MAX.div_ceil(tallies::NAMES) <= root::OPEN - root::DIRECTORIES);

/// Fewest records of a block.
pub const RECORDS_MIN: usize = 4;
/// Words of a usual block: 64 KiB.
const BLOCK_WORDS: usize = 1 << 13;

/// Number and size of a journal's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of blocks, two at least.
    pub blocks: usize,
    /// Records of a block, at least [`RECORDS_MIN`].
    pub records: usize,
}

impl Shape {
    /// Blocks of 64 KiB, of about `bytes` together.
    #[must_use]
    pub fn for_bytes(bytes: u64) -> Shape {
        Shape {
            blocks: (bytes as usize / (BLOCK_WORDS * 8)).max(2),
            records: (BLOCK_WORDS - block::RECORDS) / 2,
        }
    }

    /// Blocks for tallies, of about `bytes` together.
    pub(crate) fn for_tallies(bytes: u64) -> Shape {
        Shape {
            blocks: (bytes as usize / (tallies::WORDS * 8)).max(2),
            records: (tallies::WORDS - block::RECORDS) / 2,
        }
    }

    pub(crate) fn block_words(self) -> usize {
        // Whole cache lines: two threads' blocks share none.
        (block::RECORDS + 2 * self.records.max(RECORDS_MIN)).next_multiple_of(8)
    }

    /// Bytes of a journal that has this many for tallies.
    #[must_use]
    pub fn bytes_of_tallies(bytes: u64) -> u64 {
        Shape::for_tallies(bytes).bytes()
    }

    /// Bytes of a journal of this shape. It uses memory as it is touched.
    #[must_use]
    pub fn bytes(self) -> u64 {
        ((BLOCKS + self.blocks.max(2) * self.block_words()) * 8) as u64
    }
}

/// Consequence of records that come faster than they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Law {
    /// The thread waits for a free block. Nothing is lost while the file takes records.
    Block,
    /// New records are dropped until a block is free.
    #[default]
    DropNewest,
    /// The oldest full block is overwritten.
    DropOldest,
    /// Samples whole trees of calls, one in 2, 4, 8 or more as blocks become few; if none is left,
    /// new records are dropped.
    Sample,
}

impl Law {
    /// All laws.
    pub const ALL: [Law; 4] = [Law::Block, Law::DropNewest, Law::DropOldest, Law::Sample];

    /// Its name, as users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Law::Block => "block",
            Law::DropNewest => "drop-newest",
            Law::DropOldest => "drop-oldest",
            Law::Sample => "sample",
        }
    }

    pub(crate) fn number(self) -> u64 {
        self as u64
    }

    pub(crate) fn of_number(number: u64) -> Option<Law> {
        Law::ALL.into_iter().find(|law| law.number() == number)
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Law {
    type Err = String;

    fn from_str(text: &str) -> Result<Law, String> {
        Law::ALL
            .into_iter()
            .find(|law| law.name() == text)
            .ok_or_else(|| {
                format!(
                    "'{text}' is no law of loss; write block, drop-newest, drop-oldest or sample"
                )
            })
    }
}
