//! `watch-peers SIDE CALLS`: nanoseconds a call ten deep, with the probes of other crates.
//!
//! Prints the median over 21 batches of calls, after a first one that does not count.
//!
//! `watch-peers calls WAY CALLS WARM METHOD_NS DEPTH`: times of single calls with fastrace, for the
//! study of monitoring; see `calls`.

mod calls;

use std::env;
use std::hint::black_box;
use std::time::Instant;

use fastrace::collector::{Config, Reporter, SpanRecord};
use fastrace::prelude::{LocalSpan, Span, SpanContext};
use tracing_subscriber::prelude::*;

const DEPTH: u32 = 9;
const BATCHES: u32 = 21;

/// Takes all spans, and drops them.
pub(crate) struct Nowhere;

impl Reporter for Nowhere {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        black_box(spans.len());
    }
}

/// A layer that hears of spans and does nothing.
struct Idle;

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Idle {}

#[inline(never)]
fn plain(depth: u32) -> u32 {
    match depth {
        0 => black_box(1),
        depth => plain(depth - 1) + 1,
    }
}

#[inline(never)]
fn with_fastrace(depth: u32) -> u32 {
    let _span = LocalSpan::enter_with_local_parent("deep");
    match depth {
        0 => black_box(1),
        depth => with_fastrace(depth - 1) + 1,
    }
}

#[inline(never)]
fn with_tracing(depth: u32) -> u32 {
    let _span = tracing::info_span!("deep").entered();
    match depth {
        0 => black_box(1),
        depth => with_tracing(depth - 1) + 1,
    }
}

fn measure(calls: u32, mut action: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..=BATCHES)
        .map(|_| {
            let begin = Instant::now();
            (0..calls).for_each(|_| action());
            begin.elapsed().as_nanos() as f64 / f64::from(calls)
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut words = env::args().skip(1);
    let side = words.next().unwrap_or_default();
    if side == "calls" {
        let words: Vec<String> = words.collect();
        match calls::calls(&words) {
            Some(said) => print!("{said}"),
            None => {
                eprintln!("usage: watch-peers calls plain|off|nowhere CALLS WARM METHOD_NS DEPTH");
                std::process::exit(2);
            }
        }
        return;
    }
    let calls: u32 = words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(10_000);
    let ns = match side.as_str() {
        "plain" => measure(calls, || {
            black_box(plain(DEPTH));
        }),
        "fastrace-off" => measure(calls, || {
            black_box(with_fastrace(DEPTH));
        }),
        "fastrace" => {
            fastrace::set_reporter(Nowhere, Config::default());
            measure(calls, || {
                let root = Span::root("root", SpanContext::random());
                let _guard = root.set_local_parent();
                black_box(with_fastrace(DEPTH));
            })
        }
        "tracing-off" => measure(calls, || {
            black_box(with_tracing(DEPTH));
        }),
        "tracing" => {
            tracing_subscriber::registry().with(Idle).init();
            measure(calls, || {
                black_box(with_tracing(DEPTH));
            })
        }
        _ => {
            eprintln!("usage: watch-peers plain|fastrace-off|fastrace|tracing-off|tracing CALLS");
            std::process::exit(2);
        }
    };
    println!("{ns}");
    fastrace::flush();
}
