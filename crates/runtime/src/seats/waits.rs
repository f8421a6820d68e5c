//! The open waits for something outside, and whether anything can end them.

use std::collections::HashMap;
use std::sync::Mutex;

use super::seat::Seat;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;

/// Component and operation.
pub(crate) type Key = (u64, u64);

/// Each wait with whether it can be woken.
static WAITS: Part<Mutex<Option<HashMap<Key, bool>>>> = Part::new(|| Mutex::new(None));

fn with_waits<R>(action: impl FnOnce(&mut HashMap<Key, bool>) -> R) -> R {
    action(lock(&WAITS).get_or_insert_default())
}

/// Records the start of a wait.
pub(crate) fn open(key: Key, wakeable: bool) {
    with_waits(|waits| waits.insert(key, wakeable));
}

/// Sets whether anything can end a wait, if it is open.
pub(crate) fn set_wakeable(key: Key, wakeable: bool) {
    with_waits(|waits| {
        if let Some(entry) = waits.get_mut(&key) {
            *entry = wakeable;
        }
    });
}

/// Whether it is open.
pub(crate) fn is_open(key: Key) -> bool {
    with_waits(|waits| waits.contains_key(&key))
}

/// Removes a wait that has ended or whose ticket is gone. True if it was open.
pub(crate) fn close(key: Key) -> bool {
    with_waits(|waits| waits.remove(&key).is_some())
}

/// Removes a wait that a stop has ended.
///
/// # Safety
/// `seat` was blocked outside and woken; its carrier calls.
pub(crate) unsafe fn forget(seat: &Seat) {
    // SAFETY: woken, so the offer is the component's own.
    let round = unsafe { seat.offer.with(|offer| offer.round) };
    close((seat.id, round));
}

/// Marks that events may come from outside even if no wait expects them: a program that other nodes
/// can connect to is never deadlocked.
pub(crate) fn expect_visitors() {
    // No component and no round has this number.
    with_waits(|waits| waits.insert((0, 0), true));
}

/// Number of open waits.
pub(crate) fn open_waits() -> usize {
    with_waits(|waits| waits.len())
}

/// Whether anything outside can still wake a component.
pub(crate) fn can_wake_any() -> bool {
    with_waits(|waits| waits.values().any(|&wakeable| wakeable))
}
