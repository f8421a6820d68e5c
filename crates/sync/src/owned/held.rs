//! The section while a thread has it: what may be done then.

use super::inside::Inside;
use super::pilot;
use super::shared::{AUTO, DEAD, POISONED, QUEUED, Shared};
use super::tally::{SAMPLE_EVERY, Tally};
use crate::atomics::{Ordering, Word};
use crate::lock::{Lock, Place};
use crate::mailbox::Mailbox;
use crate::request::{DONE, Slot};
use crate::ring::{Received, Ring};
use crate::thread;
use crate::{CallError, Drain, Order};

/// The section is the calling thread's until this goes.
pub(super) struct Held<'a, T> {
    shared: &'a Shared<T>,
    place: &'a Place,
    inside: &'a Inside,
    /// A closure was begun under the guard, and has not come back.
    is_running: bool,
}

impl<'a, T> Held<'a, T> {
    #[inline]
    pub(super) fn new(shared: &'a Shared<T>, place: &'a Place, inside: &'a Inside) -> Held<'a, T> {
        inside.enter();
        Held {
            shared,
            place,
            inside,
            is_running: false,
        }
    }

    #[inline]
    pub(super) fn count<R>(&self, change: impl FnOnce(&mut Tally) -> R) -> R {
        // SAFETY: the lock is held.
        unsafe { self.shared.back.tally.with_mut(change) }
    }

    /// Counts a call. True if it is one to be timed.
    #[inline]
    fn begin(&self) -> bool {
        self.count(|tally| {
            tally.calls += 1;
            tally.calls.is_multiple_of(SAMPLE_EVERY)
        })
    }

    fn timed<R>(&self, run: impl FnOnce() -> R) -> R {
        let begin = self.shared.front.stamps.ticks();
        let result = run();
        let end = self.shared.front.stamps.ticks();
        self.count(|tally| {
            tally.samples += 1;
            tally.section_ticks += end.saturating_sub(begin);
        });
        if self.shared.front.control.load(Ordering::Relaxed) & AUTO != 0 {
            self.tell_pilot(end);
        }
        result
    }

    /// A timed call has ended: the controller looks whether it is time to decide.
    fn tell_pilot(&self, now: u64) {
        let back = &self.shared.back;
        // SAFETY: the lock is held, here and below.
        let decided = unsafe {
            back.pilot.with_mut(|pilot| {
                let pilot = pilot.as_mut()?;
                back.tally.with_mut(|tally| pilot.look(tally, now))
            })
        };
        if let Some(way) = decided {
            pilot::steer(self.shared, way);
        }
    }

    /// Runs the caller's own closure.
    #[inline]
    pub(super) fn run<R>(&mut self, closure: impl FnOnce(&mut T) -> R) -> R {
        let is_sample = self.begin();
        self.is_running = true;
        // SAFETY: the lock is held.
        let run = || unsafe { self.shared.back.data.with_mut(closure) };
        let result = if is_sample {
            self.has_called();
            self.timed(run)
        } else {
            run()
        };
        self.is_running = false;
        result
    }

    /// Serves a request that the caller has taken from its mailbox.
    ///
    /// # Safety
    /// The slot is ASKED, and nobody serves it but the caller.
    #[inline]
    pub(super) unsafe fn serve(&self, slot: &Slot) {
        // SAFETY: as the caller promises; the lock is held.
        self.serve_with(|data| unsafe {
            slot.serve(data, |outcome| self.has_ended(data, outcome))
        });
    }

    /// Has a request served with the data, or refused.
    #[inline]
    fn serve_with(&self, serve: impl FnOnce(*mut ())) {
        let shared = self.shared;
        let control = shared.front.control.load(Ordering::Relaxed);
        if control & POISONED != 0 {
            serve(std::ptr::null_mut());
            return;
        }
        let is_sample = self.begin();
        // SAFETY: the lock is held, so the data is this thread's.
        let run = || unsafe {
            let data = &shared.back.data;
            data.with_mut(|data| serve(std::ptr::from_mut(data).cast()))
        };
        if is_sample {
            self.timed(run);
        } else {
            run();
        }
    }

    /// Before the client is told: whoever has seen the panic finds the section poisoned, and may clear that.
    #[inline]
    fn has_ended(&self, data: *mut (), outcome: u32) {
        if outcome != DONE && !data.is_null() {
            self.has_panicked();
        }
    }

    /// Answers all that was asked with a refusal.
    pub(super) fn refuse_all(&self) {
        if let Some(ring) = &self.shared.front.ring {
            while !ring.is_empty() {
                // SAFETY: the lock is held, and whoever held it before has served what it took.
                let count = unsafe { ring.take(true) };
                drop(Letters {
                    ring,
                    control: &self.shared.front.control,
                    next: 0,
                    count,
                });
            }
        }
        for mailbox in self.shared.mailboxes().all() {
            while let Some(slot) = mailbox.first() {
                mailbox.answered(1);
                // SAFETY: ASKED, and the lock is held.
                unsafe { slot.serve(std::ptr::null_mut(), |_| ()) };
            }
        }
    }

    #[cold]
    fn has_panicked(&self) {
        self.count(|tally| tally.panics += 1);
        if self.shared.front.options.poison {
            self.shared
                .front
                .control
                .fetch_or(POISONED, Ordering::Release);
        }
    }

    /// What comes before the caller's own closure: its requests that are not served yet. An error if it is not to be
    /// run: who held the lock before may have poisoned the section, and so may those requests.
    #[inline]
    pub(super) fn prepare(&self) -> Result<(), CallError> {
        // Relaxed: with the lock comes what its holders wrote.
        if self.shared.front.control.load(Ordering::Relaxed) & (QUEUED | POISONED) == 0 {
            return Ok(());
        }
        self.prepare_slow()
    }

    fn prepare_slow(&self) -> Result<(), CallError> {
        self.serve_own();
        match self.shared.front.control.load(Ordering::Relaxed) & POISONED {
            0 => Ok(()),
            _ => Err(CallError::Poisoned),
        }
    }

    /// The calling thread's own requests that are not served yet come before what it does under the lock.
    #[inline]
    pub(super) fn serve_own(&self) {
        if self.shared.front.control.load(Ordering::Relaxed) & QUEUED != 0 {
            self.serve_own_slow();
        }
    }

    fn serve_own_slow(&self) {
        while self.shared.has_letter() {
            self.serve_letters();
        }
        let Some(number) = thread::number() else {
            return self.serve_nameless();
        };
        let Some(mailbox) = self.shared.mailboxes().existing(number) else {
            return;
        };
        if mailbox.is_behind() {
            while self.serve_first(mailbox) {}
        }
    }

    /// For a thread that is ending and has given its number back: which mailbox was its own is not known any more, so
    /// all are served. As deep as a mailbox is; what comes meanwhile is not its own.
    #[cold]
    fn serve_nameless(&self) {
        for mailbox in self.shared.mailboxes().all() {
            for _ in 0..self.shared.front.options.depth {
                if !self.serve_first(mailbox) {
                    break;
                }
            }
        }
    }

    /// Serves the oldest request of a mailbox. False if there is none.
    #[inline]
    fn serve_first(&self, mailbox: &Mailbox) -> bool {
        let Some(slot) = mailbox.first() else {
            return false;
        };
        while self.shared.has_letter() {
            // Its client may have sent one before, in another way.
            self.serve_letters();
        }
        mailbox.answered(1);
        // SAFETY: it is the first, and the lock is held.
        unsafe { self.serve(slot) };
        true
    }

    /// Serves what is in the ring, as much as is taken at once. Says how many.
    fn serve_letters(&self) -> u64 {
        let Some(ring) = &self.shared.front.ring else {
            return 0;
        };
        let takes_all = self.shared.front.options.drain == Drain::All;
        // SAFETY: the lock is held, and whoever held it before has served what it took.
        let count = unsafe { ring.take(takes_all) };
        let mut letters = Letters {
            ring,
            control: &self.shared.front.control,
            next: 0,
            count,
        };
        while let Some(letter) = letters.next() {
            // SAFETY: with a letter comes the right to serve it; the lock is held.
            self.serve_with(|data| unsafe {
                letter.serve(data, |outcome| self.has_ended(data, outcome))
            });
        }
        count as u64
    }

    /// Goes once through all that was asked. Says how many requests it served.
    #[inline]
    pub(super) fn sweep(&self) -> u64 {
        let shared = self.shared;
        let mut served = if shared.has_letter() {
            self.serve_letters()
        } else {
            0
        };
        served += match shared.front.options.order {
            Order::Arrival => self.sweep_lines(),
            Order::Key => super::reorder::sweep(self, shared),
        };
        if served > 0 {
            self.count(|tally| tally.served += served);
        }
        served
    }

    #[inline]
    fn sweep_lines(&self) -> u64 {
        let options = &self.shared.front.options;
        let most = match options.drain {
            Drain::All => u64::from(options.depth),
            Drain::One => 1,
        };
        let mut served = 0;
        for (index, mailbox) in self.shared.mailboxes().all().enumerate() {
            let before = served;
            while served - before < most && self.serve_first(mailbox) {
                served += 1;
            }
            if served != before {
                self.has_served(index);
            }
        }
        served
    }

    /// Remembers that the calling thread has called. At timed calls and at those that had to wait, so that most
    /// calls need not know their thread.
    pub(super) fn has_called(&self) {
        let number = thread::number().unwrap_or(0);
        self.count(|tally| tally.callers |= 1 << (number & 63));
    }

    /// Remembers that the client of a mailbox has called.
    #[inline]
    pub(super) fn has_served(&self, index: usize) {
        self.count(|tally| tally.callers |= 1 << (index & 63));
    }

    /// Serves those who wait because the lock was held, for so many rounds at most.
    pub(super) fn serve_others(&self) {
        const ROUNDS: usize = 8;
        for _ in 0..ROUNDS {
            if self.sweep() == 0 {
                break;
            }
        }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_running {
            self.has_panicked();
        }
        self.inside.leave();
        // SAFETY: taken with this place when the guard was made.
        unsafe { self.shared.back.lock.release(self.place) };
    }
}

/// Letters that were taken out of the ring. Those that are not served when this goes are refused.
struct Letters<'a> {
    ring: &'a Ring,
    control: &'a Word,
    next: usize,
    count: usize,
}

impl Letters<'_> {
    fn next(&mut self) -> Option<Received> {
        if self.next == self.count {
            return None;
        }
        self.next += 1;
        // SAFETY: below the count, and each once; who makes this holds the section's lock.
        Some(unsafe { self.ring.taken(self.next - 1) })
    }
}

impl Drop for Letters<'_> {
    fn drop(&mut self) {
        if self.next < self.count {
            // Who is told that the owner has died finds that so.
            self.control.fetch_or(DEAD, Ordering::Release);
        }
        while let Some(letter) = self.next() {
            // SAFETY: without data there is nothing to touch.
            unsafe { letter.serve(std::ptr::null_mut(), |_| ()) };
        }
    }
}
