//! Shared words of a set: its gate, its account, and the list of those that may be held.
//!
//! ```text
//! word      0        1 gate, 2 held, 3 suspended, 4 demand, 5 keeper
//!           6 … 12   account: turns, ns on, ns run, ns waited, ns wanted, ns together, ns lost
//!          16 … 79   histogram of switches, 10 µs a bucket, the last for all that took longer
//!          80, 81    numbers of entries of the two lists
//!         128 … 4095 processes: number in the low half, low half of the time of its beginning above
//!        4096 … 8191 threads whose affinity was changed
//! ```
//!
//! | words | who writes | who reads |
//! |---|---|---|
//! | 3, 5 | the process of the set | the conductor |
//! | others | the conductor; whoever mends a set, after the conductor or the set's process has ended | members (the gate), `hearth gangs`, whoever mends |
//!
//! The list of processes is written before the first of them is stopped, and `held` with it: it is
//! what remains of a conductor that is killed. All words are relaxed but the gate and `held`.

use std::fs::File;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use hearth_sys::futex;
use hearth_sys::refused::Refused;
use hearth_sys::shared::Words;

/// Number of words.
const WORDS: usize = 8192;
/// Bytes of the file.
pub(crate) const BYTES: u64 = WORDS as u64 * 8;

const GATE: usize = 1;
const HELD: usize = 2;
const SUSPENDED: usize = 3;
const DEMAND: usize = 4;
const KEEPER: usize = 5;
const ACCOUNT: usize = 6;
const SWITCHES: usize = 16;
const SWITCH_BUCKETS: usize = 64;
const SWITCH_BUCKET_NS: u64 = 10_000;
const PROCESSES_COUNT: usize = 80;
const THREADS_COUNT: usize = 81;
const PROCESSES: usize = 128;
/// Most processes that are held. Others of a larger set run on.
pub(crate) const PROCESSES_MAX: usize = THREADS - PROCESSES;
const THREADS: usize = 4096;
const THREADS_MAX: usize = WORDS - THREADS;

/// Gate that lets members pass.
const OPEN: u64 = 0;
/// Gate at which members wait.
const CLOSED: u64 = 1;

/// Way in which a set's members were held when somebody last wrote so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// They run.
    No,
    /// Processes were sent a signal.
    Stopped,
    /// The group is frozen.
    Frozen,
    /// The gate is closed.
    Gate,
}

/// Times of a set, all in ns since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Number of turns.
    pub turns: u64,
    /// Time of its turns.
    pub on_ns: u64,
    /// Time that its threads ran in them, summed over threads.
    pub run_ns: u64,
    /// Time that its threads were ready and did not run, because others did, in its turns.
    pub waited_ns: u64,
    /// Time of those turns in which at least one thread wanted to run.
    pub wanted_ns: u64,
    /// Part of it during which all that wanted ran, or all cores did: a lower bound. The kernel
    /// tells how long each thread ran, not when.
    pub together_ns: u64,
    /// Core time of its turns, for cores that it wanted, in which it did not run.
    pub lost_ns: u64,
}

impl Account {
    fn words(&self) -> [u64; 7] {
        [
            self.turns,
            self.on_ns,
            self.run_ns,
            self.waited_ns,
            self.wanted_ns,
            self.together_ns,
            self.lost_ns,
        ]
    }
}

/// The words of one set.
#[derive(Debug)]
pub(crate) struct Table(Words);

impl Table {
    pub(crate) fn of(file: &File) -> Result<Table, Refused> {
        Ok(Table(Words::of(file, WORDS)?))
    }

    fn get(&self, at: usize) -> u64 {
        self.0[at].load(Relaxed)
    }

    fn set(&self, at: usize, value: u64) {
        self.0[at].store(value, Relaxed);
    }

    /// Whether members pass. One load, as this is what members do all the time.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.0[GATE].load(Relaxed) == OPEN
    }

    /// Sleeps while the gate is closed, for a time at most.
    pub(crate) fn wait(&self, time: Duration) {
        futex::wait_between_processes(&self.0[GATE], CLOSED as u32, time);
    }

    pub(crate) fn open(&self) {
        // Release pairs with `is_passed`'s fence for those that waited; the value itself orders
        // nothing of the set's own data.
        if self.0[GATE].swap(OPEN, Release) != OPEN {
            futex::wake_between_processes(&self.0[GATE]);
        }
    }

    pub(crate) fn close(&self) {
        self.0[GATE].store(CLOSED, Release);
    }

    pub(crate) fn held(&self) -> Held {
        // Acquire pairs with `set_held`: the list that belongs to it is seen.
        match self.0[HELD].load(Acquire) {
            1 => Held::Stopped,
            2 => Held::Frozen,
            3 => Held::Gate,
            _ => Held::No,
        }
    }

    pub(crate) fn set_held(&self, held: Held) {
        let word = match held {
            Held::No => 0,
            Held::Stopped => 1,
            Held::Frozen => 2,
            Held::Gate => 3,
        };
        self.0[HELD].store(word, Release);
    }

    /// Whether its user has suspended the set, as with the key at a terminal.
    pub(crate) fn is_suspended(&self) -> bool {
        self.get(SUSPENDED) != 0
    }

    pub(crate) fn set_suspended(&self, is_suspended: bool) {
        self.set(SUSPENDED, is_suspended.into());
    }

    pub(crate) fn demand(&self) -> u32 {
        self.get(DEMAND) as u32
    }

    pub(crate) fn set_demand(&self, cores: u32) {
        self.set(DEMAND, cores.into());
    }

    /// The process that lets members go if the conductor is killed; 0 if there is none.
    pub(crate) fn keeper(&self) -> u32 {
        self.get(KEEPER) as u32
    }

    pub(crate) fn set_keeper(&self, process: u32) {
        self.set(KEEPER, process.into());
    }

    pub(crate) fn account(&self) -> Account {
        let word = |at| self.get(ACCOUNT + at);
        Account {
            turns: word(0),
            on_ns: word(1),
            run_ns: word(2),
            waited_ns: word(3),
            wanted_ns: word(4),
            together_ns: word(5),
            lost_ns: word(6),
        }
    }

    pub(crate) fn add(&self, more: &Account) {
        for (at, more) in more.words().into_iter().enumerate() {
            self.0[ACCOUNT + at].fetch_add(more, Relaxed);
        }
    }

    /// Counts a switch to this set, from the first signal to the last.
    pub(crate) fn add_switch(&self, ns: u64) {
        let bucket = (ns / SWITCH_BUCKET_NS).min(SWITCH_BUCKETS as u64 - 1);
        self.0[SWITCHES + bucket as usize].fetch_add(1, Relaxed);
    }

    /// Time within which this part of the switches was done, in ns, rounded up to a bucket. None
    /// without switches, or if some of that part took longer than the last bucket.
    pub(crate) fn switch_ns(&self, part: f64) -> Option<u64> {
        let counts: Vec<u64> = (0..SWITCH_BUCKETS)
            .map(|at| self.get(SWITCHES + at))
            .collect();
        within(&counts, part).map(|bucket| (bucket as u64 + 1) * SWITCH_BUCKET_NS)
    }

    pub(crate) fn processes(&self) -> Vec<(u32, u32)> {
        let count = (self.get(PROCESSES_COUNT) as usize).min(PROCESSES_MAX);
        let words = (0..count).map(|at| self.get(PROCESSES + at));
        words
            .map(|word| (word as u32, (word >> 32) as u32))
            .collect()
    }

    /// The list of processes, each with the low half of the time of its beginning.
    pub(crate) fn set_processes(&self, processes: impl Iterator<Item = (u32, u32)>) {
        let mut count = 0;
        for (number, began) in processes.take(PROCESSES_MAX) {
            self.set(
                PROCESSES + count,
                u64::from(began) << 32 | u64::from(number),
            );
            count += 1;
        }
        self.set(PROCESSES_COUNT, count as u64);
    }

    pub(crate) fn moved_threads(&self) -> Vec<u32> {
        let count = (self.get(THREADS_COUNT) as usize).min(THREADS_MAX);
        (0..count).map(|at| self.get(THREADS + at) as u32).collect()
    }

    /// The list of threads whose affinity was changed. False if it is full.
    pub(crate) fn set_moved_threads(&self, threads: impl Iterator<Item = u32>) -> bool {
        let mut count = 0;
        for thread in threads {
            if count == THREADS_MAX {
                return false;
            }
            self.set(THREADS + count, thread.into());
            count += 1;
        }
        self.set(THREADS_COUNT, count as u64);
        true
    }
}

/// The bucket that this part of all falls into, at most. None if that is the last one.
fn within(counts: &[u64], part: f64) -> Option<usize> {
    let all: u64 = counts.iter().sum();
    let wanted = (all as f64 * part).ceil() as u64;
    let mut so_far = 0;
    for (bucket, count) in counts.iter().enumerate().take(counts.len() - 1) {
        so_far += count;
        if so_far >= wanted && all > 0 {
            return Some(bucket);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let file = hearth_sys::shared::memory_file("a test", BYTES).expect("there is memory");
        Table::of(&file).expect("it can be mapped")
    }

    #[test]
    fn lists_are_kept() {
        let table = table();
        let many = (1..10_000).map(|number| (number, number * 7));
        table.set_processes(many);
        let found = table.processes();
        assert_eq!(found.len(), PROCESSES_MAX);
        assert_eq!(found[99], (100, 700));
        assert!(table.set_moved_threads([5, 6].into_iter()));
        assert_eq!(table.moved_threads(), [5, 6]);
        assert!(!table.set_moved_threads(0..5000));
    }

    #[test]
    fn a_part_of_the_switches_took_so_long() {
        let table = table();
        assert_eq!(table.switch_ns(0.99), None);
        for _ in 0..99 {
            table.add_switch(14_000);
        }
        table.add_switch(95_000);
        assert_eq!(table.switch_ns(0.99), Some(20_000));
        assert_eq!(table.switch_ns(1.0), Some(100_000));
        for _ in 0..10 {
            table.add_switch(1_000_000);
        }
        assert_eq!(table.switch_ns(0.99), None, "longer than is counted");
    }
}
