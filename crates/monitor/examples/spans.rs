//! Cost of a span of the crate `tracing`: off and on, and by the ways to be asked about it.
//!
//! `cargo run --release -p hearth-monitor --features tracing --example spans`

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use hearth_monitor::tracing::{Layer, Subscriber};
use hearth_monitor::{Destination, Monitor, Options};
use tracing::dispatcher::{Dispatch, with_default};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, info_span};
use tracing_subscriber::prelude::*;

const RUNS: usize = 21;
const CALLS: u32 = 300_000;

/// Subscriber that wants to be asked at each span.
struct Asked(Subscriber);

impl tracing::Subscriber for Asked {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.0.register_callsite(metadata);
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.new_span(span)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.event(event);
    }

    fn enter(&self, span: &Id) {
        self.0.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.0.exit(span);
    }
}

#[inline(never)]
fn plain(number: u64) -> u64 {
    black_box(number + 1)
}

#[inline(never)]
fn spanned(number: u64) -> u64 {
    let _span = info_span!("spanned").entered();
    black_box(number + 1)
}

/// Median nanoseconds a call.
fn median(action: impl Fn()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            (0..CALLS).for_each(|_| action());
            begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn main() {
    let base = median(|| {
        black_box(plain(1));
    });
    println!("a call {base:.2} ns; with a span, over that:");
    let show = |name: &str, dispatch: Option<Dispatch>| {
        let cost = |rule: &str| {
            let monitor = Monitor::begin(Options::to(Destination::Nowhere).on(rule));
            let monitor = monitor.expect("it begins");
            let cost = median(|| {
                black_box(spanned(1));
            });
            (cost - base, monitor.finish())
        };
        let both = || (cost("nothing"), cost("*"));
        let ((off, _), (on, report)) = match &dispatch {
            Some(dispatch) => with_default(dispatch, both),
            None => both(),
        };
        let (emitted, lost) = (report.emitted, report.lost);
        println!("{name:<40} off {off:6.2} ns, on {on:6.2} ns; {emitted} records, {lost} lost");
    };
    show("no subscriber", None);
    let bare = Dispatch::new(tracing_subscriber::registry());
    show("a registry without layers", Some(bare));
    show(
        "Layer over a registry",
        Some(Dispatch::new(tracing_subscriber::registry().with(Layer))),
    );
    show(
        "Subscriber, asked at each span",
        Some(Dispatch::new(Asked(Subscriber::new()))),
    );
    show("Subscriber", Some(Dispatch::new(Subscriber::new())));
}
