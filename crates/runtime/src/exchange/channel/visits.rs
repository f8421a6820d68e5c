//! Leave of workers to look at many components and half-channels, one after another: asking for it
//! each time would cost more than the looks.

use std::ptr;
use std::time::{Duration, Instant};

use super::inflate::inflate;
use super::{Channel, hub, light};
use crate::abi::Component;
use crate::exchange::carrier::{self, Hold, Worker, home_of};
use crate::seats::waiting;

/// Looks under one leave, during which the worker's components cannot meet. A look at an object
/// that is in no cache takes up to a microsecond.
const AT_ONCE: u32 = 64;

/// A round of visits. The caller has no leave beside it, and locks no hub.
#[derive(Default)]
pub(crate) struct Visits {
    held: Option<Held>,
    longest: Duration,
}

struct Held {
    worker: &'static Worker,
    _hold: Hold,
    since: Instant,
    left: u32,
}

impl Visits {
    /// Ends the leave, if there is one.
    pub(crate) fn pause(&mut self) {
        if let Some(held) = self.held.take() {
            self.longest = self.longest.max(held.since.elapsed());
        }
    }

    /// The longest time for which a worker could not use its half-channels.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Acquires leave for one more look.
    fn hold(&mut self, worker: &'static Worker) {
        if let Some(held) = &mut self.held
            && ptr::eq(held.worker, worker)
            && held.left > 0
        {
            held.left -= 1;
            return;
        }
        self.pause();
        self.held = Some(Held {
            worker,
            _hold: worker.hold(),
            since: Instant::now(),
            left: AT_ONCE,
        });
    }

    /// Inflates a component's light wait, if any, into an offer. The caller keeps it alive.
    pub(crate) fn inflate(&mut self, component: *mut Component) {
        // SAFETY: alive.
        while unsafe { waiting::seems_to_wait(component) } {
            // SAFETY: workers live as long as their runtime.
            let Some(home) = (unsafe { home_of(component).as_ref() }) else {
                return;
            };
            self.hold(home);
            if !ptr::eq(home_of(component), home) {
                continue;
            }
            // SAFETY: held, so it is the caller's to touch.
            unsafe {
                if waiting::waiting_at_leave(component) != waiting::LINKED {
                    return light::inflate(component);
                }
            }
            self.pause();
            return inflate(component);
        }
    }

    /// Calls `tell` with each peer of a half-channel that the caller keeps alive.
    pub(crate) fn for_each_peer(&mut self, channel: &Channel, tell: impl FnMut(&Channel)) {
        // SAFETY: held or locked, so the peers are alive and stay.
        let tell_all = || unsafe {
            let peers = (0..channel.peer_count()).map(|index| channel.peer(index));
            peers.map(|peer| &*peer.as_ptr()).for_each(tell);
        };
        while let Some(worker) = carrier::of_mark(channel.where_it_is()) {
            self.hold(worker);
            if channel.is_at(worker.mark()) {
                return tell_all();
            }
        }
        self.pause();
        let _guard = hub::lock_of(channel);
        tell_all();
    }
}

impl Drop for Visits {
    fn drop(&mut self) {
        self.pause();
    }
}
