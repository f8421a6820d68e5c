//! The state shared by a section's handles, and the ways into it.

use std::sync::{Arc, OnceLock, PoisonError};
use std::thread::JoinHandle;

use hearth_sys::clock::Stamps;

use super::builder::SectionOptions;
use super::held::Held;
use super::pilot::{self, Pilot};
use super::tally::{Statistics, Tally};
use crate::ending::Ending;
use crate::inside::{Inside, is_inside};
use crate::lock::{AnyLock, Lock, LockPlace};
use crate::mailbox::{Mailbox, Mailboxes};
use crate::request::RequestSlot;
use crate::thread;
use crate::{CallError, Way};
#[cfg(feature = "research")]
use crate::{Queue, ring::Ring};
use hearth_atomics::{AtomicU32, AtomicU64, Guarded, Ordering};
use hearth_sys::futex::Word;
use hearth_sys::membarrier::{heavy_fence, light_fence};

// ---- the bits of `control` ----------------------------------------------------------------------

/// The way, in two bits.
pub(super) const WAY: u32 = 0b11;
/// Mailboxes have or may have requests: callers check whether their own are done.
pub(super) const QUEUED: u32 = 1 << 2;
/// No more requests are served.
pub(super) const DEAD: u32 = 1 << 3;
/// No more calls are accepted: the last handle is gone, or the section was closed.
pub(super) const CLOSED: u32 = 1 << 4;
pub(super) const POISONED: u32 = 1 << 5;
/// The proprietor sleeps on `control`.
pub(super) const ASLEEP: u32 = 1 << 6;
/// The controller chooses the way.
pub(super) const AUTO: u32 = 1 << 7;
/// The proprietor is not on the core asked for.
pub(super) const ASTRAY: u32 = 1 << 8;
/// Closed while there are handles: the end is told. If only the last handle goes, it is not: the
/// data goes too, and who waits for a part of it learns of that from the part.
pub(super) const ENDING: u32 = 1 << 9;
/// Bits that the shortest way in does not handle.
const UNUSUAL: u32 = WAY | QUEUED | DEAD | CLOSED | POISONED;

/// A section's state.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `control` | threads that change the way, close or wake; the proprietor | all, at each call |
/// | `waiters` | a waiter for the lock, before and after; never the proprietor | the proprietor |
/// | `handles` | a thread that clones or drops one | a thread that drops one |
/// | `mailboxes`, `proprietor` | the first thread that needs them | all |
/// | `ending` | see there | |
/// | `ring` | see there | |
/// | `lock` | see there | |
/// | `tally`, `pilot`, `data` | the holder of `lock` | the holder of `lock` |
///
/// Invariant: only the holder of the lock touches the data and moves a mailbox's head, whatever the
/// way. So the way may change at any moment: a thread that still takes the old way waits for the
/// same lock, or makes its request in a mailbox that the proprietor never ceases to serve.
#[repr(C)]
pub(super) struct Shared<T> {
    /// Read by all and rarely written: on lines without those that each call writes.
    pub(super) front: Front,
    pub(super) waiters: Waiters,
    pub(super) back: Back<T>,
}

#[repr(C, align(128))]
pub(super) struct Front {
    pub(super) control: Word,
    pub(super) options: SectionOptions,
    pub(super) mailboxes: OnceLock<Mailboxes>,
    #[cfg(feature = "research")]
    pub(super) ring: Option<Ring>,
    pub(super) stamps: Stamps,
    pub(super) handles: AtomicU64,
    pub(super) proprietor: std::sync::Mutex<Option<JoinHandle<()>>>,
    pub(super) ending: Arc<Ending>,
}

/// Number of threads that wait for the lock. On lines of its own: a waiter that writes it disturbs
/// neither the holder nor threads that only read `front`.
#[repr(align(128))]
pub(super) struct Waiters(AtomicU32);

/// The lock, the counts and the beginning of the data: often the only line that a call under the
/// lock moves.
#[repr(C, align(128))]
pub(super) struct Back<T> {
    pub(super) lock: AnyLock,
    pub(super) tally: Guarded<Tally>,
    pub(super) pilot: Guarded<Option<Box<Pilot>>>,
    pub(super) data: Guarded<T>,
}

/// The control word with another way. A thread sees QUEUED once it has made a request because both
/// are in one word.
pub(super) fn with_way(control: u32, way: Way) -> u32 {
    let queued = if way == Way::Lock { 0 } else { QUEUED };
    control & !WAY | way as u32 | queued
}

/// The machine's fastest steady clock, asked once.
fn stamps() -> Stamps {
    static STAMPS: OnceLock<Stamps> = OnceLock::new();
    *STAMPS.get_or_init(|| Stamps::here(&hearth_sys::Linux))
}

impl<T> Shared<T> {
    pub(super) fn new(data: T, options: SectionOptions, way: Way) -> Shared<T> {
        hearth_sys::membarrier::prepare_fences();
        #[cfg(feature = "research")]
        // Room for one message of each client at once, and as many posted.
        let ring = match options.queue {
            Queue::Lines => None,
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
                #[cfg(feature = "research")]
                ring,
                stamps: stamps(),
                handles: AtomicU64::new(1),
                proprietor: std::sync::Mutex::new(None),
                ending: Arc::new(Ending::new()),
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
        // Relaxed, here and elsewhere: any way that is read is safe.
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
        #[cfg(feature = "research")]
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

    /// Checks that calls are accepted.
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
        let (place, inside) = (LockPlace::new(), Inside::new(self.address()));
        // SAFETY: both stay in this frame, which the guard does not leave; the caller is not
        // inside.
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
        // SAFETY: the mailbox is the calling thread's, and the slot free; the thread that serves it
        // does so with this section's data.
        unsafe { slot.ask_and_wait::<T, R, F>(key, closure, wait) }.ok_or_else(|| self.refusal())
    }

    /// Makes a request, then either finds it served by the holder of the lock, or takes the lock
    /// and serves all.
    fn call_combined<R, F>(&self, mailbox: &Mailbox, key: u64, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let (place, inside) = (LockPlace::new(), Inside::new(self.address()));
        // SAFETY: both stay in this frame, which the guard does not leave; the caller is not
        // inside.
        if let Some(mut held) = unsafe { self.try_acquire(&place, &inside) } {
            let result = held.prepare().map(|()| held.run(closure));
            held.serve_others();
            return result;
        }
        let slot = self.free_slot(mailbox);
        let wait = || {
            let mut held = None;
            self.front.options.wait.until(|| {
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
                // Its own is among those, unless so many others came that the rounds ended first.
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
        #[cfg(feature = "research")]
        if let Some(ring) = &self.front.ring {
            self.post_by_ring(ring, closure);
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

    /// The client's next line, once its last request there is answered.
    #[inline]
    fn free_slot<'m>(&self, mailbox: &'m Mailbox) -> &'m RequestSlot {
        let slot = mailbox.next();
        if slot.is_asked() {
            self.has_asked();
            slot.await_answer(self.front.options.wait);
        }
        mailbox.advance();
        slot
    }

    /// Ensures that the request just made will be served.
    #[inline]
    pub(super) fn has_asked(&self) {
        // Pairs with the heavy half in `sleep_until_asked` and `die`: either they see the request,
        // or this thread sees that no thread looks.
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

    /// True if there is a request. For threads without the lock.
    pub(super) fn has_open_request(&self) -> bool {
        self.has_letter() || self.mailboxes().has_open()
    }

    /// True if there is a request. For the holder of the lock.
    #[inline]
    pub(super) fn has_request(&self) -> bool {
        self.has_letter() || self.mailboxes().has_request()
    }

    pub(super) fn refusal(&self) -> CallError {
        match self.front.control.load(Ordering::Acquire) & POISONED {
            0 => CallError::OwnerDied,
            _ => CallError::Poisoned,
        }
    }

    // ---- the lock -----------------------------------------------------------------------------

    /// # Safety
    /// `place` and `inside` stay where they are until the guard is gone, and are used for nothing
    /// else. The calling thread is not inside of this section.
    #[inline]
    pub(super) unsafe fn acquire<'a>(
        &'a self,
        place: &'a LockPlace,
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
    unsafe fn acquire_slow<'a>(&'a self, place: &'a LockPlace, inside: &'a Inside) -> Held<'a, T> {
        let begin = self.front.stamps.ticks();
        let waiters = &self.waiters.0;
        // The proprietor keeps the lock while it looks for requests, and reads this count. Relaxed,
        // here and below: it looks again and again, and the count orders nothing.
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
        place: &'a LockPlace,
        inside: &'a Inside,
    ) -> Option<Held<'a, T>> {
        // SAFETY: as the caller promises.
        unsafe { self.back.lock.try_acquire(place) }.then(|| Held::new(self, place, inside))
    }

    /// Takes the lock for the proprietor, which does not count among the waiters.
    ///
    /// # Safety
    /// As for `acquire`.
    pub(super) unsafe fn acquire_as_proprietor<'a>(
        &'a self,
        place: &'a LockPlace,
        inside: &'a Inside,
    ) -> Held<'a, T> {
        // SAFETY: as the caller promises.
        unsafe { self.back.lock.acquire(place, self.front.options.wait) };
        Held::new(self, place, inside)
    }

    /// True if a thread other than the proprietor waits for the lock. A hint, as a newcomer may not
    /// be counted yet.
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

    /// Sleeps, as the proprietor, until there is a request or another change.
    pub(super) fn sleep_until_asked(&self) {
        let control = &self.front.control;
        let before = control.fetch_or(ASLEEP, Ordering::Relaxed);
        heavy_fence();
        if before & CLOSED == 0 && !self.has_open_request() {
            control.wait(before | ASLEEP);
        }
        control.fetch_and(!ASLEEP, Ordering::Relaxed);
    }

    /// Takes the handle of the proprietor's thread, to join it.
    ///
    /// # Errors
    /// The calling thread is the proprietor.
    pub(super) fn take_proprietor(&self) -> Result<Option<JoinHandle<()>>, ()> {
        let proprietor = self.front.proprietor.lock();
        let mut proprietor = proprietor.unwrap_or_else(PoisonError::into_inner);
        match &*proprietor {
            Some(thread) if thread.thread().id() == std::thread::current().id() => Err(()),
            _ => Ok(proprietor.take()),
        }
    }

    /// Accepts no more calls.
    pub(super) fn close(&self) {
        self.front.control.fetch_or(CLOSED, Ordering::AcqRel);
        self.wake_proprietor();
    }

    /// Accepts no more calls, and tells the end: at once, or, if there is a proprietor, when that
    /// has served what was asked before.
    pub(super) fn end(&self) {
        // Before the proprietor can see that it is closed.
        self.front.control.fetch_or(ENDING, Ordering::Relaxed);
        self.close();
        let proprietor = self.front.proprietor.lock();
        // A proprietor that starts later has nothing to serve.
        if proprietor.unwrap_or_else(PoisonError::into_inner).is_none() {
            self.front.ending.come();
        }
    }

    /// Ends all serving: present and later requests are refused.
    pub(super) fn die(&self) {
        self.front.control.fetch_or(DEAD, Ordering::Release);
        heavy_fence();
        self.refuse_all();
    }

    fn refuse_all(&self) {
        if is_inside(self.address()) {
            return;
        }
        let (place, inside) = (LockPlace::new(), Inside::new(self.address()));
        // SAFETY: both stay in this frame, which the guard does not leave; the caller is not
        // inside.
        let held = unsafe { self.acquire(&place, &inside) };
        held.refuse_all();
    }

    /// Runs something that needs the lock and not the data.
    fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        let (place, inside) = (LockPlace::new(), Inside::new(self.address()));
        // A thread inside holds the lock already.
        let _held = (!is_inside(self.address())).then(|| {
            // SAFETY: both stay in this frame, which the guard does not leave; the caller is not
            // inside.
            unsafe { self.acquire(&place, &inside) }
        });
        work()
    }

    pub(super) fn statistics(&self) -> Statistics {
        // SAFETY: the lock is held.
        let tally = self.aside(|| unsafe { self.back.tally.with_mut(|tally| *tally) });
        tally.told(self.way())
    }

    /// Has the controller choose the way, beginning with the present one.
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

    /// The controller's reasons, if it chooses the way.
    pub(super) fn pilot_explains(&self) -> Option<String> {
        if self.front.control.load(Ordering::Relaxed) & AUTO == 0 {
            // It has measured before, but a mode was set since.
            return None;
        }
        // SAFETY: the lock is held.
        self.aside(|| unsafe {
            let pilot = &self.back.pilot;
            pilot.with_mut(|pilot| pilot.as_ref().map(|pilot| pilot.explain()))
        })
    }

    pub(super) fn set_way(&self, way: Way) {
        // The order of the changes does not matter: every way is safe at any time.
        let change = |control| Some(with_way(control & !AUTO, way));
        let _ = self
            .front
            .control
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        self.wake_proprietor();
    }

    pub(super) fn into_data(self) -> T {
        self.back.data.into_inner()
    }
}
