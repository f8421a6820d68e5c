//! The machine's description of itself: its files, read by `hearth-sys`.

use hearth_machine::capture::{Capture, Source};
use hearth_sys::System;

struct Files<'a>(&'a dyn System);

impl Source for Files<'_> {
    fn read(&mut self, path: &str) -> Option<String> {
        self.0.read(path).ok()
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        self.0.list(folder).unwrap_or_default()
    }
}

/// The machine's own description, unparsed. Unreadable files are absent.
pub fn capture(system: &dyn System) -> Capture {
    Capture::gather(&mut Files(system))
}
