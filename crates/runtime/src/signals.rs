//! Ctrl-C and the request to terminate.

use std::time::{Duration, Instant};

use hearth_sys::signal::{self, Signals};

use crate::idle::Visit;
use crate::{component, exits, output, registry};

/// How long components that compute may go on after everything was told to stop.
const GRACE: Duration = Duration::from_millis(200);

/// Watches for signals, from a thread of its own. Call before any other thread starts: they inherit
/// that these signals are held back.
pub(crate) fn watch() {
    // A reader that goes away is an error of the write, which `output` understands.
    signal::ignore(signal::PIPE);
    let heeded: Vec<i32> = [signal::INTERRUPT, signal::TERMINATE]
        .into_iter()
        .filter(|&signal| !signal::is_ignored(signal))
        .collect();
    if heeded.is_empty() {
        return;
    }
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

fn wait_for(signals: &Signals) {
    let Ok(signal) = signals.wait() else {
        return;
    };
    // From here on a second one kills at once: this thread lets it through, and nobody handles it.
    signals.unblock();
    exits::begin(128 + signal);
    {
        let _visit = Visit::begin();
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
