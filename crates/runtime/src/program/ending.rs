//! Ends a compiled program: all components have stopped, one ended by an exception, or none can run
//! any more.

use crate::exchange::carrier::see_to_outside;
use crate::exchange::{self, collection, timers};
use crate::ground::{exits, output};
use crate::hooks::{After, Hooks, simulation};
use crate::placer::{self, initial};
use crate::seats::seat::Seat;
use crate::seats::{exceptions, registry};
use crate::{recording, remote, report};

/// The functions that the exchange calls.
pub(super) static HOOKS: Hooks = Hooks {
    choose: initial::choose,
    starts,
    has_samples: placer::notice,
    moved: |_| {},
    ended: |_| {},
    failed,
    all_stopped,
    at_rest,
    serves: placer::tell_of_server,
    grown: collection::grown,
    looks_around: collection::look_around,
    see_to_outside,
    fire_due: || timers::fire_due(timers::now()),
};

fn starts() {
    placer::start();
    collection::start();
}

fn failed(seat: &Seat) {
    // SAFETY: its carrier still has the component.
    let message = unsafe { exceptions::uncaught_message(seat) };
    recording::failure(&message);
    output::complain(&message);
    simulation::failed(seat);
    exits::note_uncaught();
    if registry::is_main(seat) {
        exits::end(exits::FAILED);
    }
}

fn all_stopped() {
    if remote::owes_answers() {
        // Proxies of this very thread's worker may owe answers.
        let ending = std::thread::Builder::new().name("ending".to_owned());
        if ending.spawn(settle_and_end).is_ok() {
            return;
        }
    }
    settle_and_end()
}

fn settle_and_end() {
    remote::settle();
    exits::end(exits::code_of_end())
}

/// Nothing runs: writes the buffered output, and reports a deadlock if nothing outside can change
/// that.
fn at_rest(is_still: &dyn Fn() -> bool) -> After {
    output::flush();
    let can_go_on = exchange::can_go_on();
    if can_go_on || !is_still() {
        return None;
    }
    report::deadlock();
    // The caller returns only once the process is gone: no visitor enters any more.
    exits::end(exits::FAILED)
}
