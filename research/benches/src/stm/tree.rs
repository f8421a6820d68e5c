//! A red-black tree: look-ups, and updates that keep its size.
//!
//! All sides run the same code of the tree, over different memories; fast-stm has a variable for
//! each node, which is the fewest it can read. One mutex also guards a `BTreeMap` of the standard
//! library.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;

use fast_stm::{StmError, TVar, Transaction};
use hearth_stm::{Algorithm, Lsa, Memory, Norec, RedBlack, Stm, Tree};

use super::{Random, Side};

/// Keys, and updates in 100 transactions.
#[derive(Clone, Copy)]
struct Work {
    keys: usize,
    updates: usize,
}

const WORK: Work = Work {
    keys: 8192,
    updates: 20,
};

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

/// Keys go up in a tree.
fn right(keys: &[u64]) -> Result<(), String> {
    match keys.is_sorted_by(|one, other| one < other) && !keys.is_empty() {
        true => Ok(()),
        false => Err("the keys are out of order".to_owned()),
    }
}

fn hearth<A: Algorithm>(name: &'static str, work: Work) -> Side {
    let stm = Stm::<A>::with_algorithm();
    let tree: Tree<u64, u64> = Tree::with_capacity(work.keys);
    for key in work.first_keys() {
        stm.atomically(|tx| tree.insert(tx, key, key));
    }
    Side::new(
        name,
        (stm, tree),
        move |(stm, tree), random| {
            match work.order(random) {
                Order::Get(key) => stm.atomically(|tx| tree.get(tx, key)),
                Order::Insert(key) => stm.atomically(|tx| tree.insert(tx, key, key)),
                Order::Remove(key) => stm.atomically(|tx| tree.remove(tx, key)),
            };
        },
        |(stm, tree)| {
            let keys = stm.atomically(|tx| {
                let mut keys = Vec::new();
                tree.visit(tx, |key, _| keys.push(key))?;
                Ok(keys)
            });
            right(&keys)
        },
    )
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

impl Plain {
    fn new(work: Work) -> Plain {
        let mut nodes = Plain {
            nodes: vec![Node::default()],
            free: Vec::new(),
        };
        for key in work.first_keys() {
            let Ok(_) = RedBlack(&mut nodes).insert(order(key), key, key);
        }
        nodes
    }

    fn serve(&mut self, work: Order) {
        let mut tree = RedBlack(self);
        let Ok(_) = match work {
            Order::Get(key) => tree.get(order(key)),
            Order::Insert(key) => tree.insert(order(key), key, key),
            Order::Remove(key) => tree.remove(order(key)),
        };
    }

    fn check(&mut self) -> Result<(), String> {
        let mut keys = Vec::new();
        let Ok(()) = RedBlack(self).visit(|key, _| keys.push(key));
        right(&keys)
    }
}

fn mutex(work: Work) -> Side {
    Side::new(
        "mutex",
        Mutex::new(Plain::new(work)),
        move |tree, random| {
            let order = work.order(random);
            tree.lock().expect("nobody panics").serve(order);
        },
        |tree| tree.lock().expect("nobody panics").check(),
    )
}

fn parking_lot(work: Work) -> Side {
    Side::new(
        "parking_lot",
        parking_lot::Mutex::new(Plain::new(work)),
        move |tree, random| {
            let order = work.order(random);
            tree.lock().serve(order);
        },
        |tree| tree.lock().check(),
    )
}

fn b_tree(work: Work) -> Side {
    let map: BTreeMap<u64, u64> = work.first_keys().map(|key| (key, key)).collect();
    Side::new(
        "b-tree",
        Mutex::new(map),
        move |map, random| {
            let work = work.order(random);
            let mut map = map.lock().expect("nobody panics");
            match work {
                Order::Get(key) => std::hint::black_box(map.get(&key).copied()),
                Order::Insert(key) => map.insert(key, key),
                Order::Remove(key) => map.remove(&key),
            };
        },
        |_| Ok(()),
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

/// Nodes and lanes that transactions of fast-stm share.
struct Shared {
    nodes: Vec<TVar<Node>>,
    lanes: Vec<TVar<u32>>,
}

impl Shared {
    fn new(work: Work) -> Shared {
        const LANES: u32 = 4;
        let shared = Shared {
            nodes: (0..=2 * work.keys)
                .map(|_| TVar::new(Node::default()))
                .collect(),
            lanes: (0..LANES).map(|_| TVar::new(0)).collect(),
        };
        for node in 1..shared.nodes.len() as u32 {
            let lane = &shared.lanes[(node % LANES) as usize];
            fast_stm::atomically(|tx| {
                let links = tx.read(lane)?.into();
                let free = Node {
                    links,
                    ..Node::default()
                };
                tx.write(&shared.nodes[node as usize], free)?;
                tx.write(lane, node)
            });
        }
        for key in work.first_keys() {
            fast_stm::atomically(|tx| RedBlack(&mut shared.peer(tx)).insert(order(key), key, key));
        }
        shared
    }

    fn peer<'t>(&'t self, tx: &'t mut Transaction) -> Peer<'t> {
        Peer {
            tx,
            visited: 0,
            nodes: &self.nodes,
            lanes: &self.lanes,
        }
    }
}

fn fast_stm(work: Work) -> Side {
    Side::new(
        "fast-stm",
        Shared::new(work),
        move |shared, random| {
            let work = work.order(random);
            fast_stm::atomically(|tx| {
                let mut nodes = shared.peer(tx);
                let mut tree = RedBlack(&mut nodes);
                match work {
                    Order::Get(key) => tree.get(order(key)),
                    Order::Insert(key) => tree.insert(order(key), key, key),
                    Order::Remove(key) => tree.remove(order(key)),
                }
            });
        },
        |_| Ok(()),
    )
}

pub(super) fn sides() -> Vec<Side> {
    vec![
        hearth::<Lsa>("lsa", WORK),
        hearth::<Norec>("norec", WORK),
        mutex(WORK),
        parking_lot(WORK),
        b_tree(WORK),
        fast_stm(WORK),
    ]
}
