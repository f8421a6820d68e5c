//! Arrivals from outside, and the components that wait for them.
//!
//! A device's handler or thread delivers items; natives ask for them. Items not yet asked for wait
//! in the box, as many as it has room for; the rest is dropped, as a radio would.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use crate::abi::{Component, Site, Step, Value};
use crate::exchange::external::{self, Ticket};
use crate::ground::sync::lock_std as lock;
use crate::outside::poller::{self, Watch};

/// Items of type `T` on their way to components.
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    asked: Condvar,
    /// Resumed when a component waits.
    source: OnceLock<Watch>,
    /// The item's name in reports: "input".
    what: &'static str,
    room: usize,
    /// Makes the result, in the asking component's heap.
    make: fn(*mut Component, T) -> Value,
}

struct State<T> {
    items: VecDeque<T>,
    /// Waiting tickets; empty while there are items.
    waiting: VecDeque<Ticket>,
    /// Nothing more will arrive.
    closed: bool,
}

impl<T> Mailbox<T> {
    pub(crate) const fn new(
        what: &'static str,
        room: usize,
        make: fn(*mut Component, T) -> Value,
    ) -> Mailbox<T> {
        let state = State {
            items: VecDeque::new(),
            waiting: VecDeque::new(),
            closed: false,
        };
        Mailbox {
            state: Mutex::new(state),
            asked: Condvar::new(),
            source: OnceLock::new(),
            what,
            room,
            make,
        }
    }

    /// Takes the next item, or waits for it. With a closed and empty box the component waits until
    /// it is stopped.
    ///
    /// # Safety
    /// `this` runs the calling native, which returns the step at once.
    pub(crate) unsafe fn ask(&self, this: *mut Component, site: *const Site) -> Step {
        let mut state = lock(&self.state);
        if let Some(item) = state.items.pop_front() {
            drop(state);
            // SAFETY: the component runs this.
            unsafe { (*this).received = (self.make)(this, item) };
            return Step::Done;
        }
        // SAFETY: as the caller promises.
        let (step, ticket) = unsafe { external::wait(this, site, self.what, !state.closed) };
        let unused = if state.closed || step != Step::Blocked {
            Some(ticket)
        } else {
            state.waiting.push_back(ticket);
            self.asked.notify_one();
            if let Some(&source) = self.source.get() {
                poller::resume(source);
            }
            None
        };
        drop(state);
        // Dropped without the lock: it may find that the program cannot continue.
        drop(unused);
        step
    }

    /// Gives an item to the component that asked first, or keeps it for the next. False without
    /// room.
    pub(crate) fn deliver(&self, item: T) -> bool {
        self.deliver_after(item, || {})
    }

    /// Delivers likewise, and calls `first` once it is certain that the item is taken, before any
    /// component sees it: one that does may end the program at once.
    pub(crate) fn deliver_after(&self, item: T, first: impl FnOnce()) -> bool {
        let mut item = Some((item, first));
        loop {
            let ticket = {
                let mut state = lock(&self.state);
                match state.waiting.pop_front() {
                    Some(ticket) => ticket,
                    None if state.items.len() >= self.room => return false,
                    None => {
                        if let Some((item, first)) = item {
                            first();
                            state.items.push_back(item);
                        }
                        return true;
                    }
                }
            };
            // A stopped component takes nothing; then it is the next one's turn.
            ticket.complete(|parked| {
                item.take().map_or(Value::NOTHING, |(item, first)| {
                    first();
                    (self.make)(parked.component(), item)
                })
            });
            if item.is_none() {
                return true;
            }
        }
    }

    /// Closes the box: nothing more arrives, and waiting components wait until they are stopped.
    pub(crate) fn close(&self) {
        let hopeless = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(hopeless);
    }

    /// Sets the watch to resume whenever a component waits.
    pub(crate) fn set_source(&self, source: Watch) {
        // A box has one source.
        let _ = self.source.set(source);
        if self.is_asked() {
            poller::resume(source);
        }
    }

    /// Tells whether a component waits.
    pub(crate) fn is_asked(&self) -> bool {
        !lock(&self.state).waiting.is_empty()
    }

    /// Sleeps until a component waits.
    pub(crate) fn wait_until_asked(&self) {
        let mut state = lock(&self.state);
        while state.waiting.is_empty() {
            state = self
                .asked
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
