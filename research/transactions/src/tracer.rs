//! The tracer that writes the paper's records.

use std::sync::Arc;

use hearth_stm::trace::{Aborted, Tracer};
use hearth_sys::Linux;
use hearth_sys::clock::{Moment, Stamps};

use crate::output::{Output, Plan};
use crate::record::{Kind, Record};

/// Writes a thread's records; with reads and writes if `FULL`.
///
/// The slow clock is read when the thread joins and when it leaves, each time beside the cycle
/// counter. Starts, commits and aborts stand behind a record of the cycle counter.
#[derive(Default)]
pub struct Paper<const FULL: bool> {
    thread: Option<Thread>,
    plan: Option<Arc<Plan>>,
}

struct Thread {
    output: Output,
    stamps: Stamps,
    descriptor: u64,
}

impl Thread {
    fn join(plan: &Plan, descriptor: usize) -> Thread {
        let mut thread = Thread {
            output: Output::of_thread(plan),
            stamps: Stamps::here(&Linux),
            descriptor: descriptor as u64,
        };
        thread.put_clocks();
        thread
    }

    fn put_clocks(&mut self) {
        const NS: u64 = 1_000_000_000;
        let Moment { ticks, ns } = self.stamps.moment();
        let first = Record::new(Kind::Timing1, self.descriptor, ns / NS);
        self.output.put(first);
        self.output.put(Record::new(Kind::Timing2, ns % NS, 0));
        self.output.put(Record::new(Kind::Rdtsc, ticks, 0));
    }

    #[inline]
    fn put_now(&mut self, kind: Kind, descriptor: usize, counter: u64) {
        let ticks = self.stamps.ticks();
        self.output.put(Record::new(Kind::Rdtsc, ticks, 0));
        let record = Record::new(kind, descriptor as u64, counter);
        self.output.put(record);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.put_clocks();
    }
}

impl<const FULL: bool> Paper<FULL> {
    /// Ends the calling thread's file; a thread that ends does so by itself.
    pub fn close(&mut self) {
        self.thread = None;
        self.plan = None;
    }
}

impl<const FULL: bool> Tracer for Paper<FULL> {
    type Shared = Option<Arc<Plan>>;

    #[inline]
    fn open(&mut self, shared: &Option<Arc<Plan>>, descriptor: usize) {
        let is_same = match (shared, &self.plan) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            self.thread = shared.as_ref().map(|plan| Thread::join(plan, descriptor));
            self.plan.clone_from(shared);
        }
    }

    #[inline]
    fn start(&mut self, descriptor: usize, counter: u64) {
        if let Some(thread) = &mut self.thread {
            thread.put_now(Kind::Start, descriptor, counter);
        }
    }

    #[inline]
    fn read(&mut self, address: usize) {
        if FULL && let Some(thread) = &mut self.thread {
            thread
                .output
                .put(Record::new(Kind::Read, address as u64, 0));
        }
    }

    #[inline]
    fn write(&mut self, address: usize, value: u64) {
        if FULL && let Some(thread) = &mut self.thread {
            let record = Record::new(Kind::Write, address as u64, value);
            thread.output.put(record);
        }
    }

    #[inline]
    fn commit(&mut self, descriptor: usize, counter: u64) {
        if let Some(thread) = &mut self.thread {
            thread.put_now(Kind::Commit, descriptor, counter);
        }
    }

    #[inline]
    fn abort(&mut self, descriptor: usize, counter: u64, _: Aborted) {
        if let Some(thread) = &mut self.thread {
            thread.put_now(Kind::Abort, descriptor, counter);
        }
    }
}
