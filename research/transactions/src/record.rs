//! The paper's record: a type of 8 bits and two words of 64.

/// Bytes of a record.
pub(crate) const BYTES: usize = 17;

/// Type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The descriptor's address, and the system's time in seconds.
    Timing1,
    /// The nanoseconds of that time.
    Timing2,
    /// The cycle counter, for the record before or the event after.
    Rdtsc,
    /// An attempt begins: the descriptor's address, the memory's counter.
    Start,
    /// A word is read: its address.
    Read,
    /// A word is written: its address and value.
    Write,
    /// An attempt has taken effect: as its start.
    Commit,
    /// An attempt has ended without effect: as its start.
    Abort,
}

const KINDS: [Kind; 8] = [
    Kind::Timing1,
    Kind::Timing2,
    Kind::Rdtsc,
    Kind::Start,
    Kind::Read,
    Kind::Write,
    Kind::Commit,
    Kind::Abort,
];

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its type.
    pub kind: Kind,
    /// Its two words; those that the type does not name are zero.
    pub words: [u64; 2],
}

impl Record {
    /// A record.
    #[must_use]
    pub fn new(kind: Kind, one: u64, two: u64) -> Record {
        Record {
            kind,
            words: [one, two],
        }
    }

    /// Appends it in binary, little-endian.
    #[inline]
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        let mut bytes = [0; BYTES];
        bytes[0] = self.kind as u8;
        bytes[1..9].copy_from_slice(&self.words[0].to_le_bytes());
        bytes[9..].copy_from_slice(&self.words[1].to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// It as a line of text.
    pub(crate) fn line(self) -> String {
        let Record {
            kind,
            words: [one, two],
        } = self;
        format!("{} {one:#x} {two}\n", kind as u8)
    }

    /// Reads it in binary. None if its type is unknown.
    pub(crate) fn of_bytes(bytes: &[u8; BYTES]) -> Option<Record> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let kind = *KINDS.get(usize::from(bytes[0]))?;
        Some(Record::new(kind, word(1), word(9)))
    }

    /// Reads a line.
    pub(crate) fn of_line(line: &str) -> Option<Record> {
        let mut parts = line.split(' ');
        let kind = *KINDS.get(parts.next()?.parse::<usize>().ok()?)?;
        let one = u64::from_str_radix(parts.next()?.strip_prefix("0x")?, 16).ok()?;
        Some(Record::new(kind, one, parts.next()?.parse().ok()?))
    }
}
