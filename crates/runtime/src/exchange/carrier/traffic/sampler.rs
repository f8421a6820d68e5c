//! A carrier's own sampler.

use std::cell::{Cell, RefCell};

use hearth_sys::clock;

use super::{MOST, NO_WORKER, Seen, Wait, publish};
use crate::abi::Component;
use crate::ground::choices::scramble;
use crate::recording;
use crate::seats::seat::seat_of;

/// Time between samples, roughly: one costs some hundred nanoseconds, so this is half a percent.
const EVERY_NS: u64 = 40_000;
/// Most runs from one sample to the next.
const GAP_MAX: u32 = 512;
/// Time between publications.
const PUBLISHED_EVERY_NS: u64 = 40_000_000;
/// Kinds of samples kept apart until publication; a power of two.
const KINDS: usize = 512;
/// Waits of a thread of its own per sample: waiting there costs microseconds.
const THREAD_GAP: u32 = 4;

/// A run that took longer may have waited for its core because of other programs: the next sampled
/// runs (as many as `CAREFUL` says) then also read the thread's own clock. That is a system call,
/// as costly as a short run.
const SUSPECT_NS: u64 = 20_000;
const CAREFUL: u32 = 64;

/// The start of a run.
#[derive(Clone, Copy)]
struct Watch {
    since: u64,
    /// By the thread's own clock, if read.
    of_thread: Option<u64>,
}

impl Watch {
    fn start(is_careful: bool) -> Watch {
        Watch {
            since: clock::steady_ns(),
            of_thread: is_careful.then(clock::thread_ns),
        }
    }

    /// Time from the start to `now`; by the thread's clock if read, which leaves out time that
    /// other programs took on its core.
    fn took(self, now: u64) -> u64 {
        let took = now.saturating_sub(self.since);
        match self.of_thread {
            // Another thread's clock, if this one was detached meanwhile.
            Some(before) => clock::thread_ns().saturating_sub(before).min(took),
            None => took,
        }
    }
}

/// A sampled run.
pub(crate) struct Glimpse {
    seen: Seen,
    watch: Watch,
    /// Number of runs that it stands for.
    weight: u64,
}

impl Glimpse {
    /// # Safety
    /// As for [`Sampler::begin`].
    unsafe fn new(
        component: *mut Component,
        home: u16,
        wait: Option<Wait>,
        weight: u32,
        is_careful: bool,
    ) -> Glimpse {
        // SAFETY: as the caller promises.
        let seat = unsafe { seat_of(component) };
        let weight = u64::from(weight);
        if let Some(wait) = &wait {
            recording::sampled(seat, wait.port, weight, wait.bytes);
        }
        let mut seen = Seen::new(seat, home, wait.as_ref());
        seen.runs = weight;
        if let Some(bytes) = wait.and_then(|wait| wait.bytes) {
            seen.bytes = weight * bytes as u64;
            seen.sized = weight;
        }
        Glimpse {
            seen,
            watch: Watch::start(is_careful),
            weight,
        }
    }
}

/// The purpose of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    None,
    /// Lengths of runs.
    Runs,
    /// Lengths of runs, and the traffic.
    Traffic,
}

/// A worker's sampler; used only by its own thread.
///
/// A sampled run ends when the next begins or the worker rests, so nothing needs checking at the
/// end of each run.
pub(crate) struct Sampler {
    interest: Interest,
    /// True if the program's run is watched: then samples include the sizes of values.
    is_watched: bool,
    /// The count of picks at which the sampler acts.
    at: Cell<u32>,
    /// The count at which the next run is sampled.
    next: Cell<u32>,
    /// Mean number of runs per sample.
    gap: Cell<u32>,
    /// Mean length of a run, in ns.
    mean_ns: Cell<u64>,
    /// Number of further samples that read the thread's own clock.
    careful: Cell<u32>,
    random: Cell<u64>,
    published: Cell<u64>,
    /// The run being sampled.
    glimpse: Cell<Option<Glimpse>>,
    table: RefCell<Table>,
}

impl Sampler {
    pub(crate) fn new(interest: Interest, seed: u64) -> Sampler {
        Sampler {
            interest,
            is_watched: recording::is_on(),
            at: Cell::new(1),
            next: Cell::new(1),
            gap: Cell::new(1),
            mean_ns: Cell::new(0),
            careful: Cell::new(CAREFUL),
            random: Cell::new(scramble(seed)),
            published: Cell::new(0),
            glimpse: Cell::new(None),
            table: RefCell::new(Table::new()),
        }
    }

    /// Whether the sampler acts at the run with this number.
    #[inline]
    pub(crate) fn is_due(&self, picks: u32) -> bool {
        self.at.get() == picks
    }

    /// Recent mean length of runs here, in ns; None without samples.
    pub(crate) fn mean_ns(&self) -> Option<u64> {
        (self.interest != Interest::None).then(|| self.mean_ns.get())
    }

    fn looks(&self) -> bool {
        self.interest != Interest::None || self.is_watched
    }

    fn chance(&self) -> u32 {
        let next = self.random.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random.set(next);
        scramble(next) as u32
    }

    /// Ends the sampled run, if there is one. True if the next run is to be sampled.
    pub(crate) fn ends_and_begins(&self) -> bool {
        if !self.looks() {
            // Due again after all numbers.
            return false;
        }
        self.end();
        let begins = self.at.get() == self.next.get();
        if !begins {
            self.at.set(self.next.get());
        }
        begins
    }

    /// Starts sampling a run. `look` tells the wait that ended before it, by a random number.
    ///
    /// # Safety
    /// The caller carries the component, and is about to resume it.
    pub(crate) unsafe fn begin(
        &self,
        component: *mut Component,
        home: usize,
        look: impl FnOnce(u32) -> Option<Wait>,
    ) {
        let gap = self.gap.get();
        // From 1 to twice the gap less one, hence the gap in the mean.
        let distance = 1 + self.chance() % (2 * gap - 1);
        let now = self.at.get();
        self.next.set(now.wrapping_add(distance));
        // Its end.
        self.at.set(now.wrapping_add(1));
        let home = u16::try_from(home).unwrap_or(NO_WORKER);
        let is_wanted = self.interest == Interest::Traffic || self.is_watched;
        let chance = self.chance();
        let wait = if is_wanted { look(chance) } else { None };
        let is_careful = self.careful.get() > 0;
        // SAFETY: as the caller promises.
        let glimpse = unsafe { Glimpse::new(component, home, wait, gap, is_careful) };
        self.glimpse.set(Some(glimpse));
    }

    /// Discards the sample: its run does not take place here.
    pub(crate) fn forget(&self) {
        self.glimpse.set(None);
    }

    fn end(&self) {
        let Some(glimpse) = self.glimpse.take() else {
            return;
        };
        let now = clock::steady_ns();
        let took = self.time_of(&glimpse, now);
        let mut seen = glimpse.seen;
        seen.busy_ns = glimpse.weight * took;
        let mean = (7 * self.mean_ns.get() + took) / 8;
        self.mean_ns.set(mean);
        let gap = EVERY_NS / mean.max(1);
        self.gap.set((gap as u32).clamp(1, GAP_MAX));
        if self.interest != Interest::Traffic {
            return;
        }
        let mut table = self.table.borrow_mut();
        table.add(seen);
        if table.is_full() || now.saturating_sub(self.published.get()) > PUBLISHED_EVERY_NS {
            self.published.set(now);
            table.publish();
        }
    }

    /// Length of a run that ends now. One that seems long but was not timed by the thread's clock
    /// counts as an average run.
    fn time_of(&self, glimpse: &Glimpse, now: u64) -> u64 {
        let took = glimpse.watch.took(now);
        let left = self.careful.get();
        if took >= SUSPECT_NS {
            self.careful.set(CAREFUL);
        } else {
            self.careful.set(left.saturating_sub(1));
        }
        match glimpse.watch.of_thread {
            None if took >= SUSPECT_NS => self.mean_ns.get().min(SUSPECT_NS),
            _ => took,
        }
    }

    /// Publishes the samples: the worker is about to sleep.
    pub(crate) fn publish(&self) {
        if self.interest == Interest::Traffic {
            self.table.borrow_mut().publish();
        }
    }

    /// Ends the last run: the worker has picked nothing, which does not count as a pick.
    #[inline]
    pub(crate) fn rest(&self) {
        if self.looks() {
            self.end();
        }
    }

    /// Delays the next sample by this many picks.
    pub(crate) fn put_off(&self, by: u32) {
        self.at.set(self.at.get().wrapping_add(by));
        self.next.set(self.next.get().wrapping_add(by));
    }
}

/// The samples since the last publication, by kind.
struct Table {
    /// 1 + the index in `seen`; 0 is free.
    slots: Vec<u16>,
    seen: Vec<Seen>,
}

impl Table {
    fn new() -> Table {
        Table {
            slots: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn add(&mut self, seen: Seen) {
        if self.slots.is_empty() {
            self.slots.resize(2 * KINDS, 0);
            self.seen.reserve(KINDS);
        }
        let channel = seen.end.map_or(0, |end| end.channel as u64);
        let partner = seen.partner.map_or(0, |end| end.channel as u64);
        let mut place = scramble(seen.who.id ^ scramble(channel ^ scramble(partner))) as usize;
        loop {
            place %= self.slots.len();
            match self.slots[place] {
                0 => {
                    self.seen.push(seen);
                    self.slots[place] = self.seen.len() as u16;
                    return;
                }
                taken => {
                    let known = &mut self.seen[usize::from(taken) - 1];
                    if known.is_alike(&seen) {
                        known.runs += seen.runs;
                        known.bytes += seen.bytes;
                        known.sized += seen.sized;
                        known.busy_ns += seen.busy_ns;
                        return;
                    }
                    place += 1;
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.seen.len() >= KINDS
    }

    fn publish(&mut self) {
        if !self.seen.is_empty() {
            publish(self.seen.drain(..));
            self.slots.fill(0);
        }
    }
}

/// The sampler of a component with a thread of its own.
pub(crate) struct ThreadSampler {
    /// Samples are published.
    publishes: bool,
    is_on: bool,
    /// Waits left until the next sample.
    left: u32,
    chance: u64,
}

impl ThreadSampler {
    pub(crate) fn new(publishes: bool, seed: u64) -> ThreadSampler {
        ThreadSampler {
            publishes,
            is_on: publishes || recording::is_on(),
            left: 1,
            chance: scramble(seed),
        }
    }

    /// Whether the next run is sampled.
    pub(crate) fn is_due(&mut self) -> bool {
        if !self.is_on {
            return false;
        }
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.chance = scramble(self.chance.wrapping_add(1));
        self.left = 1 + (self.chance >> 32) as u32 % (2 * THREAD_GAP - 1);
        true
    }

    /// Starts sampling a run. `look` tells the wait that ended before it, by a random number.
    ///
    /// # Safety
    /// The caller carries the component, and is about to resume it.
    pub(crate) unsafe fn begin(
        &self,
        component: *mut Component,
        look: impl FnOnce(u32) -> Option<Wait>,
    ) -> Glimpse {
        let wait = look(self.chance as u32);
        // SAFETY: as the caller promises.
        unsafe { Glimpse::new(component, NO_WORKER, wait, THREAD_GAP, true) }
    }

    /// Ends it.
    pub(crate) fn end(&self, glimpse: Glimpse) {
        if !self.publishes {
            return;
        }
        let took = glimpse.watch.took(clock::steady_ns());
        let mut seen = glimpse.seen;
        seen.busy_ns = glimpse.weight * took;
        publish(std::iter::once(seen));
    }
}

const _: () = assert!(KINDS.is_power_of_two() && 2 * KINDS < u16::MAX as usize && KINDS < MOST);
