//! A section's figures, in words.

use std::fmt::Write as _;

use hearth_sys::clock::Source;

use super::shared::{ASTRAY, Shared};
use crate::Way;
use hearth_atomics::Ordering;

/// Describes the present way and the counts.
pub(super) fn explain<T>(shared: &Shared<T>) -> String {
    let now = shared.statistics();
    let options = &shared.front.options;
    let mut text = format!("{}: ", options.name);
    let _ = match now.way {
        Way::Lock => write!(text, "under the lock ({})", options.lock),
        Way::Combine => write!(
            text,
            "under the lock ({}), whose holder serves the waiting threads",
            options.lock
        ),
        Way::Message => write!(text, "by message to its proprietor"),
    };
    if let Some(reasons) = shared.pilot_explains() {
        let _ = write!(text, ", as measured: {reasons}");
    }
    if let Some(core) = options.core
        && shared.front.control.load(Ordering::Relaxed) & ASTRAY != 0
    {
        let _ = write!(
            text,
            "; the proprietor runs where the system puts it, as core {core} is not available to this process"
        );
    }
    if now.calls == 0 {
        text.push_str("; nobody has called yet");
        return text;
    }
    let _ = write!(text, "; {} calls", now.calls);
    if now.delegated > 0 {
        let _ = write!(text, ", {} of them run by somebody else", now.delegated);
    }
    if let Some(mean) = now.section_ticks_mean() {
        let unit = match shared.front.stamps.source() {
            Source::Tsc => "ticks",
            Source::Monotonic => "ns",
        };
        let _ = write!(
            text,
            "; a section takes {mean:.0} {unit} ({} timed)",
            now.samples
        );
    }
    if now.contended > 0 {
        let share = 100.0 * now.contended as f64 / now.calls as f64;
        let _ = write!(text, "; {share:.1} % of the calls waited for the lock");
    }
    if let Some(busy) = now.server_busy_percent() {
        let _ = write!(
            text,
            "; the server was busy for {busy:.0} % of its requests"
        );
    }
    text
}
