//! Check, within a few milliseconds, that a profile's transfers still hold on this machine.
//!
//! A profile becomes outdated without anyone's doing: a hypervisor moves its virtual processors to
//! more distant cores, firmware or the kernel change, or a disk is moved to another machine. One
//! pair of hardware threads for each relation ([`expected`]) takes turns at some lines, as in
//! [`pairs`](crate::pairs), and the time is compared with the profile's figure.
//!
//! A false alarm is worse than none: users ignore warnings after two of them. So a figure counts as
//! outdated only if it is off by more than [`OFF`], three times to the same side, and the three
//! agree ([`AGREE`]). Disturbances make a few samples very long: of each line the shortest sample
//! counts, and of the lines the lower quartile. Between the three the threads rest for [`REST`],
//! since a hypervisor may wake a virtual processor elsewhere and take it back a moment later. Idle
//! cores may still be slow: before the check believes that everything became slower, it keeps them
//! busy for [`WARM_NS`]. Where the two threads cannot run at the same time because others use their
//! cores, there is no answer ([`Freshness::Unknown`]).

use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hearth_machine::profile::{Profile, Provenance};
use hearth_machine::relation::{Closeness, Relation};
use hearth_machine::topology::OsThread;
use hearth_stats::quantile_of_sorted;
use hearth_sys::System;
use hearth_sys::clock::monotonic_ns;

use crate::context::LOOKS;
use crate::statistics::median;

/// Factor by which a transfer may differ from the profile's, either way. Lines differ from each
/// other by a half, and rounds of a probe by a fifth; smaller errors change few plans.
pub const OFF: f64 = 2.0;
/// Largest factor between measurements of one pair that count as an answer.
pub const AGREE: f64 = 1.5;
/// Measurements that must agree that a figure is off.
const TIMES: usize = 3;
/// Rest between measurements of a figure that seems to be off.
pub const REST: Duration = Duration::from_millis(10);
/// Time that cores need to reach their steady clock rate.
pub const WARM_NS: u64 = 5_000_000;
/// Time limit for one pair.
const PATIENCE_NS: u64 = 4_000_000;
/// Most pairs checked, nearest first.
const PAIRS_MAX: usize = 8;

/// Lines in a measurement, and the work on each, as in [`pairs`](crate::pairs).
const LINES: usize = 16;
const TRIPS_WARM: u64 = 8;
const TRIPS: u64 = 40;
const CHUNKS: usize = 3;
/// Transfers of a line in one measurement: two a round trip.
const TURNS: u64 = 2 * (TRIPS_WARM + TRIPS * CHUNKS as u64);

/// The profile's figure for a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Their relation.
    pub relation: Relation,
    /// The two, by the system's numbers.
    pub cores: [usize; 2],
    /// A transfer, one way.
    pub one_way_ns: f64,
    /// The same in each of the pair's states, if it has several.
    pub states_ns: Vec<f64>,
}

impl Expected {
    /// The figure that a measurement is nearest to, the pair being in one of its states.
    pub fn nearest_ns(&self, ns: f64) -> f64 {
        let far = |known: &f64| (ns / known).ln().abs();
        let states = self.states_ns.iter().copied();
        let nearest = states.min_by(|a, b| far(a).total_cmp(&far(b)));
        nearest.unwrap_or(self.one_way_ns)
    }
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Freshness {
    /// The figure is near enough.
    Holds,
    /// The figure is off; a transfer takes this long now.
    Off {
        /// One way.
        one_way_ns: f64,
    },
    /// Other work ran there.
    Unknown,
}

/// For each relation among the `allowed` cores, nearest first, the pair whose measured figure is
/// nearest to the usual one. None for relations without a measurement.
pub fn expected(profile: &Profile, allowed: &[usize]) -> Vec<Expected> {
    let topology = &profile.topology;
    let mut found: Vec<Expected> = profile
        .pairs
        .iter()
        .filter(|pair| pair.one_way_ns.provenance == Provenance::Measured)
        .filter(|pair| pair.one_way_ns.value > 0.0)
        .map(|pair| Expected {
            relation: topology.relation(pair.a, pair.b),
            cores: [pair.a, pair.b].map(|thread| number(topology.os_thread(thread))),
            one_way_ns: pair.one_way_ns.value,
            states_ns: pair.states.iter().map(|s| s.one_way_ns.value).collect(),
        })
        .filter(|pair| pair.relation.closeness != Closeness::Same)
        .filter(|pair| pair.cores.iter().all(|core| allowed.contains(core)))
        .collect();
    found.sort_by(|a, b| {
        let order = a.relation.cmp(&b.relation);
        order.then(a.one_way_ns.total_cmp(&b.one_way_ns))
    });
    let alike = found.chunk_by(|a, b| a.relation == b.relation);
    alike
        .map(|pairs| pairs[pairs.len() / 2].clone())
        .take(PAIRS_MAX)
        .collect()
}

fn number(thread: OsThread) -> usize {
    thread.0 as usize
}

/// Compares each pair with a new measurement, which takes less than a millisecond a pair, up to
/// four where the cores are busy, and some thirty where it seems to be off.
pub fn check(system: &'static dyn System, pairs: &[Expected]) -> Vec<Freshness> {
    let one = |pair: &Expected| check_one(system, pair);
    pairs.iter().map(one).collect()
}

fn check_one(system: &'static dyn System, pair: &Expected) -> Freshness {
    let mut is_first = true;
    judge(pair, |is_slower| {
        if !std::mem::take(&mut is_first) {
            std::thread::sleep(REST);
        }
        let warm_ns = if is_slower { WARM_NS } else { 0 };
        Session::begin(system, pair.cores, warm_ns)?.measure(warm_ns)
    })
}

/// Judges a figure by measurements. `measure` returns a transfer, or nothing where it cannot; its
/// argument says whether the one before was slower than expected.
fn judge(expected: &Expected, mut measure: impl FnMut(bool) -> Option<f64>) -> Freshness {
    let mut seen = Vec::with_capacity(TIMES);
    let mut is_slower = false;
    while seen.len() < TIMES {
        let Some(ns) = measure(is_slower) else {
            return Freshness::Unknown;
        };
        let ratio = ns / expected.nearest_ns(ns);
        if (1.0 / OFF..=OFF).contains(&ratio) {
            return Freshness::Holds;
        }
        let is_now = ratio > 1.0;
        if !seen.is_empty() && is_now != is_slower {
            return Freshness::Unknown;
        }
        is_slower = is_now;
        seen.push(ns);
    }
    let (least, most) = seen
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), &ns| {
            (least.min(ns), most.max(ns))
        });
    match median(&seen) {
        Some(one_way_ns) if most <= AGREE * least => Freshness::Off { one_way_ns },
        _ => Freshness::Unknown,
    }
}

/// Two threads that take turns until they are stopped.
///
/// | field | written by | read by |
/// |---|---|---|
/// | `lines` | both, in turn: the first at even numbers, the second at odd ones | both |
/// | `is_over` | either, once, when time is over or the first is done | both, where they wait |
/// | `end_ns` | neither | both, where they wait |
#[derive(Debug)]
struct Table {
    lines: [Line; LINES],
    is_over: AtomicBool,
    end_ns: u64,
}

/// A word alone on its line, and on the one that may be prefetched with it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// The check ended; no thread waits any more.
#[derive(Debug)]
struct Over;

impl Table {
    fn new(end_ns: u64) -> Table {
        Table {
            lines: array::from_fn(|_| Line::default()),
            is_over: AtomicBool::new(false),
            end_ns,
        }
    }

    /// Spins, and after some ten microseconds looks for the end. The other thread may have lost its
    /// core, and others may want this one.
    #[inline]
    fn until(&self, condition: impl Fn() -> bool) -> Result<(), Over> {
        loop {
            for _ in 0..LOOKS {
                if condition() {
                    return Ok(());
                }
            }
            // Relaxed: it says nothing about other memory.
            let is_late = monotonic_ns() >= self.end_ns;
            if is_late || self.is_over.load(Ordering::Relaxed) {
                self.is_over.store(true, Ordering::Relaxed);
                return Err(Over);
            }
            std::thread::yield_now();
        }
    }

    /// Waits for a number on a line and puts the next in its place. Release hands the turn over,
    /// acquire takes it; nothing else is ordered by it.
    #[inline]
    fn turn(&self, line: usize, number: u64) -> Result<(), Over> {
        let word = &self.lines[line].0;
        self.until(|| {
            word.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Takes the first thread's turns from a number on, until the last answer has arrived.
    #[inline]
    fn serve(&self, line: usize, from: u64, trips: u64) -> Result<(), Over> {
        let end = from + 2 * trips;
        for number in (from..end).step_by(2) {
            self.turn(line, number)?;
        }
        let word = &self.lines[line].0;
        // Unchanged: the line is back.
        self.until(|| {
            word.compare_exchange(u64::MAX, 0, Ordering::Acquire, Ordering::Acquire) == Err(end)
        })
    }

    /// Takes the second thread's turns, as long as the first continues.
    fn answer(&self) -> Over {
        let mut base = 0;
        loop {
            for line in 0..LINES {
                for number in (base..base + TURNS).step_by(2) {
                    if let Err(over) = self.turn(line, number + 1) {
                        return over;
                    }
                }
            }
            base += TURNS;
        }
    }
}

/// A pair being measured. The calling thread is one of the two, and pinned meanwhile.
struct Session {
    table: Arc<Table>,
    base: u64,
    _pinned: hearth_sys::affinity::Pinned,
}

impl Session {
    /// None if one of the two cores cannot be had.
    fn begin(system: &'static dyn System, cores: [usize; 2], warm_ns: u64) -> Option<Session> {
        let pinned = system.pin(cores[0]).ok()?;
        let table = Arc::new(Table::new(monotonic_ns() + warm_ns + PATIENCE_NS));
        let theirs = Arc::clone(&table);
        // Not joined: where its core is busy it may not even start before the check is over.
        let begun = std::thread::Builder::new().spawn(move || {
            let Ok(_pinned) = system.pin(cores[1]) else {
                theirs.is_over.store(true, Ordering::Relaxed);
                return;
            };
            let Over = theirs.answer();
        });
        begun.ok()?;
        Some(Session {
            table,
            base: 0,
            _pinned: pinned,
        })
    }

    /// A one-way transfer after some warm-up. None if the time is over before.
    fn measure(&mut self, warm_ns: u64) -> Option<f64> {
        let begin = monotonic_ns();
        while monotonic_ns() < begin + warm_ns {
            self.round()?;
        }
        self.round()
    }

    /// Measures all lines once.
    fn round(&mut self) -> Option<f64> {
        let mut shortest = [0.0; LINES];
        for (line, shortest) in shortest.iter_mut().enumerate() {
            *shortest = line_ns(&self.table, line, self.base).ok()?;
        }
        self.base += TURNS;
        shortest.sort_unstable_by(f64::total_cmp);
        quantile_of_sorted(&shortest, 0.25)
    }
}

/// A transfer of one line: that of the shortest chunk.
fn line_ns(table: &Table, line: usize, base: u64) -> Result<f64, Over> {
    table.serve(line, base, TRIPS_WARM)?;
    let mut shortest = u64::MAX;
    for chunk in 0..CHUNKS as u64 {
        let from = base + 2 * (TRIPS_WARM + TRIPS * chunk);
        let begin = monotonic_ns();
        table.serve(line, from, TRIPS)?;
        shortest = shortest.min(monotonic_ns() - begin);
    }
    Ok(shortest as f64 / (2 * TRIPS) as f64)
}

impl Drop for Session {
    fn drop(&mut self) {
        self.table.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_machine::profile::{Figure, PairTransfer};
    use hearth_machine::synthetic;
    use hearth_machine::topology::Thread;

    fn pair(states_ns: &[f64]) -> Expected {
        let machine = synthetic::parse("2 cores").unwrap();
        Expected {
            relation: machine.relation(Thread(0), Thread(1)),
            cores: [1 << 20, (1 << 20) + 1],
            one_way_ns: 30.0,
            states_ns: states_ns.to_vec(),
        }
    }

    /// The verdict on 30 ns by these measurements, and the number of measurements used.
    fn judged(found: &[Option<f64>]) -> (Freshness, usize) {
        judged_of(&pair(&[]), found)
    }

    fn judged_of(expected: &Expected, found: &[Option<f64>]) -> (Freshness, usize) {
        let mut count = 0;
        let verdict = judge(expected, |_| {
            count += 1;
            found[count - 1]
        });
        (verdict, count)
    }

    #[test]
    fn one_look_suffices_where_nothing_has_changed() {
        for ns in [15.0, 29.0, 30.0, 60.0] {
            assert_eq!(judged(&[Some(ns)]), (Freshness::Holds, 1), "{ns}");
        }
    }

    /// The mean of 26 and 260 ns is near neither.
    #[test]
    fn a_profile_holds_in_each_state() {
        let pair = pair(&[26.0, 260.0]);
        for ns in [20.0, 40.0, 190.0, 300.0] {
            let verdict = judged_of(&pair, &[Some(ns)]);
            assert_eq!(verdict, (Freshness::Holds, 1), "{ns}");
        }
        let slower = judged_of(&pair, &[Some(700.0), Some(710.0), Some(720.0)]);
        assert_eq!(slower, (Freshness::Off { one_way_ns: 710.0 }, 3));
    }

    #[test]
    fn off_is_what_was_found_three_times() {
        let slower = judged(&[Some(127.0), Some(120.0), Some(131.0)]);
        assert_eq!(slower, (Freshness::Off { one_way_ns: 127.0 }, 3));
        let faster = judged(&[Some(9.0), Some(10.0), Some(11.0)]);
        assert_eq!(faster, (Freshness::Off { one_way_ns: 10.0 }, 3));
    }

    #[test]
    fn noise_does_not_cry_wolf() {
        let once = judged(&[Some(127.0), Some(31.0)]);
        assert_eq!(once, (Freshness::Holds, 2));
        let twice = judged(&[Some(127.0), Some(120.0), Some(50.0)]);
        assert_eq!(twice, (Freshness::Holds, 3));
        let scattered = judged(&[Some(127.0), Some(400.0), Some(80.0)]);
        assert_eq!(scattered, (Freshness::Unknown, 3));
        let both_ways = judged(&[Some(127.0), Some(10.0)]);
        assert_eq!(both_ways, (Freshness::Unknown, 2));
        assert_eq!(judged(&[None]), (Freshness::Unknown, 1));
        assert_eq!(judged(&[Some(127.0), None]), (Freshness::Unknown, 2));
    }

    #[test]
    fn one_pair_stands_for_each_relation() {
        let machine = synthetic::parse("2 packages, 2 cores, 2 threads").unwrap();
        let mut profile = Profile::assumed(machine);
        assert_eq!(
            expected(&profile, &[0, 1, 2, 3]),
            [],
            "assumed is not measured"
        );
        profile.pairs.clear();
        for a in 0..8 {
            for b in a + 1..8 {
                let near = profile.topology.relation(Thread(a), Thread(b));
                let ns = match near.closeness {
                    Closeness::SmtSibling => 10.0,
                    Closeness::OtherPackage => 200.0 + f64::from(a + b),
                    _ => 50.0,
                };
                let figure = Figure::measured(2.0 * ns, 2.0 * ns, 2.0 * ns, 1, 0);
                let pair = PairTransfer::from_round_trip(Thread(a), Thread(b), figure);
                profile.pairs.push(pair);
            }
        }
        let all: Vec<usize> = (0..8).collect();
        let figures = |allowed: &[usize]| -> Vec<f64> {
            let pairs = expected(&profile, allowed);
            pairs.iter().map(|pair| pair.one_way_ns).collect()
        };
        assert_eq!(figures(&all), [10.0, 50.0, 207.0]);
        let first = number(profile.topology.os_thread(Thread(0)));
        assert_eq!(figures(&[first]), [0.0; 0]);
        for pair in expected(&profile, &all) {
            let [a, b] = pair.cores.map(|core| {
                let thread = profile.topology.thread_of(OsThread(core as u32));
                thread.unwrap()
            });
            assert_eq!(profile.topology.relation(a, b), pair.relation);
        }
    }

    #[test]
    fn cores_that_cannot_be_had_tell_nothing() {
        let verdicts = check(&hearth_sys::Linux, &[pair(&[])]);
        assert_eq!(verdicts, [Freshness::Unknown]);
    }
}
