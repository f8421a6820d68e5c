//! Compares sections of every kind with other locks: the cost of a call alone, and when several
//! threads call.
//!
//! Fairness: every side runs the same closure on the same data, lines of 64 bytes that it adds to;
//! a thread adds to a given number of lines of its own between two calls. All sides use their
//! defaults. By message, the proprietor is a thread more than the others have, and shares their
//! cores. The sum of all lines must come out right.

use hearth::sync::{Copying, LockKind, Mode, Owned, Queue};
use hearth_benches::measure::in_order;
use hearth_benches::runtime::Effort;
use hearth_stats::{Summary, ratio};
use hearth_sys::affinity;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::time::Instant;

/// All sides; the others are compared with the first.
const SIDES: [&str; 12] = [
    "std",
    "parking_lot",
    "mutex",
    "ticket",
    "mcs",
    "cohort",
    "combine",
    "message",
    "zero-copy",
    "single-copy",
    "double-copy",
    "auto",
];
/// Lines that a section adds to.
const SECTIONS: [usize; 4] = [1, 8, 64, 512];
/// Lines of its own that a thread adds to between two calls.
const OWN: usize = 16;
/// Wanted duration of a run, in seconds.
const RUN: f64 = 0.1;
const FIRST_CALLS: u64 = 2_000;

#[derive(Clone)]
#[repr(align(64))]
struct Line(u64);

type Lines = Vec<Line>;

fn add(lines: &mut Lines) {
    for line in lines.iter_mut() {
        line.0 += 1;
    }
    black_box(lines.as_mut_ptr());
}

/// The data, protected as the side does it.
enum Section {
    Std(Mutex<Lines>),
    ParkingLot(parking_lot::Mutex<Lines>),
    Owned(Owned<Lines>),
}

impl Section {
    fn new(side: &str, lines: usize) -> Result<Section, String> {
        let data = vec![Line(0); lines];
        let owned = Owned::builder();
        let ring = |copying| {
            Owned::builder()
                .mode(Mode::Message)
                .queue(Queue::Ring(copying))
        };
        let owned = match side {
            "std" => return Ok(Section::Std(Mutex::new(data))),
            "parking_lot" => return Ok(Section::ParkingLot(parking_lot::Mutex::new(data))),
            "combine" => owned.mode(Mode::Combine),
            "message" => owned.mode(Mode::Message),
            "zero-copy" => ring(Copying::Zero),
            "single-copy" => ring(Copying::Single),
            "double-copy" => ring(Copying::Double),
            "auto" => owned.mode(Mode::Auto),
            lock => owned.lock(
                lock.parse::<LockKind>()
                    .map_err(|error| error.to_string())?,
            ),
        };
        let owned = owned.build(data).map_err(|error| error.to_string())?;
        Ok(Section::Owned(owned))
    }

    fn call(&self) {
        match self {
            Section::Std(data) => add(&mut data.lock().expect("nobody panics")),
            Section::ParkingLot(data) => add(&mut data.lock()),
            Section::Owned(data) => data.call(add),
        }
    }

    fn sum(&self) -> u64 {
        let sum = |lines: &mut Lines| lines.iter().map(|line| line.0).sum();
        match self {
            Section::Std(data) => sum(&mut data.lock().expect("nobody panics")),
            Section::ParkingLot(data) => sum(&mut data.lock()),
            Section::Owned(data) => data.call(sum),
        }
    }
}

struct Cell {
    threads: usize,
    lines: usize,
}

impl Cell {
    /// Seconds for this number of calls of each thread.
    fn measure(&self, side: &str, calls: u64) -> Result<f64, String> {
        let section = Section::new(side, self.lines)?;
        let begin = Barrier::new(self.threads);
        let seconds = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut own = vec![Line(0); OWN];
                        begin.wait();
                        let start = Instant::now();
                        for _ in 0..calls {
                            section.call();
                            add(&mut own);
                        }
                        (start, Instant::now())
                    })
                })
                .collect();
            // From the first call to the last answer: a thread that is woken late begins late.
            let times: Vec<(Instant, Instant)> = threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect();
            let first = times.iter().map(|(start, _)| *start).min();
            let last = times.iter().map(|(_, end)| *end).max();
            match (first, last) {
                (Some(first), Some(last)) => (last - first).as_secs_f64(),
                _ => f64::NAN,
            }
        });
        let wanted = calls * (self.threads * self.lines) as u64;
        match section.sum() {
            sum if sum == wanted => Ok(seconds),
            sum => Err(format!("{side} added up to {sum}, not {wanted}")),
        }
    }

    fn calls(&self, seconds: f64) -> Result<u64, String> {
        let took = self.measure(SIDES[0], FIRST_CALLS)?;
        Ok(((seconds / took.max(1e-6)) * FIRST_CALLS as f64).max(100.0) as u64)
    }
}

/// Compares the sides in each cell.
pub(crate) fn sync(effort: Effort) -> Result<String, String> {
    let seconds = if effort.brief { RUN / 5.0 } else { RUN };
    let cores = affinity::allowed().len();
    println!("sync: what does a call to a section cost, by way, threads and length?");
    println!(
        "  {cores} cores; {OWN} lines of its own between two calls; runs of about {seconds} s in turn, {} of each",
        effort.repeats
    );
    let mut rows = String::new();
    for threads in [1, cores, 4 * cores] {
        for lines in SECTIONS {
            println!("  {threads} threads, {lines} lines a section");
            rows += &row(&Cell { threads, lines }, seconds, effort.repeats)?;
        }
    }
    Ok(rows)
}

fn row(cell: &Cell, seconds: f64, repeats: usize) -> Result<String, String> {
    let calls = cell.calls(seconds)?;
    // Queues that hand over in order are slow with more threads than cores, and need not run as
    // long.
    let calls_of = |side: &str| match side {
        "ticket" | "mcs" | "cohort" if cell.threads > 2 => (calls / 20).max(100),
        _ => calls,
    };
    let kept = in_order(
        SIDES.len(),
        repeats,
        |order| order.reverse(),
        |side| {
            let calls = calls_of(SIDES[side]);
            let seconds = cell.measure(SIDES[side], calls)?;
            Ok((seconds / (calls * cell.threads as u64) as f64 * 1e9, false))
        },
    )?;
    let costs: Vec<&[f64]> = kept.iter().map(|kept| kept.values.as_slice()).collect();
    let mut rows = String::new();
    for (side, costs_of) in SIDES.iter().zip(&costs) {
        let found = Summary::of(costs_of).ok_or("no measurements")?;
        let beside = ratio(costs[0], costs_of).ok_or("no measurements")?;
        println!(
            "    {side:12} {:9.1} ns a call; {:.2} [{:.2}, {:.2}] of std's throughput",
            found.median, beside.value, beside.low, beside.high
        );
        let _ = writeln!(
            rows,
            "sync {} threads {} lines {side},{repeats},{},{},{},{},{}",
            cell.threads,
            cell.lines,
            found.median,
            Summary::of(costs[0]).map_or(0.0, |found| found.median),
            beside.value,
            beside.low,
            beside.high
        );
    }
    Ok(rows)
}
