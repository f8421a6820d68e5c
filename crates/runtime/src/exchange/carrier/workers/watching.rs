//! A worker's watch list: the ends of links where its components are blocked.

use super::{WATCHES, Worker};
use crate::exchange::channel::link;
use crate::exchange::line::{Line, Watch};
use crate::ground::sync::Ordering;
use crate::ground::without::Mechanism;

impl Worker {
    /// Adds an end to the list. False if the list is full.
    ///
    /// # Safety
    /// The caller has leave.
    pub(super) unsafe fn watch(&self, watch: Watch) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            self.change_watches(|watches| {
                let has_room = watches.len() < WATCHES && !Mechanism::Watch.is_off();
                if has_room {
                    watches.push(watch);
                }
                has_room
            })
        }
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
