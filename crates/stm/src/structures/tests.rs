//! Structures beside those of the standard library: alone with random operations, and several
//! threads at once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::thread;

use super::{Map, Queue, Tree};
use crate::algorithm::Algorithm;
use crate::lsa::Lsa;
use crate::norec::Norec;
use crate::stm::Stm;

/// Xorshift; a failure prints its seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Fewer rounds in an interpreter.
const fn rounds(natively: u64) -> u64 {
    if cfg!(miri) {
        natively / 100 + 1
    } else {
        natively
    }
}

/// Transactions of several operations each, of which some are undone.
fn map_is_a_map<A: Algorithm>() {
    for seed in 1..rounds(29) + 1 {
        let mut random = Random::new(seed);
        let stm = Stm::<A>::with_algorithm();
        let keys = 1 + random.below(60);
        let map = Map::with_capacity(4);
        let mut known = HashMap::new();
        for _ in 0..rounds(300) {
            let mut then = known.clone();
            let operations: Vec<_> = (0..1 + random.below(6))
                .map(|_| (random.below(3), random.below(keys), random.below(1000)))
                .collect();
            let is_undone = random.below(4) == 0;
            let result = stm.try_atomically(|tx| {
                then = known.clone();
                for &(kind, key, value) in &operations {
                    match kind {
                        0 => assert_eq!(map.insert(tx, key, value)?, then.insert(key, value)),
                        1 => assert_eq!(map.remove(tx, key)?, then.remove(&key)),
                        _ => assert_eq!(map.get(tx, key)?, then.get(&key).copied()),
                    }
                }
                assert_eq!(map.len(tx)?, then.len() as u64, "seed {seed}");
                if is_undone { crate::abort(()) } else { Ok(()) }
            });
            if result.is_ok() {
                known = then;
            }
        }
    }
}

#[test]
fn map_is_a_map_under_lsa() {
    map_is_a_map::<Lsa>();
}

#[test]
fn map_is_a_map_under_norec() {
    map_is_a_map::<Norec>();
}

fn tree_is_a_sorted_map<A: Algorithm>() {
    for seed in 1..rounds(29) + 1 {
        let mut random = Random::new(seed);
        let stm = Stm::<A>::with_algorithm();
        let keys = 1 + random.below(200);
        let tree = Tree::with_capacity(4);
        let mut known = BTreeMap::new();
        for _ in 0..rounds(600) {
            let key = random.below(keys) as i64 - 100;
            let value = random.below(1000) as u32;
            match random.below(5) {
                0 | 1 => {
                    let old = stm.atomically(|tx| tree.insert(tx, key, value));
                    assert_eq!(old, known.insert(key, value), "seed {seed}");
                }
                2 | 3 => {
                    let old = stm.atomically(|tx| tree.remove(tx, key));
                    assert_eq!(old, known.remove(&key), "seed {seed}");
                }
                _ => {
                    let found = stm.atomically(|tx| tree.get(tx, key));
                    assert_eq!(found, known.get(&key).copied(), "seed {seed}");
                }
            }
            let undone = stm.try_atomically(|tx| {
                tree.insert(tx, key + 1, 0)?;
                tree.remove(tx, key)?;
                crate::abort::<(), _>(())
            });
            assert_eq!(undone, Err(()));
            let entries = stm.atomically(|tx| {
                tree.check(tx);
                let mut entries = Vec::new();
                tree.visit(tx, |key, value| entries.push((key, value)))?;
                assert_eq!(tree.len(tx)?, entries.len() as u64);
                Ok(entries)
            });
            assert!(entries.into_iter().eq(known.clone()), "seed {seed}");
        }
    }
}

#[test]
fn tree_is_a_sorted_map_under_lsa() {
    tree_is_a_sorted_map::<Lsa>();
}

#[test]
fn tree_is_a_sorted_map_under_norec() {
    tree_is_a_sorted_map::<Norec>();
}

fn queue_is_a_queue<A: Algorithm>() {
    for seed in 1..rounds(29) + 1 {
        let mut random = Random::new(seed);
        let stm = Stm::<A>::with_algorithm();
        let queue = Queue::new();
        let mut known = VecDeque::new();
        for _ in 0..rounds(2000) {
            if random.below(5) < 2 + random.below(2) {
                let value = random.below(1 << 40);
                stm.atomically(|tx| queue.push(tx, value));
                known.push_back(value);
            } else {
                let taken = stm.atomically(|tx| queue.pop(tx));
                assert_eq!(taken, known.pop_front(), "seed {seed}");
            }
            let is_empty = stm.atomically(|tx| queue.is_empty(tx));
            assert_eq!(is_empty, known.is_empty(), "seed {seed}");
        }
    }
}

#[test]
fn queue_is_a_queue_under_lsa() {
    queue_is_a_queue::<Lsa>();
}

#[test]
fn queue_is_a_queue_under_norec() {
    queue_is_a_queue::<Norec>();
}

/// Moves entries between a tree, a map and a queue while others look: each is in one place.
fn entries_are_in_one_place<A: Algorithm>(seed: u64) {
    const KEYS: u64 = 24;
    const MOVES: u64 = rounds(3_000);
    let stm = Stm::<A>::with_algorithm();
    let (tree, map, queue) = (Tree::with_capacity(4), Map::with_capacity(4), Queue::new());
    for key in 0..KEYS {
        stm.atomically(|tx| tree.insert(tx, key, key * key));
    }
    thread::scope(|scope| {
        for number in 0..3 {
            let (stm, tree, map, queue) = (&stm, &tree, &map, &queue);
            scope.spawn(move || {
                let mut random = Random::new(seed * 8 + number);
                for _ in 0..MOVES {
                    let key = random.below(KEYS);
                    let kind = random.below(4);
                    stm.atomically(|tx| match kind {
                        0 => match tree.remove(tx, key)? {
                            Some(value) => map.insert(tx, key, value).map(drop),
                            None => Ok(()),
                        },
                        1 => match map.remove(tx, key)? {
                            Some(_) => queue.push(tx, key),
                            None => Ok(()),
                        },
                        2 => match queue.pop(tx)? {
                            Some(key) => tree.insert(tx, key, key * key).map(drop),
                            None => Ok(()),
                        },
                        _ => {
                            let places = [tree.get(tx, key)?, map.get(tx, key)?];
                            for value in places.into_iter().flatten() {
                                assert_eq!(value, key * key, "seed {seed}");
                            }
                            assert!(places[0].is_none() || places[1].is_none(), "seed {seed}");
                            Ok(())
                        }
                    });
                }
            });
        }
    });
    stm.atomically(|tx| {
        tree.check(tx);
        Ok(())
    });
    let mut keys = Vec::new();
    while let Some(key) = stm.atomically(|tx| queue.pop(tx)) {
        keys.push(key);
    }
    for key in 0..KEYS {
        let places = stm.atomically(|tx| Ok([tree.get(tx, key)?, map.get(tx, key)?]));
        keys.extend(places.into_iter().flatten().map(|_| key));
    }
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..KEYS), "seed {seed}");
}

#[test]
fn entries_are_in_one_place_under_lsa() {
    (1..6).for_each(entries_are_in_one_place::<Lsa>);
}

#[test]
fn entries_are_in_one_place_under_norec() {
    (1..6).for_each(entries_are_in_one_place::<Norec>);
}

/// One end allocates the nodes that the other frees: the slab stays small.
#[test]
fn a_queue_between_threads_reuses_its_nodes() {
    const VALUES: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let (stm, there, back) = (Stm::new(), Queue::new(), Queue::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..VALUES {
                let value = stm.atomically(|tx| there.pop_or_retry(tx));
                stm.atomically(|tx| back.push(tx, value + 1));
            }
        });
        for value in 0..VALUES {
            stm.atomically(|tx| there.push(tx, value));
            let answer = stm.atomically(|tx| back.pop_or_retry(tx));
            assert_eq!(answer, value + 1);
        }
    });
}
