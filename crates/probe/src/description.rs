//! The machine's description of itself: its files, read by `hearth-sys`.

use hearth_machine::capture::Capture;
use hearth_sys::System;

/// The machine's own description, unparsed. Unreadable files are absent.
pub fn capture(system: &dyn System) -> Capture {
    Capture::gather(&mut (
        |path: &str| system.read(path).ok(),
        |folder: &str| system.list(folder).unwrap_or_default(),
    ))
}
