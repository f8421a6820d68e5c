//! Counts of a run.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::model::Wrong;
use crate::wire::{Kind, Outcome};

/// Longest time that is told apart: ten minutes.
const TIME_MAX_NS: u64 = 600_000_000_000;
/// Significant digits: a thousandth.
const DIGITS: u8 = 3;
/// Number of different error texts that are told apart.
const TEXTS_MAX: usize = 16;
/// Number of wrong replies kept as text.
const SAMPLES_MAX: usize = 8;

/// A histogram of times in nanoseconds, to a thousandth.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Times {
        Times::new()
    }
}

impl Times {
    /// An empty histogram.
    pub fn new() -> Times {
        let histogram = Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS);
        Times(histogram.expect("the bounds are constants that are good"))
    }

    /// Adds a time.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// Adds all times of another histogram.
    pub fn add(&mut self, other: &Times) {
        // Both have the same bounds, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// Number of times.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time that `percent` of all do not exceed; 0 if there are none.
    pub fn percentile(&self, percent: f64) -> u64 {
        match self.is_empty() {
            true => 0,
            false => self.0.value_at_percentile(percent),
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The longest.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The histogram itself.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// Counts of replies by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replies {
    /// Values.
    pub hits: u64,
    /// Reads of keys without a value.
    pub misses: u64,
    /// Writes done.
    pub stored: u64,
    /// Writes not done, without an error.
    pub not_stored: u64,
    /// Echoes.
    pub echoes: u64,
    /// Errors.
    pub errors: u64,
}

impl Replies {
    /// Number of all replies.
    pub fn all(&self) -> u64 {
        self.hits + self.misses + self.stored + self.not_stored + self.echoes + self.errors
    }

    /// Counts a reply.
    pub fn count(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Hit(_) => &mut self.hits,
            Outcome::Miss => &mut self.misses,
            Outcome::Stored => &mut self.stored,
            Outcome::NotStored => &mut self.not_stored,
            Outcome::Echoed => &mut self.echoes,
            Outcome::Error(_) => &mut self.errors,
        } += 1;
    }

    fn add(&mut self, other: &Replies) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.stored += other.stored;
        self.not_stored += other.not_stored;
        self.echoes += other.echoes;
        self.errors += other.errors;
    }
}

/// Results of verification.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Replies verified.
    pub looked_at: u64,
    /// Values that nobody wrote, values of another key, and bytes that answer nothing.
    pub corrupt: u64,
    /// Stale values.
    pub too_old: u64,
    /// Missing values that nothing may have removed.
    pub lost: u64,
    /// The first few faults, as text.
    pub samples: Vec<String>,
}

impl Verified {
    /// True if no reply was wrong.
    pub fn is_good(&self) -> bool {
        self.corrupt + self.too_old + self.lost == 0
    }

    /// Counts a wrong reply.
    pub fn wrong(&mut self, key: u64, wrong: &Wrong) {
        *match wrong {
            Wrong::Harmed(_) | Wrong::OtherKey { .. } | Wrong::NeverWritten { .. } => {
                &mut self.corrupt
            }
            Wrong::TooOld { .. } => &mut self.too_old,
            Wrong::Lost => &mut self.lost,
        } += 1;
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(format!("key {key}: {wrong}"));
        }
    }

    /// Counts bytes that do not answer the next request, if there is one.
    pub fn astray(&mut self, key: Option<u64>, what: &str) {
        self.looked_at += 1;
        self.corrupt += 1;
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(match key {
                Some(key) => format!("key {key}: {what}"),
                None => format!("no request: {what}"),
            });
        }
    }

    fn add(&mut self, other: &Verified) {
        self.looked_at += other.looked_at;
        self.corrupt += other.corrupt;
        self.too_old += other.too_old;
        self.lost += other.lost;
        let room = SAMPLES_MAX.saturating_sub(self.samples.len());
        self.samples
            .extend(other.samples.iter().take(room).cloned());
    }
}

/// Counts of a thread, or of all threads, during the measurement.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Latency of reads, from when they were due.
    pub gets: Times,
    /// Latency of writes, from when they were due.
    pub sets: Times,
    /// Latency from when requests were made.
    pub service: Times,
    /// Delay of requests beyond their due time, for any reason; in open loops.
    pub slip: Times,
    /// The generator's own part of that delay.
    pub own_slip: Times,
    /// Replies received during the measurement.
    pub replies: Replies,
    /// Requests due during the measurement that never got a reply.
    pub unanswered: u64,
    /// Errors by their text.
    pub errors: BTreeMap<String, u64>,
    /// Connections that broke, at any time, by reason.
    pub broken: BTreeMap<String, u64>,
    /// Requests in flight on the broken connections.
    pub lost_on_the_way: u64,
    /// Verification, at any time.
    pub verified: Verified,
    /// Bytes of requests.
    pub bytes_sent: u64,
    /// Bytes of replies.
    pub bytes_received: u64,
    /// System calls to wait, read and write.
    pub calls: u64,
    /// CPU time of the threads, in nanoseconds.
    pub own_cpu_ns: u64,
    /// Largest share of the time that one thread was on a core.
    pub busiest: f64,
}

impl Tally {
    /// The histogram for a kind of request.
    pub fn times(&mut self, kind: Kind) -> &mut Times {
        match kind {
            Kind::Get => &mut self.gets,
            Kind::Set => &mut self.sets,
        }
    }

    /// Times of all requests.
    pub fn latency(&self) -> Times {
        let mut all = self.gets.clone();
        all.add(&self.sets);
        all
    }

    /// Counts a text, up to a number of different ones.
    pub fn count_text(texts: &mut BTreeMap<String, u64>, text: &str, times: u64) {
        let text = match texts.len() >= TEXTS_MAX && !texts.contains_key(text) {
            true => "others",
            false => text,
        };
        *texts.entry(text.to_owned()).or_default() += times;
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Tally) {
        self.gets.add(&other.gets);
        self.sets.add(&other.sets);
        self.service.add(&other.service);
        self.slip.add(&other.slip);
        self.own_slip.add(&other.own_slip);
        self.replies.add(&other.replies);
        self.unanswered += other.unanswered;
        for (text, times) in &other.errors {
            Tally::count_text(&mut self.errors, text, *times);
        }
        for (text, times) in &other.broken {
            Tally::count_text(&mut self.broken, text, *times);
        }
        self.lost_on_the_way += other.lost_on_the_way;
        self.verified.add(&other.verified);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.calls += other.calls;
        self.own_cpu_ns += other.own_cpu_ns;
        self.busiest = self.busiest.max(other.busiest);
    }
}
