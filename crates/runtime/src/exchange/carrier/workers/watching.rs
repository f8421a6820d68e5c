//! A worker's watch list: the ends of links where its components are blocked.

use super::{LEAST_PATIENCE, OUTSIDE_EVERY, WATCHES, Worker};
use crate::exchange::channel::link;
use crate::exchange::line::{Line, Watch};
use crate::ground::sync::Ordering;
use crate::ground::without::Mechanism;
use crate::hooks::simulation;
use crate::recording;

impl Worker {
    /// Whether the list has room for one more end.
    pub(super) fn can_watch(&self) -> bool {
        let watching = self.mine.watching.load(Ordering::Relaxed) as usize;
        watching < WATCHES && !Mechanism::Watch.is_off()
    }

    /// Adds an end to the list, which has room.
    ///
    /// # Safety
    /// The caller has leave.
    pub(super) unsafe fn watch(&self, watch: Watch) {
        // SAFETY: as the caller promises.
        unsafe { self.change_watches(|watches| watches.push(watch)) };
    }

    /// Begins a look of the running component at its line, in place of parking: if its worker has
    /// nothing else to run or to watch, and such looks have paid. Counts it as a pick, so that
    /// whatever is done every so many picks is done as often as if the component had parked. False
    /// otherwise, and at a pick at which something is due.
    pub(super) fn begin_look(&self) -> bool {
        let mine = &self.mine;
        let picks = mine.picks.get().wrapping_add(1);
        let is_idle = self.next.get().is_null()
            && self.first.get().is_null()
            && mine.watching.load(Ordering::Relaxed) == 0
            && self.shared.inbox.load(Ordering::Relaxed).is_null();
        let is_due = picks.is_multiple_of(OUTSIDE_EVERY) || mine.sampler.is_due(picks);
        let is_watched = recording::is_on() || simulation::is_on();
        let pays = cfg!(loom) || mine.patience.get() > LEAST_PATIENCE;
        let is_off = Mechanism::Look.is_off() || Mechanism::Spin.is_off();
        let begins = is_idle && !is_due && !is_watched && pays && !is_off;
        if begins {
            mine.picks.set(picks);
        }
        begins
    }

    /// Removes an end from the list.
    ///
    /// # Safety
    /// The caller has leave.
    pub(crate) unsafe fn forget(&self, line: &'static Line, is_sender: bool) {
        // SAFETY: as the caller promises.
        unsafe {
            self.change_watches(|watches| watches.retain(|watch| !watch.is_of(line, is_sender)));
        }
    }

    /// Checks the watch list; if `sleeps`, sets the TELL bits of the waits that remain. True if a
    /// component can continue.
    pub(super) fn look_through(&'static self, sleeps: bool) -> bool {
        if self.mine.watching.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let _hold = self.hold();
        let mut found = false;
        let look = |watch: &Watch| {
            // SAFETY: held.
            let ready = unsafe {
                if sleeps {
                    link::have_told(watch)
                } else {
                    link::look(watch)
                }
            };
            if let Some(component) = ready {
                found = true;
                self.push_soon(component);
            }
            ready.is_none() && !sleeps
        };
        // SAFETY: held.
        unsafe { self.change_watches(|watches| watches.retain(look)) };
        found
    }

    /// # Safety
    /// The caller has leave.
    unsafe fn change_watches<R>(&self, change: impl FnOnce(&mut Vec<Watch>) -> R) -> R {
        // SAFETY: as the caller promises.
        unsafe {
            self.mine.watches.with_mut(|watches| {
                let result = change(watches);
                self.mine
                    .watching
                    .store(watches.len() as u32, Ordering::Relaxed);
                result
            })
        }
    }
}
