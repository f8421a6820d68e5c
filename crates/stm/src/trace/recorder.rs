//! The tracer that records into a stream, on a tape in the thread's descriptor.

use std::sync::OnceLock;

use hearth_watch::stream::{Journal, Tape};

use super::record::{kind, pack_abort, sign_of};
use super::{Aborted, Origin, Tracer};

/// Journal of instances that name none.
static PROCESS: OnceLock<&'static Journal> = OnceLock::new();

/// Destination of an instance's records: a journal, or the process's.
#[derive(Clone, Copy, Default)]
pub struct Target(Option<&'static Journal>);

impl Target {
    /// A journal.
    #[must_use]
    pub fn journal(journal: &'static Journal) -> Target {
        Target(Some(journal))
    }

    /// Makes a journal the one of all instances that name none. False if there is one already.
    pub fn set_process(journal: &'static Journal) -> bool {
        PROCESS.set(journal).is_ok()
    }

    #[inline]
    fn get(self) -> Option<&'static Journal> {
        self.0.or_else(|| PROCESS.get().copied())
    }
}

/// Records a thread's attempts; if `FULL`, also what they read and write. Words read in a row make
/// one record.
#[derive(Default)]
pub struct Recorder<const FULL: bool> {
    tape: Tape,
    journal: Option<&'static Journal>,
    /// The thread's, which its chunks have as their note.
    sign: u16,
    /// Key and number of the running transaction's origin, and the number that was recorded last.
    origin: usize,
    origin_number: u32,
    origin_recorded: Option<u32>,
    /// Numbers of origins by their keys.
    origins: Vec<(usize, u32)>,
    /// First word read in a row, and the one after the last; equal if there is none.
    run: usize,
    run_end: usize,
}

impl<const FULL: bool> Recorder<FULL> {
    /// Hands over what the calling thread has recorded; a thread that ends does so by itself. The
    /// next transaction goes on.
    pub fn close(&mut self) {
        self.tape.close();
        self.journal = None;
    }

    #[inline(always)]
    fn put(&mut self, first: u64, second: u64) {
        if !self.tape.write(first, second) {
            self.put_slow(first, second);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, first: u64, second: u64) {
        if let Some(journal) = self.journal
            && self.tape.turn(journal, u32::from(self.sign))
        {
            // A reader who misses earlier chunks still learns it.
            self.origin_recorded = None;
            self.tape.write(first, second);
        }
    }

    /// Records an event with its time.
    #[inline(always)]
    fn put_now(&mut self, of: u8, second: u64) {
        if let Some(journal) = self.journal {
            self.put(u64::from(of) << 56 | journal.now(), second);
        }
    }

    /// Records the words read in a row.
    #[inline(always)]
    fn end_run(&mut self) {
        if FULL && self.run != self.run_end {
            let words = (self.run_end - self.run) as u64 / 8;
            self.put(u64::from(kind::READ) << 56 | self.run as u64, words);
            self.run = self.run_end;
        }
    }

    #[cold]
    #[inline(never)]
    fn join(&mut self, journal: Option<&'static Journal>, descriptor: usize) {
        self.tape.close();
        self.journal = journal;
        self.sign = sign_of(descriptor);
        self.origin = 0;
        self.origins.clear();
        self.origin_recorded = None;
    }

    #[cold]
    #[inline(never)]
    fn change_origin(&mut self, origin: Origin) {
        let Some(journal) = self.journal else { return };
        self.origin = origin.key();
        let known = self.origins.iter().find(|(key, _)| *key == self.origin);
        self.origin_number = match known {
            Some(&(_, number)) => number,
            None => {
                // The number of the mark stands for a name that found no room.
                let number = journal.name(&origin.to_string()).unwrap_or(0);
                self.origins.push((self.origin, number));
                number
            }
        };
    }
}

impl<const FULL: bool> Tracer for Recorder<FULL> {
    type Shared = Target;

    #[inline(always)]
    fn open(&mut self, shared: &Target, descriptor: usize) {
        let journal = shared.get();
        let is_same = match (journal, self.journal) {
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            self.join(journal, descriptor);
        }
    }

    #[inline(always)]
    fn origin(&mut self, origin: Origin) {
        if origin.key() != self.origin {
            self.change_origin(origin);
        }
    }

    #[inline(always)]
    fn start(&mut self, _: usize, counter: u64) {
        if let Some(journal) = self.journal {
            let ticks = journal.now();
            self.put(u64::from(kind::START) << 56 | ticks, counter);
            if self.origin_recorded != Some(self.origin_number) {
                let number = self.origin_number;
                self.put(u64::from(kind::ORIGIN) << 56 | ticks, number.into());
                self.origin_recorded = Some(number);
            }
        }
    }

    #[inline(always)]
    fn read(&mut self, address: usize) {
        if FULL {
            if self.run_end != address {
                self.end_run();
                self.run = address;
            }
            self.run_end = address + 8;
        }
    }

    #[inline(always)]
    fn read_slice(&mut self, address: usize, words: usize) {
        if FULL {
            self.end_run();
            (self.run, self.run_end) = (address, address + 8 * words);
        }
    }

    #[inline(always)]
    fn write(&mut self, address: usize, value: u64) {
        if FULL {
            self.end_run();
            self.put(u64::from(kind::WRITE) << 56 | address as u64, value);
        }
    }

    #[inline(always)]
    fn commit(&mut self, _: usize, counter: u64) {
        self.end_run();
        self.put_now(kind::COMMIT, counter);
    }

    #[inline]
    fn abort(&mut self, _: usize, _: u64, aborted: Aborted) {
        self.end_run();
        self.put_now(kind::ABORT, pack_abort(aborted));
    }
}
