//! What the handles of a section share, and the ways into it.

use std::sync::OnceLock;
use std::thread::JoinHandle;

use hearth_sys::clock::Stamps;

use super::builder::Options;
use super::inside::{Inside, is_inside};
use super::tally::{SAMPLE_EVERY, Statistics, Tally};
use crate::atomics::{AtomicU64, Guarded, Ordering, Word, heavy_fence, light_fence};
use crate::lock::{AnyLock, Lock, Place};
use crate::mailbox::{Mailbox, Mailboxes};
use crate::request::{DONE, Slot};
use crate::thread;
use crate::{CallError, Drain, Way};

// ---- the bits of `control` ----------------------------------------------------------------------

/// The way, in two bits.
pub(super) const WAY: u32 = 0b11;
/// Requests were made in mailboxes, or may be: callers look whether their own are done.
pub(super) const QUEUED: u32 = 1 << 2;
/// No request is served any more.
pub(super) const DEAD: u32 = 1 << 3;
/// The last handle is gone, or somebody closed the section.
pub(super) const CLOSED: u32 = 1 << 4;
pub(super) const POISONED: u32 = 1 << 5;
/// The proprietor sleeps on `control`.
pub(super) const ASLEEP: u32 = 1 << 6;
/// Somebody waits for the lock while the proprietor keeps it.
pub(super) const WANTED: u32 = 1 << 7;
/// What the shortest way in does not deal with.
const UNUSUAL: u32 = WAY | QUEUED | DEAD | CLOSED | POISONED;

/// The parts of a section.
///
/// | field | who writes | who reads |
/// |---|---|---|
/// | `control` | who changes the way, closes, wakes, wants; the proprietor | all, at each call |
/// | `handles` | who clones or drops one | who drops one |
/// | `mailboxes`, `proprietor` | who first needs them | all |
/// | `lock` | see there | |
/// | `tally`, `data` | the holder of `lock` | the holder of `lock` |
///
/// Invariant: the data is touched, and a mailbox's head moved, by the holder of the lock only, whatever the way.
/// So the way may change at any moment: who still takes the old one waits for the same lock, or asks in
/// a mailbox that the proprietor never ceases to serve.
#[repr(C)]
pub(super) struct Shared<T> {
    /// Read by all and seldom written: on lines without those that each call writes.
    pub(super) front: Front,
    back: Back<T>,
}

#[repr(C, align(128))]
pub(super) struct Front {
    pub(super) control: Word,
    pub(super) options: Options,
    pub(super) mailboxes: OnceLock<Mailboxes>,
    pub(super) stamps: Stamps,
    pub(super) handles: AtomicU64,
    pub(super) proprietor: std::sync::Mutex<Option<JoinHandle<()>>>,
}

/// The lock, the counts and the beginning of the data: often the only line that a call under the lock moves.
#[repr(C, align(128))]
struct Back<T> {
    lock: AnyLock,
    tally: Guarded<Tally>,
    data: Guarded<T>,
}

impl<T> Shared<T> {
    pub(super) fn new(data: T, options: Options, way: Way) -> Shared<T> {
        crate::atomics::prepare_fences();
        Shared {
            back: Back {
                lock: AnyLock::new(options.lock),
                tally: Guarded::new(Tally::default()),
                data: Guarded::new(data),
            },
            front: Front {
                control: Word::new(way as u32 | if way == Way::Lock { 0 } else { QUEUED }),
                options,
                mailboxes: OnceLock::new(),
                stamps: Stamps::here(&hearth_sys::Linux),
                handles: AtomicU64::new(1),
                proprietor: std::sync::Mutex::new(None),
            },
        }
    }

    pub(super) fn way(&self) -> Way {
        Way::of_bits(self.front.control.load(Ordering::Relaxed) & WAY)
    }

    fn address(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }

    pub(super) fn mailboxes(&self) -> &Mailboxes {
        let options = &self.front.options;
        self.front
            .mailboxes
            .get_or_init(|| Mailboxes::new(options.clients, options.depth))
    }

    // ---- calls --------------------------------------------------------------------------------

    #[inline]
    pub(super) fn call<R, F>(&self, key: u64, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        if is_inside(self.address()) {
            return Err(CallError::Reentrant);
        }
        // Relaxed, here and elsewhere: whatever way is read is safe.
        let control = self.front.control.load(Ordering::Relaxed);
        if control & UNUSUAL == 0 {
            return Ok(self.call_locked(closure));
        }
        self.call_unusual(control, key, closure)
    }

    fn call_unusual<R, F>(&self, control: u32, key: u64, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        self.admit(control)?;
        let mailbox = match (Way::of_bits(control & WAY), thread::number()) {
            (Way::Lock, _) | (_, None) => None,
            (_, Some(number)) => self.mailboxes().of(number),
        };
        match mailbox {
            None => Ok(self.call_locked(closure)),
            Some(mailbox) if control & WAY == Way::Message as u32 => {
                self.call_by_message(mailbox, key, closure)
            }
            Some(mailbox) => self.call_combined(mailbox, key, closure),
        }
    }

    /// Is a call let in at all?
    fn admit(&self, control: u32) -> Result<(), CallError> {
        if control & (DEAD | CLOSED) != 0 {
            return Err(CallError::OwnerDied);
        }
        if control & POISONED != 0 {
            return Err(CallError::Poisoned);
        }
        Ok(())
    }

    #[inline]
    fn call_locked<R>(&self, closure: impl FnOnce(&mut T) -> R) -> R {
        let (place, inside) = (Place::new(), Inside::new(self.address()));
        // SAFETY: both stay in this frame, which the guard does not leave; the caller is not inside.
        let mut held = unsafe { self.acquire(&place, &inside) };
        held.serve_own();
        held.run(closure)
    }

    fn call_by_message<R, F>(&self, mailbox: &Mailbox, key: u64, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let slot = self.free_slot(mailbox);
        let wait = || {
            self.has_asked();
            slot.await_answer(self.front.options.wait);
        };
        // SAFETY: the mailbox is the calling thread's, and the slot free; whoever serves it does so with
        // this section's data.
        unsafe { slot.ask_and_wait::<T, R, F>(key, closure, wait) }.ok_or_else(|| self.refusal())
    }

    /// Asks, and then either finds the request served by who has the lock, or takes the lock and serves all.
    fn call_combined<R, F>(&self, mailbox: &Mailbox, key: u64, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let (place, inside) = (Place::new(), Inside::new(self.address()));
        // SAFETY: both stay in this frame, which the guard does not leave; the caller is not inside.
        if let Some(mut held) = unsafe { self.try_acquire(&place, &inside) } {
            held.serve_own();
            let result = held.run(closure);
            held.serve_others();
            return Ok(result);
        }
        let slot = self.free_slot(mailbox);
        let wait = || {
            let mut held = None;
            self.front.options.wait.look(|| {
                !slot.is_asked() || {
                    // SAFETY: as above.
                    held = unsafe { self.try_acquire(&place, &inside) };
                    held.is_some()
                }
            });
            if held.is_none() && slot.is_asked() {
                // SAFETY: as above.
                held = Some(unsafe { self.acquire(&place, &inside) });
            }
            if let Some(held) = &mut held {
                held.serve_others();
                // Its own is among those; unless so many others came that the round ended before it.
                held.serve_own();
            }
        };
        // SAFETY: as in `call_by_message`.
        unsafe { slot.ask_and_wait::<T, R, F>(key, closure, wait) }.ok_or_else(|| self.refusal())
    }

    pub(super) fn post<F>(&self, key: u64, closure: F) -> Result<(), CallError>
    where
        F: FnOnce(&mut T) + Send + 'static,
    {
        if is_inside(self.address()) {
            return Err(CallError::Reentrant);
        }
        let control = self.front.control.load(Ordering::Relaxed);
        if control & WAY != Way::Message as u32 {
            return self.call(key, closure);
        }
        self.admit(control)?;
        let Some(mailbox) = thread::number().and_then(|number| self.mailboxes().of(number)) else {
            return self.call(key, closure);
        };
        let slot = self.free_slot(mailbox);
        // SAFETY: as in `call_by_message`.
        unsafe { slot.ask_and_go::<T, F>(key, closure) };
        self.has_asked();
        Ok(())
    }

    /// The client's next line, when its last request there is answered.
    #[inline]
    fn free_slot<'m>(&self, mailbox: &'m Mailbox) -> &'m Slot {
        let slot = mailbox.next();
        if slot.is_asked() {
            self.has_asked();
            slot.await_answer(self.front.options.wait);
        }
        mailbox.advance();
        slot
    }

    /// Sees to it that somebody serves what the calling thread has just asked.
    #[inline]
    fn has_asked(&self) {
        // With the heavy half in `falls_asleep` and `refuse_all`: either they see the request, or this thread
        // sees that nobody looks.
        light_fence();
        if self.front.control.load(Ordering::Relaxed) & (ASLEEP | DEAD) != 0 {
            self.has_asked_slow();
        }
    }

    #[cold]
    fn has_asked_slow(&self) {
        self.wake_proprietor();
        if self.front.control.load(Ordering::Relaxed) & DEAD != 0 {
            self.refuse_all();
        }
    }

    fn refusal(&self) -> CallError {
        match self.front.control.load(Ordering::Acquire) & POISONED {
            0 => CallError::OwnerDied,
            _ => CallError::Poisoned,
        }
    }

    // ---- the lock -----------------------------------------------------------------------------

    /// # Safety
    /// `place` and `inside` stay where they are until the guard is gone, and are used for nothing else. The
    /// calling thread is not inside of this section.
    #[inline]
    pub(super) unsafe fn acquire<'a>(
        &'a self,
        place: &'a Place,
        inside: &'a Inside,
    ) -> Held<'a, T> {
        // SAFETY: as the caller promises.
        if unsafe { self.back.lock.try_acquire(place) } {
            return Held::new(self, place, inside);
        }
        // SAFETY: as the caller promises.
        unsafe { self.acquire_slow(place, inside) }
    }

    /// # Safety
    /// As for `acquire`.
    #[cold]
    unsafe fn acquire_slow<'a>(&'a self, place: &'a Place, inside: &'a Inside) -> Held<'a, T> {
        let begin = self.front.stamps.ticks();
        let control = &self.front.control;
        if control.load(Ordering::Relaxed) & (WAY | WANTED) == Way::Message as u32 {
            // The proprietor keeps the lock while it looks for requests, and looks at this.
            control.fetch_or(WANTED, Ordering::Relaxed);
        }
        // SAFETY: as the caller promises.
        unsafe { self.back.lock.acquire(place, self.front.options.wait) };
        let waited = self.front.stamps.ticks().saturating_sub(begin);
        let held = Held::new(self, place, inside);
        held.count(|tally| {
            tally.contended += 1;
            tally.wait_ticks += waited;
        });
        held
    }

    /// # Safety
    /// As for `acquire`.
    #[inline]
    unsafe fn try_acquire<'a>(
        &'a self,
        place: &'a Place,
        inside: &'a Inside,
    ) -> Option<Held<'a, T>> {
        // SAFETY: as the caller promises.
        unsafe { self.back.lock.try_acquire(place) }.then(|| Held::new(self, place, inside))
    }

    // ---- the proprietor's sleep and end -------------------------------------------------------

    pub(super) fn wake_proprietor(&self) {
        let control = &self.front.control;
        if control.fetch_and(!ASLEEP, Ordering::AcqRel) & ASLEEP != 0 {
            // SAFETY: the section outlives this call; only the proprietor sleeps there.
            unsafe { Word::wake_one(&raw const self.front.control) };
        }
    }

    /// The proprietor sleeps until somebody asks, or something else has changed.
    pub(super) fn sleep_until_asked(&self) {
        let control = &self.front.control;
        let before = control.fetch_or(ASLEEP, Ordering::Relaxed);
        heavy_fence();
        if before & CLOSED == 0 && !self.mailboxes().has_request() {
            control.wait(before | ASLEEP);
        }
        control.fetch_and(!ASLEEP, Ordering::Relaxed);
    }

    /// Nobody serves any more: whoever has asked or asks is told.
    pub(super) fn die(&self) {
        self.front.control.fetch_or(DEAD, Ordering::Release);
        heavy_fence();
        self.refuse_all();
    }

    fn refuse_all(&self) {
        if is_inside(self.address()) {
            return;
        }
        let (place, inside) = (Place::new(), Inside::new(self.address()));
        // SAFETY: both stay in this frame, which the guard does not leave; the caller is not inside.
        let held = unsafe { self.acquire(&place, &inside) };
        for mailbox in self.mailboxes().all() {
            while let Some(slot) = mailbox.first() {
                mailbox.answered(1);
                // SAFETY: ASKED, and the lock is held.
                unsafe { slot.serve(std::ptr::null_mut()) };
                held.count(|tally| tally.calls += 1);
            }
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        let (place, inside) = (Place::new(), Inside::new(self.address()));
        // Who is inside holds the lock already.
        let held = (!is_inside(self.address())).then(|| {
            // SAFETY: both stay in this frame, which the guard does not leave; the caller is not inside.
            unsafe { self.acquire(&place, &inside) }
        });
        // SAFETY: the lock is held, here or further out.
        let tally = unsafe { self.back.tally.with_mut(|tally| *tally) };
        drop(held);
        tally.told(self.way())
    }

    pub(super) fn into_data(self) -> T {
        #[cfg(not(loom))]
        return self.back.data.into_inner();
        #[cfg(loom)]
        unimplemented!("models look at the data under the lock")
    }
}

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
    fn new(shared: &'a Shared<T>, place: &'a Place, inside: &'a Inside) -> Held<'a, T> {
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
    fn begin(&self, caller: u64) -> bool {
        self.count(|tally| {
            tally.calls += 1;
            tally.callers |= caller;
            tally.calls.is_multiple_of(SAMPLE_EVERY)
        })
    }

    fn timed<R>(&self, run: impl FnOnce() -> R) -> R {
        let begin = self.shared.front.stamps.ticks();
        let result = run();
        let ticks = self.shared.front.stamps.ticks().saturating_sub(begin);
        self.count(|tally| {
            tally.samples += 1;
            tally.section_ticks += ticks;
        });
        result
    }

    /// Runs the caller's own closure.
    #[inline]
    fn run<R>(&mut self, closure: impl FnOnce(&mut T) -> R) -> R {
        let is_sample = self.begin(1 << (thread::number().unwrap_or(0) & 63));
        self.is_running = true;
        // SAFETY: the lock is held.
        let run = || unsafe { self.shared.back.data.with_mut(closure) };
        let result = if is_sample { self.timed(run) } else { run() };
        self.is_running = false;
        result
    }

    /// Serves a request, which is the first of its mailbox or is answered out of order by who knows that.
    ///
    /// # Safety
    /// The slot is ASKED, and nobody serves it but the caller.
    #[inline]
    pub(super) unsafe fn serve(&self, slot: &Slot) {
        let shared = self.shared;
        let control = shared.front.control.load(Ordering::Relaxed);
        if control & POISONED != 0 {
            // SAFETY: as the caller promises; the lock is held.
            unsafe { slot.serve(std::ptr::null_mut()) };
            return;
        }
        let is_sample = self.begin(0);
        // SAFETY: as the caller promises; the lock is held, so the data is this thread's.
        let run = || unsafe {
            let data = &shared.back.data;
            data.with_mut(|data| slot.serve(std::ptr::from_mut(data).cast()))
        };
        let outcome = if is_sample { self.timed(run) } else { run() };
        if outcome != DONE {
            self.has_panicked();
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

    /// The calling thread's own requests that are not served yet come before what it does under the lock.
    #[inline]
    fn serve_own(&self) {
        if self.shared.front.control.load(Ordering::Relaxed) & QUEUED != 0 {
            self.serve_own_slow();
        }
    }

    fn serve_own_slow(&self) {
        let Some(number) = thread::number() else {
            return;
        };
        let Some(mailbox) = self.shared.mailboxes().existing(number) else {
            return;
        };
        if mailbox.is_behind() {
            while self.serve_first(mailbox) {}
        }
    }

    /// Serves the oldest request of a mailbox. False if there is none.
    #[inline]
    fn serve_first(&self, mailbox: &Mailbox) -> bool {
        let Some(slot) = mailbox.first() else {
            return false;
        };
        mailbox.answered(1);
        // SAFETY: it is the first, and the lock is held.
        unsafe { self.serve(slot) };
        true
    }

    /// Goes once through all mailboxes. Says how many requests it served.
    #[inline]
    pub(super) fn sweep(&self) -> u64 {
        let mut served = 0;
        let takes_all = self.shared.front.options.drain == Drain::All;
        for (index, mailbox) in self.shared.mailboxes().all().enumerate() {
            let before = served;
            while self.serve_first(mailbox) {
                served += 1;
                if !takes_all || served - before >= u64::from(self.shared.front.options.depth) {
                    break;
                }
            }
            if served != before {
                self.count(|tally| tally.callers |= 1 << (index & 63));
            }
        }
        if served > 0 {
            self.count(|tally| tally.served += served);
        }
        served
    }

    /// Serves those who wait because the lock was held, for so many rounds at most.
    fn serve_others(&self) {
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
