//! When each read of a sequential pass completes: the source's fetch cycles (tables 7.1 to 7.3).
//!
//! Reads are issued in order and one at a time. A read whose line is present costs `hit_ns`. A read
//! whose line is missing requests it and ends when the line is there. What else the request brings
//! is the [`Fetch`] policy.
//!
//! Two printed figures differ from the rule. Table 7.1 gives 14.0 ns for the sixth read, between
//! 13.0 and 16.0, where reads 1.5 ns apart give 14.5. Table 7.3 repeats table 7.2's times although
//! both lines arrive at once; its own first row makes the pass end at 17.5 ns. All three assume
//! four reads a line, 32 bytes; a line of 64 bytes has eight.
//!
//! [`Parameters::side_fetching_ns`] puts a policy into the source's equations.

use crate::source::{Access, Parameters};

/// What a miss brings in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fetch {
    /// The missing line alone (table 7.2).
    Line,
    /// The missing line and the next one, which arrives `gap_ns` later (table 7.1: data prefetch).
    Prefetch {
        /// From the first line's arrival to the second's, ns.
        gap_ns: f64,
    },
    /// Two lines at once, over another core's idle path to the shared level (table 7.3: Advanced
    /// Smart Cache).
    SmartCache,
}

/// A sequential pass over lines of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// From request to arrival of a line, ns.
    pub line_ns: f64,
    /// A read of a present line, ns.
    pub hit_ns: f64,
    /// Reads a line holds. Zero counts as one.
    pub reads_per_line: u32,
    /// Lines to pass over.
    pub lines: u32,
    /// What a miss brings in.
    pub fetch: Fetch,
}

/// One read of the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// When it completes, ns from the start of the pass.
    pub end_ns: f64,
    /// Which line it reads, from 0.
    pub line: u32,
    /// Whether it had to request its line.
    pub missed: bool,
}

impl Pass {
    /// The source's example: two lines of four 8-byte reads, from the Xeon 5130's second level
    /// (7 ns) through its first (1.5 ns).
    #[must_use]
    pub const fn xeon_5130(fetch: Fetch) -> Self {
        Self {
            line_ns: 7.0,
            hit_ns: 1.5,
            reads_per_line: 4,
            lines: 2,
            fetch,
        }
    }

    /// Table 7.1's prefetch: the second line is complete at 13.0 ns, 6 ns after the first.
    pub const PREFETCH: Fetch = Fetch::Prefetch { gap_ns: 6.0 };

    /// Every read of the pass, in order.
    #[must_use]
    pub fn reads(&self) -> Vec<Read> {
        let per_line = self.reads_per_line.max(1);
        let mut reads = Vec::new();
        let mut now_ns = 0.0_f64;
        // The arrival of the line after the last miss, if that miss brought it.
        let mut next_arrival: Option<f64> = None;
        for line in 0..self.lines {
            let arrival = next_arrival.take();
            for word in 0..per_line {
                let missed = word == 0 && arrival.is_none();
                now_ns = if missed {
                    let here = now_ns + self.line_ns;
                    next_arrival = match self.fetch {
                        Fetch::Line => None,
                        Fetch::Prefetch { gap_ns } => Some(here + gap_ns),
                        Fetch::SmartCache => Some(here),
                    };
                    here
                } else {
                    let ready = if word == 0 { arrival } else { None };
                    (now_ns + self.hit_ns).max(ready.unwrap_or(0.0))
                };
                reads.push(Read {
                    end_ns: now_ns,
                    line,
                    missed,
                });
            }
        }
        reads
    }

    /// When the last read completes, ns. Zero for no lines.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        // A miss brings at most the line after it, so that every second line begins afresh.
        let of = |lines| {
            let short = Self { lines, ..*self };
            short.reads().last().map_or(0.0, |read| read.end_ns)
        };
        f64::from(self.lines / 2) * of(2) + of(self.lines % 2)
    }
}

impl Parameters {
    /// [`Parameters::side_ns`] with a fetch policy, ns: what the source's equations give if misses
    /// bring in more than their line. Whole lines; with [`Fetch::Line`] and a size of whole lines
    /// the equations themselves.
    #[must_use]
    pub fn side_fetching_ns(&self, access: Access, bytes: u64, fetch: Fetch) -> f64 {
        let fits_first = self
            .levels
            .first()
            .is_some_and(|l| bytes <= l.capacity_bytes);
        if fits_first {
            return self.side_ns(access, bytes);
        }
        let lines = (bytes as f64 / self.line_bytes).ceil();
        let pass = Pass {
            line_ns: self.latency_at(bytes).of(access),
            hit_ns: self.first_level().of(access),
            reads_per_line: (self.line_bytes / self.word_bytes) as u32,
            lines: 2,
            fetch,
        };
        let last = Pass { lines: 1, ..pass };
        (lines / 2.0).floor() * pass.total_ns() + (lines % 2.0) * last.total_ns()
    }
}
