//! The writer: stores full blocks as chunks, and says what was lost.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::chunk::{Encoding, Head, Packing, Said, append_records, write_chunk};
use super::full::Full;
use super::journal::Journal;
use super::layout::Law;
use super::words::Total;

/// Time between two readings of the clocks, and two accounts.
const ACCOUNT_EVERY: Duration = Duration::from_secs(1);

/// Time after which records are lost by any law, while the sink is not ready; and after which the
/// end does not wait for it any more.
const UNREADY_MAX: Duration = Duration::from_secs(5);

/// Destination of chunks.
pub trait Sink {
    /// Stores some whole chunks, or nothing.
    ///
    /// # Errors
    /// It takes no more; a later call may succeed.
    fn store(&mut self, chunks: &[u8]) -> io::Result<()>;

    /// Whether it is worth trying; meanwhile blocks stay where they are. It may take a moment.
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Whether nothing is there any more of what was stored: the head and the names are due again.
    /// It says so once.
    fn begins_anew(&mut self) -> bool {
        false
    }

    /// Everything is stored.
    fn end(&mut self) {}
}

/// Chunks in memory.
impl Sink for Vec<u8> {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        self.extend(chunks);
        Ok(())
    }
}

/// Nowhere: for measuring.
impl Sink for io::Sink {
    fn store(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Box<dyn Sink + Send> {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        self.as_mut().store(chunks)
    }

    fn is_ready(&mut self) -> bool {
        self.as_mut().is_ready()
    }

    fn begins_anew(&mut self) -> bool {
        self.as_mut().begins_anew()
    }

    fn end(&mut self) {
        self.as_mut().end();
    }
}

/// A file that contains whole chunks only, however often the disk is full.
pub struct FileSink {
    file: File,
    bytes: u64,
}

impl FileSink {
    /// Writes to a file from its beginning.
    #[must_use]
    pub fn new(file: File) -> FileSink {
        FileSink { file, bytes: 0 }
    }
}

impl Sink for FileSink {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(chunks);
        match written {
            Ok(()) => self.bytes += chunks.len() as u64,
            // A pipe cannot be shortened: there a reader skips the rest of the chunk.
            Err(_) => {
                let _ = self.file.set_len(self.bytes);
                let _ = self.file.seek(SeekFrom::Start(self.bytes));
            }
        }
        written
    }
}

/// A file that is replaced as a whole each time, for tallies. A reader finds the former or the
/// later one, and so does whoever comes after a full disk.
pub struct WholeFileSink {
    path: PathBuf,
    /// The file in its place, which may be locked.
    file: File,
    /// Prepares a file before it takes the other's place.
    prepare: fn(&File) -> io::Result<()>,
}

impl WholeFileSink {
    /// Replaces a regular file that is open for writing; of another one, as a pipe, versions follow
    /// each other.
    #[must_use]
    pub fn new(path: PathBuf, file: File, prepare: fn(&File) -> io::Result<()>) -> WholeFileSink {
        WholeFileSink {
            path,
            file,
            prepare,
        }
    }

    fn replace(&mut self, new: &Path, chunks: &[u8]) -> io::Result<()> {
        let mut file = File::create(new)?;
        file.write_all(chunks)?;
        (self.prepare)(&file)?;
        fs::rename(new, &self.path)?;
        self.file = file;
        Ok(())
    }
}

impl Sink for WholeFileSink {
    fn store(&mut self, chunks: &[u8]) -> io::Result<()> {
        if !self.file.metadata()?.is_file() {
            return self.file.write_all(chunks);
        }
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        let replaced = self.replace(&new, chunks);
        if replaced.is_err() {
            let _ = fs::remove_file(&new);
        }
        replaced
    }
}

/// Stores a journal's blocks.
pub struct Writer<S> {
    journal: &'static Journal,
    sink: S,
    encoding: Encoding,
    /// Word of the first name that is not stored.
    names: usize,
    /// The same once `out` is stored. Others may add names meanwhile.
    names_after: usize,
    packing: Packing,
    out: Vec<u8>,
    accounted: Instant,
    head: Head,
    /// The head is stored.
    has_begun: bool,
    /// Time since when the sink is not ready.
    unready: Option<Instant>,
    /// Accounts of ended threads, and of all at the end; how many of them are not stored.
    totals: Vec<Total>,
    unstored: usize,
    failure: Option<io::Error>,
    is_whole: bool,
    /// Number of blocks by the CPU where they were opened, since the last call of
    /// [`filled`](Writer::filled).
    filled: Vec<(usize, u64)>,
    /// The place of the writer's thread, in words; and whether it is stored.
    place: String,
    place_is_stored: bool,
}

impl<S: Sink> Writer<S> {
    /// A writer for a journal, one of however many.
    pub fn new(journal: &'static Journal, sink: S, head: Head, encoding: Encoding) -> Writer<S> {
        Writer {
            journal,
            sink,
            encoding,
            names: 0,
            names_after: 0,
            packing: Packing::default(),
            out: Vec::new(),
            accounted: Instant::now(),
            head,
            has_begun: false,
            unready: None,
            totals: Vec::new(),
            unstored: 0,
            failure: None,
            is_whole: false,
            filled: Vec::new(),
            place: String::new(),
            place_is_stored: true,
        }
    }

    /// The last reason for which the sink took no more, since the last call.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Number of blocks stored since the last call, by the CPU where a thread began to fill them.
    pub fn filled(&mut self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.filled)
    }

    /// Tells readers of the file about the place of the writer's thread.
    pub fn note_place(&mut self, place: String) {
        (self.place, self.place_is_stored) = (place, false);
    }

    /// The sink.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The sink, when nothing more is to be stored.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Whether [`finish`](Writer::finish) has stored everything: the journal is not needed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Stores full blocks for as long as there are some, but not much longer than a time, which it
    /// also waits for the first; then, if it is time, an account. False when the journal is closed
    /// and has none left.
    pub fn step(&mut self, time: Duration) -> bool {
        if !self.is_ready() {
            return self.journal.wait_for_end(time);
        }
        let mut next = self.journal.next_within(time);
        let has_come = next.is_some();
        let begin = Instant::now();
        while let Some(full) = next {
            self.store(full);
            // Blocks may come for ever as fast as they are stored.
            next = match begin.elapsed() < time {
                true => self.journal.try_next(),
                false => None,
            };
        }
        self.account_if_time();
        has_come || !self.journal.is_closed()
    }

    /// Whether blocks are to be taken: the sink is ready, or threads wait for blocks and have done
    /// so for too long.
    fn is_ready(&mut self) -> bool {
        if self.sink.is_ready() {
            self.unready = None;
            return true;
        }
        let since = *self.unready.get_or_insert_with(Instant::now);
        self.journal.law() == Law::Block && since.elapsed() >= UNREADY_MAX
    }

    /// Stores one block, or counts it as refused.
    pub fn store(&mut self, full: Full) {
        if let Some(cpu) = full.cpu() {
            match self.filled.iter_mut().find(|(known, _)| *known == cpu) {
                Some((_, count)) => *count += 1,
                None => self.filled.push((cpu, 1)),
            }
        }
        self.out.clear();
        self.put_beginnings();
        let place = (full.thread(), full.first(), full.note());
        append_records(
            place,
            self.encoding,
            full.records(),
            &mut self.packing,
            &mut self.out,
        );
        if !self.flush() {
            full.refuse();
        }
    }

    /// Stores an account if the last one is a second old.
    pub fn account_if_time(&mut self) {
        if self.accounted.elapsed() >= ACCOUNT_EVERY {
            self.account();
        }
    }

    /// Accounts of all threads at the end, after [`finish`](Writer::finish).
    #[must_use]
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    /// Stores a reading of the clocks and the accounts of all threads.
    pub fn account(&mut self) {
        self.accounted = Instant::now();
        self.out.clear();
        self.put_beginnings();
        let clocks = self.journal.note_clocks();
        write_chunk(&Said::Clocks(clocks), self.encoding, &mut self.out);
        self.put_ended();
        for total in self.journal.accounts() {
            write_chunk(&Said::Total(total), self.encoding, &mut self.out);
        }
        self.put_tallies();
        if self.flush() {
            self.unstored = 0;
        }
    }

    /// Tallies of all probes: each account has them anew.
    fn put_tallies(&mut self) {
        if self.journal.has_tallies() {
            for (name, tally) in self.journal.tallies() {
                write_chunk(&Said::Tally(name, tally), self.encoding, &mut self.out);
            }
        }
    }

    fn put_ended(&mut self) {
        let ended = self.journal.accounts_of_left();
        self.unstored += ended.len();
        self.totals.extend(ended);
        if self.journal.has_tallies() {
            self.unstored = self.totals.len();
        }
        for total in &self.totals[self.totals.len() - self.unstored..] {
            write_chunk(&Said::Total(total.clone()), self.encoding, &mut self.out);
        }
    }

    /// Stores what is left, with what threads that still run have in open blocks, and ends the
    /// file. False if the file does not have everything: then the journal is still needed.
    pub fn finish(&mut self) -> bool {
        let begin = Instant::now();
        while !self.sink.is_ready() && begin.elapsed() < UNREADY_MAX {
            thread::sleep(Duration::from_millis(10));
        }
        let (chunks, totals) = self.journal.end();
        while let Some(full) = self.journal.try_next() {
            self.store(full);
        }
        self.out.clear();
        self.put_beginnings();
        for chunk in chunks {
            write_chunk(&Said::Records(chunk), self.encoding, &mut self.out);
        }
        let clocks = self.journal.note_clocks();
        write_chunk(&Said::Clocks(clocks), self.encoding, &mut self.out);
        self.put_ended();
        for total in &totals {
            write_chunk(&Said::Total(total.clone()), self.encoding, &mut self.out);
        }
        let ended = self.totals.len();
        self.totals.extend(totals);
        self.put_tallies();
        let homeless = self.journal.homeless();
        write_chunk(&Said::End(homeless), self.encoding, &mut self.out);
        self.is_whole = self.flush();
        if self.is_whole {
            self.unstored = 0;
            self.journal.mark_over();
            self.sink.end();
        } else {
            // It may be tried again.
            self.totals.truncate(ended);
        }
        self.is_whole
    }

    /// The head and new names, before the records that need them; and the writer's place.
    fn put_beginnings(&mut self) {
        if self.sink.begins_anew() {
            (self.has_begun, self.names) = (false, 0);
            self.place_is_stored = self.place.is_empty();
            self.unstored = self.totals.len();
        }
        if !self.has_begun {
            write_chunk(&Said::Head(self.head.clone()), self.encoding, &mut self.out);
        }
        let (names, after) = self.journal.names_from(self.names);
        self.names_after = after;
        if !names.is_empty() {
            write_chunk(&Said::Names(names), self.encoding, &mut self.out);
        }
        if !self.place_is_stored {
            let place = Said::Writer(self.place.clone());
            write_chunk(&place, self.encoding, &mut self.out);
        }
    }

    /// Stores what was put together.
    fn flush(&mut self) -> bool {
        match self.sink.store(&self.out) {
            // Tallies replace the whole file.
            Ok(()) if self.journal.has_tallies() => true,
            Ok(()) => {
                self.has_begun = true;
                self.names = self.names_after;
                self.place_is_stored = true;
                true
            }
            Err(error) => {
                self.failure = Some(error);
                false
            }
        }
    }
}
