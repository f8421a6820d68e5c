//! The system's files as a source of captures.

use hearth_machine::capture::Source;
use hearth_sys::System;

/// The system's files, for a capture.
pub(crate) struct Files<'a>(pub(crate) &'a dyn System);

impl Source for Files<'_> {
    fn read(&mut self, path: &str) -> Option<String> {
        self.0.read(path).ok()
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        self.0.list(folder).unwrap_or_default()
    }
}
