//! Handles Ctrl-C, the request to terminate, and stack overflow in a component.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use hearth_sys::descriptor::{self, STDERR};
use hearth_sys::signal::{self, Signals};
use hearth_sys::stack;

use crate::exchange::{carrier, component};
use crate::ground::{exits, output};
use crate::outside::idle::Visit;
use crate::seats::registry;
use crate::seats::seat::{Seat, seat_of};

/// Time that computing components may take to stop after all were asked to.
const GRACE: Duration = Duration::from_millis(200);

/// Watches for signals, from a thread of its own. Call before any other thread starts: they inherit
/// that these signals are held back.
pub(crate) fn watch() {
    // A reader that goes away is an error of the write, which `output` understands.
    signal::ignore(signal::PIPE);
    let mut heeded: Vec<i32> = [signal::INTERRUPT, signal::TERMINATE]
        .into_iter()
        .filter(|&signal| !signal::is_ignored(signal))
        .collect();
    heeded.push(signal::own());
    let signals = Signals::of(&heeded);
    signals.block();
    let thread = std::thread::Builder::new()
        .name("signals".to_owned())
        .stack_size(256 << 10);
    if let Err(error) = thread.spawn(move || wait_for(&signals)) {
        exits::unfit(&format!(
            "could not start the thread for signals ({error}); raise ulimit -u"
        ));
    }
}

/// Time that a thread whose stack is full waits for the reporting thread, in milliseconds. It may
/// hold a lock that the report needs.
const OVERFLOW_GRACE: i32 = 1000;

/// The seat of the component whose stack is full.
static OVERFLOWED: AtomicPtr<Seat> = AtomicPtr::new(std::ptr::null_mut());

/// Reports the overflow of a component's stack, with the seat as its owner.
pub(crate) fn watch_stacks() {
    /// Async-signal-safe: atomics, and system calls.
    fn tell(owner: usize) -> ! {
        let seat = seat_on(owner);
        // Release: the reporting thread reads the seat.
        OVERFLOWED.store(seat, Ordering::Release);
        signal::send_self(signal::own());
        stack::pause_handler(OVERFLOW_GRACE);
        // Nobody is left to notify if this fails.
        let _ = descriptor::write_all(STDERR, b"hearth: a component ran out of stack\n");
        stack::leave_handler(exits::FAILED)
    }
    // SAFETY: as said there; `seat_on` follows pointers that the running component keeps.
    unsafe { stack::on_overflow(tell) };
}

/// Finds the seat: the owner of a thread's stack is a seat, or one more than the address of a
/// runner, and then the component that runs there is meant.
fn seat_on(owner: usize) -> *mut Seat {
    if owner & 1 == 0 {
        return std::ptr::with_exposed_provenance_mut(owner);
    }
    let component = carrier::component_on(owner - 1);
    if component.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the handler runs on the thread that runs the component.
    std::ptr::from_ref(unsafe { seat_of(component) }).cast_mut()
}

fn tell_overflow() {
    let seat = OVERFLOWED.load(Ordering::Acquire);
    if seat.is_null() {
        // Another process sent the signal.
        return;
    }
    // SAFETY: its thread waits in the signal handler, so the component is alive.
    let described = registry::described(unsafe { &*seat });
    output::complain(&format!(
        "{described} ran out of stack: its procedures call one another too deeply; give the \
         recursion an end, or write it as a loop"
    ));
    exits::end(exits::FAILED)
}

fn wait_for(signals: &Signals) {
    let signal = loop {
        match signals.wait() {
            Ok(signal) if signal == signal::own() => tell_overflow(),
            Ok(signal) => break signal,
            Err(_) => return,
        }
    };
    // From here on a second signal kills at once: this thread lets it through, and it has no
    // handler.
    signals.unblock();
    exits::begin(128 + signal);
    if let Some(_visit) = Visit::begin_within(GRACE) {
        registry::for_each(component::stop);
    }
    output::flush();
    // When the last component ends, `exits::all_stopped` ends the process first.
    let end = Instant::now() + GRACE;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
    exits::end(128 + signal)
}
