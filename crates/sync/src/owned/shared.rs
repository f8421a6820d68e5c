//! What the handles of a section share, and the ways into it.

use std::sync::{OnceLock, PoisonError};
use std::thread::JoinHandle;

use hearth_sys::clock::Stamps;

use super::builder::Options;
use super::held::Held;
use super::inside::{Inside, is_inside};
use super::pilot::{self, Pilot};
use super::tally::{Statistics, Tally};
use crate::atomics::{
    AtomicU32, AtomicU64, Guarded, Ordering, Word, heavy_fence, light_fence, yield_now,
};
use crate::lock::{AnyLock, Lock, Place};
use crate::mailbox::{Mailbox, Mailboxes};
use crate::request::Slot;
use crate::ring::{self, Letter, Ring};
use crate::thread;
use crate::{CallError, Queue, Way};

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
/// Measuring chooses the way.
pub(super) const AUTO: u32 = 1 << 7;
/// The proprietor is not on the core that was asked for.
pub(super) const ASTRAY: u32 = 1 << 8;
/// What the shortest way in does not deal with.
const UNUSUAL: u32 = WAY | QUEUED | DEAD | CLOSED | POISONED;

/// The parts of a section.
///
/// | field | who writes | who reads |
/// |---|---|---|
/// | `control` | who changes the way, closes, wakes; the proprietor | all, at each call |
/// | `waiters` | who has to wait for the lock, before and after; never the proprietor | the proprietor |
/// | `handles` | who clones or drops one | who drops one |
/// | `mailboxes`, `proprietor` | who first needs them | all |
/// | `ring` | see there | |
/// | `lock` | see there | |
/// | `tally`, `pilot`, `data` | the holder of `lock` | the holder of `lock` |
///
/// Invariant: the data is touched, and a mailbox's head moved, by the holder of the lock only, whatever the way.
/// So the way may change at any moment: who still takes the old one waits for the same lock, or asks in
/// a mailbox that the proprietor never ceases to serve.
#[repr(C)]
pub(super) struct Shared<T> {
    /// Read by all and seldom written: on lines without those that each call writes.
    pub(super) front: Front,
    pub(super) waiters: Waiters,
    pub(super) back: Back<T>,
}

#[repr(C, align(128))]
pub(super) struct Front {
    pub(super) control: Word,
    pub(super) options: Options,
    pub(super) mailboxes: OnceLock<Mailboxes>,
    pub(super) ring: Option<Ring>,
    pub(super) stamps: Stamps,
    pub(super) handles: AtomicU64,
    pub(super) proprietor: std::sync::Mutex<Option<JoinHandle<()>>>,
}

/// How many wait for the lock. On lines of its own: who waits writes it, and disturbs neither the holder nor those who
/// only read `front`.
#[repr(align(128))]
pub(super) struct Waiters(AtomicU32);

/// The lock, the counts and the beginning of the data: often the only line that a call under the lock moves.
#[repr(C, align(128))]
pub(super) struct Back<T> {
    pub(super) lock: AnyLock,
    pub(super) tally: Guarded<Tally>,
    pub(super) pilot: Guarded<Option<Box<Pilot>>>,
    pub(super) data: Guarded<T>,
}

/// The control word with another way. That a thread sees QUEUED once it has asked follows from both being in
/// one word.
pub(super) fn with_way(control: u32, way: Way) -> u32 {
    let queued = if way == Way::Lock { 0 } else { QUEUED };
    control & !WAY | way as u32 | queued
}

/// This machine's fastest steady clock, asked once.
fn stamps() -> Stamps {
    static STAMPS: OnceLock<Stamps> = OnceLock::new();
    *STAMPS.get_or_init(|| Stamps::here(&hearth_sys::Linux))
}

impl<T> Shared<T> {
    pub(super) fn new(data: T, options: Options, way: Way) -> Shared<T> {
        crate::atomics::prepare_fences();
        let ring = match options.queue {
            Queue::Lines => None,
            // One message of each client at once, and as many posted.
            Queue::Ring(copying) => Some(Ring::new(2 * options.clients, copying)),
        };
        Shared {
            back: Back {
                lock: AnyLock::new(options.lock),
                tally: Guarded::new(Tally::default()),
                pilot: Guarded::new(None),
                data: Guarded::new(data),
            },
            waiters: Waiters(AtomicU32::new(0)),
            front: Front {
                control: Word::new(with_way(0, way)),
                options,
                mailboxes: OnceLock::new(),
                ring,
                stamps: stamps(),
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
            return self.call_locked(closure);
        }
        self.call_unusual(control, key, closure)
    }

    fn call_unusual<R, F>(&self, control: u32, key: u64, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        self.admit(control)?;
        if control & WAY == Way::Message as u32
            && let Some(ring) = &self.front.ring
        {
            return self.call_by_ring(ring, closure);
        }
        let mailbox = match (Way::of_bits(control & WAY), thread::number()) {
            (Way::Lock, _) | (_, None) => None,
            (_, Some(number)) => self.mailboxes().of(number),
        };
        match mailbox {
            None => self.call_locked(closure),
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
    fn call_locked<R>(&self, closure: impl FnOnce(&mut T) -> R) -> Result<R, CallError> {
        let (place, inside) = (Place::new(), Inside::new(self.address()));
        // SAFETY: both stay in this frame, which the guard does not leave; the caller is not inside.
        let mut held = unsafe { self.acquire(&place, &inside) };
        held.prepare()?;
        Ok(held.run(closure))
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

    fn call_by_ring<R, F>(&self, ring: &Ring, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let send = |letter| self.send(ring, letter);
        // SAFETY: whoever receives serves each letter once, with this section's data.
        unsafe { ring::send_and_wait::<T, R, F>(closure, self.front.options.wait, send) }
            .ok_or_else(|| self.refusal())
    }

    /// Puts a letter into the ring, and waits for room.
    fn send(&self, ring: &Ring, letter: *mut Letter) {
        // SAFETY: its sender waits for the answer, or it is one that nobody waits for.
        while !unsafe { ring.put(letter) } {
            self.has_asked();
            yield_now();
        }
        self.has_asked();
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
            let result = held.prepare().map(|()| held.run(closure));
            held.serve_others();
            return result;
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
        if let Some(ring) = &self.front.ring {
            // SAFETY: as in `call_by_ring`.
            unsafe { ring::send_and_go::<T, F>(closure, |letter| self.send(ring, letter)) };
            return Ok(());
        }
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

    /// Has anybody asked? For who does not hold the lock.
    pub(super) fn has_open_request(&self) -> bool {
        self.has_letter() || self.mailboxes().has_open()
    }

    /// Has anybody asked? For the holder of the lock.
    #[inline]
    pub(super) fn has_request(&self) -> bool {
        self.has_letter() || self.mailboxes().has_request()
    }

    #[inline]
    pub(super) fn has_letter(&self) -> bool {
        self.front
            .ring
            .as_ref()
            .is_some_and(|ring| !ring.is_empty())
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
        let waiters = &self.waiters.0;
        // The proprietor keeps the lock while it looks for requests, and looks at this. Relaxed, here and below: it
        // looks again and again, and the count orders nothing.
        waiters.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.back.lock.acquire(place, self.front.options.wait) };
        waiters.fetch_sub(1, Ordering::Relaxed);
        let waited = self.front.stamps.ticks().saturating_sub(begin);
        let held = Held::new(self, place, inside);
        held.count(|tally| {
            tally.contended += 1;
            tally.wait_ticks += waited;
        });
        held.has_called();
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

    /// For the proprietor, which is nobody that the lock is to be left to, and no caller that had to wait.
    ///
    /// # Safety
    /// As for `acquire`.
    pub(super) unsafe fn acquire_as_proprietor<'a>(
        &'a self,
        place: &'a Place,
        inside: &'a Inside,
    ) -> Held<'a, T> {
        // SAFETY: as the caller promises.
        unsafe { self.back.lock.acquire(place, self.front.options.wait) };
        Held::new(self, place, inside)
    }

    /// Does anybody but the proprietor wait for the lock? A hint, as who comes may not have said so yet.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.waiters.0.load(Ordering::Relaxed) != 0
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> u32 {
        self.waiters.0.load(Ordering::Relaxed)
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
        if before & CLOSED == 0 && !self.has_open_request() {
            control.wait(before | ASLEEP);
        }
        control.fetch_and(!ASLEEP, Ordering::Relaxed);
    }

    /// The proprietor's thread, to be waited for, if there is one. An error to that thread itself.
    pub(super) fn take_proprietor(&self) -> Result<Option<JoinHandle<()>>, ()> {
        let proprietor = self.front.proprietor.lock();
        let mut proprietor = proprietor.unwrap_or_else(PoisonError::into_inner);
        match &*proprietor {
            Some(thread) if thread.thread().id() == std::thread::current().id() => Err(()),
            _ => Ok(proprietor.take()),
        }
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
        held.refuse_all();
    }

    /// Runs something that needs the lock and not the data.
    fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        let (place, inside) = (Place::new(), Inside::new(self.address()));
        // Who is inside holds the lock already.
        let _held = (!is_inside(self.address())).then(|| {
            // SAFETY: both stay in this frame, which the guard does not leave; the caller is not inside.
            unsafe { self.acquire(&place, &inside) }
        });
        work()
    }

    pub(super) fn statistics(&self) -> Statistics {
        // SAFETY: the lock is held.
        let tally = self.aside(|| unsafe { self.back.tally.with_mut(|tally| *tally) });
        tally.told(self.way())
    }

    /// Lets measuring choose the way from now on, from the way taken now.
    pub(super) fn engage_pilot(&self) {
        let now = self.front.stamps.ticks();
        self.aside(|| {
            // SAFETY: the lock is held.
            let new = unsafe { self.back.tally.with_mut(|tally| Pilot::new(tally, now)) };
            // SAFETY: the lock is held.
            unsafe {
                self.back
                    .pilot
                    .with_mut(|pilot| *pilot = Some(Box::new(new)))
            };
        });
        self.front.control.fetch_or(AUTO, Ordering::Relaxed);
        pilot::steer(self, Way::Lock);
    }

    /// Why the way is what it is, if measuring chooses it.
    pub(super) fn pilot_explains(&self) -> Option<String> {
        if self.front.control.load(Ordering::Relaxed) & AUTO == 0 {
            // It has measured before, and a mode was set since.
            return None;
        }
        // SAFETY: the lock is held.
        self.aside(|| unsafe {
            let pilot = &self.back.pilot;
            pilot.with_mut(|pilot| pilot.as_ref().map(|pilot| pilot.explain()))
        })
    }

    pub(super) fn set_way(&self, way: Way) {
        // What others see first does not matter: every way is safe at any time.
        let change = |control| Some(with_way(control & !AUTO, way));
        let _ = self
            .front
            .control
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        self.wake_proprietor();
    }

    pub(super) fn into_data(self) -> T {
        #[cfg(not(loom))]
        return self.back.data.into_inner();
        #[cfg(loom)]
        unimplemented!("models look at the data under the lock")
    }
}
