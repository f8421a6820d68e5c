//! Choice among a round's matches: those that are applied overlap in nothing that one of them
//! writes.
//!
//! Both ways give the same choice: going through all by rank, a match is taken unless it overlaps
//! with one that was. Several threads find it in passes: whoever has no undecided match of a lower
//! rank in the way wins, whoever overlaps with a winner is out, the rest go on.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::compile::Compiled;
use crate::words::{PASSES, RANKS, Words};

/// Matches found in a round: for each rule, in order, its matches in a row, by rank.
pub(crate) struct Found {
    /// For each rule `stride` numbers a match.
    pub(crate) flat: Vec<Vec<u32>>,
}

/// A match among those found: its rule, and the place of its first number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) rule: u32,
    pub(crate) start: usize,
}

impl Found {
    pub(crate) fn len(&self, rules: &[Compiled]) -> usize {
        let rules = self.flat.iter().zip(rules);
        rules.map(|(flat, rule)| flat.len() / rule.stride()).sum()
    }

    fn all<'a>(&'a self, rules: &'a [Compiled]) -> impl Iterator<Item = Chosen> + 'a {
        (0..)
            .zip(rules)
            .zip(&self.flat)
            .flat_map(|((rule, compiled), flat)| {
                let starts = (0..flat.len()).step_by(compiled.stride());
                starts.map(move |start| Chosen { rule, start })
            })
    }

    /// Vertices of a match, each with whether the rule writes it.
    fn wants<'a>(
        &'a self,
        rules: &'a [Compiled],
        chosen: Chosen,
    ) -> impl Iterator<Item = (usize, bool)> + 'a {
        let writes = &rules[chosen.rule as usize].writes;
        let vertices = &self.flat[chosen.rule as usize][chosen.start..];
        vertices
            .iter()
            .zip(writes)
            .map(|(vertex, writes)| (*vertex as usize, *writes))
    }
}

/// Passes of several threads after which one takes the rest: in a long chain, in which each match
/// overlaps with the next, a pass decides two.
const PASSES_TOGETHER: usize = 12;

/// Locks without atomics, for one thread: the round, and whether it is held for writing.
#[derive(Default)]
pub(crate) struct PlainLocks {
    locks: Vec<u64>,
    round: u64,
}

impl PlainLocks {
    /// Takes matches by rank.
    pub(crate) fn choose(
        &mut self,
        found: &Found,
        rules: &[Compiled],
        vertices: usize,
    ) -> Vec<Chosen> {
        self.round += 1;
        self.locks.resize(vertices, 0);
        let (locks, round) = (&mut self.locks, self.round);
        let mut chosen = Vec::new();
        for one in found.all(rules) {
            let is_free = found.wants(rules, one).all(|(vertex, writes)| {
                let lock = locks[vertex];
                lock >> 1 != round || (!writes && lock & 1 == 0)
            });
            if is_free {
                for (vertex, writes) in found.wants(rules, one) {
                    locks[vertex] = round << 1 | u64::from(writes);
                }
                chosen.push(one);
            }
        }
        chosen
    }
}

/// Locks for several threads.
pub(crate) struct SharedLocks {
    words: Vec<Words>,
    round: u64,
    pass: u64,
}

impl SharedLocks {
    pub(crate) fn new() -> SharedLocks {
        SharedLocks {
            words: Vec::new(),
            round: 0,
            pass: 0,
        }
    }

    /// Takes the same matches as [`PlainLocks::choose`], with several threads.
    pub(crate) fn choose(
        &mut self,
        found: &Found,
        rules: &[Compiled],
        vertices: usize,
        threads: usize,
    ) -> Vec<Chosen> {
        self.round += 1;
        self.words
            .resize_with(vertices.max(self.words.len()), Words::new);
        let all: Vec<Chosen> = found.all(rules).collect();
        let mut chosen = Vec::new();
        for window in all.chunks(RANKS as usize) {
            if self.pass + PASSES_TOGETHER as u64 >= PASSES {
                self.words.iter_mut().for_each(Words::forget);
                self.pass = 0;
            }
            let taken = self.window(found, rules, window, threads);
            let both = window.iter().zip(taken);
            chosen.extend(both.filter(|(_, taken)| *taken).map(|(one, _)| *one));
        }
        chosen
    }

    /// Which matches of a window are taken.
    fn window(
        &mut self,
        found: &Found,
        rules: &[Compiled],
        window: &[Chosen],
        threads: usize,
    ) -> Vec<bool> {
        let mut taken = vec![false; window.len()];
        let share = window.len().div_ceil(threads).max(1);
        let barrier = Barrier::new(taken.chunks(share).len());
        let undecided = AtomicUsize::new(window.len());
        let (round, before) = (self.round, self.pass);
        let words = &self.words;
        let mut left: Vec<u32> = std::thread::scope(|scope| {
            let contenders: Vec<_> = taken
                .chunks_mut(share)
                .enumerate()
                .map(|(place, taken)| {
                    let contender = Contender {
                        words,
                        found,
                        rules,
                        window,
                        round,
                        first: place * share,
                    };
                    let (barrier, undecided) = (&barrier, &undecided);
                    scope.spawn(move || contender.contend(taken, before, barrier, undecided))
                })
                .collect();
            let contenders = contenders.into_iter();
            contenders
                .flat_map(|one| one.join().expect("a contender does not panic"))
                .collect()
        });
        self.pass += PASSES_TOGETHER as u64;
        left.sort_unstable();
        for place in left {
            let one = window[place as usize];
            let mut wants = found.wants(rules, one);
            if wants.all(|(vertex, writes)| !words[vertex].is_locked(round, writes)) {
                for (vertex, writes) in found.wants(rules, one) {
                    words[vertex].lock(round, writes);
                }
                taken[place as usize] = true;
            }
        }
        taken
    }
}

/// One thread's matches in the contest for a window.
struct Contender<'a> {
    words: &'a [Words],
    found: &'a Found,
    rules: &'a [Compiled],
    window: &'a [Chosen],
    round: u64,
    /// Rank of the thread's first match.
    first: usize,
}

impl Contender<'_> {
    /// Marks the taken ones; returns ranks that are undecided after the last pass.
    fn contend(
        &self,
        taken: &mut [bool],
        before: u64,
        barrier: &Barrier,
        undecided: &AtomicUsize,
    ) -> Vec<u32> {
        let mut open: Vec<u32> = (self.first..)
            .take(taken.len())
            .map(|rank| rank as u32)
            .collect();
        for pass in before + 1..=before + PASSES_TOGETHER as u64 {
            let all = open.len();
            open.retain(|rank| {
                let is_free = self
                    .wants(*rank)
                    .all(|(words, writes)| !words.is_locked(self.round, writes));
                if is_free {
                    self.wants(*rank)
                        .for_each(|(words, writes)| words.claim(pass, *rank, writes));
                }
                is_free
            });
            barrier.wait();
            open.retain(|rank| {
                let wins = self
                    .wants(*rank)
                    .all(|(words, writes)| words.is_first(*rank, writes));
                if wins {
                    self.wants(*rank)
                        .for_each(|(words, writes)| words.lock(self.round, writes));
                    taken[*rank as usize - self.first] = true;
                }
                !wins
            });
            undecided.fetch_sub(all - open.len(), Ordering::Relaxed);
            barrier.wait();
            // Nobody changes the number before all have passed the next barrier, or none has.
            if undecided.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
        open
    }

    fn wants(&self, rank: u32) -> impl Iterator<Item = (&Words, bool)> {
        let wants = self.found.wants(self.rules, self.window[rank as usize]);
        wants.map(|(vertex, writes)| (&self.words[vertex], writes))
    }
}
