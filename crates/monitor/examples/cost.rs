//! Cost of a probe that is off, of one that is on, and of a call ten deep with the file's writer.
//!
//! `cargo run --release -p hearth-monitor --example cost`

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use hearth_monitor::{Destination, Monitor, Options, Probe, call};
use hearth_watch::stream::Law;

const RUNS: usize = 21;

#[inline(never)]
fn plain(number: u64) -> u64 {
    black_box(number + 1)
}

#[inline(never)]
fn probed(number: u64) -> u64 {
    call!("cost.probed");
    black_box(number + 1)
}

#[inline(never)]
fn surrounded(number: u64) -> u64 {
    static PROBE: Probe = Probe::new("cost.surrounded");
    PROBE.around(|| black_box(number + 1))
}

#[inline(never)]
fn plain_deep(depth: u32) -> u32 {
    match depth {
        0 => black_box(1),
        depth => plain_deep(depth - 1) + 1,
    }
}

#[inline(never)]
fn probed_deep(depth: u32) -> u32 {
    call!("cost.deep");
    match depth {
        0 => black_box(1),
        depth => probed_deep(depth - 1) + 1,
    }
}

/// Median nanoseconds a call over runs of `calls`.
fn median(calls: u32, mut action: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..calls {
                action();
            }
            begin.elapsed().as_nanos() as f64 / f64::from(calls)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn main() {
    let calls = 1_000_000;
    let base = median(calls, || {
        black_box(plain(1));
    });
    let off = median(calls, || {
        black_box(probed(1));
    });
    let around = median(calls, || {
        black_box(surrounded(1));
    });
    println!(
        "a call {base:.2} ns; with a probe that is off {:+.2} ns, around it {:+.2} ns",
        off - base,
        around - base
    );
    let monitor = Monitor::begin(Options::to(Destination::Nowhere).on("*")).expect("it begins");
    let on = median(calls, || {
        black_box(probed(1));
    });
    let report = monitor.finish();
    println!(
        "on, to nowhere: {:+.2} ns a call, {:.2} ns a record; {} emitted, {} lost",
        on - base,
        (on - base) / 2.0,
        report.emitted,
        report.lost
    );
    let file = std::env::temp_dir().join(format!("hearth-cost-{}.calls", std::process::id()));
    let options = Options::to_file(&file).on("*").law(Law::Block);
    let monitor = Monitor::begin(options).expect("it begins");
    let deep_base = median(100_000, || {
        black_box(plain_deep(9));
    });
    let deep = median(100_000, || {
        black_box(probed_deep(9));
    });
    let report = monitor.finish();
    println!(
        "ten deep, to a file, waiting: {:+.0} ns over {deep_base:.0}; {} emitted, {} lost, {} bytes",
        deep - deep_base,
        report.emitted,
        report.lost,
        std::fs::metadata(&file).map_or(0, |data| data.len())
    );
    let _ = std::fs::remove_file(&file);
}
