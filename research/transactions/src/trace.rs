//! The files of a run, read: each thread's events in real time, and all of them in one order.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use hearth_stm::analysis::{Access, Attempt, End, History, Thread};
use hearth_stm::trace::sign_of;

use crate::codec::Codec;
use crate::output::blocks_of;
use crate::record::{BYTES, Kind, Record};

/// An event with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// In nanoseconds of the slow clock.
    pub ns: f64,
    /// The number of its thread's file.
    pub thread: u32,
    /// A start, read, write, commit or abort.
    pub record: Record,
}

/// The records of each thread, from the files of a folder. Packed ones need their codec.
///
/// # Errors
/// A file cannot be read, or is damaged.
pub fn read(folder: &Path, codec: Option<Codec>) -> io::Result<BTreeMap<u32, Vec<Record>>> {
    let mut raws: BTreeMap<u32, BTreeMap<u32, Vec<u8>>> = BTreeMap::new();
    let mut threads = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let number = stem.split('-').next().and_then(|text| text.parse().ok());
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        match (number, &*extension, codec) {
            (Some(thread), "txt", _) => {
                let text = std::fs::read_to_string(&path)?;
                let records: Option<Vec<Record>> = text.lines().map(Record::of_line).collect();
                threads.insert(thread, records.ok_or_else(damaged)?);
            }
            (Some(thread), "bin", _) => {
                let blocks = raws.entry(thread).or_default();
                blocks.insert(0, std::fs::read(&path)?);
            }
            (Some(thread), "blocks", Some(codec)) => {
                let blocks = blocks_of(&std::fs::read(&path)?, codec)?;
                raws.entry(thread).or_default().extend(blocks);
            }
            _ => {}
        }
    }
    for (thread, blocks) in raws {
        let bytes: Vec<u8> = blocks.into_values().flatten().collect();
        let (records, rest) = bytes.as_chunks::<BYTES>();
        let records: Option<Vec<Record>> = records.iter().map(Record::of_bytes).collect();
        if !rest.is_empty() {
            return Err(damaged());
        }
        threads.insert(thread, records.ok_or_else(damaged)?);
    }
    Ok(threads)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a trace's file is damaged")
}

/// Conversion of a thread's cycles to real time, from the readings at its beginning and end.
#[derive(Clone, Copy)]
struct Clock {
    ns: f64,
    ticks: u64,
    ns_per_tick: f64,
}

impl Clock {
    fn of(records: &[Record]) -> Option<Clock> {
        let reading = |triple: &[Record]| match triple {
            [first, second, third]
                if first.kind == Kind::Timing1
                    && second.kind == Kind::Timing2
                    && third.kind == Kind::Rdtsc =>
            {
                let ns = first.words[1] as f64 * 1e9 + second.words[0] as f64;
                Some((ns, third.words[0]))
            }
            _ => None,
        };
        let (ns, ticks) = records.windows(3).find_map(reading)?;
        let (end_ns, end_ticks) = records.windows(3).rev().find_map(reading)?;
        let passed = end_ticks.wrapping_sub(ticks).max(1) as f64;
        Some(Clock {
            ns,
            ticks,
            ns_per_tick: (end_ns - ns) / passed,
        })
    }

    fn ns(self, ticks: u64) -> f64 {
        self.ns + ticks.wrapping_sub(self.ticks) as i64 as f64 * self.ns_per_tick
    }
}

/// A thread's events with their times. Reads and writes are spaced evenly between the start and
/// the end of their attempt, as if all took the same time. None if the clocks are missing.
#[must_use]
pub fn place(thread: u32, records: &[Record]) -> Option<Vec<Event>> {
    let clock = Clock::of(records)?;
    let mut events: Vec<Event> = Vec::new();
    // The place of the open attempt's start.
    let mut open = None;
    let mut ns = clock.ns;
    for &record in records {
        let event = Event { ns, thread, record };
        match record.kind {
            Kind::Timing1 | Kind::Timing2 => {}
            Kind::Rdtsc => ns = clock.ns(record.words[0]),
            Kind::Start => {
                open = Some(events.len());
                events.push(event);
            }
            Kind::Read | Kind::Write => events.push(event),
            Kind::Commit | Kind::Abort => {
                if let Some(start) = open.take() {
                    let begin = events[start].ns;
                    let inner = &mut events[start + 1..];
                    let step = (ns - begin) / (inner.len() + 1) as f64;
                    for (nth, event) in inner.iter_mut().enumerate() {
                        event.ns = begin + step * (nth + 1) as f64;
                    }
                }
                events.push(event);
            }
        }
    }
    Some(events)
}

/// The events of all threads in the order of time. Threads without clocks are left out.
#[must_use]
pub fn merge(threads: &BTreeMap<u32, Vec<Record>>) -> Vec<Event> {
    let placed = threads
        .iter()
        .filter_map(|(&thread, records)| place(thread, records));
    let mut events: Vec<Event> = placed.flatten().collect();
    events.sort_by(|one, other| one.ns.total_cmp(&other.ns));
    events
}

/// The threads' attempts, for Hearth's analysis. The form has no reasons, places and owners of
/// aborts.
#[must_use]
pub fn history(threads: &BTreeMap<u32, Vec<Record>>) -> History {
    let mut history = History::default();
    for (&number, records) in threads {
        let mut thread = Thread {
            name: number.to_string(),
            ..Thread::default()
        };
        let mut open: Option<Attempt> = None;
        for event in place(number, records).unwrap_or_default() {
            let [one, two] = event.record.words;
            let is_write = event.record.kind == Kind::Write;
            let end = match event.record.kind {
                Kind::Start => {
                    thread.sign = sign_of(one as usize);
                    open = Some(Attempt {
                        start_ns: event.ns,
                        end_ns: event.ns,
                        counter: two,
                        origin: None,
                        end: End::Commit,
                        accesses: Vec::new(),
                    });
                    continue;
                }
                Kind::Commit => End::Commit,
                Kind::Abort => End::Abort {
                    reason: None,
                    site: 0,
                    owner: 0,
                },
                _ => {
                    history.has_accesses = true;
                    if let Some(attempt) = &mut open {
                        attempt.accesses.push(Access {
                            address: one,
                            words: 1,
                            written: is_write.then_some(two),
                        });
                    }
                    continue;
                }
            };
            if let Some(mut attempt) = open.take() {
                (attempt.end_ns, attempt.end) = (event.ns, end);
                thread.attempts.push(attempt);
            }
        }
        history.threads.push(thread);
    }
    history
}
