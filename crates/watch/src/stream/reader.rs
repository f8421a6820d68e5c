//! A stream as a whole: its file, with the journal where the program was killed or still runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::chunk::{Chunk, Clocks, Head, Said};
use super::chunks::{Chunks, Damage};
use super::remains::Remains;
use super::tally::{Tallies, Tally};
use super::words::Total;

/// A stream that is read from beginning to end.
pub struct Log {
    head: Head,
    /// Names by their numbers, as far as they were read.
    pub names: BTreeMap<u32, String>,
    /// Readings of the clocks, as far as they were read.
    pub clocks: Vec<Clocks>,
    /// The last account of each thread.
    pub totals: BTreeMap<u32, Total>,
    /// Records of threads that found no slot.
    pub homeless: u64,
    /// Whether the program ended in order.
    pub has_ended: bool,
    /// Calls added up by their probes, if the program keeps no records; none is without a name.
    pub tallies: BTreeMap<Option<u32>, Tally>,
    /// The same of the journal, which has newer ones.
    newest: Tallies,
    /// The writer's last place, in words; empty if nothing chose it.
    pub writer: String,
    /// Damaged places, in words.
    pub damages: Vec<String>,
    chunks: Chunks<Box<dyn Read>>,
    /// Place of the last run of records; none if it is a block of the journal.
    last_at: Option<u64>,
    /// Blocks of the journal, the last first, for when the file is at its end.
    left: Vec<Chunk>,
    /// Number of the next record of each thread.
    next: BTreeMap<u32, u64>,
    /// Records read of each thread.
    stored: BTreeMap<u32, u64>,
}

/// Reason for which a stream cannot be read at all.
#[derive(Debug)]
pub enum Unread {
    /// The file cannot be opened or read.
    File(io::Error),
    /// It is something else.
    NoStream,
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unread::File(error) => error.fmt(f),
            Unread::NoStream => f.write_str("it is no file of a stream"),
        }
    }
}

impl std::error::Error for Unread {}

impl Log {
    /// Reads a file, and its journal if that is still there.
    ///
    /// # Errors
    /// The file cannot be read, or is no stream's.
    pub fn open(path: &Path) -> Result<Log, Unread> {
        let file = File::open(path).map_err(Unread::File)?;
        let mut log = Log::of(file)?;
        log.catch_up();
        Ok(log)
    }

    /// Reads the file of a program that runs: after a None of [`next_chunk`](Log::next_chunk) there
    /// may be more later. [`catch_up`](Log::catch_up) adds what only the journal has.
    ///
    /// # Errors
    /// The file cannot be read, or is no stream's.
    pub fn follow(path: &Path) -> Result<Log, Unread> {
        let file = File::open(path).map_err(Unread::File)?;
        Log::of_chunks(Chunks::growing(Box::new(file)))
    }

    /// Reads the journal, if it is still there, for the next calls of
    /// [`next_chunk`](Log::next_chunk): they give what the file has got meanwhile, and then this.
    pub fn catch_up(&mut self) {
        if let Ok(journal) = File::open(&self.head.journal)
            && let Ok(remains) = Remains::of_file(&journal)
            && remains.process == self.head.process
        {
            self.add(remains);
        }
    }

    /// Reads chunks.
    ///
    /// # Errors
    /// They cannot be read, or are none.
    pub fn of(from: impl Read + 'static) -> Result<Log, Unread> {
        Log::of_chunks(Chunks::new(Box::new(from) as Box<dyn Read>))
    }

    fn of_chunks(mut chunks: Chunks<Box<dyn Read>>) -> Result<Log, Unread> {
        let head = match chunks.next() {
            Some(Ok(Said::Head(head))) => head,
            Some(Err(Damage::Read(error))) => return Err(Unread::File(error)),
            _ => return Err(Unread::NoStream),
        };
        Ok(Log {
            head,
            names: BTreeMap::new(),
            clocks: Vec::new(),
            totals: BTreeMap::new(),
            homeless: 0,
            has_ended: false,
            tallies: BTreeMap::new(),
            newest: BTreeMap::new(),
            writer: String::new(),
            damages: Vec::new(),
            chunks,
            last_at: None,
            left: Vec::new(),
            next: BTreeMap::new(),
            stored: BTreeMap::new(),
        })
    }

    /// Adds a journal that was read after the file, or with it at rest.
    pub fn add(&mut self, remains: Remains) {
        self.names.extend(remains.names);
        self.homeless = remains.homeless;
        self.clocks.push(remains.clocks);
        for total in remains.totals {
            self.totals.insert(total.thread, total);
        }
        self.newest = remains.tallies;
        self.left = remains.left;
        self.left.reverse();
    }

    /// The beginning of the file.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The next run of records, with the number of records of its thread that are missing before
    /// it. None at the end, when the accounts are complete.
    pub fn next_chunk(&mut self) -> Option<(u64, Chunk)> {
        loop {
            match self.chunks.next() {
                Some(Ok(Said::Records(chunk))) => {
                    self.last_at = Some(self.chunks.last_at());
                    if let Some(found) = self.take(chunk) {
                        return Some(found);
                    }
                }
                Some(Ok(Said::Names(names))) => self.names.extend(names),
                Some(Ok(Said::Clocks(clocks))) => self.clocks.push(clocks),
                // The journal's are newer.
                Some(Ok(Said::Total(total))) => {
                    let known = self.totals.entry(total.thread).or_default();
                    if known.emitted <= total.emitted {
                        *known = total;
                    }
                }
                Some(Ok(Said::Tally(name, tally))) => {
                    self.tallies.insert(name, tally);
                }
                Some(Ok(Said::Writer(place))) => self.writer = place,
                Some(Ok(Said::End(homeless))) => {
                    self.has_ended = true;
                    self.homeless = homeless;
                }
                Some(Ok(Said::Head(_))) => {}
                Some(Err(damage)) => self.damages.push(damage.to_string()),
                None => break,
            }
        }
        self.last_at = None;
        while let Some(chunk) = self.left.pop() {
            if let Some(found) = self.take(chunk) {
                return Some(found);
            }
        }
        if !self.has_ended {
            self.tallies.append(&mut self.newest);
        }
        self.clocks.sort_by_key(|clocks| clocks.ticks);
        None
    }

    /// Place in the file of the run of records that was read last, for [`chunk_at`]. None if it
    /// comes from the journal.
    #[must_use]
    pub fn last_at(&self) -> Option<u64> {
        self.last_at
    }

    /// The part of a chunk that was not read before, and the number of records missing before it.
    fn take(&mut self, mut chunk: Chunk) -> Option<(u64, Chunk)> {
        let next = self.next.entry(chunk.thread).or_default();
        // A block may have been read while it was open.
        chunk.skip_to(*next);
        if chunk.records.is_empty() || chunk.first < *next {
            return None;
        }
        let missing = chunk.first - *next;
        *next = chunk.first + chunk.emitted();
        *self.stored.entry(chunk.thread).or_default() += chunk.kept();
        Some((missing, chunk))
    }

    /// For each thread, its account and the number of its records that were read. To be called at
    /// the end.
    #[must_use]
    pub fn accounts(&self) -> Vec<(Total, u64)> {
        let stored = |thread| self.stored.get(&thread).copied().unwrap_or(0);
        self.totals
            .values()
            .map(|total| (total.clone(), stored(total.thread)))
            .collect()
    }
}

/// Reads a run of records at a place in a file that [`Log::last_at`] told. None if it is not there
/// any more.
#[must_use]
pub fn chunk_at(file: &File, at: u64) -> Option<Chunk> {
    match Chunks::new(From { file, at }).next() {
        Some(Ok(Said::Records(chunk))) => Some(chunk),
        _ => None,
    }
}

/// A file from a place on, whose position others use.
struct From<'f> {
    file: &'f File,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(into, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}
