//! A file of records, opened: names, clocks, accounts.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use hearth_text::cause;
use hearth_watch::stream::{Clocks, Head, Law, Log, Tally, Total, Unread};

use crate::components::{self, Found};
use crate::steps::{Step, Threads};

/// A file of recorded calls.
pub struct Recorded {
    path: PathBuf,
    head: Head,
    names: BTreeMap<u32, String>,
    clocks: Vec<Clocks>,
    accounts: Vec<Account>,
    tallies: BTreeMap<Option<u32>, Tally>,
    homeless: u64,
    has_ended: bool,
    writer: String,
    damages: Vec<String>,
    found: Found,
}

/// A thread or a component that makes calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A thread: the kernel's number, and its name.
    Thread(u32, String),
    /// A component: its name, as `Server#3`.
    Component(String),
}

impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caller::Thread(id, name) if name.is_empty() => write!(f, "thread {id}"),
            Caller::Thread(_, name) | Caller::Component(name) => f.write_str(name),
        }
    }
}

/// A thread's account: emitted = stored + lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its number in the file, from 1.
    pub thread: u32,
    /// The kernel's number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Records that it emitted.
    pub emitted: u64,
    /// Records that are here.
    pub stored: u64,
    /// Records dropped for want of a block, or left out by a sample.
    pub dropped: u64,
    /// Records overwritten before they were stored.
    pub overwritten: u64,
    /// Records that the file did not take, and those that a damaged file has lost since.
    pub refused: u64,
}

impl Account {
    fn of(total: Total, stored: u64) -> Account {
        let accounted = stored + total.dropped + total.overwritten;
        Account {
            thread: total.thread,
            id: total.id,
            name: total.name,
            // A block was stored after the last account, if the program runs.
            emitted: total.emitted.max(accounted),
            stored,
            dropped: total.dropped,
            overwritten: total.overwritten,
            refused: total.emitted.saturating_sub(accounted),
        }
    }

    /// Records lost for any reason.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.dropped + self.overwritten + self.refused
    }
}

/// Reason for which nothing can be read.
#[derive(Debug)]
pub struct Unreadable {
    path: PathBuf,
    why: Unread,
}

impl Recorded {
    /// Opens a file that a monitor wrote or writes.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<Recorded, Unreadable> {
        let mut log = open(path)?;
        let mut found = Found::default();
        while let Some((missing, chunk)) = log.next_chunk() {
            found.add(missing, chunk, log.last_at());
        }
        Ok(Recorded {
            found,
            ..Recorded::of(path, &log)
        })
    }

    /// Takes over what was read of a log so far.
    pub(crate) fn of(path: &Path, log: &Log) -> Recorded {
        let has_tallies = !log.tallies.is_empty();
        let accounts = log
            .accounts()
            .into_iter()
            .map(|(total, stored)| match has_tallies {
                true => {
                    let counted = total.emitted - total.dropped.min(total.emitted);
                    Account::of(total, counted)
                }
                false => Account::of(total, stored),
            })
            .collect();
        let mut clocks = log.clocks.clone();
        clocks.sort_by_key(|clocks| clocks.ticks);
        Recorded {
            path: path.to_owned(),
            head: log.head().clone(),
            names: log.names.clone(),
            clocks,
            accounts,
            tallies: log.tallies.clone(),
            homeless: log.homeless,
            has_ended: log.has_ended,
            writer: log.writer.clone(),
            damages: log.damages.clone(),
            found: Found::default(),
        }
    }

    /// Calls `visit` for each step of each thread: a thread's steps in their order, threads mixed
    /// by blocks. If components recorded, then for each step of each component, all in the order of
    /// their times.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn visit(&self, mut visit: impl FnMut(Step<'_>)) -> Result<(), Unreadable> {
        if self.is_of_components() {
            return self.visit_components(&mut visit);
        }
        let mut log = open(&self.path)?;
        let mut threads = Threads::default();
        while let Some((missing, chunk)) = log.next_chunk() {
            threads.chunk(self, missing, &chunk, &mut visit);
        }
        threads.end(self, &mut visit);
        Ok(())
    }

    fn visit_components(&self, visit: &mut dyn FnMut(Step<'_>)) -> Result<(), Unreadable> {
        let unreadable = |error| Unreadable {
            path: self.path.clone(),
            why: Unread::File(error),
        };
        let file = File::open(&self.path).map_err(unreadable)?;
        match components::visit(self, &self.found, &file, visit) {
            true => Ok(()),
            false => Err(unreadable(io::Error::other("it has changed meanwhile"))),
        }
    }

    /// Whether components recorded, which go from thread to thread.
    #[must_use]
    pub fn is_of_components(&self) -> bool {
        !self.found.components.is_empty()
    }

    /// Numbers of all threads, or of all components if those recorded.
    #[must_use]
    pub fn callers(&self) -> Vec<u32> {
        match self.is_of_components() {
            true => self.found.components.keys().copied().collect(),
            false => self.accounts.iter().map(|account| account.thread).collect(),
        }
    }

    /// The thread or component of a number in [`Step`]s.
    #[must_use]
    pub fn caller(&self, number: u32) -> Caller {
        if !self.is_of_components() {
            return match self.account(number) {
                Some(account) => Caller::Thread(account.id, account.name.clone()),
                // A thread that is not known has the number of none that is.
                None => Caller::Thread(u32::MAX - number, format!("thread {number}")),
            };
        }
        let component = self.found.components.get(&number).copied();
        let component = component.unwrap_or_default();
        Caller::Component(match (number, component.kind) {
            (components::UNKNOWN, _) => "unknown components".to_owned(),
            (_, Some(kind)) if component.nth > 0 && self.found.has_several(kind) => {
                format!("{}#{}", self.name(kind), component.nth)
            }
            (_, Some(kind)) => self.name(kind).to_owned(),
            _ => format!("component {number}"),
        })
    }

    /// Whether a thread has lost records; if components recorded, whether any thread has.
    #[must_use]
    pub fn has_losses(&self, number: u32) -> bool {
        match self.is_of_components() {
            true => self.accounts.iter().any(|account| account.lost() > 0),
            false => self.account(number).is_some_and(|one| one.lost() > 0),
        }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.head.program
    }

    /// The number of its process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.head.process
    }

    /// The law of loss.
    #[must_use]
    pub fn law(&self) -> Law {
        self.head.law
    }

    /// Accounts of all threads.
    #[must_use]
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Records of threads that found no slot in the journal.
    #[must_use]
    pub fn homeless(&self) -> u64 {
        self.homeless
    }

    /// Whether the monitor ended in order.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The last place of the writer's thread, and why; empty if it was left to the scheduler.
    #[must_use]
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// Damaged places of the file.
    #[must_use]
    pub fn damages(&self) -> &[String] {
        &self.damages
    }

    /// The name of a probe.
    #[must_use]
    pub fn name(&self, number: u32) -> &str {
        self.names.get(&number).map_or("?", String::as_str)
    }

    /// Names of all probes that were on, by their numbers.
    #[must_use]
    pub fn names(&self) -> &BTreeMap<u32, String> {
        &self.names
    }

    /// Time since the beginning in nanoseconds, of ticks since then.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        let behind = self.clocks.partition_point(|clocks| clocks.ticks < ticks);
        let zero = Clocks::default();
        let (from, to) = match (behind.checked_sub(1), self.clocks.get(behind)) {
            (Some(before), Some(&to)) => (self.clocks[before], to),
            (None, Some(&to)) => (zero, to),
            // Behind the last: at the rate since the beginning.
            (Some(before), None) => (zero, self.clocks[before]),
            (None, None) => return ticks,
        };
        let (length, ns) = (to.ticks - from.ticks, to.ns.saturating_sub(from.ns));
        if length == 0 {
            return to.ns;
        }
        let step = u128::from(ticks - from.ticks) * u128::from(ns) / u128::from(length);
        from.ns + step as u64
    }

    /// Calls that were added up while the program ran, by their probes; none is without a name.
    /// Empty if single calls were recorded.
    #[must_use]
    pub fn tallies(&self) -> &BTreeMap<Option<u32>, Tally> {
        &self.tallies
    }

    /// Length in nanoseconds of one in ticks, at the rate since the beginning.
    #[must_use]
    pub fn length_ns(&self, ticks: u64) -> u64 {
        match self.clocks.last() {
            Some(last) if last.ticks > 0 => {
                let ns = u128::from(ticks) * u128::from(last.ns) / u128::from(last.ticks);
                ns as u64
            }
            _ => ticks,
        }
    }

    /// The wall's time of the beginning, in nanoseconds since 1970.
    #[must_use]
    pub fn began_at(&self) -> u64 {
        let of = |clocks: &Clocks| clocks.wall.saturating_sub(clocks.ns);
        self.clocks.first().map_or(0, of)
    }

    /// Readings of the clocks, in the order of their times.
    #[must_use]
    pub fn clocks(&self) -> &[Clocks] {
        &self.clocks
    }

    /// Time of the last reading of the clocks, in nanoseconds since the beginning.
    #[must_use]
    pub fn ends_at(&self) -> u64 {
        self.clocks.last().map_or(0, |clocks| clocks.ns)
    }

    /// The account of a thread.
    #[must_use]
    pub fn account(&self, thread: u32) -> Option<&Account> {
        let at = self
            .accounts
            .binary_search_by_key(&thread, |account| account.thread);
        self.accounts.get(at.ok()?)
    }

    /// Steps of the wall's clock during the run: the time of each since the beginning, and its
    /// length, both in nanoseconds. Those below 10 ms are not told from steering.
    #[must_use]
    pub fn clock_steps(&self) -> Vec<(u64, i64)> {
        const LEAST: i64 = 10_000_000;
        let pairs = self.clocks.windows(2);
        pairs
            .filter_map(|pair| {
                let wall = pair[1].wall.wrapping_sub(pair[0].wall) as i64;
                let step = wall - (pair[1].ns.saturating_sub(pair[0].ns)) as i64;
                (step.abs() >= LEAST).then_some((pair[1].ns, step))
            })
            .collect()
    }
}

fn open(path: &Path) -> Result<Log, Unreadable> {
    Log::open(path).map_err(|why| Unreadable::of(path, why))
}

impl Unreadable {
    pub(crate) fn of(path: &Path, why: Unread) -> Unreadable {
        Unreadable {
            path: path.to_owned(),
            why,
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            Unread::File(error) => write!(f, "cannot read {path}: {}", cause(error)),
            Unread::NoStream => write!(
                f,
                "{path} holds no records of probes; name a file that a monitor wrote"
            ),
        }
    }
}

impl std::error::Error for Unreadable {}
