//! A section that the calling thread holds, and the operations then possible.

use super::pilot;
use super::shared::{AUTO, POISONED, QUEUED, Shared};
use super::tally::{SAMPLE_EVERY, Tally};
use crate::inside::Inside;
use crate::lock::{Lock, LockPlace};
use crate::mailbox::Mailbox;
use crate::request::{DONE, RequestSlot};
use crate::thread;
use crate::{CallError, Drain, Order};
use hearth_atomics::Ordering;

/// Exclusive access to the section until dropped.
pub(super) struct Held<'a, T> {
    pub(super) shared: &'a Shared<T>,
    place: &'a LockPlace,
    inside: &'a Inside,
    /// A closure has begun and not returned.
    is_running: bool,
}

impl<'a, T> Held<'a, T> {
    #[inline]
    pub(super) fn new(
        shared: &'a Shared<T>,
        place: &'a LockPlace,
        inside: &'a Inside,
    ) -> Held<'a, T> {
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

    /// Counts a call. True if it is to be timed.
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

    /// Ends a timed call: the controller checks whether to decide.
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
    /// The slot is ASKED, and only the caller serves it.
    #[inline]
    pub(super) unsafe fn serve(&self, slot: &RequestSlot) {
        // SAFETY: as the caller promises; the lock is held.
        self.serve_with(|data| unsafe {
            slot.serve(data, |outcome| self.has_ended(data, outcome))
        });
    }

    /// Serves a request with the data, or refuses it.
    #[inline]
    pub(super) fn serve_with(&self, serve: impl FnOnce(*mut ())) {
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

    /// Records the outcome before the client learns of it: a client that sees the panic finds the
    /// section poisoned, and may clear that.
    #[inline]
    pub(super) fn has_ended(&self, data: *mut (), outcome: u32) {
        if outcome != DONE && !data.is_null() {
            self.has_panicked();
        }
    }

    /// Refuses all requests.
    pub(super) fn refuse_all(&self) {
        self.refuse_letters();
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

    /// Serves the caller's earlier requests, before its own closure.
    ///
    /// # Errors
    /// The section is poisoned: by an earlier holder of the lock, or by those requests.
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

    /// Serves the calling thread's earlier requests, which precede what it does under the lock.
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

    /// Serves all mailboxes, for a thread that is ending and has given back its number: its own
    /// mailbox is unknown. At most as many requests as a mailbox holds; later ones are not its own.
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
            // The client may have sent an earlier one another way.
            self.serve_letters();
        }
        mailbox.answered(1);
        // SAFETY: it is the first, and the lock is held.
        unsafe { self.serve(slot) };
        true
    }

    /// Serves everything once. Returns the number of requests.
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

    /// Records the calling thread as a caller. Only for timed calls and those that had to wait, so
    /// that most calls need not know their thread.
    pub(super) fn has_called(&self) {
        let number = thread::number().unwrap_or(0);
        self.count(|tally| tally.callers |= 1 << (number & 63));
    }

    /// Records the client of a mailbox as a caller.
    #[inline]
    pub(super) fn has_served(&self, index: usize) {
        self.count(|tally| tally.callers |= 1 << (index & 63));
    }

    /// Serves the requests of threads that found the lock held, for a limited number of rounds.
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
