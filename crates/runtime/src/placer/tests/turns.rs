//! Pairs of two kinds, alike on one core: clients that wait for their servers, and neighbours that
//! compute and then exchange. Their places determine the samples of each.

use super::*;
use crate::ground::choices::scramble;

/// A pair of components: they compute in turn, or both at once and then exchange; ns a message.
#[derive(Clone, Copy)]
struct Pair {
    computes: [f64; 2],
    takes_turns: bool,
    /// True cost of a message between two cores; sender and receiver compute half of it each.
    message_ns: f64,
}

const ONE_CORE_NS: f64 = 16.0;

impl Pair {
    /// Each one's share of a core, and the rate of rounds, with the cores otherwise idle.
    fn alone(&self, is_apart: bool) -> ([f64; 2], f64) {
        let messages = if is_apart {
            2.0 * self.message_ns
        } else {
            ONE_CORE_NS
        };
        let [a, b] = self.computes;
        let round = match self.takes_turns || !is_apart {
            true => a + b + messages,
            false => a.max(b) + messages,
        };
        let share = |computes: f64| (computes + messages / 4.0) / round;
        ([share(a), share(b)], 1e9 / round)
    }
}

/// A placer with pairs, one behind the other: components 0 and 1 are the first.
struct Pairs {
    watched: Watched,
    pairs: Vec<Pair>,
    random: u64,
}

impl Pairs {
    fn new(machine: &str, pairs: &[Pair]) -> Pairs {
        Pairs {
            watched: Watched::new(machine, &vec![0; 2 * pairs.len()]),
            pairs: pairs.to_vec(),
            random: 7,
        }
    }

    fn is_apart(&self, pair: usize) -> bool {
        self.watched.homes[2 * pair] != self.watched.homes[2 * pair + 1]
    }

    /// Runs some ticks. Returns how many moves there were.
    fn go_on(&mut self, ticks: usize) -> usize {
        (0..ticks).filter(|_| self.tick() > 0).count()
    }

    /// Lets a tenth of a second pass.
    fn tick(&mut self) -> usize {
        let (work, messages) = self.see();
        self.watched.tick(&Life {
            work: &work,
            messages: &messages,
        })
    }

    /// The samples of a tick: each one's share of a core, and messages.
    fn see(&mut self) -> (Vec<f64>, Vec<(usize, usize, f64)>) {
        let alone: Vec<_> = (0..self.pairs.len())
            .map(|pair| self.pairs[pair].alone(self.is_apart(pair)))
            .collect();
        let homes = self.watched.homes.clone();
        let load = |at: u16| -> f64 {
            let shares = alone.iter().flat_map(|(shares, _)| *shares);
            let there = homes.iter().zip(shares).filter(|(home, _)| **home == at);
            there.map(|(_, share)| share).sum()
        };
        // Samples are off by a twentieth.
        let mut noise = || {
            self.random = scramble(self.random.wrapping_add(1));
            0.95 + 0.1 * f64::from(self.random as u32) / f64::from(u32::MAX)
        };
        let (mut work, mut messages) = (Vec::new(), Vec::new());
        for (pair, (shares, rate)) in alone.iter().enumerate() {
            let (a, b) = (2 * pair, 2 * pair + 1);
            let slower = load(homes[a]).max(load(homes[b])).max(1.0);
            work.extend(shares.iter().map(|share| share / slower * noise()));
            messages.push((a, b, rate / slower * noise()));
            messages.push((b, a, rate / slower * noise()));
        }
        (work, messages)
    }
}

/// Ten seconds.
const LONG: usize = 100;

fn turns(computes: [f64; 2], message_ns: f64) -> Pair {
    Pair {
        computes,
        takes_turns: true,
        message_ns,
    }
}

fn neighbours(computes: [f64; 2], message_ns: f64) -> Pair {
    Pair {
        takes_turns: false,
        ..turns(computes, message_ns)
    }
}

/// They move without turns being detected, too: this checks that detecting them causes no flapping.
#[test]
fn whoever_takes_turns_comes_to_rest() {
    let programs = [
        ("1 package, 2 cores", [100.0, 100.0], 300.0, 1),
        ("1 package, 2 cores", [1e3, 1e3], 100.0, 2),
        ("2 packages, 2 cores", [300.0, 900.0], 3e3, 3),
        // A message as in an emulator, which is unknown to the model.
        ("4 packages, 2 cores", [3e3, 1e3], 20e3, 4),
        ("4 packages, 2 cores", [1e3, 1e3], 20e3, 2),
    ];
    for (machine, computes, message_ns, count) in programs {
        let pairs = vec![turns(computes, message_ns); count];
        let mut program = Pairs::new(machine, &pairs);
        let first = program.go_on(LONG);
        let later = program.go_on(LONG);
        let which = format!("{machine}, {computes:?}, {message_ns}, {count} pairs");
        assert!(first <= 6 * count, "{which}: {first} moves");
        assert_eq!(later, 0, "{which}: {:?}", program.watched.homes);
    }
}

#[test]
fn neighbours_that_compute_at_once_are_apart() {
    for computes in [[5e3, 5e3], [3e3, 2e3], [20e3, 20e3]] {
        let mut program = Pairs::new("1 package, 2 cores", &[neighbours(computes, 100.0)]);
        program.go_on(LONG);
        assert!(program.is_apart(0), "{computes:?}");
        assert_eq!(program.go_on(LONG), 0, "{computes:?}");
    }
}

#[test]
fn turns_are_seen_on_two_cores_alone() {
    let is_known = |pair: Pair, homes: [u16; 2]| {
        let mut program = Pairs::new("1 package, 2 cores", &[pair]);
        program.watched.homes = homes.to_vec();
        for _ in 0..10 {
            let (work, messages) = program.see();
            let life = Life {
                work: &work,
                messages: &messages,
            };
            let placer = &mut program.watched.placer;
            placer.statistics.age(TICK_NS);
            placer.statistics.add(&seen(&life, |one| homes[one]));
            placer.propose();
        }
        program.watched.placer.turns.takes_turns(1, 2)
    };
    let both = [turns([1e3, 1e3], 100.0), neighbours([1e3, 1e3], 100.0)];
    assert_eq!(both.map(|pair| is_known(pair, [0, 1])), [true, false]);
    assert_eq!(both.map(|pair| is_known(pair, [0, 0])), [false, false]);
}

#[test]
fn whoever_took_turns_and_computes_at_once_later_gets_two_cores() {
    let mut program = Pairs::new("1 package, 2 cores", &[turns([200.0, 200.0], 20e3)]);
    program.go_on(LONG);
    program.pairs = vec![neighbours([20e3, 20e3], 100.0)];
    program.go_on(LONG);
    assert!(program.is_apart(0));
}
