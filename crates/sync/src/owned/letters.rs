//! Requests that go through the source's shared ring. For measuring: see [`Ring`].

use hearth_sys::futex::Word;
use hearth_sys::threading::yield_now;

use super::held::Held;
use super::shared::{DEAD, Shared};
use crate::ring::{self, Letter, Received, Ring};
use crate::{CallError, Drain};
use hearth_atomics::Ordering;

impl<T> Shared<T> {
    #[inline]
    pub(super) fn has_letter(&self) -> bool {
        self.front
            .ring
            .as_ref()
            .is_some_and(|ring| !ring.is_empty())
    }

    pub(super) fn call_by_ring<R, F>(&self, ring: &Ring, closure: F) -> Result<R, CallError>
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let send = |letter| self.send(ring, letter);
        // SAFETY: the receiver serves each letter once, with this section's data.
        unsafe { ring::send_and_wait::<T, R, F>(closure, self.front.options.wait, send) }
            .ok_or_else(|| self.refusal())
    }

    pub(super) fn post_by_ring<F>(&self, ring: &Ring, closure: F)
    where
        F: FnOnce(&mut T) + Send + 'static,
    {
        // SAFETY: as in `call_by_ring`.
        unsafe { ring::send_and_go::<T, F>(closure, |letter| self.send(ring, letter)) };
    }

    /// Puts a letter into the ring, and waits for room.
    fn send(&self, ring: &Ring, letter: *mut Letter) {
        // SAFETY: its sender waits for the answer, or nobody does.
        while !unsafe { ring.put(letter) } {
            self.has_asked();
            yield_now();
        }
        self.has_asked();
    }
}

impl<T> Held<'_, T> {
    /// Serves what is in the ring, as much as is taken at once. Returns how many letters that was.
    pub(super) fn serve_letters(&self) -> u64 {
        let takes_all = self.shared.front.options.drain == Drain::All;
        let Some(mut letters) = Letters::take(self.shared, takes_all) else {
            return 0;
        };
        while let Some(letter) = letters.next() {
            // SAFETY: with a letter comes the right to serve it; the lock is held.
            self.serve_with(|data| unsafe {
                letter.serve(data, |outcome| self.has_ended(data, outcome))
            });
        }
        letters.count as u64
    }

    /// Refuses every letter in the ring.
    pub(super) fn refuse_letters(&self) {
        while self.shared.has_letter() {
            drop(Letters::take(self.shared, true));
        }
    }
}

/// Letters taken out of the ring. Those not served when this is dropped are refused.
struct Letters<'a> {
    ring: &'a Ring,
    control: &'a Word,
    next: usize,
    count: usize,
}

impl<'a> Letters<'a> {
    /// Takes the first letter, or all; for the holder of the lock.
    fn take<T>(shared: &'a Shared<T>, all: bool) -> Option<Letters<'a>> {
        let ring = shared.front.ring.as_ref()?;
        Some(Letters {
            ring,
            control: &shared.front.control,
            next: 0,
            // SAFETY: the lock is held, and its earlier holders have served what they took.
            count: unsafe { ring.take(all) },
        })
    }

    fn next(&mut self) -> Option<Received> {
        if self.next == self.count {
            return None;
        }
        self.next += 1;
        // SAFETY: below the count, and each once; the section's lock is held.
        Some(unsafe { self.ring.taken(self.next - 1) })
    }
}

impl Drop for Letters<'_> {
    fn drop(&mut self) {
        if self.next < self.count {
            // A client that is told of the owner's death finds the section dead.
            self.control.fetch_or(DEAD, Ordering::Release);
        }
        while let Some(letter) = self.next() {
            // SAFETY: without data there is nothing to touch.
            unsafe { letter.serve(std::ptr::null_mut(), |_| ()) };
        }
    }
}
