//! Attempts of a run, by thread.

use std::collections::BTreeMap;

use hearth_watch::stream::{Clocks, GAP, Log, TICKS};

use crate::trace::{MARK, Reason, kind, unpack_abort};

/// Words read in a row, or a word written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Address of the first word.
    pub address: u64,
    /// Number of words.
    pub words: u64,
    /// The value, if it is a write.
    pub written: Option<u64>,
}

/// End of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It took effect.
    Commit,
    /// It did not.
    Abort {
        /// The cause; none if the trace does not say.
        reason: Option<Reason>,
        /// The address of the conflict; zero if it is unknown.
        site: u64,
        /// The sign of the thread that held the lock; zero if it is unknown.
        owner: u16,
    },
}

/// An attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its beginning, in nanoseconds since the trace's.
    pub start_ns: f64,
    /// Its end.
    pub end_ns: f64,
    /// The memory's counter at its beginning.
    pub counter: u64,
    /// Place in [`History::origins`] of where its transaction began; none if it is unknown.
    pub origin: Option<usize>,
    /// Its outcome.
    pub end: End,
    /// Its reads and writes in order, if the trace has them.
    pub accesses: Vec<Access>,
}

impl Attempt {
    /// Words read, and words written; repeated ones count again.
    #[must_use]
    pub fn sizes(&self) -> (u64, u64) {
        let of = |is_write: bool| {
            let accesses = self.accesses.iter();
            let wanted = accesses.filter(|access| access.written.is_some() == is_write);
            wanted.map(|access| access.words).sum()
        };
        (of(false), of(true))
    }

    /// Accesses with their times: spaced evenly, as if every word took the same.
    pub fn placed(&self) -> impl Iterator<Item = (f64, Access)> + '_ {
        let words: u64 = self.accesses.iter().map(|access| access.words).sum();
        let step = (self.end_ns - self.start_ns) / (words + 1) as f64;
        let mut before = 0;
        self.accesses.iter().map(move |&access| {
            let ns = self.start_ns + step * (before + 1) as f64;
            before += access.words;
            (ns, access)
        })
    }
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Its sign, which aborts name it by.
    pub sign: u16,
    /// Its attempts, in the order of time.
    pub attempts: Vec<Attempt>,
    /// Records that are missing.
    pub lost: u64,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Names of where transactions begin in the program.
    pub origins: Vec<String>,
    /// Whether it has reads and writes.
    pub has_accesses: bool,
}

/// A thread's open attempt: the ticks of its start, its counter, its accesses.
type Open = Option<(u64, u64, Vec<Access>)>;

/// A thread that is read, with the number of its transactions' origin.
#[derive(Default)]
struct Reading {
    thread: Thread,
    open: Open,
    origin: Option<u32>,
}

impl History {
    /// Whether a stream holds traces of transactions. Reads it up to its first records, so open it
    /// again for a history.
    #[must_use]
    pub fn is_in(mut log: Log) -> bool {
        log.next_chunk();
        log.names.values().next().is_some_and(|first| first == MARK)
    }

    /// The history of a stream, from where it is to its end.
    #[must_use]
    pub fn of_log(log: Log) -> History {
        History::with_accounts(log).0
    }

    /// The history of a stream, and the stream at its end, when its accounts are complete.
    #[must_use]
    pub fn with_accounts(mut log: Log) -> (History, Log) {
        let mut history = History::default();
        let mut threads: BTreeMap<u32, Reading> = BTreeMap::new();
        while let Some((missing, chunk)) = log.next_chunk() {
            let reading = threads.entry(chunk.thread).or_default();
            reading.thread.sign = chunk.note as u16;
            reading.thread.lost += missing;
            if missing > 0 {
                (reading.open, reading.origin) = (None, None);
            }
            for [first, second] in chunk.records {
                history.has_accesses |= reading.take(first, second);
            }
        }
        // One place may have several numbers, and so have calls of a generic function.
        let mut places: BTreeMap<u32, usize> = BTreeMap::new();
        for (&number, name) in log.names.iter().filter(|(_, name)| *name != MARK) {
            let known = history.origins.iter().position(|known| known == name);
            places.insert(
                number,
                known.unwrap_or_else(|| {
                    history.origins.push(name.clone());
                    history.origins.len() - 1
                }),
            );
        }
        for (number, Reading { mut thread, .. }) in threads {
            let name = log.totals.get(&number).map(|total| total.name.as_str());
            thread.name = format!("{} {number}", name.unwrap_or_default());
            for attempt in &mut thread.attempts {
                attempt.start_ns = ns_of(&log.clocks, attempt.start_ns);
                attempt.end_ns = ns_of(&log.clocks, attempt.end_ns);
                let number = attempt.origin.map(|number| number as u32);
                attempt.origin = number.and_then(|number| places.get(&number).copied());
            }
            history.threads.push(thread);
        }
        (history, log)
    }

    /// The name of where an attempt's transaction began.
    #[must_use]
    pub fn origin(&self, attempt: &Attempt) -> &str {
        let name = attempt.origin.and_then(|place| self.origins.get(place));
        name.map_or("unknown", String::as_str)
    }

    /// The first beginning and the last end.
    #[must_use]
    pub fn span_ns(&self) -> (f64, f64) {
        let attempts = || self.threads.iter().flat_map(|thread| &thread.attempts);
        let first = attempts()
            .map(|it| it.start_ns)
            .fold(f64::INFINITY, f64::min);
        let last = attempts().map(|it| it.end_ns).fold(0.0, f64::max);
        (first.min(last), last)
    }
}

impl Reading {
    /// Adds a record. Attempts have ticks for times, and numbers for origins for now. True if it is
    /// an access.
    fn take(&mut self, first: u64, second: u64) -> bool {
        let (of, low) = ((first >> 56) as u8, first & TICKS);
        let end = match of {
            kind::START => {
                self.open = Some((low, second, Vec::new()));
                return false;
            }
            kind::ORIGIN => {
                self.origin = Some(second as u32);
                return false;
            }
            kind::READ | kind::WRITE => {
                let is_write = of == kind::WRITE;
                if let Some((_, _, accesses)) = &mut self.open {
                    accesses.push(Access {
                        address: low,
                        words: if is_write { 1 } else { second },
                        written: is_write.then_some(second),
                    });
                }
                return true;
            }
            kind::COMMIT => End::Commit,
            kind::ABORT => {
                let known = unpack_abort(second);
                End::Abort {
                    reason: known.map(|known| known.0),
                    site: known.map_or(0, |known| known.1),
                    owner: known.map_or(0, |known| known.2),
                }
            }
            _ => {
                if first & !TICKS == GAP {
                    self.thread.lost += second;
                }
                (self.open, self.origin) = (None, None);
                return false;
            }
        };
        if let Some((start, counter, accesses)) = self.open.take() {
            self.thread.attempts.push(Attempt {
                start_ns: start as f64,
                end_ns: low as f64,
                counter,
                origin: self.origin.map(|number| number as usize),
                end,
                accesses,
            });
        }
        false
    }
}

/// The time of a tick, between the readings of the clocks around it.
fn ns_of(clocks: &[Clocks], ticks: f64) -> f64 {
    let after = clocks
        .partition_point(|clocks| (clocks.ticks as f64) < ticks)
        .min(clocks.len().saturating_sub(1));
    let Some(late) = clocks.get(after) else {
        return ticks;
    };
    let early = match after {
        0 => Clocks::default(),
        _ => clocks[after - 1],
    };
    let passed = late.ticks.saturating_sub(early.ticks).max(1) as f64;
    let rate = late.ns.saturating_sub(early.ns) as f64 / passed;
    early.ns as f64 + (ticks - early.ticks as f64) * rate
}
