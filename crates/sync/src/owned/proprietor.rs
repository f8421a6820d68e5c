//! The thread that serves requests.

use std::sync::Arc;

use hearth_sys::affinity;

use super::held::Held;
use super::inside::Inside;
use super::shared::{CLOSED, Shared, WANTED, WAY};
use crate::atomics::{Ordering, spin_loop, yield_now};
use crate::lock::Place;
use crate::{NoProprietor, Way};

/// Rounds through all mailboxes for which the lock is kept while others may want it.
const ROUNDS: u32 = 64;
/// Looks away for so many pauses when it has left the lock to somebody, so that it does not take it first.
const COURTESY: u32 = if cfg!(loom) { 1 } else { 64 };

/// Starts the thread, if there is none yet.
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
    let thread = std::thread::Builder::new().name(shared.front.options.name.clone());
    let body = move || {
        if let Some(core) = its.front.options.core {
            // Elsewhere it is slower, not wrong.
            let _ = affinity::pin_current(core);
        }
        serve(&its);
    };
    *proprietor = Some(thread.spawn(body).map_err(NoProprietor)?);
    Ok(())
}

/// However serving ends, nobody waits for it any longer.
struct LastWill<'a, T>(&'a Shared<T>);

impl<T> Drop for LastWill<'_, T> {
    fn drop(&mut self) {
        self.0.die();
    }
}

/// Serves until the section is closed and all requests are answered.
pub(super) fn serve<T>(shared: &Shared<T>) {
    let _last_will = LastWill(shared);
    loop {
        let (place, inside) = (Place::new(), Inside::new(std::ptr::from_ref(shared).cast()));
        // SAFETY: both stay in this frame, which the guard does not leave; the proprietor is inside of nothing.
        let held = unsafe { shared.acquire(&place, &inside) };
        let why = attend(shared, &held);
        drop(held);
        match why {
            Pause::Wanted => stand_back(shared),
            Pause::Idle => {
                if shared.front.control.load(Ordering::Acquire) & CLOSED != 0
                    && !shared.has_request()
                {
                    return;
                }
                shared.sleep_until_asked();
            }
        }
    }
}

/// Why the proprietor gives the lock up.
enum Pause {
    /// Somebody else wants the lock, or may have waited for long.
    Wanted,
    /// There is nothing to do.
    Idle,
}

/// Serves under the lock, and looks for more for as long as a wake-up would cost.
fn attend<T>(shared: &Shared<T>, held: &Held<'_, T>) -> Pause {
    let control = &shared.front.control;
    let mut rounds = 0;
    loop {
        if held.sweep() == 0 {
            held.count(|tally| tally.rests += 1);
            let mut is_wanted = false;
            let has_come = shared.front.options.proprietor_wait.look(|| {
                // Nobody is to wait for the lock for as long as the proprietor is patient, and in other ways
                // nobody asks.
                is_wanted = control.load(Ordering::Relaxed) & (WAY | WANTED | CLOSED)
                    != Way::Message as u32;
                is_wanted || shared.has_request()
            });
            if is_wanted && control.load(Ordering::Relaxed) & WANTED != 0 {
                return Pause::Wanted;
            }
            if !has_come || is_wanted {
                return Pause::Idle;
            }
        }
        rounds += 1;
        if control.load(Ordering::Relaxed) & WANTED != 0
            || rounds >= ROUNDS && shared.way() != Way::Message
        {
            return Pause::Wanted;
        }
    }
}

/// Leaves the lock to those who wait for it.
fn stand_back<T>(shared: &Shared<T>) {
    shared.front.control.fetch_and(!WANTED, Ordering::Relaxed);
    for _ in 0..COURTESY {
        spin_loop();
    }
    yield_now();
}
