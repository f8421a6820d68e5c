//! Serving in the order of keys: requests for the same part of the data run together.
//!
//! The source names this temporal reorganisation and leaves it open. A round takes the requests of
//! each client, up to its depth, so no request is delayed by more than a round.

use super::held::Held;
use super::shared::{DEAD, Shared};
use crate::request::RequestSlot;
use hearth_atomics::Ordering;
use hearth_sys::futex::Word;

/// Key of a request without one.
pub(super) const NO_KEY: u64 = 0;

/// The key as sent: 0 is reserved for requests without one.
pub(super) fn sent(key: u64) -> u64 {
    key.saturating_add(1)
}

/// Serves one round. Returns the number of requests.
pub(super) fn sweep<T>(held: &Held<'_, T>, shared: &Shared<T>) -> u64 {
    let mut round = Round {
        control: &shared.front.control,
        requests: Vec::new(),
        next: 0,
    };
    let mut alone = 0;
    for (index, mailbox) in shared.mailboxes().all().enumerate() {
        let mut ahead = 0;
        while let Some(slot) = mailbox.ahead(ahead) {
            // SAFETY: ASKED, and the lock is held.
            let key = unsafe { slot.key() };
            if key == NO_KEY && ahead > 0 {
                // Not before earlier requests of its client: in the next round.
                break;
            }
            ahead += 1;
            round.requests.push((key, slot));
            if key == NO_KEY {
                alone += 1;
                break;
            }
        }
        if ahead > 0 {
            mailbox.answered(ahead);
            held.has_served(index);
        }
    }
    let count = round.requests.len() as u64;
    if alone < count {
        // Equal keys keep their order.
        round.requests.sort_by_key(|(key, _)| *key);
    }
    while let Some(slot) = round.next() {
        // SAFETY: ASKED, and taken from its mailbox above.
        unsafe { held.serve(slot) };
    }
    count
}

/// Requests taken from their mailboxes. Those not served when this is dropped are refused.
struct Round<'a> {
    control: &'a Word,
    requests: Vec<(u64, &'a RequestSlot)>,
    next: usize,
}

impl<'a> Round<'a> {
    fn next(&mut self) -> Option<&'a RequestSlot> {
        let (_, slot) = self.requests.get(self.next)?;
        self.next += 1;
        Some(slot)
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        if self.next < self.requests.len() {
            // A client that is told of the owner's death finds the section dead.
            self.control.fetch_or(DEAD, Ordering::Release);
        }
        while let Some(slot) = self.next() {
            // SAFETY: ASKED, and whoever made this holds the lock; without data there is nothing to
            // touch.
            unsafe { slot.serve(std::ptr::null_mut(), |_| ()) };
        }
    }
}
