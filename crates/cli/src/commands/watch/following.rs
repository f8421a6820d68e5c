//! Sends the calls of a program that runs to a collector of OpenTelemetry.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hearth_calls::formats::otlp::SpanBatch;
use hearth_calls::{Following, Recorded, Tree};
use hearth_terminal::{Failure, output};

use super::collector::{AT_ONCE, Collector};

/// Time between two looks at the file, and two requests with figures.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const FIGURES_EVERY: Duration = Duration::from_secs(10);

pub(super) fn send(path: &Path, to: &Path) -> Result<(), Failure> {
    let unreadable = |error: hearth_calls::Unreadable| Failure::input(error.to_string());
    let unsent = |error: io::Error| Failure::environment(error.to_string());
    let collector = Collector::at(to);
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
    let mut send = |body: &[u8]| collector.spans(body);
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
    let told = collector.told(batch.counts());
    output::tell(format!("{told}; the program has ended"));
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
