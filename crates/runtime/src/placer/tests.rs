//! Programs whose traffic changes, as the placer sees them: samples come every tenth of a second.
//! Time here is counted, not waited for.

use std::collections::BTreeMap;
use std::ptr;

use hearth_machine::profile::Carrier;

use super::*;
use crate::exchange::carrier::traffic::{End, Seen, Who};

mod turns;

const TICK_NS: u64 = 100_000_000;
/// Ticks within which most programs here settle.
const SOON: usize = 30;

/// The load in a second: shares of a core that components compute, and messages from one component
/// to another.
struct Life<'a> {
    work: &'a [f64],
    messages: &'a [(usize, usize, f64)],
}

/// A placer, and its placement of the components.
struct Watched {
    placer: Placer,
    homes: Vec<u16>,
}

impl Watched {
    fn new(machine: &str, homes: &[u16]) -> Watched {
        let mut placer = Placer::new(Cores::look());
        placer.site = Some(Site::described(machine, Carrier::Worker));
        Watched {
            placer,
            homes: homes.to_vec(),
        }
    }

    /// Lets a tenth of a second pass. Returns how many components move.
    fn tick(&mut self, life: &Life) -> usize {
        let seen = seen(life, |one| self.homes[one]);
        self.placer.statistics.age(TICK_NS);
        self.placer.statistics.add(&seen);
        let Some(proposal) = self.placer.propose() else {
            return 0;
        };
        if !self.placer.is_worth(&proposal) || proposal.moves.is_empty() {
            return 0;
        }
        for &one in &proposal.moves {
            // The scene's components are in creation order, and numbered from 1.
            self.homes[proposal.scene.ids[one] as usize - 1] = proposal.plan.0[one].0 as u16;
        }
        self.placer.rest();
        // No real time passes here.
        self.placer.next_move = Instant::now();
        proposal.moves.len()
    }

    /// Runs as many ticks as a program may need to settle, and as many again in which nothing
    /// moves.
    fn settle(&mut self, life: &Life) {
        for _ in 0..SOON {
            self.tick(life);
        }
        let moved: usize = (0..SOON).map(|_| self.tick(life)).sum();
        assert_eq!(moved, 0, "nothing flaps: {:?}", self.homes);
    }
}

/// The carriers' samples of a tenth of a second.
fn seen(life: &Life, home: impl Fn(usize) -> u16) -> Vec<Seen> {
    let end = |one: usize| {
        Some(End {
            channel: 64 * (1 + one),
            owner: 1 + one as u64,
            port: ptr::null(),
        })
    };
    let of = |one: usize| Seen {
        who: Who {
            id: 1 + one as u64,
            of: ptr::null(),
            number: 1,
        },
        home: home(one),
        end: None,
        partner: None,
        is_send: false,
        is_shared: false,
        stays: false,
        runs: 1,
        bytes: 0,
        sized: 0,
        busy_ns: 0,
    };
    let works = life.work.iter().enumerate().map(|(one, share)| Seen {
        busy_ns: (share * TICK_NS as f64) as u64,
        ..of(one)
    });
    let talks = life.messages.iter().map(|&(from, to, rate)| {
        let runs = (rate / 10.0) as u64;
        Seen {
            end: end(from),
            partner: end(to),
            is_send: true,
            runs,
            bytes: 8 * runs,
            sized: runs,
            ..of(from)
        }
    });
    works.chain(talks).collect()
}

#[test]
fn whoever_talks_with_another_in_a_later_phase_goes_there() {
    let mut watched = Watched::new("2 packages, 2 cores", &[0, 1, 2, 3]);
    let together = |watched: &Watched, a: usize, b: usize| watched.homes[a] == watched.homes[b];
    let talk = 5e5;
    // The costs decide which one moves when; the resulting pairs are fixed.
    for (partner, other) in [(1, 2), (2, 1), (3, 1)] {
        let messages = [(0, partner, talk), (partner, 0, talk)];
        let mut work = [0.2; 4];
        work[0] = 0.05;
        work[partner] = 0.05;
        watched.settle(&Life {
            work: &work,
            messages: &messages,
        });
        assert!(together(&watched, 0, partner), "{:?}", watched.homes);
        assert!(!together(&watched, 0, other), "{:?}", watched.homes);
    }
}

#[test]
fn whoever_computes_in_a_later_phase_gets_a_core() {
    let mut watched = Watched::new("1 package, 2 cores", &[0, 0, 0, 0]);
    let messages = [(0, 1, 1e3), (1, 2, 1e3), (2, 3, 1e3)];
    for heavy in [3, 0, 2, 1] {
        let mut work = [0.2; 4];
        work[heavy] = 0.9;
        watched.settle(&Life {
            work: &work,
            messages: &messages,
        });
        let home = watched.homes[heavy];
        let beside = watched.homes.iter().filter(|&&at| at == home).count();
        assert_eq!(beside, 1, "stage {heavy} works: {:?}", watched.homes);
    }
}

/// A sixth is gained, until the other one works more.
#[test]
fn whoever_gains_little_for_a_short_time_stays() {
    let mut watched = Watched::new("1 package, 2 cores", &[0, 1, 0]);
    let mut moved = Vec::new();
    for phase in 0..20 {
        let work = match phase % 2 {
            0 => [0.65, 0.5, 0.25],
            _ => [0.5, 0.65, 0.25],
        };
        let life = Life {
            work: &work,
            messages: &[],
        };
        moved.push((0..SOON).map(|_| watched.tick(&life)).sum::<usize>());
    }
    assert!(moved[0] > 0, "{moved:?}");
    assert_eq!(moved[5..].iter().sum::<usize>(), 0, "{moved:?}");
}

#[test]
fn of_thousands_that_come_and_go_nothing_is_kept() {
    let mut statistics = Statistics::default();
    let mut most = 0;
    for tick in 0..200_u64 {
        statistics.age(TICK_NS);
        let life = Life {
            work: &[0.0001; 1000],
            messages: &[(1, 2, 100.0), (3, 4, 100.0)],
        };
        let mut newcomers = seen(&life, |_| 0);
        for one in &mut newcomers {
            one.who.id += 1000 * tick;
            for end in [&mut one.end, &mut one.partner].into_iter().flatten() {
                end.owner += 1000 * tick;
            }
        }
        statistics.add(&newcomers);
        most = most.max(statistics.components().len());
    }
    // Kept: components of the last three seconds, and of the last 20 where seen more often.
    assert!(most < 40_000, "{most}");
    for _ in 0..100 {
        statistics.age(TICK_NS);
    }
    assert_eq!(
        (
            statistics.components().len(),
            statistics.connections().len()
        ),
        (0, 0)
    );
}

#[test]
fn newcomers_get_a_place_and_move_nobody() {
    let mut placer = Placer::new(Cores::look());
    placer.site = Some(Site::described("1 package, 4 cores", Carrier::Threads));
    // Two slightly off their best place, and others without a place.
    let slots = placer.site.as_ref().map(|site| site.machine.slots().len());
    assert_eq!(slots, Some(4));
    placer.threads = BTreeMap::from([(1, CpuSlot(0)), (2, CpuSlot(1))]);
    placer.statistics.age(TICK_NS);
    let life = Life {
        work: &[0.1; 8],
        messages: &[(0, 1, 1e5)],
    };
    placer.statistics.add(&seen(&life, |_| NO_WORKER));
    let proposal = placer.propose().expect("there is a choice");
    let moves = proposal.of_the_homeless();
    assert_eq!(moves.moves, [2, 3, 4, 5, 6, 7]);
    assert_eq!((moves.plan.0[0], moves.plan.0[1]), (CpuSlot(0), CpuSlot(1)));
}

#[test]
fn whoever_was_sent_is_not_sent_again() {
    let mut watched = Watched::new("1 package, 2 cores", &[0, 5]);
    let life = Life {
        work: &[0.4, 0.4],
        messages: &[],
    };
    let placer = &mut watched.placer;
    placer.statistics.age(TICK_NS);
    placer.statistics.add(&seen(&life, |one| [0, 5][one]));
    let homeless = placer.propose().expect("one is nowhere").of_the_homeless();
    assert_eq!(homeless.moves, [1]);
    placer.statistics.went(2, homeless.plan.0[1].0 as u16);
    let again = placer.propose().expect("there is a choice");
    assert!(again.of_the_homeless().moves.is_empty());
}
