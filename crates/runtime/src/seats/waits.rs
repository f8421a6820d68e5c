//! The waits for something outside that are open, and whether anything can end them.

use std::collections::HashMap;
use std::sync::Mutex;

use super::seat::Seat;
use crate::ground::runtime::Part;
use crate::ground::sync::lock_std as lock;

/// Component and operation.
pub(crate) type Key = (u64, u64);

/// Each with whether it can be woken.
static WAITS: Part<Mutex<Option<HashMap<Key, bool>>>> = Part::new(|| Mutex::new(None));

fn with_waits<R>(action: impl FnOnce(&mut HashMap<Key, bool>) -> R) -> R {
    action(lock(&WAITS).get_or_insert_default())
}

/// A component begins to wait.
pub(crate) fn open(key: Key, wakeable: bool) {
    with_waits(|waits| waits.insert(key, wakeable));
}

/// Says whether anything can end a wait, if it is open.
pub(crate) fn set_wakeable(key: Key, wakeable: bool) {
    with_waits(|waits| {
        if let Some(entry) = waits.get_mut(&key) {
            *entry = wakeable;
        }
    });
}

/// Is it open?
pub(crate) fn is_open(key: Key) -> bool {
    with_waits(|waits| waits.contains_key(&key))
}

/// A wait has ended, or its ticket is gone. True if it was open.
pub(crate) fn close(key: Key) -> bool {
    with_waits(|waits| waits.remove(&key).is_some())
}

/// A stop has ended a wait.
///
/// # Safety
/// `seat` was blocked outside and woken; its carrier calls.
pub(crate) unsafe fn forget(seat: &Seat) {
    // SAFETY: woken, so the offer is the component's own.
    let round = unsafe { seat.offer.with(|offer| offer.round) };
    close((seat.id, round));
}

/// From now on anything may come from outside, whatever waits for it: a program that other nodes
/// can connect to is never deadlocked.
pub(crate) fn expect_visitors() {
    // No component and no round has this number.
    with_waits(|waits| waits.insert((0, 0), true));
}

/// How many waits are open.
pub(crate) fn open_waits() -> usize {
    with_waits(|waits| waits.len())
}

/// Can anything outside still wake a component?
pub(crate) fn can_wake_any() -> bool {
    with_waits(|waits| waits.values().any(|&wakeable| wakeable))
}
