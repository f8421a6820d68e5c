//! The proprietor: the thread that serves requests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hearth_sys::affinity;

use super::held::Held;
use super::shared::{ASTRAY, CLOSED, ENDING, Shared, WAY};
use crate::inside::{self, Inside};
use crate::lock::{Lock, LockPlace};
use crate::request::drop_quietly;
use crate::{NoProprietor, Way};
use hearth_atomics::Ordering;
use hearth_sys::spin::Spin;
use hearth_sys::threading::yield_now;

/// Rounds through all mailboxes before the lock is offered again to a waiter that did not take it:
/// it may have lost its core for long.
const ROUNDS: u32 = if cfg!(loom) { 1 } else { 64 };

/// Starts the thread, unless there is one.
pub(super) fn start<T: Send + 'static>(shared: &Arc<Shared<T>>) -> Result<(), NoProprietor> {
    let mut proprietor = shared
        .front
        .proprietor
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if proprietor.is_some() {
        return Ok(());
    }
    shared.mailboxes();
    let its = Arc::clone(shared);
    // Thread names end at a NUL, and the standard library panics if they contain one.
    let name = shared.front.options.name.split('\0').next();
    let thread = std::thread::Builder::new().name(name.unwrap_or_default().to_owned());
    let body = move || {
        if let Some(core) = its.front.options.core {
            // On another core it is slower, not wrong.
            if affinity::pin_current(core).is_err() {
                its.front.control.fetch_or(ASTRAY, Ordering::Relaxed);
            }
        }
        serve(&its);
    };
    // The payload of its panic may panic when dropped, which would end the process if the thread
    // ended with it.
    let body = move || _ = drop_quietly(catch_unwind(AssertUnwindSafe(body)));
    *proprietor = Some(thread.spawn(body).map_err(NoProprietor)?);
    Ok(())
}

/// Ends serving, however that comes about: no client keeps waiting.
struct LastWill<'a, T> {
    shared: &'a Shared<T>,
    /// All requests are served, rather than cut off by a panic.
    is_done: bool,
}

impl<T> Drop for LastWill<'_, T> {
    fn drop(&mut self) {
        self.shared.die();
        // Another section may come to lie at the same address.
        inside::owns(std::ptr::null());
        let is_ending = self.shared.front.control.load(Ordering::Relaxed) & ENDING != 0;
        if is_ending || !self.is_done {
            self.shared.front.ending.come();
        }
    }
}

/// Serves until the section is closed and all requests are answered.
pub(super) fn serve<T>(shared: &Shared<T>) {
    let mut last_will = LastWill {
        shared,
        is_done: false,
    };
    inside::owns(std::ptr::from_ref(shared).cast());
    let mut rounds = 0;
    loop {
        let (place, inside) = (
            LockPlace::new(),
            Inside::new(std::ptr::from_ref(shared).cast()),
        );
        // SAFETY: both stay in this frame, which the guard does not leave; the proprietor is inside
        // of nothing.
        let held = unsafe { shared.acquire_as_proprietor(&place, &inside) };
        let why = attend(shared, &held, rounds);
        drop(held);
        match why {
            Pause::Wanted => {
                rounds = if stand_back(shared) { 0 } else { ROUNDS };
            }
            Pause::Idle => {
                if shared.front.control.load(Ordering::Acquire) & CLOSED != 0
                    && !shared.has_open_request()
                {
                    last_will.is_done = true;
                    return;
                }
                shared.sleep_until_asked();
            }
        }
    }
}

/// Reason why the proprietor releases the lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Another thread wants it.
    Wanted,
    /// There is nothing to do.
    Idle,
}

/// Serves under the lock, and looks for more for as long as a wake-up costs. At least `rounds`
/// rounds if there are requests, even if threads wait.
pub(super) fn attend<T>(shared: &Shared<T>, held: &Held<'_, T>, rounds: u32) -> Pause {
    let is_message = || {
        let now = shared.front.control.load(Ordering::Relaxed);
        now & (WAY | CLOSED) == Way::Message as u32
    };
    let mut rounds_left = rounds;
    loop {
        if held.sweep() == 0 {
            held.count(|tally| tally.rests += 1);
            let mut is_over = false;
            let has_come = shared.front.options.proprietor_wait.until(|| {
                // Nobody should wait for the lock for as long as the proprietor spins; and in other
                // ways there are no requests.
                is_over = !is_message() || shared.is_wanted();
                is_over || shared.has_request()
            });
            if !has_come || is_over {
                // In other ways callers wait for each other, without the proprietor.
                return if is_message() && shared.is_wanted() {
                    Pause::Wanted
                } else {
                    Pause::Idle
                };
            }
        }
        rounds_left = rounds_left.saturating_sub(1);
        if rounds_left == 0 && shared.is_wanted() {
            return Pause::Wanted;
        }
    }
}

/// Leaves the lock to the waiters, until one of them has it or none wants it any more. False if
/// neither happens for as long as a wake-up takes.
fn stand_back<T>(shared: &Shared<T>) -> bool {
    let is_taken = Spin::as_wake_up().until(|| shared.back.lock.is_held() || !shared.is_wanted());
    if !is_taken {
        // A waiter may want this very core.
        yield_now();
    }
    is_taken
}
