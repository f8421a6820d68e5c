//! Records, thread by thread, as calls that begin and end.
//!
//! Where components record, each of them stands in a thread's place.

use std::collections::BTreeMap;

use hearth_watch::stream::{Chunk, GAP, TICKS};

use crate::recorded::{Account, Recorded};

/// A call that ended, or of which the end is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The thread's number, or the component's ([`Recorded::caller`]).
    pub thread: u32,
    /// The probe's number; none if only the end of the call was to be recorded, and was lost too.
    pub name: Option<u32>,
    /// Number of calls around it; of a component's, those that are known.
    pub depth: u32,
    /// Time of its beginning in nanoseconds, if known.
    pub begin: Option<u64>,
    /// Time of its end, if known.
    pub end: Option<u64>,
    /// Time from which it was open for sure: its beginning, or that of the first record behind the
    /// gap in which it began.
    pub open_from: u64,
    /// Time until which it was open for sure: its end, or that of the last record before its end.
    pub open_until: u64,
    /// Nanoseconds in calls directly within it.
    pub within: u64,
    /// Records are missing between its beginning and its end.
    pub has_gap: bool,
}

impl Call {
    /// Its length in nanoseconds, if known.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        Some(self.end?.saturating_sub(self.begin?))
    }
}

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A call begins, within those that are open.
    Begins {
        /// The thread's number.
        thread: u32,
        /// The probe's number.
        name: u32,
        /// Time in nanoseconds.
        ns: u64,
        /// The calls around it, the outermost first; none for those that are not known.
        around: &'a [Option<u32>],
    },
    /// The innermost call ends.
    Ends {
        /// The call.
        call: Call,
        /// The calls around it.
        around: &'a [Option<u32>],
    },
    /// Records are missing here. The calls that may have ended in the gap have ended before this
    /// step.
    Gap {
        /// The thread's number.
        thread: u32,
        /// Time of the last record before, in nanoseconds; 0 if there is none.
        from: u64,
        /// Time of the first record behind; that of the last reading of the clocks if there is
        /// none.
        to: u64,
        /// Number of missing records.
        records: u64,
    },
    /// A call turns out to be open behind a gap: its beginning is missing, and its name comes with
    /// its end.
    Appears {
        /// The thread's number.
        thread: u32,
        /// Time of the first record behind the gap, in nanoseconds.
        ns: u64,
        /// The calls around it.
        around: &'a [Option<u32>],
    },
}

impl Step<'_> {
    /// The thread's number.
    #[must_use]
    pub fn thread(&self) -> u32 {
        match self {
            Step::Begins { thread, .. } | Step::Gap { thread, .. } => *thread,
            Step::Appears { thread, .. } => *thread,
            Step::Ends { call, .. } => call.thread,
        }
    }
}

/// Open calls of all threads.
#[derive(Default)]
pub(crate) struct Threads {
    threads: BTreeMap<u32, OpenCalls>,
}

/// Open calls of a thread or a component.
#[derive(Default)]
pub(crate) struct OpenCalls {
    names: Vec<Option<u32>>,
    open: Vec<Open>,
    /// Time of the last record.
    last: u64,
    /// Number of missing records so far.
    missing: u64,
}

#[derive(Clone, Copy, Default)]
struct Open {
    begin: Option<u64>,
    from: u64,
    within: u64,
    has_gap: bool,
}

impl Threads {
    /// A run of a thread's records, with this many missing before it.
    pub(crate) fn chunk(
        &mut self,
        recorded: &Recorded,
        missing: u64,
        chunk: &Chunk,
        visit: &mut dyn FnMut(Step<'_>),
    ) {
        let thread = self.threads.entry(chunk.thread).or_default();
        let number = chunk.thread;
        let mut missing = missing;
        for &[first, second] in &chunk.records {
            let ns = recorded.ns(first & TICKS);
            if missing > 0 {
                // The note says how many calls were open when the block was.
                thread.gap(number, ns, missing, chunk.note as usize, visit);
                missing = 0;
            }
            match first >> 56 {
                0 => thread.begins(number, second as u32, ns, visit),
                1 => thread.ends(number, second as u32, ns, visit),
                kind if kind == GAP >> 56 => {
                    // Whole trees are left out, so as many calls are open as before.
                    let open = thread.open.len();
                    thread.gap(number, ns, second, open, visit);
                }
                _ => {}
            }
            thread.seen(ns);
        }
    }

    /// Ends what is open, at an unknown time, and tells of records that are missing at the end.
    pub(crate) fn end(&mut self, recorded: &Recorded, visit: &mut dyn FnMut(Step<'_>)) {
        for account in recorded.accounts() {
            self.threads.entry(account.thread).or_default();
        }
        for (&number, thread) in &mut self.threads {
            thread.end_all(number, visit);
            let lost = recorded.account(number).map_or(0, Account::lost);
            let records = lost.saturating_sub(thread.missing);
            if records > 0 {
                visit(Step::Gap {
                    thread: number,
                    from: thread.last,
                    to: recorded.ends_at().max(thread.last),
                    records,
                });
            }
        }
    }
}

impl OpenCalls {
    /// Number of open calls.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Number of missing records so far.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Notes the time of the last record.
    pub(crate) fn seen(&mut self, ns: u64) {
        self.last = ns;
    }

    /// Ends all calls, at an unknown time.
    pub(crate) fn end_all(&mut self, number: u32, visit: &mut dyn FnMut(Step<'_>)) {
        while !self.open.is_empty() {
            self.pop(number, None, visit);
        }
    }

    /// Ends the innermost call, which is known by its depth.
    pub(crate) fn innermost_ends(
        &mut self,
        number: u32,
        name: Option<u32>,
        ns: u64,
        visit: &mut dyn FnMut(Step<'_>),
    ) {
        match self.names.last_mut() {
            Some(open) => *open = open.or(name),
            None => self.push_unknown(name, ns),
        }
        self.pop(number, Some(ns), visit);
    }

    /// A call that ends now, of which nothing is known before.
    fn push_unknown(&mut self, name: Option<u32>, ns: u64) {
        self.names.push(name);
        self.open.push(Open {
            from: ns,
            ..Open::default()
        });
    }

    pub(crate) fn begins(
        &mut self,
        thread: u32,
        name: u32,
        ns: u64,
        visit: &mut dyn FnMut(Step<'_>),
    ) {
        visit(Step::Begins {
            thread,
            name,
            ns,
            around: &self.names,
        });
        self.names.push(Some(name));
        self.open.push(Open {
            begin: Some(ns),
            from: ns,
            ..Open::default()
        });
    }

    pub(crate) fn ends(
        &mut self,
        thread: u32,
        name: u32,
        ns: u64,
        visit: &mut dyn FnMut(Step<'_>),
    ) {
        if let Some(open @ None) = self.names.last_mut() {
            // Its beginning is missing. A call of this name around it goes on.
            *open = Some(name);
        } else if let Some(at) = self.names.iter().rposition(|open| *open == Some(name)) {
            // A probe was switched between: the calls above have no end.
            while self.names.len() > at + 1 {
                self.pop(thread, None, visit);
            }
        } else {
            self.push_unknown(Some(name), ns);
        }
        self.pop(thread, Some(ns), visit);
    }

    fn pop(&mut self, thread: u32, end: Option<u64>, visit: &mut dyn FnMut(Step<'_>)) {
        let Some((open, name)) = self.open.pop().zip(self.names.pop()) else {
            return;
        };
        let call = Call {
            thread,
            name,
            depth: self.names.len() as u32,
            begin: open.begin,
            end,
            open_from: open.from,
            open_until: end.unwrap_or(self.last.max(open.from)),
            within: open.within,
            has_gap: open.has_gap,
        };
        if let (Some(around), Some(length)) = (self.open.last_mut(), call.length()) {
            around.within += length;
        }
        visit(Step::Ends {
            call,
            around: &self.names,
        });
    }

    /// Notes missing records, behind which as many calls are open as `depth` says.
    pub(crate) fn gap(
        &mut self,
        thread: u32,
        ns: u64,
        records: u64,
        depth: usize,
        visit: &mut dyn FnMut(Step<'_>),
    ) {
        self.missing += records;
        // With few missing records, the outer calls cannot have ended and begun again: each takes
        // two records, and those within it must have ended before.
        let deep = self.open.len();
        let ended_at_most = records as usize;
        let sure = match records {
            0 => deep,
            _ => deep.saturating_sub(ended_at_most).min(depth),
        };
        while self.open.len() > sure {
            self.pop(thread, None, visit);
        }
        visit(Step::Gap {
            thread,
            from: self.last,
            to: ns,
            records,
        });
        self.last = ns;
        if records == 0 {
            return;
        }
        for open in &mut self.open {
            open.has_gap = true;
        }
        while self.open.len() < depth {
            visit(Step::Appears {
                thread,
                ns,
                around: &self.names,
            });
            self.open.push(Open {
                from: ns,
                has_gap: true,
                ..Open::default()
            });
            self.names.push(None);
        }
    }
}
