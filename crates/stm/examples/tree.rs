//! A red-black tree: lookups, and updates that keep its size.
//!
//! `tree [keys=8192] [updates=20] [threads=1] [rounds=5] [ms=500]`: both algorithms, one mutex, and
//! the crate fast-stm, in turns. `updates` is a percentage; half of the keys are in the tree. All
//! run the same code of the tree, over different memories; fast-stm has a variable for each node,
//! which is the fewest it can read. The mutex also guards a `BTreeMap` of the standard library.

mod beside;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;
use std::time::Duration;

use beside::{Contender, Random, argument, compare};
use fast_stm::{StmError, TVar, Transaction};
use hearth_stm::{Algorithm, Lsa, Memory, Norec, RedBlack, Stm, Tree, thread_counts};

#[derive(Clone, Copy)]
struct Work {
    keys: usize,
    updates: usize,
}

enum Order {
    Get(u64),
    Insert(u64),
    Remove(u64),
}

impl Work {
    fn order(self, random: &mut Random) -> Order {
        let key = random.below(self.keys) as u64;
        match random.below(200) {
            kind if kind >= 2 * self.updates => Order::Get(key),
            kind if kind < self.updates => Order::Insert(key),
            _ => Order::Remove(key),
        }
    }

    /// Half of the keys, in no order.
    fn first_keys(self) -> impl Iterator<Item = u64> {
        let mut random = Random::new(7);
        let mut keys: Vec<u64> = (0..self.keys as u64).collect();
        for at in (1..keys.len()).rev() {
            keys.swap(at, random.below(at + 1));
        }
        keys.into_iter().take(self.keys / 2)
    }
}

fn hearth<A: Algorithm>(name: &'static str, work: Work) -> Contender<'static> {
    let stm = Stm::<A>::with_algorithm();
    let tree = Tree::with_capacity(work.keys);
    for key in work.first_keys() {
        stm.atomically(|tx| tree.insert(tx, key, key));
    }
    let conflicts = || thread_counts::<A>().conflicts;
    Contender::new(name, conflicts, move |random| {
        match work.order(random) {
            Order::Get(key) => stm.atomically(|tx| tree.get(tx, key)),
            Order::Insert(key) => stm.atomically(|tx| tree.insert(tx, key, key)),
            Order::Remove(key) => stm.atomically(|tx| tree.remove(tx, key)),
        };
    })
}

fn order(key: u64) -> impl Fn(u64) -> Ordering {
    move |other| key.cmp(&other)
}

/// A node as other memories keep it.
#[derive(Clone, Copy, Default)]
struct Node {
    links: u64,
    key: u64,
    value: u64,
}

/// Nodes under a lock.
struct Plain {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Memory for Plain {
    type Halt = Infallible;

    fn key_and_links(&mut self, node: u32) -> Result<(u64, u64), Infallible> {
        let node = &self.nodes[node as usize];
        Ok((node.key, node.links))
    }

    fn links(&mut self, node: u32) -> Result<u64, Infallible> {
        Ok(self.nodes[node as usize].links)
    }

    fn value(&mut self, node: u32) -> Result<u64, Infallible> {
        Ok(self.nodes[node as usize].value)
    }

    fn set_links(&mut self, node: u32, links: u64) -> Result<(), Infallible> {
        self.nodes[node as usize].links = links;
        Ok(())
    }

    fn set_value(&mut self, node: u32, value: u64) -> Result<(), Infallible> {
        self.nodes[node as usize].value = value;
        Ok(())
    }

    fn set_entry(&mut self, node: u32, key: u64, value: u64) -> Result<(), Infallible> {
        let node = &mut self.nodes[node as usize];
        (node.key, node.value) = (key, value);
        Ok(())
    }

    fn allocate(&mut self) -> Result<u32, Infallible> {
        Ok(self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        }))
    }

    fn free(&mut self, node: u32) -> Result<(), Infallible> {
        self.free.push(node);
        Ok(())
    }
}

fn mutex(work: Work) -> Contender<'static> {
    let mut nodes = Plain {
        nodes: vec![Node::default()],
        free: Vec::new(),
    };
    for key in work.first_keys() {
        let Ok(_) = RedBlack(&mut nodes).insert(order(key), key, key);
    }
    let tree = Mutex::new(nodes);
    Contender::new(
        "mutex",
        || 0,
        move |random| {
            let work = work.order(random);
            let mut nodes = tree.lock().expect("nobody panics");
            let mut tree = RedBlack(&mut *nodes);
            let Ok(_) = match work {
                Order::Get(key) => tree.get(order(key)),
                Order::Insert(key) => tree.insert(order(key), key, key),
                Order::Remove(key) => tree.remove(order(key)),
            };
        },
    )
}

fn b_tree(work: Work) -> Contender<'static> {
    let map: BTreeMap<u64, u64> = work.first_keys().map(|key| (key, key)).collect();
    let map = Mutex::new(map);
    Contender::new(
        "b-tree",
        || 0,
        move |random| {
            let work = work.order(random);
            let mut map = map.lock().expect("nobody panics");
            match work {
                Order::Get(key) => std::hint::black_box(map.get(&key).copied()),
                Order::Insert(key) => map.insert(key, key),
                Order::Remove(key) => map.remove(&key),
            };
        },
    )
}

/// Nodes on the longest way down, generously: the trees here have at most 2^16.
const WAY_MAX: u32 = 40;

/// Nodes that are variables of fast-stm, and lists of free nodes.
///
/// A transaction of fast-stm that will not commit may see a tree with a circle, and would go round
/// in it for ever: what it has read is compared at its end only. So this memory counts.
struct Peer<'t> {
    tx: &'t mut Transaction,
    visited: u32,
    nodes: &'t [TVar<Node>],
    lanes: &'t [TVar<u32>],
}

impl Memory for Peer<'_> {
    type Halt = StmError;

    fn key_and_links(&mut self, node: u32) -> Result<(u64, u64), StmError> {
        self.visited += 1;
        if self.visited > WAY_MAX {
            return Err(StmError::Failure);
        }
        let node = self.tx.read(&self.nodes[node as usize])?;
        Ok((node.key, node.links))
    }

    fn links(&mut self, node: u32) -> Result<u64, StmError> {
        Ok(self.tx.read(&self.nodes[node as usize])?.links)
    }

    fn value(&mut self, node: u32) -> Result<u64, StmError> {
        Ok(self.tx.read(&self.nodes[node as usize])?.value)
    }

    fn set_links(&mut self, node: u32, links: u64) -> Result<(), StmError> {
        let place = &self.nodes[node as usize];
        let old = self.tx.read(place)?;
        self.tx.write(place, Node { links, ..old })
    }

    fn set_value(&mut self, node: u32, value: u64) -> Result<(), StmError> {
        let place = &self.nodes[node as usize];
        let old = self.tx.read(place)?;
        self.tx.write(place, Node { value, ..old })
    }

    fn set_entry(&mut self, node: u32, key: u64, value: u64) -> Result<(), StmError> {
        let place = &self.nodes[node as usize];
        let old = self.tx.read(place)?;
        self.tx.write(place, Node { key, value, ..old })
    }

    fn allocate(&mut self) -> Result<u32, StmError> {
        // The lane of this thread, then the others'.
        let own = lane(self.lanes.len());
        for offset in 0..self.lanes.len() {
            let lane = &self.lanes[(own + offset) % self.lanes.len()];
            let head = self.tx.read(lane)?;
            if head != 0 {
                let next = self.tx.read(&self.nodes[head as usize])?.links;
                self.tx.write(lane, next as u32)?;
                return Ok(head);
            }
        }
        panic!("there is a node for every key");
    }

    fn free(&mut self, node: u32) -> Result<(), StmError> {
        let lane = &self.lanes[lane(self.lanes.len())];
        let head = self.tx.read(lane)?;
        let links = head.into();
        self.tx.write(
            &self.nodes[node as usize],
            Node {
                links,
                ..Node::default()
            },
        )?;
        self.tx.write(lane, node)
    }
}

/// A number of this thread.
fn lane(lanes: usize) -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr() >> 12) % lanes
}

fn fast_stm(work: Work) -> Contender<'static> {
    const LANES: u32 = 4;
    let nodes: Vec<TVar<Node>> = (0..=2 * work.keys)
        .map(|_| TVar::new(Node::default()))
        .collect();
    let lanes: Vec<TVar<u32>> = (0..LANES).map(|_| TVar::new(0)).collect();
    fn peer<'t>(
        tx: &'t mut Transaction,
        nodes: &'t [TVar<Node>],
        lanes: &'t [TVar<u32>],
    ) -> Peer<'t> {
        let visited = 0;
        Peer {
            tx,
            visited,
            nodes,
            lanes,
        }
    }
    for node in 1..nodes.len() as u32 {
        let lane = &lanes[(node % LANES) as usize];
        fast_stm::atomically(|tx| {
            let links = tx.read(lane)?.into();
            tx.write(
                &nodes[node as usize],
                Node {
                    links,
                    ..Node::default()
                },
            )?;
            tx.write(lane, node)
        });
    }
    for key in work.first_keys() {
        fast_stm::atomically(|tx| {
            RedBlack(&mut peer(tx, &nodes, &lanes)).insert(order(key), key, key)
        });
    }
    Contender::new(
        "fast-stm",
        || 0,
        move |random| {
            let work = work.order(random);
            fast_stm::atomically(|tx| {
                let mut nodes = peer(tx, &nodes, &lanes);
                let mut tree = RedBlack(&mut nodes);
                match work {
                    Order::Get(key) => tree.get(order(key)),
                    Order::Insert(key) => tree.insert(order(key), key, key),
                    Order::Remove(key) => tree.remove(order(key)),
                }
            });
        },
    )
}

fn main() {
    let work = Work {
        keys: argument("keys", 8192),
        updates: argument("updates", 20),
    };
    let contenders = [
        hearth::<Lsa>("lsa", work),
        hearth::<Norec>("norec", work),
        b_tree(work),
        mutex(work),
        fast_stm(work),
    ];
    let duration = Duration::from_millis(argument("ms", 500) as u64);
    compare(
        &contenders,
        argument("threads", 1),
        argument("rounds", 5),
        duration,
    );
}
