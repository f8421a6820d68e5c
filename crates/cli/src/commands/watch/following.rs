//! Sends the calls of a program that runs to a collector of OpenTelemetry.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hearth_calls::formats::otlp::{self, Endpoint, SpanBatch, Taken, Unsent};
use hearth_calls::{Following, Recorded, Tree};
use hearth_terminal::{Failure, output};
use hearth_text::counted;

use super::{AT_ONCE, unwritten};

/// Time between two looks at the file, and two requests with figures.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const FIGURES_EVERY: Duration = Duration::from_secs(10);

/// A collector, and what it rejected.
struct Collector {
    endpoint: Endpoint,
    rejected: Cell<u64>,
}

impl Collector {
    fn note(&self, taken: Result<Taken, Unsent>) -> io::Result<()> {
        let taken = taken.map_err(|error| io::Error::other(error.to_string()))?;
        self.rejected.set(self.rejected.get() + taken.rejected);
        Ok(())
    }

    fn figures(&self, recorded: &Recorded, tree: &Tree) -> Result<(), Failure> {
        let mut send = |body: &[u8]| self.note(self.endpoint.post_metrics(body));
        otlp::metrics(recorded, tree, AT_ONCE, &mut send).map_err(unwritten)
    }
}

pub(super) fn send(path: &Path, to: &Path) -> Result<(), Failure> {
    let unreadable = |error: hearth_calls::Unreadable| Failure::input(error.to_string());
    let unsent = |error: io::Error| Failure::environment(error.to_string());
    let collector = Collector {
        endpoint: Endpoint::at(&to.to_string_lossy()),
        rejected: Cell::new(0),
    };
    let recorded = Recorded::open(path).map_err(unreadable)?;
    if !recorded.tallies().is_empty() {
        return send_figures(path, &collector);
    }
    if recorded.is_of_components() {
        return Err(Failure::input(
            "components recorded these calls, which are put in order when all are there; leave \
             out --follow, and send them when the program has ended",
        ));
    }
    let mut following = Following::open(path).map_err(unreadable)?;
    let (mut batch, mut tree) = (SpanBatch::new(AT_ONCE), Tree::default());
    let mut send = |body: &[u8]| collector.note(collector.endpoint.post_spans(body));
    let mut figures = Instant::now();
    loop {
        // It may end while its calls are read: then these are read once more.
        let runs = runs(following.recorded());
        let mut sent = Ok(());
        let mut visit = |recorded: &Recorded, step: hearth_calls::Step<'_>| {
            tree.add(step);
            if sent.is_ok() {
                sent = batch.step(recorded, step, &mut send);
            }
        };
        following.go_on(&mut visit);
        if !runs {
            following.end(&mut visit);
        }
        sent.map_err(unsent)?;
        batch
            .flush(following.recorded(), &mut send)
            .map_err(unsent)?;
        if !runs || figures.elapsed() >= FIGURES_EVERY {
            figures = Instant::now();
            collector.figures(following.recorded(), &tree)?;
        }
        if !runs {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    let rejected = match collector.rejected.get() {
        0 => String::new(),
        more => format!("; the collector rejected {more}"),
    };
    let counts = batch.counts();
    output::tell(format!(
        "{} and {} as spans in {}{rejected}; the program has ended",
        counted(counts.calls as usize, "call"),
        counted(counts.gaps as usize, "gap"),
        counted(counts.requests as usize, "request"),
    ));
    Ok(())
}

/// Sums have no calls: figures alone are sent.
fn send_figures(path: &Path, collector: &Collector) -> Result<(), Failure> {
    loop {
        let recorded = Recorded::open(path).map_err(|error| Failure::input(error.to_string()))?;
        let runs = runs(&recorded);
        let mut tree = Tree::default();
        tree.add_tallies(&recorded);
        collector.figures(&recorded, &tree)?;
        if !runs {
            output::tell("figures are sent; the program has ended");
            return Ok(());
        }
        thread::sleep(FIGURES_EVERY);
    }
}

/// Whether more may come.
fn runs(recorded: &Recorded) -> bool {
    !recorded.has_ended() && Path::new(&format!("/proc/{}", recorded.process())).exists()
}
