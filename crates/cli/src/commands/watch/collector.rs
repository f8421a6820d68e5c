//! A collector of OpenTelemetry, to which calls are sent.

use std::cell::Cell;
use std::io;
use std::path::Path;

use hearth_calls::formats::otlp::{self, Endpoint, Taken, Unsent};
use hearth_calls::{Recorded, Tree};
use hearth_terminal::Failure;
use hearth_text::counted;

use super::unwritten;

/// Spans and data points of a request.
pub(super) const AT_ONCE: usize = 4_000;

/// A collector, and the number of items that it rejected.
pub(super) struct Collector {
    endpoint: Endpoint,
    rejected: Cell<u64>,
}

impl Collector {
    pub(super) fn at(url: &Path) -> Collector {
        Collector {
            endpoint: Endpoint::at(&url.to_string_lossy()),
            rejected: Cell::new(0),
        }
    }

    fn note(&self, taken: Result<Taken, Unsent>) -> io::Result<()> {
        let taken = taken.map_err(|error| io::Error::other(error.to_string()))?;
        self.rejected.set(self.rejected.get() + taken.rejected);
        Ok(())
    }

    /// Sends spans.
    pub(super) fn spans(&self, body: &[u8]) -> io::Result<()> {
        self.note(self.endpoint.post_spans(body))
    }

    /// Sends sums and histograms.
    pub(super) fn figures(&self, recorded: &Recorded, tree: &Tree) -> Result<(), Failure> {
        let mut send = |body: &[u8]| self.note(self.endpoint.post_metrics(body));
        otlp::metrics(recorded, tree, AT_ONCE, &mut send).map_err(unwritten)
    }

    /// Sentence on what was sent.
    pub(super) fn told(&self, sent: otlp::Spans) -> String {
        let rejected = match self.rejected.get() {
            0 => String::new(),
            more => format!("; the collector rejected {more}"),
        };
        format!(
            "{} and {} as spans in {}{rejected}",
            counted(sent.calls as usize, "call"),
            counted(sent.gaps as usize, "gap"),
            counted(sent.requests as usize, "request"),
        )
    }
}
