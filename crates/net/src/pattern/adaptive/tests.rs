//! The controller on simulated machines.

use super::control::{Control, Seen, Way};
use crate::pattern::crew::{Which, choose};

const SECOND: f64 = 1e9;
/// Threads of each kind.
const MOST: usize = 4;
const CORES: usize = 2;
const KINDS: [&str; 2] = ["edge", "io_uring"];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// Two cores for the server and its clients; each client asks again when it is answered.
#[derive(Clone, Copy, Debug)]
struct Load {
    connections: usize,
    work_us: f64,
}

impl Load {
    /// The server's microseconds for a request. A ring serves all waiting requests with one system
    /// call; edge needs two for each.
    fn cost(&self, way: Way) -> f64 {
        let together = (self.connections / way.threads).clamp(1, 32) as f64;
        let calls = match way.kind {
            0 => 3.0 + 1.5 / together,
            _ => 1.8 + 2.5 / together,
        };
        // Threads that wake each other's cores.
        self.work_us + calls + 0.4 * (way.threads - 1) as f64
    }

    /// Replies per second.
    fn rate(&self, way: Way) -> f64 {
        let asking = 2.0;
        let server = self.cost(way);
        let at_once = way.threads.min(self.connections) as f64;
        let waking = if way.spins { 2.0 } else { 10.0 };
        let one_by_one = self.connections as f64 / (server + asking + waking);
        let all = 2.0 / (server + asking);
        1e6 * (at_once / server)
            .min(1.0 / asking)
            .min(all)
            .min(one_by_one)
    }

    fn best(&self) -> f64 {
        let ways = [(1, true), (1, false), (2, false), (4, false)];
        let of = |kind| {
            ways.map(|(threads, spins)| {
                self.rate(Way {
                    kind,
                    threads,
                    spins,
                })
            })
        };
        (0..KINDS.len()).flat_map(of).fold(0.0, f64::max)
    }

    /// The share of its time for which each working thread is busy.
    fn busy(&self, way: Way) -> f64 {
        (self.rate(way) * self.cost(way) / 1e6 / way.threads as f64).min(1.0)
    }
}

/// A server under a load that may change.
struct Simulation {
    control: Control,
    held: Vec<usize>,
    random: Random,
    noise: f64,
    now: f64,
    moved: usize,
    /// Ends of windows, replies, and the replies of the best way.
    windows: Vec<(f64, f64, f64)>,
}

impl Simulation {
    fn new(noise: f64, seed: u64) -> Simulation {
        let kinds: Vec<String> = KINDS.iter().map(|kind| (*kind).to_owned()).collect();
        Simulation {
            control: Control::new(&kinds, MOST, CORES, SECOND),
            held: vec![0; MOST * KINDS.len()],
            random: Random(seed),
            noise,
            now: 0.0,
            moved: 0,
            windows: Vec::new(),
        }
    }

    fn connect(&mut self, connections: usize) {
        self.held.fill(0);
        for number in 0..connections {
            let active = self.control.active();
            self.held[active.start + number % active.len()] += 1;
        }
    }

    fn run(&mut self, load: Load, seconds: f64) {
        let until = self.now + seconds;
        let mut ticks = self.control.ticks();
        while self.now < until {
            let way = self.control.way();
            let length = ticks as f64 / SECOND;
            self.now += length;
            let factor = (self.noise * self.random.normal()).exp();
            // A connection that moves is not served for some microseconds.
            let lost = (self.moved as f64 * 4e-6).min(length);
            self.moved = 0;
            let calls = load.rate(way) * factor * (length - lost);
            self.windows
                .push((self.now, calls, load.best() * factor * length));
            let mut busy = vec![0.0; self.held.len()];
            busy[self.control.active()].fill(load.busy(way));
            let plan = self.control.observe(&Seen {
                ticks,
                calls: calls as u64,
                busy: &busy,
                held: &self.held,
            });
            for (from, order) in plan.moves {
                let count = order.count.min(self.held[from]);
                self.held[from] -= count;
                self.held[order.to] += count;
                self.moved += count;
            }
            ticks = plan.ticks;
        }
    }

    /// The replies as a share of the best way's, from one time to another.
    fn share(&self, from: f64, to: f64) -> f64 {
        let windows = self.windows.iter();
        let some = windows.filter(|(end, ..)| (from..to).contains(end));
        let (calls, best) = some.fold((0.0, 0.0), |sum, window| {
            (sum.0 + window.1, sum.1 + window.2)
        });
        calls / best
    }
}

fn loads() -> impl Iterator<Item = Load> {
    [1, 8, 64, 512].into_iter().flat_map(|connections| {
        [0.0, 10.0, 100.0].map(|work_us| Load {
            connections,
            work_us,
        })
    })
}

#[test]
fn it_settles_within_two_seconds_and_stays() {
    for load in loads() {
        for (noise, seed) in [(0.01, 1), (0.05, 2), (0.05, 3), (0.08, 4)] {
            let mut simulation = Simulation::new(noise, seed);
            simulation.connect(load.connections);
            simulation.run(load, 40.0);
            let why = simulation.control.explain();
            let home = load.rate(simulation.control.home()) / load.best();
            assert!(home > 0.95, "{load:?}, noise {noise}: {home:.3}, {why}");
            let share = simulation.share(2.0, 40.0);
            assert!(share > 0.95, "{load:?}, noise {noise}: {share:.3}, {why}");
            let switches = simulation.control.switches();
            assert!(switches <= 4, "{load:?}, noise {noise}: {switches}, {why}");
        }
    }
}

#[test]
fn a_change_of_load_is_followed_within_two_seconds() {
    let one = Load {
        connections: 1,
        work_us: 0.0,
    };
    let many = Load {
        connections: 512,
        work_us: 100.0,
    };
    let quick = Load {
        connections: 64,
        work_us: 0.0,
    };
    for seed in 0..5 {
        let mut simulation = Simulation::new(0.05, seed);
        for load in [one, many, quick, one, quick, many] {
            simulation.connect(load.connections);
            let begun = simulation.now;
            simulation.run(load, 10.0);
            let share = simulation.share(begun + 2.0, begun + 10.0);
            let why = simulation.control.explain();
            assert!(share > 0.95, "{load:?}, seed {seed}: {share:.3}, {why}");
        }
    }
}

#[test]
fn trials_cost_little_once_it_has_settled() {
    for load in loads() {
        let mut simulation = Simulation::new(0.03, 7);
        simulation.connect(load.connections);
        simulation.run(load, 60.0);
        let home = load.rate(simulation.control.home()) / load.best();
        let share = simulation.share(5.0, 60.0);
        assert!(share > 0.975 * home, "{load:?}: {share:.3} of {home:.3}");
    }
}

#[test]
fn the_threads_at_work_have_all_connections_and_as_many_each() {
    for load in loads() {
        let mut simulation = Simulation::new(0.05, 11);
        simulation.connect(load.connections);
        for _ in 0..300 {
            simulation.run(load, 0.01);
            let active = simulation.control.active();
            let held = &simulation.held;
            assert_eq!(held.iter().sum::<usize>(), load.connections);
            assert_eq!(held[active.clone()].iter().sum::<usize>(), load.connections);
            let most = held[active.clone()].iter().max().unwrap();
            let least = held[active.clone()].iter().min().unwrap();
            assert!(most - least <= 1, "{held:?} {active:?}");
        }
    }
}

/// One connection makes long requests without end; the others are given to a thread that has time
/// for them. After that nothing moves any more.
#[test]
fn who_asks_too_much_is_left_alone() {
    let kinds = ["edge".to_owned()];
    let mut control = Control::new(&kinds, 2, CORES, SECOND);
    // The recent work of each connection; the first asks for most.
    let heavy = 90_000;
    let mut there: Vec<Vec<u64>> = vec![vec![500; 11], Vec::new()];
    there[0][0] = heavy;
    let mut lonely = 0;
    for _ in 0..3000 {
        let way = control.way();
        // The heavy one is on the first thread; each other one needs a fiftieth of a thread.
        let held: Vec<usize> = there.iter().map(Vec::len).collect();
        let on_second = held[1] as f64;
        let rate = match way.threads {
            1 => 50_000.0,
            _ => 10_000.0 + on_second * 15_000.0,
        };
        let ticks = control.ticks();
        let calls = (rate * ticks as f64 / SECOND) as u64;
        let busy = [1.0, on_second / 50.0];
        let plan = control.observe(&Seen {
            ticks,
            calls,
            busy: &busy,
            held: &held,
        });
        for (from, order) in plan.moves {
            if way.threads == 2 && order.which == Which::Lightest {
                assert_eq!((from, order.to), (0, 1));
            }
            let keyed = there[from].iter().copied().zip(0..).collect();
            let mut chosen = choose(keyed, order);
            chosen.sort_unstable();
            for key in chosen.into_iter().rev() {
                let connection = there[from].remove(key);
                there[order.to].push(connection);
            }
        }
        lonely += u32::from(there.iter().any(|one| one == &[heavy]));
    }
    assert!(lonely > 1500, "{lonely} {there:?} {}", control.explain());
}

#[test]
fn more_threads_than_connections_are_not_tried() {
    let kinds: Vec<String> = (0..1).map(|_| "edge".to_owned()).collect();
    let mut control = Control::new(&kinds, 8, CORES, SECOND);
    for _ in 0..2000 {
        control.observe(&Seen {
            ticks: control.ticks(),
            calls: 1000,
            busy: &[1.0; 8],
            held: &[1, 0, 0, 0, 0, 0, 0, 0],
        });
        assert_eq!(control.active(), 0..1);
    }
}
