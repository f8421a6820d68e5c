//! The governor: the thread that observes the others and gives them orders.

use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hearth_sys::Linux;
use hearth_sys::affinity::allowed;
use hearth_sys::clock::{Stamps, monotonic_ns};
use hearth_sys::threading::lock_std;

use super::Shared;
use super::control::{Control, Seen};
use crate::choices::Mechanism;
use crate::common::Common;
use crate::counters::Counters;
use crate::pattern::crew::Crew;
use crate::service::Service;

/// Longest sleep while there are no requests.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// Spinning time of threads that spin: several times the cost of waking a thread on a sleeping
/// core.
const SPIN: Duration = Duration::from_micros(100);
/// Replies after which the bytes per reply are known.
const REPLIES_KNOWN: u64 = 32;
/// Factor of change at which they are determined again.
const BYTES_STEP: f64 = 2.0;

pub(super) struct Governor<S: Service> {
    common: Arc<Common<S>>,
    crew: Arc<Crew<S::Session>>,
    stamps: Stamps,
    /// State at the end of the last window: nanoseconds, ticks, counters, and each thread's waiting
    /// and CPU time.
    ns: u64,
    ticks: u64,
    done: Counters,
    waited: Vec<(u64, u64)>,
    bytes: BytesPerReply,
}

impl<S: Service> Governor<S> {
    pub(super) fn new(common: &Arc<Common<S>>, crew: &Arc<Crew<S::Session>>) -> Governor<S> {
        let stamps = Stamps::here(&Linux);
        Governor {
            common: common.clone(),
            crew: crew.clone(),
            stamps,
            ns: monotonic_ns(),
            ticks: stamps.ticks(),
            done: Counters::default(),
            waited: vec![(0, 0); crew.posts.len()],
            bytes: BytesPerReply::default(),
        }
    }

    pub(super) fn control(&self, mechanisms: &[Mechanism], most: usize) -> Control {
        let names: Vec<String> = mechanisms.iter().map(Mechanism::to_string).collect();
        Control::new(&names, most, allowed().len(), 1e9)
    }

    pub(super) fn start(mut self, shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
        let shared = shared.clone();
        thread::Builder::new()
            .name(format!("{}-adapt", self.common.options.name))
            .spawn(move || self.run(&shared))
    }

    fn run(&mut self, shared: &Shared) {
        let mut control = lock_std(&shared.control);
        let mut wait = Duration::from_nanos(control.ticks());
        loop {
            if self.common.is_stopping() {
                return;
            }
            // Woken early, it stops, or looks too early once.
            control = shared
                .wakeup
                .wait_timeout(control, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            wait = self.look(&mut control, wait);
        }
    }

    /// Observes the time since the last look, and acts. Returns how long to wait now.
    fn look(&mut self, control: &mut Control, waited: Duration) -> Duration {
        let (ns, ticks) = (monotonic_ns(), self.stamps.ticks());
        let passed = ns.saturating_sub(self.ns).max(1);
        let passed_ticks = ticks.saturating_sub(self.ticks).max(1);
        let mut done = Counters::default();
        let mut busy = Vec::with_capacity(self.waited.len());
        for (desk, before) in self.common.desks.iter().zip(&mut self.waited) {
            desk.counts.add_to(&mut done);
            let (waited, ran) = (desk.waited(ticks), desk.ran_ns());
            let waits = waited.saturating_sub(before.0) as f64 / passed_ticks as f64;
            let runs = ran.saturating_sub(before.1) as f64 / passed as f64;
            busy.push((1.0 - waits).max(runs).clamp(0.0, 1.0));
            *before = (waited, ran);
        }
        let replies = done.writes - self.done.writes;
        let bytes =
            done.read_bytes + done.written_bytes - self.done.read_bytes - self.done.written_bytes;
        (self.ns, self.ticks, self.done) = (ns, ticks, done);
        let calls = self.bytes.replies(bytes, replies);
        if calls == 0 && control.is_calm() {
            return (2 * waited).min(IDLE_WAIT);
        }
        let held: Vec<usize> = self.crew.posts.iter().map(|post| post.held()).collect();
        let plan = control.observe(&Seen {
            ticks: passed,
            calls,
            busy: &busy,
            held: &held,
        });
        for (from, order) in plan.moves {
            self.crew.posts[from].order(order);
        }
        self.tell_whether_to_spin(control);
        Duration::from_nanos(plan.ticks)
    }

    fn tell_whether_to_spin(&self, control: &Control) {
        let (way, active) = (control.way(), control.active());
        for (number, post) in self.crew.posts.iter().enumerate() {
            let spins = way.spins && active.contains(&number);
            post.set_spin(if spins { SPIN } else { Duration::ZERO });
        }
    }
}

/// Converts bytes to replies. A client that asks for much at once gets several replies with one
/// send, and more of them the longer it waited: counting sends would make a slow server look nearly
/// as fast as a quick one. Counting bytes does not.
#[derive(Default)]
struct BytesPerReply {
    known: Option<f64>,
    bytes: u64,
    replies: u64,
}

impl BytesPerReply {
    fn replies(&mut self, bytes: u64, replies: u64) -> u64 {
        self.bytes += bytes;
        self.replies += replies;
        if self.replies >= REPLIES_KNOWN {
            let now = self.bytes as f64 / self.replies as f64;
            let is_other = |known: f64| now > BYTES_STEP * known || now * BYTES_STEP < known;
            if self.known.is_none_or(is_other) {
                self.known = Some(now.max(1.0));
            }
            (self.bytes, self.replies) = (0, 0);
        }
        match self.known {
            Some(known) => (bytes as f64 / known).round() as u64,
            None => replies,
        }
    }
}
