//! Mailboxes: a few lines for each client thread, which the server looks through.

use std::ptr;

use crate::request::RequestSlot;
use hearth_atomics::{AtomicPtr, AtomicU32, Ordering};

/// The lines that one thread's requests go through, in a circle.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `tail` | the client | the client |
/// | `head` | the holder of the lock | the holder; anyone, as a hint |
/// | `slots` | see [`RequestSlot`] | |
///
/// Requests from `head` up to `tail` are the server's; those of one thread are served in order. The
/// client writes what the server polls only to ask, and shares no counter with it.
pub(crate) struct Mailbox {
    client: Client,
    server: Server,
    slots: Box<[RequestSlot]>,
}

#[repr(align(64))]
struct Client {
    tail: AtomicU32,
}

#[repr(align(64))]
struct Server {
    head: AtomicU32,
}

impl Mailbox {
    fn new(depth: u32) -> Mailbox {
        Mailbox {
            client: Client {
                tail: AtomicU32::new(0),
            },
            server: Server {
                head: AtomicU32::new(0),
            },
            slots: (0..depth.next_power_of_two())
                .map(|_| RequestSlot::new())
                .collect(),
        }
    }

    fn slot(&self, number: u32) -> &RequestSlot {
        // The count of slots is a power of two, so numbers may wrap.
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// The line for the client's next request. It may still be ASKED.
    #[inline]
    pub(crate) fn next(&self) -> &RequestSlot {
        self.slot(self.client.tail.load(Ordering::Relaxed))
    }

    /// Advances past a line that the client has asked in, or is about to before any other.
    #[inline]
    pub(crate) fn advance(&self) {
        let tail = self.client.tail.load(Ordering::Relaxed);
        self.client
            .tail
            .store(tail.wrapping_add(1), Ordering::Relaxed);
    }

    /// True if the client's last request is not answered yet. For the client.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        let tail = self.client.tail.load(Ordering::Relaxed);
        self.slot(tail.wrapping_sub(1)).is_asked()
    }

    /// The line of the oldest unanswered request, if there is one. For the holder of the lock; for
    /// others a hint, which may miss one: see `has_open`.
    #[inline]
    pub(crate) fn first(&self) -> Option<&RequestSlot> {
        Some(self.slot(self.server.head.load(Ordering::Relaxed))).filter(|slot| slot.is_asked())
    }

    /// True if a request is unanswered. For threads without the lock: while they look, the holder
    /// may answer the first request and leave those behind it.
    pub(crate) fn has_open(&self) -> bool {
        let mut head = self.server.head.load(Ordering::Relaxed);
        loop {
            // Acquire, in there: the server moves the head before it answers, so a thread that sees
            // the answer sees the move.
            if self.slot(head).is_asked() {
                return true;
            }
            let now = self.server.head.load(Ordering::Relaxed);
            if now == head {
                return false;
            }
            head = now;
        }
    }

    /// The request `ahead` of the first, if it was made.
    #[inline]
    pub(crate) fn ahead(&self, ahead: u32) -> Option<&RequestSlot> {
        let head = self.server.head.load(Ordering::Relaxed);
        Some(self.slot(head.wrapping_add(ahead)))
            .filter(|slot| (ahead as usize) < self.slots.len() && slot.is_asked())
    }

    /// Moves the head past `count` requests that the holder of the lock is about to answer.
    #[inline]
    pub(crate) fn answered(&self, count: u32) {
        let head = self.server.head.load(Ordering::Relaxed);
        self.server
            .head
            .store(head.wrapping_add(count), Ordering::Relaxed);
    }
}

/// All mailboxes of a section.
///
/// | field | writer | reader |
/// |---|---|---|
/// | `of_client` | the thread of that number, once | it, and later threads of the number |
/// | `used`, `in_order` | the thread that makes a mailbox | the server |
pub(crate) struct Mailboxes {
    of_client: Box<[AtomicPtr<Mailbox>]>,
    in_order: Box<[AtomicPtr<Mailbox>]>,
    used: AtomicU32,
    depth: u32,
}

impl Mailboxes {
    /// Mailboxes for threads with numbers below `clients`, of `depth` lines each.
    pub(crate) fn new(clients: usize, depth: u32) -> Mailboxes {
        let empty = || {
            (0..clients)
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect()
        };
        Mailboxes {
            of_client: empty(),
            in_order: empty(),
            used: AtomicU32::new(0),
            depth,
        }
    }

    /// The thread's mailbox, made at its first request. None for numbers beyond those provided for.
    #[inline]
    pub(crate) fn of(&self, client: u32) -> Option<&Mailbox> {
        let place = self.of_client.get(client as usize)?;
        let mut mailbox = place.load(Ordering::Acquire);
        if mailbox.is_null() {
            mailbox = self.make(place);
        }
        // SAFETY: mailboxes stay as long as this does.
        Some(unsafe { &*mailbox })
    }

    /// The thread's mailbox if it has one.
    pub(crate) fn existing(&self, client: u32) -> Option<&Mailbox> {
        let mailbox = self.of_client.get(client as usize)?.load(Ordering::Acquire);
        // SAFETY: mailboxes stay as long as this does.
        unsafe { mailbox.as_ref() }
    }

    #[cold]
    fn make(&self, place: &AtomicPtr<Mailbox>) -> *mut Mailbox {
        // By the client, whose node the memory is then on.
        let mailbox = Box::into_raw(Box::new(Mailbox::new(self.depth)));
        // No other thread has this number, so each place is filled once and there are enough of
        // them.
        let index = self.used.fetch_add(1, Ordering::AcqRel);
        // Release, here and below, pairs with the Acquire loads in `all` and `of`: the lines are
        // made.
        self.in_order[index as usize].store(mailbox, Ordering::Release);
        place.store(mailbox, Ordering::Release);
        mailbox
    }

    /// All existing mailboxes, the oldest first.
    #[inline]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Mailbox> {
        let used = self.used.load(Ordering::Acquire) as usize;
        self.in_order[..used].iter().filter_map(|place| {
            // SAFETY: mailboxes stay as long as this does. One that was counted and is not there
            // yet has no request either.
            unsafe { place.load(Ordering::Acquire).as_ref() }
        })
    }

    /// True if there is a request. For the holder of the lock.
    #[inline]
    pub(crate) fn has_request(&self) -> bool {
        self.all().any(|mailbox| mailbox.first().is_some())
    }

    /// True if there is a request. For threads without the lock, which must not miss one that a
    /// holder leaves.
    pub(crate) fn has_open(&self) -> bool {
        self.all().any(Mailbox::has_open)
    }
}

impl Drop for Mailboxes {
    fn drop(&mut self) {
        for place in &mut self.in_order {
            let mailbox = place.load(Ordering::Relaxed);
            if !mailbox.is_null() {
                // SAFETY: made by a box in `make`, and no other thread looks any more.
                drop(unsafe { Box::from_raw(mailbox) });
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use super::*;

    /// One request is answered and the next left while a thread without the lock looks: it sees
    /// that there is one.
    #[test]
    fn loom_a_request_that_is_left_is_seen() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new(2));
            for value in [1, 2] {
                let slot = mailbox.next();
                mailbox.advance();
                // SAFETY: this thread is the client, and the slot free; a number is what it is
                // served with.
                unsafe { slot.ask_and_go::<u32, _>(0, move |sum| *sum += value) };
            }
            let holder = loom::thread::spawn({
                let mailbox = Arc::clone(&mailbox);
                move || {
                    // Not through `first`: the checker would take its load for the last one before
                    // the answer, and not try the answer before that of the other thread.
                    let slot = mailbox.slot(0);
                    mailbox.answered(1);
                    let mut sum = 0u32;
                    // SAFETY: ASKED, and no other thread serves.
                    unsafe { slot.serve((&raw mut sum).cast(), |_| ()) };
                }
            });
            assert!(mailbox.has_open());
            holder.join().unwrap();
            assert!(mailbox.has_open());
        });
    }
}
