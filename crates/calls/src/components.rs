//! Calls of components: their records lie in many threads' runs, and are put in order by time.
//!
//! The first reading of a file notes where each run is; the second goes through the runs of all
//! threads at once and has one of each in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fs::File;

use hearth_watch::stream::components::{BEGINS, DEPTHS, ENDS, KIND, NTH, Word, kind_and_depth};
use hearth_watch::stream::{Chunk, TICKS, chunk_at, is_gap};

use crate::recorded::Recorded;
use crate::steps::{OpenCalls, Step};

/// Number of records after which a component's numbers repeat.
const NUMBERS: u64 = 1 << 16;

/// Number that stands for whichever components the last missing records were of.
pub(crate) const UNKNOWN: u32 = 0;

/// A run of a thread's records.
pub(crate) struct Run {
    thread: u32,
    /// Number of records missing before it.
    missing: u64,
    /// Time of its first record.
    from: u64,
    place: Place,
}

enum Place {
    File(u64),
    /// The journal has it.
    Block(Chunk),
}

/// A component as a reader knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Component {
    /// Number of its kind's name, if that was not lost.
    pub(crate) kind: Option<u32>,
    /// Its number within its kind; 0 if that was lost.
    pub(crate) nth: u32,
}

/// Runs and components of a recording, as its first reading finds them.
#[derive(Default)]
pub(crate) struct Found {
    runs: Vec<Run>,
    pub(crate) components: BTreeMap<u32, Component>,
    /// Number of components of each kind.
    members: BTreeMap<u32, u32>,
}

impl Found {
    /// Whether more than one component of a kind recorded.
    pub(crate) fn has_several(&self, kind: u32) -> bool {
        self.members.get(&kind).is_some_and(|&members| members > 1)
    }

    /// Adds a run that was read at a place of the file, or from the journal.
    pub(crate) fn add(&mut self, missing: u64, chunk: Chunk, at: Option<u64>) {
        let mut is_ours = false;
        for &[first, second] in &chunk.records {
            if is_gap(first) {
                continue;
            }
            match kind_and_depth(first).0 {
                BEGINS | ENDS => {
                    is_ours = true;
                    let component = Word::of(second).component;
                    self.components.entry(component).or_default();
                }
                KIND => {
                    is_ours = true;
                    let word = Word::of(second);
                    let component = self.components.entry(word.component).or_default();
                    component.kind = word.name;
                    if let Some(kind) = word.name {
                        *self.members.entry(kind).or_default() += 1;
                    }
                }
                NTH => {
                    let (component, nth) = Word::of_nth(second);
                    self.components.entry(component).or_default().nth = nth;
                }
                _ => {}
            }
        }
        if is_ours {
            self.runs.push(Run {
                thread: chunk.thread,
                missing,
                from: chunk.records[0][0] & TICKS,
                place: match at {
                    Some(at) => Place::File(at),
                    None => Place::Block(chunk),
                },
            });
        }
    }
}

/// The runs of a thread, from the one that is being read on.
#[derive(Default)]
struct Thread<'r> {
    runs: VecDeque<&'r Run>,
    records: Vec<[u64; 2]>,
    at: usize,
}

impl Thread<'_> {
    /// Time of the next record, whose run is read if it is the first.
    fn time(&self) -> Option<u64> {
        match self.records.get(self.at) {
            Some(record) => Some(record[0] & TICKS),
            None => self.runs.front().map(|run| run.from),
        }
    }

    /// Takes the next record. None if it cannot be read any more.
    fn take(&mut self, file: &File) -> Option<[u64; 2]> {
        if self.at == self.records.len() {
            let chunk = match &self.runs.pop_front()?.place {
                Place::File(at) => chunk_at(file, *at)?,
                Place::Block(chunk) => chunk.clone(),
            };
            self.records = chunk.records;
            self.at = 0;
        }
        self.at += 1;
        self.records.get(self.at - 1).copied()
    }

    /// Records missing between the last one taken and the next.
    fn missing(&self) -> u64 {
        match self.at == self.records.len() {
            true => self.runs.front().map_or(0, |run| run.missing),
            false => 0,
        }
    }
}

/// A component's calls, and the number of its next record.
#[derive(Default)]
struct Lane {
    calls: OpenCalls,
    next: u16,
    /// Records of all threads lost before its last record.
    lost_before: u64,
}

/// Calls of all components.
struct Lanes<'r> {
    recorded: &'r Recorded,
    lanes: BTreeMap<u32, Lane>,
    /// Records of all threads that are missing so far.
    lost: u64,
}

/// Tells of all components' steps in the order of their times. False if the file has changed
/// meanwhile.
pub(crate) fn visit(
    recorded: &Recorded,
    found: &Found,
    file: &File,
    visit: &mut dyn FnMut(Step<'_>),
) -> bool {
    let mut threads: BTreeMap<u32, Thread<'_>> = BTreeMap::new();
    for run in &found.runs {
        threads.entry(run.thread).or_default().runs.push_back(run);
    }
    let mut lanes = Lanes {
        recorded,
        lanes: BTreeMap::new(),
        lost: threads.values().map(Thread::missing).sum(),
    };
    let next = |(number, thread): (&u32, &Thread<'_>)| Some(Reverse((thread.time()?, *number)));
    let mut due: BinaryHeap<_> = threads.iter().filter_map(next).collect();
    while let Some(Reverse((_, number))) = due.pop() {
        let until = due.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        let Some(thread) = threads.get_mut(&number) else {
            continue;
        };
        while let Some(time) = thread.time() {
            if time > until {
                due.push(Reverse((time, number)));
                break;
            }
            let Some(record) = thread.take(file) else {
                return false;
            };
            // The gap begins behind the last record before it, wherever its components went.
            lanes.lost += thread.missing();
            lanes.record(record, visit);
        }
    }
    lanes.end(visit);
    true
}

/// Number of calls that are open behind so many missing records, of which the remainder modulo
/// [`DEPTHS`] is known. None if it may be several.
fn open_behind(deep: usize, missing: u16, remainder: u32) -> Option<usize> {
    if u32::from(missing) >= DEPTHS / 2 {
        return None;
    }
    let (depths, missing) = (DEPTHS as usize, usize::from(missing));
    let least = deep.saturating_sub(missing);
    let open = least + (remainder as usize + depths - least % depths) % depths;
    (open <= deep + missing).then_some(open)
}

impl Lanes<'_> {
    fn record(&mut self, [first, second]: [u64; 2], visit: &mut dyn FnMut(Step<'_>)) {
        if is_gap(first) {
            self.lost += second;
            return;
        }
        let (kind, depth) = kind_and_depth(first);
        if !matches!(kind, BEGINS | ENDS | KIND) {
            return;
        }
        let word = Word::of(second);
        let ns = self.recorded.ns(first & TICKS);
        let lane = self.lanes.entry(word.component).or_default();
        let number = word.component;
        let missing = word.number.wrapping_sub(lane.next);
        let is_uncertain = self.lost - lane.lost_before >= NUMBERS;
        if kind == KIND || is_uncertain {
            // Another component of this number, or nothing is known of its calls any more.
            lane.calls.end_all(number, visit);
        }
        if kind != KIND && missing > 0 {
            let remainder = depth + u32::from(kind == ENDS);
            let open = open_behind(lane.calls.depth(), missing, remainder);
            if open.is_none() {
                lane.calls.end_all(number, visit);
            }
            let records = u64::from(missing);
            lane.calls
                .gap(number, ns, records, open.unwrap_or(0), visit);
        }
        lane.next = word.number.wrapping_add(1);
        lane.lost_before = self.lost;
        match (kind, word.name) {
            (BEGINS, Some(name)) => lane.calls.begins(number, name, ns, visit),
            (ENDS, name) => lane.calls.innermost_ends(number, name, ns, visit),
            _ => {}
        }
        lane.calls.seen(ns);
    }

    /// Ends what is open, at an unknown time, and tells of missing records that no later record of
    /// their component shows.
    fn end(&mut self, visit: &mut dyn FnMut(Step<'_>)) {
        let mut told = 0;
        for (&number, lane) in &mut self.lanes {
            lane.calls.end_all(number, visit);
            told += lane.calls.missing();
        }
        let accounts = self.recorded.accounts().iter();
        let lost: u64 = accounts.map(|account| account.lost()).sum();
        if lost > told {
            visit(Step::Gap {
                thread: UNKNOWN,
                from: 0,
                to: self.recorded.ends_at(),
                records: lost - told,
            });
        }
    }
}
