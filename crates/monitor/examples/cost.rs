//! Cost of a probe that is off, of one that is on, and of a call ten deep: to a file, to a receiver
//! over TCP, and as sums.
//!
//! `cargo run --release -p hearth-monitor --example cost`

#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use hearth_monitor::{Destination, Monitor, Options, Probe, call};
use hearth_watch::stream::{Law, Received, Receiver};

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
    let folder = std::env::temp_dir();
    let file = folder.join(format!("hearth-cost-{}.calls", std::process::id()));
    let deep_base = median(100_000, || {
        black_box(plain_deep(9));
    });
    println!("a call ten deep {deep_base:.0} ns; with probes that are on, waiting:");
    let bytes = || std::fs::metadata(&file).map_or(0, |data| data.len());
    deep("to a file", deep_base, Options::to_file(&file));
    println!("    {} bytes in the file", bytes());
    deep("as sums", deep_base, Options::aggregate_to(&file));
    let receiver = Receiver::at("127.0.0.1:0").expect("a port");
    let address = receiver.address().to_string();
    thread::scope(|scope| {
        scope.spawn(|| {
            let is_end = |news| matches!(news, Received::Ends(..));
            receiver.run(&|_| file.clone(), is_end);
        });
        deep(
            "to this process over TCP",
            deep_base,
            Options::to_tcp(&address),
        );
    });
    let _ = std::fs::remove_file(&file);
}

/// Prints the cost of a call ten deep whose records go where `options` say.
fn deep(to: &str, base: f64, options: Options) {
    let monitor = Monitor::begin(options.on("*").law(Law::Block)).expect("it begins");
    let time = median(100_000, || {
        black_box(probed_deep(9));
    });
    let report = monitor.finish();
    println!(
        "  {to}: {:+.0} ns; {} emitted, {} lost",
        time - base,
        report.emitted,
        report.lost
    );
}
