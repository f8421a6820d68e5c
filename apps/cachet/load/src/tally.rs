//! What a run counted.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::model::Wrong;
use crate::wire::{Kind, Outcome};

/// Longer times than this are told as this: ten minutes.
const TIME_MAX_NS: u64 = 600_000_000_000;
/// Digits that hold: a thousandth.
const DIGITS: u8 = 3;
/// Different texts of errors that are told apart.
const TEXTS_MAX: usize = 16;
/// Wrong replies that are told in words.
const SAMPLES_MAX: usize = 8;

/// Times in nanoseconds, to a thousandth of themselves.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Times {
        Times::new()
    }
}

impl Times {
    /// None yet.
    pub fn new() -> Times {
        let histogram = Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS);
        Times(histogram.expect("the bounds are constants that are good"))
    }

    /// One more.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// All of another's.
    pub fn add(&mut self, other: &Times) {
        // Bounds are the same, so nothing is refused.
        let _ = self.0.add(&other.0);
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time that so many percent do not exceed; 0 if there are none.
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

    /// The histogram, for whoever wants more.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// Replies by what they said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replies {
    /// Values.
    pub hits: u64,
    /// Of keys without one.
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
    /// All of them.
    pub fn all(&self) -> u64 {
        self.hits + self.misses + self.stored + self.not_stored + self.echoes + self.errors
    }

    /// One more.
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

/// Replies that were not what they had to be.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Replies looked at.
    pub looked_at: u64,
    /// Values that nobody wrote as they are, or of another key, and bytes that answer nothing.
    pub corrupt: u64,
    /// Values that had been replaced.
    pub too_old: u64,
    /// Values that are not there though nothing may have removed them.
    pub lost: u64,
    /// The first few, in words.
    pub samples: Vec<String>,
}

impl Verified {
    /// Was every reply what it had to be?
    pub fn is_good(&self) -> bool {
        self.corrupt + self.too_old + self.lost == 0
    }

    /// One more that was wrong.
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

    /// Bytes that are no reply to the request that is to be answered next, if any is.
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

/// What a thread, or all of them, counted while it counts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// From when a read was meant to be made to its reply, by the moment it was meant for.
    pub gets: Times,
    /// The same for writes.
    pub sets: Times,
    /// From when requests were made to their replies.
    pub service: Times,
    /// By how much requests were made later than meant, for whatever reason; in open loops.
    pub slip: Times,
    /// By how much of that the generator itself was late.
    pub own_slip: Times,
    /// Replies that came while it counts.
    pub replies: Replies,
    /// Requests meant for that time whose replies never came.
    pub unanswered: u64,
    /// Errors by their text.
    pub errors: BTreeMap<String, u64>,
    /// Connections that broke, at any time, by why.
    pub broken: BTreeMap<String, u64>,
    /// Requests that were under way on those.
    pub lost_on_the_way: u64,
    /// What was verified, at any time.
    pub verified: Verified,
    /// Bytes of requests and replies.
    pub bytes_sent: u64,
    /// The same of replies.
    pub bytes_received: u64,
    /// System calls that wait, read and write.
    pub calls: u64,
    /// Time that the threads were on a core, in nanoseconds.
    pub own_cpu_ns: u64,
    /// The largest share of the time that any one thread was on a core.
    pub busiest: f64,
}

impl Tally {
    /// The times of a kind of request.
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

    /// Counts a text, of which there may be many.
    pub fn count_text(texts: &mut BTreeMap<String, u64>, text: &str, times: u64) {
        let text = match texts.len() >= TEXTS_MAX && !texts.contains_key(text) {
            true => "others",
            false => text,
        };
        *texts.entry(text.to_owned()).or_default() += times;
    }

    /// Adds what another thread counted.
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
